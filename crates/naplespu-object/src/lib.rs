//! Writes object files of NaplesPU code.
//!
//! # Contract
//!
//! [`NpuObjectModule`] implements [`cranelift_module::Module`]: front ends declare and define
//! functions and data as for `cranelift-object`. [`NpuObjectModule::finish`] returns the object as
//! data, [`NpuObjectModule::emit`] returns the bytes of a relocatable ELF file. [`RuntimeLibrary`]
//! is the runtime for [`npu_link::link_program`]; compiled code refers to its routines by name.
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | [`front`] | target, declarations and references of a module, shared with `naplespu-jit` |
//! | `builder` | an object under construction |
//! | `module` | the implementation of Cranelift's trait |
//! | `frames` | `.eh_frame` |
//! | `exceptions` | the unwind tables of exceptions |
//! | `debug` | DWARF: lines, functions, variables |
//! | `sections` | sections written by `gimli` |
//! | `runtime` | the routines of the runtime as objects |
//!
//! # Invariants
//!
//! The same definitions in the same order result in the same bytes.

#![deny(missing_docs)]

mod builder;
mod debug;
mod exceptions;
mod frames;
pub mod front;
mod module;
mod runtime;
mod sections;

pub use module::{CompileOrModule, NpuObjectModule, ObjectError};
pub use runtime::RuntimeLibrary;
