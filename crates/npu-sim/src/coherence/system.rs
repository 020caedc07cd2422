//! The caches, directories and messages of all cores.
//!
//! Invariant: the state changes only by [`System::access`], [`System::evict`], [`System::deliver`]
//! and the bytes that the owner of a line stores; equal calls have equal results.

use super::controller::{Access, Controller, Reply, Sender, State, Woken};
use super::home::{self, Answers, Home};
use super::message::{Bytes, Channel, Kind, Message, Met, Net, Network, Node};
use crate::findings::Hazard;
use crate::topology::Topology;
use npu_mc::machine;

const LINE: u32 = machine::CACHE_LINE;

/// Main memory, by lines.
pub(crate) trait Backing {
    /// Why a write can fail.
    type Error;

    /// Reads a line.
    fn read_line(&self, line: u32) -> Bytes;

    /// Writes the bytes of a line that the mask selects.
    ///
    /// # Errors
    ///
    /// The implementation determines why a write fails.
    fn write_line(&mut self, line: u32, data: &Bytes, mask: u64) -> Result<(), Self::Error>;
}

/// The effect of a message on a core.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// The core that took the message.
    pub core: Option<u8>,
    /// The threads of the core that repeat their accesses now.
    pub woken: Woken,
    /// Whether a line came into the cache of the core, so that another one can leave it.
    pub fills: bool,
    /// The faults that the message met.
    pub met: Met,
}

/// The caches, directories and messages of all cores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct System {
    cores: Vec<Controller>,
    homes: Vec<Home>,
    network: Network,
    /// The tile of core 0. Each further core is the next tile.
    first_tile: u32,
    mesh: Topology,
}

impl System {
    /// Creates empty caches. Core 0 is tile `first_tile`.
    pub fn new(cores: usize, first_tile: u32, mesh: Topology) -> System {
        System {
            cores: vec![Controller::default(); cores],
            homes: vec![Home::default(); mesh.tiles() as usize],
            network: Network::default(),
            first_tile,
            mesh,
        }
    }

    /// Returns the home of a line: the number of its tile, counted from that of core 0.
    fn home_of(&self, line: u32) -> u8 {
        let tile = self.mesh.home(line * LINE);
        (tile.wrapping_sub(self.first_tile) % self.mesh.tiles()) as u8
    }

    /// Performs or starts an access; see [`Controller::access`].
    pub fn access(&mut self, core: u8, thread: u8, access: Access, address: u32, coherent: bool) -> (Reply, bool) {
        let home = self.home_of(address / LINE);
        let mut sender = Sender {
            core,
            home,
            network: &mut self.network,
            met: &mut Met::new(),
        };
        match self.cores.get_mut(usize::from(core)) {
            Some(controller) => controller.access(thread, access, address, coherent, &mut sender),
            None => (Reply::Ready, false),
        }
    }

    /// Makes a line leave the cache of a core; see [`Controller::evict`].
    pub fn evict(&mut self, core: u8, line: u32) {
        let home = self.home_of(line);
        let mut sender = Sender {
            core,
            home,
            network: &mut self.network,
            met: &mut Met::new(),
        };
        if let Some(controller) = self.cores.get_mut(usize::from(core)) {
            controller.evict(line, &mut sender);
        }
    }

    /// Returns whether a line can leave the cache of a core.
    pub fn can_evict(&self, core: u8, line: u32) -> bool {
        let controller = self.cores.get(usize::from(core));
        controller.is_some_and(|controller| controller.can_evict(line))
    }

    /// Iterates over the lines in one set of the cache of a core.
    pub fn in_set(&self, core: u8, set: u32) -> impl Iterator<Item = u32> {
        let controller = self.cores.get(usize::from(core));
        let lines = controller.into_iter().flat_map(|controller| controller.lines.keys());
        lines.copied().filter(move |&line| line % machine::DCACHE_SETS == set)
    }

    /// Iterates over the lines in one set of the cache of a core that can leave it.
    pub fn victims(&self, core: u8, set: u32) -> impl Iterator<Item = u32> {
        self.in_set(core, set).filter(move |&line| self.can_evict(core, line))
    }

    /// Records that a store has allocated a non-coherent line in place of another one, so that the
    /// core cannot miss any more (fault).
    pub fn stick(&mut self, core: u8) {
        if let Some(controller) = self.cores.get_mut(usize::from(core)) {
            controller.is_stuck = true;
        }
    }

    /// Returns the line in the cache of a core.
    pub fn cached(&self, core: u8, line: u32) -> Option<&Bytes> {
        let controller = self.cores.get(usize::from(core))?;
        controller.lines.get(&line).map(|copy| &*copy.data)
    }

