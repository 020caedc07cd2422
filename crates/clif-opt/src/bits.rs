//! Simplifications by upper bounds of integers.
//!
//! * Removes a bit mask that covers all bits that can be set.
//! * Converts a small integer to f32 from a narrow type, which the float unit converts exactly.

use super::{edit, facts, loops};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, types};

/// The opcodes that the pass rewrites.
pub const OPCODES: &[Opcode] = &[Opcode::Band, Opcode::FcvtFromUint, Opcode::FcvtFromSint];

/// Simplifies operations by upper bounds. Returns whether anything changed. Aliases may remain.
pub fn run(func: &mut Function, has_fpu: bool) -> bool {
    edit::rewrite_each(func, |func, inst| match func.dfg.insts[inst].opcode() {
        Opcode::Band => redundant_mask(func, inst),
        Opcode::FcvtFromUint | Opcode::FcvtFromSint if has_fpu => small_to_float(func, inst),
        _ => false,
    })
}

fn redundant_mask(func: &mut Function, inst: Inst) -> bool {
    let InstructionData::Binary { args: [x, y], .. } = func.dfg.insts[inst] else {
        return false;
    };
    let result = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(result);
    if !ty.is_int() || ty.bits() > 64 {
        return false;
    }
    let (value, mask) = match (loops::constant(func, x), loops::constant(func, y)) {
        (None, Some(mask)) => (x, mask),
        (Some(mask), None) => (y, mask),
        _ => return false,
    };
    if facts::below_highest(facts::largest(func, value)) & !mask != 0 {
        return false;
    }
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
    true
}

/// Returns i8 or i16, whichever is the narrowest type that holds the value as an unsigned number.
/// Returns `None` if neither does, or if the value has fewer than 32 or more than 64 bits.
pub fn narrow(func: &Function, value: Value) -> Option<Type> {
    let ty = func.dfg.value_type(value);
    if !ty.is_int() || !(32..=64).contains(&ty.bits()) {
        return None;
    }
    match facts::largest(func, value) {
        0..=0xff => Some(types::I8),
        0x100..=0xffff => Some(types::I16),
        _ => None,
    }
}

fn small_to_float(func: &mut Function, inst: Inst) -> bool {
    let InstructionData::Unary { arg, .. } = func.dfg.insts[inst] else {
        return false;
    };
    let to = func.dfg.value_type(func.dfg.first_result(inst));
    let Some(narrow) = narrow(func, arg).filter(|_| to == types::F32) else {
        return false;
    };
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let small = cursor.ins().ireduce(narrow, arg);
    func.replace(inst).fcvt_from_uint(types::F32, small);
    true
}

#[cfg(test)]
mod tests {
    use super::super::straight_line::{check_results, masked};
    use super::*;

    #[test]
    fn removed_masks_are_redundant() {
        let mut removed = 0;
        for width in [8, 32] {
            for mask in [0, 1, 2, 4, 5, 7, 12, 15, 0x7f, -2, -1] {
                for opcode in ["iadd", "band", "bor", "umin", "umax", "imul"] {
                    let last = |a: &str, b: &str| {
                        format!("    v6 = {opcode} {a}, {b}\n    v7 = iconst.i{width} {mask}\n    v9 = band v6, v7")
                    };
                    for text in masked(width, last) {
                        removed += usize::from(check_results(&text, |func| run(func, false)));
                    }
                }
            }
        }
        assert!(removed > 200, "{removed}");
    }
}
