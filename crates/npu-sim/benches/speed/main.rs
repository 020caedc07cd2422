//! The speed of the functional model in instructions per second, on loops of instruction words.
//!
//! Each loop runs for a fixed number of instructions, several times; the best time counts.
//! Single-threaded loops also run in a plain interpreter, which has to compute the same registers;
//! the ratio of both rates depends less on the host than the rates. With the feature `jit` they run
//! a third time, with translations, and loops of several threads a second time. Loops of several
//! cores run on 1, 2 and 4 host threads. Arguments select loops by a part of their names.

mod plain;
mod words;

use npu_mc::{SReg, VReg};
use npu_sim::{Config, Halt, LANES, Lanes, Machine, Schedule, Stop, THREADS};
use plain::Plain;
use std::time::Instant;
use words::{looped, mem, mixed, ri, rr};

const BASE: u32 = 0x1000;
/// The address of the leaf function of the call loop.
const LEAF: u32 = BASE + 24;
const INSTRUCTIONS: u64 = 50_000_000;
const ITERATIONS: u32 = 5;

/// Measures a run of a machine, with or without translations (feature `jit`).
fn timed(body: &[u32], config: &Config, translates: bool, run: impl Fn(&mut Machine)) -> Option<(f64, Machine)> {
    let mut config = *config;
    config.translate_after = config.translate_after.filter(|_| translates);
    let mut machine = prepared(body, config)?;
    let start = Instant::now();
    run(&mut machine);
    Some((start.elapsed().as_secs_f64(), machine))
}

/// Prints the results of a loop with translations.
fn translated(rate: f64, ratio: &str, machine: &Machine) {
    #[cfg(feature = "jit")]
    {
        let share = 100.0 * machine.translated_instructions() as f64 / INSTRUCTIONS as f64;
        println!(
            "{:<44} {rate:>8.1} million instructions a second{ratio}, {share:.1} % translated",
            "  translated"
        );
    }
    #[cfg(not(feature = "jit"))]
    let _ = (rate, ratio, machine);
}

/// Returns whether a loop is selected.
fn is_chosen(name: &str) -> bool {
    let mut chosen = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .peekable();
    chosen.peek().is_none() || chosen.any(|part| name.contains(&part))
}

fn measure(name: &str, body: &[u32]) {
    if !is_chosen(name) {
        return;
    }
    let [mut best, mut best_translated, mut best_plain] = [f64::INFINITY; 3];
    let mut last = None;
    for _ in 0..ITERATIONS {
        let Some(mut plain) = Plain::new(BASE, &looped(body), &REGISTERS, &VECTORS) else {
            return;
        };
        let start = Instant::now();
        let ran = plain.run(INSTRUCTIONS);
        best_plain = best_plain.min(start.elapsed().as_secs_f64());
        assert!(ran.is_some(), "{name}");
        for translates in [false, true] {
            let run = |machine: &mut Machine| assert_eq!(machine.run(0, INSTRUCTIONS), Stop::StepLimit, "{name}");
            let Some((time, machine)) = timed(body, &Config::default(), translates, run) else {
                return;
            };
            let best = if translates { &mut best_translated } else { &mut best };
            *best = best.min(time);
            let thread = machine.thread(0);
            for number in 0..63 {
                if let (Some(scalar), Some(vector)) = (SReg::new(number), VReg::new(number)) {
                    assert_eq!(thread.scalar(scalar), plain.scalar(number), "{name}: {}", scalar.name());
                    assert_eq!(
                        thread.vector(vector).0,
                        plain.vector(number),
                        "{name}: {}",
                        vector.name()
                    );
                }
            }
            last = Some(machine);
        }
    }
    let rate = |time: f64| INSTRUCTIONS as f64 / time / 1e6;
    let ratio = |time: f64| format!(", {:.2} times a plain interpreter", best_plain / time);
    println!(
        "{name:<44} {:>8.1} million instructions a second{}",
        rate(best),
        ratio(best)
    );
    if let Some(machine) = last {
        translated(rate(best_translated), &ratio(best_translated), &machine);
    }
}

