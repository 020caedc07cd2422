//! The mesh between the tiles: it computes the links of a message and their cycles
//! (`docs/machine/several-cores.md`).
//!
//! A message goes along its row first and then along its column. Its flits follow each other
//! through a link, one a cycle. The hardware interleaves the flits of virtual networks; in the model,
//! the message that comes first passes first. The model neglects the links that short messages
//! occupy.

use super::resource::Resource;
use super::trip::{Place, Trip};
use crate::topology::{CORE_LIMIT, Topology};
use npu_mc::machine;

/// The number of links of a router: those to the four neighbors and to its tile, and the one from
/// its tile.
const DIRECTIONS: u32 = 6;
/// The direction to the tile of the router.
const LOCAL: u32 = 4;
/// The link from the tile to its router.
const ENTRY: u32 = 5;
/// Cycles of a message of one flit, apart from its hops; the first half passes before the first
/// link.
pub(super) const MESSAGE: u64 = machine::MESSAGE_CYCLES as u64;

/// The virtual networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Net {
    /// Requests of cores to directories.
    Request,
    /// Lines and acknowledgments.
    Response,
    /// Requests of directories to cores and to memory.
    Forward,
    /// Barriers and I/O.
    Service,
}

/// The number of virtual networks.
pub(super) const NETS: usize = 4;

/// A message between two tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The tile of the sender.
    pub from: u32,
    /// The tile of the receiver.
    pub to: u32,
    pub net: Net,
    /// The number of flits.
    pub flits: u32,
}

/// The links of the mesh.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    pub topology: Topology,
    /// Cycles of a hop.
    hop_delay: u64,
    /// The cycles for which a flit occupies a link.
    link_cycles: u64,
    /// The links, by tile of origin and direction.
    links: Vec<Resource>,
    /// The number of messages that left their tile, and the cycles that messages waited for links.
    pub messages: u64,
    pub waited: u64,
    /// The flits that passed each link, in the order of `links`.
    flits: Vec<u64>,
}

/// The use of a link between two neighboring tiles in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// The tile of origin.
    pub from: u32,
    /// The neighbor.
    pub to: u32,
    /// The flits of all virtual networks.
    pub flits: u64,
}

impl Mesh {
    pub fn new(hop_delay: u32, link_cycles: u32) -> Mesh {
        Mesh {
            topology: Topology::default(),
            hop_delay: hop_delay.into(),
            link_cycles: link_cycles.into(),
            links: vec![Resource::default(); CORE_LIMIT * DIRECTIONS as usize],
            messages: 0,
            waited: 0,
            flits: vec![0; CORE_LIMIT * DIRECTIONS as usize],
        }
    }

    /// Returns the links that messages have used, by tile of origin.
    pub fn links(&self) -> Vec<LinkUse> {
        let tiles = self.topology.tiles();
        let pairs = (0..tiles).flat_map(|from| (0..tiles).map(move |to| (from, to)));
        let neighbors = pairs.filter(|&(from, to)| self.topology.hops(from, to) == 1);
        let uses = neighbors.map(|(from, to)| {
            let (direction, _) = step(&self.topology, from, to);
            let flits = self.flits.get((from * DIRECTIONS + direction) as usize);
            LinkUse {
                from,
                to,
                flits: flits.copied().unwrap_or_default(),
            }
        });
        uses.filter(|link| link.flits != 0).collect()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&mut self) {
        (self.messages, self.waited) = (0, 0);
        self.flits.fill(0);
    }

    /// Returns the cycles of the hops from one tile to another.
    pub fn hops(&self, from: u32, to: u32) -> u64 {
        self.hop_delay * u64::from(self.topology.hops(from, to))
    }

    /// Moves the trip from the start of a message to the arrival of its last flit. Tile numbers
    /// wrap. Returns the cycles that the message waited for links.
    pub fn send(&mut self, message: Message, trip: &mut Trip, past: u64) -> u64 {
        let before = self.waited;
        let tiles = self.topology.tiles();
        let (mut at, to) = (message.from % tiles, message.to % tiles);
        self.messages += u64::from(at != to);
        self.pass(at, ENTRY, message, trip, past);
        trip.spend(Place::Network, MESSAGE / 2);
        while at != to {
            let (direction, next) = step(&self.topology, at, to);
            self.pass(at, direction, message, trip, past);
            trip.spend(Place::Network, self.hop_delay);
            at = next;
        }
        self.pass(at, LOCAL, message, trip, past);
        let rest = u64::from(message.flits.saturating_sub(1)) * self.link_cycles;
        trip.spend(Place::Network, MESSAGE - MESSAGE / 2 + rest);
        self.waited - before
    }

