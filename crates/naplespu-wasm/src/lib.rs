//! Translates WebAssembly modules to CLIF for NaplesPU.
//!
//! # Contract
//!
//! [`translate`] reads a binary module, validates it and adds it to a Cranelift module. It declares
//! functions, memories, tables, globals and segments, defines data, and returns the functions as
//! CLIF for the caller to compile. An instance has no context at run time: the code contains all
//! addresses. Therefore each instance needs its own translation.
//!
//! A [`Store`] holds instances on the simulator. It translates, compiles, links and initializes
//! them ([`Store::load`], [`Store::start`]) and calls their exports. Its errors use the names of
//! the module and offsets in the binary.
//!
//! Valid features without a translation are refused by name and offset
//! ([`WasmError::Unsupported`]). No input causes a panic.
//!
//! # Representation
//!
//! - A memory is a configured address or a data object, plus a cell for its size in bytes. Growing
//!   the memory changes the cell.
//! - A table is an array of references plus a cell for its size. A function reference is the
//!   address of a record, which has the address of the code and the number of the type ([`Types`]).
//!   A host reference is its number plus one. Null is 0.
//! - A global is a cell, unless its value is constant and known.
//! - A tag is a number plus a thread-local object for the exception in flight. An exception
//!   reference is the address of a copy ([`TagItem`]).
//! - Trap codes are Cranelift's and those in [`traps`]. Source locations are offsets in the binary;
//!   [`SourceLines`] maps them to source lines.
//!
//! # Structure
//!
//! - `parse` reads a module; `env` declares its items.
//! - `emit`, `memory` and `bulk` emit code.
//! - `init` emits the function that initializes an instance.
//! - `body`, `plain`, `atomics`, `simd` and `exceptions` translate function bodies.
//! - `queue` lays out the queue of waiting threads.
//! - `store` runs instances, and `dispatch` kernels; `program` makes a program that runs without a host.
//! - `wasi` has the functions that programs import; `npu` has the machine's own operations, and
//!   `kernel` those of work-items.

#![deny(missing_docs)]

mod atomics;
mod body;
mod bulk;
mod config;
mod dispatch;
mod emit;
mod env;
mod error;
mod exceptions;
mod init;
mod items;
mod kernel;
mod lines;
mod memory;
mod npu;
mod parse;
mod plain;
mod program;
mod queue;
mod simd;
mod store;
pub mod traps;
mod types;
pub mod wasi;

pub use config::{Config, PAGE};
pub use dispatch::{Dispatch, DispatchError};
pub use error::{Result, WasmError};
pub use items::{Base, Extern, FuncItem, GlobalItem, Imports, MemoryItem, TableItem, TagItem};
pub use kernel::Kernel;
pub use lines::{SourceLine, SourceLines, readable};
pub use parse::Limits;
pub use program::{Program, ProgramCall, program};
pub use store::{CallError, Instance, Store, Value};
pub use types::{FuncType, Reference, Target, TypeId, Types, ValueType};

use cranelift_codegen::Context;
use cranelift_codegen::ir::UserFuncName;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, Module};
use emit::Emitter;
use env::Env;
use wasmparser::FuncValidatorAllocations;

/// A WebAssembly module, translated into a Cranelift module; its functions are not compiled yet.
pub struct Translated {
    /// The functions, with their CLIF.
    pub functions: Vec<(FuncId, Context)>,
    /// The functions that only a dispatch can execute; those in `functions` trap.
    pub kernels: Vec<Kernel>,
    /// The function that initializes the instance, without arguments or results.
    pub init: FuncId,
    /// The exports of the module, in order.
    pub exports: Vec<(String, Extern)>,
    /// The shadow stack pointer and its initial value, if every hardware thread has its own copy.
    pub stack_pointer: Option<(GlobalItem, u32)>,
}

