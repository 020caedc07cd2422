//! The system between several cores and memory: the mesh, the directory with its second-level
//! cache, and the shared memory.
//!
//! The model was made before the mesh could be run; the measurements in
//! `docs/machine/several-cores.md` differ. These facts are read from the hardware description:
//! - the tiles, the mesh and their positions;
//! - data and instruction misses go to the tile of memory, I/O to the tile of the host, barriers to
//!   the tile in their id;
//! - the directory and the second level, their size and the kind of their states;
//! - memory accepts one request at a time and answers after two cycles plus its delay.
//!
//! The mesh ([`mesh`](super::mesh)), the second level ([`second_level`](super::second_level)) and
//! the directory ([`directory`](super::directory)) document their assumptions.
//!
//! The model invents no undocumented numbers. The user configures the cycles of hops, links and the
//! second level, by default 0, 1 and 0. The component that answers (memory, second level, directory
//! or another core) takes two cycles, which is the known number for memory. The model also assumes
//! that the directory and the second level are in the tile of memory, which receives the misses,
//! and accept one request at a time like memory. Instruction lines are not coherent and bypass
//! both.
//!
//! The model simulates a request to its end when its controller starts it. It records the cycles in
//! which the request occupies each resource, so that a request of another core that starts later
//! and arrives earlier is served first. A core sees the loss of a line when it reaches the cycle of
//! the loss ([`Network::news`]).
//!
//! With one core there is no network, and its controller alone determines the timing.

use super::config::TimingConfig;
use super::directory::{Action, Cores, Directory};
use super::memory::{READ_TO_FILL, WRITE_BUSY};
use super::mesh::Mesh;
use super::resource::Resource;
use super::second_level::SecondLevel;
use super::trip::{Leg, Place, Trip};
use crate::machine::CORE_LIMIT;
use npu_mc::machine;

const MEMORY_TILE: u32 = machine::MEMORY_TILE;
const HOST_TILE: u32 = machine::HOST_TILE;
/// Cycles from a request to its answer, without the delay of memory.
const ANSWER: u64 = machine::MEMORY_ANSWER as u64;
/// Cycles from an answer to the arrival of the line in the cache of the core.
const ANSWER_TO_FILL: u64 = READ_TO_FILL - ANSWER;

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
    fn trip(&self) -> Trip {
        let mut trip = Trip::new(self.seen.min(self.start));
        trip.stay(Place::Controller, self.start);
        trip
    }
}

/// The answer to a request for a data line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The cycles in addition to those with one core and the fastest memory.
    pub delay: u64,
    /// Whether the core may store to the line.
    pub owned: bool,
}

/// The loss of a line by a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// The first cycle of the loss.
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

/// The network.
pub(super) struct Network {
    /// Whether the machine has several cores.
    pub shared: bool,
    mesh: Mesh,
    directory: Directory,
    second_level: SecondLevel,
    /// The cycles of a lookup in the second level.
    second_level_delay: u64,
    /// The delay of memory.
    memory_delay: u64,
    directory_turn: Resource,
    memory: Resource,
    /// The tile of each core.
    tiles: Vec<u32>,
    /// The losses that each core has not seen yet.
    losses: [Vec<Loss>; CORE_LIMIT],
    counters: NetworkCounters,
    /// The last read: its line, whether it is an instruction line, and its path.
    read: Option<(u32, bool, Vec<Leg>)>,
}

impl Network {
    pub fn new(config: TimingConfig) -> Network {
        Network {
            shared: false,
            mesh: Mesh::new(config.hop_delay, config.link_cycles),
            directory: Directory::default(),
            second_level: SecondLevel::new(),
            second_level_delay: config.second_level_delay.into(),
            memory_delay: config.memory_delay.into(),
            directory_turn: Resource::default(),
            memory: Resource::default(),
            tiles: Vec::new(),
            losses: Default::default(),
            counters: NetworkCounters::default(),
            read: None,
        }
    }

    /// Adds a core in tile `tile`.
    pub fn add_core(&mut self, tile: u32) {
        self.tiles.push(tile);
    }

    fn tile(&self, core: usize) -> u32 {
        self.tiles.get(core).copied().unwrap_or_default()
    }

