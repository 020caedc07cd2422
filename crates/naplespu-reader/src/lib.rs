//! Reads CLIF files: functions, header lines and targets, with all errors as diagnostics.
//!
//! # Contract
//!
//! [`ClifFile::parse`] splits a file into its `test`, `set`, `target` and `feature` lines, its
//! functions, and the comments of each. Errors are in [`ClifFile::faults`] with their positions;
//! the valid parts are still available. [`config::FileConfigs`] creates the targets of the header
//! lines. [`function_text`] writes a function.
//!
//! # Invariants
//!
//! - No file causes a panic or terminates the process: entity numbers are bounded, and a panic of
//!   `cranelift-reader` becomes an error of the file ([`panics`]).
//! - The text passed to `cranelift-reader` has the same offsets as the file, so that all positions
//!   in messages are positions in the file.

#![deny(missing_docs)]

pub mod config;
pub mod diagnostic;
pub mod header;
pub mod panics;
pub mod parse;
pub mod write;

pub use config::{Config, ForcedTarget};
pub use diagnostic::{Diagnostic, Source};
pub use parse::{ClifFile, FunctionCase};
pub use write::function_text;
