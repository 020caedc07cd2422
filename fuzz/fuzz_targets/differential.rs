//! Compares compiled functions with the evaluator, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`. The first byte chooses scalars or vectors.

#![no_main]

use naplespu_fuzz::{Strategy, exercise};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let strategy = if first % 2 == 0 { Strategy::Scalars } else { Strategy::Vectors };
    exercise(strategy, rest);
});
