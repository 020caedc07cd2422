//! Random CLIF on vectors, compiled at both optimization levels with both register allocators and run on the simulator,
//! against `cranelift-interpreter` lane by lane.
//!
//! A failure prints its seed and both forms of the function. `NAPLESPU_FUZZ_SEED=n` runs that seed alone;
//! `NAPLESPU_FUZZ_CASES=n` runs more or fewer than 1,500 cases, counted from seed 0.

use naplespu_fuzz as fuzz;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn differential_vectors() {
    let configs = fuzz::configs().unwrap();
    let programs = fuzz::Programs::new(&configs);
    let seeds = match number("NAPLESPU_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NAPLESPU_FUZZ_CASES").unwrap_or(1500),
    };
    let mut failures = Vec::new();
    for seed in seeds {
        if let Err(report) = fuzz::lanes::run(&fuzz::bytes(seed), &programs) {
            failures.push(format!("NAPLESPU_FUZZ_SEED={seed}: {report}"));
            // A few reports say enough.
            if failures.len() == 3 {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What the generator makes is valid in both forms.
#[test]
fn generator() {
    for seed in 0..300 {
        let data = fuzz::bytes(seed);
        let case = fuzz::lanes::generate(&mut arbitrary::Unstructured::new(&data)).unwrap();
        for text in [&case.vectors, &case.scalars] {
            cranelift_reader::parse_functions(text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        }
    }
}
