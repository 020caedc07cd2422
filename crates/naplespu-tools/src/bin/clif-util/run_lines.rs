//! The run lines of files, for `run`, `interpret` and the cost in the HTML page.

use crate::progress::Progress;
use crate::{Outcome, Stop, input, output};
use cranelift_codegen::data_value::DataValue;
use naplespu_filetests::Summary;
use naplespu_filetests::lines::{CallError, RunLines};
use naplespu_filetests::outcome::{Finding, LineOutcome};
use naplespu_reader::{ClifFile, Diagnostic, FunctionCase};
use std::path::{Path, PathBuf};

/// Runs every file and reports how many run lines passed. A bad file does not stop the others.
pub fn in_files(files: &[PathBuf], mut run_file: impl FnMut(&Path, &mut Summary) -> Outcome) -> Outcome {
    let mut summary = Summary::default();
    let mut sum = Ok(());
    // The progress of one file counts its run lines.
    let progress = (files.len() > 1).then(|| Progress::bar(files.len(), "files"));
    for path in files {
        match run_file(path, &mut summary) {
            outcome @ (Ok(()) | Err(Stop::Reported | Stop::Panicked)) => sum = worse(sum, outcome),
            Err(Stop::Fault(text)) => {
                output::report(&format!("error: {text}\n"));
                sum = worse(sum, Err(Stop::Reported));
            }
            Err(stop) => return Err(stop),
        }
        progress.iter().for_each(Progress::step);
    }
    drop(progress);
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

/// Returns the run lines of a file. Reports errors in them.
pub fn collect(file: &ClifFile) -> Result<RunLines, Stop> {
    let mut faults = Vec::new();
    let lines = RunLines::collect(file, false, &mut faults);
    input::report(file, &faults)?;
    Ok(lines)
}

/// Executes run lines by `call`. Returns the outcome of each line, and the diagnostics of those
/// that failed, which name the `setting`.
pub fn execute(
    mut lines: RunLines,
    file: &ClifFile,
    setting: &str,
    mut call: impl FnMut(&FunctionCase, &[DataValue]) -> Result<Vec<DataValue>, CallError>,
) -> (Vec<LineOutcome>, Vec<Diagnostic>) {
    let mut findings = vec![Finding::default(); file.functions.len()];
    let mut failures = Vec::new();
    let progress = Progress::bar(lines.list().len(), "run lines");
    lines.execute(file, setting, &mut findings, &mut failures, |case, values| {
        let result = call(case, values);
        progress.step();
        result
    });
    (lines.outcomes(file), failures)
}
