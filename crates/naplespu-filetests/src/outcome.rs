//! Results of testing a file: for functions, run lines, and the file.

use naplespu_reader::diagnostic::{Diagnostic, Source};
use naplespu_reader::panics::{Panic, PanicIn};
use std::fmt;
use std::ops::Range;

/// The result of a check, in ascending order of strength. The strongest of several results counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Not tested: the test is for another machine.
    Skipped,
    /// As expected.
    Passed,
    /// The function or one of its callees uses a feature that the target does not have.
    Refused,
    /// Not as expected.
    Failed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Skipped => "skipped",
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        })
    }
}

/// The strongest verdict so far, with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    verdict: Option<Verdict>,
    /// The reason, which may be empty.
    pub reason: String,
}

impl Finding {
    /// Records another result.
    pub fn add(&mut self, verdict: Verdict, reason: impl Into<String>) {
        if self.verdict < Some(verdict) {
            self.verdict = Some(verdict);
            self.reason = reason.into();
        }
    }

    /// Returns the strongest result so far.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }
}

/// The result for one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionOutcome {
    /// The name as CLIF prints it; `-` for a failure outside of functions (a file that does not
    /// parse).
    pub name: String,
    /// The result over all subtests and configurations.
    pub verdict: Verdict,
    /// Why the function did not pass; empty if it did.
    pub reason: String,
}

/// The result of one `; run:` or `; print:` line over all configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineOutcome {
    /// The line number.
    pub line: usize,
    /// The directive without `;`.
    pub text: String,
    /// The result.
    pub verdict: Verdict,
    /// Why the line did not pass.
    pub reason: String,
    /// The different results of a `print:` line.
    pub printed: Vec<String>,
}

/// All results of one file.
#[derive(Clone, Debug)]
pub struct FileOutcome {
    /// The name and the text.
    pub source: Source,
    /// The result of the file: failed if any part failed, refused or skipped if all parts were.
    pub verdict: Verdict,
    /// One entry for each function, in file order.
    pub functions: Vec<FunctionOutcome>,
    /// One entry for each run line, in file order.
    pub lines: Vec<LineOutcome>,
    /// The failures with their positions.
    pub failures: Vec<Diagnostic>,
    /// The file with new expectations, if rewriting was requested and they differ.
    pub rewritten: Option<String>,
}

impl FileOutcome {
    /// Creates the result of a file that failed as a whole.
    pub fn failed(source: Source, failures: Vec<Diagnostic>) -> FileOutcome {
        let reason = match failures.as_slice() {
            [] => String::new(),
            [only] => located(&source, only),
            [first, rest @ ..] => format!("{} (and {} more)", located(&source, first), rest.len()),
        };
        FileOutcome {
            source,
            verdict: Verdict::Failed,
            functions: vec![FunctionOutcome {
                name: "-".to_owned(),
                verdict: Verdict::Failed,
                reason,
            }],
            lines: Vec::new(),
            failures,
            rewritten: None,
        }
    }

    /// Returns the verdict of a file for the verdicts of its functions.
    pub fn sum(functions: &[FunctionOutcome]) -> Verdict {
        let all = || functions.iter().map(|f| f.verdict);
        if all().any(|v| v == Verdict::Failed) {
            Verdict::Failed
        } else if functions.is_empty() || all().any(|v| v == Verdict::Passed) {
            Verdict::Passed
        } else {
            all().max().unwrap_or(Verdict::Passed)
        }
    }

    /// Returns the component that panicked, for each failure that is a panic.
    pub fn panics(&self) -> impl Iterator<Item = PanicIn> + '_ {
        self.failures.iter().filter_map(|failure| failure.panic)
    }

    /// Formats the failures as text.
    pub fn render(&self) -> String {
        self.source.render(&self.failures)
    }
}

/// Adds a failure. If the same failure exists for another configuration, adds only the
/// configuration to it.
pub fn add_failure(failures: &mut Vec<Diagnostic>, message: &str, span: Range<usize>, reason: &str, setting: &str) {
    add(failures, (message, reason), span, setting, None);
}

