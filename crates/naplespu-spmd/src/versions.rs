//! Versions of conditional code for subgroups in which the condition holds for all lanes.
//!
//! A check of bounds compares a linear index with a uniform number. It diverges in at most one
//! subgroup of a row, but linearization would put the code under a mask in all of them. So the code
//! is copied, and a scalar test selects the copy that executes without a mask:
//!
//! ```text
//!     brif c, then, join    =>    brif all_known(c), copy, rest
//!                                 rest: brif c, then, join
//! ```

use crate::builtins::{self, Builtin};
use crate::copy::copy;
use crate::divergence::{Divergence, Form, definition};
use crate::error::Error;
use crate::linearize::Flow;
use crate::loop_versions::BoundedLoop;
use crate::normalize;
use crate::remarks::{BranchOutcome, Condition, Matter, Remarks, Version};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, BlockArg, FuncRef, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use std::collections::BTreeSet;

/// Maximum number of instructions of copied code.
pub const MAX_COPIED: usize = 400;

/// Maximum number of instructions of all copies in a function. Code of nested conditions is copied
/// once for each of them.
const MAX_GROWTH: usize = 2000;

/// Maximum depth of conjunctions in a condition.
pub const MAX_DEPTH: u32 = 8;

/// Adds versions to a normalized function.
pub fn run(func: &mut Function, is_pure: impl Fn(&Function, Inst) -> bool, remarks: &mut Remarks) -> Result<(), Error> {
    let mut growth = 0;
    let mut done = BTreeSet::new();
    let mut all_known = None;
    while growth < MAX_GROWTH {
        let flow = Flow::new(func);
        let divergence = Divergence::new(func, &flow, Form::Uniform, |inst| is_pure(func, inst));
        let candidate = |block: &&Block| !done.contains(*block) && !divergence.masked.contains(*block);
        let find = |&block: &Block| {
            let side = |side| Region::find(func, &flow, &divergence, block, side);
            side(0).or_else(|| side(1))
        };
        let import = |func: &mut Function| builtins::import(func, "subgroup_all_known", Builtin::AllKnown);
        let bounded = |&block: &Block| BoundedLoop::find(func, &flow, &divergence, block);
        let is_new = |block: &&Block| !done.contains(*block);
        if let Some(found) = flow.order.iter().filter(is_new).find_map(bounded) {
            growth += found.size;
            let callee = *all_known.get_or_insert_with(|| import(func));
            found.copy(func, callee, &mut done, remarks);
            normalize::run(func)?;
            continue;
        }
        let found = flow.order.iter().filter(candidate).find_map(find);
        let Some(region) = found else {
            return Ok(());
        };
        growth += region.size;
        let callee = *all_known.get_or_insert_with(|| import(func));
        region.explain(func, &flow, remarks);
        done.insert(region.copy(func, callee, remarks));
        done.insert(region.branch);
    }
    Ok(())
}

/// Code on one side of a branch.
struct Region {
    /// The block that branches.
    branch: Block,
    condition: Value,
    /// 0 if the code is executed if the condition holds, 1 if it is executed otherwise.
    side: usize,
    /// The first block of the code.
    start: Block,
    blocks: Vec<Block>,
    /// Number of instructions.
    size: usize,
}

impl Region {
    fn find(func: &Function, flow: &Flow, divergence: &Divergence, branch: Block, side: usize) -> Option<Self> {
        let inst = func.layout.last_inst(branch)?;
        let InstructionData::Brif { arg, blocks: calls, .. } = func.dfg.insts[inst] else {
            return None;
        };
        if !divergence.divergent.contains(&branch)
            || !is_bound(func, (flow, divergence), branch, arg, side == 1, MAX_DEPTH)
        {
            return None;
        }
        let start = calls[side].block(&func.dfg.value_lists);
        let end = flow.post.immediate_post_dominator(branch)?;
        let around = flow.loops.innermost_loop(branch);
        if start == end || around.is_some_and(|around| !flow.loops.is_in_loop(end, around)) {
            return None;
        }
        let (mut blocks, mut stack) = (Vec::new(), vec![start]);
        while let Some(block) = stack.pop() {
            if block == branch {
                return None;
            }
            if block != end && !blocks.contains(&block) {
                blocks.push(block);
                stack.extend(flow.cfg.succ_iter(block));
            }
        }
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        let size = insts().count();
        let is_memory = |inst: Inst| {
            let opcode = func.dfg.insts[inst].opcode();
            opcode.can_load() || opcode.can_store()
        };
        let has_table = insts().any(|inst| func.dfg.insts[inst].opcode() == Opcode::BrTable);
        let enters_elsewhere = blocks.iter().any(|&block| {
            let outside = |pred: Block| !blocks.contains(&pred) && (block != start || pred != branch);
            flow.cfg.pred_iter(block).any(|pred| outside(pred.block))
        });
        if size > MAX_COPIED || has_table || enters_elsewhere || !insts().any(is_memory) || escapes(func, &blocks) {
            return None;
        }
        Some(Self {
            branch,
            condition: arg,
            side,
            start,
            blocks,
            size,
        })
    }

