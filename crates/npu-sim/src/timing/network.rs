//! The system between several cores and memory: the mesh, a directory with its second-level cache
//! in each tile, the memory tile and the host tile (`docs/machine/several-cores.md`).
//!
//! The home tile of a line is determined by the upper bits of its address. A miss is a request to
//! the home tile, a forward to memory or to the core that has modified the line, and a response.
//! The model performs a request when it reaches its home and when it reaches memory, in the order
//! of these cycles ([`Network::step`]). From there it computes the path of the line to the core,
//! and records the cycles in which messages occupy each resource. A core sees the loss of a line
//! when it reaches the cycle of the loss ([`Network::news`]).
//!
//! With one core there is no network, and its controller alone determines the timing.

use super::config::TimingConfig;
use super::directory::{Action, Cores, Directory};
use super::memory_tile::MemoryTile;
use super::mesh::{LinkUse, MESSAGE, Mesh, Message, NETS, Net};
use super::report::NetworkCounters;
use super::request::{Answer, Asks, Kind, Loss, MemoryAccess, Request};
use super::resource::Resource;
use super::second_level::SecondLevel;
use super::sink::{LineRequest, LineSource};
use super::trip::{Place, Trip};
use crate::topology::{CORE_LIMIT, Topology};
use npu_mc::machine;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

// The flits of messages.
const SHORT: u32 = 1;
const WITH_LINE: u32 = machine::LINE_FLITS;
const WITH_EVICTED_LINE: u32 = machine::EVICTED_LINE_FLITS;

// Cycles.
/// Cycles for which a sender is occupied in addition to the flits of a message, before it sends a
/// copy to the next destination, and after the last one.
const NEXT_DESTINATION: u64 = machine::NEXT_DESTINATION as u64;
pub(super) const LAST_DESTINATION: u64 = machine::LAST_DESTINATION as u64;
pub(super) const REQUEST_TO_MESSAGE: u64 = machine::REQUEST_TO_MESSAGE as u64;
const MESSAGE_TO_FILL: u64 = machine::MESSAGE_TO_FILL as u64;
const ACK_TO_FILL: u64 = machine::ACK_TO_FILL as u64;
const FORWARD_TO_ANSWER: u64 = machine::FORWARD_TO_ANSWER as u64;
const NEXT_MESSAGE: u64 = machine::NEXT_MESSAGE_OF_SET as u64;
const DIRECTORY_ANSWER: u64 = machine::DIRECTORY_ANSWER as u64;
const DIRECTORY_BUSY: u64 = machine::DIRECTORY_BUSY as u64;
const MEMORY_ANSWER: u64 = machine::MEMORY_ANSWER as u64;
const NEXT_START: u64 = machine::CORE_START as u64;
const WRITE_TO_ACK: u64 = machine::MEMORY_ACKNOWLEDGMENT as u64;
/// Cycles from the start of an instruction miss to its message.
const LINE_TO_MESSAGE: u64 = machine::LINE_REQUEST_TO_MESSAGE as u64;
/// Cycles from the arrival of an instruction line to its fill.
const LINE_MESSAGE_TO_FILL: u64 = machine::LINE_MESSAGE_TO_FILL as u64;
/// More hops than any request has, for what follows all requests that arrive in one cycle.
const LAST: u64 = u64::MAX;

/// The unit of a tile that sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Core,
    Directory,
    /// Memory, the host, or a sync master.
    Service,
}

/// The number of units of a tile.
const UNITS: usize = 3;

