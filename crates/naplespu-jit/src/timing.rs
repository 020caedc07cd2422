//! Calls of a module with the timing model.

use super::npu_module::NpuModule;
use super::timed::Timed;
use npu_sim::{Report, Timing, TimingConfig, Waits, WaitsReport};

impl NpuModule {
    /// Runs later calls with the timing model, or without it again. They compute the same and take about ten times as long. Each
    /// call starts with empty caches.
    pub fn set_timing(&mut self, config: Option<TimingConfig>) {
        self.timed = config.map(|config| Timed::new(config, None));
    }

    /// Limits the cycles of later calls with the timing model, from the first instruction on, or stops limiting them: a call that takes more
    /// is [`RunError::CycleLimit`](super::RunError::CycleLimit). Gives `false` and does nothing without [`NpuModule::set_timing`].
    pub fn set_cycle_limit(&mut self, cycles: Option<u64>) -> bool {
        match &mut self.timed {
            Some(timed) => timed.limit = cycles,
            None => return false,
        }
        true
    }

    /// Notes in later calls with the timing model which instruction waited how long for what, or no longer. Gives `false` and does nothing without
    /// [`NpuModule::set_timing`].
    pub fn set_waits(&mut self, on: bool) -> bool {
        match &mut self.timed {
            Some(timed) => timed.waits = on.then(Waits::new),
            None => return false,
        }
        true
    }

    /// What waited for what in the last call; `None` without [`NpuModule::set_waits`].
    pub fn waits_report(&self) -> Option<WaitsReport> {
        Some(self.timed.as_ref()?.waits.as_ref()?.report())
    }

    /// What the last call took; `None` without [`NpuModule::set_timing`]. Functions go by the names of the module.
    pub fn timing_report(&self) -> Option<Report> {
        self.timed.as_ref().map(Timed::report)
    }

    /// Makes the pipelines of a call.
    pub(super) fn start_timing(&self, timed: &mut Timed) {
        timed.timing = Timing::new(timed.config);
        timed.timing.set_cycle_limit(timed.limit);
        if let Some(profile) = &mut timed.profile {
            profile.start();
        }
        if let Some(waits) = &mut timed.waits {
            *waits = Waits::new();
        }
        let code = self.linker.code();
        let symbols = code.map(|(_, object)| (object.address, object.name.clone()));
        timed.timing.set_symbols(symbols.collect());
    }
}
