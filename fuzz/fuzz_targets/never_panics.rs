//! Checks that every valid function is compiled or refused, without a limit of cases: the body of
//! `crates/naplespu-fuzz/tests/all/never_panics.rs`.

#![no_main]

use naplespu_fuzz::{Strategy, exercise};

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise(Strategy::Anything, data));
