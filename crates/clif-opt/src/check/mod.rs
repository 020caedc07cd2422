//! An independent checker of the passes over loops.
//!
//! A pass that changes a loop states its claims: the conditions before the loop, and their
//! guarantees. The checker evaluates the scalar loop and the conditions on concrete bits
//! ([`eval`]), at the points at which a wrong claim is visible: all distances at which two accesses
//! overlap, all positions of an access in its cache line, and trip counts and bounds near 0, 2^31
//! and 2^32. It does not use the sums, ranges and trip counts of the passes. It runs in debug
//! builds and with the setting `loop_checker`. A wrong claim is an internal error, so that no wrong
//! code is emitted.
//!
//! # Conditions
//!
//! ## Vectorizer (checked in the compiler, with [`eval`] and [`loop_state`])
//!
//! A vector loop executes iterations of a scalar loop, sixteen at a time, if all conditions before
//! it hold. The checker requires:
//!
//! - The branch before the loop tests every condition.
//! - The address of each access grows by its stride in every iteration, and the vector loop
//!   accesses the same addresses.
//! - Every vector load and store is aligned to the size of its vector for every address of the
//!   arrays.
//! - The vector loop does not reorder overlapping accesses if one of them is a store. A load whose
//!   cache line was loaded in an earlier vector iteration counts as executed there. A
//!   loop-invariant load counts as executed before the loop.
//! - The scalar loop executes at least the iterations of the vector loop. If the scalar loop may be
//!   skipped, the numbers are equal.
//! - The lanes of a reduction are partial sums: only the reduction uses them.
//!
//! ## Loop versioning, unrolling, strength reduction (`effects`)
//!
//! These passes rewrite a loop in place. The check compares runs that start up to four blocks
//! before the loop, with arbitrary values for everything computed earlier. Both functions must have
//! the same effects: the same stores, calls and accesses that may trap, with the same operands and
//! in the same order, the same trap, and the same results. This implies:
//!
//! - `versioning`: If the tests before the loop hold, no omitted guard would have failed in any
//!   iteration, no access is misaligned, and a load before the loop does not trap where the
//!   original loop does not load.
//! - `unroll`: The loop exits in the same iteration with the same values; an omitted exit test
//!   would not have left the loop.
//! - `strength_reduction`: Every access has the same address, and the loop exits in the same
//!   iteration if a pointer replaces the variable in the exit test.
//!
//! The check runs both functions on concrete bits (`execute`) and compares their effects for a
//! bounded number of steps. Variables start near their bounds and near the limits of their types;
//! for versioned loops, including the last values at which the tests before the loop hold. The
//! passes supply no trip count, range or address.

mod effects;
pub mod eval;
mod execute;
pub mod loop_state;
pub mod operate;
mod value_table;

use crate::Error;
use crate::loops::NaturalLoop;
use cranelift_codegen::ir::Function;
use effects::{Loads, compare};
use std::fmt;

/// The result of a check.
pub type Check = Result<(), Error>;

/// Returns the error for a wrong claim of a pass.
pub fn broken(pass: &'static str, at: impl fmt::Display, expected: &'static str) -> Error {
    let stage = match pass {
        "vectorize" => "vectorize checker",
        "versioning" => "versioning checker",
        "unroll" => "unroll checker",
        "strength_reduction" => "strength_reduction checker",
        _ => "loop checker",
    };
    Error::internal(stage, at, expected)
}

/// Checks that a versioned loop has the same effects as before.
///
/// # Errors
///
/// [`Error::Internal`] if the effects differ.
pub fn versioned(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("versioning", before, after, lp, Loads::Trapping)
}

/// Checks that an unrolled loop has the same effects as before.
///
/// # Errors
///
/// [`Error::Internal`] if the effects differ.
pub fn unrolled(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("unroll", before, after, lp, Loads::All)
}

/// Checks that a loop after strength reduction has the same effects as before.
///
/// # Errors
///
/// [`Error::Internal`] if the effects differ.
pub fn strength_reduced(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("strength_reduction", before, after, lp, Loads::All)
}