    pub fn counters(&self) -> NetworkCounters {
        NetworkCounters {
            messages: self.mesh.messages,
            link_waits: self.mesh.waited,
            ..self.counters
        }
    }

    pub fn reset_counters(&mut self) {
        self.counters = NetworkCounters::default();
        (self.mesh.messages, self.mesh.waited) = (0, 0);
    }

    /// Returns the losses of `core` up to cycle `now`, one per call.
    #[inline]
    pub fn news(&mut self, core: usize, now: u64) -> Option<Loss> {
        let losses = &mut self.losses[core % CORE_LIMIT];
        let place = losses.iter().position(|loss| loss.at <= now)?;
        Some(losses.remove(place))
    }

    /// Returns the last requested line, whether it is an instruction line, and the path of its
    /// request; each request is returned once.
    pub fn take_read(&mut self) -> Option<(u32, bool, Vec<Leg>)> {
        self.read.take()
    }

    /// Requests a data line for a load, or exclusively for a store (`own`).
    pub fn data(&mut self, asks: Asks, line: u32, own: bool) -> Given {
        let Asks { core, now, start, .. } = asks;
        let tile = self.tile(core);
        let mut trip = asks.trip();
        self.mesh.send(tile, MEMORY_TILE, &mut trip, now);
        let (next_at, settled_at) = self.directory.times(line);
        let (action, others) = self.directory.look(core, line, own);
        let from_memory = action == Action::Supply && !self.second_level.look(line);
        // Memory and other cores answer directly.
        let answers = match action {
            Action::Supply if from_memory => 0,
            Action::Forward(_) => 0,
            Action::Supply | Action::Upgrade => ANSWER,
        };
        let busy = (self.second_level_delay + answers).max(1);
        let turn = self.directory_turn.take(trip.at.max(next_at), busy, now);
        trip.stay(Place::Directory, turn);
        trip.spend(Place::SecondLevel, self.second_level_delay);
        let looked = trip.at;
        let mut free_at = turn;
        match action {
            Action::Forward(owner) => {
                self.counters.forwarded += 1;
                let owner_tile = self.tile(owner);
                self.mesh.send(MEMORY_TILE, owner_tile, &mut trip, now);
                trip.stay(Place::OtherCore, settled_at);
                self.lose(owner, line, trip.at, !own, now);
                trip.spend(Place::OtherCore, ANSWER);
                if own {
                    self.counters.invalidations += 1;
                } else {
                    free_at = self.mesh.deliver(owner_tile, MEMORY_TILE, trip.at, now);
                    self.keep(line, true, free_at, now);
                }
                self.mesh.send(owner_tile, tile, &mut trip, now);
            }
            Action::Upgrade => {
                self.counters.upgrades += 1;
                trip.spend(Place::Directory, ANSWER);
                self.mesh.send(MEMORY_TILE, tile, &mut trip, now);
            }
            Action::Supply => {
                if from_memory {
                    self.counters.second_level_misses += 1;
                    self.read_memory(&mut trip, now);
                    self.keep(line, false, trip.at, now);
                    free_at = trip.at;
                } else {
                    self.counters.second_level_hits += 1;
                    trip.spend(Place::SecondLevel, ANSWER);
                }
                self.mesh.send(MEMORY_TILE, tile, &mut trip, now);
            }
        }
        let told = self.take_away(others, line, tile, looked, settled_at, now);
        trip.stay(Place::OtherCore, told);
        let settled = trip.at + ANSWER_TO_FILL + 1;
        let owned = self.directory.grant(core, line, own, free_at, settled);
        let delay = (trip.at - start).saturating_sub(ANSWER);
        self.read = Some((line, false, trip.legs));
        Given { delay, owned }
    }

    /// Requests an instruction line. Returns the cycles in addition to those with one core and the
    /// fastest memory.
    pub fn instructions(&mut self, asks: Asks, line: u32) -> u64 {
        let tile = self.tile(asks.core);
        let mut trip = asks.trip();
        self.mesh.send(tile, MEMORY_TILE, &mut trip, asks.now);
        self.read_memory(&mut trip, asks.now);
        self.mesh.send(MEMORY_TILE, tile, &mut trip, asks.now);
        self.read = Some((line, true, trip.legs));
        (trip.at - asks.start).saturating_sub(ANSWER)
    }

