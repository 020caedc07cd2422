//! Distributes work on many functions over threads, with results in order.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::{CompileError, CompiledCode, Compiler, Isa};
use rayon::prelude::*;
use std::fmt;

/// The number of CLIF instructions from which several threads are faster than one, considering the
/// cost of starting threads and allocating their memory.
const WORTH_THREADS: usize = 10_000;

/// The reusable state of a compiling thread.
pub struct Worker {
    /// The compiler.
    pub compiler: Compiler,
    /// A context; clear it before use.
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
    /// The compilation failed.
    pub fn compile(&mut self, isa: &Isa, func: &Function) -> Result<CompiledCode, CompileError> {
        self.ctx.clear();
        self.ctx.func = func.clone();
        self.compiler.compile(isa, &mut self.ctx, &mut ControlPlane::default())
    }
}

/// Applies the work to each item and returns the results in order, the same as on one thread.
/// `size` returns the number of CLIF instructions of an item. If the items together have enough
/// instructions, the threads of rayon's pool share the work; otherwise the calling thread does it.
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
