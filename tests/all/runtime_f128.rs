//! Compares the runtime routines of f128, compiled by this back end and run on the simulator, with
//! `rustc_apfloat`.
//!
//! Each routine gets 50,000 random operands and the edge cases. `NAPLESPU_OPERANDS` sets another
//! number.

use crate::softfloat::{
    self, Random, bits16, bits32, check, convert, extreme, from_integer, number, to_integer, words, words64,
};
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, Round, StatusAnd};

const SIGN: u128 = 1 << 127;
const BIAS: u64 = 0x3fff;
const MAX_EXPONENT: u64 = 0x7fff;
const FRACTION: u32 = 112;

fn count() -> usize {
    let given = std::env::var("NAPLESPU_OPERANDS").ok();
    given.map_or(50_000, |number| number.parse().expect("NAPLESPU_OPERANDS is a number"))
}

fn quad(bits: u128) -> Quad {
    Quad::from_bits(bits)
}

fn quad_of(words: &[u32]) -> Quad {
    quad(number(words))
}

/// Returns the words of a number. All NaNs have the words of the canonical NaN.
fn words128(x: Quad) -> Vec<u32> {
    let bits = if x.is_nan() { 0xffff << 111 } else { x.to_bits() };
    words(bits, 4)
}

fn all_words<const N: usize>(numbers: [u128; N]) -> Vec<u32> {
    numbers.iter().flat_map(|&n| words(n, 4)).collect()
}

/// Returns edge cases of both signs.
fn edges() -> Vec<u128> {
    let mut all = Vec::new();
    let ones = (1u128 << FRACTION) - 1;
    for e in [
        0,
        1,
        2,
        BIAS - 113,
        BIAS - 112,
        BIAS - 1,
        BIAS,
        BIAS + 1,
        BIAS + 112,
        BIAS + 113,
        0x7ffe,
        0x7fff,
    ] {
        for f in [0, 1, ones / 2, ones / 2 + 1, ones - 1, ones] {
            all.push(u128::from(e) << FRACTION | f);
        }
    }
    for bits in [7, 8, 15, 16, 31, 32, 63, 64, 127, 128] {
        let power = u128::from(BIAS + bits) << FRACTION;
        all.extend([power - 1, power, power + 1, power | 1 << 100]);
    }
    all.extend((1..8).map(|halves| Quad::from_u128(halves).value.scalbn(-1).to_bits()));
    let negative: Vec<u128> = all.iter().map(|bits| bits | SIGN).collect();
    all.extend(negative);
    all
}

/// Returns a number with this biased exponent, or with the nearest valid one.
fn with_exponent(random: &mut Random, exponent: i64) -> u128 {
    let exponent = exponent.clamp(0, MAX_EXPONENT.cast_signed()).cast_unsigned();
    u128::from(random.below(2)) << 127 | u128::from(exponent) << FRACTION | random.pattern(FRACTION)
}

/// Returns a number of any class.
fn any(random: &mut Random) -> u128 {
    let exponent = match random.below(8) {
        0 => 0,
        1 => random.below(4),
        2 => MAX_EXPONENT - random.below(4),
        3 | 4 => BIAS - 120 + random.below(240),
        5 => BIAS / 2 - 120 + random.below(240),
        _ => random.below(MAX_EXPONENT + 1),
    };
    with_exponent(random, exponent.cast_signed())
}

/// Returns a number whose exponent differs from that of `other` by at most `reach`.
fn near(random: &mut Random, other: u128, reach: i64) -> u128 {
    let exponent = (other >> FRACTION) as u64 & MAX_EXPONENT;
    let distance = random.range(-reach..reach + 1);
    with_exponent(random, exponent.cast_signed() + distance)
}

/// Returns two numbers, often with close exponents.
fn two(random: &mut Random) -> [u128; 2] {
    let a = any(random);
    let b = match random.below(6) {
        0 => any(random),
        1 => a ^ SIGN,
        2 => near(random, a, 2),
        3 => (a ^ SIGN).wrapping_add(random.below(5).into()),
        _ => near(random, a, 130),
    };
    [a, b]
}

