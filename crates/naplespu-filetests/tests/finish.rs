//! Passes over machine instructions, one at a time, as text in and text out: every `.s` file under `filetests/finish/`.
//!
//! The first line names the pass, and the registers that the function may change if they are not all; then come a comment and
//! the function; what becomes of it stands after `// becomes`. `CRANELIFT_TEST_BLESS=1` rewrites that.

use cranelift_naplespu::abi::registers::RegisterSet;
use cranelift_naplespu::internals::{MachFunction, parse_function, run_pass};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PASSES: &[&str] = &[
    "copyprop", "wrap", "masks", "jumps", "carried", "rename", "sched", "hazard", "relax",
];

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
    for &pass in PASSES {
        let count = sources.iter().filter(|source| header(source)[0] == pass).count();
        assert!(count >= 2, "{pass} has {count} files");
    }
}

/// Straight-line code with what the passes look for: moves, operations under two masks, loads and their users.
fn straight_line(rounds: usize) -> String {
    let round = "move_i32 s20, s0
        add_i32 s21, s20, s1
        move_i32 s0, s21
        load32 s22, 0(s2)
        move_i32 rm, s3
        add_i32 v0, v1, v2
        movei rm, 65535
        move_i32 v5, v6
        move_i32 rm, s4
        sub_i32 v3, v1, v2
        movei rm, 65535
        mull_i32 s23, s22, s1
        store32 s23, 4(s2)\n";
    format!("L0:\n{}jret\n", round.repeat(rounds))
}

/// Four times the code takes four times the time, not sixteen times.
#[test]
fn time_grows_with_the_code() {
    let time = |pass: &str, source: &MachFunction| {
        let mut func = source.clone();
        let start = Instant::now();
        run_pass(pass, &mut func, RegisterSet::PreserveAll).expect("the pass");
        start.elapsed()
    };
    // Small enough for the host's cache, which others use as well.
    let [small, large] = [300, 1200].map(|rounds| parse_function(&straight_line(rounds)).expect("a function"));
    for pass in PASSES {
        // The machine may have other things to do meanwhile.
        let mut best = [Duration::MAX; 2];
        let grows = |_| {
            best = [best[0].min(time(pass, &small)), best[1].min(time(pass, &large))];
            best[1] < best[0] * 9 + Duration::from_millis(1)
        };
        assert!((0..50).any(grows), "{pass}: {best:?}");
    }
}
