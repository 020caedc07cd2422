//! Random choices from bytes. After the end of the bytes each choice is the first alternative.

use arbitrary::Unstructured;

/// A source of choices.
pub struct Dice<'u, 'd>(pub &'u mut Unstructured<'d>);

impl Dice<'_, '_> {
    /// Returns a number from `low` to `high`, inclusive.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        self.0.int_in_range(low..=high.max(low)).unwrap_or(low)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.int_in_range(0..=limit.max(1) - 1).unwrap_or(0)
    }

    /// Returns true with probability `times / of`.
    pub fn chance(&mut self, times: u32, of: u32) -> bool {
        self.0.int_in_range(1..=of).unwrap_or(of) <= times
    }

    /// Returns one element of the slice.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }
}
