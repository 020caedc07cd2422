//! A compiler back end for the NaplesPU (NPU), a GPU-like many-core, in Cranelift's style and outside Cranelift's tree.
//!
//! # Contract
//!
//! A function in CLIF goes in, machine code comes out ([`Isa::compile`], [`Compiler`]), or an error that says why not
//! ([`CompileError`]). Valid CLIF is compiled or refused by name; nothing panics.
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
//! # The pipeline, in the order of reading
//!
//! | module | what it does |
//! |---|---|
//! | `compiler` | [`Compiler`], which keeps its memory from one function to the next |
//! | `compile` | the pipeline on one page |
//! | [`legalize`] | what becomes of each CLIF instruction on each type |
//! | `validate` | what this target refuses |
//! | `opt` | passes on CLIF: Cranelift's, and those of this back end |
//! | `lower` | CLIF to VCode by ISLE rules |
//! | `regalloc` | regalloc2 over the VCode |
//! | `frame` | the stack frame |
//! | `finish` | machine instructions: copies, masks, order, branches |
//! | `encode` | bytes, relocations, debug information |
//! | [`unwind`] | how to leave a function at each instruction, from its bytes |
//!
//! Around it: [`cache`] (what a cache of compiled functions is), [`isa`] (builder), [`settings`], [`abi`] (calling convention), `inst` (machine instructions of the
//! VCode), `vcode`, [`runtime`] (routines the machine lacks), [`shape`] (what a value consists of), `cost` (what CLIF instructions cost), [`intrinsics`], [`timing`].
//!
//! # Other crates
//!
//! This one is the compiler alone. `clif-opt` has the passes that depend on no machine, `naplespu-runtime` the routines in CLIF, `naplespu-jit` runs compiled code on the simulator as a module of
//! Cranelift, `naplespu-reader` reads CLIF files with their header lines, `naplespu-filetests` and `naplespu-fuzz` test the compiler, and
//! `naplespu-tools` has `clif-util`.
//!
//! # Limits
//!
//! CLIF is compiled for every type: integers of 8 to 128 bits, floats of 16 to 128, and vectors of all of them, those of dynamic
//! size among them. `docs/clif-support.md` has every instruction on every type, and the short list of what is refused.

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
mod finish;
mod frame;
mod inst;
pub mod intrinsics;
pub mod isa;
pub mod legalize;
mod list_sched;
mod lower;
mod opt;
pub mod passes;
mod reason;
mod regalloc;
pub mod remarks;
mod routine;
#[cfg(feature = "rule-switches")]
pub mod rule_switches;
pub mod runtime;
pub mod settings;
pub mod shape;
mod spaces;
mod stored;
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
pub use stored::NotCode;

/// What the project's own tests look at. Not part of the interface: it changes without notice.
#[doc(hidden)]
pub mod internals {
    pub use crate::finish::func::MachFunction;
    pub use crate::finish::run_pass;
    pub use crate::finish::text::parse as parse_function;
    pub use crate::opt::run as optimize;
    pub use crate::passes::Recorder;
    pub use crate::validate::refuses;
}
