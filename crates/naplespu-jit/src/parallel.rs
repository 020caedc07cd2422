//! Work on many functions by several threads, with results in order.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::{CompileError, CompiledCode, Compiler, Isa};
use rayon::prelude::*;
use std::fmt;

/// CLIF instructions from which on several threads take less time than one: a thread wants to be started, and its memory made.
const WORTH_THREADS: usize = 10_000;

/// What a thread has to compile with, for one function after the other.
pub struct Worker {
    /// The compiler.
    pub compiler: Compiler,
    /// A context, which is to be cleared before it is used again.
    pub ctx: Context,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            compiler: Compiler::new(),
            ctx: Context::new(),
        }
    }
}

impl Worker {
    /// Compiles a copy of the function.
    ///
    /// # Errors
    ///
    /// Why it was not compiled.
    pub fn compile(&mut self, isa: &Isa, func: &Function) -> Result<CompiledCode, CompileError> {
        self.ctx.clear();
        self.ctx.func = func.clone();
        self.compiler.compile(isa, &mut self.ctx, &mut ControlPlane::default())
    }
}

/// Does the work for each item and gives the results in their order, which are those that one thread gives. If the items together have
/// enough CLIF instructions, of which `size` counts those of one, the threads of rayon's pool share the work; otherwise the calling one does it.
pub fn map<T: Send, R: Send>(
    items: Vec<T>,
    size: impl Fn(&T) -> usize,
    work: impl Fn(&mut Worker, T) -> R + Sync + Send,
) -> Vec<R> {
    if items.len() > 1 && items.iter().map(size).sum::<usize>() >= WORTH_THREADS {
        items.into_par_iter().map_init(Worker::default, work).collect()
    } else {
        let mut worker = Worker::default();
        items.into_iter().map(|item| work(&mut worker, item)).collect()
    }
}
