//! The float units of [`crate::fp`] on all lanes, almost without branches, so that the host
//! compiler can vectorize them.
//!
//! [`crate::fp`] is the definition; every function here produces the same bits for all operands.

use crate::fp::{FRACTION, HIDDEN, MAGNITUDE, QUOTIENT_NAN, SIGN, exponent, pack, sign, significand};
use crate::registers::{LANES, Lanes};

/// The mask of the exponent.
const EXPONENT: u32 = MAGNITUDE & !FRACTION;

/// Computes the sum of each lane, or the difference if `turned`.
///
/// Numbers are rotated to the order exponent, fraction, sign, so that they compare by magnitude.
#[inline(always)]
fn sums(a: &Lanes, b: &Lanes, turned: bool) -> Lanes {
    let turn = u32::from(turned);
    let mut result = Lanes::default();
    let (mut bigs, mut sums, mut least) = ([0; LANES], [0; LANES], [0; LANES]);
    for k in 0..LANES {
        let (x, y) = (a.0[k].rotate_left(1), b.0[k].rotate_left(1) ^ turn);
        let (big, small) = (x.max(y), x.min(y));
        // The significand with the hidden bit and seven guard bits.
        let guarded = |rotated: u32| (rotated << 6) & FRACTION << 7 | HIDDEN << 7;
        let big_exponent = big >> 24;
        let distance = big_exponent - (small >> 24);
        let shifted = if distance < 32 { guarded(small) >> distance } else { 0 };
        // The shifter produces 0 for a shift by exactly 16.
        let addend = if distance == 16 + 7 { 0 } else { shifted };
        // Rounding adds 0x40 to the sum if bit 6 is set, which clears the bit. Adding 0x40 in all
        // cases and clearing bit 6 below is equivalent.
        let base = guarded(big) + 0x40;
        let rounded = if (big ^ small) & 1 == 0 {
            base.wrapping_add(addend)
        } else {
            base.wrapping_sub(addend)
        };
        let sum = rounded & !0x40;
        // The leading zeros of the sum, if the sum is at least 128.
        let zeros = rounded.leading_zeros();
        let normal = sum << (zeros & 31);
        // The hidden bit adds 1 to the exponent.
        let packed = (big_exponent.wrapping_sub(zeros) << 23).wrapping_add(normal >> 8);
        result.0[k] = packed & MAGNITUDE | big << 31;
        (bigs[k], sums[k]) = (big, sum);
        least[k] = sum.min(big);
    }
    // Sums of few bits, and sums of zeros.
    if least.iter().any(|&least| least < 0x100) {
        for k in 0..LANES {
            let (big, sum) = (bigs[k], sums[k]);
            let tiny = big << 31 | sum << 16 & FRACTION;
            let value = if sum < 0x100 { tiny } else { result.0[k] };
            let value = if sum < 15 { 0 } else { value };
            // If both operands are zeros, the first has no hidden bit, regardless of its sign, and
            // the second has one.
            let of_zeros = if (b.0[k] >> 31) == turn { 0 } else { 1 << 23 | 1 << 22 };
            result.0[k] = if big < 2 { of_zeros } else { value };
        }
    }
    result
}

#[inline(always)]
pub(crate) fn add(a: &Lanes, b: &Lanes) -> Lanes {
    sums(a, b, false)
}

#[inline(always)]
pub(crate) fn sub(a: &Lanes, b: &Lanes) -> Lanes {
    sums(a, b, true)
}

#[inline(always)]
pub(crate) fn mul(a: &Lanes, b: &Lanes) -> Lanes {
    a.zip(b, |a, b| {
        // The two shifts total nine bits, so that the upper half of the product contains all
        // relevant bits.
        let (x, y) = (significand(a) << 8, significand(b) << 1);
        let product = ((u64::from(x) * u64::from(y)) >> 32) as u32;
        let product = product + (product & 1);
        // Products from 2 on have one more bit: then the shifted half is smaller. The hidden bit
        // adds the 1 that the exponent lacks.
        let product = product.min((product >> 1) + (1 << 23));
        let sum = (a & EXPONENT).wrapping_add(b & EXPONENT).wrapping_sub(128 << 23);
        let result = sum.wrapping_add(product) & MAGNITUDE | (a ^ b) & SIGN;
        if (a & MAGNITUDE).min(b & MAGNITUDE) == 0 {
            0
        } else {
            result
        }
    })
}

