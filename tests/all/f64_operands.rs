//! Operands for which 64-bit float arithmetic is likely to be wrong.

use crate::softfloat::Random;

pub const SIGN: u64 = 1 << 63;
const FRACTION: u64 = (1 << 52) - 1;
const BIAS: i64 = 0x3ff;
const MAX_EXPONENT: i64 = 0x7ff;

/// Returns edge cases of both signs: few enough to test all triples.
pub fn landmarks() -> Vec<u64> {
    let mut all = vec![
        // Zero and subnormals.
        0,
        1,
        2,
        3,
        FRACTION,
        // The smallest normal numbers.
        1 << 52,
        (1 << 52) + 1,
        (2 << 52) - 1,
        2 << 52,
        // Half a unit and one unit in the last place of 1, 1 and its neighbors, midpoints between
        // integers.
        (0x3ff - 54) << 52,
        (0x3ff - 53) << 52,
        (0x3ff - 52) << 52,
        0x3fe << 52,
        (0x3ff << 52) - 1,
        0x3ff << 52,
        (0x3ff << 52) + 1,
        0x3ff8 << 48,
        (0x400 << 52) - 1,
        0x400 << 52,
        // The limits above which floats are never odd integers or halves.
        (0x3ff + 52) << 52,
        (0x3ff + 53) << 52,
        // The largest numbers, infinity, NaNs.
        0x7fd << 52,
        0x7fe << 52,
        (0x7ff << 52) - 1,
        0x7ff << 52,
        0x7ff8 << 48,
        (0x7ff << 52) + 1,
        0x5550_0000_ffff_ffff,
    ];
    all.extend(all.clone().iter().map(|x| x | SIGN));
    all
}

