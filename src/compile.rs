//! The pipeline on one page.

use crate::abi::sig::SigInfo;
use crate::code::CompiledCode;
use crate::error::CompileError;
use crate::isa::Isa;
use crate::{abi, emit, frame, intrinsics, lower, optimize, regalloc, validate};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::OptLevel;
use npu_mc::errata::Erratum;

/// Which intermediate forms to keep as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageRequest {
    /// CLIF after optimization.
    pub optimized: bool,
    /// VCode before register allocation.
    pub vcode: bool,
    /// VCode with registers.
    pub regalloc: bool,
}

/// Compiles the function in the context.
pub(crate) fn run(
    isa: &Isa,
    ctx: &mut Context,
    ctrl: &mut ControlPlane,
    request: StageRequest,
) -> Result<CompiledCode, CompileError> {
    optimize::verify(ctx, isa.flags())?;
    validate::run(&ctx.func, isa)?;
    let expanded = intrinsics::expand(&mut ctx.func, isa);
    optimize::run(ctx, isa.flags(), ctrl)?;
    intrinsics::finish(&mut ctx.func, &expanded);
    let optimized = request.optimized.then(|| ctx.func.display().to_string());

    let sig = SigInfo::new(&ctx.func.signature, &ctx.func.name.to_string()).map_err(CompileError::Unsupported)?;
    let registers = sig.registers;
    let vcode = lower::lower(ctx, isa, sig)?;
    let vcode_text = request.vcode.then(|| vcode.to_string());

    let pinned = abi::registers::pinned(isa.flags());
    let env = abi::registers::env(registers, pinned);
    let output = regalloc::run(&vcode, env, isa.flags())?;
    let regalloc_text = request.regalloc.then(|| regalloc::display(&vcode, &output));

    let frame_pointer = vcode.uses_frame_pointer || isa.flags().preserve_frame_pointers();
    let frame = frame::layout(&ctx.func, &vcode, &output, registers, frame_pointer)?;
    let mut items = emit::expand::expand(&vcode, &output, &frame, isa);
    if isa.flags().opt_level() != OptLevel::None {
        emit::copies::run(&mut items, registers, pinned);
        emit::masks::run(&mut items);
        emit::spread::run(&mut items, registers, pinned);
        emit::schedule::run(&mut items);
    }
    if isa.has_erratum(Erratum::LostResultBeforeTakenBranch) {
        emit::hazard::run(&mut items);
    }
    emit::relax::run(&mut items);
    let mut code = emit::encode::encode(&items, &frame, &ctx.func)?;
    code.stages.optimized = optimized;
    code.stages.vcode = vcode_text;
    code.stages.regalloc = regalloc_text;
    Ok(code)
}

impl Isa {
    /// Compiles the function in the context. The context's function is optimized in place.
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
        run(self, ctx, ctrl, request)
    }
}
