//! Where the events of a run can go.

use super::report::Stall;

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
    /// An instruction issued.
    fn issue(&mut self, issue: &Issue) {
        let _ = issue;
    }

    /// `thread` did not issue from cycle `from` on until `to`. Told when it issues next.
    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        let _ = (thread, cause, from, to);
    }

    /// A load or store of `thread` found the cache line with number `line` missing.
    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        let _ = (cycle, thread, line);
    }

    /// A fetch of `thread` at `pc` found its line missing.
    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        let _ = (cycle, thread, pc);
    }
}

/// Receives nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {}

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
