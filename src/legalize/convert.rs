//! Expands x64's conversions of floats: a number out of range becomes the least integer.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, InstBuilder, InstructionData, Opcode, Type, Value, types};

/// The opcodes that this file rewrites.
pub(super) const OPCODES: [Opcode; 1] = [Opcode::X86Cvtt2dq];

/// Rewrites the function.
pub(super) fn run(func: &mut Function) {
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        while let Some(inst) = cursor.next_inst() {
            let dfg = &cursor.func.dfg;
            let InstructionData::Unary {
                opcode: Opcode::X86Cvtt2dq,
                arg,
            } = dfg.insts[inst]
            else {
                continue;
            };
            let result = dfg.first_result(inst);
            let ty = dfg.value_type(result);
            cursor.use_srcloc(inst);
            let converted = match ty.is_vector() {
                true => lanes(&mut cursor, ty, arg),
                false => or_least(&mut cursor, ty, arg),
            };
            cursor.func.dfg.clear_results(inst);
            cursor.func.dfg.change_to_alias(result, converted);
            cursor.remove_inst_and_step_back();
        }
    }
}

/// Converts a vector. If float lanes and integer lanes have the same size, one vector compare and
/// select serves all lanes; otherwise each lane is converted separately.
fn lanes(cursor: &mut FuncCursor<'_>, ty: Type, value: Value) -> Value {
    let from = cursor.func.dfg.value_type(value);
    let lane = ty.lane_type();
    let least = least(cursor, lane);
    if from.lane_bits() == lane.bits() {
        let bound = bound(cursor, lane, from.lane_type(), least);
        let bound = cursor.ins().splat(from, bound);
        let fits = cursor.ins().fcmp(FloatCC::LessThan, value, bound);
        let converted = cursor.ins().fcvt_to_sint_sat(ty, value);
        let least = cursor.ins().splat(ty, least);
        return cursor.ins().bitselect(fits, converted, least);
    }
    let mut all = cursor.ins().splat(ty, least);
    for number in 0..ty.lane_count() {
        let one = cursor.ins().extractlane(value, number as u8);
        let one = or_least(cursor, lane, one);
        all = cursor.ins().insertlane(all, one, number as u8);
    }
    all
}

/// Converts to an integer, or to the least integer if the number is out of range.
pub(super) fn or_least(cursor: &mut FuncCursor<'_>, ty: Type, value: Value) -> Value {
    let least = least(cursor, ty);
    let bound = bound(cursor, ty, cursor.func.dfg.value_type(value), least);
    let fits = cursor.ins().fcmp(FloatCC::LessThan, value, bound);
    let converted = cursor.ins().fcvt_to_sint_sat(ty, value);
    cursor.ins().select(fits, converted, least)
}

/// Returns the lowest power of two above the range of the integer type, or infinity if the float
/// type cannot represent it.
fn bound(cursor: &mut FuncCursor<'_>, ty: Type, float: Type, least: Value) -> Value {
    let power = ty.bits() - 1;
    match float {
        types::F16 if power > 15 => cursor.ins().f16const(Ieee16::with_bits(0x7c00)),
        types::F16 => cursor.ins().f16const(Ieee16::pow2(power.cast_signed())),
        types::F32 => cursor.ins().f32const(Ieee32::pow2(power.cast_signed())),
        types::F64 => cursor.ins().f64const(Ieee64::pow2(power.cast_signed())),
        _ => {
            let bound = cursor.ins().fcvt_from_sint(float, least);
            cursor.ins().fneg(bound)
        }
    }
}

/// Returns the least signed integer of the type.
fn least(cursor: &mut FuncCursor<'_>, ty: Type) -> Value {
    let one = match ty {
        types::I128 => {
            let one = cursor.ins().iconst(types::I64, 1);
            cursor.ins().uextend(ty, one)
        }
        _ => cursor.ins().iconst(ty, 1),
    };
    let amount = cursor.ins().iconst(types::I32, i64::from(ty.bits()) - 1);
    cursor.ins().ishl(one, amount)
}
