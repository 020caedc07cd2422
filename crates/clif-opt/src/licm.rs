//! Loop-invariant code motion of what Cranelift leaves in loops.
//!
//! Cranelift's simplification rematerializes sums and bit operations with constants in each block
//! that uses them, to save registers, and hoists no operation that depends on one of them. This
//! machine has many registers, and each of these operations costs an instruction in every iteration.

use super::access;
use super::edit;
use super::loops::{self, NaturalLoop};
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of values hoisted out of one loop that the loop uses; limits register
/// pressure.
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

/// Returns whether the instruction only computes its single result from values that are not all
/// constants.
fn is_candidate(func: &Function, inst: Inst) -> bool {
    edit::is_pure(func.dfg.insts[inst].opcode())
        && func.dfg.inst_results(inst).len() == 1
        && func.dfg.inst_args(inst).iter().any(|&arg| !is_constant(func, arg))
}

/// Returns whether a value is a constant, or a vector of one. Such values are never hoisted for
/// their own sake, because instructions can contain them.
fn is_constant(func: &Function, value: Value) -> bool {
    let Some(inst) = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst() else {
        return false;
    };
    match func.dfg.insts[inst].opcode() {
        Opcode::Iconst | Opcode::F16const | Opcode::F32const | Opcode::F64const | Opcode::Vconst => true,
        Opcode::Splat => is_constant(func, func.dfg.inst_args(inst)[0]),
        _ => false,
    }
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
        candidates.extend(func.layout.block_insts(block).filter(|&inst| is_candidate(func, inst)));
    }
    // Quick exit: most loops have no invariant operation.
    let is_hoistable = |&inst: &Inst| {
        let mut args = func.dfg.inst_args(inst).iter();
        args.all(|&arg| is_constant(func, arg) || !inside[loops::defining_block(func, arg)])
    };
    if !candidates.iter().any(is_hoistable) || has_calls(func, target, lp) {
        return false;
    }
    let folded = only_offsets(func, target, lp);
    let chosen = within_budget(func, lp, invariants(func, candidates, &folded, &inside));
    // Equal operations of different blocks share one hoisted value.
    let mut hoisted: FxHashMap<InstructionData, Value> = FxHashMap::default();
    let changed = !chosen.is_empty();
    for inst in chosen {
        let mut args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
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
    }
    changed
}

/// Returns the candidates whose operands are invariant, in an order in which operands come first.
fn invariants(
    func: &Function,
    candidates: Vec<Inst>,
    folded: &FxHashSet<Inst>,
    inside: &SecondaryMap<Block, bool>,
) -> Vec<Inst> {
    let mut known: FxHashSet<Value> = FxHashSet::default();
    let mut chosen = Vec::new();
    for inst in candidates {
        let invariant = |&arg: &Value| {
            let arg = func.dfg.resolve_aliases(arg);
            is_constant(func, arg) || known.contains(&arg) || !inside[loops::defining_block(func, arg)]
        };
        if !folded.contains(&inst) && func.dfg.inst_args(inst).iter().all(invariant) {
            known.insert(func.dfg.first_result(inst));
            chosen.push(inst);
        }
    }
    chosen
}

/// Returns as many of these instructions as leave at most [`BUDGET`] values that the loop uses.
fn within_budget(func: &Function, lp: &NaturalLoop, mut chosen: Vec<Inst>) -> Vec<Inst> {
    let insts: FxHashSet<Inst> = chosen.iter().copied().collect();
    let mut used: FxHashSet<Value> = FxHashSet::default();
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block).filter(|inst| !insts.contains(inst)) {
            used.extend(func.dfg.inst_values(inst).map(|value| func.dfg.resolve_aliases(value)));
        }
    }
    let is_used = |inst: &Inst| used.contains(&func.dfg.first_result(*inst));
    if chosen.iter().filter(|&inst| is_used(inst)).count() > BUDGET {
        chosen.truncate(BUDGET);
    }
    chosen
}

/// Returns an invariant value outside of the loop; copies constants to the preheader.
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
    // The constant that a vector consists of.
    let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
    let args: Vec<Value> = args
        .into_iter()
        .map(|arg| value_outside(func, arg, inside, before, hoisted))
        .collect();
    let mut data = func.dfg.insts[inst];
    data.arguments_mut(&mut func.dfg.value_lists).copy_from_slice(&args);
    if let Some(&same) = hoisted
        .get(&data)
        .filter(|&&same| func.dfg.value_type(same) == func.dfg.value_type(value))
    {
        return same;
    }
    let copy = func.dfg.clone_inst(inst);
    func.dfg.inst_args_mut(copy).copy_from_slice(&args);
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
