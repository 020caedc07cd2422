//! The front end of the pipeline: fetch, instruction misses, arrivals in the buffers, and redirects
//! by branches.

use super::cache::line_of;
use super::core::{Core, Fetched, InFlight};
use super::decode::{NO_REGISTER, Route};
use super::memory::{LineMiss, Request};
use super::queues::next_in_turn;
use super::report::Stall;
use super::sink::Sink;
use crate::findings::Hazard;
use crate::machine::{Machine, THREADS};
use crate::rest::HangReason;
use npu_mc::machine::{self, INSTRUCTION_SIZE};

const FETCH_TO_ISSUE: u64 = machine::FETCH_TO_ISSUE as u64;
/// Cycles from a fetch that misses to the controller.
const TO_CONTROLLER: u64 = machine::FETCH_MISS_TO_CONTROLLER as u64;
/// Cycles from a fetch that misses to the pause of the thread.
const TO_NOTICE: u64 = machine::FETCH_MISS_TO_PAUSE as u64;

impl Core {
    /// Resolves taken branches: their targets are fetched from this cycle on.
    pub(super) fn resolve(&mut self, now: u64) {
        while let Some(&branch) = self.branches.front() {
            if branch.at > now {
                break;
            }
            self.branches.pop();
            let bit = 1u8 << branch.thread;
            let pipe = &mut self.pipes[usize::from(branch.thread)];
            pipe.empty();
            pipe.fetch_pc = pipe.branch_target;
            // The hardware also treats an instruction that issued right before the branch as
            // killed: an erratum, which clears the busy bit of its register.
            for (cycle, register) in pipe.marked {
                if cycle + 1 >= branch.issued && cycle != branch.issued && register != NO_REGISTER {
                    pipe.busy &= !(1 << register);
                }
            }
            pipe.marked = [(0, NO_REGISTER); 4];
            // A miss that would be noticed only now is discarded.
            pipe.noticed = u64::MAX;
            self.noticing &= !bit;
            pipe.starved = Stall::Branch;
            self.available &= !bit;
            self.operands &= !bit;
            self.wrong_path &= !bit;
            self.held &= !bit;
            self.full &= !bit;
        }
    }

    /// Returns the threads with a branch that resolves in cycle `at`, if none is due before.
    fn resolving(&self, at: u64) -> u8 {
        match self.branches.front() {
            Some(branch) if branch.at <= at => 1 << branch.thread,
            _ => 0,
        }
    }

    /// Moves fetched instructions to their buffers.
    #[inline]
    pub(super) fn arrive(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(&fetched) = self.decoding.front() {
            if fetched.arrival > now {
                break;
            }
            self.decoding.pop();
            any = true;
            let index = usize::from(fetched.thread);
            let pipe = &mut self.pipes[index];
            if pipe.path != fetched.path {
                continue;
            }
            pipe.arrived += 1;
            if pipe.arrived >= machine::FETCH_LIMIT {
                self.full |= 1 << fetched.thread;
            }
            if pipe.arrived == 1 {
                self.come_to_front(index, now + 1);
            }
        }
        any
    }

    /// Performs one fetch.
    #[inline]
    pub(super) fn fetch<S: Sink>(&mut self, now: u64, machine: &mut Machine, sink: &mut S) -> bool {
        if self.noticing != 0 {
            self.notice_misses(now, machine);
        }
        if self.lost != 0 {
            self.hang_lost_threads(machine);
        }
        let candidates = self.enabled & !self.full & !self.missing;
        if candidates == 0 {
            return false;
        }
        let thread = next_in_turn(candidates, self.fetch_turn);
        self.fetch_turn = thread;
        let bit = 1u8 << thread;
        // A thread that cannot fetch still uses its turn.
        if (self.noticing | self.resolving(now + 1)) & bit != 0 {
            return true;
        }
        let index = usize::from(thread);
        let pipe = &mut self.pipes[index];
        let pc = pipe.fetch_pc;
        let line = line_of(pc);
        if !self.instructions.fetch(line, now) {
            pipe.starved = Stall::InstructionMiss;
            pipe.noticed = now + TO_NOTICE;
            self.noticing |= bit;
            self.counters.threads[index].instruction_misses += 1;
            sink.instruction_miss(now, self.global(index), pc);
            return true;
        }
        self.counters.threads[index].instruction_hits += 1;
        pipe.fetch_pc = pc.wrapping_add(INSTRUCTION_SIZE);
        let word = machine.word_at(pc);
        if let Some(recording) = &mut self.recording {
            match self.instructions.half(line) {
                Some(lower) if machine.memory.holds_code(pc) => recording.fetched(now, lower, (pc, word)),
                _ => self.recording = None,
            }
        }
        // Undecoded words are dropped, except at a stop address.
        let dropped = self.decoder.get(pc, word).route == Route::Nop && !machine.breakpoints().contains(&pc);
        let fetched = Fetched {
            pc,
            word,
            fetched: now,
            late: pipe.starved,
        };
        if !dropped {
            pipe.buffer.push(fetched);
            pipe.starved = Stall::Fetch;
            self.decoding.push(InFlight {
                arrival: now + FETCH_TO_ISSUE - 1,
                thread,
                path: pipe.path,
            });
        }
        true
    }

    /// Notices misses whose cycle has come.
    fn notice_misses(&mut self, now: u64, machine: &mut Machine) {
        let mut threads = self.noticing;
        while threads != 0 {
            let thread = threads.trailing_zeros() as usize;
            threads &= threads - 1;
            let bit = 1u8 << thread;
            let pipe = &mut self.pipes[thread];
            if pipe.noticed <= now {
                pipe.noticed = u64::MAX;
                self.noticing &= !bit;
                let line = line_of(pipe.fetch_pc);
                // The line can have arrived in the meantime, for another thread.
                if !self.instructions.holds(line) {
                    self.missing |= bit;
                    let from = now + TO_CONTROLLER - TO_NOTICE;
                    if self.controller.instruction_line(line, bit, from) == LineMiss::Lost {
                        self.lose(thread, machine);
                    }
                }
            }
        }
    }

    /// Records that a thread never fetches again (erratum `repeated_instruction_line_miss`). Its
    /// fetched instructions still issue.
    fn lose(&mut self, thread: usize, machine: &mut Machine) {
        let pc = self.pipes[thread].fetch_pc;
        self.lost |= 1 << thread;
        let number = self.global(thread) as u32;
        machine.findings.report(number, pc, Hazard::RepeatedLineMiss, || {
            "this instruction line was requested recently and was replaced: a thread that waits for the request of another \
             thread never fetches again"
                .to_owned()
        });
    }

    /// Marks threads that never fetch again as hung, once all their fetched instructions have
    /// issued.
    fn hang_lost_threads(&mut self, machine: &mut Machine) {
        for thread in (0..THREADS).filter(|thread| self.lost >> thread & 1 != 0) {
            let pipe = &self.pipes[thread];
            let fetched = |flight: &mut InFlight| usize::from(flight.thread) == thread && flight.path == pipe.path;
            let number = self.global(thread);
            if pipe.buffer.is_empty() && !self.decoding.join(fetched) && machine.can_go_on(number) {
                machine.hang(number, HangReason::InstructionLine);
                self.check = true;
            }
        }
    }

    /// Handles the arrival of an instruction line: the threads that wait for it can fetch again in
    /// this cycle.
    pub(super) fn line_came(&mut self, request: Request, now: u64) {
        self.instructions.fill(request.line, now);
        self.missing &= !request.threads;
    }
}
