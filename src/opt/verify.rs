//! Runs Cranelift's verifier on functions for this target.

use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode};
use cranelift_codegen::settings::Flags;
use cranelift_codegen::verifier::VerifierErrors;

/// Checks that the function is valid CLIF.
///
/// Cranelift's verifier requires a Cranelift target for instructions that use the frame pointer,
/// the return address or the pinned register. It gets a copy with constants instead.
///
/// # Errors
///
/// All errors that the verifier found.
pub fn verify_function(func: &Function, flags: &Flags) -> Result<(), VerifierErrors> {
    let special: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter(|&inst| wants_target(func.dfg.insts[inst].opcode()))
        .collect();
    if special.is_empty() {
        return cranelift_codegen::verify_function(func, flags);
    }
    let mut copy = func.clone();
    for inst in special {
        match func.dfg.inst_results(inst).first().map(|&v| func.dfg.value_type(v)) {
            Some(ty) if ty.is_int() => {
                copy.replace(inst).iconst(ty, 0);
            }
            Some(_) => {}
            None => {
                copy.replace(inst).nop();
            }
        }
    }
    cranelift_codegen::verify_function(&copy, flags)
}

fn wants_target(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::GetFramePointer | Opcode::GetReturnAddress | Opcode::GetPinnedReg | Opcode::SetPinnedReg
    )
}

/// Checks the function if the flag `enable_verifier` is on.
///
/// # Errors
///
/// [`CompileError::Verifier`] with all errors that the verifier found.
pub fn verify(ctx: &Context, flags: &Flags) -> Result<(), CompileError> {
    if flags.enable_verifier() {
        verify_function(&ctx.func, flags)?;
    }
    Ok(())
}
