//! The controller of the data cache of a core.
//!
//! The transitions are those of the hardware description, seen in its log of messages; the comments
//! name the faults among them (`docs/machine/several-cores.md`).

use super::message::{Bytes, Kind, Message, Met, Network, Node};
use crate::findings::Hazard;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The state of a line in a data cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// The core may read the line.
    Shared,
    /// The core may write the line.
    Modified,
    /// A line of a non-coherent region, which the directory does not know.
    Uncached,
}

/// A line in a data cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub state: State,
    pub data: Box<Bytes>,
    /// In a non-coherent region: the stored bytes, one bit each.
    pub dirty: u64,
}

/// A transaction. The names are those of the hardware description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pending {
    /// A load waits for the line.
    IsD,
    /// A load of a non-coherent region waits for the line.
    UD,
    /// A store waits for the line and for acknowledgments.
    ImAd,
    /// The same, and the core still shares the line.
    SmAd,
    /// A store has its line and waits for acknowledgments.
    ImA,
    /// The same, and the core still shares the old copy.
    SmA,
    /// A store waits for the line; the controller takes the acknowledgments as complete (fault).
    ImD,
    /// The same, and the core still shares the line.
    SmD,
    /// A modified line is given back.
    MiA,
    /// A shared line is given back.
    SiA,
    /// A line is given back that another core has taken meanwhile.
    IiA,
}

/// A transaction with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub line: u32,
    pub state: Pending,
    /// The acknowledgments so far.
    pub received: u8,
    /// The line, if it is here but not in the cache.
    pub data: Option<Box<Bytes>>,
    /// The threads that wait for the end of the transaction, one bit each.
    pub waiters: u8,
}

/// An entry of the miss status registers. The address and the number of acknowledgments remain when
/// a transaction ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    /// The address of the access.
    pub address: u32,
    /// The acknowledgments that the last line announced.
    pub acks: u8,
    pub active: Option<Transaction>,
}

/// An access to memory by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Load,
    /// A store.
    Store,
    /// `dcache_inv`.
    Invalidate,
    /// `flush`.
    Flush,
}

/// Why a thread never continues. Each is a fault of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// `dcache_inv` of a line that the core has only read (erratum `invalidation_of_read_line`).
    InvalidationOfReadLine,
    /// A load from a non-coherent region while the line is given back as a coherent one (erratum
    /// `eviction_before_non_coherent_load`).
    EvictionBeforeLoad,
    /// A miss after a store to a non-coherent region has missed and replaced a line (erratum
    /// `non_coherent_store_miss`).
    NoMisses,
}

impl Fault {
    /// Returns the fault as a finding of a run.
    pub(crate) fn hazard(self) -> Hazard {
        match self {
            Fault::InvalidationOfReadLine => Hazard::InvalidationOfReadLine,
            Fault::EvictionBeforeLoad => Hazard::EvictionBeforeNonCoherentLoad,
            Fault::NoMisses => Hazard::NonCoherentStoreMiss,
        }
    }
}

/// The answer of a controller to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The access happens now.
    Ready,
    /// The thread waits, and then repeats the access.
    Waits,
    /// The thread never continues.
    Hangs(Fault),
}

/// The data cache of a core with its controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Controller {
    pub lines: BTreeMap<u32, Line>,
    pub slots: Vec<Slot>,
    /// Whether a store to a non-coherent region has missed and replaced a line (fault).
    pub is_stuck: bool,
}

/// The number and the messages of a core.
pub(crate) struct Sender<'a> {
    pub core: u8,
    pub home: u8,
    pub network: &'a mut Network,
    pub met: &'a mut Met,
}

impl Sender<'_> {
    fn send(&mut self, to: Node, message: Message) {
        self.network.send(Node::Core(self.core), to, message);
    }

    fn request(&mut self, kind: Kind, line: u32) {
        let home = Node::Home(self.home);
        self.send(home, Message::short(kind, line, self.core));
    }

    fn acknowledge(&mut self, line: u32, to: u8) {
        self.send(Node::Core(to), Message::short(Kind::InvAck, line, to));
    }

    fn give(&mut self, line: u32, to: u8, data: &Bytes) {
        let message = Message::with_line(Kind::Data, line, to, Box::new(*data));
        self.send(Node::Core(to), message);
    }

    fn give_home(&mut self, line: u32, requester: u8, data: &Bytes) {
        let message = Message::with_line(Kind::Data, line, requester, Box::new(*data));
        self.send(Node::Home(self.home), message);
    }

    fn write_back(&mut self, line: u32, data: &Bytes, mask: u64) {
        let message = Message {
            mask,
            ..Message::with_line(Kind::WriteBack, line, self.core, Box::new(*data))
        };
        self.send(Node::Memory, message);
    }
}

/// The threads that a message wakes; they repeat their accesses.
pub(crate) type Woken = SmallVec<[u8; 2]>;

