//! `atomic_rmw` and `atomic_cas` as a load, an operation and a store, where the setting `atomics=single_thread` allows that.
//!
//! The load and the store stay atomic: CLIF has no plain access that is one access of the whole width, traps if it is misaligned, and
//! changes places with no other. They are fences to the optimizer too, so it neither answers the load nor moves or drops the store; what
//! stands between them it may simplify. Lowering makes each of them one machine instruction between fences (`isle/atomics.isle`).

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, Function, InstBuilder, InstructionData, Value, types};

/// Rewrites the function.
pub(super) fn run(func: &mut Function) {
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        while let Some(inst) = cursor.next_inst() {
            let (operation, args, flags) = match cursor.func.dfg.insts[inst] {
                InstructionData::AtomicRmw { op, args, flags, .. } => (Some(op), [args[0], args[1], args[1]], flags),
                InstructionData::AtomicCas { args, flags, .. } => (None, args, flags),
                _ => continue,
            };
            let [pointer, x, y] = args;
            let ty = cursor.func.dfg.ctrl_typevar(inst);
            let flags = cursor.func.dfg.mem_flags[flags];
            // The load takes the place of the instruction, so that its result is the old value for all users; the rest follows.
            let old = cursor.func.replace(inst).atomic_load(ty, flags, pointer);
            cursor.next_inst();
            cursor.use_srcloc(inst);
            let new = match operation {
                Some(op) => operate(&mut cursor, op, old, x),
                None => exchange(&mut cursor, old, x, y),
            };
            cursor.ins().atomic_store(flags, new, pointer);
            cursor.prev_inst();
        }
    }
}

/// What `atomic_rmw` writes back.
fn operate(cursor: &mut FuncCursor<'_>, op: AtomicRmwOp, old: Value, x: Value) -> Value {
    match op {
        AtomicRmwOp::Add => cursor.ins().iadd(old, x),
        AtomicRmwOp::Sub => cursor.ins().isub(old, x),
        AtomicRmwOp::And => cursor.ins().band(old, x),
        AtomicRmwOp::Nand => {
            let both = cursor.ins().band(old, x);
            cursor.ins().bnot(both)
        }
        AtomicRmwOp::Or => cursor.ins().bor(old, x),
        AtomicRmwOp::Xor => cursor.ins().bxor(old, x),
        AtomicRmwOp::Xchg => x,
        AtomicRmwOp::Umin => cursor.ins().umin(old, x),
        AtomicRmwOp::Umax => cursor.ins().umax(old, x),
        AtomicRmwOp::Smin => cursor.ins().smin(old, x),
        AtomicRmwOp::Smax => cursor.ins().smax(old, x),
    }
}

/// What `atomic_cas` writes back: the new value, or the old one if that is not the expected one. An atomic load extends with zeros, so
/// narrow numbers are compared as unsigned words.
fn exchange(cursor: &mut FuncCursor<'_>, old: Value, expected: Value, new: Value) -> Value {
    let is_narrow = cursor.func.dfg.value_type(old).bits() < types::I32.bits();
    let mut word = |value| {
        if is_narrow {
            cursor.ins().uextend(types::I32, value)
        } else {
            value
        }
    };
    let (found, wanted) = (word(old), word(expected));
    let same = cursor.ins().icmp(IntCC::Equal, found, wanted);
    cursor.ins().select(same, new, old)
}
