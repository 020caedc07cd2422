//! A compiler that reuses its memory from one function to the next.

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

/// A compiler that reuses its memory for each function, so that later functions allocate little.
///
/// The compiler keeps only memory and no information about functions: the same input produces the
/// same bytes, whatever was compiled before. The memory grows to the size that the largest function
/// needs. Drop the compiler to free it.
///
/// | memory | kept by |
/// |---|---|
/// | register allocation, with `regalloc_algorithm=backtracking` | this type |
/// | CFG, dominator tree, loops | the caller's [`Context`]; reuse it after [`Context::clear`] |
/// | [`CompiledCode`] | not kept: the caller owns it |
///
/// One compiler can compile for all targets. It is not shared: each thread needs its own compiler
/// and its own [`Context`].
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

/// The reused memory, by the stage that uses it. The contents are undefined between uses. The user
/// of a buffer clears it first, because the compilation of the previous function may have stopped
/// at any point.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The tables and the result of the register allocator.
    pub allocator: regalloc2::Ctx,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").finish_non_exhaustive()
    }
}

impl Compiler {
    /// Makes a compiler without any allocated memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compiles the function in the context. The context's function is optimized in place. It is
    /// unchanged if the [cache](crate::cache) of the target contains its code.
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

    /// Compiles the function and returns the text of intermediate forms with the code.
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

    /// Compiles the function and returns the text of intermediate forms and the provenance of each
    /// instruction with the code. The function is compiled even if the target's cache contains its
    /// code. The machine code is the same as that of [`Compiler::compile`].
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
    /// The compiler for callers without their own [`Compiler`].
    static COMPILER: RefCell<Compiler> = RefCell::default();
}

impl Isa {
    /// Compiles the function in the context. The context's function is optimized in place.
    ///
    /// The thread keeps the memory of the compilation for its next function. Use a [`Compiler`] to
    /// control the lifetime of this memory.
    ///
    /// # Errors
    ///
    /// See [`CompileError`].
    pub fn compile(&self, ctx: &mut Context, ctrl: &mut ControlPlane) -> Result<CompiledCode, CompileError> {
        self.compile_with_stages(ctx, ctrl, StageRequest::default())
    }

    /// Compiles the function and returns the text of intermediate forms with the code.
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
