//! Compares text with the expectations of a file: filecheck directives, and `precise-output` with
//! its rewriting.
//!
//! The expectation of `precise-output` follows the function in comments, one `; ` line for each
//! line of output. Comments with `;;` and run lines may be among them; they are not part of the
//! expectation and are kept.

use filecheck::{Checker, CheckerBuilder, NO_VARIABLES};
use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use naplespu_reader::parse::{ClifFile, FunctionCase};
use std::ops::Range;

/// Checks `output` against the filecheck directives of the file's preamble and the function's
/// comments.
///
/// # Errors
///
/// Returns the mismatch or the malformed directive as text of several lines.
pub fn filecheck(file: &ClifFile, case: &FunctionCase, output: &str) -> Result<(), String> {
    let checker = checker(file, case)?;
    let failed = |e: filecheck::Error| e.to_string();
    if checker.check(output, NO_VARIABLES).map_err(failed)? {
        return Ok(());
    }
    // The explanation omits the last character of each line.
    let lines = format!("{}\n", output.trim_end_matches('\n'));
    let (_, explanation) = checker.explain(&lines, NO_VARIABLES).map_err(failed)?;
    Err(format!("{checker}{explanation}"))
}

/// Returns whether a function has filecheck directives.
pub fn has_directives(file: &ClifFile, case: &FunctionCase) -> bool {
    checker(file, case).map_or(true, |c| !c.is_empty())
}

fn checker(file: &ClifFile, case: &FunctionCase) -> Result<Checker, String> {
    let mut builder = CheckerBuilder::new();
    for comment in file.preamble.iter().chain(&case.comments) {
        builder
            .directive(&comment.text)
            .map_err(|e| format!("`{}`: {e}", comment.text))?;
    }
    Ok(builder.finish())
}

/// Compares `output` with the precise expectation of a function.
///
/// # Errors
///
/// Returns the difference.
pub fn precise(file: &ClifFile, index: usize, output: &str) -> Result<(), String> {
    let region = Region::of(file, index);
    let expected = region.expected(&file.source.text);
    let actual: Vec<&str> = output.lines().map(str::trim_end).collect();
    if expected == actual {
        return Ok(());
    }
    let [mut before, mut after] = [expected.join("\n"), actual.join("\n")];
    before.push('\n');
    after.push('\n');
    Err(format!("--- expected\n+++ actual\n{}", unified_diff(&before, &after)))
}

/// Returns the difference of two texts with three lines of context.
pub fn unified_diff(before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
        .to_string()
}

/// Returns the file with new precise expectations: `outputs` has the output of each function, by
/// index.
pub fn rewrite(file: &ClifFile, outputs: &[(usize, String)]) -> String {
    let text = &file.source.text;
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (index, output) in outputs {
        let region = Region::of(file, *index);
        out.push_str(&text[at..region.bytes.start]);
        if !out.ends_with('\n') {
            out.push('\n');
        }
        let kept = region.lines(text).filter_map(|line| match line {
            Line::Kept(line) => Some(line),
            _ => None,
        });
        for line in kept {
            out.push_str(line);
            out.push('\n');
        }
        out.push('\n');
        for line in output.lines() {
            out.push_str(format!("; {line}").trim_end());
            out.push('\n');
        }
        at = region.bytes.end;
        if at < text.len() {
            out.push('\n');
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The comments between the end of a function and the next function.
struct Region {
    bytes: Range<usize>,
}

enum Line<'a> {
    Blank,
    Kept(&'a str),
    Expected(&'a str),
}

impl Region {
    fn of(file: &ClifFile, index: usize) -> Region {
        let text = &file.source.text;
        let line_start = |line: usize| file.source.line_span(line).start;
        let start = file.functions.get(index).map_or(text.len(), |f| line_start(f.line));
        let end = file.functions.get(index + 1).map_or(text.len(), |f| line_start(f.line));
        // The function ends with its last line that is not only a comment.
        let mut after = start;
        let mut at = start;
        for line in text[start..end.max(start)].split_inclusive('\n') {
            at += line.len();
            let code = line.trim();
            if !code.is_empty() && !code.starts_with(';') {
                after = at;
            }
        }
        Region {
            bytes: after..end.max(after),
        }
    }

    fn lines<'a>(&self, text: &'a str) -> impl Iterator<Item = Line<'a>> {
        text[self.bytes.clone()].lines().map(|line| {
            let line = line.trim_end();
            match line.trim_start().strip_prefix(';') {
                None => Line::Blank,
                Some(rest) if rest.starts_with(';') || is_run_line(rest) => Line::Kept(line),
                Some(rest) => Line::Expected(rest.strip_prefix(' ').unwrap_or(rest)),
            }
        })
    }

    fn expected<'a>(&self, text: &'a str) -> Vec<&'a str> {
        self.lines(text)
            .filter_map(|line| match line {
                Line::Expected(line) => Some(line),
                _ => None,
            })
            .collect()
    }
}

