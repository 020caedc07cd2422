//! Object files and executables round-trip, other tools accept them, and damaged files are refused.

use crate::common::{archive, assembled, compiled, isa, linked};
use npu_link::LinkOptions;
use npu_link::elf::{executable, object, write_executable, write_object};
use npu_link::fuzz::exercise_file;
use npu_mc::asm::Object;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "
        .globl main, number
        .weak maybe
        .type main, @function
main:   jmpsr helper
        jmpsr maybe
        lea s0, local
        lea s0, number + 4
        jret
        .size main, . - main
        .section .rodata, \"a\"
local:  .long main, local + 8
        .data
number: .long 1, 2
        .bss
        .zero 100
        .comm shared, 16, 8
        .section scratchpad, \"aw\"
        .long 7
        .section .init_array, \"aw\"
        .long main
";

const CLIF: &str =
    "function %helper(f64, f64) -> f64 system_v {\nblock0(v0: f64, v1: f64):\n    v2 = fadd v0, v1\n    return v2\n}\n";

fn program() -> Vec<u8> {
    let files = [assembled(SOURCE), compiled("helper.clif", CLIF, &isa(&[]), true)];
    write_executable(&linked(&files, &mut [], &LinkOptions::default()).unwrap()).unwrap()
}

#[test]
fn an_object_read_back_is_the_same() {
    for bytes in [assembled(SOURCE), compiled("helper.clif", CLIF, &isa(&[]), true)] {
        let first = object(&bytes).unwrap().object;
        let again = object(&write_object(&first).unwrap()).unwrap().object;
        let sections = |object: &Object| {
            let all = object.sections.iter();
            all.map(|own| {
                let flags = (own.alloc, own.write, own.exec, own.nobits);
                (own.name.clone(), flags, own.align, own.size, own.pieces.clone())
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(sections(&first), sections(&again));
        assert_eq!(first.relocations.len(), again.relocations.len());
        assert_eq!(write_object(&first).unwrap(), write_object(&again).unwrap());
    }
}

/// Returns the complaints of a tool about the file, or `None` if it is not installed.
fn accepts(tool: &str, name: &str, bytes: &[u8]) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{tool}-{name}"));
    fs::write(&path, bytes).unwrap();
    let output = Command::new(tool).arg("-a").arg(&path).output().ok()?;
    // LLVM's tools apply relocations of debug sections only for known machines.
    let complaints: String = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| !(name.ends_with(".o") && line.contains("failed to compute relocation: Unknown")))
        .collect();
    assert!(
        output.status.success() && complaints.is_empty(),
        "{tool} {name}: {complaints}"
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn all_accepted_by(tool: &str) {
    let files = [
        ("asm.o", assembled(SOURCE)),
        ("clif.o", compiled("helper.clif", CLIF, &isa(&[]), false)),
        ("sections.o", compiled("helper.clif", CLIF, &isa(&[]), true)),
        ("program.elf", program()),
    ];
    for (name, bytes) in files {
        let text = accepts(tool, name, &bytes).unwrap_or_else(|| panic!("{tool} is not installed"));
        assert!(text.contains("ELF32"), "{text}");
        assert!(!text.to_lowercase().contains("warning"), "{text}");
    }
}

#[test]
#[ignore = "wants readelf of GNU binutils"]
fn gnu_readelf_accepts_all() {
    all_accepted_by("readelf");
}

#[test]
#[ignore = "wants llvm-readelf"]
fn llvm_readelf_accepts_all() {
    all_accepted_by("llvm-readelf");
}

#[test]
fn what_is_refused() {
    let good = assembled(SOURCE);
    let refused = |at: usize, value: u8, offset: Option<u64>, part: &str| {
        let mut bytes = good.clone();
        bytes[at] = value;
        let error = object(&bytes).unwrap_err();
        assert_eq!(error.offset, offset, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(5, 2, Some(4), "not a 32-bit little-endian file");
    refused(18, 0, Some(18), "not for NaplesPU");
    refused(16, 2, Some(16), "not a relocatable object file");
    assert!(executable(&good).unwrap_err().to_string().contains("link it first"));
}

/// Older tools emit other unwind tables, and relative relocations of loads.
#[test]
fn objects_of_older_tools() {
    let source = "
        .globl main
main:   load32 s0, (s1)
        jret
word:   .long 9
        .section .eh_frame, \"a\"
        .long 16, 0
        .byte 1
        .asciz \"zR\"
        .byte 4, 0x7c, 62, 1, 0x0b, 0x0c, 61, 0
        .long 16, 24, main, 8
        .byte 0, 0, 0, 0
        .section .rodata, \"a\"
        .long word
";
    let mut bytes = assembled(source);
    // Turns the relocation of `.rodata` into one of the load: `.rela.rodata` now applies to section
    // 1, with another offset and kind.
    let read = object(&bytes).unwrap().object;
    assert_eq!(read.relocations.len(), 2);
    let text = (1u32, 8u32);
    let entry: Vec<u8> = [0u32, text.0 << 8 | 1, text.1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let at: Vec<usize> = (0..bytes.len() - 12)
        .filter(|&at| bytes[at..at + 12] == entry)
        .collect();
    assert_eq!(at.len(), 1);
    bytes[at[0] + 4] = 3;
    let header_words = u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(bytes[48..50].try_into().unwrap()));
    for section in 0..count {
        let header = header_words + 40 * section;
        let word =
            |field: usize| u32::from_le_bytes(bytes[header + 4 * field..header + 4 * field + 4].try_into().unwrap());
        if word(1) == 4 && word(4) as usize == at[0] {
            bytes[header + 28] = 1;
        }
    }
    let program = linked(&[bytes], &mut [], &LinkOptions::default()).unwrap();
    let main = program.symbols.iter().find(|symbol| symbol.name == "main").unwrap();
    let place = |name: &str| program.sections.iter().find(|section| section.name == name).unwrap();
    let text = place(".text");
    let at = (main.address - text.address) as usize;
    // Bits 11 to 3 of the load hold the distance.
    let load = u32::from_le_bytes(text.bytes[at..at + 4].try_into().unwrap());
    assert_eq!(load >> 3 & 0x1ff, 8);
    let frames = &place(".eh_frame").bytes;
    assert_eq!(frames[28..32], main.address.to_le_bytes());
    // A zero word ends the entries.
    assert_eq!((frames.len(), &frames[40..]), (44, &[0; 4][..]));
}

#[test]
fn files_that_are_cut_off() {
    let elf = program();
    let object = assembled(SOURCE);
    let library = archive(&[("a.o", &object), ("b.o", &object)]);
    for file in [&object, &library] {
        for length in 0..file.len() {
            exercise_file(&file[..length]).unwrap();
        }
    }
    for length in (0..elf.len()).step_by(37) {
        exercise_file(&elf[..length]).unwrap();
    }
}

#[test]
fn files_that_are_damaged() {
    let object = assembled(SOURCE);
    let files = [
        archive(&[("a.o", &object)]),
        program(),
        object,
        compiled("helper.clif", CLIF, &isa(&[]), true),
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for case in 0..6000 {
        let mut bytes = files[case % files.len()].clone();
        for _ in 0..=random(4) {
            // Half of the damage is in the headers, where it matters most.
            let most = if random(2) == 0 {
                bytes.len().min(120)
            } else {
                bytes.len()
            };
            let from_end = random(2) == 0;
            let at = if from_end {
                bytes.len() - 1 - random(most)
            } else {
                random(most)
            };
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
        }
        exercise_file(&bytes).unwrap_or_else(|why| panic!("case {case}: {why}"));
    }
}