/// The network.
pub(super) struct Network {
    /// Whether the machine has several cores.
    pub shared: bool,
    mesh: Mesh,
    directory: Directory,
    /// The second-level cache of each tile.
    second_levels: Vec<SecondLevel>,
    /// Cycles of a lookup in the second level, in addition to those of the hardware.
    second_level_delay: u64,
    /// The turns of the directory of each tile.
    turns: Vec<Resource>,
    /// The senders of each tile, by unit and virtual network.
    senders: Vec<[[Resource; NETS]; UNITS]>,
    /// The messages that the core of each tile sends on the response network: the cycle in which they
    /// reach its network interface, and the cycle in which they have left it.
    responses: Vec<Vec<(u64, u64)>>,
    memory: MemoryTile,
    /// The tile of each core.
    tiles: Vec<u32>,
    /// The cycles in which each core takes messages of a set of its data cache.
    messages: [FxHashMap<u32, Resource>; CORE_LIMIT],
    /// The losses that each core has not seen yet.
    losses: [Vec<Loss>; CORE_LIMIT],
    /// The requests by the cycle in which they arrive, the hops behind them, and their number. Of two
    /// requests that arrive in one cycle, a router prefers the one from the nearer tile.
    requests: BTreeMap<(u64, u64, u64), Request>,
    /// The number of requests so far.
    requested: u64,
    /// The data lines that memory has not answered yet, and the requests that wait for them.
    awaited: FxHashMap<u32, Vec<Request>>,
    counters: NetworkCounters,
}

impl Network {
    pub fn new(config: TimingConfig) -> Network {
        Network {
            shared: false,
            mesh: Mesh::new(config.hop_delay, config.link_cycles),
            directory: Directory::default(),
            second_levels: vec![SecondLevel::new(); CORE_LIMIT],
            second_level_delay: config.second_level_delay.into(),
            turns: vec![Resource::default(); CORE_LIMIT],
            senders: vec![Default::default(); CORE_LIMIT],
            responses: vec![Vec::new(); CORE_LIMIT],
            memory: MemoryTile::new(config.memory_delay),
            tiles: Vec::new(),
            messages: Default::default(),
            losses: Default::default(),
            requests: BTreeMap::new(),
            requested: 0,
            awaited: FxHashMap::default(),
            counters: NetworkCounters::default(),
        }
    }

    /// Sets the places of the mesh, before the first core is added.
    pub fn set_topology(&mut self, topology: Topology) {
        self.mesh.topology = topology;
    }

    /// Returns the places of the mesh.
    pub fn topology(&self) -> &Topology {
        &self.mesh.topology
    }

    /// Returns the home tile of a line.
    fn home(&self, line: u32) -> u32 {
        self.topology().home(line * machine::CACHE_LINE)
    }

    /// Adds a core in tile `tile`; returns the cycle in which the host starts it. The host starts one
    /// core after the other.
    pub fn add_core(&mut self, tile: u32) -> u64 {
        let number = self.tiles.len() as u64;
        self.tiles.push(tile);
        number * NEXT_START + self.mesh.hops(self.topology().host_tile(), tile)
    }

    pub fn tile(&self, core: usize) -> u32 {
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
        self.mesh.reset_counters();
    }

    /// Returns the links that messages have used.
    pub fn links(&self) -> Vec<LinkUse> {
        self.mesh.links()
    }

