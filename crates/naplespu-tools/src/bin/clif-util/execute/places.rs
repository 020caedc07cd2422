//! The names and lines of a program's code.

use naplespu_jit::CodeMap;
use npu_link::debug::ProgramInfo;

/// The names and lines of a program's code, by address.
pub trait Places {
    /// Returns the name of a function, and the distance from its start in bytes.
    fn name(&self, address: u32) -> Option<(&str, u32)>;

    /// Returns file and line of the source.
    fn line(&self, address: u32) -> Option<(String, u32)>;

    /// Returns the name of the function or variable at an address, or of the stack.
    fn variable(&self, address: u32) -> Option<String>;

    /// Describes a code address as text: name and distance, and the source line.
    fn describe(&self, address: u32) -> Option<String> {
        let name = self.name(address).map(|(name, distance)| match distance {
            0 => name.to_owned(),
            _ => format!("{name}+{distance:#x}"),
        });
        let line = self.line(address).map(|(file, line)| format!("{file}:{line}"));
        match (name, line) {
            (Some(name), Some(line)) => Some(format!("{name} at {line}")),
            (name, line) => name.or(line),
        }
    }
}

/// A program without symbols has no names.
impl Places for Option<&ProgramInfo> {
    fn name(&self, address: u32) -> Option<(&str, u32)> {
        self.and_then(|info| info.name(address))
    }

    fn variable(&self, address: u32) -> Option<String> {
        self.and_then(|info| info.variable(address))
    }

    fn line(&self, address: u32) -> Option<(String, u32)> {
        let (file, line) = self.and_then(|info| info.lines.at(address))?;
        Some((file.to_owned(), line))
    }
}

impl Places for CodeMap {
    fn name(&self, address: u32) -> Option<(&str, u32)> {
        CodeMap::name(self, address)
    }

    fn variable(&self, address: u32) -> Option<String> {
        CodeMap::variable(self, address)
    }

    fn line(&self, address: u32) -> Option<(String, u32)> {
        CodeMap::line(self, address).map(|line| (line.file, line.line))
    }
}
