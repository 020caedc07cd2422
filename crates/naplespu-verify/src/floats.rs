//! Float operations as uninterpreted functions, named like the runtime's routines that implement
//! them.

use crate::term::{Pool, Term};
use cranelift_codegen::ir::{Opcode, Type, types};

/// Returns the function name of a float operation, as in the runtime.
fn name(op: Opcode, from: Type, to: Type) -> Option<String> {
    let of = |ty: Type| {
        Some(match ty {
            types::F16 => "f16",
            types::F32 => "f32",
            types::F64 => "f64",
            types::F128 => "f128",
            _ => return None,
        })
    };
    let operation = match op {
        Opcode::Fadd => "add",
        Opcode::Fsub => "sub",
        Opcode::Fmul => "mul",
        Opcode::Fdiv => "div",
        Opcode::Sqrt => "sqrt",
        Opcode::Fma => "fma",
        Opcode::Ceil => "ceil",
        Opcode::Floor => "floor",
        Opcode::Trunc => "trunc",
        Opcode::Nearest => "nearest",
        Opcode::Fmin => "min",
        Opcode::Fmax => "max",
        Opcode::Fpromote | Opcode::Fdemote => return Some(format!("{}_from_{}", of(to)?, of(from)?)),
        Opcode::FcvtFromSint if from.bits() >= 32 => return Some(format!("{}_from_s{}", of(to)?, from.bits())),
        Opcode::FcvtFromUint if from.bits() >= 32 => return Some(format!("{}_from_u{}", of(to)?, from.bits())),
        _ => return None,
    };
    // 16-bit floats are computed as 32-bit floats.
    match to {
        types::F32 | types::F64 | types::F128 => Some(format!("{}_{operation}", of(to)?)),
        _ => None,
    }
}

/// Returns the result of a float operation of CLIF, or `None` if it has no function.
pub fn clif(pool: &mut Pool, op: Opcode, from: Type, to: Type, operands: &[Term]) -> Option<Term> {
    let name = name(op, from, to)?;
    Some(pool.app(&name, to.bits(), operands))
}
