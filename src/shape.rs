//! The mapping from CLIF types to registers.
//!
//! The td records define it: `RegTypes` of a register class lists the types of its registers. The
//! calling convention, block parameters, lowering, legalization and the host's values all use this
//! module.

pub(crate) use crate::legalize::{register_file, type_sets, value_type};
use cranelift_codegen::ir::{Type, types};
use npu_mc::RegFile;
use npu_mc::machine::{LANES, VECTOR_SLOT, WORD_SLOT};
use regalloc2::RegClass;
use smallvec::SmallVec;

/// The scale of all dynamic vectors: a dynamic vector with a base size of 128 bits fills one vector
/// register.
pub const SCALE: u32 = VECTOR_SLOT / 16;

/// The maximum number of vector registers of a value in lowering.
pub const MAX_REGISTERS: u32 = 4;

/// The components of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Words in scalar registers, the low word first. A narrow value is in the low bits of one
    /// word.
    Words(u8),
    /// Lanes of at most a word, in vector registers of sixteen lanes. The first register contains
    /// the first lanes.
    Lanes {
        /// The type of a lane.
        element: Type,
        /// The number of registers.
        registers: u32,
        /// The number of lanes of the type. The contents of the other lanes are undefined.
        used: u32,
    },
    /// Lanes of a type that no vector register holds (`f16`, or more than 32 bits). Each lane is
    /// represented by words.
    LanesOfWords {
        /// The type of a lane.
        element: Type,
        /// The number of lanes.
        lanes: u32,
    },
}

impl Shape {
    /// Returns the shape of values of a type, or `None` if the type is not supported. A dynamic
    /// type has the shape of its fixed type.
    pub fn of(ty: Type) -> Option<Self> {
        let ty = fixed(ty)?;
        let element = ty.lane_type();
        if ty.is_vector() {
            let used = ty.lane_count();
            return Some(match vector_of(element) {
                Some(_) => Self::Lanes {
                    element,
                    registers: used.div_ceil(LANES),
                    used,
                },
                None => Self::LanesOfWords { element, lanes: used },
            });
        }
        let words = ty.bytes().div_ceil(WORD_SLOT);
        (element.is_int() || element.is_float()).then_some(Self::Words(words as u8))
    }
}

/// Returns the type of a full vector register with such elements, if it exists.
pub fn vector_of(element: Type) -> Option<Type> {
    element.by(LANES).filter(|&ty| is_vector(ty))
}

/// Returns whether the type has sixteen lanes in one vector register.
pub fn is_vector(ty: Type) -> bool {
    matches!(register_file(ty), Some(RegFile::Vector))
}

/// Returns the type of each register of a vector, which has sixteen lanes. Returns `None` if
/// lowering has no registers for the vector.
pub fn register_type(ty: Type) -> Option<Type> {
    if is_vector(ty) {
        return Some(ty);
    }
    match Shape::of(ty)? {
        Shape::Lanes { element, registers, .. } if registers <= MAX_REGISTERS => vector_of(element),
        _ => None,
    }
}

/// Returns the number of vector registers that hold a value of the type.
pub fn vector_registers(ty: Type) -> Option<u8> {
    match Shape::of(ty)? {
        Shape::Lanes { registers, .. } if registers <= MAX_REGISTERS => Some(registers as u8),
        _ => None,
    }
}

/// Returns whether one register holds a vector of the type and has unused lanes.
pub fn is_short(ty: Type) -> bool {
    is_other(ty) && vector_registers(ty) == Some(1)
}

/// Returns whether several registers hold a vector of the type. All their lanes are used, because
/// the number of lanes is a power of two.
pub fn is_long(ty: Type) -> bool {
    vector_registers(ty).is_some_and(|registers| registers > 1)
}

/// Returns whether the type is a fixed-size vector that does not exactly fill one register.
pub fn is_other(ty: Type) -> bool {
    ty.is_vector() && !is_vector(ty)
}

