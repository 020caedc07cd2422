//! ELF files: 32 bits, little-endian, with explicit addends (`docs/machine/objects.md`).

mod inspect;
mod read;
mod write;

pub use inspect::{
    Contents, EntryBinding, EntryKind, EntryPlace, RelocationEntry, SectionEntry, SymbolEntry, contents,
};
pub(crate) use read::COMMON;
pub use read::{ReadObject, executable, is_elf, object};
pub(crate) use write::contents_of;
pub use write::{write_executable, write_object};

use npu_mc::reloc::elf;
use std::fmt;

/// The machine number in the header.
const MACHINE: u16 = elf::MACHINE as u16;

/// The type of a section with addresses of constructors.
const SHT_INIT_ARRAY: u32 = object::elf::SHT_INIT_ARRAY;

/// The maximum number of bytes of contents in a file. It prevents a small file from allocating all
/// memory.
pub(crate) const LARGEST: u64 = 256 << 20;

/// An error in an ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfError {
    /// The offset in the file in bytes, if it is known.
    pub offset: Option<u64>,
    /// The message.
    pub message: String,
}

impl ElfError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            offset: None,
            message: message.into(),
        }
    }

    fn at(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset: Some(offset),
            message: message.into(),
        }
    }
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "offset {offset:#x}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ElfError {}

impl From<object::Error> for ElfError {
    fn from(error: object::Error) -> Self {
        Self::new(error.to_string())
    }
}