/// Returns more edge cases: few enough to test all pairs.
pub fn edges() -> Vec<u64> {
    let mut all = landmarks();
    let exponents = [
        1, 2, 3, 52, 53, 54, 55, 0x3c9, 0x3fe, 0x3ff, 0x400, 0x401, 0x41e, 0x41f, 0x432, 0x433, 0x434, 0x43e, 0x43f,
        0x7fc, 0x7fd, 0x7fe,
    ];
    let fractions = [
        0,
        1,
        FRACTION,
        FRACTION - 1,
        1 << 51,
        (1 << 51) - 1,
        (1 << 51) + 1,
        0xffff_ffff,
        1 << 32,
        0x8_0000_8000_0000,
    ];
    for exponent in exponents {
        for fraction in fractions {
            let number = exponent << 52 | fraction;
            all.extend([number, number | SIGN]);
        }
    }
    for bit in 0..52 {
        all.extend([1 << bit, (1 << bit) - 1]);
    }
    for halves in 1..20 {
        let number = f64::from(halves) / 2.0;
        all.extend([number.to_bits(), (-number).to_bits()]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns a fraction: any bits, few ones, few zeros, or ones or zeros at one end.
fn fraction(random: &mut Random) -> u64 {
    let any = random.bits() & FRACTION;
    let place = random.below(52);
    match random.below(12) {
        0 => 0,
        1 => FRACTION,
        2 => 1 << place,
        3 => FRACTION ^ 1 << place,
        4 => any >> place,
        5 => any << place & FRACTION,
        6 => FRACTION >> place,
        7 => FRACTION << place & FRACTION,
        _ => any,
    }
}

fn sign(random: &mut Random) -> u64 {
    random.bits() & SIGN
}

/// Returns a number with this biased exponent, or with the nearest valid one.
fn with_exponent(random: &mut Random, exponent: i64) -> u64 {
    let exponent = exponent.clamp(0, MAX_EXPONENT).cast_unsigned();
    sign(random) | exponent << 52 | fraction(random)
}

/// Returns a number whose exponent differs from the given one by at most `reach`.
fn around(random: &mut Random, exponent: i64, reach: u64) -> u64 {
    let exponent = exponent + random.below(2 * reach + 1).cast_signed() - reach.cast_signed();
    with_exponent(random, exponent)
}

fn exponent(number: u64) -> i64 {
    (number >> 52 & 0x7ff).cast_signed()
}

/// Returns the number moved by up to `reach` units in the last place.
fn jitter(random: &mut Random, number: u64, reach: u64) -> u64 {
    number.wrapping_add(random.below(2 * reach + 1)).wrapping_sub(reach)
}

/// Returns an odd integer of at most `bits` bits.
fn odd(random: &mut Random, bits: u64) -> u64 {
    random.bits() >> (64 - bits.max(1)) | 1
}

/// Returns any number: usually of medium magnitude, often at an end of the range.
pub fn number(random: &mut Random) -> u64 {
    let exponent = match random.below(16) {
        0 => 0,
        1 => random.below(4).cast_signed(),
        2 => MAX_EXPONENT - random.below(4).cast_signed(),
        3 => random.below(70).cast_signed(),
        4 => random.below(0x800).cast_signed(),
        _ => BIAS - 40 + random.below(80).cast_signed(),
    };
    with_exponent(random, exponent)
}

/// Returns summands: with exponents that differ by up to 60, with equal exponents, and pairs that
/// cancel.
pub fn for_addition(random: &mut Random) -> [u64; 2] {
    let a = number(random);
    let b = match random.below(8) {
        0 => number(random),
        1 => with_exponent(random, exponent(a)),
        2 => a ^ SIGN ^ random.bits() >> random.below(64),
        3 => a ^ SIGN ^ 1 << random.below(52),
        4 => jitter(random, a, 32) ^ sign(random),
        _ => around(random, exponent(a), 60),
    };
    [a, b]
}

/// Returns factors: with subnormal and very large products, and with products that are exact,
/// halfway between floats, or next to powers of two.
pub fn for_multiplication(random: &mut Random) -> [u64; 2] {
    let a = number(random);
    match random.below(6) {
        0 => [a, number(random)],
        1 => [a, around(random, BIAS - exponent(a) - 26, 30)],
        2 => [a, around(random, BIAS + 0x7fe - exponent(a), 3)],
        3 => {
            let power = f64::from_bits((0x3ff + random.below(3)) << 52);
            let b = (power / f64::from_bits(a)).to_bits();
            [a, jitter(random, b, 2)]
        }
        4 => {
            // The product has 53 or 54 bits.
            let bits = 20 + random.below(14);
            let (a, b) = (odd(random, bits), odd(random, 54 - bits));
            let scale = 2f64.powi(random.below(1000) as i32 - 500);
            [(a as f64 * scale).to_bits(), (b as f64 / scale).to_bits()]
        }
        _ => [a, with_exponent(random, BIAS)],
    }
}

/// Returns a dividend and a divisor: with subnormal and very large quotients, with quotients that
/// are exact or close to a float, and with ties between subnormals.
pub fn for_division(random: &mut Random) -> [u64; 2] {
    let b = number(random);
    match random.below(7) {
        0 => [number(random), b],
        1 => [around(random, exponent(b) - BIAS - 26, 30), b],
        2 => [around(random, exponent(b) + 0x7fe - BIAS, 3), b],
        3 => {
            let a = f64::from_bits(with_exponent(random, BIAS)) * f64::from_bits(b);
            [jitter(random, a.to_bits(), 2), b]
        }
        4 => {
            let bits = random.below(50);
            let (q, b) = (odd(random, bits), odd(random, 53 - bits));
            let scale = 2f64.powi(random.below(2000) as i32 - 1000);
            [((q * b) as f64 * scale).to_bits(), (b as f64).to_bits()]
        }
        5 => [with_exponent(random, exponent(b)), b],
        _ => {
            let subnormal = f64::from_bits(random.bits() >> 11 >> random.below(53) | 1);
            let scale = 2f64.powi(random.below(60) as i32);
            [(subnormal * scale).to_bits(), (2.0 * scale).to_bits() + random.below(2)]
        }
    }
}

/// Returns radicands: any numbers, numbers next to squares of 53 and 54 bits, and exact squares.
pub fn for_root(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => number(random),
        1 => number(random) & !SIGN,
        2 => {
            let root = u128::from(fraction(random) | 1 << 52) * 2 + u128::from(random.below(2));
            let square = root * root;
            let leading = (square >> (75 - square.leading_zeros())) as u64;
            let exponent = 0x3ff + random.below(100);
            jitter(random, exponent << 52 | leading & FRACTION, 2)
        }
        _ => {
            let bits = random.below(28);
            let root = odd(random, bits) as f64 * 2f64.powi(random.below(1000) as i32 - 500);
            jitter(random, (root * root).to_bits(), 1)
        }
    }
}

/// Returns numbers to round to integers: halves and their neighbors, and all exponents with a
/// fractional part.
pub fn for_rounding(random: &mut Random) -> u64 {
    let sign = sign(random);
    match random.below(4) {
        0 => number(random),
        1 => {
            let halves = random.below(2000) as f64 / 2.0;
            jitter(random, halves.to_bits(), 2) | sign
        }
        2 => around(random, BIAS + 26, 30),
        _ => {
            let bits = random.below(53);
            ((random.bits() >> 11 >> bits) as f64 / 2.0).to_bits() | sign
        }
    }
}

/// Returns numbers to compare: equal ones, ones with opposite signs, and neighbors.
pub fn for_comparison(random: &mut Random) -> [u64; 2] {
    let a = number(random);
    match random.below(5) {
        0 => [a, number(random)],
        1 => [a, a],
        2 => [a, a ^ SIGN],
        3 => [a, a ^ 1 << random.below(64)],
        _ => [a, jitter(random, a, 4)],
    }
}

/// Returns factors and an addend: addends that cancel the product nearly or exactly, addends of all
/// magnitudes, and sums that are ties.
pub fn for_fma(random: &mut Random) -> [u64; 3] {
    if random.below(6) == 0 {
        // Operands with few bits, so that sums are often exact or halfway between floats. Some are
        // subnormal.
        let bits = 6 + random.below(20);
        let (a, b, c) = (
            odd(random, bits),
            odd(random, 30 - bits),
            odd(random, 53) >> random.below(40),
        );
        let scale = 2f64.powi([0, 0, 0, -1000, -1060, -1020][random.below(6) as usize]);
        let distance = 2f64.powi(random.below(110) as i32 - 55);
        let numbers = [a as f64 * scale, b as f64, c as f64 * scale * distance];
        return numbers.map(|n| n.to_bits() ^ sign(random));
    }
    let [a, b] = if random.below(2) == 0 {
        for_multiplication(random)
    } else {
        [number(random), number(random)]
    };
    let product = (f64::from_bits(a) * f64::from_bits(b)).to_bits();
    let c = match random.below(10) {
        0 => number(random),
        1 => product ^ SIGN,
        2 => jitter(random, product ^ SIGN, 4),
        3 => product ^ SIGN ^ random.bits() >> 12 >> random.below(52),
        4 => with_exponent(random, exponent(product)),
        5 => around(random, exponent(product), 2),
        6 => product ^ sign(random),
        _ => around(random, exponent(product), 120),
    };
    [a, b, c]
}
