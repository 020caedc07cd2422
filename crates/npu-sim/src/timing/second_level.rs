//! The tags of the second-level cache.
//!
//! The second level of each tile has 128 sets of 8 ways. It uses empty ways first, the data caches
//! of the cores do not (`docs/machine/several-cores.md`). The model assumes that the second level
//! chooses victims by pseudo-LRU as well, and that pseudo-LRU is the usual tree of bits.

use crate::replacement::{used, victim};
use npu_mc::machine;

const SETS: usize = machine::L2_SETS as usize;
const WAYS: usize = machine::L2_WAYS as usize;

/// An invalid line number.
const EMPTY: u32 = u32::MAX;

/// The tags of the second-level cache of a tile. It has an entry for each line that a data cache
/// holds, too.
#[derive(Clone)]
pub(super) struct SecondLevel {
    tags: Box<[[u32; WAYS]; SETS]>,
    /// The ways with the bytes of their lines, one bit each; a line that a core has modified has
    /// none.
    bytes: [u8; SETS],
    trees: [u8; SETS],
}

impl SecondLevel {
    pub fn new() -> SecondLevel {
        SecondLevel {
            tags: Box::new([[EMPTY; WAYS]; SETS]),
            bytes: [0; SETS],
            trees: [0; SETS],
        }
    }

    fn find(&self, line: u32) -> Option<(usize, usize)> {
        let set = line as usize % SETS;
        let way = self.tags[set].iter().position(|&tag| tag == line)?;
        Some((set, way))
    }

    /// Looks up a line, which counts as a use; returns whether its bytes are there.
    pub fn look(&mut self, line: u32) -> bool {
        let Some((set, way)) = self.find(line) else {
            return false;
        };
        self.trees[set] = used(self.trees[set], WAYS, way);
        self.bytes[set] >> way & 1 != 0
    }

    /// Inserts or uses a line, with or without its bytes; returns a line that it evicts.
    #[must_use]
    pub fn put(&mut self, line: u32, has_bytes: bool) -> Option<u32> {
        let (set, way, evicted) = match self.find(line) {
            Some((set, way)) => (set, way, None),
            None => {
                let set = line as usize % SETS;
                let empty = self.tags[set].iter().position(|&tag| tag == EMPTY);
                let way = empty.unwrap_or(victim(self.trees[set], WAYS));
                let old = std::mem::replace(&mut self.tags[set][way], line);
                (set, way, (old != EMPTY).then_some(old))
            }
        };
        self.bytes[set] = self.bytes[set] & !(1 << way) | u8::from(has_bytes) << way;
        self.trees[set] = used(self.trees[set], WAYS, way);
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_eight_lines() {
        let mut cache = SecondLevel::new();
        let line = |k: u32| 5 + k * machine::L2_SETS;
        assert!(!cache.look(line(0)));
        for k in 0..machine::L2_WAYS {
            assert_eq!(cache.put(line(k), true), None);
        }
        assert!((0..machine::L2_WAYS).all(|k| cache.look(line(k))));
        // All lines were used in order: the first one is evicted.
        assert_eq!(cache.put(line(8), false), Some(line(0)));
        assert!(!cache.look(line(0)));
        // A core has modified the line.
        assert!(!cache.look(line(8)));
        assert_eq!(cache.put(line(8), true), None);
        assert!(cache.look(line(8)));
    }
}
