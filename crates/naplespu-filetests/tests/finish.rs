//! Passes over machine instructions, one at a time, as text in and text out: every `.s` file under `filetests/finish/`.
//!
//! The first line names the pass, and the registers that the function may change if they are not all; then come a comment and
//! the function; what becomes of it stands after `// becomes`. `CRANELIFT_TEST_BLESS=1` rewrites that.

use cranelift_naplespu::abi::registers::RegisterSet;
use cranelift_naplespu::internals::{parse_function, run_pass};
use std::fs;
use std::path::{Path, PathBuf};

const PASSES: [&str; 6] = ["copyprop", "masks", "rename", "sched", "hazard", "relax"];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/finish");
    let entries = fs::read_dir(folder).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// The words of the first line after `test finish`.
fn header(source: &str) -> Vec<&str> {
    let first = source.lines().next().unwrap_or_default();
    let words = first
        .strip_prefix("// test finish ")
        .expect("`// test finish PASS` first");
    words.split_whitespace().collect()
}

fn check(path: &Path, bless: bool) -> Result<(), String> {
    let source = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let header = header(&source);
    let registers = match header.as_slice() {
        [_] => RegisterSet::All,
        [_, "preserve_all"] => RegisterSet::PreserveAll,
        _ => return Err(format!("what is {header:?}?")),
    };
    let (given, expected) = source.split_once("// becomes\n").ok_or("no line `// becomes`")?;
    let mut func = parse_function(given)?;
    run_pass(header[0], &mut func, registers).map_err(|error| error.to_string())?;
    let found: String = func.to_string().lines().map(|line| format!("// {line}\n")).collect();
    if bless {
        return fs::write(path, format!("{given}// becomes\n{found}")).map_err(|error| error.to_string());
    }
    if found != expected {
        return Err(format!("expected\n{expected}found\n{found}"));
    }
    Ok(())
}

#[test]
fn passes_do_what_their_files_say() {
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|value| value == "1");
    let failures: Vec<String> = files()
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), check(path, bless).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_pass_has_files() {
    let sources: Vec<String> = files()
        .iter()
        .map(|path| fs::read_to_string(path).expect("the file"))
        .collect();
    for pass in PASSES {
        let count = sources.iter().filter(|source| header(source)[0] == pass).count();
        assert!(count >= 2, "{pass} has {count} files");
    }
}
