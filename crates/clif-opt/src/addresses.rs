//! Addresses in loops, in an order in which as much as possible does not change.
//!
//! `base + ((row + i + 1) << 2)` becomes `(base + (row << 2)) + (i << 2)` with an offset of 4. Terms are added from those that change
//! least to those that change most, so that sums of what stays the same leave the loop. Addresses are numbers modulo 2^32, so any
//! order gives the same. What has nothing to be ordered is left to [`super::simplify`], which makes constants the offsets of accesses.

use super::linear::{self, Step, Sum};
use super::loops;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Value, types};

/// Rewrites addresses. The loops of the function must have been found. Gives whether anything changed.
pub fn run(ctx: &mut Context, target: &dyn Target) -> bool {
    if ctx.loop_analysis.loops().len() == 0 {
        return false;
    }
    let accesses = accesses(ctx);
    if accesses.is_empty() {
        return false;
    }
    let elsewhere = used_elsewhere(ctx);
    let mut changed = false;
    for inst in accesses {
        changed |= rewrite(ctx, target, inst, &elsewhere);
    }
    changed
}

/// Loads and stores in loops whose address is a sum that may have to be ordered.
fn accesses(ctx: &Context) -> Vec<Inst> {
    let func = &ctx.func;
    let mut found = Vec::new();
    for &block in ctx.domtree.cfg_rpo() {
        if ctx.loop_analysis.innermost_loop(block).is_none() {
            continue;
        }
        for inst in func.layout.block_insts(block) {
            if let Some(pointer) = pointer(func, inst)
                && let Some(sum) = Sum::of(func, pointer, &|_, _| true)
                && is_worth(&sum, &by_level(ctx, block, &sum))
            {
                found.push(inst);
            }
        }
    }
    found
}

/// Whether the order of the terms matters.
fn is_worth(sum: &Sum, levels: &[Level]) -> bool {
    levels.len() > 1 && sum.terms.len() > 2
}

/// The address of a load or store with an offset.
pub fn pointer(func: &Function, inst: Inst) -> Option<Value> {
    let place = pointer_place(&func.dfg.insts[inst])?;
    let value = func.dfg.resolve_aliases(func.dfg.inst_args(inst)[place]);
    (func.dfg.value_type(value) == types::I32).then_some(value)
}

/// Which argument is the address of a load or store with an offset.
pub fn pointer_place(data: &InstructionData) -> Option<usize> {
    match data {
        InstructionData::Load { .. } => Some(0),
        InstructionData::Store { .. } => Some(1),
        _ => None,
    }
}

/// Gives a load or store another address.
pub fn set_address(func: &mut Function, inst: Inst, pointer: Value, constant: i32) {
    let Some(place) = pointer_place(&func.dfg.insts[inst]) else {
        return;
    };
    if let InstructionData::Load { offset, .. } | InstructionData::Store { offset, .. } = &mut func.dfg.insts[inst] {
        *offset = constant.into();
    }
    func.dfg.inst_args_mut(inst)[place] = pointer;
}

/// Whether an access with this offset is one instruction.
pub fn in_reach(target: &dyn Target, offset: i32) -> bool {
    let offsets = target.offsets();
    // Room for a word taken apart.
    (*offsets.start()..=*offsets.end() - 4).contains(&offset)
}

/// The values that are used otherwise than in addresses.
fn used_elsewhere(ctx: &Context) -> SecondaryMap<Value, bool> {
    let func = &ctx.func;
    let mut elsewhere: SecondaryMap<Value, bool> = SecondaryMap::with_capacity(func.dfg.num_values());
    for &block in ctx.domtree.cfg_postorder() {
        let mut at = func.layout.last_inst(block);
        while let Some(inst) = at {
            at = func.layout.prev_inst(inst);
            let address_only = || {
                func.dfg
                    .inst_results(inst)
                    .first()
                    .is_some_and(|&result| !elsewhere[result])
            };
            if linear::step(func, inst).is_some() && address_only() {
                continue;
            }
            let place = pointer_place(&func.dfg.insts[inst]);
            for (number, value) in func.dfg.inst_values(inst).enumerate() {
                if Some(number) != place {
                    elsewhere[value] = true;
                }
            }
        }
    }
    elsewhere
}

/// One level of a nest of loops: what is added there.
type Level = Vec<(Value, u32)>;

/// Rewrites the address of one access.
fn rewrite(ctx: &mut Context, target: &dyn Target, inst: Inst, elsewhere: &SecondaryMap<Value, bool>) -> bool {
    let func = &ctx.func;
    let (Some(pointer), Some(block)) = (pointer(func, inst), func.layout.inst_block(inst)) else {
        return false;
    };
    let opens = |inst: Inst, step: Step| match step {
        Step::Plus(..) => true,
        Step::Add(..) | Step::Minus(..) | Step::Times(..) => !elsewhere[func.dfg.first_result(inst)],
    };
    let Some(sum) = Sum::of(func, pointer, &opens) else {
        return false;
    };
    let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
    let levels = by_level(ctx, block, &sum);
    if !is_worth(&sum, &levels) {
        return false;
    }
    let total = offset.wrapping_add(sum.constant.cast_signed());
    // What no instruction reaches is added where the least changes; neighbours share it.
    let (far, near) = if in_reach(target, total) {
        (0, total)
    } else {
        (total & !0x7f, total & 0x7f)
    };
    let mut cursor = FuncCursor::new(&mut ctx.func).at_inst(inst);
    cursor.use_srcloc(inst);
    let mut total: Option<Value> = None;
    for level in levels {
        let mut next = linear::add_terms(&mut cursor, total, &level);
        if let (None, Some(base), true) = (total, next, far != 0) {
            let far = cursor.ins().iconst(types::I32, i64::from(far));
            next = Some(cursor.ins().iadd(base, far));
        }
        total = next;
    }
    let Some(pointer) = total else {
        return false;
    };
    set_address(&mut ctx.func, inst, pointer, near);
    true
}

/// The terms by how deep in the loops around the access they change, the outermost first.
fn by_level(ctx: &Context, block: Block, sum: &Sum) -> Vec<Level> {
    let mut levels: Vec<(usize, Level)> = Vec::new();
    for &(value, factor) in &sum.terms {
        let level = level_of(ctx, block, value);
        match levels.iter_mut().find(|known| known.0 == level) {
            Some(known) => known.1.push((value, factor)),
            None => levels.push((level, vec![(value, factor)])),
        }
    }
    levels.sort_unstable_by_key(|level| level.0);
    levels.into_iter().map(|level| level.1).collect()
}

/// How many of the loops around the block the value changes in.
fn level_of(ctx: &Context, block: Block, value: Value) -> usize {
    let loops = &ctx.loop_analysis;
    let defined = loops::definition(&ctx.func, value);
    let mut at = loops.innermost_loop(block);
    while let Some(inner) = at {
        if loops.is_in_loop(defined, inner) {
            return loops.loop_level(loops.loop_header(inner)).level();
        }
        at = loops.loop_parent(inner);
    }
    0
}