/// Measures a loop in 8 threads that take turns, with or without data caches.
fn measure_threads(name: &str, body: &[u32], coherent: bool) {
    if !is_chosen(name) {
        return;
    }
    let config = Config {
        coherent,
        ..Config::default()
    };
    let mut best = [f64::INFINITY; 2];
    let mut last = None;
    for _ in 0..ITERATIONS {
        for (best, translates) in best.iter_mut().zip([false, true]) {
            let run = |machine: &mut Machine| {
                machine.enable(0, u32::MAX);
                let halt = machine.run_threads(&mut Schedule::default(), INSTRUCTIONS);
                assert_eq!(halt, Halt::StepLimit, "{name}");
            };
            let Some((time, machine)) = timed(body, &config, translates, run) else {
                return;
            };
            *best = best.min(time);
            last = Some(machine);
        }
    }
    let [rate, with] = best.map(|time| INSTRUCTIONS as f64 / time / 1e6);
    println!("{name:<44} {rate:>8.1} million instructions a second");
    if let Some(machine) = last.filter(|_| coherent) {
        translated(with, "", &machine);
    }
}

/// Measures a loop on 16 cores with separate data, on 1, 2 and 4 host threads.
fn measure_cores(name: &str, body: &[u32]) {
    if !is_chosen(name) {
        return;
    }
    const CORES: usize = 16;
    const HOST_THREADS: [usize; 3] = [1, 2, 4];
    const MANY: u64 = 8 * INSTRUCTIONS;
    let translations: &[bool] = if cfg!(feature = "jit") {
        &[false, true]
    } else {
        &[false]
    };
    for &translates in translations {
        let mut best = [f64::INFINITY; HOST_THREADS.len()];
        let mut beside = 0;
        for _ in 0..ITERATIONS {
            for (best, host_threads) in best.iter_mut().zip(HOST_THREADS) {
                let config = Config {
                    cores: CORES,
                    host_threads,
                    ..Config::default()
                };
                let run = |machine: &mut Machine| {
                    for number in 0..machine.threads() {
                        let behind = (number / THREADS) as u32 * 0x1_0000;
                        for (register, value) in [(SReg::S40, 0x100_0000), (SReg::S41, 0x200_0000)] {
                            machine.thread_mut(number).set_scalar(register, value + behind);
                        }
                    }
                    for core in 0..CORES {
                        machine.enable(core, u32::MAX);
                    }
                    let halt = machine.run_threads(&mut Schedule::default(), MANY);
                    assert_eq!(halt, Halt::StepLimit, "{name}");
                };
                let Some((time, machine)) = timed(body, &config, translates, run) else {
                    return;
                };
                *best = best.min(time);
                beside = machine.instructions_side_by_side();
            }
        }
        let rates = best.map(|time| format!("{:.1}", MANY as f64 / time / 1e6)).join(", ");
        let ratios = best.map(|time| format!("{:.2}", best[0] / time)).join(", ");
        println!(
            "{:<44} {rates} million instructions a second on 1, 2 and 4 host threads, {ratios} times that of 1, {:.1} % in parallel",
            if translates { "  translated" } else { name },
            100.0 * beside as f64 / MANY as f64,
        );
    }
}

