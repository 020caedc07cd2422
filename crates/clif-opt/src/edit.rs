//! Edits of control flow: targets and arguments of branches, copies of blocks.

use crate::Error;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, Inst, InstructionData, JumpTableData, Opcode, Value, ValueLabelAssignments,
};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// One destination of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The branch.
    pub inst: Inst,
    /// The number of the destination.
    pub number: usize,
}

/// Returns the destinations of a branch, and none for other instructions.
pub fn destinations(func: &Function, inst: Inst) -> &[BlockCall] {
    func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
}

/// Returns the target block of the edge.
pub fn target(func: &Function, edge: Edge) -> Option<Block> {
    let call = destinations(func, edge.inst).get(edge.number)?;
    Some(call.block(&func.dfg.value_lists))
}

/// Returns the arguments of the edge, or `None` if one of them is not a value.
pub fn args(func: &Function, edge: Edge) -> Option<Vec<Value>> {
    let call = destinations(func, edge.inst).get(edge.number)?;
    call.args(&func.dfg.value_lists).map(|arg| arg.as_value()).collect()
}

/// Returns the arguments of the edge, for passes that have checked that all of them are values.
///
/// # Errors
///
/// [`Error::Internal`] if an argument is not a value.
pub fn values(func: &Function, edge: Edge, stage: &'static str) -> Result<Vec<Value>, Error> {
    args(func, edge).ok_or_else(|| Error::internal(stage, edge.inst, "a branch that passes values only"))
}

/// Replaces the target and the arguments of the edge.
pub fn redirect(func: &mut Function, edge: Edge, to: Block, args: &[Value]) {
    let dfg = &mut func.dfg;
    let call = BlockCall::new(to, args.iter().copied().map(BlockArg::Value), &mut dfg.value_lists);
    let calls = dfg.insts[edge.inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    if let Some(slot) = calls.get_mut(edge.number) {
        *slot = call;
    }
}

/// Changes the arguments of the edge. Builds a new list, because instructions that Cranelift has
/// removed may share the old one.
fn change_arguments(func: &mut Function, edge: Edge, change: impl FnOnce(&mut Vec<BlockArg>)) {
    let Some(call) = destinations(func, edge.inst).get(edge.number) else {
        return;
    };
    let target = call.block(&func.dfg.value_lists);
    let mut args: Vec<BlockArg> = call.args(&func.dfg.value_lists).collect();
    change(&mut args);
    let dfg = &mut func.dfg;
    let call = BlockCall::new(target, args, &mut dfg.value_lists);
    let calls = dfg.insts[edge.inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    if let Some(slot) = calls.get_mut(edge.number) {
        *slot = call;
    }
}

/// Appends an argument to the edge.
pub fn append_argument(func: &mut Function, edge: Edge, value: Value) {
    change_arguments(func, edge, |args| args.push(value.into()));
}

/// Removes the arguments with these numbers, which must be in descending order.
pub fn remove_arguments(func: &mut Function, edge: Edge, numbers: &[usize]) {
    if !numbers.is_empty() {
        change_arguments(func, edge, |args| {
            for &number in numbers {
                args.remove(number);
            }
        });
    }
}

/// Replaces the branch by a jump along the edge.
pub fn make_unconditional(func: &mut Function, edge: Edge) {
    if let Some(&destination) = destinations(func, edge.inst).get(edge.number) {
        func.dfg.insts[edge.inst] = InstructionData::Jump {
            opcode: Opcode::Jump,
            destination,
        };
    }
}

/// Replaces the parameters of the block by values that are available at its start.
pub fn replace_params(func: &mut Function, block: Block, values: &[Value]) {
    let params: Vec<Value> = func.dfg.block_params(block).to_vec();
    func.dfg.detach_block_params(block);
    for (param, &value) in params.into_iter().zip(values) {
        func.dfg.change_to_alias(param, value);
    }
}

/// Calls `rewrite` for each instruction, but not for instructions that `rewrite` inserts before it.
/// Returns whether any call returned true.
pub fn rewrite_each(func: &mut Function, mut rewrite: impl FnMut(&mut Function, Inst) -> bool) -> bool {
    let mut changed = false;
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            changed |= rewrite(func, inst);
        }
    }
    changed
}

/// Returns whether the only effect of the instruction is to compute its results.
pub fn is_pure(opcode: Opcode) -> bool {
    !(opcode.is_terminator()
        || opcode.is_branch()
        || opcode.is_call()
        || opcode.can_trap()
        || opcode.can_load()
        || opcode.can_store()
        || opcode.other_side_effects())
}

/// Returns whether the instruction can be removed if it is dead. Loads that may trap cannot.
pub fn is_removable(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    match data {
        InstructionData::Load { flags, .. } => func.dfg.mem_flags[*flags].notrap(),
        _ => is_pure(data.opcode()),
    }
}