fn pairs() -> impl Iterator<Item = Vec<u32>> {
    let all = edges();
    let others = all.clone();
    all.into_iter()
        .flat_map(move |a| others.clone().into_iter().map(move |b| all_words([a, b])))
}

fn singles() -> impl Iterator<Item = Vec<u32>> {
    edges().into_iter().map(|a| all_words([a]))
}

fn binary(name: &str, op: fn(Quad, Quad) -> StatusAnd<Quad>) {
    let expected = |w: &[u32]| words128(op(quad_of(&w[..4]), quad_of(&w[4..])).value);
    check(name, pairs(), count(), |r| all_words(two(r)), expected);
}

#[test]
fn add() {
    binary("__npu_f128_add", |a, b| a + b);
}

#[test]
fn sub() {
    binary("__npu_f128_sub", |a, b| a - b);
}

#[test]
fn mul() {
    binary("__npu_f128_mul", |a, b| a * b);
}

#[test]
fn div() {
    binary("__npu_f128_div", |a, b| a / b);
}

#[test]
fn compare() {
    check(
        "__npu_f128_compare",
        pairs(),
        count(),
        |r| all_words(two(r)),
        |w| {
            let code = match quad_of(&w[..4]).partial_cmp(&quad_of(&w[4..])) {
                Some(std::cmp::Ordering::Less) => 1,
                Some(std::cmp::Ordering::Equal) => 2,
                Some(std::cmp::Ordering::Greater) => 4,
                None => 8,
            };
            vec![code]
        },
    );
}

#[test]
fn min_and_max() {
    for (name, smaller) in [("__npu_f128_min", true), ("__npu_f128_max", false)] {
        check(
            name,
            pairs(),
            count(),
            |r| all_words(two(r)),
            |w| words128(extreme(quad_of(&w[..4]), quad_of(&w[4..]), smaller)),
        );
    }
}

/// Returns the square root: an estimate, corrected until the absolute remainder is less than the
/// root times its unit in the last place.
fn root(x: Quad) -> Quad {
    if x.is_nan() || x.is_zero() {
        return x;
    }
    if x.is_negative() {
        return Quad::NAN;
    }
    if x.is_infinite() {
        return x;
    }
    let halved = x.ilogb().div_euclid(2);
    let x = x.scalbn(-2 * halved);
    let estimate: Double = convert(x);
    let estimate = f64::from_bits(estimate.to_bits() as u64).sqrt();
    let mut root: Quad = convert(Double::from_bits(estimate.to_bits().into()));
    for _ in 0..2 {
        root = (root + (x / root).value).value.scalbn(-1);
    }
    loop {
        // x is from 1 to 4, so the root is below 2, or 2 by rounding. The remainder is exact: it
        // has fewer than 113 bits.
        let rest = (-root).mul_add(root, x).value;
        let bound = root.scalbn(root.ilogb() - 112);
        // Below a power of two, the distance between numbers is half as large.
        let is_power = root.to_bits() << (128 - FRACTION) == 0;
        let below = if is_power { bound.scalbn(-1) } else { bound };
        if rest > bound {
            root = root.next_up().value;
        } else if rest <= -below {
            root = root.next_down().value;
        } else {
            return root.scalbn(halved);
        }
    }
}

#[test]
fn sqrt() {
    let random = |r: &mut Random| {
        let number = match r.below(4) {
            0 => {
                // The rounded square of the midpoint between two numbers.
                let middle = Quad::from_u128(r.wide() >> 15 | 1 << 112).value;
                let half = Quad::from_u128(1).value.scalbn(-1);
                middle.mul_add(middle, (middle + half).value).value.to_bits()
            }
            _ => any(r) & !(u128::from(r.below(20) != 0) << 127),
        };
        all_words([number])
    };
    check("__npu_f128_sqrt", singles(), count(), random, |w| {
        words128(root(quad_of(w)))
    });
}

