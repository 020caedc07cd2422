//! Runs the files of the generators as filetests.
//!
//! The files exist only in memory. The name of a file is the seed of its random numbers, so its
//! functions and run lines are the same in every run.

use naplespu_filetests::file::{self, Options};
use naplespu_filetests::{FileOutcome, Verdict, runner};
use naplespu_fuzz::operations::{VectorFile, vector_files};
use std::collections::BTreeSet;

#[test]
fn operations_on_vectors_do_what_the_evaluator_says() {
    let files = vector_files();
    let lines: usize = files.iter().map(|file| file.text.matches("; run:").count()).sum();
    println!("{} files, {lines} run lines", files.len());
    assert!(
        files.len() > 165 && lines > 27_000,
        "{} files, {lines} run lines",
        files.len()
    );
    hold(&files);
}

/// Tests the files. A failure shows the functions that fail.
fn hold(files: &[VectorFile]) {
    let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names.len(), files.len(), "two files of one name");
    let options = Options::default();
    let outcomes = runner::in_parallel(files.len(), |at| {
        file::test(&files[at].name, files[at].text.as_bytes(), &options)
    });
    let failures: String = outcomes.unwrap().iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{failures}");
}

/// Returns the problems of a file and its reduced CLIF: the header, and each failing function with
/// its run lines. Returns `None` if the file passes.
fn failure(outcome: &FileOutcome) -> Option<String> {
    let functions = outcome
        .functions
        .iter()
        .map(|function| (&function.name, function.verdict));
    let lines = outcome.lines.iter().map(|line| (&line.text, line.verdict));
    let is_good = |(_, verdict): (&String, Verdict)| verdict == Verdict::Passed;
    if outcome.verdict == Verdict::Passed && functions.clone().chain(lines).all(is_good) {
        return None;
    }
    let text = &outcome.source.text;
    let mut pieces = text.split("\nfunction ");
    let mut shown = format!("{}\n{}", outcome.render(), pieces.next().unwrap_or_default());
    let bad: Vec<&String> = functions
        .filter(|function| !is_good(*function))
        .map(|(name, _)| name)
        .collect();
    for piece in pieces {
        let name = piece.split('(').next().unwrap_or_default();
        if bad.iter().any(|bad| *bad == name) {
            shown += &format!("\nfunction {piece}");
        }
    }
    Some(shown)
}