/// Returns the number of uses of each value.
pub fn count_uses(func: &Function) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::with_capacity(func.dfg.num_values());
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                uses[func.dfg.resolve_aliases(value)] += 1;
            }
        }
    }
    uses
}

/// A copy of some blocks, as maps from the original to the copy.
#[derive(Debug, Default)]
pub struct BlockCopy {
    /// The values.
    pub values: FxHashMap<Value, Value>,
    /// The blocks.
    pub blocks: FxHashMap<Block, Block>,
    /// The instructions.
    insts: Vec<(Inst, Inst)>,
}

impl BlockCopy {
    /// Copies the blocks and places the copies before `before`. Parameters in `values` are replaced
    /// by those values and are not parameters of the copies. Branches between the blocks target the
    /// copies; other branches keep their targets.
    pub fn make(func: &mut Function, blocks: &[Block], values: FxHashMap<Value, Value>, before: Block) -> Self {
        let mut copy = Self {
            values,
            ..Self::default()
        };
        let insts: usize = blocks.iter().map(|&block| func.layout.block_insts(block).count()).sum();
        copy.values.reserve(insts);
        copy.insts.reserve(insts);
        for &block in blocks {
            let new = func.dfg.make_block();
            func.layout.insert_block(new, before);
            if func.layout.is_cold(block) {
                func.layout.set_cold(new);
            }
            copy.blocks.insert(block, new);
            let params: Vec<Value> = func.dfg.block_params(block).to_vec();
            for param in params {
                if let Entry::Vacant(slot) = copy.values.entry(param) {
                    let ty = func.dfg.value_type(param);
                    let own = *slot.insert(func.dfg.append_block_param(new, ty));
                    copy_labels(func, param, own);
                }
            }
            let insts: Vec<Inst> = func.layout.block_insts(block).collect();
            for inst in insts {
                let own = func.dfg.clone_inst(inst);
                func.layout.append_inst(own, new);
                let loc = func.srcloc(inst);
                if !loc.is_default() {
                    func.set_srcloc(own, loc);
                }
                if func.debug_tags.has(inst) {
                    func.debug_tags.clone_tags(inst, own);
                }
                if let InstructionData::BranchTable { opcode, arg, table } = func.dfg.insts[own] {
                    let calls: Vec<BlockCall> = func.dfg.jump_tables[table]
                        .all_branches()
                        .to_vec()
                        .iter()
                        .map(|call| call.deep_clone(&mut func.dfg.value_lists))
                        .collect();
                    if let Some((&default, rest)) = calls.split_first() {
                        let table = func.dfg.jump_tables.push(JumpTableData::new(default, rest));
                        func.dfg.insts[own] = InstructionData::BranchTable { opcode, arg, table };
                    }
                }
                copy.insts.push((inst, own));
                for number in 0..func.dfg.inst_results(inst).len() {
                    let (old, new) = (func.dfg.inst_results(inst)[number], func.dfg.inst_results(own)[number]);
                    copy.values.insert(old, new);
                    copy_labels(func, old, new);
                }
            }
        }
        copy.connect(func);
        copy
    }

    /// Replaces operands and destinations in the copied instructions by their copies.
    fn connect(&self, func: &mut Function) {
        for &(_, inst) in &self.insts {
            let dfg = &mut func.dfg;
            dfg.map_inst_values(inst, |value| self.value(value));
            let calls = dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
            for call in calls {
                if let Some(&block) = self.blocks.get(&call.block(&dfg.value_lists)) {
                    call.set_block(block, &mut dfg.value_lists);
                }
            }
        }
    }

    /// Returns the copy of the value, or the value itself if it was not copied.
    pub fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// Returns the copy of the edge, or the edge itself if it was not copied.
    pub fn edge(&self, edge: Edge) -> Edge {
        // Callers request few edges, and branches are near the end.
        let copied = self.insts.iter().rev().find(|(old, _)| *old == edge.inst);
        Edge {
            inst: copied.map_or(edge.inst, |&(_, own)| own),
            number: edge.number,
        }
    }

    /// Returns the copy of the block, or the block itself if it was not copied.
    pub fn block(&self, block: Block) -> Block {
        self.blocks.get(&block).copied().unwrap_or(block)
    }
}

/// Copies the debug labels of a value.
fn copy_labels(func: &mut Function, from: Value, to: Value) {
    if let Some(labels) = &mut func.dfg.values_labels
        && let Some(ValueLabelAssignments::Starts(starts)) = labels.get(&from).cloned()
    {
        labels.insert(to, ValueLabelAssignments::Starts(starts));
    }
}
