//! The hardware and the limits of devices.

use npu_sim::TimingConfig;

/// The hardware that an instance offers, and how it is simulated.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bytes of memory for buffers; 1 GiB by default. `max_buffer_size` is a quarter.
    pub memory: u64,
    /// Whether additions, subtractions and multiplications of floats are correctly rounded, as WGSL
    /// requires; `true` by default. Otherwise they are those of the machine's float unit, which are
    /// faster, and off by up to two units in the last place.
    pub strict_float: bool,
    /// The largest number of instructions of a dispatch, after which the device is lost; 100
    /// billion by default.
    pub instruction_limit: u64,
    /// The timing model of devices with the feature `TIMESTAMP_QUERY`.
    pub timing: TimingConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            strict_float: true,
            instruction_limit: 100_000_000_000,
            timing: TimingConfig::default(),
        }
    }
}
