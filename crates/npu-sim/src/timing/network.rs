//! What is between several cores and memory: a mesh, and the one memory that all share.
//!
//! Nothing here is measured. What is read (`microarch.md` 1, 8, 11): the tiles are a mesh of four by four, memory is in one of them,
//! data and instruction misses go there, and memory takes one request at a time, answered after two cycles and its delay.
//! There are no numbers for what a router takes, so a hop takes what the user says. That tiles are numbered row by row, and that a
//! way is as short as can be, is assumed. With one core there is no network, and its controller is all that there is.

use super::memory::WRITE_BUSY;
use npu_mc::machine;

const MESH_WIDTH: u32 = machine::MESH_WIDTH;
const TILES: u32 = MESH_WIDTH * machine::MESH_HEIGHT;
const MEMORY_TILE: u32 = machine::MEMORY_TILE;
/// Cycles that a read takes memory for, without its delay.
const READ_BUSY: u64 = machine::MEMORY_ANSWER as u64;

/// Hops from a tile to that of memory. Tiles beyond the mesh are taken to be in it again.
pub(super) fn hops(tile: u32) -> u64 {
    let place = |tile: u32| (tile % MESH_WIDTH, tile / MESH_WIDTH);
    let ((x, y), (to_x, to_y)) = (place(tile % TILES), place(MEMORY_TILE));
    u64::from(x.abs_diff(to_x) + y.abs_diff(to_y))
}

/// The way to memory of several cores.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// There are several cores.
    pub shared: bool,
    /// Cycles of a hop.
    pub hop_delay: u64,
    /// When memory has done what it took.
    free_at: u64,
}

impl Network {
    /// A read that a controller so many `hops` away starts in cycle `start`. Gives the cycles that it takes longer than that of a
    /// core that is alone.
    #[inline]
    pub fn read(&mut self, hops: u64, start: u64, delay: u64) -> u64 {
        self.take(hops, start, READ_BUSY + delay)
    }

    /// A write, likewise.
    #[inline]
    pub fn write(&mut self, hops: u64, start: u64, delay: u64) -> u64 {
        self.take(hops, start, WRITE_BUSY + delay)
    }

    fn take(&mut self, hops: u64, start: u64, busy: u64) -> u64 {
        if !self.shared {
            return 0;
        }
        let way = hops * self.hop_delay;
        let taken = self.free_at.max(start + way);
        self.free_at = taken + busy;
        taken - start + way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_those_of_the_mesh() {
        // Row by row, memory in the last corner.
        let hops: Vec<u64> = (0..16).map(hops).collect();
        assert_eq!(hops, [6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0]);
        assert_eq!(super::hops(16), 6);
        assert_eq!(super::hops(u32::MAX), 0);
    }

    #[test]
    fn one_core_has_no_network() {
        let mut network = Network {
            hop_delay: 7,
            ..Network::default()
        };
        assert!((0..5).all(|_| network.read(6, 10, 20) == 0 && network.write(6, 10, 20) == 0));
    }

    /// Reads take memory for 2 cycles and its delay, writes for 4 and it.
    #[test]
    fn who_comes_while_memory_is_taken_waits() {
        let mut network = Network {
            shared: true,
            hop_delay: 3,
            ..Network::default()
        };
        // Six hops there and back; memory is taken from 118 on until 130.
        assert_eq!(network.read(6, 100, 10), 36);
        // One hop: there at 104, waits for 26 cycles until 130, and has a hop back. Memory is taken until 142.
        assert_eq!(network.read(1, 101, 10), 3 + 26 + 3);
        // A write that comes when memory is free takes it from 153 on until 167.
        assert_eq!(network.write(1, 150, 10), 6);
        assert_eq!(network.read(0, 160, 10), 7);
        // Long after that nothing is in the way.
        assert_eq!(network.read(0, 1000, 10), 0);
    }
}
