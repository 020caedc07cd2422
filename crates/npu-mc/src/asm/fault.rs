//! Faults of a source text, with suggestions.

use core::ops::Range;

/// A range of bytes of the source.
pub type Span = Range<usize>;

/// A fault in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The text that is wrong. It is inside the source, on character boundaries.
    pub span: Span,
    /// The message.
    pub message: String,
    /// A short text for the marked span, such as what is expected there.
    pub label: String,
    /// Additional hints.
    pub notes: Vec<String>,
}

impl Fault {
    /// Creates a fault without notes.
    pub fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Fault {
        Fault {
            span,
            message: message.into(),
            label: label.into(),
            notes: Vec::new(),
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Fault {
        self.notes.push(note.into());
        self
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{}..{}: {} ({})",
            self.span.start, self.span.end, self.message, self.label
        )
    }
}

impl core::error::Error for Fault {}

/// The longest word, in bytes, that is compared with the known words.
const LONGEST: usize = 40;

/// Returns the known word that is closest to an unknown one, if it is close enough for a typing
/// error.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let most = if word.len() < 5 { 1 } else { 2 };
    known
        .filter(|k| k.len().abs_diff(word.len()) <= most)
        .map(|k| (distance(word.as_bytes(), k.as_bytes()), k))
        .filter(|&(d, _)| d <= most)
        .min_by_key(|&(d, _)| d)
        .map(|(_, k)| k)
}

/// Returns the number of letters to change, insert, delete or swap with their neighbor.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut rows = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i * width + j] = if i == 0 || j == 0 {
                i.max(j)
            } else {
                let differ = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (rows[(i - 1) * width + j - 1] + differ)
                    .min(rows[(i - 1) * width + j] + 1)
                    .min(rows[i * width + j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[(i - 2) * width + j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_has_a_nearest_word_and_a_different_word_has_none() {
        let known = ["add_i32", "sub_i32", ".long", "nop"];
        let near = |word| nearest(word, known.iter().copied());
        assert_eq!(near("add_i23"), Some("add_i32"));
        assert_eq!(near(".lomg"), Some(".long"));
        assert_eq!(near("npo"), Some("nop"));
        assert_eq!(near("frobnicate"), None);
        assert_eq!(near(""), None);
    }
}
