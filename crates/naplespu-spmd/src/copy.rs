//! Copies of blocks.

use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value};
use std::collections::BTreeMap;

/// A copy of blocks.
pub struct Copy {
    /// The new blocks by their originals.
    pub blocks: BTreeMap<Block, Block>,
    /// The new instructions by their originals.
    pub insts: BTreeMap<Inst, Inst>,
}

/// Copies blocks to the end of the function. Branches between them lead to the copies; values of
/// other blocks stay as they are. The blocks must not contain exception tables.
pub fn copy(func: &mut Function, blocks: &[Block]) -> Copy {
    let mut copy = Copy {
        blocks: BTreeMap::new(),
        insts: BTreeMap::new(),
    };
    let mut values: BTreeMap<Value, Value> = BTreeMap::new();
    for &block in blocks {
        let new = func.dfg.make_block();
        func.layout.append_block(new);
        for param in func.dfg.block_params(block).to_vec() {
            let ty = func.dfg.value_type(param);
            values.insert(param, func.dfg.append_block_param(new, ty));
        }
        copy.blocks.insert(block, new);
    }
    for &block in blocks {
        for inst in func.layout.block_insts(block).collect::<Vec<_>>() {
            let new = func.dfg.clone_inst(inst);
            let dfg = &mut func.dfg;
            if let InstructionData::BranchTable { table, .. } = &mut dfg.insts[new] {
                let mut data = dfg.jump_tables[*table].clone();
                for call in data.all_branches_mut() {
                    *call = call.deep_clone(&mut dfg.value_lists);
                }
                *table = dfg.jump_tables.push(data);
            }
            func.layout.append_inst(new, copy.blocks[&block]);
            func.set_srcloc(new, func.srcloc(inst));
            for (&old, &new) in func.dfg.inst_results(inst).iter().zip(func.dfg.inst_results(new)) {
                values.insert(old, new);
            }
            copy.insts.insert(inst, new);
        }
    }
    for &inst in copy.insts.values() {
        func.dfg
            .map_inst_values(inst, |value| values.get(&value).copied().unwrap_or(value));
        let dfg = &mut func.dfg;
        for call in dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables) {
            if let Some(&new) = copy.blocks.get(&call.block(&dfg.value_lists)) {
                call.set_block(new, &mut dfg.value_lists);
            }
        }
    }
    copy
}
