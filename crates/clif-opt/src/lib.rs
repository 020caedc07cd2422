//! Passes over CLIF that depend on no machine, for compilers outside Cranelift's tree.
//!
//! # Contract
//!
//! A pass is a module with a function `run`. It takes valid CLIF and leaves valid CLIF with the same meaning. Its result is whether anything changed. A pass
//! asks a [`Target`] for costs, memories and immediates. The compiler chooses the order of the passes, and which of them run. The same function always
//! gives the same result.
//!
//! An [`Error`] is a fault of a pass or of Cranelift, never of the function.
//!
//! # Modules
//!
//! | module | what it does |
//! |---|---|
//! | [`loops`] | natural loops, induction variables, trip counts, ranges of values |
//! | [`linear`] | sums of values with constant factors |
//! | [`edit`] | changes branches, copies blocks |
//! | [`handlers`] | keeps the addresses of exception handlers right while blocks change |
//! | [`clean`](mod@clean), [`merge`], [`phis`] | unreachable code, constant block parameters, blocks in a row |
//! | [`compares`], [`bits`] | compares of f32 with constants, known bits |
//! | [`guards`] | loop versioning: checks leave a loop nest |
//! | [`addresses`] | reassociation of sums in addresses |
//! | [`selects`] | selects as arithmetic |
//! | [`unroll`], [`simplify`] | unrolling, and simplification of the copies |
//! | [`licm`], [`pointers`], [`params`], [`increments`], [`exits`] | what remains in loops: invariant sums, strength reduction of addresses, block parameters |
//! | [`check`] | compares loops before and after a pass on concrete bits |

#![deny(missing_docs)]

pub mod addresses;
pub mod bits;
pub mod check;
pub mod clean;
pub mod compares;
pub mod edit;
pub mod exits;
pub mod guards;
pub mod handlers;
pub mod increments;
pub mod licm;
pub mod linear;
pub mod loops;
pub mod merge;
pub mod params;
pub mod phis;
#[cfg(test)]
mod plain;
pub mod pointers;
pub mod selects;
pub mod simplify;
#[cfg(test)]
mod straight;
pub mod unroll;

use cranelift_codegen::ir::{Function, Inst, MemFlags};
use cranelift_codegen::settings::Flags;
use std::fmt;
use std::ops::RangeInclusive;

/// The machine and the settings of a compilation, as far as passes depend on them.
pub trait Target {
    /// Cranelift's flags.
    fn flags(&self) -> &Flags;

    /// Whether the passes over loops are checked (see [`check`]).
    fn checks_loops(&self) -> bool;

    /// About how many machine instructions a CLIF instruction becomes; `None` if it calls a function or becomes a call.
    fn instructions(&self, func: &Function, inst: Inst) -> Option<u32>;

    /// Whether a call is an instruction of the machine.
    fn is_instruction(&self, func: &Function, inst: Inst) -> bool;

    /// The number of the memory that an access is to, below [`MEMORIES`].
    fn memory(&self, func: &Function, flags: MemFlags) -> usize;

    /// Offsets that an access to a word takes beside a register, in bytes.
    fn offsets(&self) -> RangeInclusive<i32>;

    /// Numbers that an integer operation takes as an immediate.
    fn immediates(&self) -> RangeInclusive<i32>;
}

/// The version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The most memories that a machine has, each with addresses of its own.
pub const MEMORIES: usize = 2;

/// A fault of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A pass of Cranelift failed.
    Cranelift(String),
    /// An invariant is broken.
    Internal {
        /// The pass that noticed.
        pass: &'static str,
        /// The instruction, value or block at fault, as text.
        at: String,
        /// What should have been there.
        expected: &'static str,
    },
}

impl Error {
    /// A broken invariant: in which pass, where, and what was expected.
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
