//! Compares the runtime routines that convert between float formats, and between floats and
//! integers, with `rustc_apfloat`. This back end compiles the routines, and the simulator runs
//! them.

use crate::softfloat::{
    Random, bits16, bits32, check, convert, double_of, edges, from_integer, half, number, single, to_integer, words,
    words64,
};
use rustc_apfloat::ieee::{Double, Single};

/// The number of random operands for each routine.
const COUNT: usize = 1_000_000;

fn single_edges() -> impl Iterator<Item = Vec<u32>> {
    edges(8, 23).into_iter().map(|bits| vec![bits as u32])
}

fn double_edges() -> impl Iterator<Item = Vec<u32>> {
    edges(11, 52).into_iter().map(|bits| words(bits.into(), 2))
}

/// Returns powers of two, all-ones significands with all shifts, and their neighbors, with both
/// signs.
fn integer_edges(bits: usize) -> impl Iterator<Item = Vec<u32>> {
    let long = [
        (1 << 53) - 1,
        (1 << 53) + 1,
        (1 << 54) - 1,
        (1 << 54) - 2,
        (1 << 54) - 3,
    ];
    let short = [
        0xff_ffff, 0xff_fffe, 0xff_fffd, 0x80_0001, 0x1ff_ffff, 0x1ff_fffe, 0x1ff_fffd, 0x100_0001,
    ];
    let mut all = vec![0u128];
    for shift in 0..bits {
        let tops = long.iter().chain(&short).chain(&[1]);
        for &top in tops {
            let number: u128 = top << shift;
            let rest = (1 << shift) - 1;
            all.extend([number.wrapping_sub(1), number, number.wrapping_add(1), number | rest]);
        }
    }
    let negative: Vec<u128> = all.iter().map(|n| n.wrapping_neg()).collect();
    all.extend(negative);
    all.into_iter().map(move |n| words(n, bits / 32))
}

/// Returns an integer of random length. Usually the bits that a conversion rounds off are close to
/// half a unit in the last place.
fn integer(random: &mut Random, bits: usize, fraction: u32) -> Vec<u32> {
    let number = if random.below(4) == 0 {
        random.pattern(bits as u32)
    } else {
        let length = 1 + random.below(bits as u64) as u32;
        let mut number = random.wide() >> (128 - length) | 1 << (length - 1);
        if length > fraction + 1 {
            let below = length - fraction - 1;
            if random.below(3) == 0 {
                number = (random.pattern(fraction + 1) | 1 << fraction) << below;
            }
            number = number >> below << below | random.rest(below);
        }
        if random.below(2) == 0 {
            number.wrapping_neg()
        } else {
            number
        }
    };
    words(number, bits / 32)
}

/// Returns a double for a conversion to a narrower format, in the whole exponent range of that
/// format. Usually the bits that the conversion rounds off are close to half a unit in the last
/// place.
fn to_be_narrowed(random: &mut Random, exponent: u32, fraction: u32) -> Vec<u32> {
    if random.below(6) == 0 {
        return words(random.float(11, 52).into(), 2);
    }
    let bias = (1i64 << (exponent - 1)) - 1;
    let smallest = 1 - bias;
    let places = i64::from(fraction);
    let e = match random.below(4) {
        0 => random.range(smallest - places - 4..smallest + 5),
        1 => random.range(bias - 2..bias + 3),
        _ => random.range(smallest - places - 3..bias + 3),
    };
    let kept = (places - (smallest - e).max(0)).max(0) as u32;
    let below = 52 - kept;
    let top = random.pattern(52) as u64 >> below << below;
    let rest = random.rest(below) as u64;
    let sign = random.below(2) << 63;
    words((sign | ((e + 1023) as u64) << 52 | top | rest).into(), 2)
}

fn check_integers(signed: bool, bits: usize) {
    let kind = if signed { 's' } else { 'u' };
    let any_single = |random: &mut Random| vec![random.float(8, 23) as u32];
    let any_double = |random: &mut Random| words(random.float(11, 52).into(), 2);
    let name = format!("__npu_f32_to_{kind}{bits}");
    check(&name, single_edges(), COUNT, any_single, |args| {
        to_integer(single(args[0]), signed, bits)
    });
    let name = format!("__npu_f64_to_{kind}{bits}");
    check(&name, double_edges(), COUNT, any_double, |args| {
        to_integer(double_of(args), signed, bits)
    });
    let name = format!("__npu_f32_from_{kind}{bits}");
    let random = |random: &mut Random| integer(random, bits, 23);
    check(&name, integer_edges(bits), COUNT, random, |args| {
        vec![bits32(from_integer::<Single>(number(args), signed, bits))]
    });
    let name = format!("__npu_f64_from_{kind}{bits}");
    let random = |random: &mut Random| integer(random, bits, 52);
    check(&name, integer_edges(bits), COUNT, random, |args| {
        words64(from_integer::<Double>(number(args), signed, bits))
    });
}

#[test]
fn signed_32() {
    check_integers(true, 32);
}

#[test]
fn unsigned_32() {
    check_integers(false, 32);
}

#[test]
fn signed_64() {
    check_integers(true, 64);
}

#[test]
fn unsigned_64() {
    check_integers(false, 64);
}

#[test]
fn signed_128() {
    check_integers(true, 128);
}

#[test]
fn unsigned_128() {
    check_integers(false, 128);
}

#[test]
fn f64_from_f32() {
    let random = |random: &mut Random| vec![random.float(8, 23) as u32];
    check("__npu_f64_from_f32", single_edges(), COUNT, random, |args| {
        words64(convert(single(args[0])))
    });
}

#[test]
fn f32_from_f64() {
    let random = |random: &mut Random| to_be_narrowed(random, 8, 23);
    check("__npu_f32_from_f64", double_edges(), COUNT, random, |args| {
        vec![bits32(convert(double_of(args)))]
    });
}

/// Returns all f16 values, with different upper bits.
fn halves() -> impl Iterator<Item = Vec<u32>> {
    (0..=0xffffu32).flat_map(|bits| [vec![bits], vec![bits | 0xffff_0000], vec![bits | bits << 16]])
}

#[test]
fn f32_from_f16() {
    check(
        "__npu_f32_from_f16",
        halves(),
        0,
        |_| Vec::new(),
        |args| vec![bits32(convert(half(args[0] & 0xffff)))],
    );
}

#[test]
fn f64_from_f16() {
    check(
        "__npu_f64_from_f16",
        halves(),
        0,
        |_| Vec::new(),
        |args| words64(convert(half(args[0] & 0xffff))),
    );
}

#[test]
fn f16_from_f32() {
    let random = |random: &mut Random| {
        let narrower: Single = convert(double_of(&to_be_narrowed(random, 5, 10)));
        vec![bits32(narrower)]
    };
    // Every f16, the midpoint to the next f16, and the neighboring floats of both.
    let near = (0..0x7c00u32).flat_map(|bits| {
        let exact = bits32(convert(half(bits)));
        let middle = (exact + bits32(convert(half(bits + 1)))) / 2;
        [exact, middle]
            .into_iter()
            .flat_map(|at| [vec![at.wrapping_sub(1)], vec![at], vec![at + 1], vec![at | 0x8000_0000]])
    });
    let all = single_edges().chain(near);
    check("__npu_f16_from_f32", all, COUNT, random, |args| {
        vec![bits16(convert(single(args[0])))]
    });
}

#[test]
fn f16_from_f64() {
    let random = |random: &mut Random| to_be_narrowed(random, 5, 10);
    check("__npu_f16_from_f64", double_edges(), COUNT, random, |args| {
        vec![bits16(convert(double_of(args)))]
    });
}
