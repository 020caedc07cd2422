//! Runs the programs of `lost_results.tsv`, the table of the erratum
//! `lost_result_before_taken_branch` in `docs/errata.md`.
//!
//! Each row is a program. The simulator always runs it; the hardware description runs it if
//! available.
//!
//! Before each program s0 = 7, s1 = 3, s3 = 7.0, s5 = 3.0, s9 = 1, s10 = 0, and all lanes of v0,
//! v1, v3 and v5 have the values of the scalars with the same numbers. s6 is the address of a word
//! 3 in the data cache, s8 of a word 0 outside of the cache, s10 of a word 3 in the scratchpad. s2
//! is 100, s46 and ra are the address of the target, and s45 is the address after the branch. Each
//! program runs twice, because an instruction cache miss at the target gives the result time to
//! arrive.

use crate::{Outcome, clif_util, memory_of, run};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The rows of the table.
const TABLE: &str = include_str!("lost_results.tsv");

/// The address of the results.
const RESULTS: u32 = 0x70_0000;

/// For the lost result of a load that misses, the simulator reports a finding and continues with
/// the correct value.
const MISSES: &str = "load that misses";

/// The number of rows in one program, which must fit the instruction cache.
const ROWS: usize = 8;

/// A program and its results.
struct Row {
    name: String,
    before: Vec<String>,
    branch: String,
    target: Vec<String>,
    /// The result on the hardware; `None` if it is an address that depends on the preceding code.
    machine: Option<u32>,
    /// The result with two more instructions before the branch.
    right: u32,
}

fn rows() -> Outcome<Vec<Row>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let list = |text: &str| text.split(';').map(|part| part.trim().to_owned()).collect();
    lines
        .map(|line| {
            let [name, before, branch, target, machine, right] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("six columns, not `{line}`").into());
            };
            Ok(Row {
                name: name.to_owned(),
                before: list(before),
                branch: branch.to_owned(),
                target: list(target),
                machine: u32::from_str_radix(machine, 16).ok(),
                right: u32::from_str_radix(right, 16)?,
            })
        })
        .collect()
}

const INIT: &str = "movei s0, 7\nmovei s1, 3\nmovei s9, 1\nmovei s10, 0\nitof_i32 s3, s0\nitof_i32 s5, s1\nmoveih s6, 0x60\nmoveil s6, 0\n\
    moveih s8, 0x50\nmoveil s8, 0\nadd_i32 s8, s8, s30\nmove_i32 v3, s3\nmove_i32 v5, s5\nmove_i32 v0, s0\nmove_i32 v1, s1\n\
    store32_scratchpad s1, (s10)\nstore32 s1, (s6)\nload32 s2, (s6)\nmovei s2, 100\nmovei v2, 100\nmovei s4, 0\nmovei v4, 0\n";

/// Returns the text of a program with these rows. `spaced` inserts two more instructions before
/// each branch.
fn program(rows: &[Row], spaced: bool) -> Outcome<String> {
    let settle = "addi s20, s20, 1\n".repeat(10);
    let mut text = format!(
        ".org 0x380\nmovei s50, 3\nmovei s51, 11\nwrite_cr s50, s51\njmp .\n.org 0x400\n_start: movei rm, 0xffff\nmoveih s31, {}\nmoveil s31, {}\nmovei s33, 2\nmovei s30, 0\nmovei s20, 0\n\
         again: move_i32 s34, s31\n",
        RESULTS >> 16,
        RESULTS & 0xffff
    );
    for (number, row) in rows.iter().enumerate() {
        let label = |text: &str| match text.strip_suffix('T') {
            Some(start) => format!("{start}T{number}"),
            None => text.to_owned(),
        };
        write!(
            text,
            "{INIT}jmpsr L{number}\nL{number}: addi s46, ra, T{number}-L{number}\naddi s45, ra, B{number}-L{number}+4\n"
        )?;
        text += "move_i32 ra, s46\n";
        if row.target.iter().any(|inst| inst.contains("ra,")) {
            text += "movei ra, 0\n";
        }
        write!(text, "{settle}.balign 64, 0xff\n{}\n", row.before.join("\n"))?;
        if spaced {
            text += "movei tr, 0\nmovei tr, 0\n";
        }
        write!(
            text,
            "B{number}: {}\nnop\n.balign 64, 0xff\nT{number}: {}\n",
            label(&row.branch),
            row.target.join("\n")
        )?;
        write!(
            text,
            "{settle}{settle}{settle}getlanei s40, v4, 0\n{settle}store32 s4, (s34)\nstore32 s40, 4(s34)\nflush s34\naddi s34, s34, 8\n"
        )?;
    }
    write!(
        text,
        "addi s30, s30, 192\nsubi s33, s33, 1\n{settle}beqz s33, done\njmp again\n"
    )?;
    text += "done: movei s50, 2\nmovei s51, 11\nwrite_cr s50, s51\njmp .\n";
    Ok(text)
}

