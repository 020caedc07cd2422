//! Fuzzing of the assembler and the linker, with a bounded test and an endless fuzz target.
//!
//! Any text has to assemble and link, or to have faults with spans inside it. Any file has to be
//! accepted as an object, an archive or an executable, or to be rejected. This module is not part
//! of the public contract of the crate.

use crate::debug::{Frames, ProgramInfo, Registers};
use crate::elf::{self, write_executable, write_object};
use crate::{
    Archive, Input, Library as _, LinkOptions, Placement, link, link_program, listing, show_encoding, symbol_map,
};
use npu_mc::asm::{Fault, Options, assemble};
use npu_mc::{Opcode, SReg, VReg};

/// The maximum number of bytes that a case may store. It is small to keep cases fast.
const MOST_BYTES: usize = 1 << 16;

/// Fragments of sources. Mnemonics and registers come from the tables.
const PIECES: &[&str] = &[
    "\n",
    "\n",
    "\n",
    ";",
    ",",
    ",",
    ", ",
    " ",
    ":",
    "(",
    ")",
    "(s1)",
    "(v1)",
    "-",
    "+",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "~",
    "!",
    "==",
    "<=",
    "&&",
    "=",
    "@",
    "#",
    "//",
    "/*",
    "*/",
    "\"",
    "'a'",
    "\\",
    "[",
    "é",
    "\0",
    ".",
    "$",
    "0",
    "1",
    "-1",
    "4",
    "255",
    "256",
    "-256",
    "-257",
    "65535",
    "131072",
    "0x7fffffff",
    "0xffffffffffffffff",
    "0b1",
    "08",
    "1b",
    "1f",
    "2f",
    "1:",
    "2:",
    "f",
    "f:",
    "g",
    "g:",
    ".L1",
    ".L1:",
    "x",
    "x:",
    "s58",
    "S1",
    "$s0",
    "v64",
    "pc",
    "rm",
    "\"a b\"",
    "\"a b\":",
    "\"s1\"",
    "\"\\x41\\n\"",
    "lea",
    "ADDI",
    "movei",
    "jmp",
    "jmpsr",
    "beqz",
    "load32",
    "leah",
    "leal",
    ".text",
    ".data",
    ".bss",
    ".section",
    ".section .rodata,\"a\"",
    ".section x,\"aw\",@nobits",
    ".section scratchpad",
    ".globl",
    ".weak",
    ".local",
    ".type",
    "@function",
    ".size",
    ".set",
    ".equ",
    ".long",
    ".int",
    ".short",
    ".byte",
    ".quad",
    ".ascii",
    ".asciz",
    ".string",
    ".zero",
    ".space",
    ".fill",
    ".comm",
    ".p2align",
    ".align",
    ".balign",
    ".org",
    ".file",
    ".loc",
    ".cfi_startproc",
    ".word",
    ".lomg",
    ".set f, g",
    ".set g, f",
    ".-f",
    "g-f",
    "f+4",
    "(((",
    ")))",
];

/// Returns a source made of fragments that the bytes select.
pub fn soup(data: &[u8]) -> String {
    let mut out = String::new();
    for pair in data.chunks_exact(2) {
        let number = usize::from(u16::from_le_bytes([pair[0], pair[1]]));
        let (what, number) = (number % 8, number / 8);
        match what {
            0 => out.push_str(Opcode::ALL[number % Opcode::ALL.len()].desc().mnemonic),
            1 => {
                let reg = SReg::new((number % usize::from(SReg::COUNT)) as u8);
                out.push_str(reg.map_or("s0", SReg::name));
            }
            2 => {
                let reg = VReg::new((number % usize::from(VReg::COUNT)) as u8);
                out.push_str(reg.map_or("v0", VReg::name));
            }
            _ => out.push_str(PIECES[number % PIECES.len()]),
        }
        if number.is_multiple_of(3) {
            out.push(' ');
        }
    }
    out
}

