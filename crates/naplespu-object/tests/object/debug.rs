//! Tests of DWARF sections: lines and variables of a CLIF file, as read by our reader, gimli and
//! other tools.

use crate::common::{address, assembled, isa, linked, run, words};
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian};
use naplespu_object::NpuObjectModule;
use naplespu_reader::ClifFile;
use npu_link::debug::ProgramInfo;
use npu_link::elf::write_executable;
use npu_link::{LinkOptions, Program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CLIF: &str = "function %outer(i32, i32) -> i32 {
    fn0 = %inner(i32, i32) -> i32

block0(v0: i32, v1: i32):
    v2 = iadd v0, v1
    v3 = call fn0(v2, v1)
    v4 = imul v3, v0
    return v4
}

function %inner(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = sdiv v0, v1
    return v2
}

function %unused(i32) -> i32 {
block0(v0: i32):
    v1 = bnot v0
    return v1
}
";

const MAIN: &str = "
        .globl main
main:   addi sp, sp, -64
        store32 ra, 60(sp)
        movei s0, 40
        movei s1, 2
        jmpsr outer
        lea s1, out
        store32 s0, (s1)
        load32 ra, 60(sp)
        addi sp, sp, 64
        jret
        .bss
        .globl out
out:    .zero 4
";

/// Returns an object with debug information.
fn object(name: &str, text: &str, settings: &[&str], function_sections: bool) -> Vec<u8> {
    let file = ClifFile::parse(name, text.as_bytes());
    let mut module = NpuObjectModule::new(isa(settings)).unwrap();
    module.set_function_sections(function_sections);
    module.set_source_file(name);
    for case in &file.functions {
        module
            .define_clif_at(&case.with_debug_info(), Some(case.line as u32))
            .unwrap();
    }
    module.emit().unwrap()
}

fn program(gc_sections: bool) -> Program {
    let files = [assembled(MAIN), object("k.clif", CLIF, &[], gc_sections)];
    let options = LinkOptions {
        gc_sections,
        ..LinkOptions::default()
    };
    linked(&files, &mut [], &options).unwrap()
}

#[test]
fn lines_and_names_of_the_code() {
    for gc_sections in [false, true] {
        let program = program(gc_sections);
        let info = ProgramInfo::read(&write_executable(&program).unwrap()).unwrap();
        assert_eq!(info.damaged, []);
        let outer = address(&program, "outer");
        // The prologue has the line of the function.
        assert_eq!(info.lines.at(outer), Some(("k.clif", 1)));
        assert_eq!(info.describe(outer).unwrap(), "outer at k.clif:1");
        let text = program.sections.iter().find(|section| section.name == ".text").unwrap();
        let word = |pc: u32| {
            let at = (pc - text.address) as usize;
            u32::from_le_bytes(text.bytes[at..at + 4].try_into().unwrap())
        };
        // Returns the line of the first instruction of a function with a mnemonic.
        let line_of = |start: u32, part: &str| {
            let mut pcs = (start..).step_by(4);
            let pc = pcs
                .find(|&pc| npu_mc::decode(word(pc)).unwrap().to_string().starts_with(part))
                .unwrap();
            info.lines.at(pc)
        };
        assert_eq!(line_of(outer, "jmp"), Some(("k.clif", 6)));
        assert_eq!(line_of(outer, "mull"), Some(("k.clif", 7)));
        assert_eq!(line_of(outer, "jret"), Some(("k.clif", 8)));
        // The check of the divisor.
        let inner = address(&program, "inner");
        assert_eq!(line_of(inner, "beqz"), Some(("k.clif", 13)));
        assert!(info.describe(inner + 4).unwrap().starts_with("inner+0x4 at k.clif:1"));
        let names: Vec<&str> = info.sections.iter().map(|own| own.name.as_str()).collect();
        assert!(names.contains(&".eh_frame") && !names.iter().any(|name| name.starts_with(".debug")));
        // The program is the same as without debug information.
        assert_eq!(words(&run(&program, 1), &program, "out", 1), [840]);
    }
}

