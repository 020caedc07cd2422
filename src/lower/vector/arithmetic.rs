//! Integer operations on lanes that are more than one instruction, or need their operands extended.

use super::compare::{extended, instruction};
use super::{Lanes, is_full};
use crate::lower::context::Lower;
use crate::lower::words::Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Type, Value};
use npu_mc::Opcode as Op;
use npu_mc::errata::Erratum;

/// An operation on two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VecOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Upper half of the product, unsigned.
    Umulhi,
    /// Upper half of the product, signed.
    Smulhi,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The smaller one, signed.
    Smin,
    /// The larger one, signed.
    Smax,
    /// The smaller one, unsigned.
    Umin,
    /// The larger one, unsigned.
    Umax,
    /// Sum, saturated, unsigned.
    UaddSat,
    /// Sum, saturated, signed.
    SaddSat,
    /// Difference, saturated, unsigned.
    UsubSat,
    /// Difference, saturated, signed.
    SsubSat,
    /// Mean, unsigned, rounded up.
    AvgRound,
}

/// A shift or rotation of all lanes by one amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftOp {
    /// To the left.
    Ishl,
    /// To the right, zeros coming in.
    Ushr,
    /// To the right, the sign coming in.
    Sshr,
    /// Rotation to the left.
    Rotl,
    /// Rotation to the right.
    Rotr,
}

/// The operation on two values.
pub fn binary(ctx: &mut Lower<'_>, op: &VecOp, ty: Type, x: Value, y: Value) -> Lanes {
    let low_bits = match op {
        VecOp::Add => Some(Op::ADDVVV_U_32),
        VecOp::Sub => Some(Op::SUBVVV_U_32),
        VecOp::Mul => Some(Op::MULLVVV_U_32),
        VecOp::And => Some(Op::ANDVVV_U_32),
        VecOp::Or => Some(Op::ORVVV_U_32),
        VecOp::Xor => Some(Op::XORVVV_U_32),
        _ => None,
    };
    if let Some(low_bits) = low_bits {
        if let Some(lanes) = on_some_lanes(ctx, op, low_bits, x, y) {
            return lanes;
        }
        let (x, y) = (ctx.lanes(x), ctx.lanes(y));
        if low_bits == Op::SUBVVV_U_32 && x == Lanes::Const(0) {
            return neg(ctx, y);
        }
        return ctx.vector_op(low_bits, x, y);
    }
    let (x, y) = (ctx.lanes(x), ctx.lanes(y));
    match op {
        VecOp::Umulhi | VecOp::Smulhi => mulhi(ctx, *op == VecOp::Smulhi, ty, x, y),
        VecOp::Smin => choose(ctx, IntCC::SignedLessThan, ty, x, y),
        VecOp::Smax => choose(ctx, IntCC::SignedGreaterThan, ty, x, y),
        VecOp::Umin => choose(ctx, IntCC::UnsignedLessThan, ty, x, y),
        VecOp::Umax => choose(ctx, IntCC::UnsignedGreaterThan, ty, x, y),
        VecOp::UaddSat => uadd_sat(ctx, ty, x, y),
        VecOp::UsubSat => usub_sat(ctx, ty, x, y),
        VecOp::SaddSat => signed_sat(ctx, Op::ADDVVV_U_32, ty, x, y),
        VecOp::SsubSat => signed_sat(ctx, Op::SUBVVV_U_32, ty, x, y),
        _ => avg_round(ctx, ty, x, y),
    }
}

/// An operation with an operand that is zero in some lanes, for which zero changes nothing, is done on the others only; and
/// what a mask lets through is moved under the mask.
fn on_some_lanes(ctx: &mut Lower<'_>, op: &VecOp, low_bits: Op, x: Value, y: Value) -> Option<Lanes> {
    if *op == VecOp::And {
        let (mask, other) = match (ctx.mask_of(x), ctx.mask_of(y)) {
            (Some(mask), None) => (mask, y),
            (None, Some(mask)) => (mask, x),
            _ => return None,
        };
        if !matches!(mask, Word::Reg(_)) {
            return None;
        }
        let other = ctx.lanes(other);
        return Some(ctx.masked_move(mask, other, Lanes::Const(0)));
    }
    if *op == VecOp::Mul {
        return None;
    }
    let (mask, operand, old) = match ctx.zero_elsewhere(y) {
        Some((mask, operand)) => (mask, operand, x),
        None if *op == VecOp::Sub => return None,
        None => {
            let (mask, operand) = ctx.zero_elsewhere(x)?;
            (mask, operand, y)
        }
    };
    let old = ctx.lanes(old);
    Some(ctx.masked_op(mask, low_bits, old, operand, old))
}

/// The numbers with their signs changed.
pub fn neg(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    // There is no form that subtracts a vector from an immediate.
    ctx.vector_op(Op::MULLVVV_U_32, x, Lanes::Const(u32::MAX))
}

