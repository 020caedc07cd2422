//! The operations of the R and I formats, for one lane (`docs/machine/operations.md`).
//!
//! The definition, the fast interpreter, timing and hazards share one table, which has an arm for
//! each operation of td.

use crate::fp;
use npu_mc::raw::AluOp;

/// The computation of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// Maps each lane of the first operand, in the integer pipe. The second operand is unused.
    Unary(fn(u32) -> u32),
    /// Combines each pair of lanes, in the integer pipe.
    Binary(fn(u32, u32) -> u32),
    /// An integer compare of all lanes; the result is a bit set.
    Compare(fn(u32, u32) -> bool),
    /// Like `Unary`, in the float pipe.
    FloatUnary(fn(u32) -> u32),
    /// Like `Binary`, in the float pipe.
    FloatBinary(fn(u32, u32) -> u32),
    /// Float compare.
    FloatCompare(fn(u32, u32) -> bool),
    /// Lane permutation.
    Shuffle,
    /// One lane of a vector.
    GetLane,
    /// Collects bit 0 of every lane into a bit set. The second operand is unused.
    Mask,
    /// An operation without a unit; it never has a result.
    NoUnit,
    /// Waits at issue for a float unit that the hardware lacks.
    Hang,
}

/// The propagation of undriven bits through an operation on scalars.
#[derive(Clone, Copy)]
pub(crate) enum Spread {
    /// The undriven bits of the first operand.
    Copied,
    /// A driven 0 of one operand decides the bit.
    And,
    /// A driven 1 of one operand decides the bit.
    Or,
    /// The undriven bits of both operands.
    Xor,
    /// All bits from the lowest undriven one up, since a carry can reach them.
    Carried,
    /// The operation shifts or extends its first operand; the second one has to be driven.
    Moved,
    /// A driven 1 below the lowest undriven bit determines the result.
    Decided,
    /// The operation has no result.
    Unwritten,
    /// Every result bit may depend on every operand bit: the operation uses its undriven bits.
    Used,
}

/// Returns the description of an operation. An operation of td without an arm is a compile error.
const fn table(op: AluOp) -> (Operation, Spread) {
    use Operation::{
        Binary, Compare, FloatBinary, FloatCompare, FloatUnary, GetLane, Hang, Mask, NoUnit, Shuffle, Unary,
    };
    use Spread::{And, Carried, Copied, Decided, Moved, Or, Unwritten, Used, Xor};
    match op {
        AluOp::Not => (Unary(|a| !a), Copied),
        AluOp::Or => (Binary(|a, b| a | b), Or),
        AluOp::And => (Binary(|a, b| a & b), And),
        AluOp::Xor => (Binary(|a, b| a ^ b), Xor),
        AluOp::Add => (Binary(u32::wrapping_add), Carried),
        AluOp::Sub => (Binary(u32::wrapping_sub), Carried),
        AluOp::Mull => (Binary(u32::wrapping_mul), Carried),
        AluOp::Mulhs => (Binary(mulhs), Used),
        AluOp::Mulhu => (Binary(mulhu), Used),
        AluOp::Ashr => (Binary(ashr), Moved),
        AluOp::Shr => (Binary(shr), Moved),
        AluOp::Shl => (Binary(shl), Moved),
        AluOp::Clz => (Unary(u32::leading_zeros), Used),
        AluOp::Ctz => (Unary(u32::trailing_zeros), Decided),
        AluOp::Cmpeq => (Compare(|a, b| a == b), Used),
        AluOp::Cmpne => (Compare(|a, b| a != b), Used),
        AluOp::Cmpgt => (Compare(|a, b| a as i32 > b as i32), Used),
        AluOp::Cmpge => (Compare(|a, b| a as i32 >= b as i32), Used),
        AluOp::Cmplt => (Compare(|a, b| (a as i32) < b as i32), Used),
        AluOp::Cmple => (Compare(|a, b| a as i32 <= b as i32), Used),
        AluOp::Cmpugt => (Compare(|a, b| a > b), Used),
        AluOp::Cmpuge => (Compare(|a, b| a >= b), Used),
        AluOp::Cmpult => (Compare(|a, b| a < b), Used),
        AluOp::Cmpule => (Compare(|a, b| a <= b), Used),
        AluOp::Shuffle => (Shuffle, Used),
        AluOp::Getlane => (GetLane, Used),
        AluOp::Move => (Unary(|a| a), Copied),
        AluOp::Fadd => (FloatBinary(fp::add), Used),
        AluOp::Fsub => (FloatBinary(fp::sub), Used),
        AluOp::Fmul => (FloatBinary(fp::mul), Used),
        AluOp::Fdiv => (FloatBinary(fp::div), Used),
        AluOp::Cmpfeq => (FloatCompare(fp::eq), Used),
        AluOp::Cmpfne => (FloatCompare(|a, b| !fp::eq(a, b)), Used),
        AluOp::Cmpfgt => (FloatCompare(fp::gt), Used),
        AluOp::Cmpfge => (FloatCompare(|a, b| fp::gt(a, b) || fp::eq(a, b)), Used),
        AluOp::Cmpflt => (FloatCompare(fp::lt), Used),
        AluOp::Cmpfle => (FloatCompare(|a, b| fp::lt(a, b) || fp::eq(a, b)), Used),
        AluOp::Sext8 => (Unary(|a| a as i8 as u32), Moved),
        AluOp::Sext16 => (Unary(|a| a as i16 as u32), Moved),
        AluOp::Sext32 => (Unary(|a| a), Copied),
        AluOp::F32tof64 => (Hang, Used),
        AluOp::F64tof32 => (Hang, Used),
        AluOp::Itof => (FloatUnary(fp::from_int), Used),
        AluOp::Ftoi => (FloatUnary(fp::to_int), Used),
        AluOp::CrtMask => (Mask, Used),
        AluOp::Crp => (NoUnit, Unwritten),
    }
}

/// Returns the computation of an operation.
pub(crate) const fn operation(op: AluOp) -> Operation {
    table(op).0
}

/// Returns how undriven bits propagate through an operation.
pub(crate) const fn spread(op: AluOp) -> Spread {
    table(op).1
}

/// Returns whether the operation has no second operand.
pub(crate) const fn is_unary(op: AluOp) -> bool {
    matches!(
        operation(op),
        Operation::Unary(_) | Operation::FloatUnary(_) | Operation::Mask
    )
}

/// Computes `ashr`: sign-extends to 64 bits and shifts right logically by the whole amount.
#[inline(always)]
pub(crate) const fn ashr(a: u32, b: u32) -> u32 {
    let wide = a as i32 as i64 as u64;
    if b < 64 { (wide >> b) as u32 } else { 0 }
}

/// Computes `shr` by the whole amount.
#[inline(always)]
pub(crate) const fn shr(a: u32, b: u32) -> u32 {
    if b < 32 { a >> b } else { 0 }
}

/// Computes `shl` by the whole amount.
#[inline(always)]
pub(crate) const fn shl(a: u32, b: u32) -> u32 {
    if b < 32 { a << b } else { 0 }
}

/// Returns the high half of the signed product.
#[inline(always)]
const fn mulhs(a: u32, b: u32) -> u32 {
    ((a as i32 as i64 * b as i32 as i64) >> 32) as u32
}

/// Returns the high half of the unsigned product.
#[inline(always)]
const fn mulhu(a: u32, b: u32) -> u32 {
    ((a as u64 * b as u64) >> 32) as u32
}