    /// Adds a remark about the branch.
    fn explain(&self, func: &Function, flow: &Flow, remarks: &mut Remarks) {
        if let Some(branch) = func.layout.last_inst(self.branch) {
            let version = Version {
                all_lanes: true,
                ..remarks.version(branch)
            };
            let matter = Matter::Branch {
                condition: Condition::Bound,
                outcome: BranchOutcome::Versioned,
            };
            remarks.add(func, branch, flow.loops_of(self.branch).count(), version, matter);
        }
    }

    /// Copies the code and branches to the copy. Returns the block with the old branch.
    fn copy(&self, func: &mut Function, all_known: FuncRef, remarks: &mut Remarks) -> Block {
        let copy = copy(func, &self.blocks);
        remarks.copied(&copy, false);
        self.branch_to(func, copy.blocks[&self.start], all_known)
    }

    fn branch_to(&self, func: &mut Function, copy: Block, all_known: FuncRef) -> Block {
        let rest = func.dfg.make_block();
        func.layout.insert_block_after(rest, self.branch);
        let Some(inst) = func.layout.last_inst(self.branch) else {
            return rest;
        };
        func.layout.remove_inst(inst);
        let dfg = &func.dfg;
        let start = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)[self.side];
        let args: Vec<BlockArg> = start.args(&dfg.value_lists).collect();
        // The condition is computed again where it is needed as lanes.
        let again = copy_condition(func, self.condition, rest, false, MAX_DEPTH);
        func.layout.append_inst(inst, rest);
        let condition = self.condition;
        let holds = if self.side == 0 {
            condition
        } else {
            copy_condition(func, condition, self.branch, true, MAX_DEPTH)
        };
        func.dfg
            .map_inst_values(inst, |value| if value == condition { again } else { value });
        let mut cursor = FuncCursor::new(func).at_bottom(self.branch);
        cursor.set_srcloc(cursor.func.srcloc(inst));
        let call = cursor.ins().call(all_known, &[holds]);
        let all = cursor.func.dfg.first_result(call);
        cursor.ins().brif(all, copy, &args, rest, &[]);
        rest
    }
}

/// Returns whether blocks define values that other blocks use.
fn escapes(func: &Function, blocks: &[Block]) -> bool {
    let mut defined: BTreeSet<Value> = BTreeSet::new();
    for &block in blocks {
        defined.extend(func.dfg.block_params(block));
        for inst in func.layout.block_insts(block) {
            defined.extend(func.dfg.inst_results(inst));
        }
    }
    let outside = func.layout.blocks().filter(|block| !blocks.contains(block));
    outside
        .flat_map(|block| func.layout.block_insts(block))
        .any(|inst| func.dfg.inst_values(inst).any(|value| defined.contains(&value)))
}

/// Returns whether a condition is a compare of a linear and a uniform number, or a conjunction of
/// such compares and uniform conditions; if `negated`, whether its negation is.
pub fn is_bound(
    func: &Function,
    (flow, divergence): (&Flow, &Divergence),
    block: Block,
    value: Value,
    negated: bool,
    depth: u32,
) -> bool {
    let form = |value: Value| divergence.form_at(flow, block, value);
    if form(value) == Form::Uniform {
        return true;
    }
    let Some(inst) = definition(func, value) else {
        return false;
    };
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { args, cond, .. } => {
            cond != IntCC::Equal
                && cond != IntCC::NotEqual
                && matches!(
                    args.map(form),
                    [Form::Linear(_), Form::Uniform] | [Form::Uniform, Form::Linear(_)]
                )
        }
        InstructionData::Binary { opcode, args } if opcode == conjunction(negated) && depth > 0 => args
            .iter()
            .all(|&arg| is_bound(func, (flow, divergence), block, arg, negated, depth - 1)),
        _ => false,
    }
}

/// The operation whose operands all hold if its result does, or all do not hold if it does not.
fn conjunction(negated: bool) -> Opcode {
    if negated { Opcode::Bor } else { Opcode::Band }
}

/// Computes a condition of [`is_bound`], or its negation, once more at the end of a block.
pub fn copy_condition(func: &mut Function, value: Value, block: Block, negated: bool, depth: u32) -> Value {
    let data = definition(func, value).map(|inst| func.dfg.insts[inst]);
    match data {
        Some(InstructionData::IntCompare { args: [x, y], cond, .. }) => {
            let cond = if negated { cond.complement() } else { cond };
            FuncCursor::new(func).at_bottom(block).ins().icmp(cond, x, y)
        }
        Some(InstructionData::Binary { opcode, args }) if opcode == conjunction(negated) && depth > 0 => {
            let [x, y] = args.map(|arg| copy_condition(func, arg, block, negated, depth - 1));
            FuncCursor::new(func).at_bottom(block).ins().band(x, y)
        }
        _ if !negated => value,
        _ => {
            let ty = func.dfg.value_type(value);
            let mut cursor = FuncCursor::new(func).at_bottom(block);
            let zero = cursor.ins().iconst(ty, 0);
            cursor.ins().icmp(IntCC::Equal, value, zero)
        }
    }
}
