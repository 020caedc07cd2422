//! Which routine of the runtime does an operation on floats; what becomes of them otherwise stands in `isle/float.isle`.

use super::context::Lower;
use crate::runtime::Routine;

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

    /// The routine for `f64`.
    pub fn f64(self) -> Routine {
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
