//! The reductions of a function. Each pass returns a candidate for an index from 0 on, or `None`
//! after the last one. Most candidates are invalid or not smaller; the caller checks.

use super::edit::{constant, insts, remove, remove_unreachable, ways_out};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};

/// A reduction: returns the function without the element with this index.
pub type Pass = fn(&Function, usize) -> Option<Function>;

/// All passes; those that remove most come first.
pub const ALL: &[Pass] = &[
    trap_for_end,
    one_way,
    without_insts,
    without_inst,
    result_for_operand,
    without_param,
    merged,
    smaller_constant,
    without_extras,
    without_unused,
];

/// Returns the size of a function, for lexicographic comparison: blocks, non-constant instructions,
/// edges, parameters, constants, extras (labels, locations, tags, stack limit), bits of constants,
/// and declarations.
pub fn size(func: &Function) -> [usize; 8] {
    let insts = insts(func);
    let constants = insts
        .iter()
        .filter(|&&inst| is_constant(func.dfg.insts[inst].opcode()))
        .count();
    let ways = insts.iter().map(|&inst| ways_out(func, inst).len()).sum();
    let blocks = func.layout.blocks();
    let params = blocks.map(|block| func.dfg.block_params(block).len()).sum();
    let extras = usize::from(func.dfg.values_labels.is_some())
        + usize::from(func.stack_limit.is_some())
        + usize::from(!func.debug_tags.is_empty())
        + insts.iter().filter(|&&inst| !func.srcloc(inst).is_default()).count();
    let large = |&inst: &Inst| match func.dfg.insts[inst] {
        InstructionData::UnaryImm { imm, .. } => 64 - imm.bits().unsigned_abs().leading_zeros() as usize,
        _ => 0,
    };
    let declared = func.sized_stack_slots.len()
        + func.global_values.len()
        + func.dfg.ext_funcs.len()
        + func.dfg.signatures.len()
        + func.dfg.jump_tables.len();
    [
        func.layout.blocks().count(),
        insts.len() - constants,
        ways,
        params,
        constants,
        extras,
        insts.iter().map(large).sum(),
        declared,
    ]
}

fn is_constant(opcode: Opcode) -> bool {
    use Opcode::{F16const, F32const, F64const, F128const, Iconst, Vconst};
    matches!(opcode, Iconst | F16const | F32const | F64const | F128const | Vconst)
}

/// Removes an instruction that is not a terminator; constants replace its used results.
fn take_out(func: &mut Function, inst: Inst) {
    let is_used = func.dfg.inst_results(inst).iter().any(|&result| is_used(func, result));
    if is_used {
        remove(func, inst);
    } else {
        func.layout.remove_inst(inst);
    }
}

fn is_used(func: &Function, value: Value) -> bool {
    let is_it = |user: Value| func.dfg.resolve_aliases(user) == value;
    insts(func).iter().any(|&user| func.dfg.inst_values(user).any(is_it))
}

/// Removes many instructions at once: a half, a quarter, an eighth, from the end.
fn without_insts(func: &Function, at: usize) -> Option<Function> {
    let insts = insts(func);
    let (mut level, mut place) = (1, at);
    while place >= 1 << level {
        place -= 1 << level;
        level += 1;
    }
    let chunk = insts.len() >> level;
    if chunk < 2 {
        return None;
    }
    let mut func = func.clone();
    for &inst in insts.iter().rev().skip(place * chunk).take(chunk) {
        if !func.dfg.insts[inst].opcode().is_terminator() {
            take_out(&mut func, inst);
        }
    }
    Some(func)
}

/// Removes one instruction.
fn without_inst(func: &Function, at: usize) -> Option<Function> {
    // From the end, so that users are removed before their operands.
    let inst = *insts(func).iter().rev().nth(at)?;
    let mut func = func.clone();
    if !func.dfg.insts[inst].opcode().is_terminator() {
        take_out(&mut func, inst);
    }
    Some(func)
}

/// Replaces an instruction by its first operand of the same type.
fn result_for_operand(func: &Function, at: usize) -> Option<Function> {
    let inst = *insts(func).iter().rev().nth(at)?;
    let mut func = func.clone();
    let &[result] = func.dfg.inst_results(inst) else {
        return Some(func);
    };
    let ty = func.dfg.value_type(result);
    let like = |&&arg: &&Value| func.dfg.value_type(arg) == ty;
    if let Some(&arg) = func.dfg.inst_args(inst).iter().find(like) {
        func.dfg.clear_results(inst);
        func.dfg.change_to_alias(result, arg);
        func.layout.remove_inst(inst);
    }
    Some(func)
}

/// Replaces the terminator of a block by a trap and removes blocks that become unreachable.
fn trap_for_end(func: &Function, at: usize) -> Option<Function> {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let last = func.layout.last_inst(*blocks.get(at)?)?;
    let mut func = func.clone();
    if func.dfg.insts[last].opcode() != Opcode::Trap {
        remove(&mut func, last);
    }
    remove_unreachable(&mut func);
    Some(func)
}

/// Replaces a branch by a jump to one of its targets.
fn one_way(func: &Function, at: usize) -> Option<Function> {
    let branches = insts(func).into_iter().filter(|&inst| {
        use Opcode::{BrTable, Brif};
        matches!(func.dfg.insts[inst].opcode(), Brif | BrTable)
    });
    let mut ways = branches.flat_map(|inst| ways_out(func, inst).into_iter().map(move |way| (inst, way)));
    let (inst, way) = ways.nth(at)?;
    let mut func = func.clone();
    let target = way.block(&func.dfg.value_lists);
    let args: Vec<BlockArg> = way.args(&func.dfg.value_lists).collect();
    let mut cursor = FuncCursor::new(&mut func).at_inst(inst);
    cursor.ins().jump(target, &args);
    cursor.goto_inst(inst);
    cursor.remove_inst();
    remove_unreachable(&mut func);
    Some(func)
}

