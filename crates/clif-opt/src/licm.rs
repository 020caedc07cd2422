//! Sums with constants leave loops in which they do not change.
//!
//! Cranelift's simplification moves everything out of loops and then makes sums and bit operations with constants again in each
//! block that uses them, which on machines with few registers costs nothing. Here it costs an instruction in every round, and
//! registers are plenty.

use super::addresses;
use super::loops::{self, NaturalLoop};
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many values leave one loop at most, so that enough registers are left for what changes in it.
const BUDGET: usize = 16;

/// Moves what does not change out of loops, from the innermost outwards. Gives whether anything changed.
pub fn run(ctx: &mut Context, target: &dyn Target, loops: &[NaturalLoop]) -> bool {
    let mut changed = false;
    for lp in loops.iter().rev() {
        changed |= hoist(&mut ctx.func, target, lp);
    }
    changed
}

/// Whether the loop calls functions. Routines of the runtime keep nearly all registers and do not count.
pub fn calls(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> bool {
    lp.blocks.iter().any(|&block| {
        func.layout
            .block_insts(block)
            .any(|inst| func.dfg.insts[inst].opcode().is_call() && !target.is_instruction(func, inst))
    })
}

/// Whether the instruction is one that Cranelift makes again where it is used.
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
    // Most loops have nothing that does not change; the chain of sums that depend on one another is followed below.
    let may_leave = |&inst: &Inst| {
        let mut args = func.dfg.inst_args(inst).iter();
        args.all(|&arg| loops::constant(func, arg).is_some() || !inside[loops::definition(func, arg)])
    };
    if !candidates.iter().any(may_leave) || calls(func, target, lp) {
        return false;
    }
    let folded = only_offsets(func, target, lp);
    let mut budget = BUDGET;
    // Equal values in different blocks are one value outside.
    let mut known: FxHashMap<InstructionData, Value> = FxHashMap::default();
    let mut changed = false;
    for inst in candidates {
        if folded.contains(&inst) {
            continue;
        }
        let invariant =
            |value: Value| loops::constant(func, value).is_some() || !inside[loops::definition(func, value)];
        let mut args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        if !args.iter().all(|&arg| invariant(arg)) || budget == 0 {
            continue;
        }
        budget -= 1;
        for arg in &mut args {
            *arg = outside(func, *arg, &inside, entry.inst, &mut known);
        }
        func.dfg.inst_args_mut(inst).copy_from_slice(&args);
        let result = func.dfg.first_result(inst);
        let data = func.dfg.insts[inst];
        func.layout.remove_inst(inst);
        if let Some(&same) = known
            .get(&data)
            .filter(|&&same| func.dfg.value_type(same) == func.dfg.value_type(result))
        {
            func.dfg.clear_results(inst);
            func.dfg.change_to_alias(result, same);
        } else {
            func.layout.insert_inst(inst, entry.inst);
            known.insert(data, result);
        }
        changed = true;
    }
    changed
}

/// The value outside of the loop: constants are made there.
fn outside(
    func: &mut Function,
    value: Value,
    inside: &SecondaryMap<Block, bool>,
    before: Inst,
    known: &mut FxHashMap<InstructionData, Value>,
) -> Value {
    let value = func.dfg.resolve_aliases(value);
    if !inside[loops::definition(func, value)] {
        return value;
    }
    let Some(inst) = func.dfg.value_def(value).inst() else {
        return value;
    };
    let data = func.dfg.insts[inst];
    if let Some(&same) = known
        .get(&data)
        .filter(|&&same| func.dfg.value_type(same) == func.dfg.value_type(value))
    {
        return same;
    }
    let copy = func.dfg.clone_inst(inst);
    func.layout.insert_inst(copy, before);
    let made = func.dfg.first_result(copy);
    known.insert(data, made);
    made
}

/// Sums that are nothing but offsets of loads and stores.
fn only_offsets(func: &Function, target: &dyn Target, lp: &NaturalLoop) -> FxHashSet<Inst> {
    let mut offsets: FxHashSet<Inst> = FxHashSet::default();
    let mut others: FxHashSet<Inst> = FxHashSet::default();
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block) {
            let place = addresses::pointer_place(&func.dfg.insts[inst]);
            for (number, value) in func.dfg.inst_values(inst).enumerate() {
                let Some(def) = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst() else {
                    continue;
                };
                let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
                let near = || {
                    let (_, added) = loops::split_offset(func, value);
                    addresses::in_reach(target, offset.wrapping_add(added as u32 as i32))
                };
                if Some(number) == place && near() {
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
