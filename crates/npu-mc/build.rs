//! Reads the target description once for the whole workspace and runs every back end.
//!
//! The outputs are the tables of this crate and the ISLE, settings, legalization table and routines
//! of the compiler. The compiler's build script finds them through `DEP_NPU_TD_ISLE`,
//! `DEP_NPU_TD_SETTINGS`, `DEP_NPU_TD_LEGALIZE` and `DEP_NPU_TD_ROUTINES`. `DEP_NPU_TD_MC` and
//! `DEP_NPU_TD_TABLES` name the tables, which enter the compiler's fingerprint.

use std::path::PathBuf;
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
    let generated = tdgen::build::all(npu_td::directory())?;
    let machine_code = out.join("mc.rs");
    let tables = out.join("tables.rs");
    let isle = out.join("td.isle");
    let settings = out.join("settings.rs");
    let legalize = out.join("legalize.rs");
    let routines = out.join("routines.rs");
    for (path, text) in [
        (&machine_code, generated.machine_code),
        (&out.join("semantics.rs"), generated.semantics),
        (&tables, generated.tables),
        (&isle, generated.isle),
        (&settings, generated.settings),
        (&legalize, generated.legalize),
        (&routines, generated.routines),
    ] {
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    for (key, path) in [
        ("mc", machine_code),
        ("tables", tables),
        ("isle", isle),
        ("settings", settings),
        ("legalize", legalize),
        ("routines", routines),
    ] {
        println!("cargo::metadata={key}={}", path.display());
    }
    Ok(())
}
