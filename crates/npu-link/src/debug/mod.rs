//! What debuggers and reports want to know of a program: names, lines of the source, and unwinding by `.eh_frame`.
//!
//! Damaged tables are errors with their place, and nothing is larger than the file it comes from.

mod frames;
mod info;
mod lines;

pub use frames::{Frames, Place, Registers, Rules, back_trace};
pub use info::{MappedSection, ProgramInfo};
pub use lines::Lines;

use std::fmt;

/// What is wrong with a table for debuggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugError {
    /// The section.
    pub section: String,
    /// Where in the section, in bytes, if that is known.
    pub offset: Option<u64>,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for DebugError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.section)?;
        if let Some(offset) = self.offset {
            write!(f, "+{offset:#x}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for DebugError {}
