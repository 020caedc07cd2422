//! What decides how fast the functional model runs and nothing else, which `run`, `sim` and `wasm` share.

use npu_sim::{CORE_LIMIT, Config};
use std::thread;

/// Ways to run that come to the same.
#[derive(clap::Args)]
pub struct SpeedArgs {
    /// Interpret every instruction, instead of translating hot loops to code of the host
    #[arg(long)]
    no_jit: bool,

    /// Threads of the host that run cores at the same time, with the results of cores in turns; those that the host has unless set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=CORE_LIMIT as i64))]
    host_threads: Option<u16>,
}

impl SpeedArgs {
    /// The usual configuration, run that way.
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
