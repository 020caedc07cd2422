//! Faults for the sources, one at a time, and the tests that have to notice them.
//!
//! # Contract
//!
//! [`list`] reads the faults: text files in `faults/`, one a topic. [`edit`] puts all of them into texts of the sources at
//! once, each behind a switch that an environment variable turns on at run time. [`tree`] writes a copy of the workspace with
//! them. [`build`] builds the tests of the copy, [`run`] runs those that have to notice each fault, and [`report`] prints the
//! result. The sources themselves are never changed.

#![deny(missing_docs)]

pub mod build;
pub mod edit;
pub mod list;
pub mod report;
pub mod run;
pub mod tree;

use std::path::PathBuf;

/// What can go wrong apart from the faults themselves.
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
    /// A list of faults is no list of faults.
    #[error("{path}: {message}")]
    List {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A fault does not fit the sources.
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
/// [`Error::File`] if the file cannot be read.
pub fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })
}

/// Writes a file with its folder, unless the file has these contents already. A file that stays has its old time, so that
/// Cargo does not build it again.
///
/// # Errors
///
/// [`Error::File`] if the file or its folder cannot be written.
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
