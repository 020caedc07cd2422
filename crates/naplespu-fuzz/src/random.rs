//! Random choices: from a seed, or from the bytes of a fuzzer.

use arbitrary::Unstructured;
use arbitrary::unstructured::Int;
use cranelift_codegen::entity::{EntityRef, PrimaryMap};
use cranelift_codegen::ir::{Type, types};

/// Returns the bytes for a generator that belong to a seed: SplitMix64, the same on all hosts.
pub fn bytes(seed: u64) -> Vec<u8> {
    let step = 0x9e37_79b9_7f4a_7c15u64;
    let first = seed.wrapping_mul(step) ^ 0x6c6f_6f70;
    let word = |number: u64| {
        let state = first.wrapping_add(number.wrapping_mul(step));
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes()
    };
    (1..=1 << 11).flat_map(word).collect()
}

/// A source of choices from bytes. After the end of the bytes each choice is the first alternative.
pub struct Dice<'d>(Unstructured<'d>);

impl<'d> Dice<'d> {
    pub fn new(data: &'d [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn range<T: Int + PartialOrd>(&mut self, low: T, high: T) -> T {
        if low < high {
            self.0.int_in_range(low..=high).unwrap_or(low)
        } else {
            low
        }
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

    /// Returns a key of the map, or `None` if it is empty.
    pub fn key<K: EntityRef, V>(&mut self, map: &PrimaryMap<K, V>) -> Option<K> {
        (!map.is_empty()).then(|| K::new(self.below(map.len())))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// Chooses the bits of a lane: edge cases of integers, floats in the range of integers, edge
    /// cases of floats.
    pub fn number(&mut self, ty: Type) -> u64 {
        let width = ty.lane_bits().clamp(1, 64);
        if ty.lane_type().is_float() && self.chance(2, 3) {
            // Zeros, subnormals, around powers of two, infinities, NaNs; some end in one half.
            let exponent = match self.below(8) {
                0 => self.range(0, 1),
                1 => self.range(254, 255),
                2..5 => self.range(125, 150),
                _ => self.range(115, 195),
            };
            let fraction = match self.below(4) {
                0 => 0,
                1 => 0x7f_ffff - self.range(0, 2),
                2 => self.bits() as u32 & 0x78_0000,
                _ => self.bits() as u32 & 0x7f_ffff,
            };
            let float = f32::from_bits((self.bits() as u32 & 1) << 31 | exponent << 23 | fraction);
            return match ty.lane_type() {
                types::F64 => f64::from(float).to_bits(),
                _ => float.to_bits().into(),
            };
        }
        let any = self.range(0, width - 1);
        let power = self.one_of(&[any, any, width / 2, width - 1]);
        match self.below(6) {
            0 => self.range(0, 3),
            1 => self.range(0, 100),
            2 => self.range(0, 40u64).wrapping_neg(),
            3 => (1u64 << power).wrapping_sub(self.range(0, 2)),
            4 => (u64::MAX << power).wrapping_add(self.range(0, 1)),
            _ => self.bits(),
        }
    }
}