    /// Waits until the link is free for all flits of the message.
    fn pass(&mut self, at: u32, direction: u32, message: Message, trip: &mut Trip, past: u64) {
        let link = (at * DIRECTIONS + direction) as usize;
        let (Some(resource), Some(flits)) = (self.links.get_mut(link), self.flits.get_mut(link)) else {
            // Every tile has its links.
            return;
        };
        *flits += u64::from(message.flits);
        let taken = if message.flits > machine::WORD_FLITS {
            let length = u64::from(message.flits) * self.link_cycles;
            resource.take(trip.at, length, past)
        } else if direction == LOCAL && matches!(message.net, Net::Service | Net::Request) {
            resource.free_at(trip.at)
        } else {
            trip.at
        };
        self.waited += taken.saturating_sub(trip.at);
        trip.stay(Place::Link, taken);
    }
}

/// Returns the direction in which a message for tile `to` leaves tile `at`, and the neighbor there.
fn step(topology: &Topology, at: u32, to: u32) -> (u32, u32) {
    let width = topology.width();
    let (x, to_x) = (at % width, to % width);
    if x < to_x {
        (0, at + 1)
    } else if x > to_x {
        (1, at - 1)
    } else if at < to {
        (2, at + width)
    } else {
        (3, at - width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(mesh: &mut Mesh, from: u32, to: u32, flits: u32, at: u64) -> u64 {
        let mut trip = Trip::new(at);
        let net = Net::Request;
        mesh.send(Message { from, to, net, flits }, &mut trip, 0);
        trip.at
    }

    #[test]
    fn a_way_has_the_hops_between_its_places() {
        let mut mesh = Mesh::new(10, 1);
        // Routes to the last corner, row by row.
        let mut hops = |tile: u32| {
            let at = 1000 * (1 + u64::from(tile));
            (deliver(&mut mesh, tile, 15, 1, at) - at - MESSAGE) / 10
        };
        let hops: Vec<u64> = (0..16).map(&mut hops).collect();
        assert_eq!(hops, [6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0]);
        assert_eq!(deliver(&mut mesh, 31, 15, 1, 7), 13);
        assert_eq!(deliver(&mut mesh, u32::MAX, 16, 1, 2000), 2066);
        // A message to its own tile has no hop.
        assert_eq!(mesh.messages, 16);
        // All messages to the last corner of a column come from the rows above it.
        let flits = |from, to| {
            mesh.links()
                .iter()
                .find(|link| (link.from, link.to) == (from, to))
                .map(|link| link.flits)
        };
        assert_eq!((flits(11, 15), flits(13, 14), flits(15, 11)), (Some(12), Some(2), None));
        mesh.reset_counters();
        assert!(mesh.links().is_empty() && mesh.messages == 0);
    }

    #[test]
    fn messages_wait_for_a_link_that_both_take() {
        let mut mesh = Mesh::new(2, 1);
        // 0, 1, 2, 3, 7; ten flits.
        assert_eq!(deliver(&mut mesh, 0, 7, 10, 100), 100 + 6 + 8 + 9);
        // The first message occupies the link from tile 1 to tile 2 from 105 to 115.
        assert_eq!(deliver(&mut mesh, 1, 2, 10, 102), 115 + 2 + 3 + 9);
        assert_eq!(mesh.waited, 10);
        // Opposite directions and other rows use separate links.
        assert_eq!(deliver(&mut mesh, 2, 1, 10, 102), 119);
        assert_eq!(deliver(&mut mesh, 5, 6, 10, 102), 119);
        assert_eq!(mesh.waited, 10);
        // Virtual networks share links. Short messages do not wait.
        let mut trip = Trip::new(102);
        let net = Net::Response;
        let (from, to, flits) = (1, 2, 10);
        mesh.send(Message { from, to, net, flits }, &mut trip, 0);
        assert_eq!(trip.at, 125 + 2 + 3 + 9);
        assert_eq!(deliver(&mut mesh, 1, 2, 1, 102), 110);
    }
}
