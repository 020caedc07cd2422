//! Options for parsing a program.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

/// Options for parsing a program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders in which `include` looks for files, after the working directory.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined for `#ifdef`.
    pub defines: Vec<String>,
    /// Virtual files, by the path under which they are opened. They take precedence over files on
    /// disk.
    pub files: FxHashMap<PathBuf, String>,
    /// Whether to record the history of fields, for [`Record::history`](crate::Record::history). It
    /// costs time and memory.
    pub trace: bool,
    /// The number of evaluation steps after which a program is stopped. One step takes about 50 ns.
    pub step_limit: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            include_dirs: Vec::new(),
            defines: Vec::new(),
            files: FxHashMap::default(),
            trace: false,
            step_limit: 1_000_000_000,
        }
    }
}
