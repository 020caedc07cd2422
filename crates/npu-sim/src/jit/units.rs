//! What translations call: the float units.

use crate::fp;
use npu_mc::raw::AluOp;

/// A function of operations that are too long to stand in line.
pub(super) enum Unit {
    Unary(extern "C" fn(u32) -> u32),
    Binary(extern "C" fn(u32, u32) -> u32),
}

extern "C" fn add(a: u32, b: u32) -> u32 {
    fp::add(a, b)
}

extern "C" fn sub(a: u32, b: u32) -> u32 {
    fp::sub(a, b)
}

extern "C" fn mul(a: u32, b: u32) -> u32 {
    fp::mul(a, b)
}

extern "C" fn div(a: u32, b: u32) -> u32 {
    fp::div(a, b)
}

extern "C" fn from_int(a: u32) -> u32 {
    fp::from_int(a)
}

extern "C" fn to_int(a: u32) -> u32 {
    fp::to_int(a)
}

/// The function of an operation on scalars, if it is one of those.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others stand in line")]
pub(super) fn unit(op: AluOp) -> Option<Unit> {
    Some(match op {
        AluOp::Fadd => Unit::Binary(add),
        AluOp::Fsub => Unit::Binary(sub),
        AluOp::Fmul => Unit::Binary(mul),
        AluOp::Fdiv => Unit::Binary(div),
        AluOp::Itof => Unit::Unary(from_int),
        AluOp::Ftoi => Unit::Unary(to_int),
        _ => return None,
    })
}

impl Unit {
    /// The address of the function.
    pub fn address(&self) -> i64 {
        match self {
            Unit::Unary(f) => *f as usize as i64,
            Unit::Binary(f) => *f as usize as i64,
        }
    }

    /// Number of operands.
    pub fn operands(&self) -> usize {
        match self {
            Unit::Unary(_) => 1,
            Unit::Binary(_) => 2,
        }
    }
}
