//! Random CLIF on words, floats and vectors with calls, intrinsics and the lane mask, against a model that computes lane by lane, with
//! the machine's own floats and with those of IEEE 754.
//!
//! A failure prints its seed and the functions. `NAPLESPU_FUZZ_SEED=n` runs that seed alone; `NAPLESPU_FUZZ_CASES=n` runs more
//! or fewer than 1,000 cases, counted from seed 0.

use naplespu_fuzz::{self as fuzz, model};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn differential_model() {
    let programs = fuzz::Programs::new(&model::configs().unwrap());
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(1000),
    };
    let mut failures = Vec::new();
    for seed in seeds {
        if let Err(report) = model::run(&fuzz::bytes(seed), &programs) {
            failures.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
            // A few reports say enough.
            if failures.len() == 3 {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What the generator makes is valid, and has everything in it.
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
