//! Generates the tables of this crate from the target description.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let text = tdgen::build::machine_code(Path::new("../../td"))?;
    std::fs::write(out.join("mc.rs"), text).map_err(|e| e.to_string())
}
