//! The float units of [`crate::fp`] without branches, so that the host compiler can do many lanes at a time.
//!
//! [`crate::fp`] is the definition; every function here gives the same bits for all operands.

use crate::fp::{FRACTION, HIDDEN, MAGNITUDE, QUOTIENT_NAN, SIGN, exponent, pack, sign, significand};

#[inline(always)]
pub(super) fn add(a: u32, b: u32) -> u32 {
    let swap = a & MAGNITUDE < b & MAGNITUDE;
    let big = if swap { b } else { a };
    let small = if swap { a } else { b };
    // All bits unless the larger operand is zero.
    let some = if big & MAGNITUDE == 0 { 0 } else { u32::MAX };
    let big_sign = sign(big) & some;
    let big_exponent = exponent(big) & some;
    // With the smaller magnitude comes no larger exponent.
    let distance = big_exponent.wrapping_sub(exponent(small));
    let shifted = (significand(small) << 7) >> distance.min(31);
    // The shifter loses everything at a shift of exactly 16.
    let addend = if distance == 16 + 7 { 0 } else { shifted };
    let base = (significand(big) & some) << 7;
    let addend = if big_sign == sign(small) {
        addend
    } else {
        addend.wrapping_neg()
    };
    let exact = base.wrapping_add(addend);
    let sum = exact.wrapping_add(exact & 0x40);
    let zeros = sum.leading_zeros();
    let normal = sum << (zeros & 31);
    let packed = pack(big_sign, big_exponent.wrapping_add(1).wrapping_sub(zeros), normal >> 8);
    let tiny = pack(big_sign, 0, sum << 16);
    let result = if zeros > 23 { tiny } else { packed };
    if sum < 15 { 0 } else { result }
}

#[inline(always)]
pub(super) fn sub(a: u32, b: u32) -> u32 {
    add(a, b ^ SIGN)
}

#[inline(always)]
pub(super) fn mul(a: u32, b: u32) -> u32 {
    let product = u64::from(significand(a)) * u64::from(significand(b));
    let product = product + (product & (1 << 23));
    // 1 for products from 2 on.
    let above = (product >> 47) as u32 & 1;
    let sum = exponent(a)
        .wrapping_add(exponent(b))
        .wrapping_sub(127)
        .wrapping_add(above);
    let result = pack(sign(a ^ b), sum, (product >> 23) as u32 >> above);
    if a & MAGNITUDE == 0 || b & MAGNITUDE == 0 {
        0
    } else {
        result
    }
}

/// An operand of the divider.
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

#[inline(always)]
pub(super) fn div(a: u32, b: u32) -> u32 {
    let result_sign = sign(a ^ b);
    let infinity = result_sign | 0x7f80_0000;
    let (x, y) = (classify(a), classify(b));
    let numerator = f64::from(x.significand) * f64::from(1u32 << 26);
    let denominator = f64::from(y.significand);
    // Below 2^27. A quotient that is not whole is at least 2^-24 away from the next whole number, so rounding it to 53 bits
    // does not get it there. The product is exact.
    let quotient = (numerator / denominator) as i32 as u32;
    let inexact = f64::from(quotient) * denominator != numerator;
    let at_least_one = quotient >> 26 & 1;
    let dropped = 2 + at_least_one;
    let rounding = quotient >> (dropped - 1) & 1;
    let sticky = u32::from(inexact) | u32::from(quotient & ((1 << (dropped - 1)) - 1) != 0);
    let fraction = quotient >> dropped & FRACTION;
    let rounded = fraction + (rounding & (sticky | fraction & 1));
    // The carry of a fraction of all ones goes to the exponent.
    let quotient_exponent = x.exponent - y.exponent + 126 + (at_least_one + (rounded >> 23)) as i32;
    let fraction = rounded & FRACTION;
    let normal = result_sign | (((quotient_exponent as u32) << 23 | fraction) & MAGNITUDE);
    let subnormal = result_sign | 0x0040_0000 | fraction >> 1;
    let result = if quotient_exponent == 0 { subnormal } else { normal };
    let small = (quotient_exponent < 0) | x.zero | y.infinite;
    let large = (quotient_exponent >= 256) | x.infinite | y.zero;
    let nan = x.nan | y.nan | (x.zero & y.zero) | (x.infinite & y.infinite);
    // An operand that is zero or infinite decides alone.
    let by_class = x.zero | y.infinite;
    let result = if small { result_sign } else { result };
    let result = if large & !by_class { infinity } else { result };
    if nan { QUOTIENT_NAN } else { result }
}

#[inline(always)]
pub(super) fn from_int(a: u32, _: u32) -> u32 {
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
pub(super) fn to_int(a: u32, _: u32) -> u32 {
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

    /// Operands at the borders of what the units tell apart.
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

    fn compare(a: u32, b: u32) {
        assert_eq!(add(a, b), fp::add(a, b), "add {a:#010x} {b:#010x}");
        assert_eq!(sub(a, b), fp::sub(a, b), "sub {a:#010x} {b:#010x}");
        assert_eq!(mul(a, b), fp::mul(a, b), "mul {a:#010x} {b:#010x}");
        assert_eq!(div(a, b), fp::div(a, b), "div {a:#010x} {b:#010x}");
        assert_eq!(from_int(a, b), fp::from_int(a), "itof {a:#010x}");
        assert_eq!(to_int(a, b), fp::to_int(a), "ftoi {a:#010x}");
    }

    #[test]
    fn all_functions_give_what_the_definition_gives() {
        let borders = borders();
        for &a in &borders {
            borders.iter().for_each(|&b| compare(a, b));
        }
        let mut state = 1;
        for round in 0..1_000_000u32 {
            let bits = split_mix(&mut state);
            let (a, b) = (bits as u32, (bits >> 32) as u32);
            match round % 4 {
                0 => compare(a, b),
                // Exponents close together, as those of sums that matter.
                1 => compare(a, (a & 0x7f80_0000).wrapping_add((b & 63) << 23) ^ (b & !0x7f80_0000)),
                // Sums that cancel, and few bits.
                2 => compare(a, (a ^ SIGN).wrapping_add(b & 0xff)),
                _ => compare(a >> (b & 31), b << (a & 31)),
            }
        }
    }
}
