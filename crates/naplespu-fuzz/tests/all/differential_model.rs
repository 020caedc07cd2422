//! Random CLIF on words, floats and vectors against a model that computes lane by lane.
//!
//! The functions contain calls, intrinsics and uses of the lane mask. Floats use the machine's
//! arithmetic or IEEE 754.
//!
//! A failure prints its seed and the functions. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of 1,000, counted from seed 0.

use naplespu_fuzz::{self as fuzz, model, seeds};

#[test]
fn differential_model() {
    let configs = model::configs().unwrap();
    let run = |programs: &fuzz::Programs, seed| model::run(&fuzz::bytes(seed), programs);
    seeds::check(1000, || fuzz::Programs::new(&configs), run).unwrap_or_else(|reports| panic!("{reports}"));
}

/// The generated functions are valid and cover all features of the generator.
#[test]
fn generator() {
    let mut all = String::new();
    for seed in 0..300 {
        let data = fuzz::bytes(seed);
        let text = model::generate(&mut arbitrary::Unstructured::new(&data))
            .unwrap()
            .text();
        cranelift_reader::parse_functions(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        all += &text;
    }
    for what in [
        "= fadd",
        "= fma ",
        "= sqrt",
        "= fcvt_from_uint.f32x16",
        "= fcvt_to_sint_sat.i32x16",
        "= shuffle",
        "= swizzle",
        "= extractlane",
        "= insertlane",
        "= call fn1(",
        "= call fn100(",
        "    call fn120(",
        "brif",
        "icmp ult",
        " -> i32, f32 {",
        "= fcmp",
        "= vall_true",
        "= bitselect",
        "= select",
    ] {
        assert!(all.contains(what), "never `{what}`");
    }
}
