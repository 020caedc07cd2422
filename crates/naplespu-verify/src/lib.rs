//! Proves that compiled code does what its CLIF says.
//!
//! # Contract
//!
//! [`prove::prove`] compiles a function, decodes the bytes again, executes both on terms of bit vectors, and shows for all
//! inputs that results, memory, traps and what callers count on are the same. The answer ([`answer::Answer`]) is that it is proved, that it is refuted, with an
//! input for which the simulator does something else, or why neither was shown. Nothing panics on any function.
//!
//! Nothing of this crate is part of the compiler. `docs/prove.md` has what a proof covers and assumes.
//!
//! # Structure
//!
//! | module | |
//! |---|---|
//! | [`term`] | terms in a normal form, their values, their text for a solver |
//! | [`clif`] | the meaning of CLIF |
//! | [`machine`] | the meaning of code; that of an instruction is `npu_mc::semantics` |
//! | [`memory`], [`path`] | what both are made of |
//! | `abi`, `goals` | the calling convention, and what has to be shown |
//! | `sweep`, [`solver`] | equal terms from the operands up, and the solver |
//! | `confirm` | examples on the simulator |
//! | [`prove`], [`answer`], [`cache`] | one function |
//! | [`generate`] | random functions to measure the prover on |

#![deny(missing_docs)]

mod abi;
pub mod answer;
pub mod cache;
pub mod clif;
mod confirm;
mod floats;
pub mod generate;
mod goals;
pub mod interpret;
pub mod machine;
pub mod memory;
pub mod path;
pub mod prove;
pub mod solver;
mod sweep;
pub mod term;
