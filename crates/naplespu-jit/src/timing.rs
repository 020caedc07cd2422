//! Settings and reports of the timing model of a module.

use super::npu_module::NpuModule;
use super::timed::Timed;
use npu_sim::{Report, Timing, TimingConfig};

impl NpuModule {
    /// Turns the timing model of later calls on or off. Results are the same; calls take about ten
    /// times as long. Each call starts with empty caches.
    pub fn set_timing(&mut self, config: Option<TimingConfig>) {
        self.timed = config.map(|config| Timed::new(config, None));
    }

    /// Sets or removes the limit of cycles of later calls with the timing model, from the first
    /// instruction on. A call that exceeds it fails with
    /// [`RunError::CycleLimit`](super::RunError::CycleLimit). Returns `false` without effect if the
    /// timing model is off.
    pub fn set_cycle_limit(&mut self, cycles: Option<u64>) -> bool {
        match &mut self.timed {
            Some(timed) => timed.limit = cycles,
            None => return false,
        }
        true
    }

    /// Returns the report on the last call; `None` without [`NpuModule::set_timing`]. Functions
    /// have their names in the module.
    pub fn timing_report(&self) -> Option<Report> {
        self.timed.as_ref().map(Timed::report)
    }

    /// Creates the pipelines of a call.
    pub(super) fn start_timing(&self, timed: &mut Timed) {
        timed.timing = Timing::new(timed.config);
        timed.timing.set_cycle_limit(timed.limit);
        if let Some(profile) = &mut timed.profile {
            profile.start();
        }
        let code = self.linker.code();
        let symbols = code.map(|(_, object)| (object.address, object.name.clone()));
        timed.timing.set_symbols(symbols.collect());
    }
}