impl Controller {
    fn transaction(&self, line: u32) -> Option<&Transaction> {
        let active = self.slots.iter().filter_map(|slot| slot.active.as_ref());
        active.into_iter().find(|transaction| transaction.line == line)
    }

    fn place_of(&self, line: u32) -> Option<usize> {
        let is_line = |slot: &Slot| slot.active.as_ref().is_some_and(|active| active.line == line);
        self.slots.iter().position(is_line)
    }

    /// Starts a transaction in the first free slot. It inherits the number of acknowledgments if the
    /// last one in the slot had the same address (fault).
    fn start(&mut self, address: u32, line: u32, state: Pending, data: Option<Box<Bytes>>, waiters: u8) {
        let place = self.slots.iter().position(|slot| slot.active.is_none());
        let place = place.unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[place];
        if slot.address != address {
            (slot.address, slot.acks) = (address, 0);
        }
        slot.active = Some(Transaction {
            line,
            state,
            received: 0,
            data,
            waiters,
        });
    }

    /// Ends the transaction in a slot; returns the threads that wait for it.
    fn end(&mut self, place: usize) -> Woken {
        let slot = &mut self.slots[place];
        let waiters = slot.active.take().map_or(0, |active| active.waiters);
        if slot.acks == 0 {
            // Without acknowledgments the address does not matter any more.
            slot.address = 0;
        }
        (0..u8::BITS as u8)
            .filter(|&thread| waiters >> thread & 1 != 0)
            .collect()
    }

    /// Performs or starts an access of a thread to an address. The caller loads or stores the bytes
    /// if the reply is [`Reply::Ready`].
    ///
    /// The second result is whether a line was allocated without reading memory, so that another
    /// line can leave the cache.
    pub fn access(
        &mut self,
        thread: u8,
        access: Access,
        address: u32,
        coherent: bool,
        sender: &mut Sender<'_>,
    ) -> (Reply, bool) {
        let line = address / size_of::<Bytes>() as u32;
        let waiter = 1 << (thread % u8::BITS as u8);
        if let Some(place) = self.place_of(line)
            && let Some(active) = &mut self.slots[place].active
        {
            let leaves = matches!(active.state, Pending::MiA | Pending::SiA | Pending::IiA);
            if leaves && access == Access::Invalidate {
                return (Reply::Ready, false);
            }
            if leaves && access == Access::Flush {
                if let Some(data) = &active.data {
                    sender.write_back(line, data, u64::MAX);
                }
                return (Reply::Ready, false);
            }
            if leaves && access == Access::Load && !coherent {
                return (Reply::Hangs(Fault::EvictionBeforeLoad), false);
            }
            active.waiters |= waiter;
            return (Reply::Waits, false);
        }
        let state = self.lines.get(&line).map(|copy| copy.state);
        let reply = match (access, state) {
            (Access::Load, Some(_)) | (Access::Store, Some(State::Modified | State::Uncached)) => Reply::Ready,
            (Access::Load | Access::Store, _) if self.is_stuck => Reply::Hangs(Fault::NoMisses),
            (Access::Load, None) if coherent => {
                self.start(address, line, Pending::IsD, None, waiter);
                sender.request(Kind::GetS, line);
                Reply::Waits
            }
            (Access::Load, None) => {
                self.start(address, line, Pending::UD, None, waiter);
                let core = sender.core;
                sender.send(Node::Memory, Message::short(Kind::FwdGetS, line, core));
                Reply::Waits
            }
            (Access::Store, None) if !coherent => {
                let copy = Line {
                    state: State::Uncached,
                    data: Box::new([0; size_of::<Bytes>()]),
                    dirty: 0,
                };
                self.lines.insert(line, copy);
                return (Reply::Ready, true);
            }
            (Access::Store, state) => {
                let state = match state {
                    Some(_) => Pending::SmAd,
                    None => Pending::ImAd,
                };
                self.start(address, line, state, None, waiter);
                sender.request(Kind::GetM, line);
                Reply::Waits
            }
            (Access::Invalidate, None) => Reply::Ready,
            (Access::Invalidate, Some(State::Shared)) => {
                // The controller has no answer for the thread, and the directory is not told (fault).
                self.lines.remove(&line);
                Reply::Hangs(Fault::InvalidationOfReadLine)
            }
            (Access::Invalidate, Some(State::Uncached)) => {
                self.evict(line, sender);
                Reply::Ready
            }
            (Access::Invalidate, Some(State::Modified)) => {
                self.evict(line, sender);
                if let Some(place) = self.place_of(line)
                    && let Some(active) = &mut self.slots[place].active
                {
                    active.waiters = waiter;
                }
                Reply::Waits
            }
            (Access::Flush, None) => {
                if coherent {
                    sender.request(Kind::DirFlush, line);
                }
                Reply::Ready
            }
            (Access::Flush, Some(_)) => {
                if let Some(copy) = self.lines.get_mut(&line) {
                    let mask = match copy.state {
                        State::Shared | State::Modified => u64::MAX,
                        State::Uncached => copy.dirty,
                    };
                    sender.write_back(line, &copy.data, mask);
                }
                Reply::Ready
            }
        };
        (reply, false)
    }

