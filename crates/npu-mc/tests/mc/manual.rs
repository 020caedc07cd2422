//! Compares the manual that `npu-tblgen --gen-isa-manual` writes with the tables and the assembler.

use crate::common::assemble;
use npu_mc::{Opcode, encode};
use std::collections::BTreeMap;
use tablegen::Options;

fn manual() -> String {
    let options = Options {
        include_dirs: vec![npu_td::directory().to_owned()],
        ..Options::default()
    };
    let parsed = tablegen::parse_file(&npu_td::directory().join("NaplesPU.td"), &options);
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    tdgen::isa_manual(&parsed).unwrap_or_else(|faults| panic!("{}", tdgen::build::render_all(&faults, &parsed.sources)))
}

/// Returns the entries of the instructions by name.
fn entries(manual: &str) -> BTreeMap<&str, &str> {
    let parts = manual.split("\n#### ").skip(1);
    parts.filter_map(|part| part.split_once('\n')).collect()
}

/// Returns the cells of a row of a table.
fn row(line: &str) -> Vec<&str> {
    line.trim_matches('|')
        .split('|')
        .map(|cell| cell.trim().trim_matches('`'))
        .collect()
}

#[test]
fn every_instruction_is_in_it() {
    let manual = manual();
    let entries = entries(&manual);
    for opcode in Opcode::ALL {
        assert!(entries.contains_key(opcode.name()), "{}", opcode.name());
    }
    assert_eq!(entries.len(), Opcode::ALL.len());
}

#[test]
fn examples_are_what_the_assembler_gives() {
    let manual = manual();
    for (name, entry) in entries(&manual) {
        let example = entry.split("* example: ").nth(1).unwrap();
        let (text, rest) = example[1..].split_once("` is `0x").unwrap();
        let word = u32::from_str_radix(&rest[..8], 16).unwrap();
        let inst = assemble(text).unwrap_or_else(|e| panic!("{name}: `{text}`: {e}"));
        assert_eq!(encode(&inst), Ok(word), "{name}: `{text}`");
    }
}

#[test]
fn constant_bits_are_those_of_the_encoder() {
    let manual = manual();
    let entries = entries(&manual);
    for opcode in Opcode::ALL {
        let desc = opcode.desc();
        let table: Vec<&str> = entries[opcode.name()]
            .lines()
            .filter(|line| line.starts_with('|'))
            .collect();
        let (mut base, mut fixed, mut bits) = (0u32, 0u32, 0);
        for (range, text) in row(table[0]).into_iter().zip(row(table[2])) {
            let (top, low) = range.split_once('-').unwrap_or((range, range));
            let (top, low): (u32, u32) = (top.parse().unwrap(), low.parse().unwrap());
            bits += top - low + 1;
            if let Ok(constant) = u32::from_str_radix(text, 2) {
                base |= constant << low;
                fixed |= (u32::MAX >> (31 - (top - low))) << low;
            }
        }
        assert_eq!(bits, 32, "{}", opcode.name());
        assert_eq!((base, fixed), (desc.base & desc.fixed, desc.fixed), "{}", opcode.name());
    }
}

#[test]
fn an_entry() {
    let manual = manual();
    // Written by hand from the documents of the machine: R format, opcode 9, vector destination and
    // first source.
    let expected = "\n`ashr_i32 $dst, $src0, $src1`\n\n\
        | 31-30 | 29-24 | 23-18 | 17-12 | 11-6 | 5 | 4 | 3 | 2 | 1 | 0 |\n\
        |---|---|---|---|---|---|---|---|---|---|---|\n\
        | `00` | `001001` | `dst` | `src0` | `src1` | `0` | `0` | `1` | `1` | `0` | `0` |\n\n\
        * operands: `dst` vector register, written; `src0` vector register; `src1` scalar register\n";
    let entry = entries(&manual)["SRAVVS_U_32"];
    assert!(entry.starts_with(expected), "{entry}");
    assert!(
        entry.contains("* errata: [shift_amount_not_modulo](#errata)\n"),
        "{entry}"
    );
    assert!(
        entry.ends_with("* example: `ashr_i32 v1, v2, s3` is `0x090420cc`\n"),
        "{entry}"
    );
}
