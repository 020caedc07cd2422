//! Random CLIF on vectors against `cranelift-interpreter`, lane by lane.
//!
//! The functions are compiled at both optimization levels with both register allocators and run on
//! the simulator.
//!
//! A failure prints its seed and both forms of the function. `NAPLESPU_FUZZ_SEED=n` runs only that
//! seed. `NAPLESPU_FUZZ_CASES=n` runs n cases instead of 1,500, counted from seed 0.

use naplespu_fuzz::{self as fuzz, seeds};

#[test]
fn differential_vectors() {
    let configs = fuzz::configs().unwrap();
    let run = |programs: &fuzz::Programs, seed| fuzz::lanes::run(&fuzz::bytes(seed), programs);
    seeds::check(1500, || fuzz::Programs::new(&configs), run).unwrap_or_else(|reports| panic!("{reports}"));
}

/// The generated functions are valid in both forms.
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
