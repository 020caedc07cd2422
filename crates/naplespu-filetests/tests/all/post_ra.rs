//! Tests single passes on machine instructions, from text to text: each `.s` file under
//! `filetests/post_ra/`.
//!
//! The first line names the pass, and the registers that the function may change if they are not
//! all. A comment and the function follow. The expected result follows `// becomes`;
//! `CRANELIFT_TEST_BLESS=1` rewrites it.

#[path = "../../../../benches/growth/passes.rs"]
mod passes;

use cranelift_naplespu::abi::registers::RegisterSet;
use cranelift_naplespu::internals::{MachFunction, parse_function, run_pass};
use passes::{PASSES, straight_line};
use std::fs;
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/post_ra");
    let entries = fs::read_dir(folder).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Returns the words of the first line after `test post_ra`.
fn header(source: &str) -> Vec<&str> {
    let first = source.lines().next().unwrap_or_default();
    let words = first
        .strip_prefix("// test post_ra ")
        .expect("`// test post_ra PASS` first");
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

/// The memory use of each pass is linear: four times the code needs about four times the memory,
/// not sixteen times.
///
/// The test counts the allocations of a pass, which do not depend on the load of the host. `cargo
/// bench --bench compile` measures the time.
#[test]
fn memory_grows_with_the_code() {
    let [small, large] = [300, 1200].map(|iterations| parse_function(&straight_line(iterations)).expect("a function"));
    let allocated = |pass: &str, source: &MachFunction| {
        let mut func = source.clone();
        let memory = allocation_counter::measure(|| {
            run_pass(pass, &mut func, RegisterSet::PreserveAll).expect("the pass");
        });
        (memory.count_total, memory.bytes_total)
    };
    for pass in PASSES {
        let (few, many) = (allocated(pass, &small), allocated(pass, &large));
        // Tables double their size, so the last allocation may account for a factor of two.
        let grows = |few: u64, many: u64, more: u64| many <= 8 * few + more;
        assert!(
            grows(few.0, many.0, 64) && grows(few.1, many.1, 4096),
            "{pass}: blocks and bytes for 300 iterations {few:?}, for 1200 {many:?}"
        );
        assert_eq!(allocated(pass, &large), many, "{pass}: another count the second time");
    }
}
