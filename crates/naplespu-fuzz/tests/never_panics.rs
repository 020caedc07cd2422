//! Random functions over all opcodes and types of CLIF: each is compiled or refused, at both optimization levels with
//! both register allocators and all settings of the target both ways; nothing panics, and nothing else goes wrong in the compiler.
//!
//! A failure prints its seed and the reduced function. `NAPLESPU_FUZZ_SEED=n` runs that seed alone;
//! `NAPLESPU_FUZZ_CASES=n` runs more or fewer cases than usual, counted from seed 0.

use naplespu_fuzz::{self as fuzz, compiles};
use naplespu_reader::panics;
use std::sync::atomic::{AtomicU64, Ordering};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn never_panics() {
    // The generator asks Cranelift for types that it cannot compute, and it panics.
    std::panic::set_hook(panics::hook(std::panic::take_hook()));
    let configs = compiles::configs().unwrap();
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(20_000),
    };
    let (next, compiled, refused) = (AtomicU64::new(seeds.start), AtomicU64::new(0), AtomicU64::new(0));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let mut failures = Vec::new();
            // A few reports say enough.
            while failures.len() < 3 {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    break;
                }
                match compiles::run(&fuzz::bytes(seed), &configs) {
                    Ok(compiles::Verdict::Compiled) => _ = compiled.fetch_add(1, Ordering::Relaxed),
                    Ok(compiles::Verdict::Refused) => _ = refused.fetch_add(1, Ordering::Relaxed),
                    Ok(compiles::Verdict::Nothing) => {}
                    Err(report) => failures.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}")),
                }
            }
            failures
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let (compiled, refused) = (compiled.into_inner(), refused.into_inner());
    println!("{compiled} compiled, {refused} refused");
    // Functions that are all refused, or never valid, would say nothing.
    let count = seeds.end - seeds.start;
    assert!(
        count < 100 || compiled > count / 5 && refused > count / 10,
        "{compiled} compiled, {refused} refused of {count}"
    );
}
