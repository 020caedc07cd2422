//! Watchers of executed instructions, and their costs.

use super::cycles::{CycleProfile, InstCycles};
use super::npu_module::NpuModule;
use super::watch::{CodeMap, MappedCode, MappedData, MappedLine, TimedRun, Watcher};
use npu_link::Purpose;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_sim::TimingConfig;
use std::collections::BTreeMap;

impl NpuModule {
    /// Sets or removes the watcher, which receives every instruction of later calls during its
    /// execution. Calls with a watcher take many times as long. The timing model
    /// ([`NpuModule::set_timing`]) calls no watcher, since it interleaves instructions of several
    /// threads; use its report, or [`NpuModule::set_timed_run`].
    pub fn set_watcher(&mut self, watcher: Option<Watcher>) {
        self.observers.watcher = watcher;
    }

    /// Sets or removes the function that runs the machine in later calls with the timing model, for
    /// sinks of its events ([`npu_sim::Sink`]). A call runs it at least once, and again after each
    /// call of a host function and each return of a thread. It replaces the costs of
    /// [`NpuModule::profile_cycles`].
    pub fn set_timed_run(&mut self, run: Option<TimedRun>) {
        self.observers.timed_run = run;
    }

    /// Returns the names of the current code and data, and the lines of the code. It does not contain
    /// later definitions, or routines that a later call links; see [`NpuModule::finalize_definitions`].
    pub fn code_map(&self) -> CodeMap {
        let code = self.linker.code().map(|(index, object)| {
            let files: Vec<String> = self.source_file(index).map(str::to_owned).into_iter().collect();
            let lines = self.code.get(&index).into_iter().flat_map(|code| &code.srclocs);
            let lines = lines.map(|range| MappedLine {
                range: *range,
                line: (!files.is_empty() && !range.loc.is_default()).then(|| (0, range.loc.bits())),
            });
            MappedCode {
                start: object.address,
                end: object.address.saturating_add(object.size.max(INSTRUCTION_SIZE)),
                name: object.name.clone(),
                lines: lines.collect(),
                files,
            }
        });
        let mut code: Vec<MappedCode> = code.collect();
        code.sort_by_key(|code| code.start);
        let objects = self.data.values().filter_map(|data| Self::object(Some(data)));
        let objects = objects.filter_map(|index| self.linker.object(index));
        let objects = objects.filter(|object| object.purpose == Purpose::Data);
        let mut data: Vec<MappedData> = objects
            .map(|object| MappedData {
                start: object.address,
                end: object.address.saturating_add(object.size),
                name: object.name.clone(),
            })
            .collect();
        data.sort_by_key(|data| data.start);
        CodeMap { code, data }
    }

    /// Turns on the timing model for later calls, like [`NpuModule::set_timing`], and records the
    /// cost of each instruction.
    pub fn profile_cycles(&mut self, config: TimingConfig) {
        self.set_timing(Some(config));
        if let Some(timed) = &mut self.timed {
            timed.profile = Some(CycleProfile::default());
        }
    }

    /// Returns the costs of all instructions, by address, since [`NpuModule::profile_cycles`].
    /// Returns `None` without that call. If threads executed copies of a function, its instructions
    /// have the sums.
    pub fn inst_cycles(&self) -> Option<BTreeMap<u32, InstCycles>> {
        let mut sums: BTreeMap<u32, InstCycles> = BTreeMap::new();
        for (&pc, cost) in &self.timed.as_ref()?.profile.as_ref()?.insts {
            sums.entry(self.original(pc)).or_default().add(cost);
        }
        Some(sums)
    }
}
