//! The operations of the R and I formats, one lane each (`docs/machine/operations.md`).
//!
//! The definition, the fast interpreter, timing and hazards take all that they need of an operation from one table, with an arm
//! for each operation of td.

use crate::fp;
use npu_mc::raw::AluOp;

/// What becomes of the operands of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// Every lane of the first operand by itself, in the integer pipe. There is no second operand.
    Unary(fn(u32) -> u32),
    /// Every lane by itself, in the integer pipe.
    Binary(fn(u32, u32) -> u32),
    /// Integer compare: all lanes compared, the result is a bit set.
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
    /// Bit 0 of every lane, as a bit set. There is no second operand.
    Mask,
    /// Goes to a unit that does not exist: no result ever.
    NoUnit,
    /// Waits at issue for a float unit that was not built.
    Hang,
}

/// How undriven bits of the operands of an operation on scalars reach its result.
#[derive(Clone, Copy)]
pub(crate) enum Spread {
    /// The bits of the first operand.
    Copied,
    /// A driven 0 of one operand decides the bit.
    And,
    /// A driven 1 of one operand decides the bit.
    Or,
    /// The bits of both operands.
    Xor,
    /// A carry can reach every bit above the lowest one.
    Carried,
    /// The operation moves the bits of its first operand by the second one, which has to be driven.
    Moved,
    /// A driven 1 below all of them decides the result.
    Decided,
    /// The operation writes nothing.
    Unwritten,
    /// Every bit of the result may depend on every bit of the operands: the operation is a use of them.
    Used,
}

/// The table of operations. An operation of td without an arm does not compile.
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

/// What the operation does.
pub(crate) const fn operation(op: AluOp) -> Operation {
    table(op).0
}

/// How undriven bits reach its result.
pub(crate) const fn spread(op: AluOp) -> Spread {
    table(op).1
}

/// Whether the operation has no second operand.
pub(crate) const fn is_unary(op: AluOp) -> bool {
    matches!(
        operation(op),
        Operation::Unary(_) | Operation::FloatUnary(_) | Operation::Mask
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
const fn mulhs(a: u32, b: u32) -> u32 {
    ((a as i32 as i64 * b as i32 as i64) >> 32) as u32
}

/// High half of the unsigned product.
#[inline(always)]
const fn mulhu(a: u32, b: u32) -> u32 {
    ((a as u64 * b as u64) >> 32) as u32
}