/// Returns whether legalization splits values of the type into their lanes: vectors that lowering
/// has no registers for.
pub fn is_split(ty: Type) -> bool {
    is_other(ty) && register_type(ty).is_none()
}

/// Returns the types of the CLIF values that replace a value: the lanes of a vector that is split,
/// otherwise the type itself. A dynamic type is replaced by its fixed type.
pub fn parts(ty: Type) -> impl Iterator<Item = Type> {
    let ty = fixed(ty).unwrap_or(ty);
    let (ty, count) = match is_split(ty) {
        true => (ty.lane_type(), ty.lane_count() as usize),
        false => (ty, 1),
    };
    std::iter::repeat_n(ty, count)
}

/// Returns the fixed type for a dynamic type, and any other type unchanged. Returns `None` if no
/// type has the required number of lanes.
pub fn fixed(ty: Type) -> Option<Type> {
    match ty.is_dynamic_vector() {
        true => ty.lane_type().by(ty.min_lane_count() * SCALE),
        false => Some(ty),
    }
}

/// Returns the registers of a value of the type in lowering: class and number. Returns `None` for
/// vectors that legalization replaces.
pub(crate) fn registers_of(ty: Type) -> Option<(RegClass, u8)> {
    match Shape::of(ty)? {
        Shape::Words(words) => Some((RegClass::Int, words)),
        Shape::Lanes { .. } => Some((RegClass::Vector, vector_registers(ty)?)),
        Shape::LanesOfWords { .. } => None,
    }
}

/// Returns the value types of the calling convention for a type. A vector is passed as its
/// registers of sixteen lanes each, or as its lanes. A float without a value type is passed as its
/// bits. Returns `None` for a type that cannot be passed.
pub(crate) fn passed_as(ty: Type) -> Option<SmallVec<[npu_mc::cc::ValueType; 4]>> {
    let mut passed = SmallVec::new();
    for part in parts(ty) {
        let own = match part {
            types::F16 | types::F128 => value_type(part.as_int())?,
            _ => value_type(register_type(part).unwrap_or(part))?,
        };
        passed.extend(std::iter::repeat_n(own, vector_registers(part).unwrap_or(1).into()));
    }
    Some(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::{F16, F32X2, I8, I8X16, I32, I32X4, I64, I64X2, I128};

    #[test]
    fn every_type_has_one_shape() {
        let lanes = |element, registers, used| {
            Some(Shape::Lanes {
                element,
                registers,
                used,
            })
        };
        assert_eq!(Shape::of(I8), Some(Shape::Words(1)));
        assert_eq!(Shape::of(F16), Some(Shape::Words(1)));
        assert_eq!(Shape::of(I128), Some(Shape::Words(4)));
        assert_eq!(Shape::of(I8X16), lanes(I8, 1, 16));
        assert_eq!(Shape::of(I32X4), lanes(I32, 1, 4));
        assert_eq!(Shape::of(I32.by(64).unwrap()), lanes(I32, 4, 64));
        assert_eq!(Shape::of(I64X2), Some(Shape::LanesOfWords { element: I64, lanes: 2 }));
        assert_eq!(Shape::of(types::INVALID), None);
        assert_eq!(Shape::of(I32X4.vector_to_dynamic().unwrap()), lanes(I32, 1, 16));
        assert_eq!(register_type(F32X2), Some(types::F32X16));
        assert_eq!(parts(I64X2).collect::<Vec<_>>(), [I64, I64]);
        let long = I32.by(64).unwrap();
        assert_eq!(vector_registers(long), Some(4));
        assert_eq!(parts(long).collect::<Vec<_>>(), [long]);
        assert_eq!(passed_as(long).map(|passed| passed.len()), Some(4));
        let longer = I32.by(128).unwrap();
        assert!(is_long(long) && is_split(longer));
        assert_eq!(passed_as(longer).map(|passed| passed.len()), Some(128));
    }
}
