//! Orders the blocks of a normalized function, and finds its loops.
//!
//! The order is topological without back edges. The blocks of a loop and the blocks that a block
//! dominates are contiguous, as partial linearization requires (Moll and Hack, "Partial
//! Control-Flow Linearization", PLDI 2018).

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};
use cranelift_codegen::post_dominator_tree::PostDominatorTree;
use std::collections::{BTreeMap, HashMap};

/// The control flow of a normalized function.
pub struct Flow {
    /// Blocks in order.
    pub order: Vec<Block>,
    /// Position of each block in `order`.
    pub position: BTreeMap<Block, usize>,
    /// Forward and back edges.
    pub cfg: ControlFlowGraph,
    /// Loops.
    pub loops: LoopAnalysis,
    /// Immediate post-dominators.
    pub post: PostDominatorTree,
}

impl Flow {
    /// Analyzes a normalized function.
    pub fn new(func: &Function) -> Self {
        let cfg = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &cfg);
        let mut loops = LoopAnalysis::new();
        loops.compute(func, &cfg, &dominators);
        let post = PostDominatorTree::with_cfg(&cfg);
        let order = order(func, &cfg, &loops);
        let position = order.iter().enumerate().map(|(index, &block)| (block, index)).collect();
        Self {
            order,
            position,
            cfg,
            loops,
            post,
        }
    }

    /// Returns whether the edge is a back edge.
    pub fn is_back_edge(&self, from: Block, to: Block) -> bool {
        self.position[&to] <= self.position[&from]
    }

    /// Returns the loops that contain a block, from the innermost.
    pub fn loops_of(&self, block: Block) -> impl Iterator<Item = Loop> + '_ {
        std::iter::successors(self.loops.innermost_loop(block), |&inner| self.loops.loop_parent(inner))
    }

    /// Returns the loop that a block starts.
    pub fn starts(&self, block: Block) -> Option<Loop> {
        self.loops.is_loop_header(block)
    }
}

/// Kahn's algorithm with a stack: of the blocks whose predecessors are placed, the newest one in
/// the current loop comes next.
fn order(func: &Function, cfg: &ControlFlowGraph, loops: &LoopAnalysis) -> Vec<Block> {
    let is_back = |from: Block, to: Block| {
        let header = loops.is_loop_header(to);
        header.is_some_and(|header| loops.is_in_loop(from, header))
    };
    let mut waiting: BTreeMap<Block, usize> = BTreeMap::new();
    let mut size_of_loop: HashMap<Loop, usize> = HashMap::new();
    for block in func.layout.blocks() {
        let forward = cfg.pred_iter(block).filter(|pred| !is_back(pred.block, block));
        waiting.insert(block, forward.count());
        let of_block = std::iter::successors(loops.innermost_loop(block), |&inner| loops.loop_parent(inner));
        for within in of_block {
            *size_of_loop.entry(within).or_default() += 1;
        }
    }
    let mut order = Vec::new();
    let mut ready: Vec<Block> = func.layout.entry_block().into_iter().collect();
    let mut current: Option<Loop> = None;
    while !ready.is_empty() {
        while current.is_some_and(|current| size_of_loop[&current] == 0) {
            current = current.and_then(|current| loops.loop_parent(current));
        }
        let fits = |&&block: &&Block| current.is_none_or(|current| loops.is_in_loop(block, current));
        // The block that returns comes last, after blocks that trap.
        let returns = |block: Block| {
            func.layout
                .last_inst(block)
                .is_some_and(|inst| func.dfg.insts[inst].opcode().is_return())
        };
        let index = ready.iter().rev().position(|block| fits(&block) && !returns(*block));
        let block = ready.remove(ready.len() - 1 - index.unwrap_or(0));
        order.push(block);
        current = loops.innermost_loop(block);
        for within in std::iter::successors(current, |&inner| loops.loop_parent(inner)) {
            if let Some(size) = size_of_loop.get_mut(&within) {
                *size -= 1;
            }
        }
        let successors: Vec<Block> = cfg.succ_iter(block).filter(|&to| !is_back(block, to)).collect();
        for successor in successors.into_iter().rev() {
            // Each edge is counted once: predecessors are listed by branch, successors by block.
            let edges = cfg.pred_iter(successor).filter(|pred| pred.block == block).count();
            if let Some(count) = waiting.get_mut(&successor) {
                *count = count.saturating_sub(edges);
                if *count == 0 && !order.contains(&successor) && !ready.contains(&successor) {
                    ready.push(successor);
                }
            }
        }
    }
    order
}
