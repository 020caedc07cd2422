//! Diagnostics as data: the message, its span and related spans. They are rendered only for output.

use codespan_reporting::diagnostic as cs;
use codespan_reporting::files::{Error as FilesError, Files};
use codespan_reporting::term;

use crate::source::{FileId, SourceMap, Span};

/// The severity of a message. Only errors make a run fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Severity {
    /// Output of a `dump` statement.
    Note,
    /// Accepted, but probably a mistake.
    Warning,
    /// The input is wrong.
    Error,
}

/// A span of the source with a remark.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Label {
    /// The source text.
    pub span: Span,
    /// The remark; may be empty.
    pub message: String,
    /// Whether this is the span of the fault; otherwise it is a related span.
    pub primary: bool,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The fault, in one line.
    pub message: String,
    /// The spans involved, the primary one first.
    pub labels: Vec<Label>,
    /// Further remarks without a span, such as "did you mean".
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// Creates a message without a span.
    pub fn new(severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Creates an error at `span`; `label` is a short remark on the text at the span.
    pub fn error(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message).primary(span, label)
    }

    /// Creates a warning at `span`.
    pub fn warning(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message).primary(span, label)
    }

    /// Adds a span of the fault.
    #[must_use]
    pub fn primary(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
            primary: true,
        });
        self
    }

    /// Adds a related span.
    #[must_use]
    pub fn secondary(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
            primary: false,
        });
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Returns the span of the fault, if it has one.
    pub fn span(&self) -> Option<Span> {
        self.labels.iter().find(|label| label.primary).map(|label| label.span)
    }

    /// Returns whether it makes the run fail.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl<'a> Files<'a> for SourceMap {
    type FileId = FileId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<&'a str, FilesError> {
        self.file(id).map(|file| file.name()).ok_or(FilesError::FileMissing)
    }
    fn source(&'a self, id: FileId) -> Result<&'a str, FilesError> {
        self.file(id).map(|file| file.text()).ok_or(FilesError::FileMissing)
    }
    fn line_index(&'a self, id: FileId, at: usize) -> Result<usize, FilesError> {
        let file = self.file(id).ok_or(FilesError::FileMissing)?;
        let after = file.line_starts().partition_point(|start| *start as usize <= at);
        Ok(after.saturating_sub(1))
    }
    fn line_range(&'a self, id: FileId, line: usize) -> Result<std::ops::Range<usize>, FilesError> {
        let file = self.file(id).ok_or(FilesError::FileMissing)?;
        let starts = file.line_starts();
        let start = *starts.get(line).ok_or(FilesError::LineTooLarge {
            given: line,
            max: starts.len().saturating_sub(1),
        })? as usize;
        let end = starts.get(line + 1).map_or(file.text().len(), |next| *next as usize);
        Ok(start..end)
    }
}

/// Moves an offset to the start of its character, so that slicing at it is safe.
fn on_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The maximum length of a source line that is shown. Longer lines are machine-generated, and
/// drawing them takes longer than parsing the program.
const MAX_LINE: usize = 1000;

/// Returns whether a label is in a line that is too long to be shown.
fn in_long_line(label: &Label, sources: &SourceMap) -> bool {
    let Some(file) = sources.file(label.span.file) else {
        return true;
    };
    let line = |at: u32| file.line_starts().partition_point(|start| *start <= at);
    let end = file.text().len() as u32;
    let (first, last) = (line(label.span.start), line(label.span.end));
    (first..=last).any(|line| {
        let start = file.line_starts().get(line.saturating_sub(1)).copied();
        let next = file.line_starts().get(line).copied().unwrap_or(end);
        next - start.unwrap_or(0).min(next) > MAX_LINE as u32
    })
}

/// Renders a message without its source lines.
fn render_short(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut out = format!("{severity}: {}\n", diagnostic.message);
    for label in &diagnostic.labels {
        let place = sources.location(label.span);
        out.push_str(&format!(
            "  {}:{}:{}: {}\n",
            place.file, place.line, place.column, label.message
        ));
    }
    for note in &diagnostic.notes {
        out.push_str(&format!("  = {note}\n"));
    }
    out
}

/// Renders a message as text for a terminal: `file:line:col`, the source lines with their labels,
/// and the notes.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    if diagnostic.labels.len() > 20 || diagnostic.labels.iter().any(|label| in_long_line(label, sources)) {
        return render_short(diagnostic, sources);
    }
    let severity = match diagnostic.severity {
        Severity::Note => cs::Severity::Note,
        Severity::Warning => cs::Severity::Warning,
        Severity::Error => cs::Severity::Error,
    };
    let labels = diagnostic
        .labels
        .iter()
        .map(|label| {
            let text = sources.file(label.span.file).map_or("", |file| file.text());
            let start = on_boundary(text, label.span.start as usize);
            let end = on_boundary(text, label.span.end as usize).max(start);
            let style = if label.primary {
                cs::LabelStyle::Primary
            } else {
                cs::LabelStyle::Secondary
            };
            cs::Label::new(style, label.span.file, start..end).with_message(label.message.clone())
        })
        .collect();
    let message = cs::Diagnostic::new(severity)
        .with_message(diagnostic.message.clone())
        .with_labels(labels)
        .with_notes(diagnostic.notes.clone());
    // The renderer fails only for labels outside their file. Keep the message in that case.
    term::emit_into_string(&term::Config::default(), sources, &message)
        .unwrap_or_else(|_| render_short(diagnostic, sources))
}

/// Returns the candidate that is closest to `name`, if it is close enough for a "did you mean".
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 4);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(name.len()) > limit || candidate == name {
            continue;
        }
        let distance = edit_distance(name.as_bytes(), candidate.as_bytes());
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance in bytes. A change of case costs 1, like any other change.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    // Longer names are not typed by hand.
    if a.len() > 100 || b.len() > 100 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
