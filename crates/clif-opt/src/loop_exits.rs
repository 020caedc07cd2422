//! Splits exit edges of loops, so that moves of their arguments lie after the loop.
//!
//! Lowering splits a critical edge to place the moves of its arguments. Inside a loop, each
//! iteration would jump around that block. This pass places the block after the loop. It also sinks
//! sums with a constant into the block if the exit edge is their only use.

use super::edit;
use super::linear::{self, LinearOp};
use super::loops::NaturalLoop;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Value, ValueDef};
use rustc_hash::FxHashSet;

/// Splits critical exit edges that pass arguments. Returns whether anything changed; the
/// control-flow graph and its analyses are then out of date.
pub fn run(ctx: &mut Context, loops: &[NaturalLoop]) -> bool {
    let mut counted = None;
    let mut seen = FxHashSet::default();
    let mut changed = false;
    for lp in loops {
        for &exit in &lp.exits {
            let func = &mut ctx.func;
            let (Some(target), Some(args)) = (edit::target(func, exit), edit::args(func, exit)) else {
                continue;
            };
            let shared = ctx.cfg.pred_iter(target).count() > 1;
            let is_conditional = edit::destinations(func, exit.inst).len() == 2;
            if args.is_empty() || !shared || !is_conditional || !seen.insert((exit.inst, exit.number)) {
                continue;
            }
            let uses = counted.get_or_insert_with(|| edit::count_uses(func));
            let block = func.dfg.make_block();
            func.layout.insert_block(block, target);
            if func.layout.is_cold(target) {
                func.layout.set_cold(block);
            }
            let mut cursor = FuncCursor::new(func).at_bottom(block);
            let jump = cursor.ins().jump(target, &[]);
            edit::redirect(func, edit::Edge { inst: jump, number: 0 }, target, &args);
            edit::redirect(func, exit, block, &[]);
            for arg in args {
                sink(func, lp, uses, arg, jump);
            }
            changed = true;
        }
    }
    changed
}

/// Moves a sum with a constant before the jump, if the jump is its single use.
fn sink(func: &mut Function, lp: &NaturalLoop, uses: &mut SecondaryMap<Value, u32>, value: Value, jump: Inst) {
    let value = func.dfg.resolve_aliases(value);
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
        return;
    };
    let inside = func.layout.inst_block(inst).is_some_and(|block| lp.contains(block));
    let adds_constant = matches!(linear::linear_op(func, inst), Some(LinearOp::AddConst(..)));
    if uses[value] != 1 || !inside || !adds_constant {
        return;
    }
    func.layout.remove_inst(inst);
    func.layout.insert_inst(inst, jump);
    uses[value] = 0;
}
