//! Random loops over memory, at both optimization levels, against `cranelift-interpreter`: results,
//! traps and memory.
//!
//! A failure prints its seed and the shrunk function. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of 150, counted from seed 0. `cargo run --release
//! -p naplespu-fuzz --example loops` runs new seeds for some minutes.

use cranelift_naplespu::remarks::LoopOutcome;
use naplespu_fuzz::{counted, seeds};

#[test]
fn differential_loops() {
    let run = |compilers: &Vec<_>, seed| counted::run(&counted::bytes(seed), compilers, seed);
    let all = seeds::check(150, || counted::compilers().unwrap(), run).unwrap_or_else(|reports| panic!("{reports}"));
    let mut seen = counted::Seen::default();
    let count = all.len();
    for one in all {
        seen.add(one);
    }
    println!("{seen:?}");
    // Calls with undefined behavior are not compared, so they must be rare.
    let compared = seen.returned + seen.trapped;
    assert!(
        count < 50 || compared * 10 > seen.calls * 7 && seen.trapped * 100 > seen.calls,
        "{seen:?}"
    );
}

/// The generated loops reach the passes that they are meant for.
#[test]
fn generator() {
    let compilers = counted::compilers().unwrap();
    let speed = compilers
        .iter()
        .find(|one| one.name.contains("opt_level=speed"))
        .unwrap();
    let (mut vectorised, mut checked, mut unaligned, mut reductions) = (0, 0, 0, 0);
    let (mut versioned, mut unrolled) = (0, 0);
    let files = 200;
    for seed in 0..files {
        let case = counted::case(&counted::bytes(seed));
        let reached = counted::reached(&case, &speed.isa).unwrap();
        versioned += usize::from(reached.versioned);
        unrolled += usize::from(reached.unrolled);
        let loops: Vec<_> = reached
            .loops
            .iter()
            .filter_map(|remark| match remark.outcome {
                LoopOutcome::Vectorised(how) => Some(how),
                _ => None,
            })
            .collect();
        vectorised += usize::from(!loops.is_empty());
        checked += usize::from(loops.iter().any(|how| how.alignment_check && how.overlap_checks > 0));
        unaligned += usize::from(loops.iter().any(|how| how.unaligned_loads > 0));
        reductions += usize::from(loops.iter().any(|how| how.reductions > 0));
    }
    let shares = format!(
        "of {files} files: {vectorised} vectorised, {checked} with checks of alignment and overlap, {unaligned} with unaligned \
         loads, {reductions} with reductions, {versioned} versioned, {unrolled} unrolled"
    );
    println!("{shares}");
    assert!(
        vectorised >= 30 && checked >= 10 && unaligned >= 8 && reductions >= 8 && versioned >= 12 && unrolled >= 120,
        "{shares}"
    );
}