/// Assembles and links a source and prints the result in all forms.
///
/// # Errors
///
/// Returns the violated part of the contract.
pub fn exercise(source: &str) -> Result<(), String> {
    let options = Options { most_bytes: MOST_BYTES };
    match assemble(source, &options) {
        Err(faults) if faults.is_empty() => Err("rejected without a fault".to_owned()),
        Err(faults) => faults.iter().try_for_each(|fault| check(source, fault)),
        Ok(object) => {
            let stored: usize = object
                .sections
                .iter()
                .flat_map(|s| &s.pieces)
                .map(|p| p.bytes.len())
                .sum();
            if stored > MOST_BYTES {
                return Err(format!("{stored} bytes are stored"));
            }
            match link(&object, &Placement::default()) {
                Err(faults) if faults.is_empty() => Err("not placed, without a fault".to_owned()),
                Err(faults) => faults.iter().try_for_each(|fault| check(source, fault)),
                Ok(linked) => {
                    // These only have to terminate without a panic.
                    let texts = [
                        listing(source, &object, &linked),
                        show_encoding(source, &object, &linked),
                        symbol_map(&object, &linked),
                    ];
                    let lines = texts[0].lines().count();
                    let enough = lines >= source.lines().count();
                    enough
                        .then_some(())
                        .ok_or_else(|| format!("the listing has {lines} lines"))
                }
            }
        }
    }
}

fn check(source: &str, fault: &Fault) -> Result<(), String> {
    let inside = source.get(fault.span.clone()).is_some();
    let has_message = !fault.message.is_empty();
    (inside && has_message)
        .then_some(())
        .ok_or_else(|| format!("{fault:?}"))
}

/// Reads the debug sections of a file.
fn exercise_tables(contents: &elf::Contents, bytes: &[u8]) {
    if let Ok(info) = ProgramInfo::read(bytes) {
        for section in &info.sections {
            let _ = info.describe(section.start);
        }
    }
    for section in contents.sections.iter().filter(|section| section.name == ".eh_frame") {
        let Ok(frames) = Frames::new(contents.bytes(section, bytes), section.address) else {
            continue;
        };
        let starts: Vec<u32> = frames.functions().map(|(start, _)| start).take(16).collect();
        for start in starts {
            for pc in [start, start.wrapping_add(8), start.wrapping_add(64)] {
                // This only has to terminate without a panic.
                let _ = frames.back_trace(Registers::new(pc, |_| start), &|address| address);
            }
        }
    }
}

/// Passes a file to all readers, and an object to the linker.
///
/// # Errors
///
/// Returns the violated part of the contract.
pub fn exercise_file(bytes: &[u8]) -> Result<(), String> {
    if let Ok(image) = elf::executable(bytes) {
        let end = image
            .segments
            .iter()
            .map(|own| u64::from(own.address) + own.bytes.len() as u64)
            .max();
        if end.is_some_and(|end| end > 1 << 32) {
            return Err("an image goes past the end of memory".to_owned());
        }
    }
    // These only have to terminate without a panic.
    if let Ok(contents) = elf::contents(bytes) {
        exercise_tables(&contents, bytes);
    }
    if let Ok(mut archive) = Archive::read("a", bytes) {
        archive.member("main")?;
    }
    let Ok(read) = elf::object(bytes) else {
        return Ok(());
    };
    if let Ok(again) = write_object(&read.object) {
        let again = elf::object(&again).map_err(|error| format!("the written file is rejected: {error}"))?;
        let sizes = |object: &npu_mc::asm::Object| object.sections.iter().map(|own| own.size).collect::<Vec<_>>();
        if sizes(&again.object) != sizes(&read.object) {
            return Err("the written file is read as a different object".to_owned());
        }
    }
    for (gc_sections, text_per_thread) in [(false, false), (true, false), (false, true)] {
        let input = Input {
            name: "a.o".to_owned(),
            object: read.object.clone(),
        };
        let options = LinkOptions {
            gc_sections,
            text_per_thread,
            ..LinkOptions::default()
        };
        match link_program(vec![input], &mut [], &options) {
            Err(errors) if errors.is_empty() => return Err("not linked, without an error".to_owned()),
            Err(errors) if errors.iter().any(|error| error.to_string().is_empty()) => {
                return Err("an error without a text".to_owned());
            }
            Err(_) => {}
            Ok(program) => {
                let file = write_executable(&program).map_err(|error| error.to_string())?;
                // A program may have more zeros than an image allows.
                let _ = elf::executable(&file);
            }
        }
    }
    Ok(())
}
