//! Branch tables that are too long, as several shorter ones.
//!
//! A table is a row of jumps, and one whose target is out of reach leads to a sequence after the table (`finish/relax.rs`). The entry has
//! to reach that sequence; so a table has as many entries as it can with all of them far away, and the index chooses among tables by
//! comparing it with the numbers where they start.

use crate::inst::ops::immediate_range;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, InstBuilder, InstructionData, JumpTableData, Value, types,
};
use npu_mc::OperandKind;
use npu_mc::machine::INSTRUCTION_SIZE;

/// Instructions of the sequence that an entry leads to if its target is far away.
const SEQUENCE: u32 = 4;

/// The most entries of one table: all sequences after it and half as much again are in reach of each entry.
fn most_entries() -> usize {
    let (reach, _) = immediate_range(OperandKind::Brtarget18);
    (reach.unsigned_abs() / INSTRUCTION_SIZE / (2 * SEQUENCE)) as usize
}

/// Rewrites the function.
pub(super) fn run(func: &mut Function) {
    let most = most_entries();
    // Few functions have a table at all, and hardly any a long one.
    if func
        .dfg
        .jump_tables
        .values()
        .all(|table| table.as_slice().len() <= most)
    {
        return;
    }
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        let InstructionData::BranchTable { arg, table, .. } = func.dfg.insts[inst] else {
            continue;
        };
        let data = &func.dfg.jump_tables[table];
        if data.as_slice().len() <= most {
            continue;
        }
        let (default, entries) = (data.default_block(), data.as_slice().to_vec());
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        // Nothing refers to the table any more, which shares its lists of arguments with the new ones.
        cursor.func.dfg.jump_tables[table].clear();
        cursor.remove_inst();
        cursor.goto_bottom(block);
        let split = Split { default, most };
        split.emit(&mut cursor, arg, &entries);
    }
}

struct Split {
    default: BlockCall,
    most: usize,
}

impl Split {
    /// Ends the block at the cursor with a branch by the index. Calls itself as deep as the number of tables has bits.
    fn emit(&self, cursor: &mut FuncCursor<'_>, index: Value, entries: &[BlockCall]) {
        if entries.len() <= self.most {
            let default = copy(cursor.func, self.default);
            let table = cursor.func.create_jump_table(JumpTableData::new(default, entries));
            cursor.ins().br_table(index, table);
            return;
        }
        let tables = entries.len().div_ceil(self.most);
        let (low, high) = entries.split_at(tables / 2 * self.most);
        let [first, second] = [0; 2].map(|_| cursor.func.dfg.make_block());
        let start = cursor.ins().iconst(types::I32, low.len() as i64);
        let is_low = cursor.ins().icmp(IntCC::UnsignedLessThan, index, start);
        cursor.ins().brif(is_low, first, &[], second, &[]);
        cursor.insert_block(first);
        self.emit(cursor, index, low);
        cursor.insert_block(second);
        let rest = cursor.ins().isub(index, start);
        self.emit(cursor, rest, high);
    }
}

/// The same target and arguments, in a list of its own.
fn copy(func: &mut Function, call: BlockCall) -> BlockCall {
    let lists = &mut func.dfg.value_lists;
    let args: Vec<BlockArg> = call.args(lists).collect();
    BlockCall::new(call.block(lists), args, lists)
}
