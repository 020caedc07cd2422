//! One lane of the integer and float pipes (`microarch.md` 4.1 and 5.1).

use crate::fp;
use npu_mc::raw::AluOp;

/// How an operation uses its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Every lane by itself.
    Lanes,
    /// Integer compare: all lanes compared, result is a bit set.
    Compare,
    /// Every lane by itself, in the float pipe.
    Float,
    /// Float compare.
    FloatCompare,
    /// Lane permutation.
    Shuffle,
    /// One lane of a vector.
    GetLane,
    /// Bit 0 of every lane, as a bit set.
    Mask,
    /// Goes to a unit that does not exist: no result ever.
    NoUnit,
    /// Waits at issue for a float unit that was not built.
    Hang,
}

pub(crate) const fn class(op: AluOp) -> Class {
    match op {
        AluOp::Cmpeq
        | AluOp::Cmpne
        | AluOp::Cmpgt
        | AluOp::Cmpge
        | AluOp::Cmplt
        | AluOp::Cmple
        | AluOp::Cmpugt
        | AluOp::Cmpuge
        | AluOp::Cmpult
        | AluOp::Cmpule => Class::Compare,
        AluOp::Fadd | AluOp::Fsub | AluOp::Fmul | AluOp::Fdiv | AluOp::Itof | AluOp::Ftoi => Class::Float,
        AluOp::Cmpfeq | AluOp::Cmpfne | AluOp::Cmpfgt | AluOp::Cmpfge | AluOp::Cmpflt | AluOp::Cmpfle => {
            Class::FloatCompare
        }
        AluOp::Shuffle => Class::Shuffle,
        AluOp::Getlane => Class::GetLane,
        AluOp::CrtMask => Class::Mask,
        AluOp::Crp => Class::NoUnit,
        AluOp::F32tof64 | AluOp::F64tof32 => Class::Hang,
        _ => Class::Lanes,
    }
}

/// Whether the operation has no second operand.
pub(crate) const fn is_unary(op: AluOp) -> bool {
    matches!(
        op,
        AluOp::Not
            | AluOp::Clz
            | AluOp::Ctz
            | AluOp::Move
            | AluOp::Sext8
            | AluOp::Sext16
            | AluOp::Sext32
            | AluOp::Itof
            | AluOp::Ftoi
            | AluOp::CrtMask
    )
}

/// `ashr`: a 64-bit sign-extended value shifted right logically by the whole amount.
#[inline(always)]
pub(crate) const fn ashr(a: u32, b: u32) -> u32 {
    let wide = a as i32 as i64 as u64;
    if b < 64 { (wide >> b) as u32 } else { 0 }
}

/// `shr` by the whole amount.
#[inline(always)]
pub(crate) const fn shr(a: u32, b: u32) -> u32 {
    if b < 32 { a >> b } else { 0 }
}

/// `shl` by the whole amount.
#[inline(always)]
pub(crate) const fn shl(a: u32, b: u32) -> u32 {
    if b < 32 { a << b } else { 0 }
}

/// High half of the signed product.
#[inline(always)]
pub(crate) const fn mulhs(a: u32, b: u32) -> u32 {
    ((a as i32 as i64 * b as i32 as i64) >> 32) as u32
}

/// High half of the unsigned product.
#[inline(always)]
pub(crate) const fn mulhu(a: u32, b: u32) -> u32 {
    ((a as u64 * b as u64) >> 32) as u32
}

/// Integer and float compares.
#[inline(always)]
pub(crate) fn compare(op: AluOp, a: u32, b: u32) -> bool {
    match op {
        AluOp::Cmpeq => a == b,
        AluOp::Cmpne => a != b,
        AluOp::Cmpgt => a as i32 > b as i32,
        AluOp::Cmpge => a as i32 >= b as i32,
        AluOp::Cmplt => (a as i32) < b as i32,
        AluOp::Cmple => a as i32 <= b as i32,
        AluOp::Cmpugt => a > b,
        AluOp::Cmpuge => a >= b,
        AluOp::Cmpult => a < b,
        AluOp::Cmpule => a <= b,
        AluOp::Cmpfeq => fp::eq(a, b),
        AluOp::Cmpfne => !fp::eq(a, b),
        AluOp::Cmpfgt => fp::gt(a, b),
        AluOp::Cmpfge => fp::gt(a, b) || fp::eq(a, b),
        AluOp::Cmpflt => fp::lt(a, b),
        AluOp::Cmpfle => fp::lt(a, b) || fp::eq(a, b),
        _ => false,
    }
}

/// One lane of an operation of class [`Class::Lanes`] or [`Class::Float`]; anything else gives 0.
#[inline(always)]
pub(crate) fn lane(op: AluOp, a: u32, b: u32) -> u32 {
    match op {
        AluOp::Not => !a,
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mull => a.wrapping_mul(b),
        AluOp::Mulhs => mulhs(a, b),
        AluOp::Mulhu => mulhu(a, b),
        AluOp::Ashr => ashr(a, b),
        AluOp::Shr => shr(a, b),
        AluOp::Shl => shl(a, b),
        AluOp::Clz => a.leading_zeros(),
        AluOp::Ctz => a.trailing_zeros(),
        AluOp::Move | AluOp::Sext32 => a,
        AluOp::Sext8 => a as i8 as u32,
        AluOp::Sext16 => a as i16 as u32,
        AluOp::Fadd => fp::add(a, b),
        AluOp::Fsub => fp::sub(a, b),
        AluOp::Fmul => fp::mul(a, b),
        AluOp::Fdiv => fp::div(a, b),
        AluOp::Itof => fp::from_int(a),
        AluOp::Ftoi => fp::to_int(a),
        _ => 0,
    }
}
