//! Addresses of loads and stores that have an offset.

use crate::Target;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value, types};

/// Returns the address operand of a load or store with an offset, if it is an i32.
pub fn address(func: &Function, inst: Inst) -> Option<Value> {
    let operand = address_operand(&func.dfg.insts[inst])?;
    let value = func.dfg.resolve_aliases(func.dfg.inst_args(inst)[operand]);
    (func.dfg.value_type(value) == types::I32).then_some(value)
}

/// Returns the operand number of the address of a load or store with an offset.
pub fn address_operand(data: &InstructionData) -> Option<usize> {
    match data {
        InstructionData::Load { .. } => Some(0),
        InstructionData::Store { .. } => Some(1),
        _ => None,
    }
}

/// Replaces the address operand and the offset of a load or store.
pub fn set_address(func: &mut Function, inst: Inst, pointer: Value, constant: i32) {
    let Some(operand) = address_operand(&func.dfg.insts[inst]) else {
        return;
    };
    if let InstructionData::Load { offset, .. } | InstructionData::Store { offset, .. } = &mut func.dfg.insts[inst] {
        *offset = constant.into();
    }
    func.dfg.inst_args_mut(inst)[operand] = pointer;
}

/// Returns whether an access with this offset is one instruction.
pub fn is_in_range(target: &dyn Target, offset: i32) -> bool {
    let offsets = target.offsets();
    // Leaves room for the parts of a split word access, which have larger offsets.
    (*offsets.start()..=*offsets.end() - 4).contains(&offset)
}
