//! Versions of loops for the iterations that all lanes execute.
//!
//! If a linear index is compared with a uniform number in the header of a loop, as in
//! `for (i = id.x; i < length; i += 64)`, the lanes leave the loop in different iterations, but
//! only in the last ones. So a copy of the loop, without masks, precedes it:
//!
//! ```text
//!     header(x): brif c, body, exit    =>    copy(x):   brif all_known(c), body', header(x)
//!                                            header(x): brif c, body, exit
//! ```

use crate::copy::copy;
use crate::divergence::Divergence;
use crate::linearize::Flow;
use crate::remarks::Remarks;
use crate::versions::{self, MAX_DEPTH};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, InstructionData};
use std::collections::BTreeSet;

/// A loop whose only exit is a check of bounds in its header.
pub struct BoundedLoop {
    header: Block,
    preheader: Block,
    blocks: Vec<Block>,
    /// 0 if the loop goes on while the condition holds, 1 if it ends then.
    side: usize,
    /// Number of instructions.
    pub size: usize,
}

impl BoundedLoop {
    /// Returns the loop with this header.
    pub fn find(func: &Function, flow: &Flow, divergence: &Divergence, header: Block) -> Option<Self> {
        let around = flow.starts(header)?;
        let last = func.layout.last_inst(header)?;
        let InstructionData::Brif { arg, blocks: calls, .. } = func.dfg.insts[last] else {
            return None;
        };
        if !divergence.divergent.contains(&header) {
            return None;
        }
        let is_inside = |block: Block| flow.loops.is_in_loop(block, around);
        let inside = calls.map(|call| is_inside(call.block(&func.dfg.value_lists)));
        let side = match inside {
            [true, false] => 0,
            [false, true] => 1,
            _ => return None,
        };
        let blocks: Vec<Block> = flow.order.iter().copied().filter(|&block| is_inside(block)).collect();
        let leaves = |&&block: &&Block| block != header && flow.cfg.succ_iter(block).any(|next| !is_inside(next));
        let mut preheaders = flow.cfg.pred_iter(header).filter(|pred| !is_inside(pred.block));
        let preheader = preheaders.next()?.block;
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        // The header is executed once more after the copy.
        let repeats = func.layout.block_insts(header).all(|inst| {
            let opcode = func.dfg.insts[inst].opcode();
            opcode.is_terminator()
                || !(opcode.can_store() || opcode.is_call() || opcode.other_side_effects() || opcode.can_trap())
        });
        let is_try = |inst| func.dfg.insts[inst].exception_table().is_some();
        let size = insts().count();
        if blocks.iter().find(leaves).is_some()
            || divergence.masked.contains(&preheader)
            || preheaders.next().is_some()
            || !repeats
            || size > versions::MAX_COPIED
            || insts().any(is_try)
            || !versions::is_bound(func, (flow, divergence), header, arg, side == 1, MAX_DEPTH)
        {
            return None;
        }
        Some(Self {
            header,
            preheader,
            blocks,
            side,
            size,
        })
    }

    /// Adds the version, and records the headers of both loops in `done`.
    pub fn copy(
        &self,
        func: &mut Function,
        all_known: cranelift_codegen::ir::FuncRef,
        done: &mut BTreeSet<Block>,
        remarks: &mut Remarks,
    ) {
        let copy = copy(func, &self.blocks);
        remarks.copied(&copy, false);
        let first = copy.blocks[&self.header];
        remarks.all_lanes_loops.insert(first);
        done.extend([self.header, first]);
        let (Some(enter), Some(test)) = (func.layout.last_inst(self.preheader), func.layout.last_inst(first)) else {
            return;
        };
        let dfg = &mut func.dfg;
        for call in dfg.insts[enter].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables) {
            if call.block(&dfg.value_lists) == self.header {
                call.set_block(first, &mut dfg.value_lists);
            }
        }
        let InstructionData::Brif { arg, blocks, .. } = func.dfg.insts[test] else {
            return;
        };
        let call = blocks[self.side];
        let body = call.block(&func.dfg.value_lists);
        let args: Vec<BlockArg> = call.args(&func.dfg.value_lists).collect();
        let rest: Vec<BlockArg> = func.dfg.block_params(first).iter().map(|&param| param.into()).collect();
        func.layout.remove_inst(test);
        let holds = if self.side == 0 {
            arg
        } else {
            versions::copy_condition(func, arg, first, true, MAX_DEPTH)
        };
        let mut cursor = FuncCursor::new(func).at_bottom(first);
        let known = cursor.ins().call(all_known, &[holds]);
        let all = cursor.func.dfg.first_result(known);
        cursor.ins().brif(all, body, &args, self.header, &rest);
    }
}
