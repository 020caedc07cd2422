//! Keeps the block operands of `get_exception_handler_address` correct while blocks change.
//!
//! The instruction names the block that ends with the call. After a block is split, the call ends
//! another block.

use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};

/// Pairs of an instruction that takes the address of a handler, and the call with the handler.
#[derive(Debug, Default)]
pub struct Handlers(Vec<(Inst, Inst)>);

impl Handlers {
    /// Finds the pairs of the function.
    pub fn find(func: &Function) -> Self {
        let mut pairs = Vec::new();
        // Skips the search for most functions.
        if !func.dfg.exception_tables.is_empty() {
            for block in func.layout.blocks() {
                for inst in func.layout.block_insts(block) {
                    if let InstructionData::ExceptionHandlerAddress { block, .. } = func.dfg.insts[inst] {
                        pairs.extend(func.layout.last_inst(block).map(|call| (inst, call)));
                    }
                }
            }
        }
        Self(pairs)
    }

    /// Returns whether an instruction names the block, because it ends with the call.
    pub fn is_named(&self, func: &Function, block: Block) -> bool {
        self.0
            .iter()
            .any(|&(_, call)| func.layout.inst_block(call) == Some(block))
    }

    /// Updates the instructions to name the blocks that the calls end now.
    pub fn restore(&self, func: &mut Function) {
        for &(inst, call) in &self.0 {
            if let (Some(now), InstructionData::ExceptionHandlerAddress { block, .. }) =
                (func.layout.inst_block(call), &mut func.dfg.insts[inst])
            {
                *block = now;
            }
        }
    }
}
