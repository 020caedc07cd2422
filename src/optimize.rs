//! Cranelift's own passes over CLIF: those that need no machine.

use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{Flags, OptLevel};

/// Checks that the function is valid CLIF, if the flag `enable_verifier` says so.
///
/// # Errors
///
/// [`CompileError::Verifier`] with everything the verifier found.
pub fn verify(ctx: &Context, flags: &Flags) -> Result<(), CompileError> {
    if flags.enable_verifier() {
        cranelift_codegen::verify_function(&ctx.func, flags)?;
    }
    Ok(())
}

/// Brings the function into the form that is lowered: without unreachable code and constant block parameters, and
/// simplified if `opt_level` is not `none`.
///
/// # Errors
///
/// [`CompileError::Optimizer`] if a pass fails.
pub fn run(ctx: &mut Context, flags: &Flags, ctrl: &mut ControlPlane) -> Result<(), CompileError> {
    let failed = |error: cranelift_codegen::CodegenError| CompileError::Optimizer(error.to_string());
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.eliminate_unreachable_code(flags).map_err(failed)?;
    if flags.opt_level() != OptLevel::None {
        ctx.remove_constant_phis(flags).map_err(failed)?;
    }
    ctx.func.dfg.resolve_all_aliases();
    if flags.opt_level() != OptLevel::None {
        ctx.egraph_pass(flags, ctrl).map_err(failed)?;
    }
    // The passes may leave blocks that nothing reaches any more.
    ctx.compute_cfg();
    ctx.compute_domtree();
    Ok(())
}
