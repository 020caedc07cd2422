//! The contents of memory, scratchpads and registers before the first write.

/// The contents of memory, scratchpads and registers before the first write. On the hardware they
/// are undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Zeros, which can hide reads of unwritten data.
    #[default]
    Zero,
    /// Random values from this seed. All pages of main memory start with the same contents.
    Random(u64),
}

impl Fill {
    /// Returns a generator of values for one memory or thread, which `part` identifies. Returns
    /// `None` for zeros.
    pub(crate) fn source(self, part: u64) -> Option<Source> {
        match self {
            Fill::Zero => None,
            Fill::Random(seed) => Some(Source(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        }
    }
}

/// A random generator.
pub(crate) struct Source(u64);

/// Advances a SplitMix64 generator and returns its next number.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Source {
    pub(crate) fn word(&mut self) -> u32 {
        split_mix(&mut self.0) as u32
    }

    pub(crate) fn bytes(&mut self, bytes: &mut [u8]) {
        for four in bytes.chunks_mut(4) {
            let word = self.word().to_le_bytes();
            four.copy_from_slice(&word[..four.len()]);
        }
    }
}
