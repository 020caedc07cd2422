//! CLIF files: their functions, header lines and targets, and all that is wrong with them as diagnostics.
//!
//! # Contract
//!
//! [`ClifFile::parse`] takes a file apart: `test`, `set`, `target` and `feature` lines, functions, and the comments that belong to each.
//! What is wrong is in [`ClifFile::faults`], with its place in the file; the rest is there nevertheless. [`config::FileConfigs`] makes the
//! targets that the header lines name.
//!
//! # Invariants
//!
//! - No file panics or takes the process down: entity numbers are bounded, and a panic of `cranelift-reader` is a fault of the file
//!   ([`panics`]).
//! - The text given to `cranelift-reader` has the same offsets as the file, so that every place shown is one in the file.

#![deny(missing_docs)]

pub mod config;
pub mod diagnostic;
pub mod header;
pub mod panics;
pub mod parse;

pub use config::{Config, ForcedTarget};
pub use diagnostic::{Diagnostic, Source};
pub use parse::{ClifFile, FunctionCase};
