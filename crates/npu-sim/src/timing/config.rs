//! The options of the timing model.

use npu_mc::machine;

/// The timing of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingConfig {
    /// Cycles of a memory transaction in addition to the 2 cycles of the fastest memory.
    pub memory_delay: u32,
    /// Cycles of each hop between two neighboring tiles, in each direction, with several cores; 2 by
    /// default, as in the hardware (`docs/machine/several-cores.md`).
    pub hop_delay: u32,
    /// Cycles for which each flit of a message occupies a link between two neighboring tiles, in its
    /// direction, with several cores. The default is 1, as in the hardware; 0 means unlimited links.
    pub link_cycles: u32,
    /// Cycles of a lookup in a second-level cache in addition to those of the hardware, with several
    /// cores; 0 by default.
    pub second_level_delay: u32,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self {
            memory_delay: 0,
            hop_delay: machine::HOP_CYCLES,
            link_cycles: 1,
            second_level_delay: 0,
        }
    }
}
