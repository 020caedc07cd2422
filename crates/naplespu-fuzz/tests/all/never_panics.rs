//! Random functions over all opcodes and types of CLIF: each is compiled or refused, at both optimization levels with
//! both register allocators and all settings of the target both ways; nothing panics, and nothing else goes wrong in the compiler.
//!
//! A failure prints its seed and the reduced function. `NAPLESPU_FUZZ_SEED=n` runs that seed alone;
//! `NAPLESPU_FUZZ_CASES=n` runs more or fewer cases than usual, counted from seed 0.

use naplespu_fuzz::{self as fuzz, compiles, seeds};

#[test]
fn never_panics() {
    // The generator asks Cranelift for types that it cannot compute, and it panics.
    super::silence_caught_panics();
    let configs = compiles::configs().unwrap();
    let all = seeds::check(20_000, || (), |(), seed| compiles::run(&fuzz::bytes(seed), &configs));
    let all = all.unwrap_or_else(|reports| panic!("{reports}"));
    let count_of = |verdict| all.iter().filter(|found| **found == verdict).count();
    let (compiled, refused) = (
        count_of(compiles::Verdict::Compiled),
        count_of(compiles::Verdict::Refused),
    );
    println!("{compiled} compiled, {refused} refused");
    // Functions that are all refused, or never valid, would say nothing.
    let count = all.len();
    assert!(
        count < 100 || compiled > count / 5 && refused > count / 10,
        "{compiled} compiled, {refused} refused of {count}"
    );
}
