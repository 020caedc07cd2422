//! All tests of the crate: random programs against models and interpreters, and tests of the
//! generators.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of the number of each test, counted from seed 0 or
//! from `NAPLESPU_FUZZ_SEED`. With `NAPLESPU_FUZZ_SHOW` each test prints its programs.

use naplespu_fuzz::{self as fuzz, Seen, Strategy};
use naplespu_reader::panics::caught;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

mod differential;
mod never_panics;
mod vector_operations;

/// Runs `run` with each seed on all processors of the host and returns the results; some seeds have
/// none. Panics with the report of a failure; seeds that have not started are skipped.
fn check<T: Send>(cases: u64, run: impl Fn(u64) -> Option<Result<T, String>> + Sync) -> Vec<T> {
    let number = |variable: &str| -> Option<u64> { std::env::var(variable).ok()?.parse().ok() };
    let first = number("NAPLESPU_FUZZ_SEED");
    let count = number("NAPLESPU_FUZZ_CASES").unwrap_or(if first.is_some() { 1 } else { cases });
    let first = first.unwrap_or(0);
    let one = |seed| {
        let outcome = caught(|| run(seed)).unwrap_or_else(|panic| Some(Err(format!("panic: {panic}"))));
        outcome.map(|outcome| outcome.map_err(|report| format!("NAPLESPU_FUZZ_SEED={seed}: {report}")))
    };
    let seeds = first..first.saturating_add(count);
    let all: Result<Vec<T>, String> = seeds.into_par_iter().filter_map(one).collect();
    all.unwrap_or_else(|report| panic!("{report}"))
}

/// Runs the cases of a strategy. Bytes without a valid function have no result.
fn hold(strategy: Strategy, cases: u64) -> Vec<Seen> {
    let configs = strategy.configs().unwrap();
    let shows = std::env::var_os("NAPLESPU_FUZZ_SHOW").is_some();
    let run = |seed| {
        let case = strategy.case(&fuzz::bytes(seed), &configs[0].1);
        if let Some(case) = case.as_ref().filter(|_| shows) {
            println!("; seed {seed}\n{}", case.text());
        }
        case.map(|case| fuzz::run(case, &configs, seed))
    };
    check(cases, run)
}