/// Variables have types and locations, functions have names and lines.
#[test]
fn functions_and_variables() {
    let program = program(true);
    let section = |name: &str| {
        let found = program.sections.iter().find(|section| section.name == name);
        found.map_or(&[][..], |section| &section.bytes)
    };
    let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(EndianSlice::new(section(id.name()), LittleEndian));
    let dwarf = Dwarf::load(load).unwrap();
    let header = dwarf.units().next().unwrap().unwrap();
    let unit = dwarf.unit(header).unwrap();
    let mut found = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        let name = entry.attr_value(gimli::DW_AT_name).map(|value| {
            let text = dwarf.attr_string(&unit, value).unwrap();
            text.to_string_lossy().into_owned()
        });
        let mut places = Vec::new();
        if let Some(AttributeValue::LocationListsRef(offset)) = entry.attr_value(gimli::DW_AT_location) {
            let mut list = dwarf.locations(&unit, offset).unwrap();
            while let Some(place) = list.next().unwrap() {
                places.push(place.range);
            }
        }
        found.push((entry.tag(), name.unwrap_or_default(), places));
    }
    let of = |tag| found.iter().filter(move |entry| entry.0 == tag);
    let functions: Vec<&str> = of(gimli::DW_TAG_subprogram).map(|entry| entry.1.as_str()).collect();
    assert_eq!(functions, ["outer", "inner", "unused"]);
    let types: Vec<&str> = of(gimli::DW_TAG_base_type).map(|entry| entry.1.as_str()).collect();
    assert_eq!(types, ["i32"]);
    let parameters: Vec<&str> = of(gimli::DW_TAG_formal_parameter)
        .map(|entry| entry.1.as_str())
        .collect();
    assert_eq!(parameters[..2], ["v0", "v1"]);
    let outer = program.symbols.iter().find(|symbol| symbol.name == "outer").unwrap();
    let (start, end) = (u64::from(outer.address), u64::from(outer.address + outer.size));
    let places = &of(gimli::DW_TAG_formal_parameter).next().unwrap().2;
    let inside = |range: &gimli::Range| start <= range.begin && range.begin < range.end && range.end <= end;
    assert!(!places.is_empty() && places.iter().all(inside), "{places:x?}");
}

/// Debug information does not change the bytes and relocations of `.text`.
#[test]
fn the_code_is_the_same_with_debug_information() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/corpus");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        for settings in [&["opt_level=none"][..], &["opt_level=speed"]] {
            let with = npu_link::elf::object(&object(&name, &text, settings, false))
                .unwrap()
                .object;
            let without = crate::common::compiled(&name, &text, &isa(settings), false);
            let without = npu_link::elf::object(&without).unwrap().object;
            for (one, other) in with.sections.iter().zip(&without.sections) {
                assert_eq!(
                    (&one.name, &one.pieces),
                    (&other.name, &other.pieces),
                    "{name} {settings:?}"
                );
            }
            let known = [".text", ".eh_frame", ".npu_frames"];
            let others = without.sections.iter().find(|own| !known.contains(&own.name.as_str()));
            assert!(others.is_none(), "{name}: {others:?}");
            assert!(
                with.sections
                    .iter()
                    .any(|section| section.name == ".debug_line" && !section.alloc)
            );
        }
        count += 1;
    }
    assert!(count >= 31);
}

/// Writes the programs to files and runs a tool on each.
fn tool(name: &str, options: &[&str]) -> Vec<String> {
    let mut outputs = Vec::new();
    for gc_sections in [false, true] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-debug-{gc_sections}.elf"));
        fs::write(&path, write_executable(&program(gc_sections)).unwrap()).unwrap();
        let output = Command::new(name).args(options).arg(&path).output();
        let output = output.unwrap_or_else(|error| panic!("{name} is not installed: {error}"));
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        // The tool does not support everything for unknown machines.
        let complaints: Vec<&str> = complaints
            .lines()
            .filter(|line| !line.contains("No available targets"))
            .collect();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && complaints.is_empty(),
            "{name}: {complaints:?}\n{text}"
        );
        outputs.push(text);
    }
    outputs
}

#[test]
#[ignore = "wants llvm-dwarfdump"]
fn llvm_dwarfdump_verifies() {
    for text in tool("llvm-dwarfdump", &["--verify"]) {
        assert!(text.contains("No errors."), "{text}");
    }
}

#[test]
#[ignore = "wants readelf of GNU binutils"]
fn gnu_readelf_decodes_lines() {
    for text in tool("readelf", &["-wL"]) {
        assert!(text.contains("k.clif") && text.contains("    13  "), "{text}");
    }
    for text in tool("readelf", &["-wifroaR"]) {
        assert!(
            text.contains("DW_TAG_formal_parameter") && !text.contains("Warning"),
            "{text}"
        );
    }
}

#[test]
#[ignore = "wants llvm-readelf"]
fn llvm_readelf_reads_sections() {
    for text in tool("llvm-readelf", &["-a"]) {
        assert!(text.contains(".debug_line"), "{text}");
    }
}
