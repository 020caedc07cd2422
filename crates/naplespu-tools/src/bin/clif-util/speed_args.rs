//! Options of `run`, `sim` and `wasm` that change only the speed of the functional model.

use npu_sim::{CORE_LIMIT, Config};
use std::thread;

/// Options that do not change results.
#[derive(clap::Args)]
pub struct SpeedArgs {
    /// Interpret every instruction instead of translating hot loops to code of the host
    #[arg(long)]
    no_jit: bool,

    /// Host threads that run cores at the same time, with the results of cores in turns; by default
    /// those of the host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CORE_LIMIT as i64))]
    host_threads: Option<u16>,
}

impl SpeedArgs {
    /// Returns the default configuration with these options.
    pub fn config(&self) -> Config {
        let usual = Config::default();
        Config {
            translate_after: usual.translate_after.filter(|_| !self.no_jit),
            host_threads: match self.host_threads {
                Some(threads) => threads.into(),
                None => thread::available_parallelism().map_or(1, usize::from),
            },
            ..usual
        }
    }
}
