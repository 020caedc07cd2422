//! Watching the instructions of calls, and what each costs.

use super::cycles::{CycleProfile, InstCycles};
use super::npu_module::NpuModule;
use super::watch::{CodeMap, MappedCode, Watcher};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_sim::TimingConfig;
use std::collections::BTreeMap;

impl NpuModule {
    /// Sets the watcher, which receives every instruction of later calls as it executes, or removes it. Calls with a watcher take many
    /// times as long. The timing model ([`NpuModule::set_timing`]) calls no watcher, since it has instructions of several threads under
    /// way at once; use its report.
    pub fn set_watcher(&mut self, watcher: Option<Watcher>) {
        self.watcher = watcher;
    }

    /// Names and lines of the code as it is now. What is defined later, or linked by a later call, is not in it; see
    /// [`NpuModule::finalize_definitions`].
    pub fn code_map(&self) -> CodeMap {
        let code = self.linker.code().map(|(index, object)| {
            let compiled = self.code.get(&index);
            MappedCode {
                start: object.address,
                end: object.address.saturating_add(object.size.max(INSTRUCTION_SIZE)),
                name: object.name.clone(),
                file: self.source_file(index).map(str::to_owned),
                lines: compiled.map_or_else(Vec::new, |code| code.srclocs.clone()),
            }
        });
        let mut code: Vec<MappedCode> = code.collect();
        code.sort_by_key(|code| code.start);
        CodeMap { code }
    }

    /// Runs later calls with the timing model, as [`NpuModule::set_timing`] does, and notes what each instruction costs.
    pub fn profile_cycles(&mut self, config: TimingConfig) {
        self.set_timing(Some(config));
        if let Some(timed) = &mut self.timed {
            timed.profile = Some(CycleProfile::default());
        }
    }

    /// What the instructions of all calls since [`NpuModule::profile_cycles`] cost, by address; nothing without that.
    pub fn inst_cycles(&self) -> Option<&BTreeMap<u32, InstCycles>> {
        Some(&self.timed.as_ref()?.profile.as_ref()?.insts)
    }
}