    /// Returns the request of an answer, for receivers of events.
    pub fn request_of<'a>(&self, answer: &'a Answer) -> LineRequest<'a> {
        let tile = self.tile(answer.core);
        let mesh = self.topology();
        let home = if answer.is_code() {
            mesh.memory_tile()
        } else {
            self.home(answer.line)
        };
        let hops = mesh.hops(tile, home) + mesh.hops(home, answer.sender) + mesh.hops(answer.sender, tile);
        LineRequest {
            core: answer.core,
            tile,
            line: answer.line,
            home,
            source: answer.source,
            store: answer.store,
            hops,
            invalidated: answer.invalidated,
            legs: &answer.legs,
        }
    }

    /// Returns the losses of `core` up to cycle `now`, one per call.
    #[inline]
    pub fn news(&mut self, core: usize, now: u64) -> Option<Loss> {
        let losses = &mut self.losses[core % CORE_LIMIT];
        let place = losses.iter().position(|loss| loss.at <= now)?;
        Some(losses.remove(place))
    }

    /// Returns the number of messages of the response network that wait in the network interface of
    /// `core` in cycle `now`.
    pub fn responses_of(&self, core: usize, now: u64) -> usize {
        let responses = &self.responses[self.tile(core) as usize % CORE_LIMIT];
        let waits = |&&(queued, left): &&(u64, u64)| queued < now && now <= left;
        responses.iter().filter(waits).count()
    }

    /// Sends a message to one destination, or to the last of several, when its sender is free.
    pub fn send(&mut self, unit: Unit, message: Message, trip: &mut Trip, past: u64) {
        self.send_to(unit, message, LAST_DESTINATION, trip, past);
    }

    /// Sends a message. The same sender sends another copy of it next.
    pub fn send_copy(&mut self, unit: Unit, message: Message, trip: &mut Trip, past: u64) {
        self.send_to(unit, message, NEXT_DESTINATION, trip, past);
    }

    fn send_to(&mut self, unit: Unit, message: Message, after: u64, trip: &mut Trip, past: u64) {
        let tile = message.from as usize % CORE_LIMIT;
        let sender = &mut self.senders[tile][unit as usize][message.net as usize];
        let (queued, length) = (trip.at, u64::from(message.flits) + after);
        let taken = sender.take(queued, length, past);
        trip.stay(Place::Link, taken);
        let waited = self.mesh.send(message, trip, past);
        if unit == Unit::Core && message.net == Net::Response {
            // A message that waits for a link stays in the network interface.
            let responses = &mut self.responses[tile];
            responses.retain(|&(_, left)| left >= past);
            responses.push((queued, taken + length + waited));
        }
    }

    /// Returns the cycle in which `core` takes a message about a line that arrives in cycle `at`.
    fn take(&mut self, core: usize, line: u32, at: u64, now: u64) -> u64 {
        let set = self.messages[core % CORE_LIMIT].entry(line % machine::DCACHE_SETS);
        set.or_default().take(at, NEXT_MESSAGE, now)
    }

    /// Takes a line that reaches `core` in cycle `at`, and the acknowledgments that it waits for.
    /// Returns the cycle of the last message, and the cycles from it to the fill.
    ///
    /// The acknowledgments follow the line and delay it by a cycle each.
    fn take_all(&mut self, core: usize, line: u32, at: u64, acks: &[u64], now: u64) -> (u64, u64) {
        let mut taken = self.take(core, line, at + acks.len() as u64, now);
        let mut to_fill = MESSAGE_TO_FILL;
        for &ack in acks {
            taken = self.take(core, line, ack.max(taken), now);
            to_fill = ACK_TO_FILL;
        }
        (taken, to_fill)
    }

    /// Requests a data line for a load, or exclusively for a store (`own`).
    pub fn data(&mut self, asks: Asks, line: u32, own: bool) {
        let kind = Kind::AtHome { own };
        self.request(asks, line, kind, REQUEST_TO_MESSAGE, Net::Request, self.home(line));
    }

    /// Requests an instruction line.
    pub fn instructions(&mut self, asks: Asks, line: u32) {
        let kind = Kind::AtMemory(MemoryAccess::Instructions);
        self.request(
            asks,
            line,
            kind,
            LINE_TO_MESSAGE,
            Net::Forward,
            self.topology().memory_tile(),
        );
    }

    /// Sends a request to a tile, `to_message` cycles after its start.
    fn request(&mut self, asks: Asks, line: u32, kind: Kind, to_message: u64, net: Net, to: u32) {
        let mut trip = asks.trip();
        trip.spend(Place::Controller, to_message);
        let message = Message {
            from: self.tile(asks.core),
            to,
            net,
            flits: SHORT,
        };
        self.send(Unit::Core, message, &mut trip, asks.now);
        let request = Request {
            core: asks.core,
            line,
            kind,
            trip,
        };
        self.queue(request, self.mesh.hops(message.from, to));
    }

    /// Puts a request that has come over some cycles of hops into the queue.
    fn queue(&mut self, request: Request, hops: u64) {
        self.requested += 1;
        self.requests.insert((request.trip.at, hops, self.requested), request);
    }

    /// Returns the cycle in which the next request arrives.
    #[inline]
    pub fn next_arrival(&self) -> u64 {
        self.requests.first_key_value().map_or(u64::MAX, |(key, _)| key.0)
    }

    /// Performs the next request, if it arrives up to cycle `until`, which no core has passed. The
    /// result is the line that goes to the core, if the request was the last step.
    pub fn step(&mut self, until: u64) -> Option<Answer> {
        if self.next_arrival() > until {
            return None;
        }
        let ((now, ..), request) = self.requests.pop_first()?;
        match request.kind {
            Kind::AtHome { .. } if self.awaited.contains_key(&request.line) => {
                self.awaited.entry(request.line).or_default().push(request);
                None
            }
            Kind::AtHome { own } => self.at_home(request, own, now),
            Kind::AtMemory(access) => {
                self.memory.add(access, request);
                self.use_memory(now)
            }
            Kind::MemoryIsFree => self.use_memory(now),
        }
    }

    /// Performs a request for a data line at its home.
    fn at_home(&mut self, request: Request, own: bool, now: u64) -> Option<Answer> {
        let Request {
            core, line, mut trip, ..
        } = request;
        let (tile, home) = (self.tile(core), self.home(line));
        let (next_at, settled_at) = self.directory.times(line);
        let (action, sharers) = self.directory.look(core, line, own);
        let turn = self.turns[home as usize % CORE_LIMIT].take(trip.at.max(next_at), DIRECTORY_BUSY, now);
        trip.stay(Place::Directory, turn);
        trip.spend(Place::SecondLevel, DIRECTORY_ANSWER + self.second_level_delay);
        let answered = trip.at;
        let mut free_at = turn;
        let mut response = Message {
            from: home,
            to: tile,
            net: Net::Response,
            flits: WITH_LINE,
        };
        let source = match action {
            Action::Forward(owner) => {
                self.counters.forwarded += 1;
                self.counters.invalidations += u64::from(own);
                let owner_tile = self.tile(owner);
                self.forward(home, owner_tile, &mut trip, now);
                let taken = self.take(owner, line, trip.at.max(settled_at), now);
                trip.stay(Place::OtherCore, taken);
                trip.spend(Place::OtherCore, FORWARD_TO_ANSWER);
                self.lose(owner, line, trip.at, !own, now);
                response.from = owner_tile;
                if own {
                    self.keep(line, false, answered, now);
                } else {
                    self.second_level(line).note(line, false, answered);
                    free_at = self.copy_home(Unit::Core, home, response, trip.at, now);
                    self.keep(line, true, free_at, now);
                }
                self.send(Unit::Core, response, &mut trip, now);
                LineSource::OtherCore
            }
            Action::Supply if !self.second_level(line).has_bytes(line, turn) => {
                self.counters.second_level_misses += 1;
                if own {
                    self.keep(line, false, answered, now);
                } else {
                    self.second_level(line).note(line, false, answered);
                }
                self.forward(home, self.topology().memory_tile(), &mut trip, now);
                self.awaited.entry(line).or_default();
                let request = Request {
                    kind: Kind::AtMemory(MemoryAccess::Data { own }),
                    trip,
                    ..request
                };
                self.queue(request, self.mesh.hops(home, self.topology().memory_tile()));
                return None;
            }
            Action::Supply | Action::Upgrade => {
                let (count, source) = if action == Action::Upgrade {
                    (&mut self.counters.upgrades, LineSource::Upgrade)
                } else {
                    (&mut self.counters.second_level_hits, LineSource::SecondLevel)
                };
                *count += 1;
                self.keep(line, !own, answered, now);
                self.send(Unit::Directory, response, &mut trip, now);
                source
            }
        };
        let others = sharers & !(1 << core);
        let taken_from_owner = own && source == LineSource::OtherCore;
        let acks = self.invalidate(sharers, line, tile, answered, settled_at, now);
        let (taken, to_fill) = self.take_all(core, line, trip.at, &acks, now);
        trip.stay(Place::OtherCore, taken);
        let owned = self.directory.grant(core, line, own, free_at, taken + NEXT_MESSAGE);
        Some(Answer {
            core,
            line,
            source,
            store: own,
            sender: response.from,
            invalidated: others.count_ones() + u32::from(taken_from_owner),
            fill: taken + to_fill,
            owned,
            legs: trip.legs,
        })
    }

    /// Performs the next access of the memory tile, if it is free. The result is the line that goes
    /// to a core.
    fn use_memory(&mut self, now: u64) -> Option<Answer> {
        let next = self.memory.next(now);
        if let Some(at) = self.memory.wake_at() {
            let (kind, trip) = (Kind::MemoryIsFree, Trip::new(at));
            let (core, line) = (0, 0);
            self.queue(Request { core, line, kind, trip }, LAST);
        }
        let (access, request) = next?;
        match access {
            MemoryAccess::Data { own } => Some(self.at_memory(request, own, now)),
            MemoryAccess::Instructions => Some(self.instructions_at_memory(request, now)),
            MemoryAccess::Write => {
                self.write_memory(&request, now);
                None
            }
        }
    }

    /// Performs a request for a data line at memory. A line for a load is sent to its home first.
    fn at_memory(&mut self, request: Request, own: bool, now: u64) -> Answer {
        let Request {
            core, line, mut trip, ..
        } = request;
        let home = self.home(line);
        let mut free_at = trip.at;
        self.read_memory(&mut trip, now);
        let response = Message {
            from: self.topology().memory_tile(),
            to: self.tile(core),
            net: Net::Response,
            flits: WITH_LINE,
        };
        if !own {
            free_at = self.copy_home(Unit::Service, home, response, trip.at, now);
        }
        self.send(Unit::Service, response, &mut trip, now);
        let taken = self.take(core, line, trip.at, now);
        trip.stay(Place::Controller, taken);
        if !own {
            self.keep(line, true, free_at, now);
        }
        let owned = self.directory.grant(core, line, own, free_at, taken + NEXT_MESSAGE);
        // They have waited at the home, in the order of their arrival.
        for mut waiting in self.awaited.remove(&line).unwrap_or_default() {
            waiting.trip.stay(Place::Directory, now);
            self.queue(waiting, 0);
        }
        Answer {
            core,
            line,
            source: LineSource::Memory,
            store: own,
            sender: self.topology().memory_tile(),
            invalidated: 0,
            fill: taken + MESSAGE_TO_FILL,
            owned,
            legs: trip.legs,
        }
    }

    fn instructions_at_memory(&mut self, request: Request, now: u64) -> Answer {
        let Request {
            core, line, mut trip, ..
        } = request;
        self.read_memory(&mut trip, now);
        let response = Message {
            from: self.topology().memory_tile(),
            to: self.tile(core),
            net: Net::Response,
            flits: WITH_LINE,
        };
        self.send(Unit::Service, response, &mut trip, now);
        Answer {
            core,
            line,
            source: LineSource::Instructions,
            store: false,
            sender: self.topology().memory_tile(),
            invalidated: 0,
            fill: trip.at + LINE_MESSAGE_TO_FILL,
            owned: false,
            legs: trip.legs,
        }
    }

    /// Sends a request of a directory to a tile.
    fn forward(&mut self, home: u32, to: u32, trip: &mut Trip, now: u64) {
        let message = Message {
            from: home,
            to,
            net: Net::Forward,
            flits: SHORT,
        };
        self.send(Unit::Directory, message, trip, now);
    }

    /// Sends a copy of a response to the directory first; returns the cycle of its arrival.
    fn copy_home(&mut self, unit: Unit, home: u32, response: Message, at: u64, now: u64) -> u64 {
        let mut copy = Trip::new(at);
        self.send_copy(unit, Message { to: home, ..response }, &mut copy, now);
        copy.at
    }

    /// Returns an evicted line of a data cache, which the core has modified or not, to its home. The
    /// result is the cycle in which the core has the acknowledgment.
    pub fn give_back(&mut self, asks: Asks, line: u32, modified: bool) -> u64 {
        let Asks { core, now, start, .. } = asks;
        let (tile, home) = (self.tile(core), self.home(line));
        let mut trip = Trip::new(start + REQUEST_TO_MESSAGE);
        let request = Message {
            from: tile,
            to: home,
            net: Net::Request,
            flits: if modified { WITH_EVICTED_LINE } else { SHORT },
        };
        self.send(Unit::Core, request, &mut trip, now);
        let (next_at, _) = self.directory.times(line);
        let turn = self.turns[home as usize % CORE_LIMIT].take(trip.at.max(next_at), DIRECTORY_BUSY, now);
        let mut trip = Trip::new(turn + DIRECTORY_ANSWER + self.second_level_delay);
        let has_bytes = self.directory.give_back(core, line, now);
        self.second_level(line).note(line, has_bytes, trip.at);
        if modified && !has_bytes {
            // The line has left the second level meanwhile: its home writes it to memory.
            let mut write = Trip::new(trip.at + u64::from(SHORT));
            self.second_level(line).note(line, false, write.at);
            let message = Message {
                from: home,
                to: self.topology().memory_tile(),
                net: Net::Response,
                flits: WITH_LINE,
            };
            self.send(Unit::Directory, message, &mut write, now);
            self.queue_write(core, line, write);
        }
        self.forward(home, tile, &mut trip, now);
        trip.at
    }

    /// Writes a line of a core to memory; the core keeps the line and does not wait.
    pub fn flush(&mut self, asks: Asks, line: u32) {
        let mut trip = Trip::new(asks.start + REQUEST_TO_MESSAGE);
        let message = Message {
            from: self.tile(asks.core),
            to: self.topology().memory_tile(),
            net: Net::Response,
            flits: WITH_LINE,
        };
        self.send(Unit::Core, message, &mut trip, asks.now);
        self.queue_write(asks.core, line, trip);
    }

    /// Invalidates a line in `cores`, beginning in cycle `from`; returns the cycles in which their
    /// acknowledgments reach tile `to`, in order.
    fn invalidate(
        &mut self,
        cores: Cores,
        line: u32,
        to: u32,
        from: u64,
        settled_at: u64,
        now: u64,
    ) -> SmallVec<[u64; 8]> {
        let mut acks = SmallVec::new();
        let home = self.home(line);
        let mut left = cores;
        while left != 0 {
            let core = left.trailing_zeros() as usize;
            left &= left - 1;
            self.counters.invalidations += 1;
            let tile = self.tile(core);
            let mut trip = Trip::new(from);
            let message = Message {
                from: home,
                to: tile,
                net: Net::Forward,
                flits: SHORT,
            };
            self.send_copy(Unit::Directory, message, &mut trip, now);
            let taken = self.take(core, line, trip.at.max(settled_at), now);
            let mut trip = Trip::new(taken + FORWARD_TO_ANSWER);
            self.lose(core, line, trip.at, false, now);
            let ack = Message {
                from: tile,
                to,
                net: Net::Response,
                flits: SHORT,
            };
            self.send(Unit::Core, ack, &mut trip, now);
            acks.push(trip.at);
        }
        acks.sort_unstable();
        acks
    }

    /// Records that `core` loses a line, or only its write permission, in cycle `at`. The core has
    /// not reached that cycle: no core is past cycle `now`.
    fn lose(&mut self, core: usize, line: u32, at: u64, shares: bool, now: u64) {
        // A lookup in the cycle of the core's answer still hits.
        let at = (at + 1).max(now + 1);
        self.losses[core % CORE_LIMIT].push(Loss { at, line, shares });
    }

    fn second_level(&mut self, line: u32) -> &mut SecondLevel {
        let home = self.home(line);
        &mut self.second_levels[home as usize % CORE_LIMIT]
    }

    /// Records a line in the second level of its home in cycle `at`, with its bytes unless a core
    /// modifies it. This may evict another line.
    fn keep(&mut self, line: u32, has_bytes: bool, at: u64, now: u64) {
        if let Some(evicted) = self.second_level(line).put(line, has_bytes, at) {
            self.replace(evicted, at + DIRECTORY_BUSY, now);
        }
    }

    /// Writes a line that leaves the second level to memory in cycle `at`. Its copies in cores are
    /// invalidated; a core that has modified it writes it.
    fn replace(&mut self, line: u32, at: u64, now: u64) {
        let home = self.home(line);
        let turn = self.turns[home as usize % CORE_LIMIT].take(at, DIRECTORY_BUSY, now);
        let mut message = Message {
            from: home,
            to: self.topology().memory_tile(),
            net: Net::Response,
            flits: WITH_LINE,
        };
        let mut trip = Trip::new(turn);
        let (owner, sharers) = self.directory.evict(line);
        let copies = owner.map_or(sharers, |owner| 1 << owner);
        let mut left = copies;
        while left != 0 {
            let core = left.trailing_zeros() as usize;
            left &= left - 1;
            self.counters.invalidations += 1;
            let tile = self.tile(core);
            let mut forward = Trip::new(turn);
            self.forward(home, tile, &mut forward, now);
            let taken = self.take(core, line, forward.at, now);
            self.lose(core, line, taken + FORWARD_TO_ANSWER, false, now);
            if owner.is_some() {
                trip = Trip::new(taken + FORWARD_TO_ANSWER);
                message.from = tile;
                let written_at = self.copy_home(Unit::Core, home, message, trip.at, now);
                self.second_level(line).note(line, false, written_at);
            }
        }
        let unit = if owner.is_some() { Unit::Core } else { Unit::Directory };
        self.send(unit, message, &mut trip, now);
        self.second_level(line).note(line, false, turn);
        // Until the acknowledgment of memory, which nothing delays in this estimate.
        let acked_at = trip.at + WRITE_TO_ACK + MESSAGE + self.mesh.hops(self.topology().memory_tile(), home);
        self.directory.block(line, acked_at);
        self.queue_write(owner.unwrap_or_default(), line, trip);
    }

    fn read_memory(&mut self, trip: &mut Trip, now: u64) {
        self.counters.memory_reads += 1;
        trip.stay(Place::MemoryTurn, now);
        trip.spend(Place::Memory, MEMORY_ANSWER + self.memory.delay());
    }

    /// Writes a line that reaches memory at the end of `trip`.
    fn queue_write(&mut self, core: usize, line: u32, trip: Trip) {
        self.counters.memory_writes += 1;
        let kind = Kind::AtMemory(MemoryAccess::Write);
        self.queue(Request { core, line, kind, trip }, LAST);
    }

    /// Writes a line to memory, and acknowledges it to its home.
    fn write_memory(&mut self, request: &Request, now: u64) {
        let line = request.line;
        let mut trip = Trip::new(now + WRITE_TO_ACK);
        let ack = Message {
            from: self.topology().memory_tile(),
            to: self.home(line),
            net: Net::Response,
            flits: SHORT,
        };
        // Its sender is occupied for one cycle more than the flit, like that of a copy.
        self.send_copy(Unit::Service, ack, &mut trip, now);
        self.second_level(line).note(line, false, trip.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates cores in tiles 0 (6 hops to memory) and 5 (4 hops, 2 to tile 0); memory takes 20
    /// cycles more.
    fn network() -> Network {
        let mut network = Network::new(TimingConfig {
            memory_delay: 20,
            ..TimingConfig::default()
        });
        network.shared = true;
        for tile in [0, 5] {
            network.add_core(tile);
        }
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

    /// Requests a data line and returns the cycles to its fill, and those at each place.
    fn fill(network: &mut Network, core: usize, start: u64, own: bool) -> (u64, Vec<(Place, u64)>) {
        network.data(asks(core, start), LINE, own);
        loop {
            if let Some(answer) = network.step(u64::MAX) {
                assert_eq!((answer.core, answer.line, answer.owned), (core, LINE, own));
                assert_eq!(answer.legs.first().map(|leg| leg.from), Some(start));
                let legs = answer.legs.iter().map(|leg| (leg.place, leg.to - leg.from));
                return (answer.fill - start, legs.collect());
            }
        }
    }

    /// A line whose home is tile 0.
    const LINE: u32 = 7;

    #[test]
    fn a_line_comes_from_memory_then_from_the_second_level_then_from_its_owner() {
        let mut network = network();
        // 3 to the message; 6 to the directory, 2 there, 6 and 12 for hops to memory, 26 there, 11
        // for the copy to the home, 15 and 12 for hops back; 3 to the fill.
        let way = vec![
            (Place::Controller, 3),
            (Place::Network, 6),
            (Place::SecondLevel, 2),
            (Place::Network, 18),
            (Place::Memory, 26),
            (Place::Link, 11),
            (Place::Network, 27),
        ];
        let cycles = 3 + 6 + 2 + 18 + 26 + 11 + 27 + 3;
        assert_eq!(fill(&mut network, 0, 1000, false), (cycles, way));
        // 2 hops each way.
        let way = vec![
            (Place::Controller, 3),
            (Place::Network, 10),
            (Place::SecondLevel, 2),
            (Place::Network, 19),
        ];
        assert_eq!(fill(&mut network, 1, 2000, false), (3 + 10 + 2 + 19 + 3, way));
        let counters = network.counters();
        assert_eq!((counters.second_level_hits, counters.second_level_misses), (1, 1));
        // Core 1 stores: its own copy and that of core 0 are invalidated. Two acknowledgments delay
        // the line by a cycle each, and follow it.
        let way = vec![
            (Place::Controller, 3),
            (Place::Network, 10),
            (Place::SecondLevel, 2),
            (Place::Network, 19),
            (Place::OtherCore, 2 + 3 + 3),
        ];
        assert_eq!(
            fill(&mut network, 1, 3000, true),
            (3 + 10 + 2 + 19 + 2 + 3 + 3 + 4, way)
        );
        assert_eq!((network.counters().upgrades, network.counters().invalidations), (1, 2));
        assert!(network.news(0, u64::MAX).is_some_and(|loss| !loss.shares));
        // Core 0 loads: the line comes from core 1, which keeps a copy, after a copy for the home.
        let way = vec![
            (Place::Controller, 3),
            (Place::Network, 6),
            (Place::SecondLevel, 2),
            (Place::Network, 10),
            (Place::OtherCore, 3),
            (Place::Link, 11),
            (Place::Network, 19),
        ];
        let cycles = 3 + 6 + 2 + 10 + 3 + 11 + 19 + 3;
        assert_eq!(fill(&mut network, 0, 4000, false), (cycles, way));
        assert_eq!(network.counters().forwarded, 1);
    }

    #[test]
    fn requests_for_a_line_wait_for_its_answer() {
        let mut network = network();
        network.data(asks(0, 1000), LINE, true);
        network.data(asks(1, 1001), LINE, true);
        let answers: Vec<Answer> = std::iter::repeat_with(|| network.step(u64::MAX))
            .take(9)
            .flatten()
            .collect();
        let [first, second] = &answers[..] else {
            panic!("{answers:?}");
        };
        assert_eq!((first.core, second.core), (0, 1));
        // Core 0 takes the request 3 cycles after its line, and answers 3 cycles later.
        assert_eq!(second.fill, first.fill - 3 + 3 + 3 + 19 + 3);
    }

    #[test]
    fn a_line_that_leaves_the_second_level_leaves_the_cores() {
        let mut network = network();
        let lines: Vec<u32> = (0..=machine::L2_WAYS).map(|k| LINE + k * machine::L2_SETS).collect();
        for (&line, start) in lines.iter().zip((1000..).step_by(1000)) {
            network.data(asks(0, start), line, true);
            while network.step(u64::MAX).is_none() {}
        }
        assert_eq!(network.news(0, u64::MAX).map(|loss| loss.line), Some(LINE));
        assert_eq!(network.counters().memory_writes, 1);
    }

    #[test]
    fn evictions_go_to_the_home_and_are_acknowledged() {
        let mut network = network();
        // 9 flits to the home, 2 there, and the acknowledgment.
        assert_eq!(network.give_back(asks(1, 1000), LINE, true), 1000 + 3 + 18 + 2 + 10);
        assert_eq!(network.give_back(asks(1, 2000), LINE, false), 2000 + 3 + 10 + 2 + 10);
    }
}