/// The numbers without their signs.
pub fn abs(ctx: &mut Lower<'_>, ty: Type, x: Lanes) -> Lanes {
    let x = ctx.sign_extended(ty, x);
    let sign = ctx.vector_op(Op::SRAVVV_U_32, x, Lanes::Const(31));
    let flipped = ctx.vector_op(Op::XORVVV_U_32, x, sign);
    ctx.vector_op(Op::SUBVVV_U_32, flipped, sign)
}

fn mulhi(ctx: &mut Lower<'_>, signed: bool, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extend_both(ctx, signed, ty, x, y);
    let bits = Lanes::Const(ty.lane_bits());
    match (is_full(ty), signed) {
        (true, true) => ctx.vector_op(Op::MULHVVV_U_32, x, y),
        (true, false) => ctx.vector_op(Op::MULHUVVV_U_32, x, y),
        (false, true) => {
            let product = ctx.vector_op(Op::MULLVVV_U_32, x, y);
            ctx.vector_op(Op::SRAVVV_U_32, product, bits)
        }
        (false, false) => {
            let product = ctx.vector_op(Op::MULLVVV_U_32, x, y);
            ctx.vector_op(Op::SRLVVV_U_32, product, bits)
        }
    }
}

fn extend_both(ctx: &mut Lower<'_>, signed: bool, ty: Type, x: Lanes, y: Lanes) -> (Lanes, Lanes) {
    if signed {
        (ctx.sign_extended(ty, x), ctx.sign_extended(ty, y))
    } else {
        (ctx.zero_extended(ty, x), ctx.zero_extended(ty, y))
    }
}

/// `x` where the condition holds between it and `y`, else `y`.
fn choose(ctx: &mut Lower<'_>, cc: IntCC, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extended(ctx, cc, ty, x, y);
    let mask = ctx.vector_compare(instruction(cc), x, y);
    ctx.masked_move(mask, x, y)
}

/// The lanes, or the limit where they are above it.
fn at_most(ctx: &mut Lower<'_>, x: Lanes, limit: u32) -> Lanes {
    let mask = ctx.vector_compare(Op::SGTSISVV_U_32, x, Lanes::Const(limit));
    ctx.masked_move(mask, Lanes::Const(limit), x)
}

/// The lanes, or the limit where they are below it.
fn at_least(ctx: &mut Lower<'_>, x: Lanes, limit: u32) -> Lanes {
    let mask = ctx.vector_compare(Op::SLTSISVV_U_32, x, Lanes::Const(limit));
    ctx.masked_move(mask, Lanes::Const(limit), x)
}

/// Largest signed number of the type.
fn signed_max(ty: Type) -> u32 {
    u32::MAX >> (33 - ty.lane_bits())
}

/// Numbers of whole lanes in the range of the type.
pub fn clamp(ctx: &mut Lower<'_>, ty: Type, signed: bool, x: Lanes) -> Lanes {
    if signed {
        let x = at_most(ctx, x, signed_max(ty));
        at_least(ctx, x, !signed_max(ty))
    } else {
        let limit = u32::MAX >> (32 - ty.lane_bits());
        let mask = ctx.vector_compare(Op::SGTUISVV_U_32, x, Lanes::Const(limit));
        ctx.masked_move(mask, Lanes::Const(limit), x)
    }
}

fn uadd_sat(ctx: &mut Lower<'_>, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extend_both(ctx, false, ty, x, y);
    let sum = ctx.vector_op(Op::ADDVVV_U_32, x, y);
    if !is_full(ty) {
        return at_most(ctx, sum, u32::MAX >> (32 - ty.lane_bits()));
    }
    let carry = ctx.vector_compare(Op::SLTUISVV_U_32, sum, x);
    ctx.masked_move(carry, Lanes::Const(u32::MAX), sum)
}

fn usub_sat(ctx: &mut Lower<'_>, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extend_both(ctx, false, ty, x, y);
    let difference = ctx.vector_op(Op::SUBVVV_U_32, x, y);
    let borrow = ctx.vector_compare(Op::SLTUISVV_U_32, x, y);
    ctx.masked_move(borrow, Lanes::Const(0), difference)
}

fn signed_sat(ctx: &mut Lower<'_>, op: Op, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extend_both(ctx, true, ty, x, y);
    let result = ctx.vector_op(op, x, y);
    if !is_full(ty) {
        return clamp(ctx, ty, true, result);
    }
    // It overflows if the sign of the result differs from that of x, and y has the sign that can do that.
    let from_x = ctx.vector_op(Op::XORVVV_U_32, x, result);
    let other = if op == Op::ADDVVV_U_32 { result } else { x };
    let from_y = ctx.vector_op(Op::XORVVV_U_32, y, other);
    let overflow = ctx.vector_op(Op::ANDVVV_U_32, from_x, from_y);
    let mask = ctx.vector_compare(Op::SLTSISVV_U_32, overflow, Lanes::Const(0));
    // The limit on the side of x.
    let sign = ctx.vector_op(Op::SRAVVV_U_32, x, Lanes::Const(31));
    let limit = ctx.vector_op(Op::XORVVV_U_32, sign, Lanes::Const(signed_max(ty)));
    ctx.masked_move(mask, limit, result)
}

