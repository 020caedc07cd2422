//! Merges a block with its only successor if it is the only predecessor of that block.

use super::edit;
use crate::handlers::Handlers;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::packed_option::PackedOption;

/// The predecessors of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Predecessors {
    #[default]
    None,
    /// One branch with one edge to the block.
    One(PackedOption<Inst>),
    Many,
}

/// Merges blocks. Returns whether anything changed; the control-flow graph and its analyses are
/// then out of date.
pub fn run(func: &mut Function) -> bool {
    let handlers = Handlers::find(func);
    let mut preds: SecondaryMap<Block, Predecessors> = SecondaryMap::new();
    for block in func.layout.blocks() {
        let Some(last) = func.layout.last_inst(block) else {
            continue;
        };
        for call in edit::destinations(func, last) {
            let found = &mut preds[call.block(&func.dfg.value_lists)];
            *found = match found {
                Predecessors::None => Predecessors::One(last.into()),
                _ => Predecessors::Many,
            };
        }
    }
    let mut changed = false;
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        if !func.layout.is_block_inserted(block) {
            continue;
        }
        while let Some(next) = only_successor(func, &preds, block) {
            // `get_exception_handler_address` names the block of the call and cannot name the entry
            // block.
            if handlers.is_named(func, next) {
                break;
            }
            let Some(jump) = func.layout.last_inst(block) else {
                break;
            };
            let Some(args) = edit::args(func, edit::Edge { inst: jump, number: 0 }) else {
                break;
            };
            edit::replace_params(func, next, &args);
            func.layout.remove_inst(jump);
            while let Some(inst) = func.layout.first_inst(next) {
                func.layout.remove_inst(inst);
                func.layout.append_inst(inst, block);
            }
            func.layout.remove_block(next);
            changed = true;
        }
    }
    changed
}

/// Returns the target of the block's jump if the jump is the only edge to it.
fn only_successor(func: &Function, preds: &SecondaryMap<Block, Predecessors>, block: Block) -> Option<Block> {
    let last = func.layout.last_inst(block)?;
    let [call] = edit::destinations(func, last) else {
        return None;
    };
    let next = call.block(&func.dfg.value_lists);
    let is_only_pred = preds[next] == Predecessors::One(last.into())
        && func.dfg.insts[last].opcode() == cranelift_codegen::ir::Opcode::Jump;
    let same = func.layout.is_cold(block) == func.layout.is_cold(next);
    (is_only_pred && same && next != block && Some(next) != func.layout.entry_block()).then_some(next)
}
