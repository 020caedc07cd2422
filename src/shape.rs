//! What a value of each CLIF type consists of: the one place that maps types to registers.
//!
//! The records of td decide: `RegTypes` of a register class lists what one register holds. The calling convention, block parameters, lowering,
//! legalization and values of the host ask here.

pub(crate) use crate::legalize::{register_file, type_sets, value_type};
use cranelift_codegen::ir::{Type, types};
use npu_mc::RegFile;
use npu_mc::machine::{LANES, VECTOR_SLOT, WORD_SLOT};
use regalloc2::RegClass;

/// The scale of every vector of dynamic size: what is 128 bits long to begin with fills a vector register.
pub const SCALE: u32 = VECTOR_SLOT / 16;

/// What a value consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Words in scalar registers, the low one first. A narrow value is the low bits of one.
    Words(u8),
    /// Lanes of at most a word, in vector registers of sixteen lanes.
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

/// The vector of sixteen lanes whose register holds a vector of at most as many; none if no single register holds it.
pub fn register_type(ty: Type) -> Option<Type> {
    if is_vector(ty) {
        return Some(ty);
    }
    match Shape::of(ty)? {
        Shape::Lanes {
            element, registers: 1, ..
        } => vector_of(element),
        _ => None,
    }
}

/// Whether a register holds a vector of the type and has more lanes.
pub fn is_short(ty: Type) -> bool {
    !is_vector(ty) && register_type(ty).is_some()
}

/// Whether the type is a vector of fixed size that is not one of sixteen lanes in a register.
pub fn is_other(ty: Type) -> bool {
    ty.is_vector() && !is_vector(ty)
}

/// Whether values of the type are taken apart into their lanes: vectors that no single register holds.
pub fn is_split(ty: Type) -> bool {
    is_other(ty) && register_type(ty).is_none()
}

/// The types of what a value travels as: the lanes of a vector that is taken apart, else itself. A dynamic size is a fixed one.
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
        Shape::Lanes { registers: 1, .. } => Some((RegClass::Vector, 1)),
        Shape::Lanes { .. } | Shape::LanesOfWords { .. } => None,
    }
}

/// The type as the calling convention knows it: vectors of fewer lanes travel like those of sixteen, floats of no value type as their bits.
pub(crate) fn passed_as(ty: Type) -> Option<npu_mc::cc::ValueType> {
    match ty {
        types::F16 | types::F128 => value_type(ty.as_int()),
        _ => value_type(register_type(ty).unwrap_or(ty)),
    }
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
    }
}
