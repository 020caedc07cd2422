//! Reassociation of addresses in loops: the order of terms follows the loops in which they change.
//!
//! `base + ((row + i + 1) << 2)` becomes `(base + (row << 2)) + (i << 2)` with an offset of 4.
//! Terms that change least are added first, so that invariant partial sums can leave the loop. The
//! order does not change the result, because address arithmetic is modulo 2^32. The pass skips sums
//! in which the order does not matter; [`super::simplify`] folds their constants into offsets.

use super::access;
use super::linear::{self, LinearOp, LinearSum};
use super::loops;
use crate::Target;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Inst, InstBuilder, Value, types};

/// Reassociates addresses. Requires the loop analysis. Returns whether anything changed.
pub fn run(ctx: &mut Context, target: &dyn Target) -> bool {
    if ctx.loop_analysis.loops().len() == 0 {
        return false;
    }
    let accesses = accesses(ctx);
    if accesses.is_empty() {
        return false;
    }
    let other_uses = find_other_uses(ctx);
    let mut changed = false;
    for inst in accesses {
        changed |= rewrite(ctx, target, inst, &other_uses);
    }
    changed
}

/// Returns the loads and stores in loops whose address profits from reassociation.
fn accesses(ctx: &Context) -> Vec<Inst> {
    let func = &ctx.func;
    let mut found = Vec::new();
    for &block in ctx.domtree.cfg_rpo() {
        if ctx.loop_analysis.innermost_loop(block).is_none() {
            continue;
        }
        for inst in func.layout.block_insts(block) {
            if let Some(pointer) = access::address(func, inst)
                && let Some(sum) = LinearSum::of(func, pointer, &|_, _| true)
                && is_profitable(&sum, &by_level(ctx, block, &sum))
            {
                found.push(inst);
            }
        }
    }
    found
}

/// Returns whether the order of the terms matters.
fn is_profitable(sum: &LinearSum, levels: &[Level]) -> bool {
    levels.len() > 1 && sum.terms.len() > 2
}

/// Finds the values that have uses other than in addresses.
fn find_other_uses(ctx: &Context) -> SecondaryMap<Value, bool> {
    let func = &ctx.func;
    let mut other_uses: SecondaryMap<Value, bool> = SecondaryMap::with_capacity(func.dfg.num_values());
    for &block in ctx.domtree.cfg_postorder() {
        let mut at = func.layout.last_inst(block);
        while let Some(inst) = at {
            at = func.layout.prev_inst(inst);
            let address_only = || {
                func.dfg
                    .inst_results(inst)
                    .first()
                    .is_some_and(|&result| !other_uses[result])
            };
            if linear::linear_op(func, inst).is_some() && address_only() {
                continue;
            }
            let operand = access::address_operand(&func.dfg.insts[inst]);
            for (number, value) in func.dfg.inst_values(inst).enumerate() {
                if Some(number) != operand {
                    other_uses[value] = true;
                }
            }
        }
    }
    other_uses
}

/// The terms that change in one loop of a loop nest.
type Level = Vec<(Value, u32)>;

/// Rewrites the address of one access.
fn rewrite(ctx: &mut Context, target: &dyn Target, inst: Inst, other_uses: &SecondaryMap<Value, bool>) -> bool {
    let func = &ctx.func;
    let (Some(pointer), Some(block)) = (access::address(func, inst), func.layout.inst_block(inst)) else {
        return false;
    };
    let opens = |inst: Inst, op: LinearOp| match op {
        LinearOp::AddConst(..) => true,
        LinearOp::Add(..) | LinearOp::Sub(..) | LinearOp::MulConst(..) => !other_uses[func.dfg.first_result(inst)],
    };
    let Some(sum) = LinearSum::of(func, pointer, &opens) else {
        return false;
    };
    let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
    let levels = by_level(ctx, block, &sum);
    if !is_profitable(&sum, &levels) {
        return false;
    }
    let total = offset.wrapping_add(sum.constant.cast_signed());
    // The part of the constant that does not fit an offset is added to the outermost level.
    // Neighboring accesses share that sum.
    let (far, near) = if access::is_in_range(target, total) {
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
    access::set_address(&mut ctx.func, inst, pointer, near);
    true
}

/// Groups the terms by the innermost loop around the access in which they change, outermost first.
fn by_level(ctx: &Context, block: Block, sum: &LinearSum) -> Vec<Level> {
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

/// Returns the depth of the innermost loop around the block that defines the value, or 0.
fn level_of(ctx: &Context, block: Block, value: Value) -> usize {
    let loops = &ctx.loop_analysis;
    let defined = loops::defining_block(&ctx.func, value);
    let mut at = loops.innermost_loop(block);
    while let Some(inner) = at {
        if loops.is_in_loop(defined, inner) {
            return loops.loop_level(loops.loop_header(inner)).level();
        }
        at = loops.loop_parent(inner);
    }
    0
}
