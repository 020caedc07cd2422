//! Checks of the passes over loops that do not trust them.
//!
//! A pass that changes a loop hands over what it claims: the conditions that it put in front of the loop, and what they are to guarantee.
//! The check evaluates the scalar loop and the conditions, instruction by instruction on concrete bits ([`eval`]), at the points where a
//! wrong claim shows: at every distance of two accesses at which they meet, every place of an access in its line, and counts and
//! bounds around 0, 2^31 and 2^32. It knows nothing of sums, ranges and trip counts as the passes compute them. It runs in debug builds
//! and with the setting `loop_checker`; a claim that does not hold is an internal error, so nothing wrong is emitted.
//!
//! # What has to hold
//!
//! ## Vectorizer (a check of the compiler, on [`eval`] and [`world`])
//!
//! Of a vector loop that does iterations of a scalar loop, sixteen at a time, if all conditions in front of it hold:
//!
//! - The branch in front of it tests every condition.
//! - The address of each access grows by its stride in every iteration, and the vector loop accesses the same addresses.
//! - Every vector load and store is aligned to the size of its vector, wherever the arrays begin.
//! - No two accesses meet, one of which stores, whose order the vector loop changes. A load whose line an earlier iteration of the vector
//!   loop has loaded counts as done in either; a load that does not move counts as done in front of the loop.
//! - The scalar loop does at least the iterations of the vector loop; if the vector loop may be the end, exactly as many as were counted.
//! - The lanes of a reduction are parts of a sum: nothing but the reduction uses them.
//!
//! ## Versioned loops, unrolled loops, pointers (`effects`)
//!
//! The three passes rewrite a loop in place. From up to four blocks in front of the loop on, with any values for what was computed
//! before, the function has the same effects after the pass as before it: the same stores, calls and accesses that may trap, with the
//! same operands and in the same order, the same trap, the same results.
//!
//! - `guards`: so, where the tests in front of the versioned loop hold, no test that it lacks would have failed in any iteration; no
//!   access is misaligned; a load in front of the loop does not trap where the loop would not have loaded.
//! - `unroll`: so the loop is left in the same iteration, with the same values; a test that a copy lacks would not have left the loop.
//! - `pointers`: so every access has the address that it had, and a test of a pointer leaves the loop in the same iteration.
//!
//! The check runs both functions on concrete bits (`execute`) and compares their effects, as far as a bounded number of steps goes,
//! where variables start near their bounds and near the ends of their types, and, for versioned loops, at the last values at which the
//! tests in front still hold. It is given no trip count, range or address by the passes.

mod effects;
pub mod eval;
mod execute;
pub mod operate;
pub mod world;

use crate::Error;
use crate::loops::NaturalLoop;
use cranelift_codegen::ir::Function;
use effects::{Loads, compare};
use std::fmt;

/// The outcome of a check.
pub type Check = Result<(), Error>;

/// The error for a claim of a pass that does not hold.
pub fn broken(pass: &'static str, at: impl fmt::Display, expected: &'static str) -> Error {
    let stage = match pass {
        "vectorize" => "vectorize checker",
        "guards" => "guards checker",
        "unroll" => "unroll checker",
        "pointers" => "pointers checker",
        _ => "loop checker",
    };
    Error::internal(stage, at, expected)
}

/// Checks that a versioned loop has the effects of the loop that it was.
///
/// # Errors
///
/// [`Error::Internal`] if it has others.
pub fn versioned(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("guards", before, after, lp, Loads::Trapping)
}

/// Checks that an unrolled loop has the effects of the loop that it was.
///
/// # Errors
///
/// [`Error::Internal`] if it has others.
pub fn unrolled(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("unroll", before, after, lp, Loads::All)
}

/// Checks that a loop with pointers has the effects of the loop that it was.
///
/// # Errors
///
/// [`Error::Internal`] if it has others.
pub fn pointers(before: &Function, after: &Function, lp: &NaturalLoop) -> Check {
    compare("pointers", before, after, lp, Loads::All)
}
