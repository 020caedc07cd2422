//! Compares the runtime routines of f32 arithmetic, compiled by this back end and run on the
//! simulator, with `rustc_apfloat`.

use crate::softfloat::{Random, bits32, check, edges, extreme, single};
use rustc_apfloat::ieee::Single;
use rustc_apfloat::{Float, Round};

/// The number of random operands for each operation.
const MILLION: usize = 1_000_000;

const FRACTION: u32 = 0x007f_ffff;
const HIDDEN: u32 = 0x0080_0000;
const SIGN: u32 = 0x8000_0000;

fn exponent(x: u32) -> i64 {
    (x >> 23 & 0xff).into()
}

/// Returns a float of random sign. The exponent is clamped to the valid range.
fn float(random: &mut Random, exponent: i64, fraction: u32) -> u32 {
    let sign = if random.below(2) == 0 { 0 } else { SIGN };
    sign | (exponent.clamp(0, 255) as u32) << 23 | fraction & FRACTION
}

fn any(random: &mut Random) -> u32 {
    random.float(8, 23) as u32
}

fn fraction(random: &mut Random) -> u32 {
    random.pattern(23) as u32
}

/// Returns the fraction of a significand with this number of bits, whose last bit is set.
fn short_fraction(random: &mut Random, bits: u32) -> u32 {
    let number = (random.bits() as u32 | 1) & ((1 << bits) - 1) | 1 << (bits - 1);
    number << (24 - bits) & FRACTION
}

fn single_edges() -> Vec<u32> {
    edges(8, 23).into_iter().map(|bits| bits as u32).collect()
}

fn one() -> impl Iterator<Item = Vec<u32>> {
    single_edges().into_iter().map(|a| vec![a])
}

fn two() -> impl Iterator<Item = Vec<u32>> {
    let all = single_edges();
    let others = all.clone();
    all.into_iter()
        .flat_map(move |a| others.clone().into_iter().map(move |b| vec![a, b]))
}

/// Returns summands with close exponents, with exponents at which the smaller one is about half a
/// unit in the last place of the other, or nearly equal ones.
fn terms(random: &mut Random) -> Vec<u32> {
    let a = any(random);
    let distance = match random.below(8) {
        0 => random.range(22..28),
        1 => random.range(-2..3),
        _ => random.range(-30..31),
    };
    let b = match random.below(8) {
        0 => any(random),
        1 => a.wrapping_add(random.range(-3..4) as u32) ^ (random.below(2) as u32) << 31,
        _ => {
            let fraction = fraction(random);
            float(random, exponent(a) - distance, fraction)
        }
    };
    if random.below(2) == 0 { vec![a, b] } else { vec![b, a] }
}

/// Returns an exponent for the other factor. The exponent of the product is random, often at a
/// limit of the range.
fn other_exponent(random: &mut Random, exponent: i64) -> i64 {
    127 - exponent
        + match random.below(5) {
            0 => random.range(-26..4),
            1 => 255 + random.range(-4..4),
            2 => random.range(0..256),
            _ => 127 + random.range(-20..20),
        }
}

/// Returns factors whose products are halfway between floats, next to powers of two, subnormal, or
/// overflow.
fn factors(random: &mut Random) -> Vec<u32> {
    let a = any(random);
    let e = other_exponent(random, exponent(a));
    match random.below(6) {
        0 => vec![a, any(random)],
        1 => {
            let bits = random.range(2..23) as u32;
            let [a_fraction, b_fraction] = [bits, 25 - bits].map(|bits| short_fraction(random, bits));
            vec![a & !FRACTION | a_fraction, float(random, e, b_fraction)]
        }
        2 => {
            let inverse = (1u64 << 47) / u64::from(a & FRACTION | HIDDEN);
            let near = inverse.wrapping_add_signed(random.range(-2..3)) as u32;
            vec![a, float(random, e, near)]
        }
        _ => {
            let fraction = fraction(random);
            vec![a, float(random, e, fraction)]
        }
    }
}

/// Returns operands whose quotients are exact, halfway between subnormals, or overflow.
fn dividend_and_divisor(random: &mut Random) -> Vec<u32> {
    let b = any(random);
    let e = exponent(b)
        + match random.below(5) {
            0 => -127 + random.range(-26..4),
            1 => 127 + random.range(-4..4),
            2 => random.range(-255..256),
            _ => random.range(-20..20),
        };
    match random.below(5) {
        0 => vec![any(random), b],
        1 => {
            let bits = random.range(1..14) as u32;
            let b_fraction = short_fraction(random, bits);
            let quotient = random.below(1 << 11) as u32 | 1;
            let product = ((b_fraction | HIDDEN) >> (24 - bits)) * quotient;
            let a_fraction = product << product.leading_zeros() >> 8;
            vec![float(random, e, a_fraction), b & !FRACTION | b_fraction]
        }
        _ => {
            let fraction = fraction(random);
            vec![float(random, e, fraction), b]
        }
    }
}

/// Returns factors with an addend close to the product or to half of its last place, or far above
/// or below it.
fn factors_and_addend(random: &mut Random) -> Vec<u32> {
    let mut all = if random.below(4) == 0 {
        terms(random)
    } else {
        factors(random)
    };
    let product = (single(all[0]) * single(all[1])).value.to_bits() as u32;
    let distance = match random.below(8) {
        0 => random.range(22..28),
        1 => random.range(-28..-20),
        2 => random.range(44..80),
        3 => random.range(-3..4),
        _ => random.range(-50..51),
    };
    all.push(match random.below(8) {
        0 => any(random),
        1 => (product ^ SIGN).wrapping_add(random.range(-3..4) as u32),
        _ => {
            let fraction = fraction(random);
            float(random, exponent(product) - distance, fraction)
        }
    });
    all
}

