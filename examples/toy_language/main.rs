//! Compiles programs in a small language, Brook (see `brook/mod.rs`), and runs them on the
//! simulated device.
//!
//! Without arguments all of `programs/` run, otherwise the given files.

mod brook;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/toy_language/programs");
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.sort();
    }
    for path in paths {
        println!("== {}", path.file_name().unwrap_or_default().display());
        print!("{}", brook::run(&fs::read_to_string(&path)?)?);
    }
    Ok(())
}
