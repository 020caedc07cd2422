//! Compares the runtime routines of f64 arithmetic, compiled by this back end and run on the
//! simulator, with `rustc_apfloat`.

use crate::f64_operands as operands;
use crate::softfloat::{Random, bits64, check, double, double_of, extreme, words, words64};
use rustc_apfloat::ieee::Double;
use rustc_apfloat::{Float, Round, StatusAnd};

/// The number of random operands for each operation.
const MILLION: usize = 1_000_000;

/// Returns the words of some numbers.
fn all_words<const N: usize>(numbers: [u64; N]) -> Vec<u32> {
    numbers.iter().flat_map(|&n| words(n.into(), 2)).collect()
}

fn pairs() -> impl Iterator<Item = Vec<u32>> {
    let all = operands::edges();
    let others = all.clone();
    all.into_iter()
        .flat_map(move |a| others.clone().into_iter().map(move |b| all_words([a, b])))
}

fn singles() -> impl Iterator<Item = Vec<u32>> {
    operands::edges().into_iter().map(|a| all_words([a]))
}

fn binary(name: &str, random: fn(&mut Random) -> [u64; 2], op: fn(Double, Double) -> StatusAnd<Double>) {
    let expected = |w: &[u32]| words64(op(double_of(&w[..2]), double_of(&w[2..])).value);
    check(name, pairs(), MILLION, |r| all_words(random(r)), expected);
}

#[test]
fn add() {
    binary("__npu_f64_add", operands::for_addition, |a, b| a + b);
}

#[test]
fn sub() {
    binary("__npu_f64_sub", operands::for_addition, |a, b| a - b);
}

#[test]
fn mul() {
    binary("__npu_f64_mul", operands::for_multiplication, |a, b| a * b);
}

#[test]
fn div() {
    binary("__npu_f64_div", operands::for_division, |a, b| a / b);
}

#[test]
fn compare() {
    let random = |r: &mut Random| all_words(operands::for_comparison(r));
    check("__npu_f64_compare", pairs(), MILLION, random, |w| {
        let code = match double_of(&w[..2]).partial_cmp(&double_of(&w[2..])) {
            Some(std::cmp::Ordering::Less) => 1,
            Some(std::cmp::Ordering::Equal) => 2,
            Some(std::cmp::Ordering::Greater) => 4,
            None => 8,
        };
        vec![code]
    });
}

#[test]
fn min_and_max() {
    for (name, smaller) in [("__npu_f64_min", true), ("__npu_f64_max", false)] {
        let random = |r: &mut Random| all_words(operands::for_comparison(r));
        check(name, pairs(), MILLION, random, |w| {
            words64(extreme(double_of(&w[..2]), double_of(&w[2..]), smaller))
        });
    }
}

#[test]
fn sqrt() {
    let random = |r: &mut Random| all_words([operands::for_root(r)]);
    // The standard library's square root is correctly rounded.
    check("__npu_f64_sqrt", singles(), MILLION, random, |w| {
        let root = f64::from_bits(bits64(double_of(w))).sqrt();
        words64(double(root.to_bits()))
    });
}

#[test]
fn round() {
    for (name, mode) in [
        ("__npu_f64_ceil", Round::TowardPositive),
        ("__npu_f64_floor", Round::TowardNegative),
        ("__npu_f64_trunc", Round::TowardZero),
        ("__npu_f64_nearest", Round::NearestTiesToEven),
    ] {
        let random = |r: &mut Random| all_words([operands::for_rounding(r)]);
        check(name, singles(), MILLION, random, |w| {
            words64(double_of(w).round_to_integral(mode).value)
        });
    }
}

#[test]
fn fma() {
    let all = operands::landmarks();
    let triples = all
        .iter()
        .flat_map(|&a| all.iter().map(move |&b| (a, b)))
        .flat_map(|(a, b)| all.iter().map(move |&c| all_words([a, b, c])));
    let random = |r: &mut Random| all_words(operands::for_fma(r));
    check("__npu_f64_fma", triples, MILLION, random, |w| {
        let [a, b, c] = [&w[..2], &w[2..4], &w[4..]].map(double_of);
        words64(a.mul_add(b, c).value)
    });
}
