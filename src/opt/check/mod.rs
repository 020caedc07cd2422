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
//! ## Vectorizer ([`vectorize`])
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

mod eval;
pub mod vectorize;
mod world;

use crate::error::CompileError;
use crate::isa::Isa;
use std::fmt;

/// The outcome of a check.
pub type Check = Result<(), CompileError>;

/// Whether passes are checked: in debug builds, or if the setting `loop_checker` says so.
pub fn is_wanted(isa: &Isa) -> bool {
    cfg!(debug_assertions) || isa.settings().loop_checker
}

/// The error for a claim of a pass that does not hold.
fn broken(pass: &'static str, at: impl fmt::Display, expected: &'static str) -> CompileError {
    let stage = match pass {
        "vectorize" => "vectorize checker",
        _ => "loop checker",
    };
    CompileError::internal(stage, at, expected)
}
