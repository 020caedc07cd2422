//! The order in which blocks are lowered and laid out, with a block of its own on every critical edge.
//!
//! regalloc2 puts the moves of an edge at the end of its source or at the start of its target, so an edge whose source
//! has other successors and whose target has other predecessors needs a block in between. If no move lands there, the
//! block is skipped when code is laid out.

use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstructionData, Opcode};
use cranelift_codegen::loop_analysis::Loop;
use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

/// A block of the VCode to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoweredBlock {
    /// A block of the function, with the successors of its terminator.
    Clif {
        /// The block.
        block: Block,
        /// Its successors.
        succs: Successors,
    },
    /// A block on the edge that leaves `from` as its successor number `edge`.
    Edge {
        /// Block call of the edge: target and arguments.
        call: BlockCall,
        /// Index of the target in the order.
        target: usize,
        /// The block that the edge comes from.
        from: Block,
    },
}

/// A way out of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The block call in the terminator.
    pub call: BlockCall,
    /// Index in the order of the block that the branch goes to: the target, or the block on the edge.
    pub index: usize,
    /// Whether there is a block on the edge, which then carries the arguments.
    pub split: bool,
}

/// All ways out of a block.
pub type Successors = SmallVec<[Successor; 2]>;

/// The blocks of a function in layout order, the entry first. Unreachable blocks are left out.
#[derive(Debug, Default)]
pub struct BlockOrder {
    /// The blocks.
    pub blocks: Vec<LoweredBlock>,
}

/// Block calls of one terminator.
pub type BlockCalls = SmallVec<[BlockCall; 2]>;

/// Distinct block calls of a terminator, in the order of the branch: for `brif` always two, for `br_table` the default
/// and then each different target once; for a call with handlers all, the way back last.
pub fn distinct_calls(func: &Function, inst: Inst) -> BlockCalls {
    let calls = func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
    if func.dfg.insts[inst].opcode() == Opcode::Brif || calls.len() <= 1 || has_handlers(func, inst) {
        return calls.iter().copied().collect();
    }
    let mut seen = SmallVec::with_capacity(calls.len());
    let mut keys = HashMap::default();
    for call in calls {
        let key = call_key(func, call);
        keys.entry(key).or_insert_with(|| seen.push(*call));
    }
    seen
}

/// Whether a terminator is a call with handlers.
fn has_handlers(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].exception_table().is_some()
}

/// Target and arguments of a block call: two calls with the same key are the same edge.
fn call_key(func: &Function, call: &BlockCall) -> (Block, Vec<BlockArg>) {
    let args = call.args(&func.dfg.value_lists).collect();
    (call.block(&func.dfg.value_lists), args)
}

impl BlockOrder {
    /// Orders the reachable blocks of the function: reverse postorder, rarely executed blocks last.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if the analysis of loops does not fit the function.
    pub fn new(ctx: &Context) -> Result<Self, CompileError> {
        let func = &ctx.func;
        let mut order: Vec<Block> = ctx.domtree.cfg_rpo().copied().collect();
        if ctx.loop_analysis.is_valid() {
            order = keep_loops_together(ctx, &order)?;
        }
        let cold = cold_blocks(ctx);
        let is_cold = |block: Block| cold[block] == Some(true);
        if !cold.is_empty() {
            order.sort_by_key(|&block| is_cold(block));
        }

        // Number of edges that arrive at each block.
        let mut in_edges: SecondaryMap<Block, u32> = SecondaryMap::new();
        in_edges.resize(func.dfg.num_blocks());
        let mut succs: SecondaryMap<Block, Successors> = SecondaryMap::new();
        succs.resize(func.dfg.num_blocks());
        for &block in &order {
            if let Some(last) = func.layout.last_inst(block) {
                let calls = distinct_calls(func, last).into_iter();
                succs[block] = calls.map(Successor::unplaced).collect();
                for succ in &succs[block] {
                    in_edges[succ.call.block(&func.dfg.value_lists)] += 1;
                }
            }
        }

        // First place every block, then give out indices: the blocks on the edges of a block follow it directly, the
        // fall-through edge first; those that lead to a rarely executed block stand before all such blocks.
        enum Placed {
            Clif(Block),
            Edge(Block, BlockCall),
        }
        let mut placed = Vec::with_capacity(2 * order.len());
        let mut index_of: SecondaryMap<Block, usize> = SecondaryMap::new();
        index_of.resize(func.dfg.num_blocks());
        let mut rare: Vec<(Block, usize)> = Vec::new();
        let tries = !func.dfg.exception_tables.is_empty();
        for &block in &order {
            if is_cold(block) {
                for (from, number) in rare.drain(..) {
                    let call = succs[from][number].split_at(placed.len());
                    placed.push(Placed::Edge(from, call));
                }
            }
            index_of[block] = placed.len();
            placed.push(Placed::Clif(block));
            // What a call with handlers makes is passed on in blocks on its edges.
            let always = tries
                && func
                    .layout
                    .last_inst(block)
                    .is_some_and(|last| has_handlers(func, last));
            if succs[block].len() > 1 || always {
                for number in (0..succs[block].len()).rev() {
                    let target = succs[block][number].call.block(&func.dfg.value_lists);
                    if in_edges[target] <= 1 && !always {
                        continue;
                    }
                    if is_cold(target) && !is_cold(block) {
                        rare.push((block, number));
                        continue;
                    }
                    let call = succs[block][number].split_at(placed.len());
                    placed.push(Placed::Edge(block, call));
                }
            }
        }
        let target = |call: BlockCall| index_of[call.block(&func.dfg.value_lists)];
        let blocks = placed
            .into_iter()
            .map(|placed| match placed {
                Placed::Clif(block) => {
                    let mut succs = std::mem::take(&mut succs[block]);
                    for succ in succs.iter_mut().filter(|succ| !succ.split) {
                        succ.index = target(succ.call);
                    }
                    LoweredBlock::Clif { block, succs }
                }
                Placed::Edge(from, call) => LoweredBlock::Edge {
                    call,
                    target: target(call),
                    from,
                },
            })
            .collect();
        Ok(Self { blocks })
    }
}

