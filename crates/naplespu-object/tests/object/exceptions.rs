//! Tests of exceptions in linked programs: the run lines of `filetests/exceptions/`, and the tables
//! of a program.

use crate::common::{address, assembled, compiled, isa, linked, linked_for, run, words};
use naplespu_reader::ClifFile;
use naplespu_reader::config::FileConfigs;
use npu_link::{LinkOptions, OutputSection, Program};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A call of a run line: function, arguments, result.
type Call = (String, Vec<i32>, i32);

/// Returns the run lines of a file whose values are all `i32`.
fn calls(file: &ClifFile, text: &str) -> Vec<Call> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("; run: %"));
    let calls = lines.filter_map(|line| {
        let (call, result) = line.split_once(" == ")?;
        let (name, arguments) = call.strip_suffix(')')?.split_once('(')?;
        let signature = &file.function(&format!("%{name}"))?.func.signature;
        let mut types = signature.params.iter().chain(&signature.returns);
        if !types.all(|param| param.value_type == cranelift_codegen::ir::types::I32) || signature.returns.len() != 1 {
            return None;
        }
        let arguments: Option<Vec<i32>> = arguments
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(|text| text.parse().ok())
            .collect();
        Some((
            name.to_owned(),
            arguments.filter(|list| list.len() <= 8)?,
            result.trim().parse().ok()?,
        ))
    });
    calls.collect()
}

/// The entry of the program; some files define a `main`.
const ENTRY: &str = "all_calls";

/// The size of the results of a call in bytes: a cache line for each thread.
const RESULTS: u32 = 8 * 64;

/// Returns code that stores the result of each call, for each thread in its own cache line.
fn caller(calls: &[Call]) -> String {
    let mut text = format!("        .globl {ENTRY}\n{ENTRY}: addi sp, sp, -64\n        store32 ra, 60(sp)\n");
    for (number, (name, arguments, _)) in (0..).zip(calls) {
        for (register, argument) in arguments.iter().enumerate() {
            let (high, low) = ((*argument as u32) >> 16, (*argument as u32) & 0xffff);
            writeln!(
                text,
                "        moveih s{register}, {high}\n        moveil s{register}, {low}"
            )
            .unwrap();
        }
        // Control register 2 is the number of the thread.
        writeln!(
            text,
            "        jmpsr \"{name}\"
        movei s1, 2
        read_cr s1, s1
        mulli s1, s1, 64
        lea s2, results + {}
        add_i32 s2, s2, s1
        store32 s0, (s2)",
            RESULTS * number
        )
        .unwrap();
    }
    text.push_str("        load32 ra, 60(sp)\n        addi sp, sp, 64\n        jret\n");
    let size = RESULTS as usize * calls.len();
    writeln!(
        text,
        "        .bss\n        .balign 64\n        .globl results\nresults: .zero {size}"
    )
    .unwrap();
    text
}

/// Runs the files of `filetests/exceptions` as programs on this many threads.
fn files(settings: &[&str], function_sections: bool, threads: u32) {
    let pins: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/exceptions");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let file = ClifFile::parse(&name, text.as_bytes());
        let calls = calls(&file, &text);
        if calls.is_empty() {
            continue;
        }
        let configs = FileConfigs::read(&file.header, None, &pins, &mut Vec::new());
        let isa = configs.list[0].isa().unwrap();
        let objects = [
            assembled(&caller(&calls)),
            compiled(&name, &text, &isa, function_sections),
        ];
        let options = LinkOptions {
            entry: ENTRY.to_owned(),
            gc_sections: function_sections,
            threads,
            ..LinkOptions::default()
        };
        let program =
            linked_for(&isa, &objects, &mut [], &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let machine = run(&program, threads);
        for thread in 0..threads {
            for (number, (function, arguments, result)) in (0..).zip(&calls) {
                let at = address(&program, "results") + RESULTS * number + 64 * thread;
                let found = machine.memory().read_u32(at);
                assert_eq!(
                    found, *result as u32,
                    "{name}: %{function}{arguments:?}, thread {thread}"
                );
            }
        }
        count += calls.len();
    }
    assert!(count >= 25, "{count} calls");
}

#[test]
fn handlers_are_found() {
    files(&[], false, 1);
}

#[test]
fn handlers_are_found_by_eight_threads_without_what_nobody_calls() {
    files(&["opt_level=speed"], true, 8);
}

const THROWS: &str = "function %main() -> i32 system_v {
    sig0 = (i32) -> i32 system_v
    fn0 = %middle sig0
    gv0 = symbol %results
block0:
    v0 = iconst.i32 7
    try_call fn0(v0), sig0, block1(ret0), [ tag3: block2(exn0), tag7: block1(exn1) ]
block1(v1: i32):
    v2 = symbol_value.i32 gv0
    store v1, v2
    return v1
