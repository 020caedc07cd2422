//! Runs the seeds of a differential test on all processors of the host.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest number of reports.
const REPORTS: usize = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `run` with each seed and returns the results in no particular order.
///
/// The seed is `NAPLESPU_FUZZ_SEED` if that variable is set. Otherwise the seeds count from 0 to
/// `NAPLESPU_FUZZ_CASES` or, without that variable, to `cases`. Each thread creates its own state
/// by `state`.
///
/// # Errors
///
/// Returns the first reports, each with its seed.
pub fn check<S, T: Send>(
    cases: u64,
    state: impl Fn() -> S + Sync,
    run: impl Fn(&S, u64) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed.saturating_add(1),
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(cases),
    };
    let next = AtomicU64::new(seeds.start);
    let reports: Mutex<Vec<String>> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        let (state, mut results) = (state(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let enough = reports.lock().is_ok_and(|reports| reports.len() >= REPORTS);
            if seed >= seeds.end || enough {
                return results;
            }
            match run(&state, seed) {
                Ok(result) => results.push(result),
                Err(report) => {
                    if let Ok(mut reports) = reports.lock() {
                        reports.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
                    }
                }
            }
        }
    };
    let results = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::new();
        for handle in handles {
            match handle.join() {
                Ok(results) => all.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    match reports.into_inner().unwrap_or_default().as_slice() {
        [] => Ok(results),
        reports => Err(reports.join("\n\n")),
    }
}
