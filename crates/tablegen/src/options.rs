//! How to read a program.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

/// How to read a program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders in which `include` looks for files, after the working directory.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined for `#ifdef`.
    pub defines: Vec<String>,
    /// Files that need not exist on disk, by the path under which they are opened; looked at first.
    pub files: FxHashMap<PathBuf, String>,
    /// Keep the steps that give fields their values, for [`Record::history`](crate::Record::history). Takes time and memory.
    pub trace: bool,
    /// Steps of evaluation after which a program is stopped. One step is about 50 ns.
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
