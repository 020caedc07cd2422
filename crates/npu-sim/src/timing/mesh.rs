//! The mesh between the tiles: which links a message takes, and when.
//!
//! Read before the mesh could be run (measured since: `docs/machine/several-cores.md`): the tiles are a mesh of four by four, memory is in tile 15, the host in tile 14. Assumed: tiles
//! are numbered row by row; a message goes along its row first, then along the column; a link is taken by one message at a time, in
//! each direction. What a hop takes, and how long a message takes a link, is what the user says: nothing gives a number for either.

use super::resource::Resource;
use super::trip::{Place, Trip};
use npu_mc::machine;

const WIDTH: u32 = machine::MESH_WIDTH;
const TILES: u32 = WIDTH * machine::MESH_HEIGHT;
/// Directions in which links leave a tile.
const DIRECTIONS: u32 = 4;

/// The links.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    /// Cycles of a hop.
    hop_delay: u64,
    /// Cycles that a message takes a link for.
    link_cycles: u64,
    /// By tile that they leave and direction.
    links: Vec<Resource>,
    /// Messages that left their tile, and the cycles that they waited for links.
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

    /// A message goes from one tile to another. Tiles beyond the mesh are taken to be in it again.
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

    /// The cycle in which a message that nobody waits for has come.
    pub fn deliver(&mut self, from: u32, to: u32, at: u64, past: u64) -> u64 {
        let mut trip = Trip::new(at);
        self.send(from, to, &mut trip, past);
        trip.at
    }
}

/// The direction in which a message leaves tile `at` for another one, and the neighbour there.
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
        // To the last corner, row by row.
        let mut hops = |tile: u32| {
            let at = 1000 * (1 + u64::from(tile));
            (mesh.deliver(tile, 15, at, 0) - at) / 10
        };
        let hops: Vec<u64> = (0..16).map(&mut hops).collect();
        assert_eq!(hops, [6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0]);
        assert_eq!(mesh.deliver(31, 15, 7, 0), 7);
        assert_eq!(mesh.deliver(u32::MAX, 16, 2000, 0), 2060);
        // The one to its own tile leaves it not.
        assert_eq!(mesh.messages, 16);
    }

    #[test]
    fn messages_wait_for_a_link_that_both_take() {
        let mut mesh = Mesh::new(2, 3);
        // 0, 1, 2, 3, 7.
        assert_eq!(mesh.deliver(0, 7, 100, 0), 108);
        // Is at 1 when the link from there to 2 is free for two cycles only: it is taken from 102 to 105.
        assert_eq!(mesh.deliver(1, 2, 100, 0), 107);
        assert_eq!(mesh.waited, 5);
        // The way back has links of its own, and so has another row.
        assert_eq!(mesh.deliver(2, 1, 100, 0), 102);
        assert_eq!(mesh.deliver(5, 6, 100, 0), 102);
        assert_eq!(mesh.waited, 5);
        let mut trip = Trip::new(103);
        mesh.send(3, 7, &mut trip, 0);
        // The first message takes the link from 3 to 7 from 106 on for three cycles: there is room before it.
        assert_eq!(trip.at, 105);
        let mut trip = Trip::new(104);
        mesh.send(3, 7, &mut trip, 0);
        let legs: Vec<(Place, u64)> = trip.legs.iter().map(|leg| (leg.place, leg.to)).collect();
        assert_eq!(legs, [(Place::Link, 109), (Place::Network, 111)]);
    }
}
