//! The pipeline of one core, cycle by cycle: its state, the order of actions in a cycle, and the
//! skipping of idle cycles.
//!
//! The actions in each cycle, in this order: write-back, ends and starts of memory transactions,
//! resolved branches, arrivals at barriers, issue, arrivals in the buffers, fetch, load/store unit.
//! The functional machine executes an instruction of the correct path in the cycle in which the
//! instruction issues. Without a listening sink, known stretches are replayed from recordings
//! instead (`replay`).

use super::cache::{DataCache, InstructionCache};
use super::decode::{Decoded, Decoder, NO_REGISTER, Registers};
use super::memory::Controller;
use super::memory_op::MemoryOp;
use super::network::Network;
use super::queues::Ring;
use super::replay::{Done, Recording, Recordings};
use super::report::{Counters, Stall};
use super::sink::Sink;
use crate::machine::{Machine, Stop, THREADS};
use std::collections::VecDeque;

/// The number of future cycles that the sets of occupied slots cover.
pub(super) const HORIZON: u64 = 64;

/// A result on its way to the write port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    /// The first cycle in which a dependent instruction can issue.
    pub ready: u64,
    pub thread: u8,
    pub register: u8,
}

impl Arriving {
    pub const NONE: Arriving = Arriving {
        ready: u64::MAX,
        thread: 0,
        register: NO_REGISTER,
    };
}

/// Results on their way to the write port, in order.
pub(super) type Results = Ring<Arriving, 64>;

/// A fetched instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    pub pc: u32,
    pub word: u32,
    /// The cycle of the fetch.
    pub fetched: u64,
    /// The reason why it was not fetched earlier.
    pub late: Stall,
}

/// A fetched instruction on its way to the buffer of its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// The cycle in which it reaches the buffer; it can issue in the next one.
    pub arrival: u64,
    pub thread: u8,
    /// The value of [`Pipe::path`] at the fetch.
    pub path: u32,
}

/// A taken branch that has not resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolving {
    /// The cycle in which fetch continues at the target.
    pub at: u64,
    pub thread: u8,
    pub issued: u64,
}

/// The state of a hardware thread.
pub(super) struct Pipe {
    pub fetch_pc: u32,
    /// The target of the taken branch in flight.
    pub branch_target: u32,
    pub buffer: Ring<Fetched, 32>,
    /// The decoded front of `buffer`, once it has arrived.
    pub front: Decoded,
    /// The number of instructions in `buffer` that have arrived.
    pub arrived: u32,
    /// The number of the current path; fetches with another number belong to an abandoned path.
    pub path: u32,
    pub busy: Registers,
    /// The last issues that made a register busy: cycle and register.
    pub marked: [(u64, u8); 4],
    pub marks: usize,
    /// Operations for the load/store unit.
    pub queue: Ring<MemoryOp, 16>,
    /// Operations that missed, until their lines arrive.
    pub replays: Ring<MemoryOp, 8>,
    /// The lines of the last loads and stores, and the number of loads and stores.
    pub lines: [u32; 16],
    pub asked: usize,
    /// The cycles in which operations that missed may access the cache again.
    pub wakes: Ring<u64, 8>,
    /// The first cycle in which an operation of the three queues above can access the cache;
    /// `u64::MAX` without one.
    pub look_from: u64,
    /// The first cycle that is not accounted for.
    pub since: u64,
    /// The cycle from which the instruction at the front of the buffer could issue, apart from its
    /// operands.
    pub available: u64,
    /// The cycle in which its operands were ready, and the kind of the last result.
    pub operands: u64,
    pub producer: Stall,
    /// The register of the last result.
    pub awaited: u8,
    /// The reason why it did not issue with its operands ready.
    pub hindrance: Stall,
    /// The reason why the next fetch is late.
    pub starved: Stall,
    /// The cycle in which the thread issued the write of its last status, or hung.
    pub ended: Option<u64>,
    /// The cycle in which the thread reached a stop address.
    pub paused: Option<u64>,
    /// The cycle in which a miss is noticed; until then the thread may be granted useless fetches.
    pub noticed: u64,
    /// The last cycle in which an operation of the thread accessed the data cache.
    pub last_look: u64,
    /// The first cycle in which its arrival at a barrier can be sent.
    pub arrival_from: u64,
    /// The cycle in which the barrier counts its arrival; `u64::MAX` while unknown.
    pub arrival: u64,
    /// The number of the last barrier that opened for the thread.
    pub barrier: u32,
    /// The cycle in which the thread leaves a barrier.
    pub release: u64,
    /// Whether the next issue passes over a stop address.
    pub step_over: bool,
    /// The PC and the number of instructions at the end of the last run.
    pub left_at: Option<(u32, u64)>,
}

