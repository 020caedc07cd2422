//! The operations of the R and I formats, one lane each (`docs/machine/operations.md`).
//!
//! [`operations`] is the one list of them: what an operation computes, and what it is called in the fast interpreter. An operation
//! of td that is not in it does not compile, and one that is runs everywhere.

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

/// Calls a macro with all operations: the name, that of the form with an immediate in the fast interpreter, the [`Operation`].
macro_rules! operations {
    ($with:ident) => {
        $with! {
            Not, NotI = Unary(|a| !a);
            Or, OrI = Binary(|a, b| a | b);
            And, AndI = Binary(|a, b| a & b);
            Xor, XorI = Binary(|a, b| a ^ b);
            Add, AddI = Binary(u32::wrapping_add);
            Sub, SubI = Binary(u32::wrapping_sub);
            Mull, MullI = Binary(u32::wrapping_mul);
            Mulhs, MulhsI = Binary(mulhs);
            Mulhu, MulhuI = Binary(mulhu);
            Ashr, AshrI = Binary(ashr);
            Shr, ShrI = Binary(shr);
            Shl, ShlI = Binary(shl);
            Clz, ClzI = Unary(u32::leading_zeros);
            Ctz, CtzI = Unary(u32::trailing_zeros);
            Cmpeq, CmpeqI = Compare(|a, b| a == b);
            Cmpne, CmpneI = Compare(|a, b| a != b);
            Cmpgt, CmpgtI = Compare(|a, b| a as i32 > b as i32);
            Cmpge, CmpgeI = Compare(|a, b| a as i32 >= b as i32);
            Cmplt, CmpltI = Compare(|a, b| (a as i32) < b as i32);
            Cmple, CmpleI = Compare(|a, b| a as i32 <= b as i32);
            Cmpugt, CmpugtI = Compare(|a, b| a > b);
            Cmpuge, CmpugeI = Compare(|a, b| a >= b);
            Cmpult, CmpultI = Compare(|a, b| a < b);
            Cmpule, CmpuleI = Compare(|a, b| a <= b);
            Shuffle, ShuffleI = Shuffle;
            Getlane, GetlaneI = GetLane;
            Move, MoveI = Unary(|a| a);
            Fadd, FaddI = FloatBinary(fp::add);
            Fsub, FsubI = FloatBinary(fp::sub);
            Fmul, FmulI = FloatBinary(fp::mul);
            Fdiv, FdivI = FloatBinary(fp::div);
            Cmpfeq, CmpfeqI = FloatCompare(fp::eq);
            Cmpfne, CmpfneI = FloatCompare(|a, b| !fp::eq(a, b));
            Cmpfgt, CmpfgtI = FloatCompare(fp::gt);
            Cmpfge, CmpfgeI = FloatCompare(|a, b| fp::gt(a, b) || fp::eq(a, b));
            Cmpflt, CmpfltI = FloatCompare(fp::lt);
            Cmpfle, CmpfleI = FloatCompare(|a, b| fp::lt(a, b) || fp::eq(a, b));
            Sext8, Sext8I = Unary(|a| a as i8 as u32);
            Sext16, Sext16I = Unary(|a| a as i16 as u32);
            Sext32, Sext32I = Unary(|a| a);
            F32tof64, F32tof64I = Hang;
            F64tof32, F64tof32I = Hang;
            Itof, ItofI = FloatUnary(fp::from_int);
            Ftoi, FtoiI = FloatUnary(fp::to_int);
            CrtMask, CrtMaskI = Mask;
            Crp, CrpI = NoUnit;
        }
    };
}
pub(crate) use operations;

macro_rules! by_name {
    ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
        /// What the operation does.
        pub(crate) const fn operation(op: AluOp) -> Operation {
            match op {
                $(AluOp::$name => Operation::$kind $(($function))?,)*
            }
        }
    };
}
operations!(by_name);

/// Whether the operation has no second operand.
pub(crate) const fn is_unary(op: AluOp) -> bool {
    match operation(op) {
        Operation::Unary(_) | Operation::FloatUnary(_) | Operation::Mask => true,
        Operation::Binary(_)
        | Operation::Compare(_)
        | Operation::FloatBinary(_)
        | Operation::FloatCompare(_)
        | Operation::Shuffle
        | Operation::GetLane
        | Operation::NoUnit
        | Operation::Hang => false,
    }
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
