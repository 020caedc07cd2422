//! Source lines from the DWARF sections of a module.

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wasmparser::{Parser, Payload};

/// The prefix of the symbols of functions that are not exported.
pub(crate) const PREFIX: &str = "wasm.";

/// Returns a readable name of a function on the device, with C++ and Rust symbols demangled.
pub fn readable(function: &str) -> Cow<'_, str> {
    let (before, symbol) = match function.find(PREFIX) {
        Some(at) => function.split_at(at + PREFIX.len()),
        None => ("", function),
    };
    // Without this check, `f` would demangle to the type `float`.
    if !ENCODED.iter().any(|start| symbol.starts_with(start)) {
        return Cow::Borrowed(function);
    }
    match addr2line::demangle_auto(Cow::Borrowed(symbol), None) {
        Cow::Borrowed(_) => Cow::Borrowed(function),
        Cow::Owned(path) => Cow::Owned(format!("{before}{path}")),
    }
}

/// The prefixes of mangled names in C++ (and legacy Rust), and in Rust.
const ENCODED: [&str; 2] = ["_Z", "_R"];

/// A source location from the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if known.
    pub column: Option<u32>,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.column {
            Some(column) => write!(f, ":{column}"),
            None => Ok(()),
        }
    }
}

/// The lines of one module.
pub struct SourceLines {
    context: Context<EndianArcSlice<LittleEndian>>,
    /// The offset of the contents of the code section; DWARF addresses count from there.
    code: u32,
}

impl fmt::Debug for SourceLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceLines")
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

impl SourceLines {
    /// Reads the lines of a binary module. Returns `None` if it has no debug information or the
    /// debug information is malformed: the module is still valid.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut sections = HashMap::new();
        let mut code = None;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.ok()? {
                Payload::CodeSectionStart { unchecked_range, .. } => code = u32::try_from(unchecked_range.start).ok(),
                Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                    sections.insert(section.name(), section.data());
                }
                _ => {}
            }
        }
        if !sections.contains_key(".debug_line") {
            return None;
        }
        let dwarf = Dwarf::load(|id| {
            let data = sections.get(id.name()).copied().unwrap_or_default();
            Ok::<_, gimli::Error>(EndianArcSlice::new(Arc::from(data), LittleEndian))
        });
        Some(Self {
            context: Context::from_dwarf(dwarf.ok()?).ok()?,
            code: code?,
        })
    }

    /// Returns the line of the instruction at an offset in the module. An instruction of an inlined
    /// function has its own line, not that of the call.
    pub fn at(&self, offset: u32) -> Option<SourceLine> {
        let address = offset.checked_sub(self.code)?;
        let location = self.context.find_location(u64::from(address)).ok()??;
        Some(SourceLine {
            file: location.file?.to_owned(),
            line: location.line.filter(|line| *line != 0)?,
            column: location.column.filter(|column| *column != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_of_cpp_and_rust_are_read() {
        assert_eq!(
            readable("wasm._ZN3std9panicking20rust_panic_with_hook17h6ac9107c42850161E"),
            "wasm.std::panicking::rust_panic_with_hook"
        );
        assert_eq!(readable("wasm._ZN4list6appendEi"), "wasm.list::append(int)");
        // The `.2` stands for another function with the same name.
        assert_eq!(
            readable("wasm._ZN4list6appendEi.2"),
            "wasm.list::append(int) [clone .2]"
        );
        assert_eq!(readable("wasm.abort"), "wasm.abort");
        assert_eq!(readable("_Z4stepv"), "step()");
        // As a mangled name, `f` would be the type `float`.
        assert_eq!((readable("wasm.f"), readable("f")), ("wasm.f".into(), "f".into()));
    }
}