impl Pipe {
    fn new() -> Pipe {
        let none = Fetched {
            pc: 0,
            word: 0,
            fetched: 0,
            late: Stall::Fetch,
        };
        Pipe {
            fetch_pc: 0,
            branch_target: 0,
            buffer: Ring::new(none),
            front: Decoded::EMPTY,
            arrived: 0,
            path: 0,
            busy: 0,
            marked: [(0, NO_REGISTER); 4],
            marks: 0,
            queue: Ring::new(MemoryOp::NONE),
            replays: Ring::new(MemoryOp::NONE),
            lines: [0; 16],
            asked: 0,
            wakes: Ring::new(0),
            look_from: u64::MAX,
            since: 0,
            available: 0,
            operands: 0,
            producer: Stall::Integer,
            awaited: NO_REGISTER,
            hindrance: Stall::Turn,
            starved: Stall::Fetch,
            ended: None,
            paused: None,
            noticed: u64::MAX,
            last_look: 0,
            arrival_from: 0,
            arrival: u64::MAX,
            barrier: 0,
            release: u64::MAX,
            step_over: false,
            left_at: None,
        }
    }

    pub fn clear_busy(&mut self, register: u8) {
        if register != NO_REGISTER {
            self.busy &= !(1 << register);
        }
    }

    /// Drops the fetched instructions.
    pub fn empty(&mut self) {
        self.buffer.clear();
        self.arrived = 0;
        self.path = self.path.wrapping_add(1);
    }
}

/// The pipeline of one core.
pub(super) struct Core {
    /// The number of the core.
    pub number: usize,
    pub now: u64,
    /// Whether to simulate every cycle, without skipping idle ones.
    pub every_cycle: bool,
    pub pipes: Box<[Pipe; THREADS]>,
    pub decoder: Decoder,
    pub instructions: InstructionCache,
    pub data: DataCache,
    pub controller: Controller,
    // Sets of threads, one bit per thread.
    /// Threads that fetch and issue.
    pub enabled: u8,
    /// Threads with an instruction in the buffer.
    pub available: u8,
    /// Threads whose instruction at the front of the buffer has its operands ready.
    pub operands: u8,
    /// Threads at a barrier.
    pub at_barrier: u8,
    /// Threads that issued a barrier on the wrong path, after which nothing issues until the branch
    /// has resolved.
    pub held: u8,
    /// Threads at a barrier whose arrival has not been sent.
    pub arriving: u8,
    /// Threads whose arrival was sent in this cycle.
    pub sent: u8,
    /// Threads at a barrier that has opened.
    pub let_go: u8,
    /// Threads that are leaving a barrier.
    pub leaving: u8,
    /// Threads after a taken branch that has not resolved: they issue instructions of the wrong
    /// path.
    pub wrong_path: u8,
    /// Threads whose buffer is so full that fetch pauses.
    pub full: u8,
    /// Threads with a fetch miss that is not noticed yet.
    pub noticing: u8,
    /// Threads that wait for an instruction line.
    pub missing: u8,
    /// The threads of `missing` whose line never arrives.
    pub lost: u8,
    /// Threads with operations for the load/store unit.
    pub queued: u8,
    /// The last cycle in which the controller filled a line of the data cache, and which therefore
    /// has no lookup.
    pub updating: u64,
    // The last thread that had its turn.
    pub issue_turn: u8,
    pub fetch_turn: u8,
    pub memory_turn: u8,
    pub integer: Results,
    pub scratchpad: Results,
    pub memory: Results,
    /// Float results by cycle modulo [`HORIZON`]: no two end in the same cycle.
    pub float: [Arriving; HORIZON as usize],
    pub float_pending: u64,
    /// Slots of the float port that were taken at issue, by cycle modulo [`HORIZON`].
    pub float_slots: u64,
    /// The cycles in which the scratchpad queue counts as occupied, modulo [`HORIZON`].
    pub scratchpad_busy: u64,
    pub decoding: Ring<InFlight, 16>,
    pub branches: Ring<Resolving, 8>,
    pub counters: Counters,
    /// The cycle of the first issue.
    pub first: Option<u64>,
    /// Whether a thread stopped or reached a barrier: the run may be over.
    pub check: bool,
    /// Whether a barrier opened in this cycle.
    pub opened: bool,
    /// The thread that stopped the run, and the reason.
    pub stop: Option<(usize, Stop)>,
    /// The number of executed instructions, including undecoded words.
    pub executed: u64,
    /// Recorded stretches of runs, by the states in which they begin.
    pub recordings: Recordings,
    /// The current recording.
    pub recording: Option<Box<Recording>>,
    /// Whether a stretch that can be recorded has ended.
    pub stretch_ended: bool,
    /// The instructions that were executed before their issue.
    pub done: VecDeque<Done>,
}

