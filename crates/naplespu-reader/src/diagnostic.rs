//! Diagnostics of input files, and their rendering as text.

use super::panics::{Panic, PanicIn};
use codespan_reporting::diagnostic::{Diagnostic as Rendered, Label, Severity};
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term::{self, Config};
use std::fmt::Write as _;
use std::ops::Range;

/// Longer lines are not quoted, because they would be unreadable.
const LONGEST_QUOTED_LINE: usize = 400;

/// A named file with its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in messages; `<stdin>` for standard input.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// An error at a position of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message, one sentence without a full stop.
    pub message: String,
    /// The range of the text in bytes; `None` for the whole file.
    pub span: Option<Range<usize>>,
    /// The label of the marked text, possibly empty.
    pub label: String,
    /// Further facts and advice, one for each line below the quoted text.
    pub notes: Vec<String>,
    /// The code that panicked, if the error is a panic.
    pub panic: Option<PanicIn>,
}

impl Diagnostic {
    /// Creates a diagnostic with a span.
    pub fn new(message: impl Into<String>, span: Range<usize>, label: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: Some(span),
            label: label.into(),
            notes: Vec::new(),
            panic: None,
        }
    }

    /// Creates a diagnostic of the whole file.
    pub fn whole_file(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: None,
            label: String::new(),
            notes: Vec::new(),
            panic: None,
        }
    }

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Marks the diagnostic as a panic, with its message as a note.
    pub fn panicked(mut self, code: PanicIn, panic: &Panic) -> Self {
        self.panic = Some(code);
        self.note(panic.to_string())
    }
}

impl Source {
    /// Creates a file with its text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }

    /// Returns the line and column of a byte offset, both from 1; the column counts characters.
    /// Offsets past the end return the position of the end.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..floor_char_boundary(&self.text, offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    /// Returns the byte range of a line (from 1) without its line end. Lines after the last one
    /// return the empty range at the end.
    pub fn line_span(&self, line: usize) -> Range<usize> {
        let mut start = 0;
        for _ in 1..line {
            match self.text[start..].find('\n') {
                Some(at) => start += at + 1,
                None => return self.text.len()..self.text.len(),
            }
        }
        let end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        start..end
    }

    /// Returns the range of a line's code, without surrounding white space and comment. A line that
    /// is only a comment returns the comment.
    pub fn code_span(&self, line: usize) -> Range<usize> {
        let span = self.line_span(line);
        let text = &self.text[span.clone()];
        let code = match text.find(';') {
            Some(at) if !text[..at].trim().is_empty() => &text[..at],
            _ => text,
        };
        let start = span.start + (code.len() - code.trim_start().len());
        start..start + code.trim().len()
    }

    /// Returns `name:line:column` of an offset.
    pub fn place(&self, offset: usize) -> String {
        let (line, column) = self.position(offset);
        format!("{}:{line}:{column}", self.name)
    }

    /// Renders errors as text: message, `file:line:column`, the quoted line with its label, notes,
    /// and a blank line after each.
    pub fn render(&self, diagnostics: &[Diagnostic]) -> String {
        self.render_as(Severity::Error, diagnostics)
    }

    /// Renders warnings in the same format.
    pub fn render_warnings(&self, diagnostics: &[Diagnostic]) -> String {
        self.render_as(Severity::Warning, diagnostics)
    }

    fn render_as(&self, severity: Severity, diagnostics: &[Diagnostic]) -> String {
        let file = SimpleFile::new(&self.name, &self.text);
        let config = Config::default();
        let mut out = String::new();
        for diagnostic in diagnostics {
            let Some(span) = self.quotable(diagnostic) else {
                self.render_short(severity, diagnostic, &mut out);
                continue;
            };
            let rendered = Rendered::new(severity)
                .with_message(&diagnostic.message)
                .with_labels(vec![Label::primary((), span).with_message(&diagnostic.label)])
                .with_notes(diagnostic.notes.clone());
            match term::emit_into_string(&config, &file, &rendered) {
                Ok(text) => out.push_str(&text),
                Err(_) => self.render_short(severity, diagnostic, &mut out),
            }
        }
        out
    }

    /// Returns the span to mark, if it exists and its line is short enough.
    fn quotable(&self, diagnostic: &Diagnostic) -> Option<Range<usize>> {
        let span = diagnostic.span.clone()?;
        let start = floor_char_boundary(&self.text, span.start);
        let (line, _) = self.position(start);
        let whole = self.line_span(line);
        if whole.len() > LONGEST_QUOTED_LINE || self.text[whole.clone()].contains(is_unprintable) {
            return None;
        }
        let end = floor_char_boundary(&self.text, span.end.min(whole.end));
        Some(start..end.max(start))
    }

    fn render_short(&self, severity: Severity, diagnostic: &Diagnostic, out: &mut String) {
        let kind = match severity {
            Severity::Warning => "warning",
            Severity::Bug | Severity::Error | Severity::Note | Severity::Help => "error",
        };
        let place = match &diagnostic.span {
            Some(span) => self.place(span.start),
            None => self.name.clone(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{kind}: {}\n  --> {place}", diagnostic.message);
        if !diagnostic.label.is_empty() {
            let _ = writeln!(out, "   = {}", diagnostic.label);
        }
        for note in &diagnostic.notes {
            let _ = writeln!(out, "   = {}", note.replace('\n', "\n     "));
        }
        out.push('\n');
    }
}

/// Returns whether a character is a control character that would disturb a terminal.
fn is_unprintable(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\r')
}

/// Returns the largest character boundary up to `offset`.
fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let source = Source::new("f", "ab\nä; x\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(3), (2, 1));
        assert_eq!(source.position(4), (2, 1), "inside a character");
        assert_eq!(source.position(5), (2, 2));
        assert_eq!(source.position(1000), (3, 1));
        assert_eq!(source.line_span(2), 3..8);
        assert_eq!(source.code_span(2), 3..5);
        assert_eq!(source.line_span(9), 9..9);
    }

    #[test]
    fn a_diagnostic_shows_place_label_and_note() {
        let source = Source::new("dir/f.clif", "one\n  two three\n");
        let text = source.render(&[Diagnostic::new("bad", 6..9, "here").note("do better")]);
        assert!(text.contains("error: bad"), "{text}");
        assert!(text.contains("dir/f.clif:2:3"), "{text}");
        assert!(text.contains("^^^ here"), "{text}");
        assert!(text.contains("= do better"), "{text}");
    }

    #[test]
    fn hostile_spans_and_lines_render() {
        let source = Source::new("f", "é\u{1b}[31m\n");
        let spans = [0..0, 1..2, 0..100, 50..60];
        let all: Vec<_> = spans.map(|s| Diagnostic::new("m", s, "l")).into();
        assert!(!source.render(&all).contains('\u{1b}'));
        let long = Source::new("f", "x".repeat(10_000));
        let text = long.render(&[Diagnostic::new("m", 5000..5001, "l")]);
        assert!(text.len() < 200 && text.contains("f:1:5001"), "{text}");
    }
}