#[test]
fn fma() {
    let all: Vec<u128> = edges().into_iter().step_by(7).collect();
    let triples = all
        .iter()
        .flat_map(|&a| all.iter().map(move |&b| (a, b)))
        .flat_map(|(a, b)| all.iter().map(move |&c| all_words([a, b, c])));
    let random = |r: &mut Random| {
        let [a, b] = two(r);
        let product = (quad(a) * quad(b)).value.to_bits();
        let c = match r.below(6) {
            0 => any(r),
            1 => product ^ SIGN,
            2 => near(r, product, 2),
            3 => (product ^ SIGN).wrapping_add(r.below(5).into()),
            _ => near(r, product, 260),
        };
        all_words([a, b, c])
    };
    check("__npu_f128_fma", triples, count(), random, |w| {
        let [a, b, c] = [&w[..4], &w[4..8], &w[8..]].map(quad_of);
        words128(a.mul_add(b, c).value)
    });
}

#[test]
fn round() {
    for (name, mode) in [
        ("__npu_f128_ceil", Round::TowardPositive),
        ("__npu_f128_floor", Round::TowardNegative),
        ("__npu_f128_trunc", Round::TowardZero),
        ("__npu_f128_nearest", Round::NearestTiesToEven),
    ] {
        let random = |r: &mut Random| {
            let exponent = r.range(-3..118) + BIAS.cast_signed();
            all_words([with_exponent(r, exponent)])
        };
        check(name, singles(), count(), random, |w| {
            words128(quad_of(w).round_to_integral(mode).value)
        });
    }
}

#[test]
fn to_integers() {
    for signed in [false, true] {
        for bits in [32, 64, 128] {
            let name = format!("__npu_f128_to_{}{bits}", if signed { 's' } else { 'u' });
            let random = |r: &mut Random| {
                let exponent = r.range(-3..bits as i64 + 3) + BIAS.cast_signed();
                all_words([with_exponent(r, exponent)])
            };
            check(&name, singles(), count(), random, |w| {
                to_integer(quad_of(w), signed, bits)
            });
        }
    }
}

#[test]
fn from_integers() {
    for signed in [false, true] {
        for bits in [32, 64, 128] {
            let name = format!("__npu_f128_from_{}{bits}", if signed { 's' } else { 'u' });
            let edges = (0..bits).flat_map(|shift| {
                let power = 1u128 << shift;
                [power, power.wrapping_sub(1), power.wrapping_neg(), !power].map(|n| words(n, bits / 32))
            });
            let random = |r: &mut Random| {
                let length = 1 + r.below(bits as u64) as u32;
                words(r.pattern(length), bits / 32)
            };
            check(&name, edges, count(), random, |w| {
                words128(from_integer(number(w), signed, bits))
            });
        }
    }
}

/// Returns numbers at the limits of another format, or between two of its numbers.
fn for_narrowing(random: &mut Random, bias: i64, fraction: u32) -> Vec<u32> {
    let exponent = match random.below(3) {
        0 => random.range(-bias - i64::from(fraction) - 3..-bias + 3),
        1 => random.range(bias - 2..bias + 4),
        _ => random.range(-bias..bias + 1),
    };
    let below = FRACTION - fraction;
    let number = with_exponent(random, exponent + BIAS.cast_signed()) >> below << below;
    all_words([number | random.rest(below)])
}

#[test]
fn to_other_formats() {
    check(
        "__npu_f64_from_f128",
        singles(),
        count(),
        |r| for_narrowing(r, 1023, 52),
        |w| words64(convert(quad_of(w))),
    );
    check(
        "__npu_f32_from_f128",
        singles(),
        count(),
        |r| for_narrowing(r, 127, 23),
        |w| vec![bits32(convert::<_, Single>(quad_of(w)))],
    );
    check(
        "__npu_f16_from_f128",
        singles(),
        count(),
        |r| for_narrowing(r, 15, 10),
        |w| vec![bits16(convert::<_, Half>(quad_of(w)))],
    );
}

#[test]
fn from_f64() {
    let edges = softfloat::edges(11, 52).into_iter().map(|bits| words(bits.into(), 2));
    let random = |r: &mut Random| words(r.float(11, 52).into(), 2);
    check("__npu_f128_from_f64", edges, count(), random, |w| {
        words128(convert(softfloat::double_of(w)))
    });
}
