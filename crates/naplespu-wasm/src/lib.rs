//! WebAssembly modules as CLIF for NaplesPU.
//!
//! # Contract
//!
//! [`translate`] reads a binary module, validates it, and puts it into a module of Cranelift: functions, memories, tables, globals and
//! segments are declared there, data is defined, and the functions come back as CLIF to be compiled. No instance has a context
//! at run time: everything is at an address that the code knows. So a module is translated for each instance anew.
//!
//! A [`Store`] holds instances on the simulator: it translates, compiles, links and makes ready ([`Store::load`], [`Store::start`]), calls
//! what they export and says what went wrong, by the names of the module and offsets in its file.
//!
//! What is valid and not translated is refused by name, with its offset ([`WasmError::Unsupported`]). Nothing panics on any input.
//!
//! # What things become
//!
//! - A memory is an address that the settings give, or a data object, with a cell for its size in bytes. Growing it changes the cell.
//! - A table is an array of references with a cell for its size. A reference to a function is the address of a record with the address
//!   of its code and the number of its type ([`Types`]), one for the host its number plus one, and null 0.
//! - A global is a cell, unless it is known.
//! - A tag is a number and an object in each thread for what is thrown; an exception's reference is the address of a copy ([`TagItem`]).
//! - Trap codes are those of Cranelift and of [`traps`]. Source locations are offsets in the file; [`SourceLines`] knows lines for them.
//!
//! # Structure
//!
//! `parse` reads, `env` declares; `emit`, `memory` and `bulk` make code, `init` the function that makes an instance ready, `body`,
//! `plain`, `atomics`, `simd` and `exceptions` the functions of the module. `queue` is the memory of threads that wait. `store` runs them, `program` makes one that no host attends, `wasi` has what programs import, `npu` the machine's own operations.

#![deny(missing_docs)]

mod atomics;
mod body;
mod bulk;
mod config;
mod emit;
mod env;
mod error;
mod exceptions;
mod init;
mod items;
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
pub use error::{Result, WasmError};
pub use items::{Base, Extern, FuncItem, GlobalItem, Imports, MemoryItem, TableItem, TagItem};
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

/// A module of WebAssembly in one of Cranelift, whose functions are to be compiled.
pub struct Translated {
    /// The functions, with their CLIF.
    pub functions: Vec<(FuncId, Context)>,
    /// Makes the instance ready; has no arguments and no results.
    pub init: FuncId,
    /// What the module exports, in order.
    pub exports: Vec<(String, Extern)>,
    /// The shadow stack pointer, if every hardware thread has one, and where it points at first.
    pub stack_pointer: Option<(GlobalItem, u32)>,
}

impl std::fmt::Debug for Translated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translated")
            .field("functions", &self.functions.len())
            .field("exports", &self.exports)
            .finish_non_exhaustive()
    }
}

/// Whether a module has tail calls, so that its functions want the convention for them.
///
/// # Errors
///
/// [`WasmError::Invalid`] as far as that shows without validation, and what is refused in declarations.
pub fn has_tail_calls(bytes: &[u8]) -> Result<bool> {
    Ok(parse::parse(bytes, &mut Types::default())?.has_tail_calls)
}

/// Translates a binary module.
///
/// # Errors
///
/// See [`WasmError`]. What was declared in the module of Cranelift by then stays there.
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
        emitter.builder.finalize(frontend);
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
        init,
        exports: env.exports()?,
        stack_pointer: env.stack_pointer,
    })
}
