//! What is passed along on the way out of a loop is moved after the loop.
//!
//! An edge whose source has other successors and whose target has other predecessors gets a block for the moves of its arguments.
//! Inside a loop that block stands in the way: every round jumps around it. A block that is not part of the loop is laid out
//! after it. A sum with a constant that is only passed along is computed there as well.

use super::edit;
use super::linear::{self, Step};
use super::loops::NaturalLoop;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Value, ValueDef};
use rustc_hash::FxHashSet;

/// Gives the edges out of the loops blocks of their own where they pass arguments. Gives whether there were any; then the control
/// flow graph and all that follows from it are out of date.
pub fn run(ctx: &mut Context, loops: &[NaturalLoop]) -> bool {
    let mut known = None;
    let mut done = FxHashSet::default();
    let mut changed = false;
    for lp in loops {
        for &exit in &lp.exits {
            let func = &mut ctx.func;
            let (Some(target), Some(args)) = (edit::target(func, exit), edit::args(func, exit)) else {
                continue;
            };
            let shared = ctx.cfg.pred_iter(target).count() > 1;
            let chooses = edit::destinations(func, exit.inst).len() == 2;
            if args.is_empty() || !shared || !chooses || !done.insert((exit.inst, exit.number)) {
                continue;
            }
            let uses = known.get_or_insert_with(|| edit::count_uses(func));
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

/// Moves a sum with a constant before the jump, if that alone uses it.
fn sink(func: &mut Function, lp: &NaturalLoop, uses: &mut SecondaryMap<Value, u32>, value: Value, jump: Inst) {
    let value = func.dfg.resolve_aliases(value);
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
        return;
    };
    let inside = func.layout.inst_block(inst).is_some_and(|block| lp.contains(block));
    let plus = matches!(linear::step(func, inst), Some(Step::Plus(..)));
    if uses[value] != 1 || !inside || !plus {
        return;
    }
    func.layout.remove_inst(inst);
    func.layout.insert_inst(inst, jump);
    uses[value] = 0;
}
