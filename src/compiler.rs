//! A compiler that keeps its memory from one function to the next.

use crate::code::CompiledCode;
use crate::compile;
use crate::error::CompileError;
use crate::explaining::Explaining;
use crate::isa::Isa;
use crate::passes::StageRequest;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use std::cell::RefCell;
use std::fmt;

/// Compiles one function after another, and keeps the memory that it works in, so that the second allocates little.
///
/// What is kept is memory alone, never anything about a function: the same input gives the same bytes, whatever was compiled
/// before. It grows to what the largest function needed; drop the compiler to give it back.
///
/// | kept | by |
/// |---|---|
/// | tables and result of register allocation, with `regalloc_algorithm=backtracking` | this type |
/// | control flow graph, dominator tree, loops | the caller's [`Context`]: use it again, after [`Context::clear`] |
/// | what [`CompiledCode`] is made of | nobody: the caller has it |
///
/// It knows no target, so one serves them all. It is not shared: a thread that compiles has one of its own, as it has a
/// [`Context`].
///
/// ```
/// use cranelift_codegen::{Context, control::ControlPlane, settings};
/// use cranelift_naplespu::Compiler;
///
/// let functions = cranelift_reader::parse_functions(
///     "function %one() -> i32 { block0: v0 = iconst.i32 1  return v0 }
///      function %two() -> i32 { block0: v0 = iconst.i32 2  return v0 }",
/// )?;
/// let isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(settings::builder()))?;
/// let mut compiler = Compiler::new();
/// let mut ctx = Context::new();
/// for func in functions {
///     ctx.clear();
///     ctx.func = func;
///     let code = compiler.compile(&isa, &mut ctx, &mut ControlPlane::default())?;
///     assert_eq!(code.bytes.len(), 8);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Compiler {
    buffers: Buffers,
}

/// The memory that is kept, by the stage that works in it. A stage leaves anything in it and expects nothing: who uses a buffer
/// clears it first, for the last function may have ended anywhere.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The allocator's tables and its result.
    pub allocator: regalloc2::Ctx,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").finish_non_exhaustive()
    }
}

impl Compiler {
    /// A compiler that has compiled nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compiles the function in the context. The context's function is optimized in place; it stays as it is if the target has a
    /// [cache](crate::cache) with its code.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    pub fn compile(
        &mut self,
        isa: &Isa,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
    ) -> Result<CompiledCode, CompileError> {
        self.compile_with_stages(isa, ctx, ctrl, StageRequest::default())
    }

    /// Compiles the function and keeps the text of intermediate forms.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    pub fn compile_with_stages(
        &mut self,
        isa: &Isa,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        request: StageRequest,
    ) -> Result<CompiledCode, CompileError> {
        let cache = isa.cache().filter(|_| request == StageRequest::default());
        let Some(cache) = cache else {
            return compile::run(isa, ctx, ctrl, request, &mut Explaining::default(), &mut self.buffers);
        };
        let key = cache.key(isa, &ctx.func);
        if let Some(code) = cache.get(&key) {
            return Ok(code);
        }
        let code = compile::run(isa, ctx, ctrl, request, &mut Explaining::default(), &mut self.buffers)?;
        cache.insert(&key, &code);
        Ok(code)
    }

    /// Compiles the function, whatever the target's cache has, keeps the text of intermediate forms, and says why each instruction is
    /// there. The code is the same.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    #[cfg(feature = "explain")]
    pub fn compile_explained(
        &mut self,
        isa: &Isa,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        request: StageRequest,
    ) -> Result<(CompiledCode, crate::explain::Explanation), CompileError> {
        let mut explaining = Explaining(Some(crate::explain::Explanation::default()));
        let code = compile::run(isa, ctx, ctrl, request, &mut explaining, &mut self.buffers)?;
        Ok((code, explaining.0.unwrap_or_default()))
    }
}

thread_local! {
    /// For those who have no compiler of their own.
    static COMPILER: RefCell<Compiler> = RefCell::default();
}

impl Isa {
    /// Compiles the function in the context. The context's function is optimized in place.
    ///
    /// The memory that this takes is kept for the next function on the thread; a [`Compiler`] keeps it where the caller wants.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    pub fn compile(&self, ctx: &mut Context, ctrl: &mut ControlPlane) -> Result<CompiledCode, CompileError> {
        self.compile_with_stages(ctx, ctrl, StageRequest::default())
    }

    /// Compiles the function and keeps the text of intermediate forms.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    pub fn compile_with_stages(
        &self,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        request: StageRequest,
    ) -> Result<CompiledCode, CompileError> {
        COMPILER.with_borrow_mut(|compiler| compiler.compile_with_stages(self, ctx, ctrl, request))
    }
}
