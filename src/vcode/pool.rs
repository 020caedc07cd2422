//! The pool of constant vectors after the code of a function.

use crate::inst::LANES;
use rustc_hash::FxHashMap;

/// Distinct vectors, in the order of their first request.
#[derive(Clone, Debug, Default)]
pub struct VectorPool {
    vectors: Vec<[u32; LANES]>,
    numbers: FxHashMap<[u32; LANES], u32>,
}

impl VectorPool {
    /// Returns the number of the vector, and adds a new vector to the pool.
    pub fn number(&mut self, lanes: &[u32; LANES]) -> u32 {
        let next = self.vectors.len() as u32;
        let number = *self.numbers.entry(*lanes).or_insert(next);
        if number == next {
            self.vectors.push(*lanes);
        }
        number
    }

    /// Returns the vectors by their numbers.
    pub fn into_vectors(self) -> Vec<[u32; LANES]> {
        self.vectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vectors_have_one_number() {
        let mut pool = VectorPool::default();
        assert_eq!(pool.number(&[1; LANES]), 0);
        assert_eq!(pool.number(&[2; LANES]), 1);
        assert_eq!(pool.number(&[1; LANES]), 0);
        assert_eq!(pool.into_vectors(), [[1; LANES], [2; LANES]]);
    }
}
