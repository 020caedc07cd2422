//! Watchers of instructions, and the names and lines of executed code, for profiles.

use super::error::SourceLine;
use super::layout;
use cranelift_codegen::ir::SourceLoc;
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
    /// The source files of the lines.
    pub(super) files: Vec<String>,
    pub(super) lines: Vec<MappedLine>,
}

/// A range of code with its source location.
#[derive(Clone, Debug)]
pub(super) struct MappedLine {
    pub(super) range: SrcLocRange,
    /// The index of the file, and the line.
    pub(super) line: Option<(usize, u32)>,
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
        let offset = address - code.start;
        let after = code.lines.partition_point(|line| line.range.start <= offset);
        let found = code.lines.get(after.checked_sub(1)?)?;
        let (file, line) = found.line.filter(|_| offset < found.range.end)?;
        let file = code.files.get(file)?.clone();
        Some(SourceLine { file, line })
    }

    /// Replaces the source lines by those that `line` returns for a function and the source location
    /// of an instruction.
    pub fn with_lines(mut self, line: impl Fn(&str, SourceLoc) -> Option<SourceLine>) -> Self {
        for code in &mut self.code {
            let mut files = Vec::new();
            for mapped in &mut code.lines {
                let loc = mapped.range.loc;
                let found = (!loc.is_default()).then(|| line(&code.name, loc)).flatten();
                mapped.line = found.map(|SourceLine { file, line }| {
                    let known = files.iter().position(|known| *known == file);
                    let number = known.unwrap_or_else(|| {
                        files.push(file);
                        files.len() - 1
                    });
                    (number, line)
                });
            }
            code.files = files;
        }
        self
    }
}
