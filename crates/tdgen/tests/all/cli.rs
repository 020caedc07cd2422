//! The command line `npu-tblgen`, and the use of generated tables in a program.
//! `CRANELIFT_TEST_BLESS=1` rewrites the expectations.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[rustfmt::skip]
#[path = "../gen/instr_map.rs"]
mod instr_map;
#[rustfmt::skip]
#[path = "../gen/searchable_tables.rs"]
mod searchable_tables;

type Failure = Box<dyn std::error::Error>;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn run(args: &[&str]) -> Result<Output, Failure> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npu-tblgen"));
    Ok(command.current_dir(folder("gen")).args(args).output()?)
}

/// Checks that the output of a run equals the contents of a file.
fn prints(args: &[&str], file: &str) -> Result<(), Failure> {
    let output = run(args)?;
    let path = folder("gen").join(file);
    let text = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some() {
        std::fs::write(&path, &text)?;
    }
    assert_eq!(text, std::fs::read_to_string(&path)?, "{args:?}");
    Ok(())
}

#[test]
fn outputs() -> Result<(), Failure> {
    prints(&["--gen-instr-map", "instr_map.td"], "instr_map.rs")?;
    prints(
        &["-gen-searchable-tables", "searchable_tables.td"],
        "searchable_tables.rs",
    )?;
    prints(&["-print-enums", "-class=Insn", "instr_map.td"], "enums.txt")?;
    prints(&["why", "Add_pt.PredSense", "instr_map.td"], "why-field.txt")?;
    prints(&["why", "Sub_pf", "instr_map.td"], "why-record.txt")?;
    prints(&["why", "Subb", "instr_map.td"], "why-unknown.txt")?;
    prints(&["--gen-instr-map", "faulty_map.td"], "faulty_map.txt")?;
    prints(&["--gen-searchable-tables", "faulty_tables.td"], "faulty_tables.txt")?;
    prints(&["--no-such-option"], "usage.txt")
}

#[test]
fn one_run_writes_every_output() -> Result<(), Failure> {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let paths = ["a.txt", "b.json", "c.rs", "d.d"].map(|name| scratch.join(name).display().to_string());
    let [records, json, map, rule] = &paths;
    let output = run(&[
        "instr_map.td",
        "--print-records",
        "-o",
        records,
        "--dump-json",
        "-o",
        json,
        "--gen-instr-map",
        "-o",
        map,
        "-d",
        rule,
        "--write-if-changed",
    ])?;
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(std::fs::read_to_string(records)?.contains("def Add_pt {"));
    assert!(std::fs::read_to_string(json)?.starts_with("{\"!instanceof\""));
    assert_eq!(
        std::fs::read_to_string(map)?,
        std::fs::read_to_string(folder("gen").join("instr_map.rs"))?
    );
    assert_eq!(std::fs::read_to_string(rule)?, format!("{records}:\n"));
    Ok(())
}

#[test]
fn exit_status() -> Result<(), Failure> {
    assert_eq!(run(&["--null-backend", "instr_map.td"])?.status.code(), Some(0));
    assert_eq!(run(&["missing.td"])?.status.code(), Some(1));
    assert_eq!(run(&["a.td", "b.td"])?.status.code(), Some(2));
    assert_eq!(run(&["-d", "x.d", "instr_map.td"])?.status.code(), Some(2));
    Ok(())
}

#[test]
fn relations_of_the_post() {
    use instr_map::{Opcode, PredSense, get_pred_opcode, get_reg_opcode};
    assert_eq!(get_pred_opcode(Opcode::Add, PredSense::True), Some(Opcode::Add_pt));
    assert_eq!(get_pred_opcode(Opcode::Add, PredSense::False), Some(Opcode::Add_pf));
    assert_eq!(get_pred_opcode(Opcode::Sub, PredSense::Empty), None);
    assert_eq!(get_pred_opcode(Opcode::Nop, PredSense::True), None);
    assert_eq!(get_pred_opcode(Opcode::Add_pt, PredSense::True), None);
    assert_eq!(get_reg_opcode(Opcode::Sub_pt), Some(Opcode::Sub));
    assert_eq!(get_reg_opcode(Opcode::Sub_pf), None);
}

#[test]
fn tables_are_searched() {
    use searchable_tables::{KindEnum, REGS, lookup_reg_by_encoding, lookup_reg_by_name, regs_of_kind};
    assert_eq!(REGS.len(), 3);
    assert_eq!(lookup_reg_by_encoding(7).map(|row| row.name), Some("b"));
    assert_eq!(lookup_reg_by_encoding(8), None);
    assert_eq!(
        lookup_reg_by_name("a").map(|row| (row.encoding, row.k, row.cost)),
        Some((12, KindEnum::Slow, 9))
    );
    assert_eq!(lookup_reg_by_name("z"), None);
    let fast: Vec<&str> = regs_of_kind(KindEnum::Fast, false).map(|row| row.name).collect();
    assert_eq!(fast, ["c"]);
    assert_eq!(regs_of_kind(KindEnum::Slow, true).count(), 0);
    let numbers: Vec<(&str, u8)> = KindEnum::ALL.iter().map(|kind| (kind.name(), kind.value())).collect();
    assert_eq!(numbers, [("Fast", 1), ("Slow", 5)]);
    assert_eq!(KindEnum::from_value(5), Some(KindEnum::Slow));
    assert_eq!(KindEnum::from_value(4), None);
}
