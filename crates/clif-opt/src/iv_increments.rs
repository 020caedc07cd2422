//! Moves increments of induction variables to the end of the latch.
//!
//! The next value can then reuse the register of the current value, which is dead there.
//! Cranelift's simplification places the increment at its first use, before the last uses of the
//! current value, and the loop would need a copy in each iteration.

use super::edit;
use super::linear::{self, LinearOp};
use super::loops::NaturalLoop;
use cranelift_codegen::ir::{Function, Inst, Value, ValueDef};

/// Moves increments to the ends of latches. Returns whether anything changed.
pub fn run(func: &mut Function, loops: &[NaturalLoop]) -> bool {
    let mut changed = false;
    for lp in loops {
        let (Some(args), Some(latch)) = (edit::args(func, lp.back_edge), lp.latch(func)) else {
            continue;
        };
        let params = func.dfg.block_params(lp.header).to_vec();
        for (param, next) in params.into_iter().zip(args) {
            let next = func.dfg.resolve_aliases(next);
            let Some(inst) = increment(func, param, next) else {
                continue;
            };
            if func.layout.inst_block(inst) == Some(latch) && can_sink(func, inst, lp.back_edge.inst, next) {
                func.layout.remove_inst(inst);
                func.layout.insert_inst(inst, lp.back_edge.inst);
                changed = true;
            }
        }
    }
    changed
}

/// Returns whether the result has no use between the instruction and the branch, and at least one
/// instruction lies between them.
fn can_sink(func: &Function, inst: Inst, branch: Inst, result: Value) -> bool {
    let mut at = func.layout.next_inst(inst);
    let mut between = false;
    while let Some(next) = at.filter(|&next| next != branch) {
        if func
            .dfg
            .inst_values(next)
            .any(|value| func.dfg.resolve_aliases(value) == result)
        {
            return false;
        }
        between = true;
        at = func.layout.next_inst(next);
    }
    between && !func.dfg.inst_args(branch).contains(&result)
}

/// Returns the instruction that computes `next` by adding a constant to the parameter.
fn increment(func: &Function, param: Value, next: Value) -> Option<Inst> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(next) else {
        return None;
    };
    match linear::linear_op(func, inst)? {
        LinearOp::AddConst(from, _) if func.dfg.resolve_aliases(from) == param => Some(inst),
        _ => None,
    }
}
