//! The common loop of `run` and `interpret` over all files, and the summary line.

use crate::{Outcome, Stop, output};
use naplespu_filetests::Summary;
use std::path::{Path, PathBuf};

/// Runs every file and reports how many run lines passed. A bad file does not stop the others.
pub fn in_files(files: &[PathBuf], mut run_file: impl FnMut(&Path, &mut Summary) -> Outcome) -> Outcome {
    let mut summary = Summary::default();
    let mut sum = Ok(());
    for path in files {
        match run_file(path, &mut summary) {
            outcome @ (Ok(()) | Err(Stop::Reported | Stop::Panicked)) => sum = worse(sum, outcome),
            Err(stop) => return Err(stop),
        }
    }
    let lines = summary.lines;
    let text = format!(
        "run lines: {} passed, {} failed, {} refused\n",
        lines.passed, lines.failed, lines.refused
    );
    if sum.is_ok() && lines.passed + lines.failed + lines.refused == 0 {
        output::report("note: nothing was checked: there are no run lines\n");
    }
    output::print(text.as_bytes())?;
    if lines.failed == 0 && lines.refused == 0 {
        sum
    } else {
        worse(sum, Err(Stop::Reported))
    }
}

/// Returns the worse of two results: a panic is worse than another error.
pub fn worse(a: Outcome, b: Outcome) -> Outcome {
    match (a, b) {
        (panicked @ Err(Stop::Panicked), _) | (_, panicked @ Err(Stop::Panicked)) => panicked,
        (Ok(()), other) => other,
        (fault, _) => fault,
    }
}
