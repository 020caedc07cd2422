//! Random counted loops over arrays, vectorized where possible, against `cranelift-interpreter`.
//!
//! A failure prints its seed and the function. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of 400, counted from seed 0.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::remarks::LoopOutcome;
use naplespu_fuzz::{self as fuzz, seeds};

/// Returns the settings under which loops are vectorized.
fn configs() -> Vec<fuzz::Config> {
    let all = fuzz::configs().unwrap().into_iter();
    all.filter(|(name, _)| name.contains("opt_level=speed")).collect()
}

#[test]
fn differential_arrays() {
    let configs = configs();
    let run = |programs: &fuzz::Programs, seed| fuzz::arrays::run(&fuzz::bytes(seed), programs);
    seeds::check(400, || fuzz::Programs::new(&configs), run).unwrap_or_else(|reports| panic!("{reports}"));
}

/// Many of the loops are vectorized, by all methods of the vectorizer.
#[test]
fn generator() {
    let (_, isa) = configs().remove(0);
    let (mut vectorised, mut checked, mut unaligned, mut reductions) = (0, 0, 0, 0);
    for seed in 0..300 {
        let data = fuzz::bytes(seed);
        let case = fuzz::arrays::generate(&mut arbitrary::Unstructured::new(&data)).unwrap();
        let functions = cranelift_reader::parse_functions(&case.text).unwrap();
        let mut ctx = Context::for_function(functions[0].clone());
        let code = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
        for remark in &code.loops {
            if let LoopOutcome::Vectorised(how) = &remark.outcome {
                vectorised += 1;
                checked += usize::from(how.overlap_checks > 0 && how.alignment_check);
                unaligned += usize::from(how.unaligned_loads > 0);
                reductions += how.reductions;
            }
        }
    }
    assert!(
        vectorised > 80 && checked > 30 && unaligned > 10 && reductions > 20,
        "{vectorised} loops: {checked} with checks, {unaligned} with unaligned loads, {reductions} reductions"
    );
}