    /// Returns an evicted line of a data cache to the second level. The result is the number of
    /// cycles until the core receives the acknowledgment.
    pub fn give_back(&mut self, asks: Asks, line: u32) -> u64 {
        let Asks { core, now, start, .. } = asks;
        let tile = self.tile(core);
        let there = self.mesh.deliver(tile, MEMORY_TILE, start, now);
        let busy = self.second_level_delay + ANSWER;
        let done = self.directory_turn.take(there, busy, now) + busy;
        if self.directory.give_back(core, line, now) {
            self.keep(line, true, done, now);
        }
        self.mesh.deliver(MEMORY_TILE, tile, done, now) - start
    }

    /// Writes the changes of a core in a line to memory; the core keeps the line. The result is the
    /// number of cycles until the core receives the acknowledgment.
    pub fn flush(&mut self, asks: Asks, line: u32) -> u64 {
        let Asks { core, now, start, .. } = asks;
        let tile = self.tile(core);
        let there = self.mesh.deliver(tile, MEMORY_TILE, start, now);
        let busy = self.second_level_delay.max(1);
        let turn = self.directory_turn.take(there, busy, now);
        self.second_level.clean(line);
        let done = self.write_memory(turn + self.second_level_delay, now);
        self.mesh.deliver(MEMORY_TILE, tile, done, now) - start
    }

    /// Performs an access to I/O space. Returns the cycles on the network.
    pub fn io(&mut self, asks: Asks) -> u64 {
        let tile = self.tile(asks.core);
        let there = self.mesh.deliver(tile, HOST_TILE, asks.start, asks.now);
        self.mesh.deliver(HOST_TILE, tile, there, asks.now) - asks.start
    }

    /// Returns the cycle in which a message that `core` sends in cycle `now` reaches `tile`.
    pub fn arrival(&mut self, core: usize, tile: u32, now: u64) -> u64 {
        let from = self.tile(core);
        self.mesh.deliver(from, tile, now, now)
    }

    /// Returns the cycle in which a message that `tile` sends in cycle `at` reaches `core`; the
    /// current cycle is `now`.
    pub fn reaches(&mut self, tile: u32, core: usize, at: u64, now: u64) -> u64 {
        let to = self.tile(core);
        self.mesh.deliver(tile, to, at, now)
    }

    /// Invalidates a line in `cores`, beginning in cycle `from`; returns the cycle in which tile
    /// `to` has received all acknowledgments.
    fn take_away(&mut self, cores: Cores, line: u32, to: u32, from: u64, settled_at: u64, now: u64) -> u64 {
        let mut told = 0;
        let mut left = cores;
        while left != 0 {
            let core = left.trailing_zeros() as usize;
            left &= left - 1;
            self.counters.invalidations += 1;
            let tile = self.tile(core);
            let heard = self.mesh.deliver(MEMORY_TILE, tile, from, now).max(settled_at);
            self.lose(core, line, heard, false, now);
            told = told.max(self.mesh.deliver(tile, to, heard + ANSWER, now));
        }
        told
    }

    /// Records that `core` loses a line, or only its write permission, in cycle `at`. The core has
    /// not reached that cycle: no core is past cycle `now`.
    fn lose(&mut self, core: usize, line: u32, at: u64, shares: bool, now: u64) {
        let at = at.max(now + 1);
        self.losses[core % CORE_LIMIT].push(Loss { at, line, shares });
    }

    /// Inserts a line into the second level in cycle `at`, which may evict another one to memory.
    fn keep(&mut self, line: u32, dirty: bool, at: u64, now: u64) {
        if self.second_level.put(line, dirty) {
            self.write_memory(at, now);
        }
    }

    fn read_memory(&mut self, trip: &mut Trip, now: u64) {
        self.counters.memory_reads += 1;
        let busy = ANSWER + self.memory_delay;
        let turn = self.memory.take(trip.at, busy, now);
        trip.stay(Place::MemoryTurn, turn);
        trip.spend(Place::Memory, busy);
    }

