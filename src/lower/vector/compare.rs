//! Compares of vectors: a bit a lane, in a scalar register.

use super::Lanes;
use super::mask::int_of;
use crate::lower::context::Lower;
use crate::lower::words::Word;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Type, Value};
use npu_mc::Opcode as Op;

/// The instruction of a condition, in the form for two vectors.
pub fn instruction(cc: IntCC) -> Op {
    match cc {
        IntCC::Equal => Op::SEQSISVV_U_32,
        IntCC::NotEqual => Op::SNESISVV_U_32,
        IntCC::SignedLessThan => Op::SLTSISVV_U_32,
        IntCC::SignedGreaterThanOrEqual => Op::SGESISVV_U_32,
        IntCC::SignedGreaterThan => Op::SGTSISVV_U_32,
        IntCC::SignedLessThanOrEqual => Op::SLESISVV_U_32,
        IntCC::UnsignedLessThan => Op::SLTUISVV_U_32,
        IntCC::UnsignedGreaterThanOrEqual => Op::SGEUISVV_U_32,
        IntCC::UnsignedGreaterThan => Op::SGTUISVV_U_32,
        IntCC::UnsignedLessThanOrEqual => Op::SLEUISVV_U_32,
    }
}

/// The operands, extended so that whole lanes compare as their elements do.
pub fn extended(ctx: &mut Lower<'_>, cc: IntCC, ty: Type, x: Lanes, y: Lanes) -> (Lanes, Lanes) {
    // Equality may extend either way, and one instruction extends the sign.
    let signed = matches!(
        cc,
        IntCC::Equal
            | IntCC::NotEqual
            | IntCC::SignedLessThan
            | IntCC::SignedLessThanOrEqual
            | IntCC::SignedGreaterThan
            | IntCC::SignedGreaterThanOrEqual
    );
    if signed {
        (ctx.sign_extended(ty, x), ctx.sign_extended(ty, y))
    } else {
        (ctx.zero_extended(ty, x), ctx.zero_extended(ty, y))
    }
}

/// A compare of integers.
pub fn icmp(ctx: &mut Lower<'_>, cc: IntCC, args: [Value; 2]) -> Word {
    let ty = ctx.func.dfg.value_type(args[0]);
    let [x, y] = args.map(|arg| ctx.lanes(arg));
    let (x, y) = extended(ctx, cc, int_of(ty), x, y);
    ctx.vector_compare(instruction(cc), x, y)
}

/// The bits of infinity.
const INFINITY: u32 = 0x7f80_0000;

/// The number without its sign, at the top of the lane.
fn magnitude(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    ctx.vector_op(Op::SLLVVV_U_32, x, Lanes::Const(1))
}

/// An integer in the order of the numbers, the same for both zeros. NaNs lie beyond the infinities.
fn key(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    let sign = ctx.vector_op(Op::SRAVVV_U_32, x, Lanes::Const(31));
    let flips = ctx.vector_op(Op::SRLVVV_U_32, sign, Lanes::Const(1));
    let flipped = ctx.vector_op(Op::XORVVV_U_32, x, flips);
    ctx.vector_op(Op::SUBVVV_U_32, flipped, sign)
}

/// Lanes where `x` is below `y` (or equal, as the instruction says) and neither is a NaN: a NaN has a key above infinity or
/// below minus infinity, and would have to be the lower or the higher one.
fn ordered(ctx: &mut Lower<'_>, op: Op, x: Lanes, y: Lanes) -> Word {
    let (a, b) = (key(ctx, x), key(ctx, y));
    let less = ctx.vector_compare(op, a, b);
    let number = ctx.vector_compare(Op::SLESISVV_U_32, b, Lanes::Const(INFINITY));
    let less = both(ctx, less, number);
    let number = ctx.vector_compare(Op::SGESISVV_U_32, a, Lanes::Const(INFINITY.wrapping_neg()));
    both(ctx, less, number)
}