/// A classified operand of the divider.
struct Operand {
    exponent: i32,
    significand: u32,
    zero: bool,
    infinite: bool,
    nan: bool,
}

#[inline(always)]
fn classify(x: u32) -> Operand {
    let (e, fraction) = (exponent(x), x & FRACTION);
    let subnormal = e == 0;
    let largest = e == 255;
    Operand {
        exponent: e as i32,
        significand: HIDDEN | (if subnormal { fraction << 1 } else { fraction } & FRACTION),
        zero: subnormal & (fraction >> 22 == 0),
        infinite: largest & (fraction == 0),
        nan: largest & (fraction != 0),
    }
}

/// Computes quotients. The divider follows IEEE 754 if operands and quotient are far from the ends
/// of the range; the division of the host is used then.
#[inline(always)]
pub(crate) fn div(a: &Lanes, b: &Lanes) -> Lanes {
    let far = |x: u32| (x & EXPONENT).wrapping_sub(2 << 23) < 251 << 23;
    let quotients = a.zip(b, |a, b| (f32::from_bits(a) / f32::from_bits(b)).to_bits());
    let ordinary = a.zip(b, |a, b| u32::from(far(a) & far(b)));
    let ordinary = ordinary.zip(&quotients, |ordinary, quotient| ordinary & u32::from(far(quotient)));
    if ordinary.0.iter().all(|&ordinary| ordinary != 0) {
        quotients
    } else {
        a.zip(b, quotient)
    }
}

/// Computes any quotient.
#[inline(always)]
fn quotient(a: u32, b: u32) -> u32 {
    let result_sign = sign(a ^ b);
    let infinity = result_sign | 0x7f80_0000;
    let (x, y) = (classify(a), classify(b));
    let numerator = f64::from(x.significand) * f64::from(1u32 << 26);
    let denominator = f64::from(y.significand);
    // The quotient is below 2^27. If it is not an integer, it is at least 2^-24 below the next
    // integer, so that rounding it to 53 bits does not reach that integer. The product is exact.
    let quotient = (numerator / denominator) as i32 as u32;
    let inexact = f64::from(quotient) * denominator != numerator;
    let at_least_one = quotient >> 26 & 1;
    let dropped = 2 + at_least_one;
    let rounding = quotient >> (dropped - 1) & 1;
    let sticky = u32::from(inexact) | u32::from(quotient & ((1 << (dropped - 1)) - 1) != 0);
    let fraction = quotient >> dropped & FRACTION;
    let rounded = fraction + (rounding & (sticky | fraction & 1));
    // The carry out of a fraction of all ones increments the exponent.
    let quotient_exponent = x.exponent - y.exponent + 126 + (at_least_one + (rounded >> 23)) as i32;
    let fraction = rounded & FRACTION;
    let normal = result_sign | (((quotient_exponent as u32) << 23 | fraction) & MAGNITUDE);
    let subnormal = result_sign | 0x0040_0000 | fraction >> 1;
    let result = if quotient_exponent == 0 { subnormal } else { normal };
    let small = (quotient_exponent < 0) | x.zero | y.infinite;
    let large = (quotient_exponent >= 256) | x.infinite | y.zero;
    let nan = x.nan | y.nan | (x.zero & y.zero) | (x.infinite & y.infinite);
    // A zero or infinite operand determines the result alone.
    let by_class = x.zero | y.infinite;
    let result = if small { result_sign } else { result };
    let result = if large & !by_class { infinity } else { result };
    if nan { QUOTIENT_NAN } else { result }
}

#[inline(always)]
pub(crate) fn from_int(a: &Lanes, _: &Lanes) -> Lanes {
    a.map(from_one_int)
}

