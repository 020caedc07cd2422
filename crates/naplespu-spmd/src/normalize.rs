//! Brings control flow into the form that the pass relies on: every block is reachable, one block
//! returns, and each loop has a preheader and one latch, both of which only jump to the header.

use crate::error::Error;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode, Value};

/// Normalizes the function.
pub fn run(func: &mut Function) -> Result<(), Error> {
    func.dfg.resolve_all_aliases();
    remove_unreachable(func);
    one_return(func);
    for header in headers(func)? {
        let (outside, back) = edges(func, header);
        if !jumps_only(func, &outside) {
            join_edges(func, header, &outside);
        }
        if !jumps_only(func, &back) {
            join_edges(func, header, &back);
        }
    }
    Ok(())
}

fn remove_unreachable(func: &mut Function) {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        if !dominators.is_reachable(block) {
            while let Some(inst) = func.layout.first_inst(block) {
                func.layout.remove_inst(inst);
            }
            func.layout.remove_block(block);
        }
    }
}

fn one_return(func: &mut Function) {
    let returns: Vec<Inst> = func
        .layout
        .blocks()
        .filter_map(|block| func.layout.last_inst(block))
        .filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Return)
        .collect();
    if returns.len() < 2 {
        return;
    }
    let end = func.dfg.make_block();
    func.layout.append_block(end);
    let results: Vec<Value> = (0..func.signature.returns.len())
        .map(|index| {
            let ty = func.signature.returns[index].value_type;
            func.dfg.append_block_param(end, ty)
        })
        .collect();
    FuncCursor::new(func).at_bottom(end).ins().return_(&results);
    for inst in returns {
        let args: Vec<BlockArg> = func.dfg.inst_args(inst).iter().map(|&arg| arg.into()).collect();
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        cursor.ins().jump(end, &args);
        cursor.func.layout.remove_inst(inst);
    }
}

/// Returns the headers of all loops.
fn headers(func: &Function) -> Result<Vec<Block>, Error> {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let mut headers = Vec::new();
    let order: Vec<Block> = dominators.cfg_rpo().copied().collect();
    for (index, &block) in order.iter().enumerate() {
        for successor in cfg.succ_iter(block) {
            let target = order.iter().position(|&other| other == successor);
            if target.is_none_or(|target| target > index) {
                continue;
            }
            if !dominators.block_dominates(successor, block) {
                return Err(Error::Irreducible {
                    function: func.name.to_string(),
                    block: successor,
                });
            }
            if !headers.contains(&successor) {
                headers.push(successor);
            }
        }
    }
    Ok(headers)
}

/// Returns the branches into a header from outside of its loop, and the back edges. A branch is in
/// a list once, even if it has several edges to the header.
fn edges(func: &Function, header: Block) -> (Vec<Inst>, Vec<Inst>) {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let (mut outside, mut back) = (Vec::new(), Vec::new());
    for pred in cfg.pred_iter(header) {
        let list = if dominators.block_dominates(header, pred.block) {
            &mut back
        } else {
            &mut outside
        };
        if !list.contains(&pred.inst) {
            list.push(pred.inst);
        }
    }
    (outside, back)
}

fn jumps_only(func: &Function, branches: &[Inst]) -> bool {
    matches!(branches, [inst] if func.dfg.insts[*inst].opcode() == Opcode::Jump)
}

/// Leads the edges of these branches to `header` through a new block.
fn join_edges(func: &mut Function, header: Block, branches: &[Inst]) {
    let joined = func.dfg.make_block();
    let types: Vec<_> = func
        .dfg
        .block_params(header)
        .iter()
        .map(|&param| func.dfg.value_type(param))
        .collect();
    let args: Vec<BlockArg> = types
        .into_iter()
        .map(|ty| func.dfg.append_block_param(joined, ty).into())
        .collect();
    func.layout.insert_block(joined, header);
    FuncCursor::new(func).at_bottom(joined).ins().jump(header, &args);
    for &inst in branches {
        let dfg = &mut func.dfg;
        for call in dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables) {
            if call.block(&dfg.value_lists) == header {
                call.set_block(joined, &mut dfg.value_lists);
            }
        }
    }
}
