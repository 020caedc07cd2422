//! What a value of each CLIF type consists of: the one place that maps types to registers.
//!
//! The records of td decide: `RegTypes` of a register class lists what one register holds. The calling convention, block parameters, lowering,
//! legalization and values of the host ask here.

pub(crate) use crate::legalize::{register_file, type_sets, value_type};
use cranelift_codegen::ir::{Type, types};
use npu_mc::RegFile;
use npu_mc::machine::{LANES, VECTOR_SLOT, WORD_SLOT};
use regalloc2::RegClass;
use smallvec::SmallVec;

/// The scale of every vector of dynamic size: what is 128 bits long to begin with fills a vector register.
pub const SCALE: u32 = VECTOR_SLOT / 16;

/// The most vector registers that a value has in lowering.
pub const MAX_REGISTERS: u32 = 4;

/// What a value consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Words in scalar registers, the low one first. A narrow value is the low bits of one.
    Words(u8),
    /// Lanes of at most a word, in vector registers of sixteen lanes, the first lanes in the first register.
    Lanes {
        /// The type of a lane.
        element: Type,
        /// How many registers there are.
        registers: u32,
        /// How many lanes of the type there are. The contents of the others mean nothing.
        used: u32,
    },
    /// Lanes that no vector register holds, each with words of its own.
    LanesOfWords {
        /// The type of a lane.
        element: Type,
        /// How many there are.
        lanes: u32,
    },
}

impl Shape {
    /// The shape of values of a type; none if the type is not compiled. A dynamic size is the fixed one that it has here.
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

/// The vector of sixteen such elements that a register holds, if there is one.
pub fn vector_of(element: Type) -> Option<Type> {
    element.by(LANES).filter(|&ty| is_vector(ty))
}

/// Whether the type is one of sixteen lanes in a vector register.
pub fn is_vector(ty: Type) -> bool {
    matches!(register_file(ty), Some(RegFile::Vector))
}

/// The vector of sixteen lanes that each register of a vector holds; none if lowering has no registers for the vector.
pub fn register_type(ty: Type) -> Option<Type> {
    if is_vector(ty) {
        return Some(ty);
    }
    match Shape::of(ty)? {
        Shape::Lanes { element, registers, .. } if registers <= MAX_REGISTERS => vector_of(element),
        _ => None,
    }
}

/// How many vector registers hold a value of the type.
pub fn vector_registers(ty: Type) -> Option<u8> {
    match Shape::of(ty)? {
        Shape::Lanes { registers, .. } if registers <= MAX_REGISTERS => Some(registers as u8),
        _ => None,
    }
}

/// Whether a register holds a vector of the type and has more lanes.
pub fn is_short(ty: Type) -> bool {
    is_other(ty) && vector_registers(ty) == Some(1)
}

/// Whether several registers hold a vector of the type, all of whose lanes are used: the number of lanes is a power of two.
pub fn is_long(ty: Type) -> bool {
    vector_registers(ty).is_some_and(|registers| registers > 1)
}

/// Whether the type is a vector of fixed size that is not one of sixteen lanes in a register.
pub fn is_other(ty: Type) -> bool {
    ty.is_vector() && !is_vector(ty)
}

/// Whether values of the type are taken apart into their lanes: vectors that lowering has no registers for.
pub fn is_split(ty: Type) -> bool {
    is_other(ty) && register_type(ty).is_none()
}

/// The types of what a value becomes on CLIF: the lanes of a vector that is taken apart, else itself. A dynamic size is a fixed one.
pub fn parts(ty: Type) -> impl Iterator<Item = Type> {
    let ty = fixed(ty).unwrap_or(ty);
    let (ty, count) = match is_split(ty) {
        true => (ty.lane_type(), ty.lane_count() as usize),
        false => (ty, 1),
    };
    std::iter::repeat_n(ty, count)
}

/// The type of fixed size that stands for a type: a type that is not dynamic for itself. None if there is none with so many lanes.
pub fn fixed(ty: Type) -> Option<Type> {
    match ty.is_dynamic_vector() {
        true => ty.lane_type().by(ty.min_lane_count() * SCALE),
        false => Some(ty),
    }
}

/// The registers that hold a value of the type in lowering: class and number. `None` for vectors that other values stand for by then.
pub(crate) fn registers_of(ty: Type) -> Option<(RegClass, u8)> {
    match Shape::of(ty)? {
        Shape::Words(words) => Some((RegClass::Int, words)),
        Shape::Lanes { .. } => Some((RegClass::Vector, vector_registers(ty)?)),
        Shape::LanesOfWords { .. } => None,
    }
}

/// What a value of the type is for the calling convention: a vector is its registers, each of sixteen lanes, or else its lanes, and a float of no value
/// type is its bits. None for a type that is not passed.
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
