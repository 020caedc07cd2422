//! Reports parts of a file that check nothing: each `test` line, function and directive must have
//! an effect.
//!
//! # Contract
//!
//! [`faults`] finds comments that look like directives but are not. [`unchecked`] finds `test`
//! lines and functions without a check, and directives that no subtest reads. Both apply only to
//! files for this target; files for other targets follow other rules.
//!
//! A subtest checks a function if
//!
//! - it prints the function, and the file has a directive for it or compares the whole text
//!   (`precise-output`);
//! - it expects a failure, or is `test verifier`;
//! - it executes run lines, and one of them calls the function, directly or through other
//!   functions;
//! - the header announces the function's refusal.

use super::expect;
use super::lines::RunLines;
use super::subtest::Subtest;
use naplespu_reader::diagnostic::Diagnostic;
use naplespu_reader::parse::{ClifFile, Comment, FunctionCase};

/// The directives of filecheck.
const FILECHECK: [&str; 6] = ["check", "nextln", "not", "regex", "sameln", "unordered"];

/// The other directives.
const OTHERS: [&str; 4] = ["error", "print", "run", "trap"];

/// Returns the comments that look like directives but are not: a misspelled word, or no space after
/// the colon.
pub fn faults(file: &ClifFile) -> Vec<Diagnostic> {
    comments(file).filter_map(misspelt).collect()
}

/// Returns a diagnostic for each `test` line, directive and function that checks nothing, with the
/// index of the function.
pub fn unchecked(file: &ClifFile, subtests: &[Subtest], lines: &RunLines) -> Vec<(Option<usize>, Diagnostic)> {
    let mut list = Vec::new();
    if file.functions.is_empty() {
        list.push((
            None,
            Diagnostic::whole_file("the file has no function, so it checks nothing"),
        ));
        return list;
    }
    let called = called(file, lines);
    for (subtest, line) in subtests.iter().zip(&file.header.tests) {
        let checks = |index: usize| checks(file, *subtest, index, &called);
        if !(0..file.functions.len()).any(checks) {
            let note = if subtest.executes() {
                "the file has no run line"
            } else {
                "the file has no filecheck directive such as `; check: text`"
            };
            let what = format!("`test {}` checks nothing", line.name.text);
            list.push((None, Diagnostic::new(what, line.name.span.clone(), "").note(note)));
        }
    }
    for (index, case) in file.functions.iter().enumerate() {
        if !subtests.iter().any(|subtest| checks(file, *subtest, index, &called)) {
            let span = file.source.code_span(case.line);
            let failure = Diagnostic::new("nothing checks this function", span, "")
                .note("no directive is for it, and no run line calls it");
            list.push((Some(index), failure));
        }
    }
    let read = |word: &str| {
        subtests.iter().any(|subtest| match word {
            "error" => *subtest == Subtest::Verifier,
            _ => subtest.prints(),
        })
    };
    for comment in comments(file) {
        let text = comment.text.trim_start_matches([';', ' ', '\t']);
        let word = text.split(':').next().unwrap_or_default();
        let known = FILECHECK.contains(&word) || word == "error";
        if known && word.len() < text.len() && !read(word) {
            let failure = Diagnostic::new("no subtest reads this directive", span(comment), "");
            list.push((None, failure));
        }
    }
    list
}

/// Returns whether a subtest checks a function.
fn checks(file: &ClifFile, subtest: Subtest, index: usize, called: &[bool]) -> bool {
    let Some(case) = file.functions.get(index) else {
        return false;
    };
    if subtest.needs_isa() && file.header.announced.refuses(&case.name) {
        return true;
    }
    match subtest {
        Subtest::Verifier | Subtest::Compile { expect_fail: true, .. } => true,
        Subtest::Run { .. } | Subtest::Interpret => called.get(index).copied().unwrap_or(false),
        Subtest::Foreign => false,
        _ => subtest.is_precise() || expect::has_directives(file, case),
    }
}

/// Returns for each function whether a run line calls it, directly or through other functions.
fn called(file: &ClifFile, lines: &RunLines) -> Vec<bool> {
    let mut called: Vec<bool> = (0..file.functions.len()).map(|index| lines.cover(index)).collect();
    let mut open: Vec<usize> = (0..called.len()).filter(|&index| called[index]).collect();
    while let Some(caller) = open.pop() {
        for name in references(&file.functions[caller]) {
            let callee = file.functions.iter().position(|case| case.name == name);
            if let Some(callee) = callee.filter(|&callee| !called[callee]) {
                called[callee] = true;
                open.push(callee);
            }
        }
    }
    called
}

/// Returns the names of functions and symbols that a function declares.
pub fn references(case: &FunctionCase) -> Vec<String> {
    let func = &case.func;
    let callees = func.dfg.ext_funcs.values().map(|callee| &callee.name);
    let symbols = func.global_values.values().filter_map(|data| match data {
        cranelift_codegen::ir::GlobalValueData::Symbol { name, .. } => Some(name),
        _ => None,
    });
    let names = callees.chain(symbols);
    names.map(|name| name.display(Some(&func.params)).to_string()).collect()
}

fn comments(file: &ClifFile) -> impl Iterator<Item = &Comment> {
    let functions = file.functions.iter().flat_map(|case| &case.comments);
    file.preamble.iter().chain(functions)
}

fn span(comment: &Comment) -> std::ops::Range<usize> {
    comment.offset..comment.offset + comment.text.len()
}

