//! Vectors in big-endian order: the bytes of each lane are reversed between the register and memory. The lanes stand in memory in their
//! order whatever the order of bytes, and those of one byte have none.

use crate::shape::{is_split, register_type};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Endianness, Function, Inst, InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, Type, Value, types,
};

/// Whether a function has accesses of that order at all.
pub(crate) fn has_big_endian(func: &Function) -> bool {
    let flags = &func.dfg.mem_flags;
    let all = (0..).map_while(|number| MemFlags::with_number(number).filter(|&number| flags.is_valid(number)));
    all.into_iter().any(|number| is_big(&flags[number]))
}

fn is_big(flags: &MemFlagsData) -> bool {
    flags.explicit_endianness() == Some(Endianness::Big)
}

/// Rewrites loads and stores of vectors that registers hold; lanes of other vectors are accessed one by one.
pub(crate) fn run(func: &mut Function) {
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        while let Some(inst) = cursor.next_inst() {
            access(&mut cursor, inst);
        }
    }
}

/// The same flags but for the order of bytes.
fn little(flags: MemFlagsData) -> MemFlagsData {
    let mut little = MemFlagsData::new()
        .with_endianness(Endianness::Little)
        .with_alias_region(flags.alias_region())
        .with_trap_code(flags.trap_code());
    if flags.aligned() {
        little.set_aligned();
    }
    if flags.readonly() {
        little.set_readonly();
    }
    if flags.can_move() {
        little.set_can_move();
    }
    little
}

fn access(cursor: &mut FuncCursor<'_>, inst: Inst) {
    let dfg = &cursor.func.dfg;
    let data = dfg.insts[inst];
    let (InstructionData::Load { flags, .. } | InstructionData::Store { flags, .. }) = data else {
        return;
    };
    let flags = dfg.mem_flags[flags];
    let whole = |value: Value| Some(dfg.value_type(value)).filter(|&ty| register_type(ty).is_some() && !is_split(ty));
    if !is_big(&flags) {
        return;
    }
    let flags = little(flags);
    match data {
        InstructionData::Load {
            opcode: Opcode::Load,
            arg,
            offset,
            ..
        } => {
            let result = dfg.first_result(inst);
            let Some(ty) = whole(result) else { return };
            cursor.use_srcloc(inst);
            let loaded = cursor.ins().load(ty, flags, arg, offset);
            let reversed = reverse(cursor, loaded);
            cursor.func.dfg.clear_results(inst);
            cursor.func.dfg.change_to_alias(result, reversed);
            cursor.remove_inst_and_step_back();
        }
        InstructionData::Store {
            opcode: Opcode::Store,
            args: [value, pointer],
            offset,
            ..
        } => {
            if whole(value).is_none() {
                return;
            }
            cursor.use_srcloc(inst);
            let reversed = reverse(cursor, value);
            cursor.func.replace(inst).store(flags, reversed, pointer, offset);
        }
        _ => {}
    }
}

/// The vector with the bytes of each lane reversed.
fn reverse(cursor: &mut FuncCursor<'_>, value: Value) -> Value {
    let ty = cursor.func.dfg.value_type(value);
    let bits = ty.as_int();
    let as_type = |cursor: &mut FuncCursor<'_>, ty: Type, value: Value| match cursor.func.dfg.value_type(value) == ty {
        true => value,
        false => cursor.ins().bitcast(ty, MemFlagsData::new(), value),
    };
    if bits.lane_type() == types::I8 {
        return as_type(cursor, ty, value);
    }
    let mut swapped = as_type(cursor, bits, value);
    // Bytes change places with their neighbours, then pairs of bytes with theirs.
    let width = bits.lane_bits();
    for half in [8, 16].into_iter().filter(|&half| half < width) {
        let amount = cursor.ins().iconst(types::I32, i64::from(half));
        let mut lower = swapped;
        let mut upper = cursor.ins().ushr(swapped, amount);
        if 2 * half < width {
            let every_other = (u32::MAX >> (32 - width)) / ((1 << half) + 1);
            let mask = cursor.ins().iconst(bits.lane_type(), i64::from(every_other));
            let mask = cursor.ins().splat(bits, mask);
            lower = cursor.ins().band(lower, mask);
            upper = cursor.ins().band(upper, mask);
        }
        let lower = cursor.ins().ishl(lower, amount);
        swapped = cursor.ins().bor(lower, upper);
    }
    as_type(cursor, ty, swapped)
}
