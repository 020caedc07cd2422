//! The mesh between the tiles: it computes the links of a message and their cycles.
//!
//! The model is based on reading the hardware description before the mesh could be run (measured
//! since: `docs/machine/several-cores.md`): the tiles form a mesh of four by four, memory is in
//! tile 15, the host in tile 14. The model assumes that tiles are numbered row by row, that a
//! message first follows its row and then the column, and that a link carries one message at a time
//! in each direction. The user configures the cycles of a hop and of a message on a link, since no
//! source documents them.

use super::resource::Resource;
use super::trip::{Place, Trip};
use npu_mc::machine;

const WIDTH: u32 = machine::MESH_WIDTH;
const TILES: u32 = WIDTH * machine::MESH_HEIGHT;
/// The number of directions in which links leave a tile.
const DIRECTIONS: u32 = 4;

/// The links of the mesh.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    /// Cycles of a hop.
    hop_delay: u64,
    /// The cycles for which a message occupies a link.
    link_cycles: u64,
    /// The links, by tile of origin and direction.
    links: Vec<Resource>,
    /// The number of messages that left their tile, and the cycles that they waited for links.
    pub messages: u64,
    pub waited: u64,
}

impl Mesh {
    pub fn new(hop_delay: u32, link_cycles: u32) -> Mesh {
        Mesh {
            hop_delay: hop_delay.into(),
            link_cycles: link_cycles.into(),
            links: vec![Resource::default(); (TILES * DIRECTIONS) as usize],
            messages: 0,
            waited: 0,
        }
    }

    /// Sends a message from one tile to another. Tile numbers wrap.
    pub fn send(&mut self, from: u32, to: u32, trip: &mut Trip, past: u64) {
        let (mut at, to) = (from % TILES, to % TILES);
        self.messages += u64::from(at != to);
        while at != to {
            let (direction, next) = step(at, to);
            let link = self.links.get_mut((at * DIRECTIONS + direction) as usize);
            // Every tile has its links.
            let taken = link.map_or(trip.at, |link| link.take(trip.at, self.link_cycles, past));
            self.waited += taken.saturating_sub(trip.at);
            trip.stay(Place::Link, taken);
            trip.spend(Place::Network, self.hop_delay);
            at = next;
        }
    }

    /// Sends a message without a trip; returns the cycle of its arrival.
    pub fn deliver(&mut self, from: u32, to: u32, at: u64, past: u64) -> u64 {
        let mut trip = Trip::new(at);
        self.send(from, to, &mut trip, past);
        trip.at
    }
}

/// Returns the direction in which a message for tile `to` leaves tile `at`, and the neighbor there.
fn step(at: u32, to: u32) -> (u32, u32) {
    let (x, to_x) = (at % WIDTH, to % WIDTH);
    if x < to_x {
        (0, at + 1)
    } else if x > to_x {
        (1, at - 1)
    } else if at < to {
        (2, at + WIDTH)
    } else {
        (3, at - WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_has_the_hops_between_its_places() {
        let mut mesh = Mesh::new(10, 1);
        // Routes to the last corner, row by row.
        let mut hops = |tile: u32| {
            let at = 1000 * (1 + u64::from(tile));
            (mesh.deliver(tile, 15, at, 0) - at) / 10
        };
        let hops: Vec<u64> = (0..16).map(&mut hops).collect();
        assert_eq!(hops, [6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0]);
        assert_eq!(mesh.deliver(31, 15, 7, 0), 7);
        assert_eq!(mesh.deliver(u32::MAX, 16, 2000, 0), 2060);
        // A message to its own tile uses no link.
        assert_eq!(mesh.messages, 16);
    }

    #[test]
    fn messages_wait_for_a_link_that_both_take() {
        let mut mesh = Mesh::new(2, 3);
        // 0, 1, 2, 3, 7.
        assert_eq!(mesh.deliver(0, 7, 100, 0), 108);
        // The message reaches tile 1 when the link to tile 2 is free for only two more cycles; the
        // link is occupied from 102 to 105.
        assert_eq!(mesh.deliver(1, 2, 100, 0), 107);
        assert_eq!(mesh.waited, 5);
        // Opposite directions and other rows use separate links.
        assert_eq!(mesh.deliver(2, 1, 100, 0), 102);
        assert_eq!(mesh.deliver(5, 6, 100, 0), 102);
        assert_eq!(mesh.waited, 5);
        let mut trip = Trip::new(103);
        mesh.send(3, 7, &mut trip, 0);
        // The first message occupies the link from 3 to 7 for three cycles from 106 on: the new one
        // fits before it.
        assert_eq!(trip.at, 105);
        let mut trip = Trip::new(104);
        mesh.send(3, 7, &mut trip, 0);
        let legs: Vec<(Place, u64)> = trip.legs.iter().map(|leg| (leg.place, leg.to)).collect();
        assert_eq!(legs, [(Place::Link, 109), (Place::Network, 111)]);
    }
}