impl Successor {
    /// The block at the end of the call, which has no place yet.
    fn unplaced(call: BlockCall) -> Self {
        Self {
            call,
            index: 0,
            split: false,
        }
    }

    /// Puts a block on the edge, at this index in the order; gives what that one calls.
    fn split_at(&mut self, index: usize) -> BlockCall {
        (self.index, self.split) = (index, true);
        self.call
    }
}

/// For each block whether it is rarely executed; empty if none is. A block that only such blocks lead into, loops aside, is one
/// of them: definitions stay before uses, and every block has a predecessor before it.
fn cold_blocks(ctx: &Context) -> SecondaryMap<Block, Option<bool>> {
    let func = &ctx.func;
    let mut cold = SecondaryMap::new();
    if !func.layout.blocks().any(|block| func.layout.is_cold(block)) {
        return cold;
    }
    cold.resize(func.dfg.num_blocks());
    let entry = func.layout.entry_block();
    for &block in ctx.domtree.cfg_rpo() {
        let warm = Some(block) == entry || ctx.cfg.pred_iter(block).any(|pred| cold[pred.block] == Some(false));
        cold[block] = Some(!warm || Some(block) != entry && func.layout.is_cold(block));
    }
    cold
}

/// The blocks in an order in which each loop is contiguous and begins with its header, so that code after a loop does
/// not stand inside it. Otherwise the given order is kept.
fn keep_loops_together(ctx: &Context, rpo: &[Block]) -> Result<Vec<Block>, CompileError> {
    enum Part {
        Block(Block),
        Loop(Loop),
    }
    let loops = &ctx.loop_analysis;
    let mut top: Vec<Part> = Vec::new();
    let mut parts: HashMap<Loop, Vec<Part>> = HashMap::default();
    for &block in rpo {
        let inside = loops.innermost_loop(block);
        if let Some(inner) = inside
            && loops.loop_header(inner) == block
        {
            match loops.loop_parent(inner) {
                Some(outer) => parts.entry(outer).or_default().push(Part::Loop(inner)),
                None => top.push(Part::Loop(inner)),
            }
        }
        match inside {
            Some(inner) => parts.entry(inner).or_default().push(Part::Block(block)),
            None => top.push(Part::Block(block)),
        }
    }
    let mut order = Vec::with_capacity(rpo.len());
    let mut stack = vec![top.into_iter()];
    while let Some(list) = stack.last_mut() {
        match list.next() {
            Some(Part::Block(block)) => order.push(block),
            Some(Part::Loop(inner)) => {
                let header = loops.loop_header(inner);
                let parts = parts.remove(&inner);
                let parts = parts.ok_or_else(|| CompileError::internal("vcode", header, "the blocks of its loop"))?;
                stack.push(parts.into_iter());
            }
            None => {
                stack.pop();
            }
        }
    }
    Ok(order)
}

/// For each entry of a branch table, the position of its edge among the distinct calls; empty for other terminators.
///
/// # Errors
///
/// [`CompileError::Internal`] if an entry is not among them.
pub fn table_entries(func: &Function, inst: Inst) -> Result<Vec<u32>, CompileError> {
    let InstructionData::BranchTable { table, .. } = func.dfg.insts[inst] else {
        return Ok(Vec::new());
    };
    let keys: HashMap<_, u32> = distinct_calls(func, inst)
        .iter()
        .zip(0..)
        .map(|(call, number)| (call_key(func, call), number))
        .collect();
    func.dfg.jump_tables[table]
        .as_slice()
        .iter()
        .map(|call| {
            let known = keys.get(&call_key(func, call)).copied();
            known.ok_or_else(|| CompileError::internal("vcode", inst, "a successor for each entry of the table"))
        })
        .collect()
}
