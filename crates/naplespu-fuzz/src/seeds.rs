//! Runs the seeds of a differential test on all processors of the host.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::sync::Mutex;

/// The largest number of reports.
const REPORTS: usize = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `run` with each seed and returns the results.
///
/// The seed is `NAPLESPU_FUZZ_SEED` if that variable is set. Otherwise the seeds count from 0 to
/// `NAPLESPU_FUZZ_CASES` or, without that variable, to `cases`.
///
/// # Errors
///
/// Returns the first reports, each with its seed.
pub fn check<T: Send>(cases: u64, run: impl Fn(u64) -> Result<T, String> + Sync) -> Result<Vec<T>, String> {
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed.saturating_add(1),
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(cases),
    };
    let reports: Mutex<Vec<String>> = Mutex::default();
    let one = |seed| {
        if reports.lock().is_ok_and(|reports| reports.len() >= REPORTS) {
            return None;
        }
        let result = run(seed).map_err(|report| {
            if let Ok(mut reports) = reports.lock() {
                reports.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
            }
        });
        result.ok()
    };
    let results = seeds.into_par_iter().filter_map(one).collect();
    match reports.into_inner().unwrap_or_default().as_slice() {
        [] => Ok(results),
        reports => Err(reports.join("\n\n")),
    }
}
