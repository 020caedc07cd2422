//! Compares `sim --strict` with the hardware description of several cores, on the programs of
//! `crates/npu-sim/tests/sim/faults`: a program with a fault does not end on the hardware, and the
//! others do. `sim --strict` passes those and no program with a fault.
//!
//! The variable `NPUMESH` names a program that runs the hardware description of 4 by 4 tiles.

use crate::{Outcome, clif_util, root};
use std::path::Path;
use std::process::Command;

/// The maximum number of cycles on the hardware; the longest program that ends has half of them.
const CYCLES: &str = "25000";

/// The number of cycles without an instruction that count as a hang.
const HANG: &str = "2000";

/// Returns the value of a line `// NAME: VALUE`.
fn value<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("// {name}: ");
    source.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// Checks each program.
pub fn on_the_hardware(simulator: &Path) -> Outcome<()> {
    let folder = root().join("crates/npu-sim/tests/sim/faults");
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join("several_cores.hex");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let source = std::fs::read_to_string(&path)?;
        let cores = value(&source, "cores").ok_or("no number of cores")?;
        let fault = value(&source, "fault").ok_or("no fault")?;
        let ends = fault == "none" || value(&source, "hardware") == Some("ends");
        let assembled = clif_util().arg("asm").arg(&path).arg("-o").arg(&image).status()?;
        let mut hardware = Command::new(simulator);
        hardware
            .arg("--image")
            .arg(&image)
            .args(["--hex", "--cores", cores, "--threads", "1"]);
        hardware.args(["--max-cycles", CYCLES, "--hang", HANG]);
        let ended = hardware.output()?.status.success();
        let mut strict = clif_util();
        strict
            .args(["sim", "--strict", "--timing", "--threads", "1", "--cores", cores])
            .arg(&image);
        let output = strict.output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let passes = output.status.success();
        let as_expected = if fault == "none" {
            passes
        } else {
            !passes && text.contains(fault)
        };
        if !assembled.success() || ended != ends || !as_expected {
            wrong.push(format!("{}: ended {ended}, passes {passes}\n{text}", path.display()));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}
