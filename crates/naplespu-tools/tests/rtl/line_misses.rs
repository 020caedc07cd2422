//! Tests the erratum `repeated_instruction_line_miss` by chains of jumps through lines of a few
//! sets of the instruction cache.

use crate::{Outcome, Random, clif_util, run};
use npu_mc::machine;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The first line of set 0, and the distance between two lines of a set.
const FIRST: u32 = 0x4000;
const SETS: u32 = machine::ICACHE_SETS;
const LINE: u32 = machine::CACHE_LINE;
/// The line in which all threads end.
const LAST: u32 = 0x3fc0;
/// The largest number of visits of a line, each at a different word. The fetch after a jump stays
/// in the line.
const MOST_VISITS: usize = 6;

/// Returns the assembly of threads that visit lines in an order.
fn chain(lines: &[u32]) -> Outcome<String> {
    let mut text = String::from(".org 0x400\n_start: jmp visit0\n");
    let mut visits: Vec<(u32, u32)> = Vec::new();
    for (number, &line) in lines.iter().enumerate() {
        let earlier = lines[..number].iter().filter(|&&other| other == line).count() as u32;
        visits.push((line + 4 * earlier, number as u32));
    }
    visits.sort_unstable();
    visits.insert(0, (LAST, lines.len() as u32));
    for (place, number) in visits {
        let then = if place == LAST {
            "movei s50, 2\nmovei s51, 11\nwrite_cr s50, s51\njmp .".to_owned()
        } else {
            format!("jmp visit{}", number + 1)
        };
        writeln!(text, ".org {place:#x}\nvisit{number}: {then}")?;
    }
    Ok(text)
}

/// Returns lines of a few sets in random order.
fn random_chain(random: &mut Random) -> Vec<u32> {
    let sets: Vec<u32> = (0..1 + random.below(4))
        .map(|_| random.below(SETS.into()) as u32)
        .collect();
    let depth = 3 + random.below(3);
    let mut lines: Vec<u32> = Vec::new();
    for _ in 0..20 + random.below(40) {
        let set = sets[random.below(sets.len() as u64) as usize];
        let line = FIRST + LINE * (set + SETS * random.below(depth) as u32);
        if lines.last() != Some(&line) && lines.iter().filter(|&&other| other == line).count() < MOST_VISITS {
            lines.push(line);
        }
    }
    lines
}

/// Returns which threads end, according to the output of a command, and whether the output contains
/// a word.
fn ended(command: &mut Command, word: &str) -> Outcome<(Vec<bool>, bool)> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let threads = text
        .lines()
        .filter(|line| line.starts_with("thread ") && line.contains("status"));
    Ok((
        threads.map(|line| line.contains("status 2")).collect(),
        text.contains(word),
    ))
}

fn on_the_model(image: &Path, threads: u32) -> Outcome<(Vec<bool>, bool)> {
    let mut command = clif_util();
    command.args(["sim", "--timing", "--format", "hex", "--pc", "0x400", "--threads"]);
    command.arg(format!("{:#x}", (1u32 << threads) - 1)).arg(image);
    ended(&mut command, "repeated_instruction_line_miss")
}

fn assemble(folder: &Path, lines: &[u32]) -> Outcome<std::path::PathBuf> {
    let (source, image) = (folder.join("chain.s"), folder.join("chain.hex"));
    std::fs::write(&source, chain(lines)?)?;
    run(clif_util().arg("asm").arg("-o").arg(&image).arg(&source))?;
    Ok(image)
}

/// Checks that the same threads hang on the hardware and on the model.
pub fn on_the_hardware(simulator: &Path) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let mut hung = 0;
    for seed in 0..40 {
        let lines = random_chain(&mut Random(seed));
        let image = assemble(folder.path(), &lines)?;
        for threads in [2, 8] {
            let mut command = Command::new(simulator);
            command
                .arg("--image")
                .arg(&image)
                .args(["--hex", "--max-cycles", "20000", "--threads"]);
            let (expected, _) = ended(command.arg(format!("{:#x}", (1u32 << threads) - 1)), "hang")?;
            let (found, _) = on_the_model(&image, threads)?;
            if found != expected || found.len() != threads as usize {
                return Err(format!("{threads} threads, {lines:x?}: {found:?}, on the hardware {expected:?}").into());
            }
            hung += usize::from(expected.contains(&false));
        }
    }
    println!("{hung} of 80 runs hang");
    if (10..70).contains(&hung) {
        Ok(())
    } else {
        Err(format!("{hung} of 80 runs hang").into())
    }
}

/// Chains that request a line again: the number of lines before the first visit, the number of
/// lines between the visits (two of them in the same set), and whether two threads hang on the
/// hardware.
const REPEATS: [(u32, u32, bool); 10] = [
    (0, 2, true),
    (1, 2, true),
    (3, 2, false),
    (0, 3, false),
    (3, 3, true),
    (1, 4, false),
    (2, 4, true),
    (0, 5, false),
    (0, 6, true),
    (0, 7, false),
];

/// Checks that the model lets a thread hang in the cases measured on the hardware, never with one
/// thread, and names the erratum.
pub fn on_the_simulator() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    for (before, between, expected) in REPEATS {
        let line = |set: u32, number: u32| FIRST + LINE * (set + SETS * number);
        let mut lines: Vec<u32> = (0..before).map(|number| line(20 + number, 8)).collect();
        lines.push(line(5, 0));
        lines.extend((0..between).map(|number| {
            if number < 2 {
                line(5, 1 + number)
            } else {
                line(6 + number, 4)
            }
        }));
        lines.push(line(5, 0));
        let image = assemble(folder.path(), &lines)?;
        for (threads, hangs) in [(1, false), (2, expected)] {
            let found = on_the_model(&image, threads)?;
            let ends: Vec<bool> = (0..threads).map(|thread| thread == 0 || !hangs).collect();
            if found != (ends, hangs) {
                return Err(format!("{threads} threads, {before} lines before, {between} between: {found:?}").into());
            }
        }
    }
    Ok(())
}