    /// Returns whether a line can leave the cache to make room.
    pub fn can_evict(&self, line: u32) -> bool {
        self.lines.contains_key(&line) && self.transaction(line).is_none()
    }

    /// Gives a line back, or writes a non-coherent one to memory. Does nothing if the line is absent
    /// or in a transaction.
    pub fn evict(&mut self, line: u32, sender: &mut Sender<'_>) {
        if !self.can_evict(line) {
            return;
        }
        let Some(copy) = self.lines.remove(&line) else { return };
        let address = line * size_of::<Bytes>() as u32;
        match copy.state {
            State::Shared => {
                self.start(address, line, Pending::SiA, Some(copy.data), 0);
                sender.request(Kind::PutS, line);
            }
            State::Modified => {
                self.start(address, line, Pending::MiA, Some(copy.data.clone()), 0);
                let message = Message::with_line(Kind::PutM, line, sender.core, copy.data);
                sender.send(Node::Home(sender.home), message);
            }
            State::Uncached if copy.dirty != 0 => sender.write_back(line, &copy.data, copy.dirty),
            State::Uncached => {}
        }
    }

    /// Returns whether a message waits for the end of a transaction.
    pub fn blocks(&self, message: &Message) -> bool {
        let Some(active) = self.transaction(message.line) else {
            return false;
        };
        let leaves = matches!(active.state, Pending::MiA | Pending::SiA | Pending::IiA);
        match message.kind {
            Kind::FwdGetS | Kind::FwdGetM | Kind::FwdFlush => !leaves,
            Kind::Inv => {
                let shares = matches!(active.state, Pending::SmAd | Pending::SmA | Pending::SmD);
                !leaves && !shares
            }
            Kind::GetS
            | Kind::GetM
            | Kind::PutS
            | Kind::PutM
            | Kind::DirFlush
            | Kind::Data
            | Kind::InvAck
            | Kind::PutAck
            | Kind::WriteBack => false,
        }
    }

    /// Takes a message that [`Controller::blocks`] does not stop; returns the threads that it wakes,
    /// and whether a line came into the cache.
    pub fn take(&mut self, message: Message, sender: &mut Sender<'_>) -> (Woken, bool) {
        let mut fills = false;
        let woken = match message.kind {
            Kind::Data => {
                let (woken, filled) = self.arrive(message, sender.met);
                fills = filled;
                woken
            }
            Kind::InvAck => {
                let (woken, filled) = self.acknowledged(message.line, sender.met);
                fills = filled;
                woken
            }
            Kind::PutAck => match self.place_of(message.line) {
                Some(place) if self.gives_back(place) => self.end(place),
                Some(_) | None => Woken::new(),
            },
            Kind::Inv | Kind::FwdGetS | Kind::FwdGetM | Kind::FwdFlush => {
                self.forwarded(&message, sender);
                Woken::new()
            }
            Kind::GetS | Kind::GetM | Kind::PutS | Kind::PutM | Kind::DirFlush | Kind::WriteBack => Woken::new(),
        };
        (woken, fills)
    }

    fn gives_back(&self, place: usize) -> bool {
        let active = self.slots.get(place).and_then(|slot| slot.active.as_ref());
        active.is_some_and(|active| matches!(active.state, Pending::MiA | Pending::SiA | Pending::IiA))
    }