/// Returns numbers whose fractional part is close to a half, around the limit above which all
/// floats are integers.
fn with_rest(random: &mut Random) -> Vec<u32> {
    if random.below(4) == 0 {
        return vec![any(random)];
    }
    let e = random.range(124..153);
    let below = (150 - e).clamp(0, 23) as u32;
    let kept = fraction(random) >> below << below;
    let rest = random.rest(below) as u32;
    vec![float(random, e, kept | rest)]
}

/// Returns squares of short and long numbers, and their neighbors.
fn near_square(random: &mut Random) -> Vec<u32> {
    let bits = match random.below(4) {
        0 => return vec![any(random)],
        1 => {
            let fraction = fraction(random);
            let other = any(random);
            return vec![float(random, exponent(other), fraction) & !SIGN];
        }
        2 => 12,
        _ => 24,
    };
    let root = random.below(1 << bits) | 1 << (bits - 1);
    let square = root * root;
    let fraction = (square << square.leading_zeros() >> 40) as u32 & FRACTION;
    let bits = (random.below(255) as u32) << 23 | fraction;
    vec![bits.wrapping_add(random.range(-2..3) as u32) & !SIGN]
}

/// Returns the square root, computed with integers: `rustc_apfloat` has no square root.
fn root(x: Single) -> Single {
    if x.is_nan() || x.is_zero() {
        return x;
    }
    if x.is_negative() {
        return Single::NAN;
    }
    if x.is_infinite() {
        return x;
    }
    let bits = x.to_bits() as u32;
    let (significand, power) = match exponent(bits) as i32 {
        0 => (bits, -149),
        e => (bits & FRACTION | HIDDEN, e - 150),
    };
    let shift = 60 + (power & 1);
    let square = u128::from(significand) << shift;
    let root = square.isqrt();
    // An additional lowest bit records whether the remainder is nonzero.
    let marked = root << 1 | u128::from(root * root != square);
    Single::from_u128(marked).value.scalbn((power - shift) / 2 - 1)
}

fn check_two(name: &str, random: fn(&mut Random) -> Vec<u32>, right: fn(Single, Single) -> Single) {
    check(name, two(), MILLION, random, |args| {
        vec![bits32(right(single(args[0]), single(args[1])))]
    });
}

fn check_one(name: &str, random: fn(&mut Random) -> Vec<u32>, right: fn(Single) -> Single) {
    check(name, one(), MILLION, random, |args| {
        vec![bits32(right(single(args[0])))]
    });
}

#[test]
fn add() {
    check_two("__npu_f32_add", terms, |a, b| (a + b).value);
}

#[test]
fn sub() {
    check_two("__npu_f32_sub", terms, |a, b| (a - b).value);
}

#[test]
fn mul() {
    check_two("__npu_f32_mul", factors, |a, b| (a * b).value);
}

#[test]
fn div() {
    check_two("__npu_f32_div", dividend_and_divisor, |a, b| (a / b).value);
}

#[test]
fn min() {
    check_two("__npu_f32_min", terms, |a, b| extreme(a, b, true));
}

#[test]
fn max() {
    check_two("__npu_f32_max", terms, |a, b| extreme(a, b, false));
}

#[test]
fn sqrt() {
    check_one("__npu_f32_sqrt", near_square, root);
}

/// Compares every significand with both parities of the exponent with the host's square root.
#[test]
fn sqrt_of_all_significands() {
    let all = (0x3f80_0000..0x4080_0000).map(|bits| vec![bits]);
    let right = |args: &[u32]| vec![f32::from_bits(args[0]).sqrt().to_bits()];
    check("__npu_f32_sqrt", all, 0, |_| Vec::new(), right);
}

#[test]
fn fma() {
    let short: Vec<u32> = single_edges()
        .into_iter()
        .filter(|bits| matches!(bits & FRACTION, 0 | 1 | FRACTION))
        .collect();
    let triples = two()
        .filter(|pair| pair.iter().all(|bits| short.contains(bits)))
        .flat_map(|pair| {
            short
                .clone()
                .into_iter()
                .step_by(3)
                .map(move |c| vec![pair[0], pair[1], c])
        });
    check("__npu_f32_fma", triples, MILLION, factors_and_addend, |args| {
        let [a, b, c] = [args[0], args[1], args[2]].map(single);
        vec![bits32(a.mul_add(b, c).value)]
    });
}

#[test]
fn ceil() {
    check_one("__npu_f32_ceil", with_rest, |a| {
        a.round_to_integral(Round::TowardPositive).value
    });
}

#[test]
fn floor() {
    check_one("__npu_f32_floor", with_rest, |a| {
        a.round_to_integral(Round::TowardNegative).value
    });
}

#[test]
fn trunc() {
    check_one("__npu_f32_trunc", with_rest, |a| {
        a.round_to_integral(Round::TowardZero).value
    });
}

#[test]
fn nearest() {
    check_one("__npu_f32_nearest", with_rest, |a| {
        a.round_to_integral(Round::NearestTiesToEven).value
    });
}