impl Core {
    pub fn new(number: usize, delay: u32) -> Core {
        Core {
            number,
            now: 0,
            every_cycle: false,
            pipes: Box::new(std::array::from_fn(|_| Pipe::new())),
            decoder: Decoder::new(),
            instructions: InstructionCache::new(),
            data: DataCache::new(),
            controller: Controller::new(delay, number),
            enabled: 0,
            available: 0,
            operands: 0,
            at_barrier: 0,
            held: 0,
            arriving: 0,
            sent: 0,
            let_go: 0,
            leaving: 0,
            wrong_path: 0,
            full: 0,
            noticing: 0,
            missing: 0,
            lost: 0,
            queued: 0,
            updating: u64::MAX,
            issue_turn: THREADS as u8 - 1,
            fetch_turn: THREADS as u8 - 1,
            memory_turn: THREADS as u8 - 1,
            integer: Ring::new(Arriving::NONE),
            scratchpad: Ring::new(Arriving::NONE),
            memory: Ring::new(Arriving::NONE),
            float: [Arriving::NONE; HORIZON as usize],
            float_pending: 0,
            float_slots: 0,
            scratchpad_busy: 0,
            decoding: Ring::new(InFlight {
                arrival: u64::MAX,
                thread: 0,
                path: 0,
            }),
            branches: Ring::new(Resolving {
                at: u64::MAX,
                thread: 0,
                issued: 0,
            }),
            counters: Counters::default(),
            first: None,
            check: false,
            opened: false,
            stop: None,
            executed: 0,
            recordings: Recordings::default(),
            recording: None,
            stretch_ended: false,
            done: VecDeque::new(),
        }
    }

    /// Returns the number of a thread in the functional machine.
    pub fn global(&self, thread: usize) -> usize {
        self.number * THREADS + thread
    }

    /// Lets `thread` run from this cycle on. It continues with its fetched instructions if it is at
    /// the position where the last run left it.
    pub fn enable(&mut self, thread: usize, machine: &mut Machine) {
        let number = self.global(thread);
        let stopped = machine.takes_over_stop(number);
        let state = machine.thread(number);
        let (pc, waits) = (state.pc(), state.is_waiting());
        let place = Some((pc, state.instructions()));
        let bit = 1u8 << thread;
        self.enabled |= bit;
        let pipe = &mut self.pipes[thread];
        pipe.paused = None;
        // The thread may not have issued since it was enabled, because another thread stopped the
        // run.
        let step_over = stopped || pipe.step_over && pipe.left_at == place;
        let goes_on =
            pipe.left_at.take() == place && (self.at_barrier & !self.let_go & !self.leaving & bit != 0) == waits;
        if !goes_on {
            self.restart(thread, pc, waits);
        }
        self.pipes[thread].step_over = step_over;
    }

