//! The directory and second-level cache of a tile.
//!
//! The transitions are those of the hardware description, seen in its log of messages; the comments
//! name the faults among them (`docs/machine/several-cores.md`). The second level has no limit of
//! lines here, so no line leaves it.

use super::message::{Bytes, Cores, Kind, Message, Met, Network, Node};
use crate::findings::Hazard;
use std::collections::BTreeMap;

/// The state of a line at its home. A line without an entry is in no cache, and only memory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Only the second level has the line.
    Invalid,
    /// The second level has the line, and cores may read it.
    Shared,
    /// A core has modified the line, or may do so.
    Modified,
    /// The line comes from memory for a load.
    FromMemory,
    /// The line comes from its owner for a load.
    FromOwner,
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
    /// The line in the second level, if it is current.
    pub data: Option<Box<Bytes>>,
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
    fn supply(&mut self, line: u32, requester: u8, data: &Option<Box<Bytes>>, acks: u32) {
        let data = data.clone().unwrap_or_else(|| Box::new([0; size_of::<Bytes>()]));
        let message = Message {
            acks: acks as u8,
            ..Message::with_line(Kind::Data, line, requester, data)
        };
        self.send(Node::Core(requester), message);
    }

    fn write_back(&mut self, line: u32, requester: u8, data: &Option<Box<Bytes>>) {
        if let Some(data) = data {
            let message = Message::with_line(Kind::WriteBack, line, requester, data.clone());
            self.send(Node::Memory, message);
        }
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
                state: State::FromMemory,
                sharers: bit(requester),
                owner: answers.tile,
                data: None,
            };
            self.await_line(line, entry);
            answers.short(Node::Memory, Kind::FwdGetS, line, requester);
            return;
        };
        match entry.state {
            State::Invalid | State::Shared => {
                answers.supply(line, requester, &entry.data, entry.sharers.count_ones());
                entry.state = State::Shared;
                entry.sharers |= bit(requester);
            }
            State::Modified => {
                let owner = entry.owner;
                let entry = Entry {
                    state: State::FromOwner,
                    sharers: bit(requester) | bit(owner),
                    owner: answers.tile,
                    data: None,
                };
                self.await_line(line, entry);
                answers.short(Node::Core(owner), Kind::FwdGetS, line, requester);
            }
            // The line was moved here too early: the request is lost (`give_back`).
            State::FromMemory | State::FromOwner => answers.met.push((Hazard::EvictionDuringLoad, line)),
        }
    }

    fn store(&mut self, message: &Message, answers: &mut Answers<'_>) {
        let (line, requester) = (message.line, message.requester);
        let owned = Entry {
            state: State::Modified,
            sharers: 0,
            owner: requester,
            data: None,
        };
        let Some(entry) = self.lines.get_mut(&line) else {
            self.lines.insert(line, owned);
            answers.short(Node::Memory, Kind::FwdGetM, line, requester);
            return;
        };
        match entry.state {
            State::Invalid => {
                // After the flush of a shared line, no core invalidates the sharers that remain here,
                // but the requester waits for their acknowledgments (fault).
                answers.supply(line, requester, &entry.data, entry.sharers.count_ones());
                *entry = owned;
            }
            State::Shared => {
                for sharer in cores_of(entry.sharers) {
                    answers.short(Node::Core(sharer), Kind::Inv, line, requester);
                }
                answers.supply(line, requester, &entry.data, entry.sharers.count_ones());
                *entry = owned;
            }
            State::Modified => {
                let owner = entry.owner;
                *entry = owned;
                answers.short(Node::Core(owner), Kind::FwdGetM, line, requester);
            }
            State::FromMemory | State::FromOwner => answers.met.push((Hazard::EvictionDuringLoad, line)),
        }
    }

    /// Takes a line that a core gives back.
    fn give_back(&mut self, message: Message, answers: &mut Answers<'_>) {
        let (line, core) = (message.line, message.requester);
        let modified = message.kind == Kind::PutM;
        answers.short(Node::Core(core), Kind::PutAck, line, core);
        if let Some(place) = self.place_of(line) {
            let Some(Some((_, entry))) = self.pending.get_mut(place) else {
                return;
            };
            let is_owner = entry.owner == core;
            if modified {
                answers.met.push((Hazard::EvictionDuringLoad, line));
            }
            if !modified {
                entry.sharers &= !bit(core);
            } else if !is_owner {
                // The line is on its way from this core to its home. The hardware moves the entry to
                // the second level before the line has come (fault).
                entry.sharers &= !bit(core);
                entry.data = message.data;
                if let Some((line, entry)) = self.free(place) {
                    self.lines.insert(line, entry);
                }
            }
            // The core of the home tile counts as owner, and remains a sharer (fault).
            return;
        }
        let Some(entry) = self.lines.get_mut(&line) else { return };
        match entry.state {
            State::Invalid => {}
            State::Shared | State::FromMemory | State::FromOwner if modified => {
                if entry.owner != core {
                    entry.sharers &= !bit(core);
                    entry.data = message.data;
                } else {
                    answers.met.push((Hazard::EvictionDuringLoad, line));
                }
            }
            State::Shared => {
                entry.sharers &= !bit(core);
                if entry.sharers == 0 {
                    entry.state = State::Invalid;
                }
            }
            State::FromMemory | State::FromOwner => entry.sharers &= !bit(core),
            State::Modified if modified && entry.owner == core => {
                entry.state = State::Invalid;
                entry.owner = answers.tile;
                entry.data = message.data;
            }
            State::Modified => {}
        }
    }

    fn flush(&mut self, message: &Message, answers: &mut Answers<'_>) {
        let (line, requester) = (message.line, message.requester);
        let Some(entry) = self.lines.get_mut(&line) else { return };
        match entry.state {
            State::Invalid => answers.write_back(line, requester, &entry.data),
            State::Shared => {
                // The sharers remain (fault).
                if entry.sharers != 0 {
                    answers.met.push((Hazard::FlushOfSharedLine, line));
                }
                answers.write_back(line, requester, &entry.data);
                entry.state = State::Invalid;
            }
            State::Modified => {
                let owner = entry.owner;
                answers.short(Node::Core(owner), Kind::FwdFlush, line, requester);
            }
            State::FromMemory | State::FromOwner => {}
        }
    }

    /// Takes a line from memory or from its owner.
    fn arrive(&mut self, message: Message, answers: &mut Answers<'_>) {
        let line = message.line;
        if let Some(place) = self.place_of(line) {
            if let Some((line, mut entry)) = self.free(place) {
                entry.state = State::Shared;
                entry.data = message.data;
                self.lines.insert(line, entry);
            }
            return;
        }
        // A line that nobody waits for is dropped.
        let Some(entry) = self.lines.get_mut(&line) else { return };
        if matches!(entry.state, State::FromMemory | State::FromOwner) {
            entry.state = State::Shared;
            entry.data = message.data;
            // The line has no entry any more. The hardware frees the first one, which another line
            // can have: its home forgets that line (fault).
            if let Some((forgotten, _)) = self.free(0) {
                answers.met.push((Hazard::EvictionDuringLoad, forgotten));
            }
        }
    }
}
