//! Requests of cores to the network, and what comes back.

use super::sink::LineSource;
use super::trip::{Leg, Place, Trip};

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asks {
    /// The number of the core.
    pub core: usize,
    /// The cycle in which the controller of the core saw the request.
    pub seen: u64,
    /// The current cycle of the core.
    pub now: u64,
    /// The cycle in which the controller starts the request.
    pub start: u64,
}

impl Asks {
    /// Creates the trip of a request, which begins with its turn at the controller.
    pub fn trip(&self) -> Trip {
        let mut trip = Trip::new(self.seen.min(self.start));
        trip.stay(Place::Controller, self.start);
        trip
    }
}

/// A line on its way to a core.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The number of the core.
    pub core: usize,
    pub line: u32,
    pub source: LineSource,
    /// Whether the request is for a store.
    pub store: bool,
    /// The tile that sends the line.
    pub sender: u32,
    /// The copies of other cores that the request invalidates.
    pub invalidated: u32,
    /// The cycle of the fill.
    pub fill: u64,
    /// Whether the core may store to the line.
    pub owned: bool,
    /// The path of the request and the line.
    pub legs: Vec<Leg>,
}

impl Answer {
    /// Returns whether it is an instruction line.
    pub fn is_code(&self) -> bool {
        self.source == LineSource::Instructions
    }
}

/// A request on its way to its home or to memory.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub core: usize,
    pub line: u32,
    pub kind: Kind,
    pub trip: Trip,
}

/// The position of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request for a data line that reaches its home; exclusive for a store.
    AtHome { own: bool },
    /// A request or a line that reaches memory.
    AtMemory(MemoryAccess),
    /// Memory can perform another access.
    MemoryIsFree,
}

/// An access of the memory tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryAccess {
    /// A read of a data line; exclusive for a store.
    Data { own: bool },
    /// A read of an instruction line.
    Instructions,
    /// A write of a line.
    Write,
}

/// The loss of a line by a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// The first cycle in which the core no longer has the line.
    pub at: u64,
    pub line: u32,
    /// Whether the core keeps a copy for reading.
    pub shares: bool,
}
