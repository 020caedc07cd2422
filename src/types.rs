//! The types of CLIF as this target has them.

use cranelift_codegen::ir::{Type, types};
use regalloc2::RegClass;

/// Whether values of the type are held in a vector register.
pub fn is_vector(ty: Type) -> bool {
    matches!(ty, types::I8X16 | types::I16X16 | types::I32X16 | types::F32X16)
}

/// The registers that hold a value of the type: class and number. `None` for types that this target does not hold in
/// registers.
pub fn registers_of(ty: Type) -> Option<(RegClass, u8)> {
    match ty {
        types::I8 | types::I16 | types::I32 | types::F16 | types::F32 => Some((RegClass::Int, 1)),
        types::I64 | types::F64 => Some((RegClass::Int, 2)),
        types::I128 | types::F128 => Some((RegClass::Int, 4)),
        types::I8X16 | types::I16X16 | types::I32X16 | types::F32X16 => Some((RegClass::Vector, 1)),
        _ => None,
    }
}
