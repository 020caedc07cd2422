//! A histogram by `atomic_rmw` with `atomics=machine`, on the hardware description of several cores.
//!
//! Every thread adds to bins in different cache sets, and different cores add to the same bin. The
//! test prints the cycles of each run; docs/atomics.md has them.
//!
//! The variable `NPUMESH` names a program that runs the hardware description of 4 by 4 tiles.

use crate::{Outcome, clif_util, memory_of, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A run of the program.
struct Run {
    cores: u32,
    /// Threads of each core.
    threads: u32,
    /// Additions of each thread.
    additions: u32,
    /// The extra delay of memory in cycles.
    delay: u32,
}

/// The runs, which take some minutes.
const RUNS: [Run; 6] = [
    new_run(2, 1, 4, 0),
    new_run(2, 2, 4, 40),
    new_run(4, 1, 2, 10),
    new_run(4, 2, 2, 0),
    new_run(8, 1, 2, 0),
    new_run(8, 2, 2, 0),
];

/// The maximum number of cycles for each addition.
const CYCLES: u32 = 20_000;

/// The number of bins, and their distance in bytes: five lines, so that all sets are different.
const BINS: u32 = 16;
const DISTANCE: u32 = 320;

/// The bin of an addition is `FIRST` times the number of the thread plus `NEXT` times the number of
/// the addition, modulo the number of bins.
const FIRST: u32 = 7;
const NEXT: u32 = 5;

const fn new_run(cores: u32, threads: u32, additions: u32, delay: u32) -> Run {
    Run {
        cores,
        threads,
        additions,
        delay,
    }
}

/// Returns the program, whose `main` every thread executes.
fn source(&Run { threads, additions, .. }: &Run) -> String {
    format!(
        "function %main() -> i32 system_v {{
    gv0 = symbol colocated %bins
    fn0 = %__builtin_npu_tile_id() -> i32 system_v
    fn1 = %__builtin_npu_thread_id() -> i32 system_v
block0:
    v0 = symbol_value.i32 gv0
    v1 = call fn0()
    v2 = call fn1()
    v3 = iconst.i32 {threads}
    v4 = imul v1, v3
    v5 = iadd v4, v2
    v6 = iconst.i32 {FIRST}
    v7 = imul v5, v6
    v8 = iconst.i32 {additions}
    jump block1(v7, v8)
block1(v10: i32, v11: i32):
    v12 = iconst.i32 {BINS}
    v13 = urem v10, v12
    v14 = iconst.i32 {DISTANCE}
    v15 = imul v13, v14
    v16 = iadd v0, v15
    v17 = iconst.i32 1
    v18 = atomic_rmw.i32 add v16, v17
    v19 = iconst.i32 {NEXT}
    v20 = iadd v10, v19
    v21 = iconst.i32 -1
    v22 = iadd v11, v21
    brif v22, block1(v20, v22), block2
block2:
    return v22
}}
"
    )
}

/// Links the program; returns its image and the address of the bins.
fn image(run_of: &Run) -> Outcome<(PathBuf, u32)> {
    let &Run { cores, threads, .. } = run_of;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("atomics");
    std::fs::create_dir_all(&folder)?;
    let file = |ending: &str| folder.join(format!("histogram{cores}x{threads}.{ending}"));
    std::fs::write(file("clif"), source(run_of))?;
    let bins = format!(".bss\n.balign 64\n.globl bins\nbins: .zero {}\n", BINS * DISTANCE);
    std::fs::write(file("s"), bins)?;
    let options = ["compile", "--emit=obj", "--set", "opt_level=speed"];
    run(clif_util()
        .args(options)
        .args(["--set", "atomics=machine", "-o"])
        .arg(file("o"))
        .arg(file("clif")))?;
    run(clif_util()
        .args(["asm", "--emit=obj", "-o"])
        .arg(file("bins.o"))
        .arg(file("s")))?;
    let count = (cores * threads).to_string();
    run(clif_util()
        .args(["link", "--set", "atomics=machine", "--threads", &count, "--map"])
        .arg(file("map"))
        .arg("-o")
        .arg(file("elf"))
        .arg(file("o"))
        .arg(file("bins.o")))?;
    run(clif_util()
        .args(["objcopy", "-O", "hex"])
        .arg(file("elf"))
        .arg(file("hex")))?;
    let map = std::fs::read_to_string(file("map"))?;
    let address = map.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next()?;
        (words.last() == Some("bins")).then_some(address)
    });
    let address = u32::from_str_radix(address.ok_or("no bins in the map")?, 16)?;
    Ok((file("hex"), address))
}

/// Returns the words in the bins after all additions.
fn expected(run_of: &Run) -> Vec<u32> {
    let mut bins = vec![0; BINS as usize];
    for thread in 0..run_of.cores * run_of.threads {
        for addition in 0..run_of.additions {
            bins[((FIRST * thread + NEXT * addition) % BINS) as usize] += 1;
        }
    }
    bins
}

/// Checks the bins after each run.
pub fn histogram(simulator: &Path) -> Outcome<()> {
    let mut wrong = Vec::new();
    for run_of in &RUNS {
        let &Run {
            cores,
            threads,
            additions,
            delay,
        } = run_of;
        let (image, bins) = image(run_of)?;
        let mut hardware = Command::new(simulator);
        let mask = format!("{:#x}", (1u32 << threads) - 1);
        let most = (cores * threads * additions * CYCLES).to_string();
        hardware.arg("--image").arg(&image).arg("--hex");
        hardware.args(["--cores", &cores.to_string(), "--threads", &mask]);
        hardware.args(["--memdelay", &delay.to_string(), "--max-cycles", &most]);
        hardware.args(["--dump", &format!("{bins:#x}:{}", BINS * DISTANCE)]);
        let name = format!("{cores} cores with {threads} threads, delay {delay}");
        let text = match run(&mut hardware) {
            Ok(text) => text,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let cycles = text.lines().find_map(|line| line.strip_prefix("cycles: "));
        println!("{name}: {} cycles", cycles.unwrap_or("?"));
        let found: Vec<u32> = memory_of(&text)?.into_iter().step_by((DISTANCE / 4) as usize).collect();
        if found != expected(run_of) {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}