/// Replaces a parameter of a block other than the entry by a constant.
fn without_param(func: &Function, at: usize) -> Option<Function> {
    let blocks: Vec<Block> = func.layout.blocks().skip(1).collect();
    let params = blocks.iter().flat_map(|&block| func.dfg.block_params(block));
    let &param = params.clone().nth(at)?;
    let mut func = func.clone();
    let ValueDef::Param(block, number) = func.dfg.value_def(param) else {
        return Some(func);
    };
    let ty = func.dfg.value_type(param);
    for inst in insts(&func) {
        let mut changed = false;
        let dfg = &mut func.dfg;
        let calls = dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        for call in calls {
            if call.block(&dfg.value_lists) != block {
                continue;
            }
            let args: Vec<BlockArg> = call.args(&dfg.value_lists).collect();
            call.clear(&mut dfg.value_lists);
            for (place, arg) in args.into_iter().enumerate() {
                if place != number {
                    call.append_argument(arg, &mut dfg.value_lists);
                }
            }
            changed = true;
        }
        if changed && func.dfg.insts[inst].opcode().is_call() {
            // Arguments of handlers are of another kind.
            return Some(func);
        }
    }
    func.dfg.remove_block_param(param);
    let mut cursor = FuncCursor::new(&mut func).at_first_insertion_point(block);
    if let Some(value) = constant(&mut cursor, ty, 1) {
        func.dfg.change_to_alias(param, value);
    }
    Some(func)
}

/// Merges a block into its only predecessor, if that ends with a jump to it.
fn merged(func: &Function, at: usize) -> Option<Function> {
    let blocks: Vec<Block> = func.layout.blocks().skip(1).collect();
    let &block = blocks.get(at)?;
    let mut func = func.clone();
    let goes_there = |&inst: &Inst| {
        let ways = ways_out(&func, inst);
        ways.iter().any(|way| way.block(&func.dfg.value_lists) == block)
    };
    let from: Vec<Inst> = insts(&func).into_iter().filter(goes_there).collect();
    let &[jump] = from.as_slice() else { return Some(func) };
    let InstructionData::Jump { destination, .. } = func.dfg.insts[jump] else {
        return Some(func);
    };
    let before = func.layout.inst_block(jump)?;
    if before == block {
        return Some(func);
    }
    let args: Vec<Value> = destination
        .args(&func.dfg.value_lists)
        .filter_map(|arg| arg.as_value())
        .collect();
    let params = func.dfg.detach_block_params(block);
    let params: Vec<Value> = params.as_slice(&func.dfg.value_lists).to_vec();
    for (param, arg) in params.into_iter().zip(args) {
        func.dfg.change_to_alias(param, arg);
    }
    func.layout.remove_inst(jump);
    while let Some(inst) = func.layout.first_inst(block) {
        func.layout.remove_inst(inst);
        func.layout.append_inst(inst, before);
    }
    func.layout.remove_block(block);
    Some(func)
}

/// Replaces an integer constant by 0, 1, or half of it.
fn smaller_constant(func: &Function, at: usize) -> Option<Function> {
    let constants = insts(func)
        .into_iter()
        .filter(|&inst| matches!(func.dfg.insts[inst], InstructionData::UnaryImm { .. }));
    let inst = constants.into_iter().nth(at / 3)?;
    let mut func = func.clone();
    if let InstructionData::UnaryImm { imm, .. } = &mut func.dfg.insts[inst] {
        let smaller = [0, 1, imm.bits() / 2];
        *imm = smaller[at % 3].into();
    }
    Some(func)
}

/// Removes labels, the stack limit, tags, or source locations.
fn without_extras(func: &Function, at: usize) -> Option<Function> {
    let mut func = func.clone();
    match at {
        0 => func.dfg.values_labels = None,
        1 => func.stack_limit = None,
        2 => func.debug_tags.clear(),
        3 => func.srclocs.clear(),
        _ => return None,
    }
    Some(func)
}

/// Removes unused stack slots, functions, signatures or global values from the end, so that the
/// other numbers do not change.
fn without_unused(func: &Function, at: usize) -> Option<Function> {
    let mut func = func.clone();
    let mut texts: Vec<String> = insts(&func)
        .iter()
        .map(|&inst| func.dfg.display_inst(inst).to_string())
        .collect();
    texts.extend(func.dfg.ext_funcs.values().map(|callee| callee.signature.to_string()));
    texts.extend(func.stack_limit.map(|global| global.to_string()));
    // Global values may be based on others.
    texts.extend(func.global_values.values().map(ToString::to_string));
    let is_named = |name: String| {
        let mut words = texts
            .iter()
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        words.any(|word| word == name)
    };
    match at {
        0 if func.dynamic_stack_slots.is_empty() => {
            truncate(&mut func.sized_stack_slots, |slot| is_named(slot.to_string()))
        }
        0 => {}
        1 => truncate(&mut func.dfg.ext_funcs, |callee| is_named(callee.to_string())),
        2 => truncate(&mut func.dfg.signatures, |signature| is_named(signature.to_string())),
        3 => truncate(&mut func.global_values, |global| is_named(global.to_string())),
        _ => return None,
    }
    Some(func)
}

/// Removes the unused entries at the end.
fn truncate<K: EntityRef, V: Clone>(map: &mut PrimaryMap<K, V>, is_used: impl Fn(K) -> bool) {
    let unused = map.keys().rev().take_while(|&key| !is_used(key)).count();
    let kept: Vec<V> = map.values().take(map.len() - unused).cloned().collect();
    map.clear();
    map.extend(kept);
}
