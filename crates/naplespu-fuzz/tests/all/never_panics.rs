//! Random functions over all opcodes and types of CLIF: each is compiled or refused, without a
//! panic.
//!
//! The test uses both optimization levels, both register allocators and both values of each target
//! setting.

use naplespu_fuzz::Strategy;
use naplespu_reader::panics::silence_caught;

#[test]
fn never_panics() {
    // The generator queries Cranelift for types that it cannot compute; Cranelift panics, and the
    // generator catches the panic.
    silence_caught();
    let all = super::hold(Strategy::Anything, 15_000);
    let refused = all.iter().filter(|seen| seen.refused > 0).count();
    let (count, compiled) = (all.len(), all.len() - refused);
    let counts = format!("{compiled} compiled, {refused} refused");
    println!("{counts}");
    // The test is meaningless if nearly all functions are refused.
    assert!(count < 100 || compiled > count / 5 && refused > count / 10, "{counts}");
}
