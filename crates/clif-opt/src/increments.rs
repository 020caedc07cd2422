//! What a variable of a loop becomes is computed at the end of the round.
//!
//! The value in the next round can then take the register of the value in this one, which nobody needs any more. Cranelift's
//! simplification computes it at its first use, before what still needs the old one, and the loop would end with a move.

use super::edit;
use super::linear::{self, Step};
use super::loops::NaturalLoop;
use cranelift_codegen::ir::{Function, Inst, Value, ValueDef};

/// Moves increments to the ends of the loops. Gives whether there were any.
pub fn run(func: &mut Function, loops: &[NaturalLoop]) -> bool {
    let mut changed = false;
    for lp in loops {
        let (Some(args), Some(latch)) = (edit::args(func, lp.back), lp.latch(func)) else {
            continue;
        };
        let params = func.dfg.block_params(lp.header).to_vec();
        for (param, next) in params.into_iter().zip(args) {
            let next = func.dfg.resolve_aliases(next);
            let Some(inst) = increment(func, param, next) else {
                continue;
            };
            if func.layout.inst_block(inst) == Some(latch) && waits(func, inst, lp.back.inst, next) {
                func.layout.remove_inst(inst);
                func.layout.insert_inst(inst, lp.back.inst);
                changed = true;
            }
        }
    }
    changed
}

/// Whether nobody needs the result between the instruction and the branch, and the instruction is not there already.
fn waits(func: &Function, inst: Inst, branch: Inst, result: Value) -> bool {
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

/// The instruction that adds a constant to the parameter.
fn increment(func: &Function, param: Value, next: Value) -> Option<Inst> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(next) else {
        return None;
    };
    match linear::step(func, inst)? {
        Step::Plus(from, _) if func.dfg.resolve_aliases(from) == param => Some(inst),
        _ => None,
    }
}
