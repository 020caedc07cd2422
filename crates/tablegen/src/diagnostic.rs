//! Messages as data: what went wrong, where, and what else is involved. They are rendered once, at the edge.

use codespan_reporting::diagnostic as cs;
use codespan_reporting::files::{Error as FilesError, Files};
use codespan_reporting::term;

use crate::source::{FileId, SourceMap, Span};

/// How grave a message is. Only errors make a run fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Severity {
    /// Output the program asked for (`dump`).
    Note,
    /// Accepted, but probably not what was meant.
    Warning,
    /// The input is wrong.
    Error,
}

/// A piece of source with a remark.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Label {
    /// The source text in question.
    pub span: Span,
    /// The remark; may be empty.
    pub message: String,
    /// Whether this is the place of the fault, rather than something related.
    pub primary: bool,
}

/// One message.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// One line that says what is wrong.
    pub message: String,
    /// The places involved, the primary one first.
    pub labels: Vec<Label>,
    /// Further remarks without a place ("did you mean").
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A message without a place.
    pub fn new(severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// An error at `span`, where `label` says in short what is the matter with the text there.
    pub fn error(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message).primary(span, label)
    }

    /// A warning at `span`.
    pub fn warning(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message).primary(span, label)
    }

    /// Adds a place of the fault.
    #[must_use]
    pub fn primary(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
            primary: true,
        });
        self
    }

    /// Adds a related place.
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

    /// Where the fault is, if it has a place.
    pub fn span(&self) -> Option<Span> {
        self.labels.iter().find(|label| label.primary).map(|label| label.span)
    }

    /// Whether it makes the run fail.
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

/// Moves an offset to the start of the character it is in, so that slicing at it is safe.
fn on_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Longer lines are not shown: they are made by machines, and drawing them takes longer than reading the program.
const MAX_LINE: usize = 1000;

/// Whether a label stands in a line that is too long to be shown.
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

/// A message without its source lines.
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

/// A message as text for a terminal: `file:line:col`, the source lines with their labels, and the notes.
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
    // The renderer refuses only labels outside their file; the message itself is still worth having.
    term::emit_into_string(&term::Config::default(), sources, &message)
        .unwrap_or_else(|_| render_short(diagnostic, sources))
}

/// The candidate closest to `name`, if one is close enough to be worth a "did you mean".
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

/// Levenshtein's distance in bytes, with letters of different case counted as equal neighbours (cost 1 as any other change).
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    // Names longer than this are not typed by hand.
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
