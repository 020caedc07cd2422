//! Tests of symbols: weak, common, duplicate and undefined ones, archives, and unused sections.

use crate::common::{address, archive, assembled, compiled, isa, linked, run, words};
use npu_link::{Archive, LinkOptions, Program};

fn texts(files: &[&str]) -> Vec<String> {
    let files: Vec<Vec<u8>> = files.iter().map(|text| assembled(text)).collect();
    let errors = linked(&files, &mut [], &LinkOptions::default()).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

fn program(files: &[&str]) -> Program {
    let files: Vec<Vec<u8>> = files.iter().map(|text| assembled(text)).collect();
    linked(&files, &mut [], &LinkOptions::default()).unwrap()
}

const MAIN: &str = "        .globl main\nmain: jret\n";

#[test]
fn all_faults_at_once() {
    let first = "
        .globl main, twice
main:   jmpsr nowhere
        jmpsr nobody
twice:  jret
        .data
        .long nowhere
";
    let second = "        .globl twice\n        .data\ntwice: .long 1\n        .text\n        lea s0, nobody\n";
    assert_eq!(
        texts(&[first, second]),
        [
            "duplicate symbol `twice`: a.o:(.text) and b.o:(.data)",
            "undefined symbol `nowhere`, used by `main` in a.o:(.text), a.o:(.data)",
            "undefined symbol `nobody`, used by `main` in a.o:(.text), b.o:(.text)",
        ]
    );
    assert_eq!(texts(&["f: jret\n"]), ["undefined symbol `main`"]);
}

#[test]
fn a_weak_definition_gives_way() {
    let weak = "        .weak x, y\n        .data\nx: .long 1\ny: .long 2\n";
    let strong = "        .globl x\n        .data\nx: .long 3\n";
    let user = "
        .globl main
        .weak nothing
main:   lea s0, x
        load32 s0, (s0)
        lea s1, y
        load32 s1, (s1)
        lea s2, nothing
        lea s3, out
        store32 s0, (s3)
        store32 s1, 4(s3)
        store32 s2, 8(s3)
        jret
        .data
        .globl out
out:    .long 9, 9, 9
";
    for files in [[weak, strong, user], [strong, weak, user], [user, strong, weak]] {
        let program = program(&files);
        assert_eq!(words(&run(&program, 1), &program, "out", 3), [3, 2, 0]);
    }
}

/// Returns an object with the common symbol `x`, as C compilers make them: an object that uses `x`,
/// with a changed symbol entry.
fn common(size: u32, align: u32) -> Vec<u8> {
    let mut bytes = assembled("        lea s0, x\n");
    let is_entry = |entry: &[u8]| entry[..4] != [0; 4] && entry[4..12] == [0; 8] && entry[12..] == [0x10, 0, 0, 0];
    let entries: Vec<usize> = (0..bytes.len() - 16)
        .step_by(4)
        .filter(|&at| is_entry(&bytes[at..at + 16]))
        .collect();
    let &[at] = &entries[..] else { panic!("{entries:?}") };
    bytes[at + 4..at + 8].copy_from_slice(&align.to_le_bytes());
    bytes[at + 8..at + 12].copy_from_slice(&size.to_le_bytes());
    bytes[at + 14..at + 16].copy_from_slice(&0xfff2u16.to_le_bytes());
    bytes
}

#[test]
fn of_common_symbols_the_largest_counts() {
    let main = assembled(MAIN);
    let (small, large) = (common(4, 4), common(400, 64));
    let linked = |files: [&Vec<u8>; 3]| linked(&files.map(Vec::clone), &mut [], &LinkOptions::default()).unwrap();
    for files in [[&main, &small, &large], [&main, &large, &small]] {
        let program = linked(files);
        let symbol = program.symbols.iter().find(|symbol| symbol.name == "x").unwrap();
        assert_eq!((symbol.size, symbol.address % 64), (400, 0));
    }
    let defined = assembled("        .globl x\n        .data\nx: .long 1\n");
    for files in [[&main, &large, &defined], [&main, &defined, &large]] {
        let program = linked(files);
        let data = program.sections.iter().find(|section| section.name == ".data").unwrap();
        assert_eq!(address(&program, "x"), data.address);
    }
}

#[test]
fn members_of_archives_by_demand() {
    let wanted = assembled("        .globl f\nf: jmpsr g\n");
    let needed = assembled("        .globl g\ng: jret\n");
    // The member would define a duplicate, and refers to an undefined symbol.
    let unwanted = assembled("        .globl main, h\nmain: jmpsr nobody\nh: jret\n");
    let bytes = archive(&[("h.o", &unwanted), ("g.o", &needed), ("f.o", &wanted)]);
    let mut archives = [Archive::read("lib.a", &bytes).unwrap()];
    let files = [assembled("        .globl main\nmain: jmpsr f\n")];
    let program = linked(&files, &mut archives, &LinkOptions::default()).unwrap();
    let inputs: Vec<&str> = program.inputs.iter().map(String::as_str).collect();
    assert_eq!(inputs, ["start-up code", "a.o", "lib.a(f.o)", "lib.a(g.o)"]);
}

#[test]
fn the_runtime_by_demand() {
    let source = "function %main(i32, i32) -> i32 system_v {\nblock0(v0: i32, v1: i32):\n    v2 = sdiv v0, v1\n    return v2\n}\n";
    let program = linked(
        &[compiled("d.clif", source, &isa(&[]), false)],
        &mut [],
        &LinkOptions::default(),
    )
    .unwrap();
    let of_runtime = |name: &&String| name.starts_with("runtime(");
    assert!(
        program.inputs.iter().any(|name| of_runtime(&name)),
        "{:?}",
        program.inputs
    );
    let program = linked(&[assembled(MAIN)], &mut [], &LinkOptions::default()).unwrap();
    assert!(
        !program.inputs.iter().any(|name| of_runtime(&name)),
        "{:?}",
        program.inputs
    );
}

#[test]
fn sections_that_nobody_needs_are_left_out() {
    let source = "
function %main() system_v {
    fn0 = %used() system_v
block0:
    call fn0()
    return
}
function %used() system_v {
block0:
    return
}
function %unused() system_v {
    fn0 = %nobody() system_v
block0:
    call fn0()
    return
}
";
    let files = [compiled("gc.clif", source, &isa(&[]), true)];
    let options = LinkOptions {
        gc_sections: true,
        ..LinkOptions::default()
    };
    // Symbols that only dropped sections refer to may be undefined.
    let program = linked(&files, &mut [], &options).unwrap();
    address(&program, "used");
    assert!(!program.symbols.iter().any(|symbol| symbol.name == "unused"));
    let errors = linked(&files, &mut [], &LinkOptions::default()).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "undefined symbol `nobody`, used by `unused` in a.o:(.text.unused)"
    );
}

#[test]
fn many_symbols() {
    use std::fmt::Write as _;
    // A linear search for each symbol would take minutes.
    let count = 100_000;
    let mut one = "        .globl main\nmain: jret\n        .data\n".to_owned();
    let mut other = "        .data\n".to_owned();
    for number in 0..count {
        writeln!(one, ".globl a{number}\na{number}: .long b{number}").unwrap();
        writeln!(other, ".globl b{number}\nb{number}: .long a{number}").unwrap();
    }
    let files = [assembled(&one), assembled(&other)];
    let program = linked(&files, &mut [], &LinkOptions::default()).unwrap();
    assert!(program.symbols.len() > 2 * count);
    assert_eq!(address(&program, "a99999") - address(&program, "a0"), 4 * 99_999);
}
