//! The single-precision units of the core, bit-exact (`docs/machine/operations.md`).
//!
//! Operands and results are binary32 bit patterns in `u32`. The units do not follow IEEE 754:
//! `fadd`, `fsub` and `fmul` treat exponents 0 and 255 like any other (no infinities, NaNs or
//! subnormals; exponents wrap modulo 256), compares work on bit patterns, and the conversions have
//! the errata of `docs/errata.md`. No function fails.

pub(crate) const SIGN: u32 = 0x8000_0000;
pub(crate) const MAGNITUDE: u32 = 0x7fff_ffff;
pub(crate) const FRACTION: u32 = 0x007f_ffff;
pub(crate) const HIDDEN: u32 = 0x0080_0000;

/// The NaN that the divider produces. No other unit produces NaNs intentionally.
pub const QUOTIENT_NAN: u32 = 0x7f80_0001;

#[inline(always)]
pub(crate) fn sign(x: u32) -> u32 {
    x & SIGN
}

#[inline(always)]
pub(crate) fn exponent(x: u32) -> u32 {
    (x >> 23) & 0xff
}

/// Returns the fraction with the hidden bit, which the units set for every exponent, including 0
/// and 255.
#[inline(always)]
pub(crate) fn significand(x: u32) -> u32 {
    HIDDEN | (x & FRACTION)
}

fn is_zero(x: u32) -> bool {
    x & MAGNITUDE == 0
}

/// Packs a result; the exponent wraps modulo 256 and the hidden bit is dropped.
#[inline(always)]
pub(crate) fn pack(sign: u32, exponent: u32, significand: u32) -> u32 {
    sign | ((exponent & 0xff) << 23) | (significand & FRACTION)
}

/// Models the alignment shifter of the adder and `ftoi`: a right shift by exactly 16 produces 0.
fn faulty_shift_right(value: u32, by: u32) -> u32 {
    match by {
        16 | 32.. => 0,
        _ => value >> by,
    }
}

/// Computes `fadd`: the sum with seven guard bits, rounded half up in magnitude before
/// normalization.
pub fn add(a: u32, b: u32) -> u32 {
    let (big, small) = if a & MAGNITUDE >= b & MAGNITUDE { (a, b) } else { (b, a) };
    // Only the larger operand is tested for zero; a smaller operand of zero keeps its hidden bit
    // and counts as 2^-127.
    let (big_sign, big_exponent, big_significand) = if is_zero(big) {
        (0, 0, 0)
    } else {
        (sign(big), exponent(big), significand(big))
    };
    let distance = big_exponent.wrapping_sub(exponent(small)) & 0x1ff;
    let addend = match distance {
        0..=6 => significand(small) << (7 - distance),
        7..=35 => faulty_shift_right(significand(small), distance - 7),
        _ => 0,
    };
    let base = big_significand << 7;
    let mut sum = if addend == 0 {
        base
    } else if big_sign == sign(small) {
        base.wrapping_add(addend)
    } else {
        base.wrapping_sub(addend)
    };
    if sum & 0x40 != 0 {
        sum = sum.wrapping_add(0x40);
    }
    if sum < 15 {
        return 0;
    }
    let guarded = big_exponent.wrapping_sub(7);
    let top = 31 - sum.leading_zeros();
    match top {
        23.. => pack(big_sign, guarded.wrapping_add(top - 23), sum >> (top - 23)),
        8..=22 => pack(big_sign, guarded.wrapping_sub(23 - top), sum << (23 - top)),
        _ => pack(big_sign, 0, sum << 16),
    }
}

/// Computes `fsub`: [`add`] with the sign of `b` inverted.
pub fn sub(a: u32, b: u32) -> u32 {
    // The magnitudes alone determine the operand order, so inverting the sign first has no other
    // effect.
    add(a, b ^ SIGN)
}

/// Computes `fmul`. For significand products below 2 the hardware adds the rounding bit at the
/// wrong position, which increases every odd result by one unit in the last place.
pub fn mul(a: u32, b: u32) -> u32 {
    if is_zero(a) || is_zero(b) {
        return 0;
    }
    let mut product = u64::from(significand(a)) * u64::from(significand(b));
    if product & (1 << 23) != 0 {
        product += 1 << 23;
    }
    let sum = exponent(a).wrapping_add(exponent(b)).wrapping_sub(127);
    let result_sign = sign(a ^ b);
    if product & (1 << 47) != 0 {
        pack(result_sign, sum.wrapping_add(1), (product >> 24) as u32)
    } else {
        pack(result_sign, sum, (product >> 23) as u32)
    }
}