    /// Returns whether `thread` has ended in an earlier run and continues to take turns.
    pub fn spins(&self, thread: usize, machine: &Machine) -> bool {
        let state = machine.thread(self.global(thread));
        self.pipes[thread].left_at == Some((state.pc(), state.instructions()))
    }

    /// Empties the pipeline of `thread`, and restarts its fetch at `pc`.
    fn restart(&mut self, thread: usize, pc: u32, waits: bool) {
        let bit = 1u8 << thread;
        let pipe = &mut self.pipes[thread];
        pipe.empty();
        pipe.busy = 0;
        pipe.marked = [(0, NO_REGISTER); 4];
        pipe.queue.clear();
        pipe.replays.clear();
        pipe.wakes.clear();
        pipe.look_from = u64::MAX;
        pipe.fetch_pc = pc;
        pipe.since = self.now;
        pipe.starved = Stall::Fetch;
        pipe.ended = None;
        pipe.release = u64::MAX;
        self.missing &= !(self.lost & bit);
        for set in [
            &mut self.lost,
            &mut self.available,
            &mut self.operands,
            &mut self.full,
            &mut self.wrong_path,
            &mut self.at_barrier,
            &mut self.held,
            &mut self.arriving,
            &mut self.let_go,
            &mut self.leaving,
            &mut self.queued,
        ] {
            *set &= !bit;
        }
        if waits {
            self.come_to_barrier(thread, self.now);
        }
        self.branches.remove(|branch| usize::from(branch.thread) == thread);
        let forget = |result: &mut Arriving| {
            if usize::from(result.thread) == thread {
                result.register = NO_REGISTER;
            }
            false
        };
        for results in [&mut self.integer, &mut self.scratchpad, &mut self.memory] {
            results.join(forget);
        }
        self.float.iter_mut().for_each(|result| {
            forget(result);
        });
    }

    /// Returns whether a queue of the pipeline lost an entry, which is impossible in the hardware,
    /// or an instruction was executed that did not issue.
    pub fn overflowed(&self) -> bool {
        let lost = |pipe: &Pipe| {
            pipe.buffer.overflowed() || pipe.queue.overflowed() || pipe.replays.overflowed() || pipe.wakes.overflowed()
        };
        let results = [&self.integer, &self.scratchpad, &self.memory];
        self.pipes.iter().any(lost)
            || results.iter().any(|results| results.overflowed())
            || self.decoding.overflowed()
            || self.branches.overflowed()
            || self.controller.overflowed()
            || !self.done.is_empty()
    }

    /// Begins a run; its threads are enabled afterwards.
    pub fn begin(&mut self) {
        self.enabled = 0;
        self.stop = None;
        self.check = true;
        self.executed = 0;
        self.recording = None;
        self.stretch_ended = true;
    }

    /// Ends a run: threads that stay at their current positions can continue in the next run.
    pub fn end(&mut self, machine: &Machine) {
        self.count_recordings();
        for thread in 0..THREADS {
            let state = machine.thread(self.global(thread));
            if self.enabled >> thread & 1 != 0 {
                self.pipes[thread].left_at = Some((state.pc(), state.instructions()));
            }
        }
    }

    /// Runs cycle [`Core::now`] and later cycles before `until`. Stops after a cycle that affects
    /// other cores or in which the number of executed instructions reaches `budget`; returns the
    /// last cycle.
    pub fn run<S: Sink>(
        &mut self,
        machine: &mut Machine,
        network: &mut Network,
        sink: &mut S,
        until: u64,
        budget: u64,
    ) -> u64 {
        loop {
            let mut now = self.now;
            self.cycle(machine, network, sink);
            let for_others = self.stop.is_some() || self.check || self.opened || self.sent != 0;
            if for_others {
                self.recording = None;
                return now;
            }
            if self.stretch_ended && !sink.listens() && !network.shared && !self.every_cycle {
                self.stretch_ended = false;
                let from = self.now;
                self.replay(machine, until, budget);
                if self.now != from {
                    now = self.now - 1;
                }
            }
            if self.executed >= budget {
                return now;
            }
            if now + 1 < until {
                self.pass_over_idle_cycles(now);
            }
            if self.now >= until || self.now >= network.next_arrival() {
                return now;
            }
        }
    }