    /// Writes to memory from cycle `at` on; returns the cycle of completion.
    fn write_memory(&mut self, at: u64, now: u64) -> u64 {
        self.counters.memory_writes += 1;
        let busy = WRITE_BUSY + self.memory_delay;
        self.memory.take(at, busy, now) + busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates cores in tiles 0 (6 hops to memory), 14 (1 hop) and 5 (4 hops); a hop takes 10
    /// cycles and memory 2 plus 20.
    fn network() -> Network {
        network_with(0)
    }

    /// Creates the same network with a delay of the second level.
    fn network_with(second_level_delay: u32) -> Network {
        let mut network = Network::new(TimingConfig {
            memory_delay: 20,
            hop_delay: 10,
            second_level_delay,
            ..TimingConfig::default()
        });
        network.shared = true;
        [0, 14, 5].into_iter().for_each(|tile| network.add_core(tile));
        network
    }

    fn asks(core: usize, start: u64) -> Asks {
        Asks {
            core,
            seen: start,
            now: start,
            start,
        }
    }

    fn legs(network: &mut Network) -> Vec<(Place, u64)> {
        let (_, _, legs) = network.take_read().expect("something was read");
        legs.iter().map(|leg| (leg.place, leg.to - leg.from)).collect()
    }

    #[test]
    fn a_line_comes_from_memory_and_then_from_the_second_level() {
        let mut network = network_with(5);
        // 60 to memory, 5 for the lookup, 22 in memory, 60 back; with one core and the fastest
        // memory the total is 2.
        let given = network.data(asks(0, 1000), 7, false);
        let expected = 60 + 5 + 22 + 60 - 2;
        assert_eq!((given.delay, given.owned), (expected, false));
        let way = [
            (Place::Network, 60),
            (Place::SecondLevel, 5),
            (Place::Memory, 22),
            (Place::Network, 60),
        ];
        assert_eq!(legs(&mut network), way);
        // 10 to memory, 5 for the lookup, 2 for the answer, 10 back.
        let given = network.data(asks(1, 2000), 7, false);
        assert_eq!(given.delay, 10 + 5 + 10);
        assert_eq!(
            legs(&mut network),
            [(Place::Network, 10), (Place::SecondLevel, 7), (Place::Network, 10)]
        );
        let counters = network.counters();
        assert_eq!((counters.second_level_hits, counters.second_level_misses), (1, 1));
        assert_eq!((counters.memory_reads, counters.messages), (1, 4));
        // An instruction line bypasses the second level.
        assert_eq!(network.instructions(asks(1, 3000), 7), 10 + 20 + 10);
        assert_eq!(network.counters().memory_reads, 2);
    }

    #[test]
    fn who_asks_for_a_line_that_is_on_its_way_waits_at_the_directory() {
        let mut network = network();
        network.data(asks(0, 1000), 7, false);
        // The request arrives at 1030; the line is at the directory at 1000 + 60 + 22.
        let given = network.data(asks(1, 1020), 7, false);
        let expected = [
            (Place::Network, 10),
            (Place::Directory, 52),
            (Place::SecondLevel, 2),
            (Place::Network, 10),
        ];
        assert_eq!(legs(&mut network), expected);
        assert_eq!(given.delay, 10 + 52 + 10);
        // A request for another line waits for memory, which is free from then on.
        network.data(asks(2, 1021), 8, false);
        let expected = [
            (Place::Network, 40),
            (Place::MemoryTurn, 21),
            (Place::Memory, 22),
            (Place::Network, 40),
        ];
        assert_eq!(legs(&mut network), expected);
    }

    #[test]
    fn who_stores_waits_until_the_others_have_given_the_line_up() {
        let mut network = network();
        for core in [0, 1] {
            network.data(asks(core, 1000 * (1 + core as u64)), 7, false);
        }
        // Core 1 shares the line: 10 to memory, 2 for the answer, 10 back. Core 0 receives the
        // invalidation after 60 (from tile 15 six hops), takes 2 to answer, and its answer takes
        // five hops to tile 14.
        let given = network.data(asks(1, 3000), 7, true);
        assert_eq!((given.delay, given.owned), (10 + 60 + 2 + 50 - 2, true));
        let expected = [
            (Place::Network, 10),
            (Place::Directory, 2),
            (Place::Network, 10),
            (Place::OtherCore, 100),
        ];
        assert_eq!(legs(&mut network), expected);
        assert_eq!(network.news(0, 3069), None);
        let loss = Loss {
            at: 3070,
            line: 7,
            shares: false,
        };
        assert_eq!(network.news(0, 3070), Some(loss));
        assert_eq!(network.news(0, 9999), None);
        assert_eq!((network.counters().upgrades, network.counters().invalidations), (1, 1));
        // Core 2 reads the line: 40 to memory, one hop to core 1, 2 for the answer, from tile 14 to
        // tile 5 three hops.
        let given = network.data(asks(2, 4000), 7, false);
        assert_eq!((given.delay, given.owned), (40 + 10 + 30, false));
        let expected = [(Place::Network, 50), (Place::OtherCore, 2), (Place::Network, 30)];
        assert_eq!(legs(&mut network), expected);
        let loss = Loss {
            at: 4050,
            line: 7,
            shares: true,
        };
        assert_eq!(network.news(1, 4050), Some(loss));
        assert_eq!(network.counters().forwarded, 1);
        // In the meantime the line has also reached the second level.
        assert_eq!(network.data(asks(0, 5000), 7, false).delay, 120);
    }

    #[test]
    fn a_request_has_its_turn_at_its_controller_first() {
        let mut network = network();
        let late = Asks {
            seen: 990,
            ..asks(1, 1000)
        };
        assert_eq!(network.instructions(late, 7), 40);
        let expected = [
            (Place::Controller, 10),
            (Place::Network, 10),
            (Place::Memory, 22),
            (Place::Network, 10),
        ];
        assert_eq!(legs(&mut network), expected);
    }

    #[test]
    fn a_core_gives_up_a_line_when_it_has_come() {
        let mut network = network();
        // Core 0 requests the line in cycle 1000, has its answer in 1142 and the line 4 cycles
        // later.
        assert_eq!(network.data(asks(0, 1000), 7, true).delay, 140);
        // The request of core 1 is at the directory in 1071, where the line is since 1082. It is at
        // core 0 in 1142, which has the line only in 1147.
        let given = network.data(asks(1, 1061), 7, true);
        let answered = 1147 + 2 + 50;
        assert_eq!(given.delay, answered - 1061 - 2);
        assert_eq!(network.news(0, 1147).map(|loss| loss.at), Some(1147));
    }

    #[test]
    fn lines_that_leave_go_to_the_second_level_and_flushes_to_memory() {
        let mut network = network();
        network.data(asks(0, 1000), 7, true);
        // 60 to memory, 2 there, 60 back.
        assert_eq!(network.give_back(asks(0, 2000), 7), 122);
        assert_eq!(network.counters().memory_writes, 0);
        assert_eq!(network.data(asks(1, 3000), 7, false).delay, 20);
        // A write occupies memory for 4 cycles plus its delay.
        assert_eq!(network.flush(asks(1, 4000), 7), 10 + 24 + 10);
        assert_eq!(network.counters().memory_writes, 1);
        // The host is in tile 14.
        assert_eq!(network.io(asks(1, 5000)), 0);
        assert_eq!(network.io(asks(0, 5000)), 100);
        assert_eq!(network.arrival(0, 5, 6000), 6020);
        assert_eq!(network.reaches(5, 2, 6000, 6000), 6000);
    }

    #[test]
    fn lines_that_leave_the_second_level_are_written() {
        let mut network = network();
        let line = |k: u32| 3 + k * machine::L2_SETS;
        for k in 0..=machine::L2_WAYS {
            let at = 10_000 * (1 + u64::from(k));
            network.data(asks(0, at), line(k), true);
            network.give_back(asks(0, at + 5000), line(k));
        }
        assert_eq!(network.counters().memory_writes, 1);
        let reads = network.counters().memory_reads;
        assert_eq!(reads, u64::from(machine::L2_WAYS) + 1);
        network.data(asks(0, 1_000_000), line(0), false);
        assert_eq!(network.counters().memory_reads, reads + 1);
    }
}
