//! The options of the timing model in `run`, `sim` and `wasm`, and their output of waits.

use crate::{Stop, sim_waits};
use npu_sim::{TimingConfig, WaitsReport};
use std::path::PathBuf;

/// The options of the timing model.
#[derive(clap::Args)]
pub struct TimingArgs {
    /// Run with the timing model, and report cycles and their causes
    #[arg(long)]
    pub timing: bool,

    /// Additional cycles of each memory transaction, for --timing
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    memdelay: u32,

    /// Cycles of a hop between two tiles in each direction, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    hopdelay: u32,

    /// Cycles that a message occupies a link between two tiles, for --timing with several cores;
    /// with 0, links are never full
    #[arg(long, value_name = "CYCLES", default_value_t = TimingConfig::default().link_cycles, requires = "timing")]
    linkcycles: u32,

    /// Cycles of an access to the second-level cache, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    l2delay: u32,

    /// Print the N longest waits of instructions with their causes; 0 is all
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20", requires = "timing")]
    waits: Option<usize>,

    /// Write all waits to this file as JSON; with several calls, those of the last one
    #[arg(long, value_name = "FILE", requires = "timing")]
    waits_json: Option<PathBuf>,
}

impl TimingArgs {
    /// Returns the configuration of memory and network, or `None` without the timing model.
    pub fn config(&self) -> Option<TimingConfig> {
        self.timing.then_some(TimingConfig {
            memory_delay: self.memdelay,
            hop_delay: self.hopdelay,
            link_cycles: self.linkcycles,
            second_level_delay: self.l2delay,
        })
    }

    /// Returns whether waits are recorded.
    pub fn wants_waits(&self) -> bool {
        self.waits.is_some() || self.waits_json.is_some()
    }

    /// Returns the waits to print. `place` returns the source location of an address.
    pub fn waits_text(&self, waits: &WaitsReport, place: sim_waits::PlaceOf<'_>) -> String {
        match self.waits {
            Some(0) => sim_waits::text(waits, place, usize::MAX),
            Some(most) => sim_waits::text(waits, place, most),
            None => String::new(),
        }
    }

    /// Writes all waits, if a file for them is given.
    pub fn write_waits(&self, waits: &WaitsReport, place: sim_waits::PlaceOf<'_>) -> Result<(), Stop> {
        let Some(path) = &self.waits_json else {
            return Ok(());
        };
        let written = std::fs::write(path, sim_waits::json(waits, place));
        written.map_err(|error| Stop::Fault(format!("{}: {error}", path.display())))
    }
}

/// Returns the location of an address in compiled code: function, offset, and source line.
pub fn place(module: &naplespu_jit::NpuModule, address: u32) -> Option<String> {
    let frame = module.frame(address);
    let mut text = format!("%{}", frame.function?);
    if let Some(offset) = frame.offset.filter(|&offset| offset > 0) {
        text += &format!("+{offset:#x}");
    }
    if let Some(line) = frame.line {
        text += &format!(" at {line}");
    }
    Some(text)
}
