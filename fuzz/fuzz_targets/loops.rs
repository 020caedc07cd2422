//! Compares loops over memory with the evaluator, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/differential.rs`.

#![no_main]

use naplespu_fuzz::{Strategy, exercise};

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise(Strategy::Loops, data));
