//! Lowers operations on vectors of several registers.
//!
//! Each register, or part, holds sixteen lanes. Operations on each lane alone are lowered once for
//! each part (`lower/each_part.rs`). Operations that involve several parts are in this file and in
//! the last section of `isle/vector.isle`.

use super::{LaneRules, Lanes, is_long};
use crate::inst::reg::Reg;
use crate::inst::{Cond, LANES, MInst, SelectWord};
use crate::lower::context::{InstOutput, Lower};
use crate::lower::words::{Word, WordRules, Words};
use crate::shape::vector_registers;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value};
use regalloc2::RegClass;
use smallvec::{SmallVec, smallvec};

impl Lower<'_> {
    /// Calls a function with another current part.
    pub fn at_part<T>(&mut self, part: u8, something: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.part, part);
        let result = something(self);
        self.part = before;
        result
    }

    /// Returns a part of a vector operand.
    pub fn part_lanes(&mut self, value: Value, part: u8) -> Lanes {
        self.at_part(part, |ctx| ctx.lanes(value))
    }

    /// Returns the number of registers of a vector.
    pub fn count_parts(&mut self, value: Value) -> u8 {
        let count = vector_registers(self.func.dfg.value_type(value));
        self.known(count, "a vector in registers").unwrap_or(1)
    }

    /// Returns the data of an instruction. For an access to a vector of several registers, adjusts
    /// the offset to the current part, modulo 2^32 like addresses.
    pub fn data_of_part(&self, inst: Inst) -> InstructionData {
        let dfg = &self.func.dfg;
        let mut data = dfg.insts[inst];
        if self.part == 0 {
            return data;
        }
        let (ty, offset) = match &mut data {
            InstructionData::Load { offset, .. } => (dfg.value_type(dfg.first_result(inst)), offset),
            InstructionData::Store { args, offset, .. } => (dfg.value_type(args[0]), offset),
            _ => return data,
        };
        if is_long(ty) {
            *offset = Offset32::new(i32::from(*offset).wrapping_add(part_offset(ty, self.part)));
        }
        data
    }
}

/// Returns the offset of a part of a vector in memory, in bytes.
pub fn part_offset(ty: Type, part: u8) -> i32 {
    let bytes = LANES as u32 * ty.lane_bits() / 8;
    (u32::from(part) * bytes).cast_signed()
}

/// Selects one of two vectors with one branch.
pub fn select(ctx: &mut Lower<'_>, cond: Cond, x: Value, y: Value) -> InstOutput {
    let (x, y) = (ctx.put_in_regs(x), ctx.put_in_regs(y));
    let mut words: SmallVec<[SelectWord; 1]> = SmallVec::new();
    let mut regs: SmallVec<[Reg; 4]> = SmallVec::new();
    for (&if_true, &if_false) in x.as_slice().iter().zip(y.as_slice()) {
        if if_true == if_false {
            regs.push(Reg::Virtual(if_true));
            continue;
        }
        let dst = Reg::Virtual(ctx.new_vreg(RegClass::Vector));
        let (if_true, if_false) = (Reg::Virtual(if_true), Reg::Virtual(if_false));
        words.push(SelectWord { dst, if_true, if_false });
        regs.push(dst);
    }
    if !words.is_empty() {
        ctx.emit(MInst::Select { cond, words });
    }
    smallvec![ctx.result_regs(regs)]
}

/// Returns a mask of the lanes that are nonzero in any part.
pub fn any(ctx: &mut Lower<'_>, x: Value) -> Word {
    nonzero(ctx, x, LaneRules::mask_or)
}

/// Returns a mask of the lanes that are nonzero in every part.
pub fn all(ctx: &mut Lower<'_>, x: Value) -> Word {
    nonzero(ctx, x, LaneRules::mask_and)
}

fn nonzero<'a>(ctx: &mut Lower<'a>, x: Value, join: fn(&mut Lower<'a>, Word, Word) -> Word) -> Word {
    let mut mask = ctx.at_part(0, |ctx| ctx.nonzero_lanes(x));
    for part in 1..ctx.count_parts(x) {
        let more = ctx.at_part(part, |ctx| ctx.nonzero_lanes(x));
        mask = join(ctx, mask, more);
    }
    mask
}

/// Returns the highest bit of each lane: one word for two parts.
pub fn high_bits(ctx: &mut Lower<'_>, x: Value) -> Words {
    let mut words: SmallVec<[Word; 2]> = SmallVec::new();
    for part in (0..ctx.count_parts(x)).step_by(2) {
        let low = ctx.at_part(part, |ctx| ctx.high_lanes(x));
        let low = ctx.mask_clean(low);
        let high = ctx.at_part(part + 1, |ctx| ctx.high_lanes(x));
        let high = ctx.word_whole_shl(high, Word::Const(LANES as u32));
        words.push(ctx.mask_or(low, high));
    }
    Words::new(words)
}

/// Returns the current part of the upper half of a vector.
pub fn upper(ctx: &mut Lower<'_>, x: Value) -> Lanes {
    let part = ctx.part + ctx.count_parts(x) / 2;
    ctx.part_lanes(x, part)
}

/// Returns part `ctx.part * factor + plus` of the concatenation of `x` and `y`.
pub fn joined(ctx: &mut Lower<'_>, x: Value, y: Value, factor: u8, plus: u8) -> Lanes {
    let number = ctx.part * factor + plus;
    match number.checked_sub(ctx.count_parts(x)) {
        Some(number) => ctx.part_lanes(y, number),
        None => ctx.part_lanes(x, number),
    }
}

/// Lowers an instruction that moves lanes between parts, or whose operands and result have
/// different numbers of parts.
pub fn across(ctx: &mut Lower<'_>, opcode: Opcode, ty: Type, args: &[Value]) -> Option<InstOutput> {
    let mut regs: SmallVec<[Reg; 4]> = SmallVec::new();
    for part in 0..vector_registers(ty)? {
        let lanes = ctx.at_part(part, |ctx| ctx.part_across(opcode, ty, args))?;
        regs.push(ctx.vector_reg(lanes));
    }
    Some(smallvec![ctx.result_regs(regs)])
}