/// Measures a loop in single steps of 8 threads in turn.
fn measure_steps(name: &str, body: &[u32]) {
    if !is_chosen(name) {
        return;
    }
    const STEPS: usize = 8_000_000;
    let mut best = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let Some(mut machine) = prepared(body, Config::default()) else {
            return;
        };
        let start = Instant::now();
        for k in 0..STEPS {
            let step = machine.step(k % THREADS);
            assert!(step.is_ok(), "{name}");
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let rate = STEPS as f64 / best / 1e6;
    println!("{name:<44} {rate:>8.1} million steps a second");
}

/// The number of copies of an operation in a loop.
const COPIES: u32 = 14;

/// Measures the operations per second of each kind on vectors, in loops of copies of one operation;
/// `name` is the label.
fn measure_operations(name: &str) {
    if !is_chosen(name) {
        return;
    }
    // Returns a copy of an operation from its destination register, the destination of another
    // copy, and its number.
    type Copy = fn(u32, u32, u32) -> u32;
    let kinds: [(&str, Copy); 35] = [
        ("or", |d, a, _| rr(1, d, a, 2, 7)),
        ("add", |d, a, _| rr(4, d, a, 2, 7)),
        ("add of a scalar", |d, a, _| rr(4, d, a, 43, 6)),
        ("add of a number", |d, a, k| ri(4, d, a, k as i32) | 6),
        ("mull", |d, a, _| rr(6, d, a, 2, 7)),
        ("mulhs", |d, a, _| rr(7, d, a, 2, 7)),
        ("mulhu", |d, a, _| rr(8, d, a, 2, 7)),
        ("ashr", |d, a, _| rr(9, d, a, 3, 7)),
        ("ashr by a scalar", |d, a, _| rr(9, d, a, 43, 6)),
        ("shl", |d, a, _| rr(11, d, a, 3, 7)),
        ("shl by a number", |d, a, k| ri(11, d, a, k as i32) | 6),
        ("clz", |d, a, _| rr(12, d, a, 0, 6)),
        ("ctz", |d, a, _| rr(13, d, a, 0, 6)),
        ("move", |d, a, _| rr(32, d, a, 0, 6)),
        ("move of a scalar", |d, _, k| rr(32, d, 2 + k, 0, 4)),
        ("sext8", |d, a, _| rr(43, d, a, 0, 6)),
        ("cmpgt", |d, a, _| rr(16, d, a, 2, 3)),
        ("cmpult of a scalar", |d, a, _| rr(22, d, a, 43, 2)),
        ("cmpfge", |d, a, _| rr(40, d, a, 2, 3)),
        ("shuffle", |d, a, _| rr(24, d, a, 3, 7)),
        ("getlane", |d, a, _| rr(25, d, a, 43, 2)),
        ("crt_mask", |d, a, _| rr(50, d, a, 0, 2)),
        ("fadd", |d, a, _| rr(33, d, a, 2, 7)),
        ("fsub of a scalar", |d, a, _| rr(34, d, a, 44, 6)),
        ("fmul", |d, a, _| rr(35, d, a, 2, 7)),
        ("fdiv", |d, a, _| rr(36, d, 2, a, 7)),
        ("itof", |d, a, _| rr(48, d, a, 0, 6)),
        ("ftoi", |d, a, _| rr(49, d, a, 0, 6)),
        ("moveil", |d, _, k| 3 << 29 | d << 18 | k << 2 | 1 << 1),
        ("load_v16i32", |d, _, k| mem(9, d, 40, 64 * (k as i32 % 4))),
        ("load_v16u8", |d, _, k| mem(11, d, 40, 64 * (k as i32 % 4))),
        ("store_v16i32", |d, _, k| mem(38, d, 41, 64 * (k as i32 % 4))),
        ("store_v16i8", |d, _, k| mem(36, d, 41, 64 * (k as i32 % 4))),
        ("load_v16i32_scratchpad", |d, _, k| {
            mem(9, d, 40, 64 * (k as i32 % 4)) | 1 << 1
        }),
        ("store_v16i32_scratchpad", |d, _, k| {
            mem(38, d, 41, 64 * (k as i32 % 4)) | 1 << 1
        }),
    ];
    for (kind, copy) in kinds {
        // With all lanes on, and with some lanes on.
        let masks = [0xffff, 0x5a5a];
        let mut rates = Vec::new();
        for (mask, translates) in masks.into_iter().flat_map(|mask| [(mask, false), (mask, true)]) {
            // No two copies compute the same.
            let register = |k: u32| 4 + k % COPIES;
            let body: Vec<u32> = (0..COPIES).map(|k| copy(register(k), register(k + 10), k)).collect();
            let mut best = f64::INFINITY;
            for _ in 0..ITERATIONS {
                let run = |machine: &mut Machine| {
                    let thread = machine.thread_mut(0);
                    thread.set_scalar(SReg::RM, mask);
                    for number in 0..COPIES as u8 {
                        if let Some(register) = VReg::new(4 + number) {
                            thread.set_vector(register, lanes(0x3f90_1234 + 0x1111 * u32::from(number)));
                        }
                    }
                    assert_eq!(machine.run(0, INSTRUCTIONS / 5), Stop::StepLimit, "{kind}");
                };
                let Some((time, machine)) = timed(&body, &Config::default(), translates, run) else {
                    return;
                };
                assert!(machine.findings().is_empty(), "{kind}: {:?}", machine.findings());
                best = best.min(time);
            }
            let share = f64::from(COPIES) / f64::from(COPIES + 2);
            rates.push(share * (INSTRUCTIONS / 5) as f64 / best / 1e6);
        }
        println!(
            "{name}, {kind:<24} {:>7.1} interpreted, {:>7.1} translated; some lanes: {:>7.1}, {:>7.1}",
            rates[0], rates[1], rates[2], rates[3]
        );
    }
}

/// Scalar registers with nonzero initial values.
const REGISTERS: [(SReg, u32); 6] = [
    (SReg::RM, 0xffff),
    (SReg::S40, 0x10_0000),
    (SReg::S41, 0x20_0000),
    (SReg::S42, LEAF),
    (SReg::S43, 11),
    (SReg::S44, 0x4010_2030),
];

/// Vector registers with nonzero initial values: floats and integers that differ in each lane.
const VECTORS: [(VReg, Lanes); 3] = [
    (VReg::V1, lanes(0x3f80_1234)),
    (VReg::V2, lanes(0x4048_f5c3)),
    (VReg::V3, Lanes([9, 1, 15, 4, 12, 0, 7, 2, 3, 14, 5, 11, 6, 8, 13, 10])),
];

/// Returns lanes that count up from `first`.
const fn lanes(first: u32) -> Lanes {
    let mut lanes = [first; LANES];
    let mut k = 0;
    while k < LANES {
        lanes[k] += 0x1_2345 * k as u32;
        k += 1;
    }
    Lanes(lanes)
}

/// Creates a machine with a loop of `body` in every thread.
fn prepared(body: &[u32], config: Config) -> Option<Machine> {
    let mut machine = Machine::new(config);
    for (word, address) in looped(body).iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).ok()?;
    }
    for number in 0..machine.threads() {
        let thread = machine.thread_mut(number);
        for (register, value) in REGISTERS {
            thread.set_scalar(register, value);
        }
        for (register, value) in VECTORS {
            thread.set_vector(register, value);
        }
        thread.set_pc(BASE);
    }
    Some(machine)
}

