//! Lines of the source, from the DWARF sections of a module.

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wasmparser::{Parser, Payload};

/// What functions that are not exported have before the names of their module.
pub(crate) const PREFIX: &str = "wasm.";

/// The name of a function on the device for people: what compilers of C++ and Rust make of a path and of types is undone.
pub fn readable(function: &str) -> Cow<'_, str> {
    let (before, symbol) = match function.find(PREFIX) {
        Some(at) => function.split_at(at + PREFIX.len()),
        None => ("", function),
    };
    // Any `f` could be the encoded name of a type.
    if !ENCODED.iter().any(|start| symbol.starts_with(start)) {
        return Cow::Borrowed(function);
    }
    match addr2line::demangle_auto(Cow::Borrowed(symbol), None) {
        Cow::Borrowed(_) => Cow::Borrowed(function),
        Cow::Owned(path) => Cow::Owned(format!("{before}{path}")),
    }
}

/// What encoded names begin with: those of C++ and of Rust, the older and the newer.
const ENCODED: [&str; 2] = ["_Z", "_R"];

/// A place in the source, as the compiler of the module wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, by its path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if the compiler said so.
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
    /// Where the contents of the code section start: DWARF counts from there.
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
    /// Those of a binary module; `None` if it has none, or none that can be read: damage there is no fault of the module.
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

    /// The line of the instruction at an offset in the module, where the compiler put it: that of an inlined function is its own.
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
        // Another function of the same name.
        assert_eq!(
            readable("wasm._ZN4list6appendEi.2"),
            "wasm.list::append(int) [clone .2]"
        );
        assert_eq!(readable("wasm.abort"), "wasm.abort");
        assert_eq!(readable("_Z4stepv"), "step()");
        // Alone, this would be the type `float`.
        assert_eq!((readable("wasm.f"), readable("f")), ("wasm.f".into(), "f".into()));
    }
}
