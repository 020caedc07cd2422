//! Filetests: `.clif` files that say what to do with their functions and what has to come out.
//!
//! # Contract
//!
//! A file starts with `test`, `set` and `target` lines, as in Cranelift's filetests; comments hold the expectations.
//! [`file::test`] takes a file through all its subtests and gives a [`FileOutcome`]: a verdict for each function, each run line
//! and the file, and all failures as [`Diagnostic`](naplespu_reader::Diagnostic)s. [`runner`] does so for whole folders, on several threads, with the
//! results in the order of the files.
//!
//! | subtest | checks |
//! |---|---|
//! | `cat` | CLIF printed again |
//! | `print-cfg` | the control-flow graph |
//! | `verifier` | the verifier's errors against `; error:` comments |
//! | `optimize [STAGE] [precise-output]` | CLIF after optimization, or after one of its passes |
//! | `compile [precise-output] [expect-fail]` | assembly text |
//! | `disasm [precise-output]` | disassembly: offsets, bytes, text, relocations, traps |
//! | `run [single]` | run lines, compiled and simulated |
//! | `interpret` | run lines in `cranelift-interpreter` |
//!
//! Text is checked by the filecheck directives of Cranelift (`check:`, `nextln:`, `sameln:`, `not:`, `unordered:`, `regex:`), or,
//! with `precise-output`, as a whole. `test run` tries both values of `opt_level` and both of `regalloc_algorithm`, with the
//! checker of the register allocator on, unless the file sets them or says `single`.
//!
//! # Limits
//!
//! - Run lines know the types of `cranelift-reader`'s, and vectors of more than 128 bits as lists of their lanes. The interpreter
//!   has no values for these, so it refuses them.
//! - `feature` lines are read and ignored when a target is forced; otherwise they matter only in files for other machines.
//!
//! # Invariants
//!
//! - No file panics, hangs or takes the process down: panics of the code under test are failures that say whose code it was
//!   ([`FileOutcome::panics`]), run lines have a limit on their instructions, entity numbers and stacks are bounded.
//! - The panic hook of the process stays as it is; see [`naplespu_reader::panics::hook`].
//! - The text given to `cranelift-reader` has the same offsets as the file, so that every place shown is one in the file.

#![deny(missing_docs)]

pub mod checks;
pub mod expect;
pub mod file;
pub mod interpret;
pub mod lanes;
pub mod lines;
pub mod outcome;
pub mod runner;
pub mod subtest;
pub mod verify;

pub use file::Options;
pub use outcome::{FileOutcome, Summary, Tally, Verdict};
