//! The header of a filetest: its `test`, `set`, `target`, `feature` and `expect` lines.
//!
//! `cranelift-reader` rejects `target` lines of targets outside Cranelift. Therefore this module
//! reads the header, and [`Header::blanked`] returns the text with the header replaced by spaces,
//! which keeps all offsets and line numbers.

use super::diagnostic::Diagnostic;
use std::ops::Range;

/// A word of a header line and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Its byte range in the file.
    pub span: Range<usize>,
}

impl Word {
    /// Splits `name=value`; a word without `=` has no value.
    pub fn split(&self) -> (&str, Option<&str>) {
        match self.text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&self.text, None),
        }
    }
}

/// A `test` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestLine {
    /// The name of the subtest.
    pub name: Word,
    /// The options after the name.
    pub options: Vec<Word>,
}

/// A line that configures the compiler, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigLine {
    /// `set name=value ...`: for all `target` lines below.
    Set(Vec<Word>),
    /// `target triple name=value ...`
    Target {
        /// The target triple.
        triple: Word,
        /// Settings for this target only.
        options: Vec<Word>,
    },
}

/// The `expect` lines: results that are failures otherwise.
#[derive(Clone, Debug, Default)]
pub struct Announced {
    /// Functions that are refused, as `%name`; run lines that call them are refused too.
    pub refused: Vec<Word>,
    /// Whether no subtest executes the run lines.
    pub skipped: bool,
}

impl Announced {
    /// Returns whether the function with this name is expected to be refused.
    pub fn refuses(&self, name: &str) -> bool {
        self.refused.iter().any(|word| word.text == name)
    }
}

/// The header of a file.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The `test` lines.
    pub tests: Vec<TestLine>,
    /// The `set` and `target` lines.
    pub config: Vec<ConfigLine>,
    /// The `feature` lines: the name, and whether the feature is enabled (`feature "x"`) or
    /// disabled (`feature ! "x"`).
    pub features: Vec<(Word, bool)>,
    /// The `expect` lines.
    pub announced: Announced,
    /// The byte ranges of the header lines, without their line ends.
    lines: Vec<Range<usize>>,
}

impl Header {
    /// Reads the header of `text`, up to the first line that is not a header line, blank, or a
    /// comment. Adds errors to `faults`.
    pub fn read(text: &str, faults: &mut Vec<Diagnostic>) -> Header {
        let mut header = Header::default();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let span = start..start + line.trim_end().len();
            start += line.len();
            let code = line.split(';').next().unwrap_or("");
            let mut words = words(code, span.start);
            let Some(keyword) = words.next() else {
                continue;
            };
            match keyword.text.as_str() {
                "test" => match words.next() {
                    Some(name) => header.tests.push(TestLine {
                        name,
                        options: words.collect(),
                    }),
                    None => faults.push(
                        Diagnostic::new("a `test` line names no subtest", keyword.span, "")
                            .note("write for example `test compile` or `test run`"),
                    ),
                },
                "set" => header.config.push(ConfigLine::Set(words.collect())),
                "target" => match words.next() {
                    Some(triple) => header.config.push(ConfigLine::Target {
                        triple,
                        options: words.collect(),
                    }),
                    None => faults.push(Diagnostic::new(
                        "a `target` line names no target",
                        keyword.span,
                        "expected a triple such as `naplespu`",
                    )),
                },
                "expect" => header.announce(&keyword, words, faults),
                "feature" => {
                    let rest: Vec<Word> = words.collect();
                    let (wanted, name) = match rest.as_slice() {
                        [bang, name] if bang.text == "!" => (false, Some(name)),
                        [name] if name.text.starts_with('!') => (false, Some(name)),
                        [name] => (true, Some(name)),
                        _ => (true, None),
                    };
                    match name {
                        Some(name) => header.features.push((
                            Word {
                                text: name.text.trim_matches(['!', '"']).to_owned(),
                                span: name.span.clone(),
                            },
                            wanted,
                        )),
                        None => faults.push(Diagnostic::new(
                            "a `feature` line names one feature in quotes",
                            keyword.span,
                            "",
                        )),
                    }
                }
                _ => break,
            }
            header.lines.push(span);
        }
        header
    }

    /// Reads an `expect` line.
    fn announce(&mut self, keyword: &Word, mut words: impl Iterator<Item = Word>, faults: &mut Vec<Diagnostic>) {
        let what = words.next();
        let names: Vec<Word> = words.collect();
        match what.as_ref().map(|word| word.text.as_str()) {
            Some("refused") if !names.is_empty() => self.announced.refused.extend(names),
            Some("skipped") if names.is_empty() => self.announced.skipped = true,
            _ => faults.push(
                Diagnostic::new("unknown expectation in an `expect` line", keyword.span.clone(), "")
                    .note("write `expect refused %name ...` or `expect skipped`"),
            ),
        }
    }

    /// Returns the text with the header lines replaced by spaces.
    pub fn blanked(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for line in &self.lines {
            out.push_str(&text[at..line.start]);
            out.extend(std::iter::repeat_n(' ', line.len()));
            at = line.end;
        }
        out.push_str(&text[at..]);
        out
    }

    /// Returns whether a `test` line has this subtest.
    pub fn has_test(&self, name: &str) -> bool {
        self.tests.iter().any(|t| t.name.text == name)
    }

    /// Returns the triples of the `target` lines.
    pub fn triples(&self) -> impl Iterator<Item = &Word> {
        self.config.iter().filter_map(|line| match line {
            ConfigLine::Target { triple, .. } => Some(triple),
            ConfigLine::Set(_) => None,
        })
    }
}

/// Returns the words of a part of the file that starts at offset `base`.
fn words(text: &str, base: usize) -> impl Iterator<Item = Word> + '_ {
    text.split_whitespace().map(move |word| {
        // A word is a slice of the text, so the difference of the addresses is its offset.
        let start = base + (word.as_ptr() as usize - text.as_ptr() as usize);
        Word {
            text: word.to_owned(),
            span: start..start + word.len(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_blanked() {
        let text = "test run a b=1 ; why\n; note\n\nset opt_level=speed\ntarget naplespu x\nfeature ! \"foo\"\n\nfunction %f() {\n";
        let mut faults = Vec::new();
        let header = Header::read(text, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(header.tests[0].name.text, "run");
        assert_eq!(header.tests[0].options[1].split(), ("b", Some("1")));
        assert_eq!(&text[header.tests[0].options[0].span.clone()], "a");
        assert_eq!(header.config.len(), 2);
        assert_eq!(header.features[0].0.text, "foo");
        assert!(!header.features[0].1);
        let blanked = header.blanked(text);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(
            blanked.trim(),
            "; note\n\n                   \n                 \n               \n\nfunction %f() {"
        );
    }

    #[test]
    fn missing_words_are_faults() {
        let mut faults = Vec::new();
        Header::read("test\ntarget ; none\nfeature\nset\n", &mut faults);
        assert_eq!(faults.len(), 3);
    }

    #[test]
    fn results_are_announced() {
        let mut faults = Vec::new();
        let header = Header::read("test run\nexpect refused %f %g\nexpect skipped\n", &mut faults);
        assert!(faults.is_empty() && header.announced.skipped);
        assert!(header.announced.refuses("%g") && !header.announced.refuses("%h"));
        Header::read(
            "expect\nexpect refused\nexpect skipped %f\nexpect nothing\n",
            &mut faults,
        );
        assert_eq!(faults.len(), 4);
    }
}
