//! Every operator, statement, conversion and message of the language has a test program. The lists
//! are read from the sources of the crate, so this test fails for a new entry without a program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the texts of all files with this extension in the folders.
fn texts(folders: &[&str], extension: &str) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    for folder in folders {
        let mut paths = Vec::new();
        for entry in fs::read_dir(root().join(folder))? {
            paths.push(entry?.path());
        }
        paths.sort();
        for path in paths {
            if path.extension().is_some_and(|found| found == extension) {
                texts.push(fs::read_to_string(path)?);
            }
        }
    }
    Ok(texts)
}

/// Returns the text without its comments.
fn code(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the text between `start` and the next `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).map_or(text.len(), |at| at + start.len());
    let rest = &text[from..];
    &rest[..rest.find(end).unwrap_or(rest.len())]
}

/// Returns the string literals of a text with their positions. Escaped quotes and line breaks are
/// replaced, other escapes are unchanged.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        if c != '"' {
            continue;
        }
        let mut literal = String::new();
        while let Some((_, c)) = rest.next() {
            match c {
                '"' => break,
                '\\' => literal.extend(rest.next().map(|one| one.1)),
                _ => literal.push(c),
            }
        }
        found.push((at, literal));
    }
    found
}

/// Returns whether the text contains `word` as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

const GOOD: &[&str] = &["tests/pass", "tests/json", "tests/detailed", "tests/dump"];

#[test]
fn operators() -> Result<(), Failure> {
    let source = fs::read_to_string(root().join("src/token.rs"))?;
    // The second occurrence is the table; the first is the macro.
    let table = source.rsplit("operators! {").next().unwrap_or_default();
    let names: Vec<String> = literals(between(table, "", "}")).into_iter().map(|one| one.1).collect();
    assert!(names.len() > 50, "{names:?}");
    let good: Vec<String> = texts(GOOD, "td")?.iter().map(|text| code(text)).collect();
    let faulty = texts(&["tests/fail"], "td")?;
    let missing = |texts: &[String]| -> Vec<&String> {
        let shows = |text: &String, name: &str| has_word(text, &format!("!{name}"));
        names
            .iter()
            .filter(|name| !texts.iter().any(|text| shows(text, name)))
            .collect()
    };
    assert_eq!(
        missing(&good),
        Vec::<&String>::new(),
        "operators that no good program has"
    );
    assert_eq!(
        missing(&faulty),
        Vec::<&String>::new(),
        "operators that no wrong program has"
    );
    Ok(())
}

#[test]
fn keywords_and_directives() -> Result<(), Failure> {
    let source = fs::read_to_string(root().join("src/token.rs"))?;
    let table = source.rsplit("keywords! {").next().unwrap_or_default();
    let mut words: Vec<String> = literals(between(table, "", "}")).into_iter().map(|one| one.1).collect();
    assert!(words.len() > 20, "{words:?}");
    words.extend(
        [
            "append", "prepend", "NAME", "#define", "#ifdef", "#ifndef", "#else", "#endif",
        ]
        .map(str::to_owned),
    );
    let good: Vec<String> = texts(GOOD, "td")?.iter().map(|text| code(text)).collect();
    let missing: Vec<&String> = words
        .iter()
        .filter(|word| !good.iter().any(|text| has_word(text, word)))
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "words that no good program has");
    Ok(())
}

#[test]
fn conversions() {
    // One for each pair of types in `World::convert`, and one for each common type.
    let expected = [
        "bit-and-bits1",
        "bits-to-int",
        "code-and-string",
        "common-type",
        "int-to-bit",
        "int-to-bits",
        "keep-unset-bits",
        "lists",
        "record-to-class",
        "unset",
    ];
    let file = |name: &str| Path::new("tests/pass").join(format!("convert-{name}.td"));
    let missing: Vec<&str> = expected
        .into_iter()
        .filter(|name| !root().join(file(name)).is_file())
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "conversions without a file");
}

/// Messages that no small program reaches. Each limit is tested in `hostile.rs` or out of reach. A
/// record without a field of its type would be a fault of the evaluator.
const LIMITS: &[&str] = &[
    "record `{record}` has no field `{name}`",
    "the evaluation takes too long",
    "the input is too large",
    "the program needs too much memory",
    "too many files are included",
];

/// Returns the messages in the sources, with `{}` for the variable parts.
fn messages() -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for text in texts(&["src"], "rs")? {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (start, around) in [
            ("Diagnostic::error(", "{}"),
            ("Diagnostic::warning(", "{}"),
            ("self.error(", "{}"),
            ("self.fault(", "{}"),
            ("self.fault_with(", "{}"),
            ("self.stop(", "{}"),
            (".expected(", "expected {}, found"),
            (".expect(Tok::", "{}, found"),
        ] {
            for (at, _) in text.match_indices(start) {
                let call = &text[at + start.len()..];
                // The message is the first literal of the call, unless it is computed before the
                // call.
                let Some((place, literal)) = literals(&call[..call.len().min(400)]).into_iter().next() else {
                    continue;
                };
                let before = call[..place].trim_start();
                let direct = before.is_empty()
                    || matches!(before.trim_end(), "format!(" | "&format!(")
                    || start == ".expect(Tok::" && !before.contains(';');
                if direct {
                    found.insert(around.replace("{}", &literal.replace("}}", "}")));
                }
            }
        }
    }
    Ok(found)
}

/// Returns whether a line contains the message, with any text in place of its braces.
fn shows(line: &str, message: &str) -> bool {
    let mut rest = line;
    let mut pattern = message;
    loop {
        let (fixed, more) = match pattern.split_once('{') {
            Some((fixed, more)) => (fixed, more.split_once('}').map(|one| one.1)),
            None => (pattern, None),
        };
        let Some(at) = rest.find(fixed) else {
            return false;
        };
        rest = &rest[at + fixed.len()..];
        match more {
            Some(more) => pattern = more,
            None => return true,
        }
    }
}

#[test]
fn every_message_is_shown_by_a_file() -> Result<(), Failure> {
    let messages = messages()?;
    assert!(messages.len() > 100, "{}", messages.len());
    let shown = texts(&["tests/fail", "tests/dump"], "messages")?;
    let lines: Vec<&str> = shown.iter().flat_map(|text| text.lines()).collect();
    let has_file = |message: &String| lines.iter().any(|line| shows(line, message));
    let missing: Vec<&String> = messages
        .iter()
        .filter(|message| !has_file(message) && !LIMITS.contains(&message.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{} of {} messages without a file: {missing:#?}",
        missing.len(),
        messages.len()
    );
    let stale: Vec<&&str> = LIMITS
        .iter()
        .filter(|limit| !messages.contains(**limit) || has_file(&(**limit).to_owned()))
        .collect();
    assert!(stale.is_empty(), "no messages, or with a file: {stale:?}");
    Ok(())
}
