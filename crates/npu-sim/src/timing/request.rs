//! Requests of cores to the network, and what comes back.

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
    /// Whether it is an instruction line.
    pub is_code: bool,
    /// The cycle of the fill.
    pub fill: u64,
    /// Whether the core may store to the line.
    pub owned: bool,
    /// The path of the request and the line.
    pub legs: Vec<Leg>,
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
    /// A request for a data line that reaches memory.
    AtMemory { own: bool },
    /// A request for an instruction line that reaches memory.
    Instructions,
    /// A line that reaches memory and is written.
    Write,
    /// Memory can perform another access.
    MemoryIsFree,
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

/// Counters of the activities of cores and memory over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Requested data lines that were in the second-level cache.
    pub second_level_hits: u64,
    /// Requested data lines that came from memory.
    pub second_level_misses: u64,
    /// Requested data lines that came from another core, which had modified them.
    pub forwarded: u64,
    /// Requests of a core for write permission to a line that it shared.
    pub upgrades: u64,
    /// Copies that cores lost because of a store of another core.
    pub invalidations: u64,
    /// Lines read from memory, including instruction lines.
    pub memory_reads: u64,
    /// Lines written to memory.
    pub memory_writes: u64,
    /// Messages between tiles.
    pub messages: u64,
    /// Cycles that messages waited for links.
    pub link_waits: u64,
}
