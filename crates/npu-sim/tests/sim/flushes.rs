//! Many flushes of one core, with their cycles on the hardware description: one core alone, and one
//! core of the mesh of 2 by 2 tiles whose other core ends at once.
//!
//! The controller of a core has room for a few flushes. The next one waits in the load/store unit, and
//! the thread's later accesses behind it.

use super::mesh::{END, LOAD, MEET, PROLOGUE, STORE, crowd, set};
use super::network::{System, run_program};
use npu_sim::Topology;

/// The numbers of threads, in the order of the cycles.
const THREADS: [u32; 4] = [1, 2, 4, 8];

const NEXT: &str = "addi s3, s3, 64\n";

/// Repeats code.
fn repeated(label: &str, times: u32, code: &str) -> String {
    format!("movei s9, {times}\n{label}:\n{code}subi s9, s9, 1\n bnez s9, {label}\n")
}

/// A program in which each thread of core 0 has 1 KiB of its own, at `s3`.
fn source(threads: u32, code: &str) -> String {
    let (crowd, address) = (crowd(1, threads), set("s3", 0x10_0000));
    format!("{PROLOGUE}bnez s1, fin\n{crowd}{address}shli s4, s2, 10\n add_i32 s3, s3, s4\n{code}fin:\n{END}")
}

/// The numbers of flushes in a row, and the delays of memory.
const COUNTS: [usize; 5] = [4, 9, 12, 16, 20];
const DELAYS: [u32; 3] = [0, 10, 40];

/// The cycles of one core by number of threads, of flushes and delay of memory.
const ALONE: [[[u64; 3]; 5]; 4] = [
    [
        [7447, 7467, 7577],
        [7487, 7667, 8257],
        [7531, 7801, 8661],
        [7563, 7969, 9189],
        [7627, 8137, 9717],
    ],
    [
        [7952, 7995, 8135],
        [8093, 8545, 9915],
        [8165, 8797, 10707],
        [8267, 9158, 11842],
        [8362, 9486, 12892],
    ],
    [
        [8118, 8482, 9556],
        [8377, 9430, 12585],
        [8527, 9938, 14187],
        [8716, 10586, 16225],
        [8901, 11237, 18248],
    ],
    [
        [8506, 9462, 12404],
        [8990, 11194, 17554],
        [9271, 12219, 21103],
        [9675, 13523, 25137],
        [10055, 14896, 29428],
    ],
];

/// Cases in which the model has more cycles: threads, flushes, delay, and the cycles.
const INEXACT: [(u32, usize, u32, u64); 2] = [(4, 4, 0, 5), (4, 9, 0, 1)];

#[test]
fn flushes_of_one_core_take_the_cycles_of_the_hardware() {
    for (threads, table) in THREADS.into_iter().zip(ALONE) {
        for (count, row) in COUNTS.into_iter().zip(table) {
            let flushes = "flush s3\n".repeat(count) + "load32 s5, (s8)\n add_i32 s6, s5, s5\n";
            let wait = "movei s12, 40\n shli s12, s12, 2\nwait:\n subi s12, s12, 1\n bnez s12, wait\n";
            let iteration = format!("{wait}{MEET}movei s20, 7\n or_i32 s20, s20, s20\n{flushes}");
            let before = "store32 s1, (s3)\n addi s8, s3, 128\n load32 s5, (s8)\n add_i32 s6, s5, s5\n";
            let source = source(threads, &(before.to_owned() + &repeated("again", 3, &iteration)));
            for (memory_delay, hardware) in DELAYS.into_iter().zip(row) {
                let system = System {
                    threads,
                    memory_delay,
                    ..System::alone()
                };
                let (report, ..) = run_program(&source, system, |_| false);
                let case = (threads, count, memory_delay);
                let more = INEXACT
                    .iter()
                    .find(|&&(threads, count, delay, _)| (threads, count, delay) == case);
                let expected = hardware + more.map_or(0, |&(.., more)| more);
                assert_eq!(report.cycles, expected, "threads, flushes and delay {case:?}");
            }
        }
    }
}

