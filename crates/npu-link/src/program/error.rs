//! Errors of the linker.

use npu_mc::reloc::RelocError;
use std::fmt;

/// A use of an undefined symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The object.
    pub object: String,
    /// Its section.
    pub section: String,
    /// The function, or the last label before the use.
    pub function: Option<String>,
    /// File and line, if the object has debug information.
    pub line: Option<(String, u32)>,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "`{function}` ")?;
        }
        if let Some((file, line)) = &self.line {
            write!(f, "at {file}:{line} ")?;
        }
        if self.function.is_some() || self.line.is_some() {
            f.write_str("in ")?;
        }
        write!(f, "{}:({})", self.object, self.section)
    }
}

/// An error of the linker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramError {
    /// The symbol is undefined.
    Undefined {
        /// Its name.
        symbol: String,
        /// Up to three users.
        users: Vec<User>,
    },
    /// Several objects define the symbol.
    Duplicate {
        /// Its name.
        symbol: String,
        /// Two of the objects, with the sections of the definitions.
        objects: [(String, String); 2],
    },
    /// The value of a relocation does not fit.
    Relocation {
        /// The object and its section.
        place: (String, String),
        /// The offset in the section.
        offset: u32,
        /// The symbol that it refers to.
        symbol: String,
        /// The reason.
        error: RelocError,
    },
    /// A member of a library cannot be read.
    Member {
        /// The symbol for which it was read.
        symbol: String,
        /// The reason.
        reason: String,
    },
    /// An unwinding table is invalid or has an unsupported format.
    Frames {
        /// The object.
        object: String,
        /// The section.
        section: &'static str,
        /// The offset in the section.
        offset: usize,
        /// The message.
        message: String,
    },
    /// Sections overlap or exceed their range.
    Layout(String),
    /// An internal error.
    Internal(String),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { symbol, users } => {
                write!(f, "undefined symbol `{symbol}`")?;
                for (number, user) in users.iter().enumerate() {
                    write!(f, "{} {user}", if number == 0 { ", used by" } else { "," })?;
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
            Self::Member { symbol, reason } => write!(f, "{reason} (needed for `{symbol}`)"),
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
