//! Random scalar CLIF against `cranelift-interpreter`.
//!
//! The functions are compiled at both optimization levels with both register allocators and run on
//! the simulator.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of 2,000, counted from seed 0.

use naplespu_fuzz::{self as fuzz, seeds};

/// The generated functions are valid and end, and most calls return.
#[test]
fn generator() {
    let (mut returned, mut trapped, mut endless) = (0, 0, 0);
    for seed in 0..1000 {
        let data = fuzz::bytes(seed);
        let case = fuzz::generate(&mut arbitrary::Unstructured::new(&data)).unwrap();
        let outcomes = fuzz::expected(&case).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", case.text(true)));
        for (_, outcome) in outcomes {
            match outcome {
                Some(fuzz::Outcome::Results(_)) => returned += 1,
                Some(fuzz::Outcome::Trap(_)) => trapped += 1,
                None => endless += 1,
            }
        }
    }
    assert!(
        returned > 1500 && trapped > 30 && endless < 50,
        "{returned} returned, {trapped} trapped, {endless} endless"
    );
}

#[test]
fn differential() {
    let configs = fuzz::configs().unwrap();
    let run = |programs: &fuzz::Programs, seed| fuzz::run(&fuzz::bytes(seed), programs);
    seeds::check(2000, || fuzz::Programs::new(&configs), run).unwrap_or_else(|reports| panic!("{reports}"));
}
