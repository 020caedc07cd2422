//! Issue, execution at issue, and write-back.

use super::cache::line_of;
use super::core::{Arriving, Core, Fetched, HORIZON, Resolving, Results};
use super::decode::{Decoded, NO_REGISTER, Route};
use super::load_store::QUEUE_LAG;
use super::memory_op::{MemoryKind, MemoryOp};
use super::queues::next_in_turn;
use super::replay::{Access, Executed};
use super::report::{Stall, ThreadCounters};
use super::sink::{Issue, Sink};
use crate::exec::{Control, Space};
use crate::machine::{Machine, Stop};
use crate::rest::Status;
use crate::step::Progress;
use npu_mc::machine;
use npu_mc::raw::RawInst;

/// Cycles from issue to execution.
const TO_EXECUTE: u64 = machine::ISSUE_TO_EXECUTE as u64;
/// The number of results in a queue that blocks issue.
const WRITE_BACK_LIMIT: usize = machine::WRITE_BACK_LIMIT as usize;
/// Cycles from the entry of a result into its queue to its use.
const QUEUED_BEFORE_USE: u64 = machine::QUEUED_BEFORE_USE as u64;
/// Cycles from the exit of a result from its queue to its use.
const LEAVES_BEFORE_USE: u64 = machine::LEAVES_BEFORE_USE as u64;
/// The maximum number of consecutive undecoded words that are skipped at once.
const WORDS_AT_ONCE: u32 = 4096;

impl Core {
    /// Moves one result through the write port.
    #[inline]
    pub(super) fn write_back(&mut self, now: u64) -> bool {
        let bit = 1u64 << (now % HORIZON);
        let first = |results: &Results| results.front().is_some_and(|r| r.ready <= now);
        let (result, stall) = if self.float_pending & bit != 0 {
            self.float_pending &= !bit;
            (Some(self.float[(now % HORIZON) as usize]), Stall::Float)
        } else if first(&self.integer) {
            (self.integer.pop(), Stall::Integer)
        } else if first(&self.scratchpad) {
            (self.scratchpad.pop(), Stall::Scratchpad)
        } else if first(&self.memory) {
            (self.memory.pop(), Stall::Load)
        } else {
            return false;
        };
        let Some(result) = result else { return false };
        let thread = usize::from(result.thread);
        let pipe = &mut self.pipes[thread];
        pipe.clear_busy(result.register);
        if (self.available & !self.operands) >> thread & 1 != 0 {
            pipe.producer = stall;
            pipe.awaited = result.register;
            self.check_operands(thread, now);
        }
        true
    }

    /// Handles an instruction that has reached the front of the buffer and can issue in cycle `now`
    /// or later.
    #[inline]
    pub(super) fn come_to_front(&mut self, thread: usize, now: u64) {
        let pipe = &mut self.pipes[thread];
        let Some(front) = pipe.buffer.front() else { return };
        pipe.front = *self.decoder.get(front.pc, front.word);
        pipe.available = now;
        self.available |= 1 << thread;
        self.check_operands(thread, now);
    }

    /// Checks whether the front of the buffer has its operands, for an issue in cycle `now` or
    /// later.
    #[inline]
    pub(super) fn check_operands(&mut self, thread: usize, now: u64) {
        let pipe = &mut self.pipes[thread];
        if pipe.busy & pipe.front.needs == 0 {
            self.operands |= 1 << thread;
            pipe.operands = now;
            pipe.hindrance = Stall::Turn;
        }
    }

    /// Returns whether a result queue is so full that nothing may issue.
    #[inline]
    fn write_back_is_full(&self, now: u64) -> bool {
        let long = |results: &Results| results.len() >= WRITE_BACK_LIMIT;
        (long(&self.memory) || long(&self.integer) || long(&self.scratchpad)) && self.queue_is_full(now)
    }

    /// Implements `write_back_is_full` for queues that may be full. A result enters its queue some
    /// cycles before its use, and leaves it one cycle before its use.
    fn queue_is_full(&self, now: u64) -> bool {
        let queues = [&self.integer, &self.scratchpad, &self.memory];
        let next = now + LEAVES_BEFORE_USE;
        let left = |results: &&Results| results.front().is_some_and(|r| r.ready <= next);
        let leaves = match self.float_pending >> (next % HORIZON) & 1 {
            0 => queues.iter().position(left),
            _ => None,
        };
        queues.iter().enumerate().any(|(k, results)| {
            let last = WRITE_BACK_LIMIT - 1 + usize::from(leaves == Some(k));
            results.get(last).is_some_and(|r| r.ready <= now + QUEUED_BEFORE_USE)
        })
    }

