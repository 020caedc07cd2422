//! Calls that somebody watches instruction by instruction, and the names and lines of what they execute: for profiles.

use super::error::SourceLine;
use cranelift_naplespu::code::SrcLocRange;
use npu_sim::TraceEvent;

/// What sees every instruction of a call.
pub type Watcher = Box<dyn FnMut(&TraceEvent<'_>) + Send>;

/// The code of a module: names and lines by address.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    /// By rising address.
    pub(super) code: Vec<MappedCode>,
}

#[derive(Clone, Debug)]
pub(super) struct MappedCode {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) name: String,
    /// The source file, if source locations are lines of one.
    pub(super) file: Option<String>,
    pub(super) lines: Vec<SrcLocRange>,
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

    /// The line of the source that an instruction comes from; see [`NpuModule::set_source_file`](crate::NpuModule::set_source_file).
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
