//! Receivers of the events of a run.

use super::report::Stall;
use super::trip::Leg;
use std::fmt;

/// An instruction that issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The cycle.
    pub cycle: u64,
    /// The cycle of its fetch.
    pub fetched: u64,
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The address of the instruction.
    pub pc: u32,
    /// The instruction word.
    pub word: u32,
    /// Cycles from issue until the result can be used, without contention; 0 without a result.
    pub latency: u8,
    /// Whether an older taken branch of the thread prevents its execution.
    pub killed: bool,
}

/// The origin of a line that a core, one of several, requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineSource {
    /// Memory; the line was in no cache.
    Memory,
    /// The second-level cache of its home.
    SecondLevel,
    /// Another core, which had modified it.
    OtherCore,
    /// Its home; the core had a shared copy and stores to the line.
    Upgrade,
    /// Memory, without a home: an instruction line.
    Instructions,
}

/// The number of origins of a line.
pub const LINE_SOURCES: usize = 5;

impl LineSource {
    /// All origins, in the order of their numbers.
    pub const ALL: [LineSource; LINE_SOURCES] = [
        LineSource::Memory,
        LineSource::SecondLevel,
        LineSource::OtherCore,
        LineSource::Upgrade,
        LineSource::Instructions,
    ];

    /// Returns a short name of the origin.
    pub const fn name(self) -> &'static str {
        match self {
            LineSource::Memory => "memory",
            LineSource::SecondLevel => "L2",
            LineSource::OtherCore => "other core",
            LineSource::Upgrade => "upgrade",
            LineSource::Instructions => "code",
        }
    }
}

impl fmt::Display for LineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A request of a core, one of several, for a cache line.
#[derive(Clone, Copy, Debug)]
pub struct LineRequest<'a> {
    /// The number of the core.
    pub core: usize,
    /// The tile of the core.
    pub tile: u32,
    /// The number of the line: its address divided by the line size.
    pub line: u32,
    /// The tile that serves the request: the home of the line, or for an instruction line the memory
    /// tile.
    pub home: u32,
    /// The origin of the line.
    pub source: LineSource,
    /// Whether the request is for a store.
    pub store: bool,
    /// The number of hops of the request, of its forward, and of the line.
    pub hops: u32,
    /// The number of copies in other cores that the request invalidates.
    pub invalidated: u32,
    /// The parts of the path of the request, in order, until the line is back. They may be in the
    /// future.
    pub legs: &'a [Leg],
}

impl LineRequest<'_> {
    /// Returns whether the line is one of instructions.
    pub fn is_code(&self) -> bool {
        self.source == LineSource::Instructions
    }

    /// Returns the cycles from the start of the request until the line is back.
    pub fn cycles(&self) -> u64 {
        let ends = self.legs.first().zip(self.legs.last());
        ends.map_or(0, |(first, last)| last.to.saturating_sub(first.from))
    }
}

/// A receiver of events; every function does nothing by default. Threads are counted over all
/// cores.
pub trait Sink {
    /// Whether the receiver uses events. If not, the model may replay cycles that it has recorded.
    fn listens(&self) -> bool {
        true
    }

    /// Reports that an instruction issued.
    fn issue(&mut self, issue: &Issue) {
        let _ = issue;
    }

    /// Reports that `thread` did not issue from cycle `from` until `to`. The report precedes its
    /// next issue.
    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        let _ = (thread, cause, from, to);
    }

    /// Reports that the next stall of `thread` is for the result in `register`: scalar registers
    /// are 0 to 63, vector registers 64 to 127.
    fn operand(&mut self, thread: usize, register: u8) {
        let _ = (thread, register);
    }

    /// Reports that the barrier of `thread` opens after the last arrival, by thread `last`.
    fn barrier_opens(&mut self, thread: usize, last: usize) {
        let _ = (thread, last);
    }

    /// Reports that `thread` left a barrier, where it was from cycle `from` until `to`.
    fn left_barrier(&mut self, thread: usize, from: u64, to: u64) {
        let _ = (thread, from, to);
    }

    /// Reports that a load or store of `thread` missed the cache line with number `line`.
    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        let _ = (cycle, thread, line);
    }

    /// Reports that this miss belongs to the load of `register`, numbered as in [`Sink::operand`].
    fn load_missed(&mut self, thread: usize, register: u8, line: u32) {
        let _ = (thread, register, line);
    }

    /// Reports that a fetch of `thread` at `pc` missed.
    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        let _ = (cycle, thread, pc);
    }

    /// Reports a request of a core, one of several, for a cache line.
    fn line_requested(&mut self, request: &LineRequest<'_>) {
        let _ = request;
    }
}

/// A receiver that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn listens(&self) -> bool {
        false
    }
}

/// Receivers that each get all events, in this order.
#[derive(Default)]
pub struct Sinks<'a>(pub Vec<&'a mut dyn Sink>);

impl Sink for Sinks<'_> {
    fn listens(&self) -> bool {
        self.0.iter().any(|sink| sink.listens())
    }

    fn issue(&mut self, issue: &Issue) {
        self.0.iter_mut().for_each(|sink| sink.issue(issue));
    }

    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        self.0.iter_mut().for_each(|sink| sink.stall(thread, cause, from, to));
    }

    fn operand(&mut self, thread: usize, register: u8) {
        self.0.iter_mut().for_each(|sink| sink.operand(thread, register));
    }

    fn barrier_opens(&mut self, thread: usize, last: usize) {
        self.0.iter_mut().for_each(|sink| sink.barrier_opens(thread, last));
    }

    fn left_barrier(&mut self, thread: usize, from: u64, to: u64) {
        self.0.iter_mut().for_each(|sink| sink.left_barrier(thread, from, to));
    }

    fn data_miss(&mut self, cycle: u64, thread: usize, line: u32) {
        self.0.iter_mut().for_each(|sink| sink.data_miss(cycle, thread, line));
    }

    fn load_missed(&mut self, thread: usize, register: u8, line: u32) {
        self.0
            .iter_mut()
            .for_each(|sink| sink.load_missed(thread, register, line));
    }

    fn instruction_miss(&mut self, cycle: u64, thread: usize, pc: u32) {
        self.0
            .iter_mut()
            .for_each(|sink| sink.instruction_miss(cycle, thread, pc));
    }

    fn line_requested(&mut self, request: &LineRequest<'_>) {
        self.0.iter_mut().for_each(|sink| sink.line_requested(request));
    }
}

/// Passes the instructions that issue to a function.
impl<F: FnMut(&Issue)> Sink for F {
    fn issue(&mut self, issue: &Issue) {
        self(issue);
    }
}

/// Returns the text of an instruction.
pub(super) fn text(word: u32) -> String {
    match npu_mc::decode(word) {
        Ok(inst) => inst.to_string(),
        Err(_) => format!(".word {word:#010x}"),
    }
}
