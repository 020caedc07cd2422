//! Inserts faults into the sources, one at a time, and runs the tests that must notice them.
//!
//! # Contract
//!
//! [`list`] reads the faults: text files in `faults/`, one for each topic. [`edit`] inserts all
//! faults into the source texts at once; an environment variable selects one at run time. [`tree`]
//! writes a copy of the workspace with these texts. [`build`] builds the tests of the copy, [`run`]
//! runs the tests of each fault, and [`report`] prints the result. The original sources are never
//! changed.

#![deny(missing_docs)]

pub mod build;
pub mod edit;
pub mod list;
pub mod report;
pub mod run;
pub mod tree;

use std::path::PathBuf;

/// An error of the campaign itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The list of faults is malformed.
    #[error("{path}: {message}")]
    List {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A fault does not match the sources.
    #[error("fault `{name}`: {message}")]
    Fault {
        /// The name of the fault.
        name: String,
        /// The reason.
        message: String,
    },
    /// A command failed.
    #[error("{0}")]
    Command(String),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Reads a text file.
///
/// # Errors
///
/// Returns [`Error::File`] if the file cannot be read.
pub fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })
}

/// Writes a file and creates its folder. A file that already has these contents keeps its
/// modification time, so Cargo does not rebuild it.
///
/// # Errors
///
/// Returns [`Error::File`] if the file or its folder cannot be written.
pub fn write(path: &std::path::Path, contents: &[u8]) -> Result<()> {
    let fault = |error| Error::File {
        path: path.to_owned(),
        error,
    };
    if std::fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    std::fs::write(path, contents).map_err(fault)
}
