//! Small rings without allocation, for the queues of the pipeline.
//!
//! No ring is full when an entry is added, because the queues of the hardware hold fewer entries.
//! If an entry still does not fit, it is lost and the ring records this, so that the run ends with
//! an internal error ([`Halt::Internal`](crate::Halt::Internal)).

/// A first-in first-out queue of at most `N` entries, a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T, const N: usize> {
    entries: [T; N],
    /// The numbers of removed and of added entries, modulo 2^32; the position of an entry is its
    /// number modulo `N`.
    left: u32,
    come: u32,
    overflowed: bool,
}

impl<T: Copy, const N: usize> Ring<T, N> {
    pub fn new(filler: T) -> Ring<T, N> {
        const { assert!(N.is_power_of_two(), "positions stay consecutive when the counts wrap") }
        Ring {
            entries: [filler; N],
            left: 0,
            come: 0,
            overflowed: false,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.come.wrapping_sub(self.left) as usize
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.come == self.left
    }

    /// The oldest entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        (!self.is_empty()).then(|| &self.entries[self.left as usize % N])
    }

    /// The entry `index` positions after the front.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        (index < self.len()).then(|| &self.entries[self.position(index)])
    }

    /// Adds an entry. The entry is lost if the ring is full; see [`Ring::overflowed`].
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.len() == N {
            self.overflowed = true;
            return;
        }
        self.entries[self.come as usize % N] = entry;
        self.come = self.come.wrapping_add(1);
    }

    /// Adds an entry before the entries with a larger key. The entry is lost if the ring is full.
    pub fn push_in_order(&mut self, entry: T, key: impl Fn(&T) -> u64) {
        if self.len() == N {
            self.overflowed = true;
            return;
        }
        self.push(entry);
        let mut at = self.len() - 1;
        while at > 0 {
            let (before, here) = (self.position(at - 1), self.position(at));
            if key(&self.entries[before]) <= key(&entry) {
                break;
            }
            self.entries.swap(before, here);
            at -= 1;
        }
    }

    fn position(&self, index: usize) -> usize {
        (self.left as usize + index) % N
    }

    /// Returns whether an entry was ever lost.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let entry = self.entries[self.left as usize % N];
        self.left = self.left.wrapping_add(1);
        Some(entry)
    }

    #[inline]
    pub fn clear(&mut self) {
        self.left = self.come;
    }

    /// Passes the entries to `found`, from the front on, until it returns `true`; returns whether
    /// it did. `found` may change the entries.
    pub fn join(&mut self, mut found: impl FnMut(&mut T) -> bool) -> bool {
        (0..self.len()).any(|k| found(&mut self.entries[(self.left as usize + k) % N]))
    }

    /// Removes the entries for which `gone` returns `true`; returns their number.
    pub fn remove(&mut self, mut gone: impl FnMut(&T) -> bool) -> usize {
        let before = self.len();
        for _ in 0..before {
            if let Some(entry) = self.pop()
                && !gone(&entry)
            {
                self.push(entry);
            }
        }
        before - self.len()
    }
}

/// Returns the next thread of a round-robin arbiter: the first one in `candidates` (one bit per
/// thread) after `last`, cyclically.
#[inline]
pub(crate) fn next_in_turn(candidates: u8, last: u8) -> u8 {
    let turned = candidates.rotate_right(u32::from(last) + 1);
    (turned.trailing_zeros() as u8 + last + 1) & 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_order_and_remembers_what_was_lost() {
        let mut ring = Ring::<u32, 4>::new(0);
        (1..=4).for_each(|k| ring.push(k));
        assert!(!ring.overflowed());
        assert_eq!((ring.pop(), ring.pop(), ring.len()), (Some(1), Some(2), 2));
        ring.push(6);
        assert_eq!((ring.front(), ring.get(2), ring.get(3)), (Some(&3), Some(&6), None));
        ring.push(7);
        assert!(!ring.overflowed());
        ring.push(8);
        ring.clear();
        assert!(ring.overflowed());
    }

    #[test]
    fn turns_move_past_the_last_one() {
        assert_eq!(next_in_turn(0b1001, 0), 3);
        assert_eq!(next_in_turn(0b1001, 3), 0);
        assert_eq!(next_in_turn(0b0100, 2), 2);
        assert_eq!(next_in_turn(0b1000_0000, 7), 7);
    }
}
