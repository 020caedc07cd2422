//! Compares compiled functions with the evaluator, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`. The first byte chooses the strategy.

#![no_main]

use naplespu_fuzz::{Strategy, exercise};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let strategies = [Strategy::Scalars, Strategy::Vectors, Strategy::Loops];
    exercise(strategies[usize::from(first % 3)], rest);
});
