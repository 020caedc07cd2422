//! A hash table of indices into an array that its user keeps: the table finds the index, the array
//! contains the data.

/// An entry: an index, and the hash, so that growing and most comparisons do not access the array.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    index: u32,
}

/// The index in an empty slot. Arrays are shorter.
const FREE: u32 = u32::MAX;

/// Indices by hash, with linear probing.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The slots. Their number is a power of two or 0, and at most half are used.
    slots: Vec<Slot>,
    count: usize,
}

impl Table {
    /// Returns the first slot for a hash in a table that is not empty. It depends on all bits of
    /// the hash.
    fn start(&self, hash: u32) -> usize {
        let mixed = u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the index with this hash for which `same` returns `true`.
    #[inline]
    pub(crate) fn find(&self, hash: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.start(hash);
        loop {
            let slot = *self.slots.get(at)?;
            if slot.index == FREE {
                return None;
            }
            if slot.hash == hash && same(slot.index) {
                return Some(slot.index);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds an index that is not in the table.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        if self.count * 2 >= self.slots.len() {
            self.grow();
        }
        self.count += 1;
        self.enter(Slot { hash, index });
    }

    /// Stores an entry in the first free slot; the table must have one.
    fn enter(&mut self, slot: Slot) {
        let mut at = self.start(slot.hash);
        while self.slots[at].index != FREE {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let free = Slot { hash: 0, index: FREE };
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![free; size]);
        for slot in old {
            if slot.index != FREE {
                self.enter(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn finds_what_was_put_in_under_equal_and_different_hashes() {
        let mut table = Table::default();
        assert_eq!(table.find(0, |_| true), None);
        for index in 0..1000 {
            table.insert(index / 3, index);
        }
        for index in 0..1000 {
            assert_eq!(table.find(index / 3, |one| one == index), Some(index));
        }
        assert_eq!(table.find(5, |one| one == 18), None);
        assert_eq!(table.find(5000, |_| true), None);
    }
}
