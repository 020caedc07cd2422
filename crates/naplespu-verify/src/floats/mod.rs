//! Float operations. Compares, minima, maxima and roundings of `f32` are exact; all other arithmetic
//! consists of uninterpreted functions, named like the runtime's routines or the operations of the
//! float unit that implement them.

pub mod conversions;
mod exact;

use crate::abi::FloatUnit;
use crate::term::{Bits, Pool, Term};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Opcode, Type, types};
use npu_mc::semantics::FloatFunction;
use npu_sim::fp;

/// The relation of two floats. Exactly one of the conditions holds.
pub struct Relation {
    /// `a < b`.
    pub less: Term,
    /// `a = b`; zeros of both signs are equal.
    pub equal: Term,
    /// `a > b`.
    pub greater: Term,
    /// One of them is a NaN.
    pub unordered: Term,
}

/// Returns whether a bit pattern is a NaN: its magnitude is above that of infinity.
fn is_nan(pool: &mut Pool, a: Term) -> Term {
    let width = pool.width(a);
    let mantissa = match width {
        16 => 10,
        32 => 23,
        64 => 52,
        _ => 112,
    };
    let magnitude = pool.extract(width - 2, 0, a);
    let infinity = Bits::ones(width - 1 - mantissa).shl(mantissa, width - 1);
    let infinity = pool.constant(width - 1, infinity);
    pool.ult(infinity, magnitude)
}

/// Returns the relation of two floats by their bit patterns (IEEE 754).
pub fn relation(pool: &mut Pool, a: Term, b: Term) -> Relation {
    let width = pool.width(a);
    let (x, y) = (is_nan(pool, a), is_nan(pool, b));
    let unordered = pool.or(x, y);
    let ordered = pool.not(unordered);
    let (sign_a, sign_b) = (
        pool.extract(width - 1, width - 1, a),
        pool.extract(width - 1, width - 1, b),
    );
    let either = pool.or(a, b);
    let magnitudes = pool.extract(width - 2, 0, either);
    let zero = pool.int(width - 1, 0);
    let (zeros, same) = (pool.eq(magnitudes, zero), pool.eq(a, b));
    let alike = pool.or(zeros, same);
    let equal = pool.and(ordered, alike);
    // Among numbers of one sign, patterns are ordered like magnitudes.
    let (below, above) = (pool.ult(a, b), pool.ult(b, a));
    let same_sign = pool.ite(sign_a, above, below);
    let signs = pool.xor(sign_a, sign_b);
    let smaller = pool.ite(signs, sign_a, same_sign);
    let differ = pool.not(alike);
    let comparable = pool.and(ordered, differ);
    let (less, not_smaller) = (pool.and(comparable, smaller), pool.not(smaller));
    Relation {
        less,
        equal,
        greater: pool.and(comparable, not_smaller),
        unordered,
    }
}

/// Compares floats; the result is one bit.
pub fn compare(pool: &mut Pool, cc: FloatCC, a: Term, b: Term) -> Term {
    let Relation {
        less,
        equal,
        greater,
        unordered,
    } = relation(pool, a, b);
    let any = |pool: &mut Pool, list: &[Term]| {
        let start = pool.bool(false);
        list.iter().fold(start, |all, &one| pool.or(all, one))
    };
    let list: &[Term] = match cc {
        FloatCC::Ordered => return pool.not(unordered),
        FloatCC::Unordered => return unordered,
        FloatCC::Equal => return equal,
        FloatCC::NotEqual => return pool.not(equal),
        FloatCC::OrderedNotEqual => &[less, greater],
        FloatCC::UnorderedOrEqual => &[unordered, equal],
        FloatCC::LessThan => return less,
        FloatCC::LessThanOrEqual => &[less, equal],
        FloatCC::GreaterThan => return greater,
        FloatCC::GreaterThanOrEqual => &[greater, equal],
        FloatCC::UnorderedOrLessThan => &[unordered, less],
        FloatCC::UnorderedOrLessThanOrEqual => &[unordered, less, equal],
        FloatCC::UnorderedOrGreaterThan => &[unordered, greater],
        FloatCC::UnorderedOrGreaterThanOrEqual => &[unordered, greater, equal],
    };
    any(pool, list)
}

