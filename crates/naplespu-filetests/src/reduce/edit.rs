//! Changes to functions that several passes use.

use cranelift_codegen::cursor::{Cursor, CursorPosition, FuncCursor};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    Block, BlockCall, ConstantData, Function, Inst, InstBuilder, TrapCode, Type, Value, types,
};

/// Returns the instructions of a function, in order.
pub fn insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Emits a constant of the type at the cursor; returns `None` if CLIF has no such constant. `bits`
/// are the low bits of an integer or of each lane, the bit pattern of a float, or the upper half of
/// the pattern of an `f128`.
pub fn constant(cursor: &mut FuncCursor<'_>, ty: Type, bits: u64) -> Option<Value> {
    Some(match ty {
        types::I128 => {
            let low = cursor.ins().iconst(types::I64, bits.cast_signed());
            cursor.ins().uextend(ty, low)
        }
        types::F16 => cursor.ins().f16const(Ieee16::with_bits(bits as u16)),
        types::F32 => cursor.ins().f32const(Ieee32::with_bits(bits as u32)),
        types::F64 => cursor.ins().f64const(Ieee64::with_bits(bits)),
        types::F128 => {
            let data = (u128::from(bits) << 64).to_le_bytes();
            let handle = cursor.func.dfg.constants.insert(ConstantData::from(&data[..]));
            cursor.ins().f128const(handle)
        }
        _ if ty.is_int() => {
            let mask = u64::MAX >> (64 - ty.bits());
            cursor.ins().iconst(ty, (bits & mask).cast_signed())
        }
        _ if ty.is_vector() => {
            let bytes: Vec<u8> = (0..ty.bytes()).map(|i| (bits >> (8 * (i % 8))) as u8).collect();
            let handle = cursor.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
            cursor.ins().vconst(ty, handle)
        }
        _ => return None,
    })
}

/// Removes an instruction: constants replace its results, and a trap replaces a terminator. Returns
/// `false` if a type has no constant; the function is invalid then.
pub fn remove(func: &mut Function, inst: Inst) -> bool {
    if func.dfg.insts[inst].opcode().is_terminator() {
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.ins().trap(TrapCode::unwrap_user(1));
        cursor.goto_inst(inst);
        cursor.remove_inst();
        return true;
    }
    let results = func.dfg.inst_results(inst).to_vec();
    func.dfg.clear_results(inst);
    for result in results {
        let ty = func.dfg.value_type(result);
        let mut cursor = FuncCursor::new(func).at_position(CursorPosition::At(inst));
        let Some(value) = constant(&mut cursor, ty, 1) else {
            return false;
        };
        func.dfg.change_to_alias(result, value);
    }
    func.layout.remove_inst(inst);
    true
}

/// Returns the successors of a terminator.
pub fn ways_out(func: &Function, inst: Inst) -> Vec<BlockCall> {
    let data = &func.dfg.insts[inst];
    data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
        .to_vec()
}

/// Removes blocks that are unreachable from the entry.
pub fn remove_unreachable(func: &mut Function) {
    let Some(entry) = func.layout.entry_block() else { return };
    let mut reached = vec![entry];
    let mut index = 0;
    while let Some(&block) = reached.get(index) {
        index += 1;
        let Some(last) = func.layout.last_inst(block) else {
            continue;
        };
        for call in ways_out(func, last) {
            let target = call.block(&func.dfg.value_lists);
            if !reached.contains(&target) {
                reached.push(target);
            }
        }
    }
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks.into_iter().filter(|block| !reached.contains(block)) {
        while let Some(inst) = func.layout.last_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}
