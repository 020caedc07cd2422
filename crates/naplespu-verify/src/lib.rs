//! Proves that compiled code behaves like its CLIF.
//!
//! # Contract
//!
//! [`prove::prove`] compiles a function, decodes the bytes, and executes code and CLIF symbolically
//! on bit-vector terms. For all inputs, it proves that results, memory, traps and the guarantees of
//! the calling convention agree. The answer ([`answer::Answer`]) is one of three: proved; refuted,
//! with an input for which the simulator deviates; or undecided, with a reason. No function causes
//! a panic.
//!
//! This crate is not part of the compiler. `docs/prove.md` states the coverage and the assumptions
//! of a proof.
//!
//! # Structure
//!
//! | module | contents |
//! |---|---|
//! | [`term`] | terms in normal form, their evaluation, their text for a solver |
//! | [`clif`] | the semantics of CLIF |
//! | [`machine`] | the semantics of code; `npu_mc::semantics` has that of an instruction |
//! | [`memory`], [`path`] | parts of both states |
//! | `abi`, `goals` | the calling convention and the goals of a proof |
//! | `sweep`, [`solver`] | the search for equal terms, and the solver |
//! | `confirm` | counterexamples on the simulator |
//! | [`prove`], [`answer`], [`cache`] | the proof of one function |
//! | [`rules`] | proofs of the lowering rules; the program `naplespu-verify rules` runs them |
//! | [`generate`] | random functions to measure the prover |

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
pub mod rules;
pub mod solver;
mod sweep;
pub mod term;
