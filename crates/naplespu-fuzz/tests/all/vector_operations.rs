//! Single operations on vectors against the evaluator.
//!
//! A failure prints its number and the shrunk function. `NAPLESPU_FUZZ_SEED=n` runs only that
//! operation.

use naplespu_fuzz::operations::{operations, vectors};
use naplespu_fuzz::{self as fuzz, seeds};

#[test]
fn operations_on_vectors_do_what_the_evaluator_says() {
    let configs = fuzz::configs().unwrap();
    let all = operations(&configs[0].1, vectors(), true);
    let calls: usize = all.iter().map(|(_, case)| case.calls.len()).sum();
    println!("{} operations, {calls} calls", all.len());
    assert!(calls > 27_000, "{} operations, {calls} calls", all.len());
    let run = |number| match all.get(number as usize) {
        Some((_, case)) => fuzz::run(case.clone(), &configs, number).map(|_| ()),
        None => Ok(()),
    };
    seeds::check(all.len() as u64, run).unwrap_or_else(|reports| panic!("{reports}"));
}
