//! Single operations on vectors against the evaluator.
//!
//! A failure prints its number and the shrunk function. `NAPLESPU_FUZZ_SEED=n` runs only that
//! operation.

use naplespu_fuzz::{self as fuzz, operations, seeds};

#[test]
fn operations_on_vectors_do_what_the_evaluator_says() {
    let configs = fuzz::configs().unwrap();
    let all = operations::operations();
    let calls: usize = all.iter().map(|operation| operation.case.calls.len()).sum();
    println!("{} operations, {calls} calls", all.len());
    assert!(calls > 27_000, "{} operations, {calls} calls", all.len());
    let run = |number| match all.get(number as usize) {
        Some(operation) => fuzz::run(operation.case.clone(), &configs, number).map(|_| ()),
        None => Ok(()),
    };
    seeds::check(all.len() as u64, run).unwrap_or_else(|reports| panic!("{reports}"));
}
