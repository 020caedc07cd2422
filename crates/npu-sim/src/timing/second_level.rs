//! The tags of the second-level cache, and the replacement policy of caches in the many-core.
//!
//! The model is based on reading the hardware description before the mesh could be run (measured
//! since: `docs/machine/several-cores.md`): the second level has 128 sets of 8 ways, and the data
//! caches of the cores use pseudo-LRU. The model assumes that the second level does so as well, and
//! that pseudo-LRU is the usual tree of bits.

use npu_mc::machine;

const SETS: usize = machine::L2_SETS as usize;
const WAYS: usize = machine::L2_WAYS as usize;

/// An invalid line number.
const EMPTY: u32 = u32::MAX;

/// Returns the next victim in a set of `ways` ways, a power of two up to 8. The bits of the tree
/// select the half that was used less recently.
pub(super) fn victim(tree: u8, ways: usize) -> usize {
    let mut node = 1;
    while node < ways {
        node = 2 * node + usize::from(tree >> node & 1);
    }
    node - ways
}

/// Returns the tree after a use of `way`: every bit on the path to it points to the other half.
pub(super) fn used(tree: u8, ways: usize, way: usize) -> u8 {
    let (mut tree, mut node) = (tree, ways + way % ways);
    while node > 1 {
        let parent = node / 2;
        let bit = 1 << parent;
        tree = if node & 1 == 0 { tree | bit } else { tree & !bit };
        node = parent;
    }
    tree
}

/// The tags of the second-level cache.
#[derive(Clone)]
pub(super) struct SecondLevel {
    tags: Box<[[u32; WAYS]; SETS]>,
    /// The ways with bytes that memory lacks, one bit each.
    dirty: [u8; SETS],
    trees: [u8; SETS],
}

impl SecondLevel {
    pub fn new() -> SecondLevel {
        SecondLevel {
            tags: Box::new([[EMPTY; WAYS]; SETS]),
            dirty: [0; SETS],
            trees: [0; SETS],
        }
    }

    fn find(&self, line: u32) -> Option<(usize, usize)> {
        let set = line as usize % SETS;
        let way = self.tags[set].iter().position(|&tag| tag == line)?;
        Some((set, way))
    }

    /// Looks up a line, which counts as a use; returns whether it hits.
    pub fn look(&mut self, line: u32) -> bool {
        let found = self.find(line);
        if let Some((set, way)) = found {
            self.trees[set] = used(self.trees[set], WAYS, way);
        }
        found.is_some()
    }

    /// Marks a line as equal to memory.
    pub fn clean(&mut self, line: u32) {
        if let Some((set, way)) = self.find(line) {
            self.dirty[set] &= !(1 << way);
        }
    }

    /// Inserts or uses a line; returns whether an evicted line has to be written to memory.
    #[must_use]
    pub fn put(&mut self, line: u32, dirty: bool) -> bool {
        let (set, way, evicts) = match self.find(line) {
            Some((set, way)) => (set, way, false),
            None => {
                let set = line as usize % SETS;
                let way = victim(self.trees[set], WAYS);
                let evicts = self.dirty[set] >> way & 1 != 0;
                self.tags[set][way] = line;
                self.dirty[set] &= !(1 << way);
                (set, way, evicts)
            }
        };
        self.dirty[set] |= u8::from(dirty) << way;
        self.trees[set] = used(self.trees[set], WAYS, way);
        evicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_up_what_was_used_longest_ago_of_each_half() {
        let mut tree = 0;
        let mut order = Vec::new();
        for _ in 0..8 {
            let way = victim(tree, 8);
            order.push(way);
            tree = used(tree, 8, way);
        }
        assert_eq!(order, [0, 4, 2, 6, 1, 5, 3, 7]);
        let mut tree = [0, 1, 2, 3].into_iter().fold(0, |tree, way| used(tree, 4, way));
        assert_eq!(victim(tree, 4), 0);
        // After a use of way 0 the other half is the older one, and in it way 2 is older than way
        // 3.
        tree = used(tree, 4, 0);
        assert_eq!(victim(tree, 4), 2);
    }

    #[test]
    fn a_set_holds_eight_lines() {
        let mut cache = SecondLevel::new();
        let line = |k: u32| 5 + k * machine::L2_SETS;
        assert!(!cache.look(line(0)));
        for k in 0..machine::L2_WAYS {
            assert!(!cache.put(line(k), k == 0));
        }
        assert!((0..machine::L2_WAYS).all(|k| cache.look(line(k))));
        // All lines were used in order: the first one is evicted and written. The line in its way
        // is clean then.
        assert!(cache.put(line(8), false));
        assert!(!cache.look(line(0)) && cache.look(line(8)));
        // A line that was cleaned is not written again.
        assert!(!cache.put(line(8), true));
        cache.clean(line(8));
        assert!((9..20).all(|k| !cache.put(line(k), false)));
        assert!(!cache.look(line(8)));
    }
}
