//! Operands on which arithmetic of 64-bit floats goes wrong, if it does.

use crate::softfloat::Random;

pub const SIGN: u64 = 1 << 63;
const FRACTION: u64 = (1 << 52) - 1;
const BIAS: i64 = 0x3ff;
const MAX_EXPONENT: i64 = 0x7ff;

/// The numbers at which something changes, of both signs: few enough to take three of them at a time.
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
        // Half a place and a whole one below 1, 1 and its neighbours, halfway between integers.
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
        // Where odd integers and halves end.
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

/// Many more, to take two of them at a time.
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

/// A fraction: any, or with few ones or zeros, or with all ones or zeros at one end.
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

/// A number with this biased exponent, or the nearest there is.
fn with_exponent(random: &mut Random, exponent: i64) -> u64 {
    let exponent = exponent.clamp(0, MAX_EXPONENT).cast_unsigned();
    sign(random) | exponent << 52 | fraction(random)
}

/// A number with an exponent from a range around the given one.
fn around(random: &mut Random, exponent: i64, reach: u64) -> u64 {
    let exponent = exponent + random.below(2 * reach + 1).cast_signed() - reach.cast_signed();
    with_exponent(random, exponent)
}

fn exponent(number: u64) -> i64 {
    (number >> 52 & 0x7ff).cast_signed()
}

/// The number moved by up to `reach` last places.
fn jitter(random: &mut Random, number: u64, reach: u64) -> u64 {
    number.wrapping_add(random.below(2 * reach + 1)).wrapping_sub(reach)
}

/// An integer of at most `bits` bits, its lowest one set.
fn odd(random: &mut Random, bits: u64) -> u64 {
    random.bits() >> (64 - bits.max(1)) | 1
}

/// Any number: mostly of middling size, often at an end of the range.
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

/// Summands: exponents up to 60 apart, equal ones, and pairs that cancel.
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

/// Factors: subnormal and largest products, products next to powers of two, exact and halfway ones.
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
            // 53 or 54 bits in the product.
            let bits = 20 + random.below(14);
            let (a, b) = (odd(random, bits), odd(random, 54 - bits));
            let scale = 2f64.powi(random.below(1000) as i32 - 500);
            [(a as f64 * scale).to_bits(), (b as f64 / scale).to_bits()]
        }
        _ => [a, with_exponent(random, BIAS)],
    }
}

/// Dividend and divisor: subnormal and largest quotients, quotients next to a number, exact ones, and ties among the
/// subnormal ones.
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

/// Radicands: any, next to squares of 53 and 54 bits, exact squares.
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

/// Numbers to round to integers: halves and their neighbours, all exponents with a fraction left.
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

/// Numbers to compare: equal ones, ones of opposite sign, neighbours.
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

/// Factors and addend: addends that cancel the product nearly or exactly, of all distances, and sums that are ties.
pub fn for_fma(random: &mut Random) -> [u64; 3] {
    if random.below(6) == 0 {
        // Few bits each, so that sums are often exact or halfway; also among the subnormal numbers.
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
