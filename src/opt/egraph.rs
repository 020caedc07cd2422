//! Cranelift's simplification, on functions with types and memories that it does not know.

use super::foreign::Disguise;
use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::Flags;

/// The work of Cranelift's pass grows with the square of the number of blocks: at 40,000 it is two thirds of the whole.
const MOST_BLOCKS: usize = 10_000;

/// Whether the function is small enough to be simplified.
pub fn is_worth(ctx: &Context) -> bool {
    ctx.func.layout.blocks().nth(MOST_BLOCKS).is_none()
}

/// Simplifies the function. The loops must have been found, if there are any.
///
/// # Errors
///
/// [`CompileError::Optimizer`] if Cranelift's pass fails.
pub fn run(ctx: &mut Context, flags: &Flags, ctrl: &mut ControlPlane) -> Result<(), CompileError> {
    let disguise = Disguise::put_on(&mut ctx.func);
    ctx.egraph_pass(flags, ctrl)
        .map_err(|error| CompileError::Optimizer(error.to_string()))?;
    disguise.take_off(&mut ctx.func)
}
