//! Filetests: `.clif` files with tests of their functions and expected results.
//!
//! # Contract
//!
//! A file starts with `test`, `set` and `target` lines, as in Cranelift's filetests; comments
//! contain the expectations. [`file::test`] runs all subtests of a file and returns a
//! [`FileOutcome`]: a verdict for each function, each run line and the file, and all failures as
//! [`Diagnostic`](naplespu_reader::Diagnostic)s. [`runner`] tests whole folders on several threads
//! and returns the results in the order of the files. [`reduce`] makes files that fail smaller.
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
//! Text is checked by Cranelift's filecheck directives (`check:`, `nextln:`, `sameln:`, `not:`,
//! `unordered:`, `regex:`) or, with `precise-output`, as a whole. `test run` uses both values of
//! `opt_level` and both of `regalloc_algorithm`, with the checker of the register allocator on,
//! unless the file sets them or has the option `single`.
//!
//! # Limits
//!
//! - Run lines support the types of `cranelift-reader`, and vectors of more than 128 bits as lists
//!   of lanes. The interpreter cannot represent these vectors and refuses them.
//! - `feature` lines are ignored when a target is forced; otherwise they matter only in files for
//!   other machines.
//!
//! # Invariants
//!
//! - No file panics, hangs or crashes the process. Panics of the code under test are failures that
//!   name the component ([`FileOutcome::panics`]), run lines have an instruction limit, and entity
//!   numbers and stacks are bounded.
//! - The panic hook of the process is not changed; see [`naplespu_reader::panics::hook`].
//! - The text for `cranelift-reader` has the same offsets as the file, so that reported positions
//!   are positions in the file.

#![deny(missing_docs)]

pub mod checks;
pub mod expect;
pub mod file;
pub mod interpret;
pub mod lanes;
pub mod lines;
pub mod outcome;
pub mod reduce;
pub mod runner;
pub mod subtest;
pub mod verify;

pub use file::Options;
pub use outcome::{FileOutcome, Summary, Tally, Verdict};