/// A program on the mesh: its code, and the cycles by number of threads.
type Pattern = (&'static str, String, [u64; 4]);

/// Programs that flush.
fn flushes() -> Vec<Pattern> {
    let rows = format!(
        "or_i32 s8, s3, s3\n{}or_i32 s3, s8, s8\n{MEET}{}",
        repeated("warm", 8, &format!("{STORE}{NEXT}")),
        repeated("again", 8, &format!("flush s3\n{NEXT}"))
    );
    let again = |times, code: &str| MEET.to_owned() + &repeated("again", times, code);
    let stored = |times, code: &str| STORE.to_owned() + &again(times, code);
    let missed = again(16, &format!("store32 s9, (s8)\n flush s8\n{NEXT}{LOAD}"));
    vec![
        ("rows", rows, [841, 925, 1084, 1597]),
        (
            "a store and a flush of a line",
            again(16, &format!("{STORE}flush s3\n")),
            [593, 654, 841, 2359],
        ),
        (
            "of a row",
            again(16, &format!("{STORE}flush s3\n{NEXT}")),
            [1387, 1470, 1592, 2141],
        ),
        (
            "without a wait",
            stored(16, "store32 s9, (s3)\n flush s3\n"),
            [448, 516, 833, 1657],
        ),
        ("loads", stored(16, &format!("flush s3\n{LOAD}")), [576, 633, 881, 1753]),
        (
            "misses",
            format!("{STORE}or_i32 s8, s3, s3\n{missed}"),
            [1713, 1764, 1929, 3655],
        ),
        (
            "absent lines",
            again(16, &format!("flush s3\n{NEXT}")),
            [346, 409, 499, 698],
        ),
        (
            "absent lines and loads",
            again(16, &format!("flush s3\n{NEXT}{LOAD}")),
            [1621, 1705, 1908, 3602],
        ),
        (
            "only flushes",
            stored(3, &"flush s3\n".repeat(24)),
            [845, 1766, 3425, 7016],
        ),
    ]
}

/// Programs that use `dcache_inv` all the time.
fn invalidations() -> Vec<Pattern> {
    let again = |code: &str| MEET.to_owned() + &repeated("again", 16, code);
    vec![
        (
            "of a line",
            again(&format!("{STORE}dcache_inv s3\n")),
            [1269, 1369, 1827, 3430],
        ),
        (
            "of a row",
            again(&format!("{STORE}dcache_inv s3\n{NEXT}")),
            [1569, 1642, 2005, 3251],
        ),
        (
            "after flushes",
            again(&format!("{STORE}flush s3\n dcache_inv s3\n{NEXT}")),
            [1723, 1997, 2698, 4365],
        ),
    ]
}

/// Returns the relative error of each pattern and number of threads.
fn errors(patterns: Vec<Pattern>) -> Vec<(&'static str, u32, f64)> {
    let mut errors = Vec::new();
    for (name, code, cycles) in patterns {
        for (threads, hardware) in THREADS.into_iter().zip(cycles) {
            let system = System {
                cores: 2,
                running: 2,
                threads,
                mesh: Topology::new(2, 2).expect("a mesh"),
                ..System::alone()
            };
            let (report, ..) = run_program(&source(threads, &code), system, |_| false);
            let error = report.cycles as f64 / hardware as f64 - 1.0;
            println!(
                "{name}, {threads} threads: {} cycles, hardware {hardware}, {:+.1} %",
                report.cycles,
                100.0 * error
            );
            errors.push((name, threads, error));
        }
    }
    errors
}

#[test]
fn flushes_on_the_mesh_take_the_cycles_of_the_hardware() {
    let mut errors = errors(flushes());
    // The directory's answer to an eviction waits until the messages of the core stop.
    let starved = errors
        .iter()
        .position(|&(name, threads, _)| threads == 8 && name == "a store and a flush of a line");
    let (.., starved) = errors.remove(starved.expect("a case"));
    assert!((-0.30..0.0).contains(&starved), "{starved}");
    let mean = errors.iter().map(|(.., error)| error.abs()).sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().map(|(.., error)| error.abs()).fold(0.0, f64::max);
    println!("mean {mean:.4}, worst {worst:.4}");
    assert!(mean < 0.013 && worst < 0.055, "mean {mean:.4}, worst {worst:.4}");
}

#[test]
fn many_invalidations_on_the_mesh_are_too_fast() {
    for (name, threads, error) in errors(invalidations()) {
        let least = [(1, -0.01), (2, -0.13), (4, -0.22), (8, -0.38)];
        let least = least.iter().find(|&&(count, _)| count == threads);
        assert!(
            least.is_some_and(|&(_, least)| (least..0.01).contains(&error)),
            "{name}, {threads} threads: {error}"
        );
    }
}