fn main() {
    measure("empty loop (subi, bnez)", &[]);
    let chain: Vec<u32> = (0..14).map(|_| rr(4, 2, 2, 1, 0)).collect();
    measure("dependent adds", &chain);
    let mixed = mixed();
    measure("integer mix with a data-dependent branch", &mixed);
    // A leaf function after the loop is called directly, then through a register.
    let leaf = LEAF - BASE;
    let calls = [
        0x79 << 24 | leaf,
        ri(4, 2, 2, 1),
        ri(4, 62, 63, 8),
        0x70 << 24 | 42 << 18,
        ri(4, 2, 2, 1),
        0x78 << 24 | 20,
        rr(4, 3, 3, 2, 0),
        rr(4, 3, 3, 2, 0),
        rr(4, 3, 3, 2, 0),
        0x73 << 24,
    ];
    measure("direct and indirect calls of a leaf", &calls);
    let memory = [
        mem(2, 2, 40, 0),
        rr(4, 3, 3, 2, 0),
        mem(34, 3, 41, 4),
        mem(4, 4, 40, 9),
        rr(3, 3, 3, 4, 0),
        mem(32, 3, 41, 11),
        ri(4, 5, 5, 4),
        ri(2, 5, 5, 0xff),
    ];
    measure("loads and stores", &memory);
    let float = [
        rr(33, 2, 2, 3, 0),
        rr(35, 4, 2, 3, 0),
        rr(36, 5, 4, 2, 0),
        rr(40, 6, 5, 4, 0),
    ];
    measure("scalar floats", &float);
    let vector = [
        mem(9, 1, 40, 0),
        rr(4, 2, 1, 2, 7),
        rr(6, 3, 2, 1, 7),
        rr(3, 4, 3, 2, 7),
        rr(4, 5, 4, 1, 6),
        mem(38, 5, 41, 64),
    ];
    measure("integer vectors of 16 lanes", &vector);
    let vector_float = [rr(33, 2, 1, 2, 7), rr(35, 3, 2, 1, 7), rr(34, 4, 3, 2, 7)];
    measure("float vectors of 16 lanes", &vector_float);
    let compare = [rr(16, 3, 1, 2, 3), rr(32, 59, 3, 0, 0), rr(4, 4, 4, 1, 7)];
    measure("vector compare, mask, masked add", &compare);
    let mut spilled = vec![rr(16, 20, 1, 2, 3), mem(34, 20, 41, 64)];
    spilled.extend(memory);
    measure("loads and stores beside a spilled compare", &spilled);
    measure_operations("million operations a second on vectors");
    measure_threads("integer mix, 8 threads", &mixed, true);
    measure_threads("loads and stores, 8 threads", &memory, true);
    measure_threads("loads and stores, 8 threads, data cache", &memory, false);
    measure_threads("integer vectors, 8 threads, data cache", &vector, false);
    measure_cores("integer mix, 16 cores", &mixed);
    measure_cores("loads and stores, 16 cores", &memory);
    measure_cores("integer vectors, 16 cores", &vector);
    measure_steps("integer mix, step by step", &mixed);
    measure_steps("loads and stores, step by step", &memory);
    measure_steps("integer vectors, step by step", &vector);
}