#[inline(always)]
fn from_one_int(a: u32) -> u32 {
    let magnitude = (a as i32).unsigned_abs();
    let zeros = magnitude.leading_zeros();
    let normal = magnitude << (zeros & 31);
    let kept = normal >> 8;
    let up = (normal & 0x80 != 0) & (normal & 0x17f != 0);
    let power = 31u32.wrapping_sub(zeros) + u32::from(up & (kept == 0x00ff_fffe));
    let rounded = kept.wrapping_add(u32::from(up)) & 0x00ff_ffff;
    let result = pack(a & SIGN, power.wrapping_add(127), rounded);
    if magnitude == 0 { 0 } else { result }
}

#[inline(always)]
pub(crate) fn to_int(a: &Lanes, _: &Lanes) -> Lanes {
    a.map(to_one_int)
}

#[inline(always)]
fn to_one_int(a: u32) -> u32 {
    let e = exponent(a);
    let right = 150u32.wrapping_sub(e);
    let below = if right == 16 {
        0
    } else {
        significand(a) >> right.min(31)
    };
    let above = significand(a) << (e.wrapping_sub(150) & 31);
    let magnitude = if e <= 150 { below } else { above };
    let magnitude = if e < 127 { 0 } else { magnitude };
    let result = if a & SIGN != 0 {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    if e > 158 { 0x7fff_ffff } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::split_mix;
    use crate::fp;

    /// Returns operands at the boundaries of the cases that the units distinguish.
    fn borders() -> Vec<u32> {
        let fractions = [
            0, 1, 2, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_fffe, 0x7f_ffff, 0x2a_aaaa,
        ];
        let exponents = [
            0, 1, 2, 22, 23, 24, 31, 104, 126, 127, 128, 133, 134, 135, 149, 150, 151, 157, 158, 159, 253, 254, 255,
        ];
        exponents
            .into_iter()
            .flat_map(|e| fractions.map(|f| e << 23 | f))
            .flat_map(|x| [x, x | SIGN])
            .collect()
    }

    /// Compares whole vectors with different lanes: a lane with a rare case must not change the
    /// others.
    fn compare(operands: &[(u32, u32); LANES]) {
        let (a, b) = (Lanes(operands.map(|(a, _)| a)), Lanes(operands.map(|(_, b)| b)));
        type Unit = fn(&Lanes, &Lanes) -> Lanes;
        type Definition = fn(u32, u32) -> u32;
        let units: [(&str, Unit, Definition); 6] = [
            ("add", add, fp::add),
            ("sub", sub, fp::sub),
            ("mul", mul, fp::mul),
            ("div", div, fp::div),
            ("itof", from_int, |a, _| fp::from_int(a)),
            ("ftoi", to_int, |a, _| fp::to_int(a)),
        ];
        for (name, unit, definition) in units {
            let results = unit(&a, &b);
            for (result, &(a, b)) in results.0.iter().zip(operands) {
                assert_eq!(*result, definition(a, b), "{name} {a:#010x} {b:#010x}");
            }
        }
    }

    #[test]
    fn all_functions_give_what_the_definition_gives() {
        let borders = borders();
        for &a in &borders {
            for some in borders.chunks(LANES) {
                compare(&std::array::from_fn(|k| (a, some[k % some.len()])));
            }
        }
        let mut state = 1;
        for round in 0..100_000u32 {
            // In every second iteration all operands are of one kind, so that no rare case occurs.
            let kinds = if round % 2 == 0 { 1 } else { 5 };
            compare(&std::array::from_fn(|k| {
                let bits = split_mix(&mut state);
                let (a, b) = (bits as u32, (bits >> 32) as u32);
                match (round / 2 + k as u32 % kinds) % 5 {
                    0 => (a, b),
                    // Exponents close to each other, so that both operands affect the sum.
                    1 => (a, (a & EXPONENT).wrapping_add((b & 63) << 23) ^ (b & !EXPONENT)),
                    // Sums that cancel, and sums of few bits.
                    2 => (a, (a ^ SIGN).wrapping_add(b & 0xff)),
                    3 => (a >> (b & 31), b << (a & 31)),
                    // Magnitudes near 1.
                    _ => (a & !(0xf8 << 23) | 0x3c << 24, b & !(0xf8 << 23) | 0x3c << 24),
                }
            }));
        }
    }
}
