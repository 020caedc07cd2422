//! Constants of a loop are hoisted: made before it.
//!
//! A constant that no instruction takes as an immediate needs one or two instructions wherever it is used. In a loop
//! they would run in every round, while registers are plenty; so the definition moves to the block that leads into the
//! loop, level by level. A loop that calls keeps its constants: a register that survives the call would have to be saved
//! or spilled, which costs as much as making the constant again.

use super::constants::Constant;
use super::order::{BlockOrder, LoweredBlock};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{self, Block};
use cranelift_codegen::loop_analysis::Loop;
use regalloc2::VReg;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many constants one loop may move out, so that enough registers are left for its values.
const BUDGET: usize = 24;

/// Where the constants of each block go.
#[derive(Debug, Default)]
pub struct Hoist {
    /// For each block of the order the loop that its constants are hoisted out of, and the block before it.
    exits: Vec<Option<(Loop, usize)>>,
    /// Constants waiting for the block before their loop, by its place in the order.
    waiting: FxHashMap<usize, Vec<(Constant, VReg)>>,
    spent: FxHashMap<Loop, usize>,
}

impl Hoist {
    /// Finds out where constants can go. The loops of the function must have been analysed.
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
                // Blocks are lowered backwards: what is before must come later.
                (!with_calls.contains(&inside) && before < index).then_some((inside, before))
            })
            .collect();
        Self {
            exits,
            waiting: FxHashMap::default(),
            spent: FxHashMap::default(),
        }
    }

    /// Whether constants of the block are hoisted out of it.
    pub fn hoists_from(&self, block: usize) -> bool {
        self.exits.get(block).is_some_and(Option::is_some)
    }

    /// Takes over a constant promised as `reg` in the block. Gives the register that has it instead, if another block of
    /// the loop asked for it, or nothing if the constant has to stay.
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

    /// The constants that are hoisted into the block: they are made there.
    pub fn hoisted_into(&mut self, block: usize) -> Vec<(Constant, VReg)> {
        self.waiting.remove(&block).unwrap_or_default()
    }
}

/// The innermost loop that has both blocks.
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