    /// Answers a message of a directory. A core that has nothing to answer with drops it: the
    /// acknowledgment of a line that was given back can arrive before an older message of the same
    /// directory, and the requester then waits for ever (fault).
    fn forwarded(&mut self, message: &Message, sender: &mut Sender<'_>) {
        let (line, requester) = (message.line, message.requester);
        if let Some(place) = self.place_of(line)
            && let Some(active) = &mut self.slots[place].active
        {
            match (active.state, message.kind) {
                (Pending::MiA, Kind::FwdGetS) => {
                    if let Some(data) = &active.data {
                        sender.give_home(line, requester, data);
                        sender.give(line, requester, data);
                    }
                    active.state = Pending::SiA;
                }
                (Pending::MiA, Kind::FwdGetM) => {
                    if let Some(data) = active.data.take() {
                        sender.give(line, requester, &data);
                    }
                    active.state = Pending::IiA;
                }
                (Pending::MiA, Kind::FwdFlush) => {
                    if let Some(data) = &active.data {
                        sender.write_back(line, data, u64::MAX);
                    }
                }
                (Pending::SiA, Kind::Inv) => {
                    sender.acknowledge(line, requester);
                    (active.state, active.data) = (Pending::IiA, None);
                }
                (Pending::SmAd, Kind::Inv) => {
                    sender.acknowledge(line, requester);
                    active.state = Pending::ImAd;
                    self.lines.remove(&line);
                }
                (Pending::SmD, Kind::Inv) => {
                    sender.acknowledge(line, requester);
                    active.state = Pending::ImD;
                    self.lines.remove(&line);
                }
                (Pending::SmA, Kind::Inv) => {
                    sender.acknowledge(line, requester);
                    active.state = Pending::ImA;
                    self.lines.remove(&line);
                }
                _ => {}
            }
            return;
        }
        let Some(copy) = self.lines.get_mut(&line) else {
            if message.kind != Kind::FwdFlush {
                sender.met.push((Hazard::EvictionDuringStore, line));
            }
            return;
        };
        match (copy.state, message.kind) {
            (State::Modified, Kind::FwdGetS) => {
                sender.give_home(line, requester, &copy.data);
                sender.give(line, requester, &copy.data);
                copy.state = State::Shared;
            }
            (State::Modified, Kind::FwdGetM) => {
                sender.give(line, requester, &copy.data);
                self.lines.remove(&line);
            }
            (State::Modified, Kind::FwdFlush) => sender.write_back(line, &copy.data, u64::MAX),
            (State::Shared, Kind::Inv) => {
                sender.acknowledge(line, requester);
                self.lines.remove(&line);
            }
            _ => {}
        }
    }

    /// Puts a line into the cache and ends its transaction.
    fn fill(&mut self, place: usize, state: State, data: Box<Bytes>) -> (Woken, bool) {
        let Some(active) = &self.slots[place].active else {
            return (Woken::new(), false);
        };
        let copy = Line { state, data, dirty: 0 };
        self.lines.insert(active.line, copy);
        (self.end(place), true)
    }

    fn arrive(&mut self, message: Message, met: &mut Met) -> (Woken, bool) {
        let nothing = (Woken::new(), false);
        let (Some(place), Some(data)) = (self.place_of(message.line), message.data) else {
            return nothing;
        };
        let slot = &mut self.slots[place];
        let Some(active) = &mut slot.active else { return nothing };
        let state = active.state;
        if matches!(state, Pending::ImD | Pending::SmD) && active.received < message.acks {
            met.push((Hazard::LateAcknowledgment, message.line));
        }
        if matches!(
            state,
            Pending::ImAd | Pending::SmAd | Pending::ImD | Pending::SmD | Pending::IsD
        ) {
            slot.acks = message.acks;
        }
        match state {
            Pending::IsD => self.fill(place, State::Shared, data),
            Pending::UD => self.fill(place, State::Uncached, data),
            Pending::ImD | Pending::SmD => self.fill(place, State::Modified, data),
            Pending::ImAd | Pending::SmAd if active.received >= message.acks => self.fill(place, State::Modified, data),
            Pending::ImAd => {
                (active.state, active.data) = (Pending::ImA, Some(data));
                nothing
            }
            Pending::SmAd => {
                (active.state, active.data) = (Pending::SmA, Some(data));
                nothing
            }
            Pending::ImA | Pending::SmA | Pending::MiA | Pending::SiA | Pending::IiA => nothing,
        }
    }

    fn acknowledged(&mut self, line: u32, met: &mut Met) -> (Woken, bool) {
        let nothing = (Woken::new(), false);
        let Some(place) = self.place_of(line) else {
            if let Some(copy) = self.lines.get_mut(&line)
                && copy.state == State::Shared
            {
                // The transaction has ended too early. The transition does not exist, and its next
                // state is the first one, so that the core may write the line (fault).
                copy.state = State::Modified;
                met.push((Hazard::LateAcknowledgment, line));
            }
            return nothing;
        };
        let slot = &mut self.slots[place];
        let Some(active) = &mut slot.active else { return nothing };
        match active.state {
            Pending::ImAd | Pending::SmAd => {
                active.received = active.received.saturating_add(1);
                // The line has not come, so the number is that of an earlier transaction (fault).
                if slot.acks != 0 && active.received == slot.acks {
                    active.state = if active.state == Pending::ImAd {
                        Pending::ImD
                    } else {
                        Pending::SmD
                    };
                }
                nothing
            }
            Pending::ImA | Pending::SmA => {
                active.received = active.received.saturating_add(1);
                if active.received < slot.acks {
                    return nothing;
                }
                match active.data.take() {
                    Some(data) => self.fill(place, State::Modified, data),
                    None => nothing,
                }
            }
            Pending::IsD | Pending::UD | Pending::ImD | Pending::SmD | Pending::MiA | Pending::SiA | Pending::IiA => {
                nothing
            }
        }
    }
}
