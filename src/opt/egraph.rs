//! Cranelift's simplification, on functions with types and memories that it does not know.

use super::hide;
use crate::error::CompileError;
use crate::spaces;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, Value, types};
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
    // Scalar functions, that is most, have nothing to be hidden.
    let hidden = hide::has_hidden_types(&ctx.func);
    if hidden {
        floats_as_bits(&mut ctx.func);
        hide::hide_from_egraph(&mut ctx.func);
    }
    let separated = spaces::separate(&mut ctx.func);
    ctx.egraph_pass(flags, ctrl)
        .map_err(|error| CompileError::Optimizer(error.to_string()))?;
    if hidden {
        hide::restore(&mut ctx.func);
    }
    spaces::join(&mut ctx.func, &separated);
    Ok(())
}

/// Bitwise operations on f16, f128 and vectors of f32 of other sizes than 128 bits become such on integers: Cranelift's simplification has no constants of these
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
                _ if float.is_vector() && float.lane_type() == types::F32 && float.bits() != 128 => float.as_int(),
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