    /// Issues an instruction of one of the threads in `ready`.
    #[inline]
    pub(super) fn issue<S: Sink>(&mut self, ready: u8, now: u64, machine: &mut Machine, sink: &mut S) {
        if self.write_back_is_full(now) {
            return;
        }
        let mut candidates = ready;
        let mut turn = self.issue_turn;
        while candidates != 0 {
            let thread = next_in_turn(candidates, turn);
            turn = thread;
            candidates &= !(1 << thread);
            let pipe = &mut self.pipes[usize::from(thread)];
            let taken = |set: u64, ahead: u64| set >> ((now + ahead) % HORIZON) & 1 != 0;
            let hindrance = match pipe.front.route {
                Route::Float if taken(self.float_slots, pipe.front.slot.into()) => Stall::FloatSlot,
                Route::Scratchpad if taken(self.scratchpad_busy, 0) => Stall::ScratchpadQueue,
                Route::Memory if pipe.queue.front().is_some_and(|op| op.from <= now) => Stall::MemoryQueue,
                Route::Nop
                | Route::Int
                | Route::Float
                | Route::Memory
                | Route::Scratchpad
                | Route::Branch
                | Route::Control
                | Route::Barrier => {
                    self.issue_turn = thread;
                    self.issue_front(usize::from(thread), now, machine, sink);
                    return;
                }
            };
            pipe.hindrance = hindrance;
        }
    }

    /// Issues the front of the buffer of `thread`.
    #[inline]
    fn issue_front<S: Sink>(&mut self, thread: usize, now: u64, machine: &mut Machine, sink: &mut S) {
        let Some(&Fetched {
            pc,
            word,
            fetched,
            late,
        }) = self.pipes[thread].buffer.front()
        else {
            return;
        };
        let decoded = self.pipes[thread].front;
        let bit = 1u8 << thread;
        let killed = self.wrong_path & bit != 0;
        if !killed && !self.pipes[thread].step_over && machine.breakpoints().contains(&pc) {
            let number = self.global(thread);
            // The fetch from the stop address is not part of the run.
            let pipe = &mut self.pipes[thread];
            pipe.paused = Some(pipe.since.saturating_sub(1));
            let stop = self.pass_words(number, pc, machine);
            self.stop = Some((number, stop.err().unwrap_or_else(|| machine.stopped(number))));
            return;
        }
        let pipe = &mut self.pipes[thread];
        pipe.step_over = false;
        pipe.buffer.pop();
        pipe.arrived -= 1;
        if pipe.arrived < machine::FETCH_LIMIT {
            self.full &= !bit;
        }
        if decoded.destination != NO_REGISTER {
            pipe.busy |= 1 << decoded.destination;
            pipe.marked[pipe.marks % pipe.marked.len()] = (now, decoded.destination);
            pipe.marks += 1;
        }
        if self.first.is_none() {
            self.first = Some(now);
            for pipe in self.pipes.iter_mut() {
                pipe.since = now;
            }
        }
        self.account(thread, pc, killed, late, now, sink);
        if decoded.route == Route::Float {
            self.float_slots |= 1 << ((now + u64::from(decoded.slot)) % HORIZON);
        }
        sink.issue(&Issue {
            cycle: now,
            fetched,
            thread: self.global(thread),
            pc,
            word,
            latency: decoded.latency,
            killed,
        });
        if killed {
            self.counters.threads[thread].killed += 1;
            if decoded.route == Route::Barrier {
                self.held |= bit;
            }
        } else {
            self.execute(thread, pc, &decoded, now, machine);
        }
        self.operands &= !bit;
        if self.pipes[thread].arrived == 0 {
            self.available &= !bit;
        } else {
            self.come_to_front(thread, now + 1);
        }
    }

