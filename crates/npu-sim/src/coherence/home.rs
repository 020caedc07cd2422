//! The directory and second-level cache of a tile.
//!
//! The transitions are those of the hardware description, seen in its log of messages; the comments
//! name the faults among them (`docs/machine/several-cores.md`). The second level has no limit of
//! lines here, so no line leaves it.

use super::message::{Bytes, Cores, Kind, Message, Met, Network, Node};
use crate::findings::Hazard;
use std::collections::BTreeMap;

/// The state of a line at its home. A line without an entry is in no cache, and only memory has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Only the second level has the line.
    Invalid(Box<Bytes>),
    /// The second level has the line, and cores may read it.
    Shared(Box<Bytes>),
    /// A core has modified the line, or may do so.
    Modified,
    /// The line comes from memory for a load. Its owner may have given it back meanwhile.
    FromMemory(Option<Box<Bytes>>),
    /// The line comes from its owner for a load. The owner may have given it back meanwhile.
    FromOwner(Option<Box<Bytes>>),
}

impl State {
    /// Returns the line in the second level, if it is current.
    pub fn data(&self) -> Option<&Bytes> {
        match self {
            State::Invalid(data) | State::Shared(data) => Some(data),
            State::FromMemory(data) | State::FromOwner(data) => data.as_deref(),
            State::Modified => None,
        }
    }

    /// Puts a line that its owner gives back into the second level.
    fn keep(&mut self, line: Box<Bytes>) {
        match self {
            State::Invalid(data) | State::Shared(data) => *data = line,
            State::FromMemory(data) | State::FromOwner(data) => *data = Some(line),
            State::Modified => *self = State::Invalid(line),
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub state: State,
    /// The cores with copies, as far as the home knows.
    pub sharers: Cores,
    /// The core that has modified the line. In a state without owner it is the tile of the home,
    /// which the hardware takes for an owner (fault).
    pub owner: u8,
}

/// The directory of a tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    /// The lines of the second level.
    pub lines: BTreeMap<u32, Entry>,
    /// The lines on their way, by the number of their entry in the status registers.
    pub pending: Vec<Option<(u32, Entry)>>,
}

/// The answers of a directory are sent from here.
pub(crate) struct Answers<'a> {
    pub tile: u8,
    pub network: &'a mut Network,
    pub met: &'a mut Met,
}

impl Answers<'_> {
    fn send(&mut self, to: Node, message: Message) {
        self.network.send(Node::Home(self.tile), to, message);
    }

    fn short(&mut self, to: Node, kind: Kind, line: u32, requester: u8) {
        self.send(to, Message::short(kind, line, requester));
    }

    /// Sends the line with the number of acknowledgments to the requester.
    fn supply(&mut self, line: u32, requester: u8, data: &Bytes, acks: u32) {
        let message = Message {
            acks: acks as u8,
            ..Message::with_line(Kind::Data, line, requester, Box::new(*data))
        };
        self.send(Node::Core(requester), message);
    }

    fn write_back(&mut self, line: u32, requester: u8, data: &Bytes) {
        let message = Message::with_line(Kind::WriteBack, line, requester, Box::new(*data));
        self.send(Node::Memory, message);
    }
}

fn bit(core: u8) -> Cores {
    1 << (u32::from(core) % Cores::BITS)
}

/// Iterates over the cores of a set.
pub(crate) fn cores_of(set: Cores) -> impl Iterator<Item = u8> {
    (0..Cores::BITS as u8).filter(move |&core| set & bit(core) != 0)
}

impl Home {
    /// Returns the entry of a line.
    pub fn find(&self, line: u32) -> Option<&Entry> {
        let pending = self.pending.iter().flatten().find(|(number, _)| *number == line);
        pending.map(|(_, entry)| entry).or_else(|| self.lines.get(&line))
    }

    fn is_pending(&self, line: u32) -> bool {
        self.pending.iter().flatten().any(|(number, _)| *number == line)
    }

