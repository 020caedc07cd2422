//! Watchers of instructions, and the names and lines of executed code, for profiles.

use super::error::SourceLine;
use super::layout;
use cranelift_naplespu::code::SrcLocRange;
use npu_sim::{Halt, Machine, Timing, TraceEvent};

/// A callback that receives every instruction of a call.
pub type Watcher = Box<dyn FnMut(&TraceEvent<'_>) + Send>;

/// Runs the machine in place of [`Machine::run_timed`], with the same arguments and result.
pub type TimedRun = Box<dyn FnMut(&mut Machine, &mut Timing, u64) -> Halt + Send>;

/// The observers of calls.
#[derive(Default)]
pub(super) struct Observers {
    pub(super) watcher: Option<Watcher>,
    pub(super) timed_run: Option<TimedRun>,
}

/// The functions, lines and data objects of a module by address.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    /// In ascending order of addresses.
    pub(super) code: Vec<MappedCode>,
    /// The data objects in main memory, in ascending order of addresses.
    pub(super) data: Vec<MappedData>,
}

#[derive(Clone, Debug)]
pub(super) struct MappedData {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) name: String,
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

    /// Returns the function at an address, and the offset in it in bytes.
    pub fn name(&self, address: u32) -> Option<(&str, u32)> {
        let code = self.code_at(address)?;
        Some((&code.name, address - code.start))
    }

    /// Returns the name of the function or data object at an address, or the thread whose stack or
    /// thread-local storage it is. Threads are counted over all cores.
    pub fn variable(&self, address: u32) -> Option<String> {
        if let Some((name, _)) = self.name(address) {
            return Some(name.to_owned());
        }
        let after = self.data.partition_point(|data| data.start <= address);
        let before = after.checked_sub(1).and_then(|before| self.data.get(before));
        match before.filter(|data| address < data.end) {
            Some(data) => Some(data.name.clone()),
            None => layout::of_thread(address),
        }
    }

    /// Returns the source line of an instruction; see
    /// [`NpuModule::set_source_file`](crate::NpuModule::set_source_file).
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
