//! Blocks that always follow one another become one.

use super::edit;
use crate::handlers::Handlers;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::packed_option::PackedOption;

/// What is known about who leads to a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Nobody,
    /// This branch alone, once.
    One(PackedOption<Inst>),
    Several,
}

/// Merges blocks. The control flow graph and all that follows from it are out of date if anything changed.
pub fn run(func: &mut Function) -> bool {
    let handlers = Handlers::find(func);
    let mut origins: SecondaryMap<Block, Origin> = SecondaryMap::new();
    for block in func.layout.blocks() {
        let Some(last) = func.layout.last_inst(block) else {
            continue;
        };
        for call in edit::destinations(func, last) {
            let origin = &mut origins[call.block(&func.dfg.value_lists)];
            *origin = match origin {
                Origin::Nobody => Origin::One(last.into()),
                _ => Origin::Several,
            };
        }
    }
    let mut changed = false;
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        if !func.layout.is_block_inserted(block) {
            continue;
        }
        while let Some(next) = only_successor(func, &origins, block) {
            // Those who take the addresses of its handlers name it, and cannot name the entry block.
            if handlers.name(func, next) {
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

/// The block that the block jumps to, if nobody else leads there.
fn only_successor(func: &Function, origins: &SecondaryMap<Block, Origin>, block: Block) -> Option<Block> {
    let last = func.layout.last_inst(block)?;
    let [call] = edit::destinations(func, last) else {
        return None;
    };
    let next = call.block(&func.dfg.value_lists);
    let alone = origins[next] == Origin::One(last.into())
        && func.dfg.insts[last].opcode() == cranelift_codegen::ir::Opcode::Jump;
    let same = func.layout.is_cold(block) == func.layout.is_cold(next);
    (alone && same && next != block && Some(next) != func.layout.entry_block()).then_some(next)
}