    /// Attributes the cycles since the last issue of `thread` to their causes.
    #[inline]
    fn account<S: Sink>(&mut self, thread: usize, pc: u32, killed: bool, late: Stall, now: u64, sink: &mut S) {
        let global = self.global(thread);
        let pipe = &mut self.pipes[thread];
        let since = pipe.since;
        if pipe.ended.is_none() {
            if now > since {
                let available = pipe.available.clamp(since, now);
                let operands = pipe.operands.clamp(available, now);
                let stalls = &mut self.counters.threads[thread].stalls;
                let mut charge = |cause: Stall, from: u64, to: u64, sink: &mut S| {
                    stalls[cause as usize] += to - from;
                    if to > from {
                        sink.stall(global, cause, from, to);
                    }
                };
                charge(late, since, available, sink);
                if operands > available {
                    sink.operand(global, pipe.awaited);
                }
                charge(pipe.producer, available, operands, sink);
                charge(pipe.hindrance, operands, now, sink);
            }
            let cycles = now + 1 - since.min(now);
            self.counters.functions.issued(thread, pc, u64::from(!killed), cycles);
            if let Some(recording) = &mut self.recording {
                recording.issued(thread, pc, killed, cycles);
            }
        }
        pipe.since = now + 1;
    }

    /// Executes an instruction of the correct path.
    #[inline]
    fn execute(&mut self, thread: usize, pc: u32, decoded: &Decoded, now: u64, machine: &mut Machine) {
        let number = self.global(thread);
        let running = self.pipes[thread].ended.is_none();
        if !running && machine.at_rest(number) {
            // An ended thread continues to take turns.
            self.counters.threads[thread].spins += 1;
            self.branch(thread, pc, now);
            return;
        }
        if let Some(done) = self.done.pop_front() {
            self.count_executed(thread, decoded, running, done.lanes);
            self.send(thread, decoded, done.address, false, now);
            if let Some(target) = done.target {
                self.branch(thread, target, now);
            }
            self.record_executed(thread, decoded, done.target);
            return;
        }
        if machine.threads[number].pc() != pc {
            self.recording = None;
        }
        match self.pass_words(number, pc, machine) {
            Ok(true) => {}
            Ok(false) => {
                // The program has changed this code since the fetch. The fetched instruction has no
                // result.
                if decoded.destination != NO_REGISTER {
                    self.pipes[thread].busy &= !(1 << decoded.destination);
                }
                self.branch(thread, machine.thread(number).pc(), now);
                return;
            }
            Err(stop) => {
                self.stop = Some((number, stop));
                return;
            }
        }
        if decoded.reads_control {
            self.tell_counters(now, machine);
        }
        let lanes = if decoded.vector {
            machine.threads[number].mask().count_ones()
        } else {
            0
        };
        self.count_executed(thread, decoded, running, lanes);
        let address = machine.threads[number]
            .s(decoded.base)
            .wrapping_add(decoded.offset as u32);
        if let Some(taken) = machine.step_common(number) {
            // This is no I/O access: the fast interpreter does not execute those.
            self.send(thread, decoded, address, false, now);
            let target = taken.then(|| machine.threads[number].pc());
            if let Some(target) = target {
                self.branch(thread, target, now);
            }
            self.record_executed(thread, decoded, target);
            return;
        }
        self.recording = None;
        let step = match machine.step(number) {
            Ok(step) => step,
            Err(stop) => {
                self.stop = Some((number, stop));
                return;
            }
        };
        let (address, io) = match (step.effect.access, step.effect.control) {
            (Some(access), _) => (access.address, access.space == Space::Io),
            (None, Some(Control::Flush { address } | Control::Invalidate { address })) => (address, false),
            _ => (0, false),
        };
        self.send(thread, decoded, address, io, now);
        match step.progress {
            Progress::Next => {
                if decoded.route == Route::Control && running {
                    let status = machine.thread(number).status();
                    if matches!(status, Status::ENDED | Status::TRAPPED) {
                        self.pipes[thread].ended = Some(now);
                    }
                }
            }
            Progress::Taken | Progress::Trap(_) => self.branch(thread, step.next_pc, now),
            Progress::Waits => {
                self.come_to_barrier(thread, now);
                self.check = true;
            }
            Progress::Opens => {
                self.come_to_barrier(thread, now);
                self.opened = true;
            }
            Progress::Ended(_) => {
                self.pipes[thread].ended.get_or_insert(now);
                self.check = true;
                self.branch(thread, step.next_pc, now);
            }
            Progress::Hang(_) => {
                self.pipes[thread].ended.get_or_insert(now);
                self.check = true;
                self.enabled &= !(1 << thread);
            }
        }
    }