/// Adds a panic of a component, like [`add_failure`].
pub fn add_panic(
    failures: &mut Vec<Diagnostic>,
    message: &str,
    span: Range<usize>,
    (code, panic): (PanicIn, &Panic),
    setting: &str,
) {
    add(failures, (message, &panic.to_string()), span, setting, Some(code));
}

fn add(
    failures: &mut Vec<Diagnostic>,
    (message, reason): (&str, &str),
    span: Range<usize>,
    setting: &str,
    panic: Option<PanicIn>,
) {
    let (label, rest) = reason.split_once('\n').unwrap_or((reason, ""));
    let note = format!("with {setting}");
    let known = failures
        .iter_mut()
        .find(|d| d.message == message && d.span.as_ref() == Some(&span) && d.label == label && d.panic == panic);
    match known {
        Some(known) if known.notes.contains(&note) => {}
        Some(known) => known.notes.push(note),
        None => {
            let mut failure = Diagnostic::new(message, span, label);
            failure.panic = panic;
            if !rest.is_empty() {
                failure = failure.note(rest);
            }
            failures.push(failure.note(note));
        }
    }
}

fn located(source: &Source, diagnostic: &Diagnostic) -> String {
    match &diagnostic.span {
        Some(span) => {
            let (line, column) = source.position(span.start);
            format!("{line}:{column}: {}", diagnostic.message)
        }
        None => diagnostic.message.clone(),
    }
}

/// Counts of each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// Refused by the target.
    pub refused: usize,
    /// Not tested.
    pub skipped: usize,
}

impl Tally {
    /// Counts one result.
    pub fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Skipped => self.skipped += 1,
        }
    }
}

/// The counts over all files of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Run lines.
    pub lines: Tally,
    /// Files.
    pub files: Tally,
    /// Failures that are panics of any component.
    pub panics: usize,
}

impl Summary {
    /// Counts a file.
    pub fn add(&mut self, file: &FileOutcome) {
        self.files.add(file.verdict);
        self.panics += file.panics().count();
        for line in &file.lines {
            self.lines.add(line.verdict);
        }
    }

    /// Returns whether no file and no line failed.
    pub fn is_good(&self) -> bool {
        self.files.failed == 0 && self.lines.failed == 0
    }
}

impl fmt::Display for Summary {
    /// Writes two lines: run lines, files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, files, .. } = self;
        writeln!(
            f,
            "run lines: {} passed, {} failed, {} refused",
            lines.passed, lines.failed, lines.refused
        )?;
        write!(
            f,
            "{} passed, {} failed, {} refused, {} skipped",
            files.passed, files.failed, files.refused, files.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(verdict: Verdict) -> FunctionOutcome {
        FunctionOutcome {
            name: "%f".to_owned(),
            verdict,
            reason: String::new(),
        }
    }

    #[test]
    fn a_file_is_what_its_functions_are() {
        use Verdict::*;
        let sum = |list: &[Verdict]| {
            let list: Vec<_> = list.iter().copied().map(function).collect();
            FileOutcome::sum(&list)
        };
        assert_eq!(sum(&[]), Passed);
        assert_eq!(sum(&[Refused, Passed]), Passed);
        assert_eq!(sum(&[Refused, Refused]), Refused);
        assert_eq!(sum(&[Refused, Skipped]), Refused);
        assert_eq!(sum(&[Skipped]), Skipped);
        assert_eq!(sum(&[Refused, Passed, Failed]), Failed);
    }

    #[test]
    fn the_strongest_finding_keeps_its_reason() {
        let mut finding = Finding::default();
        finding.add(Verdict::Passed, "");
        finding.add(Verdict::Failed, "a");
        finding.add(Verdict::Failed, "b");
        finding.add(Verdict::Refused, "c");
        assert_eq!(
            (finding.verdict(), finding.reason.as_str()),
            (Some(Verdict::Failed), "a")
        );
    }
}
