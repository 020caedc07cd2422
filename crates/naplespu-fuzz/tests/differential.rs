//! Random scalar CLIF, compiled at both optimization levels with both register allocators and run on the simulator,
//! against `cranelift-interpreter`.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs that seed alone;
//! `NAPLESPU_FUZZ_CASES=n` runs more or fewer than 2,000 cases, counted from seed 0.

use naplespu_fuzz as fuzz;
use std::sync::atomic::{AtomicU64, Ordering};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What the generator makes is valid, ends, and mostly returns.
#[test]
fn generator() {
    let (mut returned, mut trapped, mut endless) = (0, 0, 0);
    for seed in 0..1000 {
        let data = fuzz::bytes(seed);
        let case = fuzz::generate(&mut arbitrary::Unstructured::new(&data)).unwrap();
        let outcomes = fuzz::expected(&case).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.text(true)));
        for (_, outcome) in outcomes {
            match outcome {
                Some(fuzz::Outcome::Results(_)) => returned += 1,
                Some(fuzz::Outcome::Trap(_)) => trapped += 1,
                None => endless += 1,
            }
        }
    }
    assert!(
        returned > 1500 && trapped > 30 && endless < 50,
        "{returned} returned, {trapped} trapped, {endless} endless"
    );
}

#[test]
fn differential() {
    let configs = fuzz::configs().unwrap();
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(2000),
    };
    let next = AtomicU64::new(seeds.start);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let (mut failures, programs) = (Vec::new(), fuzz::Programs::new(&configs));
            // A few reports say enough.
            while failures.len() < 3 {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    break;
                }
                if let Err(report) = fuzz::run(&fuzz::bytes(seed), &programs) {
                    failures.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
                }
            }
            failures
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