    /// Returns whether a request waits: the line is on its way.
    pub fn blocks(&self, message: &Message) -> bool {
        matches!(message.kind, Kind::GetS | Kind::GetM) && self.is_pending(message.line)
    }

    /// Puts a line on its way into the first free entry.
    fn await_line(&mut self, line: u32, entry: Entry) {
        self.lines.remove(&line);
        match self.pending.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some((line, entry)),
            None => self.pending.push(Some((line, entry))),
        }
    }

    /// Frees an entry.
    fn free(&mut self, place: usize) -> Option<(u32, Entry)> {
        let freed = self.pending.get_mut(place)?.take();
        while let Some(None) = self.pending.last() {
            self.pending.pop();
        }
        freed
    }

    fn place_of(&self, line: u32) -> Option<usize> {
        let is_line = |place: &Option<(u32, Entry)>| matches!(place, Some((number, _)) if *number == line);
        self.pending.iter().position(is_line)
    }

    /// Takes a message that [`Home::blocks`] does not stop.
    pub fn take(&mut self, message: Message, answers: &mut Answers<'_>) {
        match message.kind {
            Kind::GetS => self.load(&message, answers),
            Kind::GetM => self.store(&message, answers),
            Kind::PutS | Kind::PutM => self.give_back(message, answers),
            Kind::DirFlush => self.flush(&message, answers),
            Kind::Data => self.arrive(message, answers),
            Kind::FwdGetS
            | Kind::FwdGetM
            | Kind::Inv
            | Kind::FwdFlush
            | Kind::InvAck
            | Kind::PutAck
            | Kind::WriteBack => {}
        }
    }

    fn load(&mut self, message: &Message, answers: &mut Answers<'_>) {
        let (line, requester) = (message.line, message.requester);
        let Some(entry) = self.lines.get_mut(&line) else {
            let entry = Entry {
                state: State::FromMemory(None),
                sharers: bit(requester),
                owner: answers.tile,
            };
            self.await_line(line, entry);
            answers.short(Node::Memory, Kind::FwdGetS, line, requester);
            return;
        };
        match &entry.state {
            State::Invalid(data) | State::Shared(data) => {
                answers.supply(line, requester, data, entry.sharers.count_ones());
                entry.state = State::Shared(data.clone());
                entry.sharers |= bit(requester);
            }
            State::Modified => {
                let owner = entry.owner;
                let entry = Entry {
                    state: State::FromOwner(None),
                    sharers: bit(requester) | bit(owner),
                    owner: answers.tile,
                };
                self.await_line(line, entry);
                answers.short(Node::Core(owner), Kind::FwdGetS, line, requester);
            }
            // The line was moved here too early: the request is lost (`give_back`).
            State::FromMemory(_) | State::FromOwner(_) => answers.met.push((Hazard::EvictionDuringLoad, line)),
        }
    }

    fn store(&mut self, message: &Message, answers: &mut Answers<'_>) {
        let (line, requester) = (message.line, message.requester);
        let owned = Entry {
            state: State::Modified,
            sharers: 0,
            owner: requester,
        };
        let Some(entry) = self.lines.get_mut(&line) else {
            self.lines.insert(line, owned);
            answers.short(Node::Memory, Kind::FwdGetM, line, requester);
            return;
        };
        match &entry.state {
            State::Invalid(data) => {
                // After the flush of a shared line, no core invalidates the sharers that remain here,
                // but the requester waits for their acknowledgments (fault).
                answers.supply(line, requester, data, entry.sharers.count_ones());
                *entry = owned;
            }
            State::Shared(data) => {
                for sharer in cores_of(entry.sharers) {
                    answers.short(Node::Core(sharer), Kind::Inv, line, requester);
                }
                answers.supply(line, requester, data, entry.sharers.count_ones());
                *entry = owned;
            }
            State::Modified => {
                let owner = entry.owner;
                *entry = owned;
                answers.short(Node::Core(owner), Kind::FwdGetM, line, requester);
            }
            State::FromMemory(_) | State::FromOwner(_) => answers.met.push((Hazard::EvictionDuringLoad, line)),
        }
    }

    /// Takes a line that a core gives back; only a modified one comes with its bytes.
    fn give_back(&mut self, message: Message, answers: &mut Answers<'_>) {
        let (line, core) = (message.line, message.requester);
        answers.short(Node::Core(core), Kind::PutAck, line, core);
        if let Some(place) = self.place_of(line) {
            let Some(Some((_, entry))) = self.pending.get_mut(place) else {
                return;
            };
            let Some(data) = message.data else {
                entry.sharers &= !bit(core);
                return;
            };
            answers.met.push((Hazard::EvictionDuringLoad, line));
            // The core of the home tile counts as owner, and remains a sharer (fault).
            if entry.owner != core {
                // The line is on its way from this core to its home. The hardware moves the entry to
                // the second level before the line has come (fault).
                entry.sharers &= !bit(core);
                entry.state.keep(data);
                if let Some((line, entry)) = self.free(place) {
                    self.lines.insert(line, entry);
                }
            }
            return;
        }
        let Some(entry) = self.lines.get_mut(&line) else { return };
        match (&entry.state, message.data) {
            (State::Invalid(_), _) => {}
            (State::Shared(_) | State::FromMemory(_) | State::FromOwner(_), Some(data)) => {
                if entry.owner != core {
                    entry.sharers &= !bit(core);
                    entry.state.keep(data);
                } else {
                    answers.met.push((Hazard::EvictionDuringLoad, line));
                }
            }
            (State::Shared(data), None) => {
                entry.sharers &= !bit(core);
                if entry.sharers == 0 {
                    entry.state = State::Invalid(data.clone());
                }
            }
            (State::FromMemory(_) | State::FromOwner(_), None) => entry.sharers &= !bit(core),
            (State::Modified, Some(data)) if entry.owner == core => {
                entry.state.keep(data);
                entry.owner = answers.tile;
            }
            (State::Modified, _) => {}
        }
    }

    fn flush(&mut self, message: &Message, answers: &mut Answers<'_>) {
        let (line, requester) = (message.line, message.requester);
        let Some(entry) = self.lines.get_mut(&line) else { return };
        match &entry.state {
            State::Invalid(data) => answers.write_back(line, requester, data),
            State::Shared(data) => {
                // The sharers remain (fault).
                if entry.sharers != 0 {
                    answers.met.push((Hazard::FlushOfSharedLine, line));
                }
                answers.write_back(line, requester, data);
                entry.state = State::Invalid(data.clone());
            }
            State::Modified => {
                let owner = entry.owner;
                answers.short(Node::Core(owner), Kind::FwdFlush, line, requester);
            }
            State::FromMemory(_) | State::FromOwner(_) => {}
        }
    }

    /// Takes a line from memory or from its owner.
    fn arrive(&mut self, message: Message, answers: &mut Answers<'_>) {
        let (line, Some(data)) = (message.line, message.data) else {
            return;
        };
        if let Some(place) = self.place_of(line) {
            if let Some((line, mut entry)) = self.free(place) {
                entry.state = State::Shared(data);
                self.lines.insert(line, entry);
            }
            return;
        }
        // Lines without a request are dropped.
        let Some(entry) = self.lines.get_mut(&line) else { return };
        if matches!(entry.state, State::FromMemory(_) | State::FromOwner(_)) {
            entry.state = State::Shared(data);
            // The line has no entry any more. The hardware frees the first one, which another line
            // can have: its home forgets that line (fault).
            if let Some((forgotten, _)) = self.free(0) {
                answers.met.push((Hazard::EvictionDuringLoad, forgotten));
            }
        }
    }
}
