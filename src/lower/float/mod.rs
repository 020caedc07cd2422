//! Floats. They live in the scalar registers as their bits: f16 in the low half of one, f64 in two, f128 in four.
//!
//! What the float unit does right, or right enough under `strict_float=false`, is an instruction; the rest is a routine of
//! the runtime. Compares are integer compares, because the unit's own order bit patterns (erratum
//! `float_compare_order`).

pub mod compare;
pub mod convert;

use super::context::Lower;
use super::wide::divide::routine;
use super::words::{Word, Words};
use crate::runtime::Routine;
use cranelift_codegen::ir::{Type, types};
use npu_mc::Opcode as Op;

/// An operation on floats that a routine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Square root.
    Sqrt,
    /// Rounded up to an integral number.
    Ceil,
    /// Rounded down.
    Floor,
    /// Rounded towards zero.
    Trunc,
    /// Rounded to nearest even.
    Nearest,
    /// Product of two plus a third.
    Fma,
}

impl FloatOp {
    /// The routine for `f32`.
    pub fn f32(self) -> Routine {
        match self {
            Self::Add => Routine::F32Add,
            Self::Sub => Routine::F32Sub,
            Self::Mul => Routine::F32Mul,
            Self::Div => Routine::F32Div,
            Self::Min => Routine::F32Min,
            Self::Max => Routine::F32Max,
            Self::Sqrt => Routine::F32Sqrt,
            Self::Ceil => Routine::F32Ceil,
            Self::Floor => Routine::F32Floor,
            Self::Trunc => Routine::F32Trunc,
            Self::Nearest => Routine::F32Nearest,
            Self::Fma => Routine::F32Fma,
        }
    }

    fn f64(self) -> Routine {
        match self {
            Self::Add => Routine::F64Add,
            Self::Sub => Routine::F64Sub,
            Self::Mul => Routine::F64Mul,
            Self::Div => Routine::F64Div,
            Self::Min => Routine::F64Min,
            Self::Max => Routine::F64Max,
            Self::Sqrt => Routine::F64Sqrt,
            Self::Ceil => Routine::F64Ceil,
            Self::Floor => Routine::F64Floor,
            Self::Trunc => Routine::F64Trunc,
            Self::Nearest => Routine::F64Nearest,
            Self::Fma => Routine::F64Fma,
        }
    }
}

impl Lower<'_> {
    /// Whether f32 arithmetic is the float unit's own.
    pub fn has_hardware_float(&self) -> bool {
        let settings = self.isa.settings();
        settings.has_fpu && !settings.strict_float
    }
}

/// The operation by a routine. The operands stand one behind the other.
///
/// f16 is computed in f32: with 24 bits of significand, more than twice the 11 and two more, the second rounding does no
/// harm for sums, products, quotients and roots.
pub fn operate(ctx: &mut Lower<'_>, op: &FloatOp, ty: Type, args: Words) -> Words {
    match ty {
        types::F64 => routine(ctx, op.f64(), args),
        types::F16 => {
            let wide: smallvec::SmallVec<[Word; 4]> = args
                .as_slice()
                .iter()
                .map(|&half| convert::half_to_single(ctx, Words::one(half)).low())
                .collect();
            let result = routine(ctx, op.f32(), Words::new(wide));
            routine(ctx, Routine::F16FromF32, result)
        }
        _ => routine(ctx, op.f32(), args),
    }
}

/// The sign bit of the word that has it.
fn sign_bit(ty: Type) -> Word {
    Word::Const(1 << ((ty.bits() - 1) % 32))
}

/// The bits of the word with the sign that are not the sign.
fn magnitude_bits(ty: Type) -> Word {
    Word::Const((1 << ((ty.bits() - 1) % 32)) - 1)
}

/// The number with its sign changed.
pub fn neg(ctx: &mut Lower<'_>, ty: Type, x: Words) -> Words {
    let top = ctx.binary(Op::XORSSS_32, x.top(), sign_bit(ty));
    x.with_top(top)
}

/// The number without its sign.
pub fn abs(ctx: &mut Lower<'_>, ty: Type, x: Words) -> Words {
    let top = ctx.binary(Op::ANDSSS_32, x.top(), magnitude_bits(ty));
    x.with_top(top)
}

/// The first number with the sign of the second.
pub fn copysign(ctx: &mut Lower<'_>, ty: Type, x: Words, y: Words) -> Words {
    let differ = ctx.binary(Op::XORSSS_32, x.top(), y.top());
    let sign = ctx.binary(Op::ANDSSS_32, differ, sign_bit(ty));
    let top = ctx.binary(Op::XORSSS_32, x.top(), sign);
    x.with_top(top)
}