    /// Runs cycle [`Core::now`] and advances to the next cycle in which something can happen.
    #[inline]
    fn cycle<S: Sink>(&mut self, machine: &mut Machine, network: &mut Network, sink: &mut S) {
        let now = self.now;
        let mut active = self.write_back(now);
        if !self.controller.is_idle() {
            self.hear_of_losses(now, network);
            if let Some(request) = self.controller.step(now) {
                self.transaction_ended(request, now);
                active = true;
            }
            self.controller.start(now, &mut self.data, network);
        }
        if !self.branches.is_empty() {
            self.resolve(now);
        }
        if self.arriving != 0 {
            self.send_arrivals(now);
        }
        if self.leaving != 0 {
            self.leave_barrier(now, sink);
        }
        // An issue makes room for a fetch in the same cycle; an arrival can issue in the next one.
        let ready = self.ready();
        if ready != 0 {
            self.issue(ready, now, machine, sink);
            active = true;
        }
        active |= self.arrive(now);
        active |= self.fetch(now, machine, sink);
        // A slot in the past would be mistaken for a future one.
        let past = 1 << (now % HORIZON);
        self.float_slots &= !past;
        self.scratchpad_busy &= !past;
        if self.queued != 0 {
            self.hear_of_losses(now, network);
            active |= self.look_at_cache(now, sink);
        }
        self.now = if active || self.every_cycle {
            now + 1
        } else {
            self.next_event(now)
        };
    }

    /// Returns the threads that can issue, apart from hazards of the instructions at the front of
    /// their buffers.
    #[inline]
    fn ready(&self) -> u8 {
        self.available & self.operands & !(self.at_barrier | self.held) & self.enabled
    }

    /// Skips the idle cycles after `now`, if no thread issues or fetches in the next one.
    #[inline]
    fn pass_over_idle_cycles(&mut self, now: u64) {
        // The cycles in which misses are noticed and arrivals at barriers are sent are not known in
        // advance.
        let fetching = self.enabled & !self.full & !self.missing;
        if self.now == now + 1 && !self.every_cycle && self.ready() | fetching | self.noticing | self.arriving == 0 {
            self.now = self.next_event(now);
        }
    }

    /// Returns the next cycle after `now` with an event, if nothing issues or is fetched in the
    /// cycle after `now`. Returns the largest cycle number but one if no event follows.
    fn next_event(&mut self, now: u64) -> u64 {
        let mut next = self.controller.next_event().min(self.next_arrival(now));
        let mut at = |cycle: u64| next = next.min(cycle);
        for results in [&self.integer, &self.scratchpad, &self.memory] {
            if let Some(front) = results.front() {
                at(front.ready);
            }
        }
        if self.float_pending != 0 {
            let ahead = self.float_pending.rotate_right((now % HORIZON) as u32).trailing_zeros();
            at(now + u64::from(ahead));
        }
        // An arrival behind an instruction that has already arrived can wait for the next event.
        if let Some(front) = self.decoding.front()
            && self.enabled & !self.available != 0
        {
            at(front.arrival);
        }
        if let Some(front) = self.branches.front() {
            at(front.at);
        }
        let mut busy = self.queued | self.leaving;
        while busy != 0 {
            let thread = busy.trailing_zeros() as usize;
            busy &= busy - 1;
            let pipe = &self.pipes[thread];
            at(pipe.release.min(pipe.look_from));
        }
        // No event follows: use a number that is not reached otherwise.
        let next = next.min(u64::MAX - 1).max(now + 1);
        // The bits of skipped cycles would be mistaken for future ones.
        let skipped = next - now - 1;
        if skipped >= HORIZON - 1 {
            self.float_slots = 0;
            self.scratchpad_busy = 0;
        } else if skipped != 0 {
            let gone = ((1u64 << skipped) - 1).rotate_left(((now + 1) % HORIZON) as u32);
            self.float_slots &= !gone;
            self.scratchpad_busy &= !gone;
        }
        next
    }
}
