//! The exact results of some functions of `f32`: minimum, maximum, and rounding to integral numbers.

use super::{is_nan, relation};
use crate::term::{Pool, Term, WORD};

/// The sign of a number.
const SIGN: u64 = 1 << 31;
/// The bits of 1, of 0.5, and of the NaN without sign and payload that the routines return.
const ONE: u64 = 1f32.to_bits() as u64;
const HALF: u64 = 0.5f32.to_bits() as u64;
const NAN: u64 = f32::NAN.to_bits() as u64;
/// The number of bits of the fraction.
const FRACTION: u32 = f32::MANTISSA_DIGITS - 1;
/// The exponent field of 1.
const BIAS: u64 = ONE >> FRACTION;

/// Returns the result of a routine of the runtime, by its name without the prefix, or `None` if the
/// routine has no exact meaning here.
pub fn result(pool: &mut Pool, name: &str, operands: &[Term]) -> Option<Term> {
    Some(match (name, operands) {
        ("f32_min", &[a, b]) => better(pool, a, b, true),
        ("f32_max", &[a, b]) => better(pool, a, b, false),
        ("f32_trunc", &[a]) => rounded(pool, a, Direction::Zero),
        ("f32_floor", &[a]) => rounded(pool, a, Direction::Down),
        ("f32_ceil", &[a]) => rounded(pool, a, Direction::Up),
        ("f32_nearest", &[a]) => rounded(pool, a, Direction::Even),
        _ => return None,
    })
}

/// Returns the smaller number, or the larger one. -0 is less than 0.
fn better(pool: &mut Pool, a: Term, b: Term, smaller: bool) -> Term {
    let relation = relation(pool, a, b);
    let (is_first, zeros) = match smaller {
        true => (relation.less, pool.or(a, b)),
        false => (relation.greater, pool.and(a, b)),
    };
    let differ = pool.ite(is_first, a, b);
    let number = pool.ite(relation.equal, zeros, differ);
    let nan = pool.int(WORD, NAN);
    pool.ite(relation.unordered, nan, number)
}

/// The direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Zero,
    Down,
    Up,
    /// To the nearest number; to the even one of two.
    Even,
}

/// Rounds to an integral number. Of a number with an exponent from 0 to 22, the last 23 minus the
/// exponent bits are after the point. They are cut off, or carry into the bits above, which may
/// include the exponent.
fn rounded(pool: &mut Pool, x: Term, direction: Direction) -> Term {
    let int = |pool: &mut Pool, number| pool.int(WORD, number);
    let sign = pool.extract(WORD - 1, WORD - 1, x);
    let sign_bit = int(pool, SIGN);
    let (sign_bit, others) = (pool.and(x, sign_bit), int(pool, SIGN - 1));
    let magnitude = pool.and(x, others);
    let exponent = pool.lshr_const(magnitude, FRACTION);
    let (bias, zero) = (int(pool, BIAS), int(pool, 0));
    let is_below_one = pool.ult(exponent, bias);
    let last = int(pool, BIAS + u64::from(FRACTION) - 1);
    let is_integral = pool.ult(last, exponent);

    let by = pool.sub(exponent, bias);
    let (unit, one) = (int(pool, 1 << FRACTION), int(pool, 1));
    let unit = pool.lshr(unit, by);
    let mask = pool.sub(unit, one);
    let fraction = pool.and(x, mask);
    let whole = pool.xor(x, fraction);
    let exact = pool.eq(fraction, zero);
    let inexact = pool.not(exact);
    let is_zero = pool.eq(magnitude, zero);
    let nonzero = pool.not(is_zero);
    let never = pool.bool(false);
    let positive = pool.not(sign);
    // Whether the magnitude grows, above 1 and below 1.
    let (grows, reaches_one) = match direction {
        Direction::Zero => (never, never),
        Direction::Down => (pool.and(sign, inexact), pool.and(sign, nonzero)),
        Direction::Up => (pool.and(positive, inexact), pool.and(positive, nonzero)),
        Direction::Even => {
            let twice = pool.shl_const(fraction, 1);
            let (above, tie) = (pool.ult(unit, twice), pool.eq(unit, twice));
            let last = pool.and(whole, unit);
            let even = pool.eq(last, zero);
            let odd = pool.not(even);
            let to_even = pool.and(tie, odd);
            let half = int(pool, HALF);
            (pool.or(above, to_even), pool.ult(half, magnitude))
        }
    };
    let next = pool.add(whole, unit);
    let usual = pool.ite(grows, next, whole);
    let one = int(pool, ONE);
    let signed_one = pool.or(sign_bit, one);
    let small = pool.ite(reaches_one, signed_one, sign_bit);
    let large = pool.ite(is_integral, x, usual);
    let number = pool.ite(is_below_one, small, large);
    let (is_nan, nan) = (is_nan(pool, x), int(pool, NAN));
    pool.ite(is_nan, nan, number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    /// Compares a function with the standard library at the limits of rounding.
    fn compare(name: &str, count: usize, exact: fn(f32, f32) -> f32) {
        let mut numbers: Vec<u32> = vec![
            0,
            1,
            0x7f_ffff,
            0x80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fc0_0000,
        ];
        for halves in 0..12 {
            let number = (halves as f32 / 2.0).to_bits();
            numbers.extend([number.wrapping_sub(1) & 0x7fff_ffff, number, number + 1]);
        }
        for power in [22, 23, 24] {
            let number = ((1u32 << power) as f32).to_bits();
            numbers.extend((0..6).map(|below| number - below));
        }
        let signed: Vec<u32> = numbers
            .iter()
            .flat_map(|&number| [number, number | 0x8000_0000])
            .collect();
        for &a in &signed {
            for &b in if count == 2 { &signed[..] } else { &[0] } {
                let mut pool = Pool::new();
                let operands: Vec<Term> = [a, b].map(|bits| pool.int(WORD, bits.into()))[..count].to_vec();
                let found = result(&mut pool, name, &operands).and_then(|term| pool.as_u64(term));
                let wanted = exact(f32::from_bits(a), f32::from_bits(b));
                let wanted = if wanted.is_nan() { NAN } else { wanted.to_bits().into() };
                assert_eq!(found, Some(wanted), "{name} {a:#x} {b:#x}");
            }
        }
    }

    /// Returns the minimum or the maximum; a NaN if an operand is one.
    fn extreme(a: f32, b: f32, smaller: bool) -> f32 {
        match a.partial_cmp(&b) {
            None => f32::NAN,
            Some(Ordering::Equal) if smaller => f32::from_bits(a.to_bits() | b.to_bits()),
            Some(Ordering::Equal) => f32::from_bits(a.to_bits() & b.to_bits()),
            Some(order) if order.is_lt() == smaller => a,
            Some(_) => b,
        }
    }

    #[test]
    fn functions_are_those_of_ieee_754() {
        compare("f32_trunc", 1, |a, _| a.trunc());
        compare("f32_floor", 1, |a, _| a.floor());
        compare("f32_ceil", 1, |a, _| a.ceil());
        compare("f32_nearest", 1, |a, _| a.round_ties_even());
        compare("f32_min", 2, |a, b| extreme(a, b, true));
        compare("f32_max", 2, |a, b| extreme(a, b, false));
    }
}
