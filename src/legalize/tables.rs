//! Splits branch tables that are too long into several shorter ones.
//!
//! A table is a sequence of jumps. A jump whose target is out of reach goes to a sequence after the
//! table (`post_ra/relax.rs`), and the entry has to reach that sequence. So the length of a table is
//! limited such that all its targets may be out of reach. Compares of the index with the first
//! entry of each table select the table.

use crate::inst::ops::immediate_range;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, InstBuilder, InstructionData, JumpTableData, Value, types,
};
use npu_mc::OperandKind;
use npu_mc::machine::INSTRUCTION_SIZE;

/// The number of instructions in the sequence for an entry whose target is out of reach.
const SEQUENCE: u32 = 4;

/// Returns the maximum number of entries of a table. Every entry can reach all sequences after the
/// table, and half as many more.
fn most_entries() -> usize {
    let (reach, _) = immediate_range(OperandKind::Brtarget18);
    (reach.unsigned_abs() / INSTRUCTION_SIZE / (2 * SEQUENCE)) as usize
}

/// Rewrites the function.
pub(super) fn run(func: &mut Function) {
    let most = most_entries();
    // Most functions have no table, and long tables are rare.
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
        // The table is dead. It shares its argument lists with the new tables, so it must not keep
        // them.
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
    /// Ends the block at the cursor with a branch by the index. The recursion depth is the
    /// logarithm of the number of tables.
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

/// Copies a block call with a separate argument list.
fn copy(func: &mut Function, call: BlockCall) -> BlockCall {
    let lists = &mut func.dfg.value_lists;
    let args: Vec<BlockArg> = call.args(lists).collect();
    BlockCall::new(call.block(lists), args, lists)
}
