//! Random scalar CLIF, compiled at both optimization levels with both register allocators and run on the simulator,
//! against `cranelift-interpreter`.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs that seed alone;
//! `NAPLESPU_FUZZ_CASES=n` runs more or fewer than 2,000 cases, counted from seed 0.

use naplespu_fuzz::{self as fuzz, seeds};

/// What the generator makes is valid, ends, and mostly returns.
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