/// Returns the directive in a comment, without the leading `;` and without a second comment after
/// it.
pub fn directive(comment: &str) -> &str {
    let text = comment.trim_start_matches([';', ' ', '\t']);
    // Quoted names can contain a `;`.
    let mut quoted = false;
    let end = text.find(|c| {
        quoted ^= c == '"';
        c == ';' && !quoted
    });
    text[..end.unwrap_or(text.len())].trim_end()
}

/// Returns whether a comment (with or without its `;`) is a run line: `run` or `print` alone or
/// with a colon, or `trap` with a colon.
pub fn is_run_line(comment: &str) -> bool {
    let text = directive(comment);
    if let Some(rest) = text.strip_prefix("trap") {
        return rest.trim_start().starts_with(':');
    }
    let rest = text.strip_prefix("run").or_else(|| text.strip_prefix("print"));
    rest.is_some_and(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with(':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "test compile precise-output\n\nfunction %a() {\nblock0:\n  return ; not this\n}\n; run: %a() == []\n;; nor this\n\n; one\n;\n;   two\n\nfunction %b() {\nblock0:\n  return\n}";

    #[test]
    fn precise_output_is_compared_and_rewritten() {
        let file = ClifFile::parse("t", TEXT.as_bytes());
        assert!(file.faults.is_empty());
        assert_eq!(precise(&file, 0, "one\n\n  two\n"), Ok(()));
        let diff = precise(&file, 0, "one\n\n  three\n").unwrap_err();
        assert!(diff.contains("-  two") && diff.contains("+  three"), "{diff}");
        assert_eq!(precise(&file, 1, ""), Ok(()));

        let outputs = [(0, "x\n\n  y\n".to_owned()), (1, "z\n".to_owned())];
        let new = rewrite(&file, &outputs);
        assert!(
            new.contains("}\n; run: %a() == []\n;; nor this\n\n; x\n;\n;   y\n\nfunction %b"),
            "{new}"
        );
        assert!(new.ends_with("}\n\n; z\n"), "{new}");
        let again = ClifFile::parse("t", new.as_bytes());
        assert_eq!(precise(&again, 0, "x\n\n  y\n"), Ok(()));
        assert_eq!(precise(&again, 1, "z"), Ok(()));
        assert_eq!(rewrite(&again, &outputs), new);
    }

    #[test]
    fn directives_are_checked() {
        let text = "; check: function\nfunction %a() {\nblock0:\n  return\n}\n; nextln: block0\n; not: jump\n";
        let file = ClifFile::parse("t", text.as_bytes());
        let case = &file.functions[0];
        assert!(has_directives(&file, case));
        assert_eq!(filecheck(&file, case, "function\nblock0\n return"), Ok(()));
        assert!(filecheck(&file, case, "function\nblock1\n").is_err());
        assert!(filecheck(&file, case, "function\nblock0\n jump").is_err());
    }

    #[test]
    fn run_lines_and_prose_differ() {
        assert!(is_run_line("; run: %f() == 1"));
        assert!(is_run_line("; run"));
        assert!(is_run_line(";print: %f()"));
        assert!(is_run_line("; trap: %f() == int_ovf"));
        assert!(is_run_line("; run ; note"));
        assert!(!is_run_line("; trap"));
        assert!(!is_run_line("; run this by hand"));
        assert!(!is_run_line("; running"));
    }
}