/// Returns the result of each row. `on` builds the command that runs an image and prints memory.
fn results(rows: &[Row], spaced: bool, mut on: impl FnMut(&Path, &str) -> Command) -> Outcome<Vec<u32>> {
    let folder = tempfile::tempdir()?;
    let mut all = Vec::new();
    for part in rows.chunks(ROWS) {
        let (source, image) = (folder.path().join("rows.s"), folder.path().join("rows.hex"));
        std::fs::write(&source, program(part, spaced)?)?;
        run(clif_util().arg("asm").arg("-o").arg(&image).arg(&source))?;
        let dump = format!("{RESULTS:#x}:{}", (8 * part.len()).next_multiple_of(64));
        let words = memory_of(&run(&mut on(&image, &dump))?)?;
        for (row, pair) in part.iter().zip(words.chunks_exact(2)) {
            let vector = row.target.iter().any(|inst| inst.contains("v4,"));
            all.push(pair[usize::from(vector)]);
        }
    }
    if all.len() == rows.len() {
        Ok(all)
    } else {
        Err(format!("{} results of {} rows", all.len(), rows.len()).into())
    }
}

/// Checks the results of all rows.
fn check(mut on: impl FnMut(&Path, &str) -> Command, is_hardware: bool) -> Outcome<()> {
    let rows = rows()?;
    let found = results(&rows, false, &mut on)?;
    let spaced = results(&rows, true, &mut on)?;
    let mut wrong = String::new();
    for ((row, found), spaced) in rows.iter().zip(found).zip(spaced) {
        let right = match row.machine {
            Some(_) if !is_hardware && row.name.starts_with(MISSES) => found == row.right,
            Some(machine) => found == machine,
            None => (found != row.right) == is_hardware,
        };
        if !right || spaced != row.right {
            let (name, machine) = (&row.name, row.machine);
            writeln!(
                wrong,
                "{name}: {found:#x}, in the table {machine:x?}; spaced {spaced:#x}, in the table {:#x}",
                row.right
            )?;
        }
    }
    let lost = rows.iter().filter(|row| row.machine != Some(row.right)).count();
    println!("{} programs, {lost} of which lose a result", rows.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Tests the simulator's definition and its timing model. They do not model the return address of a
/// call that float results delay.
pub fn on_the_simulator() -> Outcome<()> {
    for timing in [false, true] {
        check(
            |image, dump| {
                let mut command = clif_util();
                command.args(["sim", "--format", "hex", "--pc", "0x400", "--threads", "0x1"]);
                command.args(timing.then_some("--timing"));
                command.arg("--dump").arg(dump).arg(image);
                command
            },
            false,
        )?;
    }
    Ok(())
}

/// Tests the hardware description, with zeros and with random values in its registers.
pub fn on_the_hardware(simulator: &Path) -> Outcome<()> {
    for seed in ["", "1", "77"] {
        check(
            |image, dump| {
                let mut command = Command::new(simulator);
                command
                    .arg("--image")
                    .arg(image)
                    .args(["--hex", "--max-cycles", "100000", "--dump", dump]);
                if !seed.is_empty() {
                    command.args(["--seed", seed]);
                }
                command
            },
            true,
        )?;
    }
    Ok(())
}
