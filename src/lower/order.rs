//! The order of blocks in lowering and layout, with a separate block on every critical edge.
//!
//! regalloc2 inserts the moves of an edge at the end of its source or at the start of its target.
//! An edge needs a block if its source has other successors and its target has other predecessors.
//! Layout removes the block if it stays empty.

use crate::error::CompileError;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstructionData, Opcode};
use cranelift_codegen::loop_analysis::Loop;
use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

/// A block before lowering to VCode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoweredBlock {
    /// A block of the function, with the successors of its terminator.
    Clif {
        /// The block.
        block: Block,
        /// Its successors.
        succs: Successors,
    },
    /// A block on the edge from `from` to its successor number `edge`.
    Edge {
        /// The block call of the edge: target and arguments.
        call: BlockCall,
        /// The index of the target in the order.
        target: usize,
        /// The source of the edge.
        from: Block,
    },
}

/// A successor of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The block call in the terminator.
    pub call: BlockCall,
    /// The index in the order of the branch target: the block of the call, or the block on the
    /// edge.
    pub index: usize,
    /// Whether the edge has a block, which then passes the arguments.
    pub split: bool,
}

/// All successors of a block.
pub type Successors = SmallVec<[Successor; 2]>;

/// The blocks of a function in layout order, the entry first, without unreachable blocks.
#[derive(Debug, Default)]
pub struct BlockOrder {
    /// The blocks.
    pub blocks: Vec<LoweredBlock>,
}

/// The block calls of one terminator.
pub type BlockCalls = SmallVec<[BlockCall; 2]>;

/// Returns the distinct block calls of a terminator, in the order of the branch: for `brif` always
/// two; for `br_table` the default, then each other target once; for a call with handlers all, with
/// the normal return last.
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

/// Returns whether a terminator is a call with handlers.
fn has_handlers(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].exception_table().is_some()
}

/// Returns the target and arguments of a block call. Two calls with the same key are the same edge.
fn call_key(func: &Function, call: &BlockCall) -> (Block, Vec<BlockArg>) {
    let args = call.args(&func.dfg.value_lists).collect();
    (call.block(&func.dfg.value_lists), args)
}

impl BlockOrder {
    /// Orders the reachable blocks of the function: in reverse postorder, with rarely executed
    /// blocks last.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if the loop analysis does not match the function.
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

        // The number of incoming edges of each block.
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

        // The first step determines the sequence, the second assigns indices. The blocks on the
        // edges of a block follow it directly, the fall-through edge first. Edge blocks to rarely
        // executed blocks precede all such blocks.
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
            // Blocks on the edges of a call with handlers pass on its results.
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
    /// Creates the successor of a block call, without an index.
    fn unplaced(call: BlockCall) -> Self {
        Self {
            call,
            index: 0,
            split: false,
        }
    }

    /// Inserts a block on the edge, at this index in the order. Returns the block call of the new
    /// block.
    fn split_at(&mut self, index: usize) -> BlockCall {
        (self.index, self.split) = (index, true);
        self.call
    }
}

/// Returns for each block whether it is rarely executed; empty if none is. A block is also rarely
/// executed if all its predecessors are, ignoring back edges. So definitions precede uses, and
/// every block has a predecessor before it.
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

/// Reorders the blocks such that each loop is contiguous and starts with its header, so that code
/// after a loop is not placed inside it. Otherwise keeps the given order.
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

/// Returns, for each entry of a branch table, the position of its edge among the distinct calls;
/// empty for other terminators.
///
/// # Errors
///
/// [`CompileError::Internal`] if the edge of an entry is not among them.
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
