//! Object files of NaplesPU code.
//!
//! # Contract
//!
//! [`NpuObjectModule`] implements [`cranelift_module::Module`]: what declares and defines functions and data for `cranelift-object`
//! does so here too. [`NpuObjectModule::finish`] gives the object as data, [`NpuObjectModule::emit`] as the bytes of a relocatable ELF
//! file. [`RuntimeLibrary`] is the runtime for [`npu_link::link_program`]: compiled code refers to its routines by name.
//!
//! # Structure
//!
//! | file | what it does |
//! |---|---|
//! | `builder` | an object that grows by functions and data |
//! | `module` | the trait |
//! | `frames` | `.eh_frame` |
//! | `exceptions` | the tables by which exceptions find their handlers |
//! | `debug` | DWARF: lines, functions, variables |
//! | `sections` | sections that `gimli` writes |
//! | `runtime` | the routines of the runtime as objects |
//!
//! # Invariants
//!
//! The same definitions in the same order give the same bytes.

#![deny(missing_docs)]

mod builder;
mod debug;
mod exceptions;
mod frames;
mod module;
mod runtime;
mod sections;

pub use module::{CompileOrModule, NpuObjectModule, ObjectError};
pub use runtime::RuntimeLibrary;
