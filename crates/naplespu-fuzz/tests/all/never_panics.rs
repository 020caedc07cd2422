//! Random functions over all opcodes and types of CLIF: each is compiled or refused, without a
//! panic.
//!
//! The test uses both optimization levels, both register allocators and both values of each target
//! setting.
//!
//! A failure prints its seed and the reduced function. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` changes the number of cases, counted from seed 0.

use naplespu_fuzz::{self as fuzz, compiles, seeds};
use naplespu_reader::panics::silence_caught;

#[test]
fn never_panics() {
    // The generator queries Cranelift for types that it cannot compute; Cranelift panics, and the
    // generator catches the panic.
    silence_caught();
    let configs = compiles::configs().unwrap();
    let all = seeds::check(20_000, |seed| compiles::run(&fuzz::bytes(seed), &configs));
    let all = all.unwrap_or_else(|reports| panic!("{reports}"));
    let count_of = |verdict| all.iter().filter(|found| **found == verdict).count();
    let (compiled, refused) = (
        count_of(compiles::Verdict::Compiled),
        count_of(compiles::Verdict::Refused),
    );
    println!("{compiled} compiled, {refused} refused");
    // The test is meaningless if nearly all functions are refused or invalid.
    let count = all.len();
    assert!(
        count < 100 || compiled > count / 5 && refused > count / 10,
        "{compiled} compiled, {refused} refused of {count}"
    );
}