/// Returns the function of the float unit for an operation of CLIF.
fn of_unit(op: Opcode, to: Type) -> Option<FloatFunction> {
    match op {
        Opcode::Fadd if to == types::F32 => Some(FloatFunction::Add),
        Opcode::Fsub if to == types::F32 => Some(FloatFunction::Sub),
        Opcode::Fmul if to == types::F32 => Some(FloatFunction::Mul),
        Opcode::Fdiv if to == types::F32 => Some(FloatFunction::Div),
        _ => None,
    }
}

/// Returns whether this is the name of an uninterpreted function here.
pub fn is_function(name: &str) -> bool {
    let mut chars = name.chars();
    name.starts_with("unit_") || (chars.next() == Some('f') && chars.next().is_some_and(|c| c.is_ascii_digit()))
}

/// Returns the name of a function of the float unit.
pub fn unit_name(function: FloatFunction) -> String {
    format!("unit_{function:?}")
}

/// Arithmetic of f32 with concrete numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// That of the float unit.
    Unit,
    /// IEEE 754, by which the optimizer folds constants.
    Ieee,
}

/// Returns the result of the float unit's function of this name, or `None` for other functions.
pub fn result(name: &str, operands: &[Bits], arithmetic: Arithmetic) -> Option<Bits> {
    let function = FloatFunction::ALL
        .iter()
        .find(|&&function| unit_name(function) == name)?;
    let operands: Vec<u32> = operands.iter().map(|operand| operand.low() as u32).collect();
    let ieee = |operation: fn(f32, f32) -> f32, a, b| operation(f32::from_bits(a), f32::from_bits(b)).to_bits();
    let is_ieee = arithmetic == Arithmetic::Ieee;
    let result = match (function, operands.as_slice()) {
        (FloatFunction::Add, &[a, b]) if is_ieee => ieee(|a, b| a + b, a, b),
        (FloatFunction::Sub, &[a, b]) if is_ieee => ieee(|a, b| a - b, a, b),
        (FloatFunction::Mul, &[a, b]) if is_ieee => ieee(|a, b| a * b, a, b),
        (FloatFunction::Div, &[a, b]) if is_ieee => ieee(|a, b| a / b, a, b),
        (FloatFunction::Add, &[a, b]) => fp::add(a, b),
        (FloatFunction::Sub, &[a, b]) => fp::sub(a, b),
        (FloatFunction::Mul, &[a, b]) => fp::mul(a, b),
        (FloatFunction::Div, &[a, b]) => fp::div(a, b),
        (FloatFunction::FromInt, &[a]) => fp::from_int(a),
        (FloatFunction::ToInt, &[a]) => fp::to_int(a),
        _ => return None,
    };
    Some(Bits::from(u64::from(result)))
}

/// Returns the name of a float type in the names of routines.
fn type_name(ty: Type) -> Option<&'static str> {
    Some(match ty {
        types::F16 => "f16",
        types::F32 => "f32",
        types::F64 => "f64",
        types::F128 => "f128",
        _ => return None,
    })
}

/// Returns the name of an operation in the names of routines.
fn operation_name(op: Opcode) -> Option<&'static str> {
    Some(match op {
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
        _ => return None,
    })
}

/// Applies a routine of the runtime for floats, by its name without the prefix.
pub fn apply(pool: &mut Pool, name: &str, width: u32, operands: &[Term]) -> Term {
    exact::result(pool, name, operands).unwrap_or_else(|| pool.app(name, width, operands))
}

/// Returns the result of a float operation of CLIF on operands of its type, or `None` if it has no
/// function.
pub fn clif(pool: &mut Pool, op: Opcode, ty: Type, operands: &[Term], float_unit: FloatUnit) -> Option<Term> {
    if let Some(function) = of_unit(op, ty).filter(|_| float_unit == FloatUnit::All) {
        return Some(pool.app(&unit_name(function), ty.bits(), operands));
    }
    // Operations on f16 are computed in a wider format, which holds the result or rounds it
    // harmlessly (`isle/float.isle`).
    let computed = match (ty, op) {
        (types::F16, Opcode::Fma) => types::F64,
        (types::F16, _) => types::F32,
        _ => ty,
    };
    let name = format!("{}_{}", type_name(computed)?, operation_name(op)?);
    let mut wide = Vec::new();
    for &operand in operands {
        wide.push(conversions::between(pool, ty, computed, operand)?);
    }
    let result = apply(pool, &name, computed.bits(), &wide);
    conversions::between(pool, computed, ty, result)
}
