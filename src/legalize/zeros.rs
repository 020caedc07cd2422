//! Emits zeros of every type, and replaces instructions by zeros.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, MemFlagsData, Type, Value, types};

/// Replaces the results of a refused instruction by zeros and removes the instruction.
pub fn replace_by_zeros(func: &mut Function, inst: Inst) {
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    for result in cursor.func.dfg.inst_results(inst).to_vec() {
        let ty = cursor.func.dfg.value_type(result);
        let zero = zero(&mut cursor, ty);
        cursor.func.dfg.clear_results(inst);
        cursor.func.dfg.change_to_alias(result, zero);
    }
    cursor.func.layout.remove_inst(inst);
}

/// Emits a zero of a type; of a vector type, zeros in all lanes.
pub fn zero(cursor: &mut FuncCursor<'_>, ty: Type) -> Value {
    let lane = ty.lane_type();
    let bits = lane.as_int();
    let number = match bits {
        types::I128 => {
            let half = cursor.ins().iconst(types::I64, 0);
            cursor.ins().iconcat(half, half)
        }
        _ => cursor.ins().iconst(bits, 0),
    };
    let scalar = match lane == bits {
        true => number,
        false => cursor.ins().bitcast(lane, MemFlagsData::new(), number),
    };
    match ty.is_vector() {
        true => cursor.ins().splat(ty, scalar),
        false => scalar,
    }
}
