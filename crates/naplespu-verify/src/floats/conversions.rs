//! Conversions between floats, and between floats and integers.

use super::{apply, relation, type_name, unit_name};
use crate::abi::FloatUnit;
use crate::clif::across::{saturated, saturated_unsigned};
use crate::clif::scalar::{Outcome, Trap};
use crate::term::{Bits, Pool, Term, WORD};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{Opcode, Type, types};
use npu_mc::semantics::FloatFunction;

/// The bit of the status of a conversion to an integer (`isle/float.isle`) that stands for a NaN.
const IS_NAN: u64 = 2;

/// Converts a float to another format: exactly to a wider one, rounded once to a narrower one.
/// Conversions to f128 from formats below f64 go through f64.
pub fn between(pool: &mut Pool, from: Type, to: Type, a: Term) -> Option<Term> {
    let step = |pool: &mut Pool, from, to: Type, a| {
        let name = format!("{}_from_{}", type_name(to)?, type_name(from)?);
        Some(apply(pool, &name, to.bits(), &[a]))
    };
    match (from, to) {
        _ if from == to => Some(a),
        (types::F16 | types::F32, types::F128) => {
            let middle = step(pool, from, types::F64, a)?;
            step(pool, types::F64, to, middle)
        }
        _ => step(pool, from, to, a),
    }
}

/// Converts an integer to a float, rounded to nearest even. The float unit, if there is one, converts
/// integers of less than a word.
fn from_int(pool: &mut Pool, to: Type, is_signed: bool, a: Term, float_unit: FloatUnit) -> Option<Term> {
    let width = pool.width(a);
    if to == types::F16 {
        // The other format holds the integer exactly, or rounds it harmlessly.
        let through = if width < WORD { types::F32 } else { types::F64 };
        let middle = from_int(pool, through, is_signed, a, float_unit)?;
        return between(pool, through, to, middle);
    }
    let wide = width.max(WORD);
    let (extended, sign) = match is_signed {
        true => (pool.sext(a, wide), 's'),
        false => (pool.zext(a, wide), 'u'),
    };
    Some(match to {
        types::F32 if width < WORD && float_unit != FloatUnit::None => {
            pool.app(&unit_name(FloatFunction::FromInt), WORD, &[extended])
        }
        _ => {
            let name = format!("{}_from_{sign}{wide}", type_name(to)?);
            apply(pool, &name, to.bits(), &[extended])
        }
    })
}

/// Converts a float to an integer of at least a word, rounded towards zero and saturated. Returns it
/// with the status: 1 if the number was out of range, 2 if it was a NaN.
fn to_wide_int(pool: &mut Pool, from: Type, width: u32, is_signed: bool, a: Term) -> Option<(Term, Term)> {
    let source = if from == types::F16 { types::F32 } else { from };
    let a = between(pool, from, source, a)?;
    let sign = if is_signed { 's' } else { 'u' };
    let name = format!("{}_to_{sign}{width}", type_name(source)?);
    let both = apply(pool, &name, width + WORD, &[a]);
    Some((
        pool.extract(width - 1, 0, both),
        pool.extract(width + WORD - 1, width, both),
    ))
}

/// Converts a float to an integer, saturated or with traps.
fn to_int(pool: &mut Pool, op: Opcode, from: Type, to: Type, a: Term) -> Option<Outcome> {
    let is_signed = matches!(op, Opcode::FcvtToSint | Opcode::FcvtToSintSat);
    let wide = to.bits().max(WORD);
    let (number, status) = to_wide_int(pool, from, wide, is_signed, a)?;
    let result = match is_signed {
        true => saturated(pool, number, to.bits(), true),
        false => saturated_unsigned(pool, number, to.bits()),
    };
    if matches!(op, Opcode::FcvtToSintSat | Opcode::FcvtToUintSat) {
        return Some(Outcome::of(result));
    }
    let (mask, zero) = (pool.int(WORD, IS_NAN), pool.int(WORD, 0));
    let nan = pool.and(status, mask);
    let (is_number, is_exact) = (pool.eq(nan, zero), pool.eq(status, zero));
    let extended = match is_signed {
        true => pool.sext(result, wide),
        false => pool.zext(result, wide),
    };
    let fits = pool.eq(extended, number);
    let is_in_range = pool.and(is_exact, fits);
    Some(Outcome {
        results: vec![result],
        traps: vec![
            (pool.not(is_number), Trap::BadConversion),
            (pool.not(is_in_range), Trap::Overflow),
        ],
    })
}

/// Converts a float as x64 does: a number out of range, or a NaN, gives the least integer.
fn or_least(pool: &mut Pool, from: Type, to: Type, a: Term) -> Option<Outcome> {
    let power = i32::try_from(to.bits() - 1).ok()?;
    let bound = match from {
        // Infinity, if the power of two is beyond the range.
        types::F16 if power > 15 => 0x7c00,
        types::F16 => u64::from(Ieee16::pow2(power).bits()),
        types::F32 => u64::from(Ieee32::pow2(power).bits()),
        types::F64 => Ieee64::pow2(power).bits(),
        _ => return None,
    };
    let bound = pool.int(from.bits(), bound);
    let fits = relation(pool, a, bound).less;
    let converted = *to_int(pool, Opcode::FcvtToSintSat, from, to, a)?.results.first()?;
    let least = pool.constant(to.bits(), Bits::bit(to.bits() - 1));
    Some(Outcome::of(pool.ite(fits, converted, least)))
}

/// Returns the result and the traps of a conversion of CLIF, or `None` for other operations.
pub fn clif(pool: &mut Pool, op: Opcode, from: Type, to: Type, a: Term, float_unit: FloatUnit) -> Option<Outcome> {
    let result = match op {
        Opcode::Fpromote | Opcode::Fdemote => between(pool, from, to, a)?,
        Opcode::FcvtFromSint | Opcode::FcvtFromUint => from_int(pool, to, op == Opcode::FcvtFromSint, a, float_unit)?,
        Opcode::FcvtToSint | Opcode::FcvtToUint | Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => {
            return to_int(pool, op, from, to, a);
        }
        Opcode::X86Cvtt2dq => return or_least(pool, from, to, a),
        _ => return None,
    };
    Some(Outcome::of(result))
}