impl std::fmt::Debug for Translated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translated")
            .field("functions", &self.functions.len())
            .field("kernels", &self.kernels.len())
            .field("exports", &self.exports)
            .finish_non_exhaustive()
    }
}

/// Returns whether a module has tail calls, which need [`Config::convention`] to be
/// [`CallConv::Tail`](cranelift_codegen::isa::CallConv::Tail).
///
/// # Errors
///
/// [`WasmError::Invalid`] for faults that the parser detects, and errors in declarations. The
/// module is not validated.
pub fn has_tail_calls(bytes: &[u8]) -> Result<bool> {
    Ok(parse::parse(bytes, &mut Types::default())?.has_tail_calls)
}

/// Translates a binary module.
///
/// # Errors
///
/// See [`WasmError`]. Declarations made before the error stay in the Cranelift module.
pub fn translate(
    module: &mut dyn Module,
    bytes: &[u8],
    config: &Config,
    types: &mut Types,
    imports: &Imports,
) -> Result<Translated> {
    let mut info = parse::parse(bytes, types)?;
    let bodies = std::mem::take(&mut info.bodies);
    let mut env = Env::new(module, &info, types, config, imports)?;
    let mut context = FunctionBuilderContext::new();
    let mut functions = Vec::with_capacity(bodies.len() + 1);
    let mut kernels = Vec::new();
    let mut allocations = FuncValidatorAllocations::default();
    for (number, (func, body)) in bodies.into_iter().enumerate() {
        let item = *env::get(&env.functions, (env.imported_functions + number) as u32, "a function")?;
        let ty = types.get(item.ty)?;
        let mut ctx = env.module.make_context();
        ctx.func.signature = ty.signature(config.convention);
        ctx.func.name = UserFuncName::user(0, item.id.as_u32());
        let frontend = env.module.target_config();
        let builder = FunctionBuilder::new(&mut ctx.func, &mut context);
        let mut emitter = Emitter::new(builder, &mut env);
        emitter.limit_stack();
        allocations = body::Body::new(&mut emitter).translate(func, &body, &ty.params, &ty.results, allocations)?;
        let uses = std::mem::take(&mut emitter.uses);
        emitter.builder.finalize(frontend);
        kernels.extend(kernel::take(item.id, &mut ctx.func, uses));
        functions.push((item.id, ctx));
    }
    let init = env.init_function()?;
    let mut ctx = env.module.make_context();
    ctx.func.signature.call_conv = config.convention;
    ctx.func.name = UserFuncName::user(0, init.as_u32());
    let frontend = env.module.target_config();
    let builder = FunctionBuilder::new(&mut ctx.func, &mut context);
    let mut emitter = Emitter::new(builder, &mut env);
    emitter.init()?;
    emitter.builder.finalize(frontend);
    functions.push((init, ctx));
    for (which, id) in std::mem::take(&mut env.waiting) {
        let mut ctx = env.module.make_context();
        ctx.func.signature = which.signature();
        ctx.func.name = UserFuncName::user(0, id.as_u32());
        let builder = FunctionBuilder::new(&mut ctx.func, &mut context);
        let mut emitter = Emitter::new(builder, &mut env);
        emitter.make_waiting(which)?;
        emitter.builder.finalize(frontend);
        functions.push((id, ctx));
    }
    if let Some(keeper) = env.keeper.take() {
        let mut ctx = env.module.make_context();
        ctx.func.signature = exceptions::keeper_signature();
        ctx.func.name = UserFuncName::user(0, keeper.function.as_u32());
        let frontend = env.module.target_config();
        let builder = FunctionBuilder::new(&mut ctx.func, &mut context);
        let mut emitter = Emitter::new(builder, &mut env);
        emitter.make_keeper(keeper)?;
        emitter.builder.finalize(frontend);
        functions.push((keeper.function, ctx));
    }
    Ok(Translated {
        functions,
        kernels,
        init,
        exports: env.exports()?,
        stack_pointer: env.stack_pointer,
    })
}