/// Returns the fault of a comment that resembles a directive.
fn misspelt(comment: &Comment) -> Option<Diagnostic> {
    let text = comment.text.trim_start_matches([';', ' ', '\t']);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let fault = |label: String| Some(Diagnostic::new("this comment is not a directive", span(comment), label));
    if FILECHECK.contains(&word) {
        // Prose may begin with `check` or `not`, but not with these two words.
        let is_prose = !["nextln", "sameln"].contains(&word) && !rest.trim_start().starts_with(':');
        return match rest.strip_prefix(':') {
            Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => None,
            Some(_) => fault(format!("a space is missing after `{word}:`")),
            None if is_prose => None,
            None => fault(format!("`{word}:` with a colon is a directive")),
        };
    }
    let rest = rest.strip_prefix(':').filter(|_| !OTHERS.contains(&word))?;
    if rest.trim_start().starts_with('%') && rest.contains('(') && ["==", "!="].iter().any(|sign| rest.contains(sign)) {
        return fault("`run:` or `trap:` is meant?".to_owned());
    }
    let lower = word.to_ascii_lowercase();
    let near = |known: &&&str| match known.len() {
        // Many words differ from a short directive by one letter, so short words must match except
        // for case.
        0..=4 => lower == **known,
        5 => strsim::osa_distance(&lower, known) <= 1,
        _ => strsim::osa_distance(&lower, known) <= 2,
    };
    let known = FILECHECK.iter().chain(&OTHERS).find(near)?;
    fault(format!("`{known}:` is meant?"))
}

#[cfg(test)]
mod tests {
    use crate::file::{Options, test};
    use crate::outcome::Verdict;

    const F: &str = "function %f() -> i32 {\nblock0:\n    v0 = iconst.i32 1\n    return v0\n}\n";
    const G: &str = "function %g() -> i32 {\n    fn0 = %f() -> i32\nblock0:\n    v0 = call fn0()\n    return v0\n}\n";

    /// Returns the first failure of a file, or `None` if the file passes.
    fn failure(text: &str) -> Option<String> {
        let outcome = test("t.clif", text.as_bytes(), &Options::default());
        assert_eq!(
            outcome.verdict == Verdict::Failed,
            !outcome.failures.is_empty(),
            "{text}"
        );
        let first = outcome.failures.first()?;
        Some(first.message.clone())
    }

    #[test]
    fn files_that_check_nothing_fail() {
        for (text, wanted) in [
            ("test run\n".to_owned(), "no function"),
            ("test verifier\n; run: %f() == 1\n".to_owned(), "names no function"),
            (format!("test run\n{F}"), "`test run` checks nothing"),
            (format!("test interpret\n{F}"), "`test interpret` checks nothing"),
            (format!("test compile\n{F}"), "`test compile` checks nothing"),
            (format!("test disasm\n{F}"), "`test disasm` checks nothing"),
            (format!("test optimize\n{F}"), "`test optimize` checks nothing"),
            (format!("test cat\n{F}"), "`test cat` checks nothing"),
            (format!("test print-cfg\n{F}"), "`test print-cfg` checks nothing"),
            (
                format!("test run\ntest compile\n{F}; run: %f() == 1\n"),
                "`test compile` checks nothing",
            ),
            (
                format!("test run\ntest compile\n{F}; check: s0\n"),
                "`test run` checks nothing",
            ),
            (
                format!("test run\n{F}; run: %f() == 1\n{G}"),
                "nothing checks this function",
            ),
            (
                format!("test compile\n{F}; check: jret\n{G}"),
                "nothing checks this function",
            ),
            (
                format!("test run\n{F}; run: %f() == 1\n; check: ret\n"),
                "no subtest reads this directive",
            ),
            (
                format!("test run\n{F}; run: %f() == 1\n; error: none\n"),
                "no subtest reads this directive",
            ),
        ] {
            let failure = failure(&text).unwrap_or_else(|| panic!("passes:\n{text}"));
            assert!(failure.contains(wanted), "{failure}:\n{text}");
        }
    }

    #[test]
    fn files_that_check_something_pass() {
        for text in [
            format!("test run\n{F}; run: %f() == 1\n"),
            // The run line reaches the first function through a call.
            format!("test run\n{F}{G}; run: %g() == 1\n"),
            format!("test interpret\n{F}{G}; run: %g() == 1\n"),
            format!("test verifier\n{F}"),
            format!("test compile\n; check: block0\n{F}{G}"),
            format!("test cat\n; check: function\n{F}"),
            format!("test run\ntest cat\n{F}; run: %f() == 1\n; check: iconst\n"),
        ] {
            assert_eq!(failure(&text), None, "{text}");
        }
    }

    #[test]
    fn misspelt_directives_are_faults() {
        let with = |comment: &str| failure(&format!("test cat\n; check: function\n{F}; {comment}\n"));
        for bad in [
            "chekc: iconst",
            "checks: iconst",
            "Check: iconst",
            "check:iconst",
            "nextline: iconst",
            "nextln iconst",
            "same-ln: iconst",
            "NOT: jump",
            "unorderd: jump",
            "rnu: %f() == 1",
            "trp: %f() == user1",
            "pirnt: %f()",
        ] {
            assert_eq!(with(bad).as_deref(), Some("this comment is not a directive"), "{bad}");
        }
        for good in [
            "check: iconst",
            "not that it matters",
            "check this",
            "note: prose",
            "row: 1",
            "run faster",
            "c: d",
        ] {
            assert_eq!(with(good), None, "{good}");
        }
    }
}
