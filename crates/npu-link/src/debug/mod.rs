//! The data of a program for debuggers and reports: names, source lines, and unwinding by
//! `.eh_frame`.
//!
//! Damaged tables are errors with an offset. The data is never larger than its file.

mod frames;
mod info;
mod lines;

pub use frames::{Frames, Place, Registers, Rules, back_trace};
pub use info::{MappedSection, ProgramInfo};
pub use lines::{Lines, ObjectLines};

use std::fmt;

/// An error in a debug section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugError {
    /// The section.
    pub section: String,
    /// The offset in the section in bytes, if it is known.
    pub offset: Option<u64>,
    /// The message.
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
