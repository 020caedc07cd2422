//! Expands stack switches to calls of the runtime, and dynamic stack slots to slots of fixed size.

use super::routines::{import, word_of};
use crate::intrinsics::STACK_SWITCH;
use crate::shape::fixed;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    DynamicTypeData, Function, InstBuilder, InstructionData, Opcode, StackSlotData, StackSlotKind, Type, types,
};
use cranelift_codegen::isa::CallConv;
use npu_mc::machine::STACK_ALIGN;

/// The opcodes that this file rewrites.
pub(super) const OPCODES: [Opcode; 2] = [Opcode::StackSwitch, Opcode::DynamicStackAddr];

/// Rewrites the function.
pub(super) fn run(func: &mut Function) {
    let slots: Vec<_> = func.dynamic_stack_slots.keys().collect();
    let slots: Vec<_> = slots
        .into_iter()
        .map(|slot| {
            let ty = func.dynamic_stack_slots[slot].dyn_ty;
            // An undeclared type gets size zero; the verifier reports it.
            let declared = func.dfg.dynamic_types.get(ty).and_then(DynamicTypeData::concrete);
            let size = declared.and_then(fixed).map_or(0, Type::bytes);
            let align = STACK_ALIGN.trailing_zeros() as u8;
            func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, align))
        })
        .collect();
    let mut routine = None;
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        while let Some(inst) = cursor.next_inst() {
            let ty = cursor.func.dfg.ctrl_typevar(inst);
            match cursor.func.dfg.insts[inst] {
                InstructionData::DynamicStackAddr { dynamic_stack_slot, .. } => {
                    if let Some(&slot) = slots.get(dynamic_stack_slot.as_u32() as usize) {
                        cursor.func.replace(inst).stack_addr(ty, slot, 0);
                    }
                }
                InstructionData::Ternary {
                    opcode: Opcode::StackSwitch,
                    args,
                } => {
                    cursor.use_srcloc(inst);
                    let args = args.map(|arg| word_of(&mut cursor, arg));
                    let routine = *routine
                        .get_or_insert_with(|| import(cursor.func, STACK_SWITCH, CallConv::SystemV, args.len(), 1));
                    if ty == types::I32 {
                        cursor.func.replace(inst).call(routine, &args);
                        continue;
                    }
                    let call = cursor.ins().call(routine, &args);
                    let word = cursor.func.dfg.first_result(call);
                    cursor.func.replace(inst).uextend(ty, word);
                }
                _ => {}
            }
        }
    }
}
