//! Removes dead block parameters and their arguments.

use super::edit::{self, Edge};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, Value, ValueDef};

/// Removes parameters whose only uses compute themselves or other dead parameters. Returns whether
/// anything changed.
pub fn run(func: &mut Function) -> bool {
    let entry = func.layout.entry_block();
    let has_params = |block| Some(block) != entry && func.dfg.num_block_params(block) > 0;
    if !func.layout.blocks().any(has_params) {
        return false;
    }
    let mut live: SecondaryMap<Value, bool> = SecondaryMap::with_capacity(func.dfg.num_values());
    let mut work: Vec<Value> = Vec::new();
    // The calls of each block by its predecessors.
    let mut incoming: SecondaryMap<Block, Vec<BlockCall>> = SecondaryMap::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            if opcode.is_branch() {
                for call in edit::destinations(func, inst) {
                    incoming[call.block(&func.dfg.value_lists)].push(*call);
                }
            }
            if !edit::is_removable(func, inst) {
                work.extend(func.dfg.inst_args(inst));
            }
            // Arguments of exception edges are kept.
            if func.dfg.insts[inst].exception_table().is_some() {
                work.extend(func.dfg.inst_values(inst));
            }
        }
    }
    while let Some(value) = work.pop() {
        let value = func.dfg.resolve_aliases(value);
        if std::mem::replace(&mut live[value], true) {
            continue;
        }
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => work.extend(func.dfg.inst_args(inst)),
            ValueDef::Param(block, number) => {
                for call in &incoming[block] {
                    let arg = call.args(&func.dfg.value_lists).nth(number);
                    work.extend(arg.and_then(|arg| arg.as_value()));
                }
            }
            ValueDef::Union(a, b) => work.extend([a, b]),
        }
    }
    let mut changed = false;
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let mut dead: SecondaryMap<Block, Vec<usize>> = SecondaryMap::new();
    for &block in blocks.iter().filter(|&&block| Some(block) != entry) {
        let params: Vec<Value> = func.dfg.block_params(block).to_vec();
        for (number, &param) in params.iter().enumerate().rev() {
            if !live[param] {
                dead[block].push(number);
                func.dfg.remove_block_param(param);
                changed = true;
            }
        }
    }
    if !changed {
        return false;
    }
    for block in blocks {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            let edge = Edge { inst, number };
            if let Some(target) = edit::target(func, edge) {
                edit::remove_arguments(func, edge, &dead[target]);
            }
        }
        // Instructions that use a removed parameter are dead as well and must be removed.
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let results = func.dfg.inst_results(inst);
            let dead = !results.is_empty() && results.iter().all(|&result| !live[result]);
            if dead && edit::is_removable(func, inst) {
                func.layout.remove_inst(inst);
            }
        }
    }
    true
}
