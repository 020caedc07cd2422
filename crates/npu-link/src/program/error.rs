//! What keeps objects from becoming a program.

use npu_mc::reloc::RelocError;
use std::fmt;

/// What keeps objects from becoming a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramError {
    /// Nobody defines the symbol.
    Undefined {
        /// Its name.
        symbol: String,
        /// Object and section that refer to it, and how many more do.
        users: Vec<(String, String)>,
    },
    /// Several objects define the symbol.
    Duplicate {
        /// Its name.
        symbol: String,
        /// The objects, with the sections that it is in.
        objects: [(String, String); 2],
    },
    /// A relocation does not fit.
    Relocation {
        /// The object and its section.
        place: (String, String),
        /// Where in the section.
        offset: u32,
        /// What it refers to.
        symbol: String,
        /// Why not.
        error: RelocError,
    },
    /// A member of a library cannot be read.
    Member {
        /// The symbol that wanted it.
        symbol: String,
        /// Why not.
        reason: String,
    },
    /// A table for unwinding is not one, or has what programs do not have.
    Frames {
        /// The object.
        object: String,
        /// The section.
        section: &'static str,
        /// Where in its section.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// Sections overlap, or do not fit where they should be.
    Layout(String),
    /// Something that should not happen.
    Internal(String),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { symbol, users } => {
                write!(f, "undefined symbol `{symbol}`")?;
                for (number, (object, section)) in users.iter().enumerate() {
                    write!(
                        f,
                        "{} {object}:({section})",
                        if number == 0 { ", used by" } else { "," }
                    )?;
                }
                Ok(())
            }
            Self::Duplicate { symbol, objects } => {
                let [(first, first_section), (second, second_section)] = objects;
                write!(
                    f,
                    "duplicate symbol `{symbol}`: {first}:({first_section}) and {second}:({second_section})"
                )?;
                if first == second {
                    write!(f, "; is {first} given twice?")?;
                }
                Ok(())
            }
            Self::Relocation {
                place: (object, section),
                offset,
                symbol,
                error,
            } => write!(
                f,
                "{object}:({section}+{offset:#x}): `{symbol}` is out of reach: {error}"
            ),
            Self::Member { symbol, reason } => write!(f, "{reason} (wanted for `{symbol}`)"),
            Self::Frames {
                object,
                section,
                offset,
                message,
            } => write!(f, "{object}:({section}+{offset:#x}): {message}"),
            Self::Layout(what) => f.write_str(what),
            Self::Internal(what) => write!(f, "internal error of the linker: {what}"),
        }
    }
}

impl std::error::Error for ProgramError {}