/// Lanes that are in both masks.
fn both(ctx: &mut Lower<'_>, a: Word, b: Word) -> Word {
    const ALL: Word = Word::Const(crate::inst::ALL_LANES as u32);
    match (a, b) {
        (ALL, other) | (other, ALL) => other,
        _ => ctx.binary(Op::ANDSSS_32, a, b),
    }
}

fn nan(ctx: &mut Lower<'_>, x: Lanes) -> Word {
    let magnitude = magnitude(ctx, x);
    ctx.vector_compare(Op::SGTUISVV_U_32, magnitude, Lanes::Const(INFINITY << 1))
}

/// Lanes where one of them is a NaN.
pub fn unordered(ctx: &mut Lower<'_>, x: Lanes, y: Lanes) -> Word {
    let a = nan(ctx, x);
    if x == y {
        return a;
    }
    let b = nan(ctx, y);
    ctx.binary(Op::ORSSS_32, a, b)
}

/// Lanes where both are equal numbers: the same bits and no NaN, or two zeros.
fn equal(ctx: &mut Lower<'_>, x: Lanes, y: Lanes) -> Word {
    let (x, y) = if matches!(x, Lanes::Const(_)) { (y, x) } else { (x, y) };
    if let Lanes::Const(number) = y {
        return match number << 1 {
            0 => {
                let magnitude = magnitude(ctx, x);
                ctx.vector_compare(Op::SEQSISVV_U_32, magnitude, Lanes::Const(0))
            }
            magnitude if magnitude > INFINITY << 1 => Word::ZERO,
            _ => ctx.vector_compare(Op::SEQSISVV_U_32, x, y),
        };
    }
    let same = ctx.vector_compare(Op::SEQSISVV_U_32, x, y);
    let of_x = magnitude(ctx, x);
    let number = ctx.vector_compare(Op::SLEUISVV_U_32, of_x, Lanes::Const(INFINITY << 1));
    let same = both(ctx, same, number);
    let either = ctx.vector_op(Op::ORVVV_U_32, x, y);
    let either = magnitude(ctx, either);
    let zeros = ctx.vector_compare(Op::SEQSISVV_U_32, either, Lanes::Const(0));
    ctx.binary(Op::ORSSS_32, same, zeros)
}

/// A compare of floats, by integer compares of their bits: the unit's own order bit patterns (erratum
/// `float_compare_order`).
pub fn fcmp(ctx: &mut Lower<'_>, cc: FloatCC, args: [Value; 2]) -> Word {
    let [x, y] = args.map(|arg| ctx.lanes(arg));
    let (less, not_above) = (Op::SLTSISVV_U_32, Op::SLESISVV_U_32);
    let (mask, inverted) = match cc {
        FloatCC::Ordered => (unordered(ctx, x, y), true),
        FloatCC::Unordered => (unordered(ctx, x, y), false),
        FloatCC::Equal => (equal(ctx, x, y), false),
        FloatCC::NotEqual => (equal(ctx, x, y), true),
        FloatCC::OrderedNotEqual | FloatCC::UnorderedOrEqual => {
            let unordered = unordered(ctx, x, y);
            let equal = equal(ctx, x, y);
            let either = ctx.binary(Op::ORSSS_32, unordered, equal);
            (either, cc == FloatCC::OrderedNotEqual)
        }
        FloatCC::LessThan => (ordered(ctx, less, x, y), false),
        FloatCC::LessThanOrEqual => (ordered(ctx, not_above, x, y), false),
        FloatCC::GreaterThan => (ordered(ctx, less, y, x), false),
        FloatCC::GreaterThanOrEqual => (ordered(ctx, not_above, y, x), false),
        // Not ordered the other way.
        FloatCC::UnorderedOrLessThan => (ordered(ctx, not_above, y, x), true),
        FloatCC::UnorderedOrLessThanOrEqual => (ordered(ctx, less, y, x), true),
        FloatCC::UnorderedOrGreaterThan => (ordered(ctx, not_above, x, y), true),
        FloatCC::UnorderedOrGreaterThanOrEqual => (ordered(ctx, less, x, y), true),
    };
    if inverted { ctx.other_lanes(mask) } else { mask }
}
