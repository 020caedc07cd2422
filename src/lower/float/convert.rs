//! Conversions between floats and integers, and between floats of different width.

use crate::inst::MInst;
use crate::lower::context::Lower;
use crate::lower::wide::compare;
use crate::lower::wide::divide::routine;
use crate::lower::words::{Word, Words};
use crate::runtime::Routine;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{TrapCode, Type, types};
use npu_mc::Opcode as Op;

/// What the last word of a conversion to an integer says.
const OUT_OF_RANGE: u32 = 1;
const NOT_A_NUMBER: u32 = 2;

/// f16 as f32, which is exact.
pub fn half_to_single(ctx: &mut Lower<'_>, x: Words) -> Words {
    routine(ctx, Routine::F32FromF16, x)
}

/// A float in a wider format, which is exact.
pub fn promote(ctx: &mut Lower<'_>, from: Type, to: Type, x: Words) -> Words {
    let which = match (from, to) {
        (types::F16, types::F32) => Routine::F32FromF16,
        (types::F16, _) => Routine::F64FromF16,
        _ => Routine::F64FromF32,
    };
    routine(ctx, which, x)
}

/// A float in a narrower format, rounded once.
pub fn demote(ctx: &mut Lower<'_>, from: Type, to: Type, x: Words) -> Words {
    let which = match (from, to) {
        (types::F64, types::F32) => Routine::F32FromF64,
        (types::F64, _) => Routine::F16FromF64,
        _ => Routine::F16FromF32,
    };
    routine(ctx, which, x)
}

/// The number rounded towards zero and saturated, and what is to be said about it.
fn to_int(ctx: &mut Lower<'_>, from: Type, to: Type, signed: bool, x: Words) -> (Words, Word) {
    let x = if from == types::F16 { half_to_single(ctx, x) } else { x };
    let which = match (from == types::F64, signed, to.bits()) {
        (false, true, 0..=32) => Routine::F32ToS32,
        (false, true, 64) => Routine::F32ToS64,
        (false, true, _) => Routine::F32ToS128,
        (false, false, 0..=32) => Routine::F32ToU32,
        (false, false, 64) => Routine::F32ToU64,
        (false, false, _) => Routine::F32ToU128,
        (true, true, 0..=32) => Routine::F64ToS32,
        (true, true, 64) => Routine::F64ToS64,
        (true, true, _) => Routine::F64ToS128,
        (true, false, 0..=32) => Routine::F64ToU32,
        (true, false, 64) => Routine::F64ToU64,
        (true, false, _) => Routine::F64ToU128,
    };
    let results = routine(ctx, which, x);
    let len = results.len().saturating_sub(1);
    (results.take(len), results.top())
}

/// Smallest and largest number of a narrow type, as words.
fn bounds(to: Type, signed: bool) -> (u32, u32) {
    let bits = to.bits();
    if signed {
        let max = (1u32 << (bits - 1)) - 1;
        (!max, max)
    } else {
        (0, (1u32 << bits) - 1)
    }
}

/// To an integer, saturated; a NaN gives 0.
pub fn to_int_saturated(ctx: &mut Lower<'_>, from: Type, to: Type, signed: bool, x: Words) -> Words {
    let (words, _) = to_int(ctx, from, to, signed, x);
    if to.bits() >= 32 {
        return words;
    }
    let (low, high) = bounds(to, signed);
    let (below, above) = if signed {
        (IntCC::SignedLessThan, IntCC::SignedGreaterThan)
    } else {
        (IntCC::UnsignedLessThan, IntCC::UnsignedGreaterThan)
    };
    let words = compare::choose(ctx, &below, words, Words::constant(high.into(), 1));
    if low == 0 {
        return words;
    }
    compare::choose(ctx, &above, words, Words::constant(low.into(), 1))
}

/// To an integer; a NaN and a number out of range trap.
pub fn to_int_or_trap(ctx: &mut Lower<'_>, from: Type, to: Type, signed: bool, x: Words) -> Words {
    let (words, status) = to_int(ctx, from, to, signed, x);
    let nan = ctx.binary(Op::ANDSSS_32, status, Word::Const(NOT_A_NUMBER));
    trap_if(ctx, nan, TrapCode::BAD_CONVERSION_TO_INTEGER);
    let mut out = status;
    if to.bits() < 32 {
        let (low, high) = bounds(to, signed);
        let from_low = ctx.binary(Op::SUBSSS_32, words.low(), Word::Const(low));
        let span = Word::Const(high.wrapping_sub(low));
        let beyond = ctx.binary(Op::SGTUISSS_32, from_low, span);
        out = ctx.binary(Op::ORSSS_32, out, beyond);
    }
    debug_assert_eq!(OUT_OF_RANGE, 1, "what is left of the status is a truth value");
    trap_if(ctx, out, TrapCode::INTEGER_OVERFLOW);
    words
}

fn trap_if(ctx: &mut Lower<'_>, word: Word, code: TrapCode) {
    let cond = ctx.nonzero_word(word);
    ctx.emit(MInst::TrapIf { cond, code });
}

/// From an integer that is extended to at least a word, rounded to nearest even.
///
/// The float unit converts exactly what came from a type of less than 32 bits. f16 goes
/// through a format that holds the integer, or so much of it that the second rounding does no harm: what f64 rounds is
/// beyond the largest f16.
pub fn from_int(ctx: &mut Lower<'_>, from: Type, to: Type, signed: bool, x: Words) -> Words {
    let narrow = from.bits() < 32;
    if to == types::F16 {
        let middle = if narrow { types::F32 } else { types::F64 };
        let number = from_int(ctx, from, middle, signed, x);
        return demote(ctx, middle, types::F16, number);
    }
    if narrow && to == types::F32 && ctx.isa.settings().has_fpu {
        return Words::one(ctx.unary(Op::I32TOF32_SS, x.low()));
    }
    let which = match (to == types::F64, signed, x.len()) {
        (false, true, 1) => Routine::F32FromS32,
        (false, true, 2) => Routine::F32FromS64,
        (false, true, _) => Routine::F32FromS128,
        (false, false, 1) => Routine::F32FromU32,
        (false, false, 2) => Routine::F32FromU64,
        (false, false, _) => Routine::F32FromU128,
        (true, true, 1) => Routine::F64FromS32,
        (true, true, 2) => Routine::F64FromS64,
        (true, true, _) => Routine::F64FromS128,
        (true, false, 1) => Routine::F64FromU32,
        (true, false, 2) => Routine::F64FromU64,
        (true, false, _) => Routine::F64FromU128,
    };
    routine(ctx, which, x)
}
