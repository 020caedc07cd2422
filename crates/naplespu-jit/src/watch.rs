//! Calls that somebody watches instruction by instruction, and the names and lines of what they execute: for profiles.

use super::NpuModule;
use super::error::SourceLine;
use cranelift_naplespu::code::SrcLocRange;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_sim::TraceEvent;

/// What sees every instruction of a call.
pub type Watcher = Box<dyn FnMut(&TraceEvent<'_>) + Send>;

/// The code of a module: names and lines by address.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    /// By rising address.
    code: Vec<MappedCode>,
}

#[derive(Clone, Debug)]
struct MappedCode {
    start: u32,
    end: u32,
    name: String,
    /// The source file, if source locations are lines of one.
    file: Option<String>,
    lines: Vec<SrcLocRange>,
}

impl CodeMap {
    fn code_at(&self, address: u32) -> Option<&MappedCode> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|code| address < code.end)
    }

    /// The function at an address, and the distance from its start in bytes.
    pub fn name(&self, address: u32) -> Option<(&str, u32)> {
        let code = self.code_at(address)?;
        Some((&code.name, address - code.start))
    }

    /// The line of the source that an instruction comes from; see [`NpuModule::set_source_file`].
    pub fn line(&self, address: u32) -> Option<SourceLine> {
        let code = self.code_at(address)?;
        let file = code.file.clone()?;
        let offset = address - code.start;
        let after = code.lines.partition_point(|range| range.start <= offset);
        let range = code.lines.get(after.checked_sub(1)?)?;
        (offset < range.end && !range.loc.is_default()).then(|| SourceLine {
            file,
            line: range.loc.bits(),
        })
    }
}

impl NpuModule {
    /// Lets somebody see every instruction of later calls as it is executed, or nobody again. Calls then take many times as long. With the
    /// timing model ([`NpuModule::set_timing`]) nothing is seen, since instructions of several threads are under way at once there; use its report.
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
}