block2(v3: i32):
    trap user2
}
function %middle(i32) -> i32 system_v {
    fn0 = %throws(i32) -> i32 system_v
block0(v0: i32):
    v1 = call fn0(v0)
    v2 = iadd v0, v1
    return v2
}
function %nobody(i32) -> i32 system_v {
    sig0 = (i32) -> i32 system_v
    fn0 = %middle sig0
block0(v0: i32):
    try_call fn0(v0), sig0, block1(ret0), [ default: block1(exn0) ]
block1(v1: i32):
    return v1
}
";

const THROWER: &str = "function %throws(i32) -> i32 system_v {
    fn0 = %npu_throw(i32, i32, i32) tail
block0(v0: i32):
    v1 = iconst.i32 40
    v2 = iconst.i32 42
    call fn0(v0, v1, v2)
    trap user1
}
";

fn section<'a>(program: &'a Program, name: &str) -> &'a OutputSection {
    program.sections.iter().find(|section| section.name == name).unwrap()
}

fn word(section: &OutputSection, at: usize) -> u32 {
    u32::from_le_bytes(*section.bytes[at..].first_chunk().unwrap())
}

/// Returns the starts of the functions with a frame.
fn starts(program: &Program) -> Vec<u32> {
    let frames = section(program, ".npu_frames");
    (0..frames.bytes.len()).step_by(24).map(|at| word(frames, at)).collect()
}

fn results() -> Vec<u8> {
    assembled(".bss\n.globl results\nresults: .zero 4\n")
}

#[test]
fn through_objects_in_any_order() {
    for separate in [false, true] {
        let caller = compiled("a.clif", THROWS, &isa(&[]), separate);
        let thrower = compiled("b.clif", THROWER, &isa(&[]), separate);
        for files in [
            [caller.clone(), thrower.clone(), results()],
            [results(), thrower, caller],
        ] {
            let options = LinkOptions {
                gc_sections: separate,
                ..LinkOptions::default()
            };
            let program = linked(&files, &mut [], &options).unwrap();
            assert_eq!(words(&run(&program, 1), &program, "results", 1), [42]);
            let starts = starts(&program);
            assert!(starts.is_sorted() && !starts.contains(&0), "{starts:x?}");
            let mut wanted = vec!["main", "middle", "throws"];
            if !separate {
                wanted.push("nobody");
            }
            let mut wanted: Vec<u32> = wanted.into_iter().map(|name| address(&program, name)).collect();
            wanted.sort_unstable();
            assert_eq!(starts, wanted, "separate: {separate}");
        }
    }
}

#[test]
fn calls_of_functions_that_are_left_out_go() {
    let files = [
        compiled("a.clif", THROWS, &isa(&[]), true),
        compiled("b.clif", THROWER, &isa(&[]), true),
        results(),
    ];
    let size = |gc_sections: bool| {
        let options = LinkOptions {
            gc_sections,
            ..LinkOptions::default()
        };
        let program = linked(&files, &mut [], &options).unwrap();
        let main = starts(&program)
            .iter()
            .position(|&start| start == address(&program, "main"));
        let frames = section(&program, ".npu_frames");
        let calls = section(&program, ".npu_calls");
        // The calls of `main`: two handlers of one call.
        let at = word(frames, 24 * main.unwrap() + 20) - calls.address;
        let list: Vec<u32> = (0..8).map(|number| word(calls, at as usize + 4 * number)).collect();
        assert_eq!((list[2], list[3], list[5], list[7]), (2, 3, 7, 0), "{list:x?}");
        calls.size
    };
    // `nobody` has one handler.
    assert_eq!(size(false) - size(true), 6 * 4);
}

#[test]
fn programs_that_do_not_throw_have_no_tables() {
    let thrower = "function %throws(i32) -> i32 system_v {\nblock0(v0: i32):\n    return v0\n}\n";
    let files = [
        compiled("a.clif", THROWS, &isa(&[]), false),
        compiled("b.clif", thrower, &isa(&[]), false),
        results(),
    ];
    let program = linked(&files, &mut [], &LinkOptions::default()).unwrap();
    assert_eq!(words(&run(&program, 1), &program, "results", 1), [14]);
    for name in [".npu_frames", ".npu_calls"] {
        assert_eq!(section(&program, name).size, 0, "{name}");
    }
}

#[test]
fn tables_that_are_refused() {
    let cases = [
        (".long main, main, 0, 0, 0", 0, "a frame is cut off: each has 24 bytes"),
        (".long main, main, 0, 0, 0, 0, 1", 24, "a frame is cut off"),
        (
            ".long 0, main, 0, 0, 0, 0",
            0,
            "a frame without the address of its function",
        ),
        (
            ".long main, main, 0, 0, 0, 0\n.long 1, 2, 3, 4, 5, 6",
            24,
            "a frame without",
        ),
    ];
    for (table, offset, part) in cases {
        let source = format!(".globl main\nmain: jmp npu_throw\n.section .npu_frames, \"a\"\n{table}\n");
        let errors = linked(&[assembled(&source)], &mut [], &LinkOptions::default()).unwrap_err();
        let text = errors[0].to_string();
        assert!(
            text.starts_with(&format!("a.o:(.npu_frames+{offset:#x}): ")) && text.contains(part),
            "{text}"
        );
    }
}
