//! The options of the timing model.

/// How the memory of the cores behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingConfig {
    /// Cycles that a memory transaction takes beyond the 2 of the fastest memory.
    pub memory_delay: u32,
    /// Cycles of each hop between two neighbouring tiles, each way, when there are several cores; 0 unless said. The
    /// hardware takes 2 (`docs/machine/several-cores.md`).
    pub hop_delay: u32,
    /// Cycles for which each message takes a link between two neighbouring tiles, in its direction, when there are several cores; 1 unless said,
    /// since no link takes two messages in one cycle, and 0 for links that are never full.
    pub link_cycles: u32,
    /// Cycles of a look into the second-level cache, when there are several cores; 0 unless said. A
    /// directory of the hardware answers after 2 (`docs/machine/several-cores.md`).
    pub second_level_delay: u32,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self {
            memory_delay: 0,
            hop_delay: 0,
            link_cycles: 1,
            second_level_delay: 0,
        }
    }
}
