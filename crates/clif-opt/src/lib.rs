//! Passes over CLIF that depend on no machine, for compilers outside Cranelift's tree.
//!
//! # Contract
//!
//! A pass is a module with a function `run`. It takes valid CLIF and leaves valid CLIF with the
//! same meaning. It returns whether anything changed. Passes get costs, memories and immediates
//! from a [`Target`]. The compiler chooses the passes that run and their order. Passes are
//! deterministic.
//!
//! An [`Error`] is a fault of a pass or of Cranelift, never of the function.
//!
//! # Modules
//!
//! | module | task |
//! |---|---|
//! | [`loops`] | natural loops, induction variables, trip counts, ranges of values |
//! | [`linear`] | linear sums: values with constant factors, and a constant |
//! | [`access`] | addresses of loads and stores |
//! | [`edit`] | changes of branches, copies of blocks |
//! | [`handlers`] | addresses of exception handlers while blocks change |
//! | [`clean`](mod@clean), [`merge`] | removal of unreachable code and constant block parameters, merging of blocks |
//! | [`redundant_params`], [`dead_params`] | removal of block parameters |
//! | [`facts`] | upper bounds and alignment of integers |
//! | [`compares`], [`bits`] | compares of f32 with constants, simplifications by upper bounds |
//! | [`inline`] | inlining of calls between the functions of a unit |
//! | [`versioning`] | loop versioning: moves checks out of loop nests |
//! | [`reassociation`] | reassociation of sums in addresses |
//! | [`selects`] | selects as arithmetic |
//! | [`unroll`], [`simplify`] | unrolling, and simplification of the copies |
//! | [`licm`] | loop-invariant code motion of what Cranelift leaves in loops |
//! | [`strength_reduction`] | strength reduction of addresses |
//! | [`iv_increments`], [`loop_exits`] | moves increments to latches, and moves of arguments out of loops |
//! | [`check`] | compares loops before and after a pass on concrete bits |

#![deny(missing_docs)]

pub mod access;
pub mod bits;
pub mod check;
pub mod clean;
pub mod compares;
pub mod dead_params;
pub mod edit;
pub mod facts;
pub mod handlers;
pub mod inline;
pub mod iv_increments;
pub mod licm;
pub mod linear;
pub mod loop_exits;
pub mod loops;
pub mod merge;
pub mod reassociation;
pub mod redundant_params;
pub mod selects;
pub mod simplify;
#[cfg(test)]
mod straight_line;
pub mod strength_reduction;
#[cfg(test)]
mod test_target;
pub mod unroll;
pub mod versioning;

use cranelift_codegen::ir::{Function, Inst, MemFlags};
use cranelift_codegen::settings::Flags;
use std::fmt;
use std::ops::RangeInclusive;

/// The machine and the settings of a compilation, as far as passes depend on them.
pub trait Target {
    /// Returns Cranelift's flags.
    fn flags(&self) -> &Flags;

    /// Returns whether the results of loop passes are checked (see [`check`]).
    fn checks_loops(&self) -> bool;

    /// Estimates the number of machine instructions for a CLIF instruction. Returns `None` for
    /// calls and for instructions that are lowered to calls.
    fn instructions(&self, func: &Function, inst: Inst) -> Option<u32>;

    /// Returns whether a function changes state of the machine that each function has of its own, so
    /// that calls save it: no call in it can be inlined, and no call of it.
    fn has_own_state(&self, func: &Function) -> bool;

    /// Returns whether a call is lowered to one machine instruction.
    fn is_instruction(&self, func: &Function, inst: Inst) -> bool;

    /// Returns the number, below [`MEMORIES`], of the memory that an access with these flags uses.
    fn memory(&self, func: &Function, flags: MemFlags) -> usize;

    /// Returns the offsets in bytes that the addressing mode of a word access can encode.
    fn offsets(&self) -> RangeInclusive<i32>;

    /// Returns the integers that fit the immediate operand of an integer operation.
    fn immediates(&self) -> RangeInclusive<i32>;
}

/// The version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The maximum number of memories (separate address spaces) of a machine.
pub const MEMORIES: usize = 2;

/// A fault of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A pass of Cranelift failed.
    Cranelift(String),
    /// An invariant is broken.
    Internal {
        /// The pass that detected the fault.
        pass: &'static str,
        /// The instruction, value or block at fault, as text.
        at: String,
        /// The expected state.
        expected: &'static str,
    },
}

impl Error {
    /// Creates an [`Error::Internal`].
    pub fn internal(pass: &'static str, at: impl fmt::Display, expected: &'static str) -> Self {
        Self::Internal {
            pass,
            at: at.to_string(),
            expected,
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cranelift(what) => f.write_str(what),
            Self::Internal { pass, at, expected } => write!(f, "{pass} at `{at}`: expected {expected}"),
        }
    }
}
