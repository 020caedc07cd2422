//! Runs the seeds of a differential test on all processors of the host.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `run` with each seed and returns the results.
///
/// The seeds count from `NAPLESPU_FUZZ_SEED`, and there are `NAPLESPU_FUZZ_CASES` of them. With only
/// the first variable there is one seed; without both there are `cases` from 0.
///
/// # Errors
///
/// Returns the report of a failure, with its seed. Seeds that have not started are skipped.
pub fn check<T: Send>(cases: u64, run: impl Fn(u64) -> Result<T, String> + Sync) -> Result<Vec<T>, String> {
    let first = number("NAPLESPU_FUZZ_SEED");
    let count = number("NAPLESPU_FUZZ_CASES").unwrap_or(if first.is_some() { 1 } else { cases });
    let first = first.unwrap_or(0);
    let seeds = first..first.saturating_add(count);
    let one = |seed| run(seed).map_err(|report| format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
    seeds.into_par_iter().map(one).collect()
}
