//! Compiles every kernel of the corpus to an object file that a `main` in assembly calls. The
//! results are those of the run lines.

use crate::common::{assembled, compiled, linked_for, run, words};
use naplespu_reader::ClifFile;
use naplespu_reader::config::FileConfigs;
use npu_link::LinkOptions;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A call of a run line: function, argument, result.
type Call = (String, i32, i32);

/// Returns the run lines of a kernel, all of the form `; run: %f(7) == -12`.
fn calls(text: &str) -> Vec<Call> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("; run: %"));
    lines
        .map(|line| {
            let (call, result) = line.split_once(" == ").unwrap();
            let (name, argument) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
            (
                name.to_owned(),
                argument.parse().unwrap(),
                result.trim().parse().unwrap(),
            )
        })
        .collect()
}

/// Returns a `main` that stores the result of each call.
fn caller(calls: &[Call]) -> String {
    let mut text = "        .globl main\nmain:   addi sp, sp, -64\n        store32 ra, 60(sp)\n".to_owned();
    for (number, (name, argument, _)) in calls.iter().enumerate() {
        let (high, low) = ((*argument as u32) >> 16, (*argument as u32) & 0xffff);
        writeln!(
            text,
            "        moveih s0, {high}\n        moveil s0, {low}\n        jmpsr \"{name}\""
        )
        .unwrap();
        writeln!(
            text,
            "        lea s1, results + {}\n        store32 s0, (s1)",
            4 * number
        )
        .unwrap();
    }
    text.push_str("        load32 ra, 60(sp)\n        addi sp, sp, 64\n        jret\n");
    writeln!(
        text,
        "        .bss\n        .globl results\nresults: .zero {}",
        4 * calls.len()
    )
    .unwrap();
    text
}

fn kernels(settings: &[&str], function_sections: bool) {
    let pins: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/corpus");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        // The results hold for the settings of the file.
        let header = ClifFile::parse(&name, text.as_bytes()).header;
        let configs = FileConfigs::read(&header, None, &pins, &mut Vec::new());
        let isa = configs.list[0].isa().unwrap();
        let calls = calls(&text);
        assert!(!calls.is_empty(), "{name} has no run lines");
        let files = [
            assembled(&caller(&calls)),
            compiled(&name, &text, &isa, function_sections),
        ];
        let options = LinkOptions {
            gc_sections: function_sections,
            ..LinkOptions::default()
        };
        let program = linked_for(&isa, &files, &mut [], &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let machine = run(&program, 1);
        let found = words(&machine, &program, "results", calls.len() as u32);
        let wanted: Vec<u32> = calls.iter().map(|&(_, _, result)| result as u32).collect();
        assert_eq!(found, wanted, "{name}");
        count += 1;
    }
    assert!(count >= 31, "{count} kernels");
}

#[test]
fn kernels_of_level_none() {
    kernels(&[], false);
}

#[test]
fn kernels_of_level_speed_without_what_nobody_calls() {
    kernels(&["opt_level=speed"], true);
}
