//! Runs the `.td` files of the test folders. `pass` compares the records as text, `json` as JSON,
//! and `detailed` the records with their locations. `dump` compares the output of `dump` and the
//! warnings of a valid program, and `fail` the messages of an invalid one. `CRANELIFT_TEST_BLESS=1`
//! rewrites the expectations.

use std::fs;
use std::path::{Path, PathBuf};

use tablegen::{Options, Parsed, dump_json, parse_str, print_detailed_records, print_records};

type Failure = Box<dyn std::error::Error>;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Runs every program of a folder. `expectation` is the extension of the file with the expected
/// output.
fn run(name: &str, expectation: &str, output: impl Fn(&Parsed) -> Result<String, Failure>) -> Result<(), Failure> {
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some();
    let mut failed = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(folder(name))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "td") {
            continue;
        }
        count += 1;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let options = Options {
            include_dirs: vec![folder("include")],
            ..Options::default()
        };
        let parsed = parse_str(&file, &fs::read_to_string(&path)?, &options);
        // Messages contain absolute paths, which differ between machines.
        let actual = output(&parsed)?.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/"), "");
        let expected_path = path.with_extension(expectation);
        if bless {
            fs::write(&expected_path, actual)?;
            continue;
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if let Some(line) = first_difference(&expected, &actual) {
            failed.push(format!("{}: {line}", path.display()));
        }
    }
    assert!(count > 0, "no programs in {name}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn first_difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (mut old, mut new) = (expected.lines(), actual.lines());
    for line in 1.. {
        let (a, b) = (old.next(), new.next());
        if a != b {
            return Some(format!(
                "line {line}: expected `{}`, found `{}`",
                a.unwrap_or("(end)"),
                b.unwrap_or("(end)")
            ));
        }
        if a.is_none() {
            break;
        }
    }
    Some("different line ends".into())
}

fn good(parsed: &Parsed) -> Result<(), Failure> {
    if parsed.has_errors() {
        return Err(parsed.render_diagnostics().into());
    }
    Ok(())
}

#[test]
fn pass() -> Result<(), Failure> {
    run("pass", "records", |parsed| {
        good(parsed)?;
        let mut out = Vec::new();
        print_records(&parsed.records, &mut out)?;
        Ok(String::from_utf8(out)?)
    })
}

#[test]
fn json() -> Result<(), Failure> {
    run("json", "json", |parsed| {
        good(parsed)?;
        let mut out = Vec::new();
        dump_json(&parsed.records, &parsed.sources, &mut out)?;
        Ok(String::from_utf8(out)?)
    })
}

#[test]
fn fail() -> Result<(), Failure> {
    run("fail", "messages", |parsed| {
        assert!(parsed.has_errors(), "a program in `fail` is accepted");
        Ok(parsed.render_diagnostics())
    })
}

#[test]
fn detailed() -> Result<(), Failure> {
    run("detailed", "detailed", |parsed| {
        good(parsed)?;
        let mut out = Vec::new();
        print_detailed_records(&parsed.records, &parsed.sources, &mut out)?;
        Ok(String::from_utf8(out)?)
    })
}

#[test]
fn dump() -> Result<(), Failure> {
    run("dump", "messages", |parsed| {
        good(parsed)?;
        Ok(parsed.render_diagnostics())
    })
}