    /// Stores bytes to a line in the cache of a core. They must not cross the end of the line. Does
    /// nothing if the core has not the line.
    pub fn write(&mut self, core: u8, address: u32, bytes: &[u8]) {
        let copy = self.cores.get_mut(usize::from(core));
        let Some(copy) = copy.and_then(|controller| controller.lines.get_mut(&(address / LINE))) else {
            return;
        };
        let offset = (address % LINE) as usize;
        for (at, &byte) in (offset..size_of::<Bytes>()).zip(bytes) {
            copy.data[at] = byte;
            copy.dirty |= 1 << at;
        }
        if copy.state != State::Uncached {
            copy.dirty = 0;
        }
    }

    /// Iterates over the messages that can arrive next.
    pub fn deliverable(&self) -> impl Iterator<Item = (Channel, &Message)> {
        self.network.heads().filter(|(channel, message)| match channel.to {
            Node::Core(core) => {
                let controller = self.cores.get(usize::from(core));
                controller.is_some_and(|controller| !controller.blocks(message))
            }
            Node::Home(tile) => {
                let home = self.homes.get(usize::from(tile));
                home.is_some_and(|home| !home.blocks(message))
            }
            Node::Memory => true,
        })
    }

    /// Returns whether no message is on its way.
    pub fn is_quiet(&self) -> bool {
        self.network.is_empty()
    }

    /// Returns the first message of a channel.
    pub fn head(&self, channel: Channel) -> Option<&Message> {
        self.network.head(channel)
    }

    /// Delivers the first message of a channel.
    ///
    /// # Errors
    ///
    /// The error of memory, if the message is a write that fails.
    pub fn deliver<M: Backing>(&mut self, channel: Channel, memory: &mut M) -> Result<Delivered, M::Error> {
        let mut delivered = Delivered::default();
        let Some(message) = self.network.take(channel) else {
            return Ok(delivered);
        };
        let home = self.home_of(message.line);
        let mut met = Met::new();
        match channel.to {
            Node::Core(core) => {
                let mut sender = Sender {
                    core,
                    home,
                    network: &mut self.network,
                    met: &mut met,
                };
                if let Some(controller) = self.cores.get_mut(usize::from(core)) {
                    let (woken, fills) = controller.take(message, &mut sender);
                    delivered = Delivered {
                        core: Some(core),
                        woken,
                        fills,
                        met: Met::new(),
                    };
                }
            }
            Node::Home(tile) => {
                let mut answers = Answers {
                    tile,
                    network: &mut self.network,
                    met: &mut met,
                };
                if let Some(home) = self.homes.get_mut(usize::from(tile)) {
                    home.take(message, &mut answers);
                }
            }
            Node::Memory => {
                if let Node::Core(_) = channel.from {
                    let writes = Channel {
                        net: Net::Response,
                        ..channel
                    };
                    if channel.net == Net::Forward && self.network.has(writes, Kind::WriteBack, message.line) {
                        met.push((Hazard::NonCoherentReload, message.line));
                    }
                }
                self.at_memory(channel.from, home, message, memory)?;
            }
        }
        delivered.met = met;
        Ok(delivered)
    }

    /// Performs a read or a write of memory. The line of a load through the directory goes to its home
    /// first, then to the core.
    fn at_memory<M: Backing>(
        &mut self,
        from: Node,
        home: u8,
        message: Message,
        memory: &mut M,
    ) -> Result<(), M::Error> {
        let Message {
            kind,
            line,
            requester,
            data,
            mask,
            ..
        } = message;
        if kind == Kind::WriteBack {
            return match data {
                Some(data) => memory.write_line(line, &data, mask),
                None => Ok(()),
            };
        }
        let data = Box::new(memory.read_line(line));
        if kind == Kind::FwdGetS && from == Node::Home(home) {
            let copy = Message::with_line(Kind::Data, line, requester, data.clone());
            self.network.send(Node::Memory, Node::Home(home), copy);
        }
        let answer = Message::with_line(Kind::Data, line, requester, data);
        self.network.send(Node::Memory, Node::Core(requester), answer);
        Ok(())
    }

    /// Returns the lines that caches or directories have.
    pub fn lines(&self) -> Vec<u32> {
        let cached = self.cores.iter().flat_map(|controller| controller.lines.keys());
        let homes = self.homes.iter().flat_map(|home| home.lines.keys());
        let mut lines: Vec<u32> = cached.chain(homes).copied().collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Returns the line as a new load through the directory would get it, or `None` if that is memory.
    /// No message may be on its way.
    pub fn current(&self, line: u32) -> Option<&Bytes> {
        let entry = self.homes.get(usize::from(self.home_of(line)))?.find(line)?;
        match entry.state {
            home::State::Modified => self.cached(entry.owner, line),
            home::State::Invalid(_)
            | home::State::Shared(_)
            | home::State::FromMemory(_)
            | home::State::FromOwner(_) => entry.state.data(),
        }
    }

    /// Iterates over the copies of a line for which the directory has to know.
    pub fn copies(&self, line: u32) -> impl Iterator<Item = (u8, &Bytes)> {
        let copies = self.cores.iter().enumerate();
        copies.filter_map(move |(core, controller)| {
            let copy = controller.lines.get(&line)?;
            (copy.state != State::Uncached).then_some((core as u8, &*copy.data))
        })
    }
}
