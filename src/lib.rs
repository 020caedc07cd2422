//! A compiler back end for the NaplesPU (NPU), a GPU-like many-core processor. It follows
//! Cranelift's structure, but is outside Cranelift's source tree.
//!
//! # Contract
//!
//! The input is a function in CLIF, and the output machine code ([`Isa::compile`], [`Compiler`]) or
//! an error with the reason ([`CompileError`]). Valid CLIF is either compiled, or refused with the
//! name of the construct. The compiler never panics.
//!
//! ```
//! use cranelift_codegen::{Context, control::ControlPlane, settings};
//!
//! let functions = cranelift_reader::parse_functions(
//!     "function %add(i32, i32) -> i32 { block0(v0: i32, v1: i32): v2 = iadd v0, v1  return v2 }",
//! )?;
//! let flags = settings::Flags::new(settings::builder());
//! let isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(flags)?;
//! let mut ctx = Context::for_function(functions[0].clone());
//! let code = isa.compile(&mut ctx, &mut ControlPlane::default())?;
//! assert_eq!(code.asm(None), "block0: ; offset 0x0\n  add_i32 s0, s0, s1\n  jret\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The pipeline, in reading order
//!
//! | module | task |
//! |---|---|
//! | `compiler` | [`Compiler`], which reuses its memory from one function to the next |
//! | `compile` | the pipeline |
//! | [`legalize`] | legalization by opcode and type |
//! | `validate` | refusals |
//! | `opt` | passes on CLIF: Cranelift's, and those of this back end |
//! | `lower` | CLIF to VCode by ISLE rules |
//! | `regalloc` | register allocation with regalloc2 |
//! | `frame` | the stack frame |
//! | `post_ra` | post-RA passes on machine instructions: copies, masks, scheduling, branches |
//! | `encode` | bytes, relocations, debug information |
//! | [`unwind`] | unwind information for each instruction, from the bytes of a function |
//!
//! Other modules: [`cache`] (interface for caches of compiled functions), [`isa`] (builder),
//! [`settings`], [`abi`] (calling convention), `inst` (machine instructions of the VCode), `vcode`,
//! [`runtime`] (routines for operations without an instruction), [`shape`] (registers of each CLIF
//! type), `cost` (cost of CLIF instructions), [`intrinsics`], [`timing`].
//!
//! # Other crates
//!
//! This crate contains only the compiler. `clif-opt` contains the machine-independent passes, and
//! `naplespu-runtime` the routines in CLIF. `naplespu-jit` runs compiled code on the simulator as a
//! module of Cranelift, and `naplespu-reader` reads CLIF files with their header lines.
//! `naplespu-filetests` and `naplespu-fuzz` test the compiler, and `naplespu-tools` contains
//! `clif-util`.
//!
//! # Limits
//!
//! All CLIF types are supported: integers of 8 to 128 bits, floats of 16 to 128 bits, and vectors
//! of these, including dynamic vectors. `docs/clif-support.md` lists every instruction on every
//! type, and the few refusals.

#![deny(missing_docs)]

extern crate alloc;

pub mod abi;
pub mod cache;
pub mod code;
mod compile;
mod compiler;
mod cost;
mod encode;
pub mod error;
#[cfg(feature = "explain")]
pub mod explain;
mod explaining;
mod frame;
pub mod inlining;
mod inst;
pub mod intrinsics;
pub mod isa;
pub mod legalize;
mod list_sched;
mod lower;
mod opt;
pub mod passes;
mod post_ra;
mod provenance;
mod regalloc;
pub mod remarks;
mod routine;
#[cfg(feature = "rule-switches")]
pub mod rule_switches;
pub mod runtime;
mod serialize;
pub mod settings;
pub mod shape;
mod spaces;
pub mod timing;
pub mod unwind;
mod validate;
mod vcode;

pub use cache::{CacheKey, CodeCache};
pub use code::CompiledCode;
pub use compiler::Compiler;
pub use error::{CompileError, Refusal};
pub use isa::{Builder, Isa, LookupError, Triple};
pub use opt::verify_function;
pub use passes::{Pass, Stage, StageRequest};
pub use serialize::NotCode;

/// Internals for the project's own tests. Not part of the interface; may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::opt::run as optimize;
    pub use crate::passes::Recorder;
    pub use crate::post_ra::func::MachFunction;
    pub use crate::post_ra::run_pass;
    pub use crate::post_ra::text::parse as parse_function;
    pub use crate::validate::refuses;
}
