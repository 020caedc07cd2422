//! The options of the timing model, which `run`, `sim` and `wasm` share, and what they print of waits.

use crate::{Stop, sim_waits};
use npu_sim::{TimingConfig, WaitsReport};
use std::path::PathBuf;

/// The timing model, and what is asked of it.
#[derive(clap::Args)]
pub struct TimingArgs {
    /// Run with the timing model, and report what the run took in cycles, and why
    #[arg(long)]
    pub timing: bool,

    /// Cycles that each memory transaction takes beyond the fastest, for --timing
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    memdelay: u32,

    /// Cycles that a hop between two tiles takes, each way, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    hopdelay: u32,

    /// Cycles that a message takes a link between two tiles for, for --timing with several cores; 0 lets no link be full
    #[arg(long, value_name = "CYCLES", default_value_t = TimingConfig::default().link_cycles, requires = "timing")]
    linkcycles: u32,

    /// Cycles that a look into the second-level cache takes, for --timing with several cores
    #[arg(long, value_name = "CYCLES", default_value_t = 0, requires = "timing")]
    l2delay: u32,

    /// Print which instructions waited longest, and for what: so many of them; 0 is all
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20", requires = "timing")]
    waits: Option<usize>,

    /// Write all that waited to this file, as JSON; with several calls, of the last one
    #[arg(long, value_name = "FILE", requires = "timing")]
    waits_json: Option<PathBuf>,
}

impl TimingArgs {
    /// How memory and network behave; `None` without the timing model.
    pub fn config(&self) -> Option<TimingConfig> {
        self.timing.then_some(TimingConfig {
            memory_delay: self.memdelay,
            hop_delay: self.hopdelay,
            link_cycles: self.linkcycles,
            second_level_delay: self.l2delay,
        })
    }

    /// Whether waits are to be noted.
    pub fn wants_waits(&self) -> bool {
        self.waits.is_some() || self.waits_json.is_some()
    }

    /// What is to be printed of waits. `place` says where an address is.
    pub fn waits_text(&self, waits: &WaitsReport, place: sim_waits::PlaceOf<'_>) -> String {
        match self.waits {
            Some(0) => sim_waits::text(waits, place, usize::MAX),
            Some(most) => sim_waits::text(waits, place, most),
            None => String::new(),
        }
    }

    /// Writes all waits, if there is a file for them.
    pub fn write_waits(&self, waits: &WaitsReport, place: sim_waits::PlaceOf<'_>) -> Result<(), Stop> {
        let Some(path) = &self.waits_json else {
            return Ok(());
        };
        let written = std::fs::write(path, sim_waits::json(waits, place));
        written.map_err(|error| Stop::Fault(format!("{}: {error}", path.display())))
    }
}

/// A place in code that was compiled here: the function, how far in, and the line of the source.
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
