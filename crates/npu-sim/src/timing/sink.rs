//! Where the events of a run can go.

use super::report::Stall;
use super::trip::Leg;

/// An instruction that issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The cycle.
    pub cycle: u64,
    /// The cycle of its fetch.
    pub fetched: u64,
    /// Number of the thread, counted over all cores.
    pub thread: usize,
    /// Address of the instruction.
    pub pc: u32,
    /// The instruction word.
    pub word: u32,
    /// Cycles from issue until its result can be used, if nothing is in the way; 0 without one.
    pub latency: u8,
    /// An older taken branch of the thread keeps it from executing.
    pub killed: bool,
}

/// A receiver of events; every function does nothing unless it is given. Threads are counted over all cores.
pub trait Sink {
    /// Whether anything is done with events. Where nothing is, the model may take cycles together that it has seen before.
    const LISTENS: bool = true;

    /// An instruction issued.
    fn issue(&mut self, issue: &Issue) {
        let _ = issue;
    }

    /// `thread` did not issue from cycle `from` on until `to`. Told when it issues next.
    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        let _ = (thread, cause, from, to);
    }

    /// The stall of `thread` that is told next was for the result in `register`: scalar registers are 0 to 63, vector registers 64
    /// to 127.
    fn operand(&mut self, thread: usize, register: u8) {
        let _ = (thread, register);
    }

    /// The barrier that `thread` is at opens for it, after `last` arrived, the last one.
    fn barrier_opens(&mut self, thread: usize, last: usize) {
        let _ = (thread, last);
    }

    /// `thread` left a barrier: it was there from cycle `from` on until `to`.
    fn left_barrier(&mut self, thread: usize, from: u64, to: u64) {
        let _ = (thread, from, to);
    }

    /// A load or store of `thread` found the cache line with number `line` missing.
    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        let _ = (cycle, thread, line);
    }

    /// That was the load of `register`, numbered as in [`Sink::operand`].
    fn load_missed(&mut self, thread: usize, register: u8, line: u32) {
        let _ = (thread, register, line);
    }

    /// A fetch of `thread` at `pc` found its line missing.
    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        let _ = (cycle, thread, pc);
    }

    /// Core number `core`, one of several, asks for the cache line with number `line`, of `instructions` or of data. `legs` is where its
    /// request will be, one after the other, until the line is back.
    fn line_asked_for(&mut self, core: usize, line: u32, instructions: bool, legs: &[Leg]) {
        let _ = (core, line, instructions, legs);
    }
}

/// Receives nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    const LISTENS: bool = false;
}

/// Two receivers of all events.
#[derive(Debug)]
pub struct Both<'a, A, B>(
    /// Gets each event first.
    pub &'a mut A,
    /// Gets each event second.
    pub &'a mut B,
);

impl<A: Sink, B: Sink> Sink for Both<'_, A, B> {
    const LISTENS: bool = A::LISTENS || B::LISTENS;

    fn issue(&mut self, issue: &Issue) {
        self.0.issue(issue);
        self.1.issue(issue);
    }

    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        self.0.stall(thread, cause, from, to);
        self.1.stall(thread, cause, from, to);
    }

    fn operand(&mut self, thread: usize, register: u8) {
        self.0.operand(thread, register);
        self.1.operand(thread, register);
    }

    fn barrier_opens(&mut self, thread: usize, last: usize) {
        self.0.barrier_opens(thread, last);
        self.1.barrier_opens(thread, last);
    }

    fn left_barrier(&mut self, thread: usize, from: u64, to: u64) {
        self.0.left_barrier(thread, from, to);
        self.1.left_barrier(thread, from, to);
    }

    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        self.0.data_miss(cycle, thread, line);
        self.1.data_miss(cycle, thread, line);
    }

    fn load_missed(&mut self, thread: usize, register: u8, line: u32) {
        self.0.load_missed(thread, register, line);
        self.1.load_missed(thread, register, line);
    }

    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        self.0.instruction_miss(cycle, thread, pc);
        self.1.instruction_miss(cycle, thread, pc);
    }

    fn line_asked_for(&mut self, core: usize, line: u32, instructions: bool, legs: &[Leg]) {
        self.0.line_asked_for(core, line, instructions, legs);
        self.1.line_asked_for(core, line, instructions, legs);
    }
}

/// A function receives the instructions that issue.
impl<F: FnMut(&Issue)> Sink for F {
    fn issue(&mut self, issue: &Issue) {
        self(issue);
    }
}

/// The instruction as text.
pub(super) fn text(word: u32) -> String {
    match npu_mc::decode(word) {
        Ok(inst) => inst.to_string(),
        Err(_) => format!(".word {word:#010x}"),
    }
}
