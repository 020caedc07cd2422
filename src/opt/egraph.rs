//! Runs Cranelift's simplification on functions with types and memories that it does not support.

use super::foreign::Disguise;
use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::Flags;

/// The cost of Cranelift's pass is quadratic in the number of blocks: with 40,000 blocks, it is two
/// thirds of the compile time.
const MOST_BLOCKS: usize = 10_000;

/// Returns whether the function is small enough for the pass.
pub fn is_small_enough(ctx: &Context) -> bool {
    ctx.func.layout.blocks().nth(MOST_BLOCKS).is_none()
}

/// Simplifies the function. Requires the loop analysis if the function has loops.
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
