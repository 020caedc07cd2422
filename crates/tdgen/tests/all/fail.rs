//! Faulty descriptions: each `fail/*.td` is refused with the messages in the `.expected` file
//! beside it, one fault per line as `file:line:column: message`. `CRANELIFT_TEST_BLESS=1` rewrites
//! the files.

use std::fs;
use std::path::{Path, PathBuf};
use tablegen::{Diagnostic, Options, Parsed, Span};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fail")
}

fn parse(path: &Path) -> Parsed {
    let mut options = Options::default();
    let td = npu_td::directory().to_owned();
    options.include_dirs.extend([folder(), td]);
    tablegen::parse_file(path, &options)
}

/// Formats a location as `file:line:column`, without the folder. For the real description only the
/// file, because its lines move.
fn place(span: Span, parsed: &Parsed) -> String {
    let place = parsed.sources.location(span);
    let path = Path::new(place.file);
    let file = path
        .file_name()
        .map_or_else(String::new, |f| f.to_string_lossy().into_owned());
    if path.starts_with(folder()) {
        format!("{file}:{}:{}", place.line, place.column)
    } else {
        file
    }
}

/// Formats a fault as `file:line:column: message`.
fn shown(fault: &Diagnostic, parsed: &Parsed) -> String {
    let mut text = String::new();
    for label in &fault.labels {
        let place = place(label.span, parsed);
        if label.primary {
            text.push_str(&format!("{place}: {}", fault.message));
        } else {
            text.push_str(&format!("\n    {place}: {}", label.message));
        }
    }
    for note in &fault.notes {
        text.push_str(&format!("\n    note: {note}"));
    }
    text
}

#[test]
fn every_fault_is_reported_with_its_place() {
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some();
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "td"))
        .collect();
    paths.sort();
    assert!(paths.len() > 10);
    let mut wrong = Vec::new();
    for path in paths {
        let parsed = parse(&path);
        assert!(!parsed.has_errors(), "{}: {:?}", path.display(), parsed.diagnostics);
        let mut faults = tdgen::load(&parsed).err().unwrap_or_default();
        faults.extend(tdgen::searchable_tables(&parsed).err().unwrap_or_default());
        faults.extend(tdgen::emit_legalize(&parsed).err().unwrap_or_default());
        let found: String = faults.iter().map(|f| shown(f, &parsed) + "\n").collect();
        let expected_path = path.with_extension("expected");
        if bless {
            fs::write(&expected_path, &found).unwrap();
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected || found.is_empty() {
            wrong.push(format!("{}: found\n{found}expected\n{expected}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