fn avg_round(ctx: &mut Lower<'_>, ty: Type, x: Lanes, y: Lanes) -> Lanes {
    let (x, y) = extend_both(ctx, false, ty, x, y);
    if !is_full(ty) {
        let sum = ctx.vector_op(Op::ADDVVV_U_32, x, y);
        let sum = ctx.vector_op(Op::ADDVVV_U_32, sum, Lanes::Const(1));
        return ctx.vector_op(Op::SRLVVV_U_32, sum, Lanes::Const(1));
    }
    // What both have, and half of what one has, rounded up.
    let either = ctx.vector_op(Op::ORVVV_U_32, x, y);
    let differ = ctx.vector_op(Op::XORVVV_U_32, x, y);
    let half = ctx.vector_op(Op::SRLVVV_U_32, differ, Lanes::Const(1));
    ctx.vector_op(Op::SUBVVV_U_32, either, half)
}

/// A shift amount modulo the width of a lane; `negated` for the other direction.
fn amount(ctx: &mut Lower<'_>, ty: Type, n: Value, negated: bool) -> Lanes {
    let mask = ty.lane_bits() - 1;
    if let Some(constant) = ctx.wide_constant(n) {
        let low = (constant & u128::from(mask)) as u32;
        return Lanes::Const(if negated { low.wrapping_neg() & mask } else { low });
    }
    let mut n = ctx.words(n).low();
    if negated {
        n = ctx.binary(Op::SUBSSS_32, Word::ZERO, n);
    }
    let modulo = !is_full(ty) || ctx.isa.has_erratum(Erratum::ShiftAmountNotModulo);
    let n = if modulo {
        ctx.binary(Op::ANDSSS_32, n, Word::Const(mask))
    } else {
        n
    };
    Lanes::Scalar(ctx.reg(n))
}

/// A shift or rotation.
pub fn shift(ctx: &mut Lower<'_>, op: &ShiftOp, ty: Type, x: Value, n: Value) -> Lanes {
    let x = ctx.lanes(x);
    let distance = amount(ctx, ty, n, *op == ShiftOp::Rotr);
    match op {
        ShiftOp::Ishl => ctx.vector_op(Op::SLLVVV_U_32, x, distance),
        ShiftOp::Ushr => {
            let x = ctx.zero_extended(ty, x);
            ctx.vector_op(Op::SRLVVV_U_32, x, distance)
        }
        ShiftOp::Sshr => {
            let x = ctx.sign_extended(ty, x);
            ctx.vector_op(Op::SRAVVV_U_32, x, distance)
        }
        ShiftOp::Rotl | ShiftOp::Rotr => {
            let x = ctx.zero_extended(ty, x);
            let back = amount(ctx, ty, n, *op == ShiftOp::Rotl);
            let left = ctx.vector_op(Op::SLLVVV_U_32, x, distance);
            let right = ctx.vector_op(Op::SRLVVV_U_32, x, back);
            ctx.vector_op(Op::ORVVV_U_32, left, right)
        }
    }
}

/// How many bits are set: sums of bits in ever wider fields; the multiplication adds the four bytes up.
pub fn popcnt(ctx: &mut Lower<'_>, ty: Type, x: Lanes) -> Lanes {
    let x = ctx.zero_extended(ty, x);
    let (and, srl, add) = (Op::ANDVVV_U_32, Op::SRLVVV_U_32, Op::ADDVVV_U_32);
    let odd = ctx.vector_op(srl, x, Lanes::Const(1));
    let odd = ctx.vector_op(and, odd, Lanes::Const(0x5555_5555));
    let pairs = ctx.vector_op(Op::SUBVVV_U_32, x, odd);
    let threes = Lanes::Const(0x3333_3333);
    let low = ctx.vector_op(and, pairs, threes);
    let high = ctx.vector_op(srl, pairs, Lanes::Const(2));
    let high = ctx.vector_op(and, high, threes);
    let nibbles = ctx.vector_op(add, low, high);
    let shifted = ctx.vector_op(srl, nibbles, Lanes::Const(4));
    let bytes = ctx.vector_op(add, nibbles, shifted);
    let bytes = ctx.vector_op(and, bytes, Lanes::Const(0x0f0f_0f0f));
    let sums = ctx.vector_op(Op::MULLVVV_U_32, bytes, Lanes::Const(0x0101_0101));
    ctx.vector_op(srl, sums, Lanes::Const(24))
}

/// Bits of `x` where the mask has ones, else of `y`.
pub fn bitselect(ctx: &mut Lower<'_>, mask: Lanes, x: Lanes, y: Lanes) -> Lanes {
    let differ = ctx.vector_op(Op::XORVVV_U_32, x, y);
    let taken = ctx.vector_op(Op::ANDVVV_U_32, differ, mask);
    ctx.vector_op(Op::XORVVV_U_32, taken, y)
}
