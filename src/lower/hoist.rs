//! Hoists constants out of loops.
//!
//! A constant that does not fit an immediate costs one or two instructions at its use. In a loop,
//! these execute in every iteration, while registers are plentiful. So the definition moves to the
//! block before the loop, level by level. A loop with calls keeps its constants: a register that
//! survives the call has to be saved or spilled, which costs as much as rematerializing the
//! constant.

use super::constants::Constant;
use super::order::{BlockOrder, LoweredBlock};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{self, Block};
use cranelift_codegen::loop_analysis::Loop;
use regalloc2::VReg;
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of constants hoisted out of one loop, which leaves registers for its values.
const BUDGET: usize = 24;

/// The destinations of the constants of each block.
#[derive(Debug, Default)]
pub struct Hoist {
    /// For each block of the order, the loop that its constants are hoisted out of, and the index
    /// of the block before that loop.
    exits: Vec<Option<(Loop, usize)>>,
    /// The hoisted constants, by the index of the block that defines them.
    waiting: FxHashMap<usize, Vec<(Constant, VReg)>>,
    spent: FxHashMap<Loop, usize>,
}

impl Hoist {
    /// Determines the destinations of constants. The loop analysis of the function must be up to
    /// date.
    pub fn new(ctx: &Context, order: &BlockOrder) -> Self {
        let loops = &ctx.loop_analysis;
        let func = &ctx.func;

        let mut with_calls: FxHashSet<Loop> = FxHashSet::default();
        for block in func.layout.blocks() {
            if func
                .layout
                .block_insts(block)
                .any(|inst| func.dfg.insts[inst].opcode().is_call() && !crate::intrinsics::is_instruction(func, inst))
            {
                let mut at = loops.innermost_loop(block);
                while let Some(inner) = at {
                    if !with_calls.insert(inner) {
                        break;
                    }
                    at = loops.loop_parent(inner);
                }
            }
        }

        let mut place: FxHashMap<Block, usize> = FxHashMap::default();
        for (index, block) in order.blocks.iter().enumerate() {
            if let LoweredBlock::Clif { block, .. } = block {
                place.insert(*block, index);
            }
        }
        let exits = order
            .blocks
            .iter()
            .enumerate()
            .map(|(index, block)| {
                let inside = match block {
                    LoweredBlock::Clif { block, .. } => loops.innermost_loop(*block),
                    LoweredBlock::Edge { call, from, .. } => common_loop(ctx, *from, call.block(&func.dfg.value_lists)),
                }?;
                let before = ctx.domtree.idom(loops.loop_header(inside))?;
                let before = *place.get(&before)?;
                // Blocks are lowered backwards, so a destination must come earlier in the order.
                (!with_calls.contains(&inside) && before < index).then_some((inside, before))
            })
            .collect();
        Self {
            exits,
            waiting: FxHashMap::default(),
            spent: FxHashMap::default(),
        }
    }

    /// Returns whether constants of the block are hoisted out of it.
    pub fn hoists_from(&self, block: usize) -> bool {
        self.exits.get(block).is_some_and(Option::is_some)
    }

    /// Hoists a constant that the block expects in `reg`. Returns the register that holds it, which
    /// may be that of another block of the loop. Returns `None` if the constant has to stay in the
    /// block.
    pub fn take(&mut self, block: usize, value: Constant, reg: VReg) -> Option<VReg> {
        let (inside, before) = (*self.exits.get(block)?)?;
        let waiting = self.waiting.entry(before).or_default();
        if let Some(&(_, known)) = waiting.iter().find(|(known, _)| *known == value) {
            return Some(known);
        }
        let spent = self.spent.entry(inside).or_default();
        if *spent == BUDGET {
            return None;
        }
        *spent += 1;
        waiting.push((value, reg));
        Some(reg)
    }

    /// Removes and returns the constants to define in the block.
    pub fn hoisted_into(&mut self, block: usize) -> Vec<(Constant, VReg)> {
        self.waiting.remove(&block).unwrap_or_default()
    }
}

/// Returns the innermost loop that contains both blocks.
fn common_loop(ctx: &Context, a: ir::Block, b: ir::Block) -> Option<Loop> {
    let loops = &ctx.loop_analysis;
    let mut at = loops.innermost_loop(a);
    while let Some(inner) = at {
        if loops.is_in_loop(b, inner) {
            return Some(inner);
        }
        at = loops.loop_parent(inner);
    }
    None
}
