//! Messages between caches, directories and memory, and the network that delivers them.
//!
//! Messages of one source, destination and virtual network arrive in the order in which they were
//! sent. All others can arrive in any order.

use crate::findings::Hazard;
use npu_mc::machine;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;

/// The bytes of a line.
pub(crate) type Bytes = [u8; machine::CACHE_LINE as usize];

/// A set of cores, one bit for each.
pub(crate) type Cores = u16;

const _: () = assert!(
    machine::BARRIER_IDS / machine::BARRIER_COUNTERS <= Cores::BITS,
    "a bit for each tile"
);

/// The faults that a step met, and the numbers of their lines.
pub(crate) type Met = SmallVec<[(Hazard, u32); 1]>;

/// A unit that sends and receives messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The controller of the data cache of the core with this number.
    Core(u8),
    /// The directory and second-level cache of the tile with this number.
    Home(u8),
    /// The memory tile.
    Memory,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Core(core) => write!(f, "core {core}"),
            Node::Home(tile) => write!(f, "home {tile}"),
            Node::Memory => f.write_str("memory"),
        }
    }
}

/// A virtual network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Net {
    /// From a core to a directory.
    Request,
    /// From a directory to a core or memory, and reads by a core that go past the directory.
    Forward,
    /// Lines, acknowledgments and writes to memory.
    Response,
}

/// The kind of a message, with the name that the hardware description gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load requests the line.
    GetS,
    /// A store requests the line.
    GetM,
    /// A core gives back a line that it shared.
    PutS,
    /// A core gives back a line that it had modified.
    PutM,
    /// A core flushes a line that it does not hold.
    DirFlush,
    /// The receiver sends the line to the requester of a load.
    FwdGetS,
    /// The receiver sends the line to the requester of a store.
    FwdGetM,
    /// The receiver drops its copy and acknowledges that to the requester.
    Inv,
    /// The receiver writes the line to memory.
    FwdFlush,
    /// The line.
    Data,
    /// A copy was dropped.
    InvAck,
    /// The home has taken a line that was given back.
    PutAck,
    /// A write to memory.
    WriteBack,
}

impl Kind {
    /// Returns the virtual network of the message.
    pub fn net(self) -> Net {
        match self {
            Kind::GetS | Kind::GetM | Kind::PutS | Kind::PutM | Kind::DirFlush => Net::Request,
            Kind::FwdGetS | Kind::FwdGetM | Kind::Inv | Kind::FwdFlush => Net::Forward,
            Kind::Data | Kind::InvAck | Kind::PutAck | Kind::WriteBack => Net::Response,
        }
    }

    /// Returns the name in the hardware description.
    pub fn name(self) -> &'static str {
        match self {
            Kind::GetS => "GETS",
            Kind::GetM => "GETM",
            Kind::PutS => "PUTS",
            Kind::PutM => "PUTM",
            Kind::DirFlush => "DIR_FLUSH",
            Kind::FwdGetS => "FWD_GETS",
            Kind::FwdGetM => "FWD_GETM",
            Kind::Inv => "INV",
            Kind::FwdFlush => "FWD_FLUSH",
            Kind::Data => "DATA",
            Kind::InvAck => "INV_ACK",
            Kind::PutAck => "PUT_ACK",
            Kind::WriteBack => "WB",
        }
    }
}

/// A message about a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub kind: Kind,
    /// The number of the line: its address divided by the size of a line.
    pub line: u32,
    /// The core whose request caused the message.
    pub requester: u8,
    /// With [`Kind::Data`]: the acknowledgments that the requester waits for.
    pub acks: u8,
    /// The line, in messages that carry one.
    pub data: Option<Box<Bytes>>,
    /// The bytes that a write to memory changes, one bit each.
    pub mask: u64,
}

impl Message {
    /// Creates a message without a line.
    pub fn short(kind: Kind, line: u32, requester: u8) -> Message {
        Message {
            kind,
            line,
            requester,
            acks: 0,
            data: None,
            mask: 0,
        }
    }

    /// Creates a message with a line, all bytes of which count.
    pub fn with_line(kind: Kind, line: u32, requester: u8, data: Box<Bytes>) -> Message {
        Message {
            data: Some(data),
            mask: u64::MAX,
            ..Message::short(kind, line, requester)
        }
    }
}

/// The endpoints and the virtual network of messages that stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Channel {
    pub from: Node,
    pub to: Node,
    pub net: Net,
}

/// The messages on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    /// The channels with messages, in order; none is empty.
    channels: Vec<(Channel, VecDeque<Message>)>,
}

impl Network {
    pub fn send(&mut self, from: Node, to: Node, message: Message) {
        let net = message.kind.net();
        let channel = Channel { from, to, net };
        match self.channels.binary_search_by_key(&channel, |(key, _)| *key) {
            Ok(place) => self.channels[place].1.push_back(message),
            Err(place) => self.channels.insert(place, (channel, VecDeque::from([message]))),
        }
    }

    /// Iterates over the first message of each channel.
    pub fn heads(&self) -> impl Iterator<Item = (Channel, &Message)> {
        self.channels
            .iter()
            .filter_map(|(channel, queue)| Some((*channel, queue.front()?)))
    }

    /// Returns the first message of a channel.
    pub fn head(&self, channel: Channel) -> Option<&Message> {
        let place = self.channels.binary_search_by_key(&channel, |(key, _)| *key).ok()?;
        self.channels[place].1.front()
    }

    /// Removes the first message of a channel.
    pub fn take(&mut self, channel: Channel) -> Option<Message> {
        let place = self.channels.binary_search_by_key(&channel, |(key, _)| *key).ok()?;
        let message = self.channels[place].1.pop_front();
        if self.channels[place].1.is_empty() {
            self.channels.remove(place);
        }
        message
    }

    /// Returns whether a channel has a message of a kind about a line.
    pub fn has(&self, channel: Channel, kind: Kind, line: u32) -> bool {
        let queue = self.channels.iter().find(|(key, _)| *key == channel);
        let mut messages = queue.into_iter().flat_map(|(_, queue)| queue);
        messages.any(|message| message.kind == kind && message.line == line)
    }

    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_keeps_its_order_and_others_are_free() {
        let mut network = Network::default();
        let (core, home) = (Node::Core(0), Node::Home(1));
        network.send(core, home, Message::short(Kind::GetS, 1, 0));
        network.send(core, home, Message::short(Kind::PutS, 2, 0));
        network.send(home, core, Message::short(Kind::Inv, 3, 0));
        network.send(home, core, Message::short(Kind::PutAck, 4, 0));
        let heads: Vec<Channel> = network.heads().map(|(channel, _)| channel).collect();
        let lines: Vec<u32> = network.heads().map(|(_, message)| message.line).collect();
        assert_eq!(lines, [1, 3, 4]);
        assert_eq!(network.take(heads[0]).map(|message| message.line), Some(1));
        assert_eq!(network.head(heads[0]).map(|message| message.line), Some(2));
        for channel in heads {
            assert!(network.take(channel).is_some());
        }
        assert!(network.is_empty());
    }
}