    /// Counts an executed instruction with `lanes` lanes on.
    #[inline]
    fn count_executed(&mut self, thread: usize, decoded: &Decoded, running: bool, lanes: u32) {
        if running {
            let counters = &mut self.counters.threads[thread];
            counters.instructions += 1;
            if decoded.vector {
                counters.vector_instructions += 1;
                counters.lanes += u64::from(lanes);
            }
        }
        self.executed += 1;
    }

    /// Records an executed instruction with branch target `target`.
    #[inline]
    fn record_executed(&mut self, thread: usize, decoded: &Decoded, target: Option<u32>) {
        if let Some(recording) = &mut self.recording {
            let what = match decoded.route {
                _ if decoded.chooses => Executed::Choice,
                Route::Memory => Executed::Memory(Access {
                    base: decoded.base,
                    offset: decoded.offset,
                    vector: decoded.vector,
                }),
                _ if decoded.vector => Executed::Vector,
                Route::Nop
                | Route::Int
                | Route::Float
                | Route::Scratchpad
                | Route::Branch
                | Route::Control
                | Route::Barrier => Executed::Plain,
            };
            recording.executed(thread, what, target);
            self.stretch_ended |= recording.is_long();
            if decoded.reads_control {
                self.recording = None;
            }
        }
        self.stretch_ended |= decoded.chooses;
    }

    /// Executes the undecoded words before `pc`, which never issue; returns whether the thread then
    /// is at `pc`.
    #[inline]
    fn pass_words(&mut self, number: usize, pc: u32, machine: &mut Machine) -> Result<bool, Stop> {
        for _ in 0..WORDS_AT_ONCE {
            if machine.threads[number].pc() == pc {
                return Ok(true);
            }
            let (_, next) = machine.next_instruction(number);
            if next != RawInst::Undefined {
                return Ok(false);
            }
            self.executed += 1;
            machine.step(number)?;
        }
        Ok(false)
    }

    /// Sends an operation to its unit; `address` and `io` apply to memory accesses.
    #[inline]
    fn send(&mut self, thread: usize, decoded: &Decoded, address: u32, io: bool, now: u64) {
        let latency = u64::from(decoded.latency);
        let result = Arriving {
            ready: now + latency,
            thread: thread as u8,
            register: decoded.destination,
        };
        match decoded.route {
            Route::Int => {
                self.integer.push(result);
            }
            Route::Float => {
                let at = (now + latency) % HORIZON;
                self.float[at as usize] = result;
                self.float_pending |= 1 << at;
            }
            Route::Scratchpad => {
                self.scratchpad.push(result);
                self.scratchpad_busy |= 1 << ((now + QUEUE_LAG) % HORIZON);
            }
            Route::Branch => {
                if decoded.destination != NO_REGISTER {
                    self.integer.push(result);
                }
            }
            Route::Memory => {
                let kind = match (decoded.flush, decoded.invalidate, io, decoded.store) {
                    (true, ..) => MemoryKind::Flush,
                    (_, true, ..) => MemoryKind::Invalidate,
                    (_, _, true, true) => MemoryKind::IoWrite,
                    (_, _, true, false) => MemoryKind::IoRead,
                    (.., true) => MemoryKind::Store,
                    _ => MemoryKind::Load,
                };
                let pipe = &mut self.pipes[thread];
                let line = line_of(address);
                pipe.ask(line);
                pipe.queue.push(MemoryOp {
                    from: now + QUEUE_LAG,
                    line,
                    kind,
                    register: decoded.destination,
                });
                pipe.note_next_look();
                self.queued |= 1 << thread;
            }
            Route::Control | Route::Barrier | Route::Nop => {}
        }
    }

    /// Issues a taken branch.
    fn branch(&mut self, thread: usize, target: u32, now: u64) {
        self.wrong_path |= 1 << thread;
        self.pipes[thread].branch_target = target;
        self.branches.push(Resolving {
            at: now + TO_EXECUTE + 1,
            thread: thread as u8,
            issued: now,
        });
    }

    /// Updates the counters in the control registers to this cycle.
    fn tell_counters(&self, now: u64, machine: &mut Machine) {
        let sum =
            |count: fn(&ThreadCounters) -> u64| -> u32 { self.counters.threads.iter().map(count).sum::<u64>() as u32 };
        let kernel = now - self.first.unwrap_or(now);
        machine.set_cycles(self.number, now + TO_EXECUTE);
        machine.set_counters(
            self.number,
            kernel,
            sum(|c| c.data_misses),
            sum(|c| c.instruction_misses),
        );
    }
}
