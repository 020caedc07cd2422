//! Rounding to integral numbers, and minimum and maximum, of all lanes at once, by integer operations on the bits.
//!
//! With an exponent from 0 to 22, a number has as many bits behind the point as are left of 23, and nothing but these change, with
//! a carry into the exponent where that is right. Below 1 everything is behind the point.

use super::Lanes;
use crate::lower::context::Lower;
use crate::lower::float::FloatOp;
use crate::lower::words::Word;
use npu_mc::Opcode as Op;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const ONE: u32 = 0x3f80_0000;
const HALF: u32 = 0x3f00_0000;
/// Bits of the significand that are stored.
const SIGNIFICAND: u32 = 23;
const BIAS: u32 = 127;

/// NaNs in place of results whose operands the mask says are NaNs.
fn with_nans(ctx: &mut Lower<'_>, nans: Word, x: Lanes) -> Lanes {
    ctx.masked_move(nans, Lanes::Const(NAN), x)
}

/// The operation, if it is one of those here.
pub fn round(ctx: &mut Lower<'_>, op: FloatOp, x: Lanes) -> Option<Lanes> {
    if !matches!(op, FloatOp::Ceil | FloatOp::Floor | FloatOp::Trunc | FloatOp::Nearest) {
        return None;
    }
    let magnitude = ctx.vector_op(Op::ANDVVV_U_32, x, Lanes::Const(!SIGN));
    let exponent = ctx.vector_op(Op::SRLVVV_U_32, magnitude, Lanes::Const(SIGNIFICAND));
    let exponent = ctx.vector_op(Op::SUBVVV_U_32, exponent, Lanes::Const(BIAS));
    // A large amount leaves nothing, which is right for large numbers; small ones have a negative amount.
    let behind = ctx.vector_op(Op::SRLVVV_U_32, Lanes::Const((1 << SIGNIFICAND) - 1), exponent);
    let small = ctx.vector_compare(Op::SLTSISVV_U_32, exponent, Lanes::Const(0));
    let behind = ctx.masked_move(small, Lanes::Const(!SIGN), behind);
    let fraction = ctx.vector_op(Op::ANDVVV_U_32, x, behind);
    let whole = ctx.vector_op(Op::XORVVV_U_32, x, fraction);
    let rounded = match op {
        FloatOp::Trunc => whole,
        FloatOp::Nearest => nearest(ctx, magnitude, small, behind, fraction, whole),
        _ => {
            let side = if op == FloatOp::Floor {
                Op::SLTSISVV_U_32
            } else {
                Op::SGESISVV_U_32
            };
            let side = ctx.vector_compare(side, x, Lanes::Const(0));
            let away = ctx.vector_compare(Op::SNESISVV_U_32, fraction, Lanes::Const(0));
            let away = ctx.binary(Op::ANDSSS_32, side, away);
            let unit = ctx.vector_op(Op::ADDVVV_U_32, behind, Lanes::Const(1));
            let moved = ctx.masked_op(away, Op::ADDVVV_U_32, whole, unit, whole);
            let below_one = ctx.binary(Op::ANDSSS_32, away, small);
            let one = if op == FloatOp::Floor { ONE | SIGN } else { ONE };
            ctx.masked_move(below_one, Lanes::Const(one), moved)
        }
    };
    let nans = ctx.vector_compare(Op::SGTSISVV_U_32, magnitude, Lanes::Const(INFINITY));
    Some(with_nans(ctx, nans, rounded))
}

/// To nearest, ties to even. Above 1 the fraction is compared with half a unit; below 1 the number itself with a half.
fn nearest(ctx: &mut Lower<'_>, magnitude: Lanes, small: Word, behind: Lanes, fraction: Lanes, whole: Lanes) -> Lanes {
    let unit = ctx.vector_op(Op::ADDVVV_U_32, behind, Lanes::Const(1));
    let twice = ctx.vector_op(Op::SLLVVV_U_32, fraction, Lanes::Const(1));
    let more = ctx.vector_compare(Op::SGTUISVV_U_32, twice, unit);
    let tie = ctx.vector_compare(Op::SEQSISVV_U_32, twice, unit);
    let last = ctx.vector_op(Op::ANDVVV_U_32, whole, unit);
    let odd = ctx.vector_compare(Op::SNESISVV_U_32, last, Lanes::Const(0));
    let tie = ctx.binary(Op::ANDSSS_32, tie, odd);
    let away = ctx.binary(Op::ORSSS_32, more, tie);
    let moved = ctx.masked_op(away, Op::ADDVVV_U_32, whole, unit, whole);
    let above_half = ctx.vector_compare(Op::SGTSISVV_U_32, magnitude, Lanes::Const(HALF));
    let to_one = ctx.binary(Op::ANDSSS_32, above_half, small);
    ctx.masked_op(to_one, Op::ORVVV_U_32, moved, Lanes::Const(ONE), moved)
}

/// A number in the order of the floats, -0 below +0.
fn ordered(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    let sign = ctx.vector_op(Op::SRAVVV_U_32, x, Lanes::Const(31));
    let flips = ctx.vector_op(Op::SRLVVV_U_32, sign, Lanes::Const(1));
    ctx.vector_op(Op::XORVVV_U_32, x, flips)
}

/// The smaller or the larger ones; a NaN wins.
pub fn min_max(ctx: &mut Lower<'_>, smaller: bool, x: Lanes, y: Lanes) -> Lanes {
    let (a, b) = (ordered(ctx, x), ordered(ctx, y));
    let op = if smaller { Op::SLTSISVV_U_32 } else { Op::SGTSISVV_U_32 };
    let mask = ctx.vector_compare(op, a, b);
    let chosen = ctx.masked_move(mask, x, y);
    let nans = super::compare::unordered(ctx, x, y);
    with_nans(ctx, nans, chosen)
}