/// The classes of operands of the divider.
enum Class {
    Zero,
    /// The exponent and the 24-bit significand.
    Normal(i32, u32),
    Infinite,
    Nan,
}

/// Classifies an operand. The exponent range of the divider has one bit more than that of binary32:
/// a subnormal with its top fraction bit set is normal to it.
fn classify(x: u32) -> Class {
    let fraction = x & FRACTION;
    match exponent(x) {
        0 if fraction >> 22 != 0 => Class::Normal(0, HIDDEN | ((fraction << 1) & FRACTION)),
        0 => Class::Zero,
        255 if fraction == 0 => Class::Infinite,
        255 => Class::Nan,
        e => Class::Normal(e as i32, HIDDEN | fraction),
    }
}

/// Computes `fdiv`: correctly rounded to nearest even in the normal range, IEEE rules for zeros and
/// infinities, [`QUOTIENT_NAN`] for NaNs. Results below 2^-126 are truncated to one bit of
/// subnormal range.
pub fn div(a: u32, b: u32) -> u32 {
    let result_sign = sign(a ^ b);
    let infinity = result_sign | 0x7f80_0000;
    match (classify(a), classify(b)) {
        (Class::Normal(ea, ma), Class::Normal(eb, mb)) => {
            let numerator = u64::from(ma) << 26;
            let quotient = numerator / u64::from(mb);
            let inexact = numerator % u64::from(mb) != 0;
            // The quotient of two significands lies in (1/2, 2); below 1 it has one bit less.
            let at_least_one = quotient >> 26 & 1;
            let dropped = 2 + at_least_one;
            let rounding_bit = quotient >> (dropped - 1) & 1 != 0;
            let sticky = quotient & ((1 << (dropped - 1)) - 1) != 0 || inexact;
            let fraction = (quotient >> dropped) as i64 & i64::from(FRACTION);
            let quotient_exponent = ea - eb + 126 + at_least_one as i32;
            let mut packed = (i64::from(quotient_exponent) << 23) + fraction;
            if rounding_bit && (sticky || packed & 1 != 0) {
                packed += 1;
            }
            match packed >> 23 {
                i64::MIN..0 => result_sign,
                0 => result_sign | 0x0040_0000 | ((packed as u32 & FRACTION) >> 1),
                1..256 => result_sign | (packed as u32 & MAGNITUDE),
                256.. => infinity,
            }
        }
        (Class::Zero, Class::Normal(..) | Class::Infinite) => result_sign,
        (Class::Normal(..), Class::Infinite) => result_sign,
        (Class::Normal(..), Class::Zero) => infinity,
        (Class::Infinite, Class::Zero | Class::Normal(..)) => infinity,
        _ => QUOTIENT_NAN,
    }
}

/// Computes `itof`: signed integer to float, nearest even. The hardware loses the rounding carry
/// out of a significand of all ones, which halves the result, and invents one for the significand
/// before it, which doubles the result.
pub fn from_int(a: u32) -> u32 {
    let value = a as i32;
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let zeros = magnitude.leading_zeros();
    let normal = magnitude << zeros;
    let mut power = 31 - zeros;
    let mut rounded = normal >> 8;
    let round_up = normal & 0x80 != 0 && (normal & 0x17f != 0);
    if round_up {
        // The hardware compares with all ones minus one: the exponent changes without a carry,
        // which doubles the result, and does not change with one.
        if rounded == 0x00ff_fffe {
            power += 1;
        }
        rounded = rounded.wrapping_add(1) & 0x00ff_ffff;
    }
    pack(a & SIGN, power + 127, rounded)
}

/// Computes `ftoi`: truncation to a signed integer. Magnitudes in 128..256 produce 0, 2^32 and
/// above produce `0x7fff_ffff` for either sign.
pub fn to_int(a: u32) -> u32 {
    let e = exponent(a);
    let magnitude = match e {
        0..=126 => return 0,
        127..=150 => faulty_shift_right(significand(a), 150 - e),
        151..=158 => significand(a) << (e - 150),
        _ => return 0x7fff_ffff,
    };
    if a & SIGN != 0 {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }
}

/// Computes `cmpfeq`: equality of bit patterns.
pub fn eq(a: u32, b: u32) -> bool {
    a == b
}

/// Computes `cmpfgt`: compares signs, then magnitudes regardless of the sign, so that the order of
/// two negative numbers is reversed.
pub fn gt(a: u32, b: u32) -> bool {
    if sign(a) == sign(b) {
        a & MAGNITUDE > b & MAGNITUDE
    } else {
        sign(b) != 0
    }
}

/// Computes `cmpflt`: [`gt`] with its operands swapped.
pub fn lt(a: u32, b: u32) -> bool {
    gt(b, a)
}
