//! Loop-invariant code motion of sums and bit operations with constants.
//!
//! Cranelift's simplification hoists everything, and then rematerializes these operations in each
//! block that uses them, to save registers. This machine has many registers, and the rematerialized
//! operation costs an instruction in every iteration.

use super::access;
use super::loops::{self, NaturalLoop};
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of values hoisted out of one loop; limits register pressure.
const BUDGET: usize = 16;

/// Hoists invariant operations, innermost loops first. Returns whether anything changed.
pub fn run(ctx: &mut Context, target: &dyn Target, loops: &[NaturalLoop]) -> bool {
    let mut changed = false;
    for lp in loops.iter().rev() {
        changed |= hoist(&mut ctx.func, target, lp);
    }
    changed
}

/// Returns whether the loop calls functions. Routines of the runtime do not count, because they
/// preserve nearly all registers.
pub fn has_calls(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> bool {
    lp.blocks.iter().any(|&block| {
        func.layout
            .block_insts(block)
            .any(|inst| func.dfg.insts[inst].opcode().is_call() && !target.is_instruction(func, inst))
    })
}

/// Returns whether Cranelift rematerializes the instruction at its uses.
fn is_cheap(func: &Function, inst: Inst) -> bool {
    let one_word = |&result: &Value| {
        let ty = func.dfg.value_type(result);
        ty.is_int() && ty.bits() <= 32
    };
    let data = &func.dfg.insts[inst];
    let opcode = matches!(
        data.opcode(),
        Opcode::Iadd | Opcode::Isub | Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot
    );
    opcode && func.dfg.inst_results(inst).first().is_some_and(one_word)
}

fn hoist(func: &mut Function, target: &dyn Target, lp: &NaturalLoop) -> bool {
    let &[entry] = lp.entries.as_slice() else {
        return false;
    };
    let mut inside: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(func.dfg.num_blocks());
    for &block in &lp.blocks {
        inside[block] = true;
    }
    let mut candidates: Vec<Inst> = Vec::new();
    for &block in &lp.blocks {
        candidates.extend(func.layout.block_insts(block).filter(|&inst| is_cheap(func, inst)));
    }
    // Quick exit: most loops have no invariant operation. The main loop below also hoists
    // operations that depend on hoisted ones.
    let is_hoistable = |&inst: &Inst| {
        let mut args = func.dfg.inst_args(inst).iter();
        args.all(|&arg| loops::constant(func, arg).is_some() || !inside[loops::defining_block(func, arg)])
    };
    if !candidates.iter().any(is_hoistable) || has_calls(func, target, lp) {
        return false;
    }
    let folded = only_offsets(func, target, lp);
    let mut budget = BUDGET;
    // Equal operations of different blocks share one hoisted value.
    let mut hoisted: FxHashMap<InstructionData, Value> = FxHashMap::default();
    let mut changed = false;
    for inst in candidates {
        if folded.contains(&inst) {
            continue;
        }
        let invariant =
            |value: Value| loops::constant(func, value).is_some() || !inside[loops::defining_block(func, value)];
        let mut args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        if !args.iter().all(|&arg| invariant(arg)) || budget == 0 {
            continue;
        }
        budget -= 1;
        for arg in &mut args {
            *arg = value_outside(func, *arg, &inside, entry.inst, &mut hoisted);
        }
        func.dfg.inst_args_mut(inst).copy_from_slice(&args);
        let result = func.dfg.first_result(inst);
        let data = func.dfg.insts[inst];
        func.layout.remove_inst(inst);
        if let Some(&same) = hoisted
            .get(&data)
            .filter(|&&same| func.dfg.value_type(same) == func.dfg.value_type(result))
        {
            func.dfg.clear_results(inst);
            func.dfg.change_to_alias(result, same);
        } else {
            func.layout.insert_inst(inst, entry.inst);
            hoisted.insert(data, result);
        }
        changed = true;
    }
    changed
}

/// Returns the value outside of the loop; copies constants to the preheader.
fn value_outside(
    func: &mut Function,
    value: Value,
    inside: &SecondaryMap<Block, bool>,
    before: Inst,
    hoisted: &mut FxHashMap<InstructionData, Value>,
) -> Value {
    let value = func.dfg.resolve_aliases(value);
    if !inside[loops::defining_block(func, value)] {
        return value;
    }
    let Some(inst) = func.dfg.value_def(value).inst() else {
        return value;
    };
    let data = func.dfg.insts[inst];
    if let Some(&same) = hoisted
        .get(&data)
        .filter(|&&same| func.dfg.value_type(same) == func.dfg.value_type(value))
    {
        return same;
    }
    let copy = func.dfg.clone_inst(inst);
    func.layout.insert_inst(copy, before);
    let copied = func.dfg.first_result(copy);
    hoisted.insert(data, copied);
    copied
}

/// Returns the sums whose only uses are addresses that can encode the constant as an offset.
fn only_offsets(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> FxHashSet<Inst> {
    let mut offsets: FxHashSet<Inst> = FxHashSet::default();
    let mut others: FxHashSet<Inst> = FxHashSet::default();
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block) {
            let operand = access::address_operand(&func.dfg.insts[inst]);
            for (number, value) in func.dfg.inst_values(inst).enumerate() {
                let Some(def) = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst() else {
                    continue;
                };
                let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
                let near = || {
                    let (_, added) = loops::split_offset(func, value);
                    access::is_in_range(target, offset.wrapping_add(added as u32 as i32))
                };
                if Some(number) == operand && near() {
                    offsets.insert(def);
                } else {
                    others.insert(def);
                }
            }
        }
    }
    offsets.retain(|inst| !others.contains(inst));
    offsets
}
