//! Cranelift's own passes over CLIF: those that need no machine.

use crate::error::CompileError;
use crate::hide;
use crate::isa::Isa;
use crate::passes::Pass;
use crate::spaces;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, Value, types};
use cranelift_codegen::settings::{Flags, OptLevel};
use cranelift_codegen::verifier::VerifierErrors;

/// Checks that the function is valid CLIF.
///
/// Cranelift's verifier wants a Cranelift target for instructions that name the frame or the pinned register; it is shown
/// constants in their place.
///
/// # Errors
///
/// Everything the verifier found.
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

/// Checks the function if the flag `enable_verifier` says so.
///
/// # Errors
///
/// [`CompileError::Verifier`] with everything the verifier found.
pub fn verify(ctx: &Context, flags: &Flags) -> Result<(), CompileError> {
    if flags.enable_verifier() {
        verify_function(&ctx.func, flags)?;
    }
    Ok(())
}

/// Brings the function into the form that is lowered: without unreachable code and constant block parameters, simplified if
/// the pipeline has that pass, with its loops known if anything is optimized.
///
/// # Errors
///
/// [`CompileError::Optimizer`] if a pass fails; in debug builds [`CompileError::Verifier`] if the result is not valid.
pub fn run(ctx: &mut Context, isa: &Isa, ctrl: &mut ControlPlane) -> Result<(), CompileError> {
    let optimize = isa.flags().opt_level() != OptLevel::None;
    let flags = isa.quiet_flags();
    let failed = |error: cranelift_codegen::CodegenError| CompileError::Optimizer(error.to_string());
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.eliminate_unreachable_code(flags).map_err(failed)?;
    if optimize {
        ctx.remove_constant_phis(flags).map_err(failed)?;
    }
    ctx.func.dfg.resolve_all_aliases();
    if isa.runs(Pass::Egraph) {
        // Scalar functions, that is most, have nothing to be hidden.
        let hidden = hide::has_hidden_types(&ctx.func);
        if hidden {
            floats_as_bits(&mut ctx.func);
            hide::hide_from_egraph(&mut ctx.func);
        }
        let separated = spaces::separate(&mut ctx.func);
        ctx.egraph_pass(flags, ctrl).map_err(failed)?;
        if hidden {
            hide::restore(&mut ctx.func);
        }
        spaces::join(&mut ctx.func, &separated);
        if cfg!(debug_assertions) {
            verify(ctx, isa.flags())?;
        }
    }
    if optimize {
        // The passes may leave blocks that nothing reaches any more.
        ctx.compute_cfg();
        ctx.compute_domtree();
        ctx.compute_loop_analysis();
    }
    Ok(())
}

/// Bitwise operations on f16, f128 and f32x16 become such on integers: Cranelift's simplification has no constants of these
/// types, and panics where it wants one (`bxor` of a value with itself).
fn floats_as_bits(func: &mut Function) {
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let opcode = func.dfg.insts[inst].opcode();
            let bitwise = matches!(
                opcode,
                Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect
            );
            let Some(&result) = func.dfg.inst_results(inst).first().filter(|_| bitwise) else {
                continue;
            };
            let float = func.dfg.value_type(result);
            let bits = match float {
                types::F16 => types::I16,
                types::F128 => types::I128,
                types::F32X16 => types::I32X16,
                _ => continue,
            };
            let flags = if float.is_vector() {
                MemFlagsData::new().with_endianness(Endianness::Little)
            } else {
                MemFlagsData::new()
            };
            let mut cursor = FuncCursor::new(func).at_inst(inst);
            let given: Vec<Value> = cursor.func.dfg.inst_values(inst).collect();
            let args: Vec<Value> = given
                .into_iter()
                .map(|value| cursor.ins().bitcast(bits, flags, value))
                .collect();
            let value = match (opcode, args.as_slice()) {
                (Opcode::Band, &[a, b]) => cursor.ins().band(a, b),
                (Opcode::Bor, &[a, b]) => cursor.ins().bor(a, b),
                (Opcode::Bxor, &[a, b]) => cursor.ins().bxor(a, b),
                (Opcode::Bnot, &[a]) => cursor.ins().bnot(a),
                (Opcode::Bitselect, &[c, a, b]) => cursor.ins().bitselect(c, a, b),
                _ => continue,
            };
            cursor.func.replace(inst).bitcast(float, flags, value);
        }
    }
}
