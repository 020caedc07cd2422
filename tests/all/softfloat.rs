//! Common code of the tests of float routines: a driver that runs a runtime routine on operands in
//! the simulator, `rustc_apfloat` for the expected results, and operands that are hard to round.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use cranelift_naplespu::runtime::Routine;
use naplespu_jit::Program;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status};
use std::fmt::Write;

/// The addresses of operands and results in the device's memory.
const INPUT: u32 = 0x1000_0000;
const OUTPUT: u32 = 0x2000_0000;

/// The number of operand sets in one launch.
const BATCH: usize = 50_000;

/// The limit of instructions for one operand set.
const STEPS: u64 = 3000;

/// A routine with a loop that calls it.
struct Driver {
    program: Program,
    words: (usize, usize),
}

impl Driver {
    fn new(name: &str) -> Self {
        let routine = Routine::ALL.iter().find(|routine| routine.name() == name);
        let words = routine.unwrap_or_else(|| panic!("{name} is not in the table")).words();
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").unwrap();
        let isa = isa::lookup_by_name("naplespu").unwrap();
        let isa = isa.finish(settings::Flags::new(flags)).unwrap();
        let mut program = Program::with_config(isa, npu_sim::Config::testing(1));
        program.module().unwrap().import_runtime();
        for function in cranelift_reader::parse_functions(&loop_around(name, words)).unwrap() {
            program.define(&function).unwrap();
        }
        Self { program, words }
    }

    /// Returns the results of the operand sets.
    fn run(&mut self, operands: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let bytes: Vec<u8> = operands.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        self.program.write_memory(INPUT, &bytes).unwrap();
        let count = operands.len();
        let arguments = [INPUT, OUTPUT, count as u32].map(|n| DataValue::I32(n.cast_signed()));
        self.program.set_step_limit(STEPS * count as u64 + STEPS);
        self.program.call("drive", &arguments).unwrap();
        let result = |set: usize| {
            let first = set * self.words.1;
            (first..first + self.words.1)
                .map(|word| self.program.read_word(OUTPUT + 4 * word as u32).unwrap())
                .collect()
        };
        (0..count).map(result).collect()
    }
}

/// Returns CLIF that calls the routine for each operand set.
fn loop_around(name: &str, (args, rets): (usize, usize)) -> String {
    let types = |count: usize| vec!["i32"; count].join(", ");
    let values = |first: usize, count: usize| {
        let names: Vec<String> = (first..first + count).map(|number| format!("v{number}")).collect();
        names.join(", ")
    };
    let mut text = format!(
        "function %drive(i32, i32, i32) {{
            sig0 = ({}) -> {} probestack
            fn0 = %{name} sig0
        block0(v0: i32, v1: i32, v2: i32):
            v3 = iconst.i32 {}
            v4 = iconst.i32 {}
            v5 = iconst.i32 -1
            brif v2, block1(v0, v1, v2), block2
        block1(v10: i32, v11: i32, v12: i32):\n",
        types(args),
        types(rets),
        4 * args,
        4 * rets,
    );
    for word in 0..args {
        writeln!(text, "v{} = load.i32 v10+{}", 100 + word, 4 * word).unwrap();
    }
    writeln!(text, "{} = call fn0({})", values(200, rets), values(100, args)).unwrap();
    for word in 0..rets {
        writeln!(text, "store.i32 v{}, v11+{}", 200 + word, 4 * word).unwrap();
    }
    text + "
            v20 = iadd v10, v3
            v21 = iadd v11, v4
            v22 = iadd v12, v5
            brif v22, block1(v20, v21, v22), block2
        block2:
            return
        }"
}

/// Runs a routine on the given operand sets and on `count` random ones, and compares the results
/// with the expected ones.
pub fn check(
    name: &str,
    edges: impl IntoIterator<Item = Vec<u32>>,
    count: usize,
    random: impl Fn(&mut Random) -> Vec<u32>,
    expected: impl Fn(&[u32]) -> Vec<u32>,
) {
    let mut driver = Driver::new(name);
    let mut source = Random::new(1);
    let mut all = edges.into_iter().chain((0..count).map(|_| random(&mut source)));
    loop {
        let batch: Vec<Vec<u32>> = all.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return;
        }
        for (operands, result) in batch.iter().zip(driver.run(&batch)) {
            let right = expected(operands);
            assert!(
                right == result,
                "{name} of {operands:08x?} gives {result:08x?}, not {right:08x?}"
            );
        }
    }
}

/// Returns the bits of an f16. All NaNs have the bits of the canonical NaN.
pub fn bits16(x: Half) -> u32 {
    if x.is_nan() { 0x7e00 } else { x.to_bits() as u32 }
}

/// Returns the bits of an f32. All NaNs have the bits of the canonical NaN.
pub fn bits32(x: Single) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() as u32 }
}

/// Returns the bits of an f64. All NaNs have the bits of the canonical NaN.
pub fn bits64(x: Double) -> u64 {
    if x.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        x.to_bits() as u64
    }
}

/// Returns the f16 with these bits.
pub fn half(bits: u32) -> Half {
    Half::from_bits(bits.into())
}

/// Returns the f32 with these bits.
pub fn single(bits: u32) -> Single {
    Single::from_bits(bits.into())
}

/// Returns the f64 with these bits.
pub fn double(bits: u64) -> Double {
    Double::from_bits(bits.into())
}

/// Converts a value to another format.
pub fn convert<A: FloatConvert<B>, B: Float>(x: A) -> B {
    x.convert(&mut false).value
}

/// Returns the words of a number, low word first.
pub fn words(n: u128, count: usize) -> Vec<u32> {
    (0..count).map(|word| (n >> (32 * word)) as u32).collect()
}

/// Returns the number with these words, low word first.
pub fn number(words: &[u32]) -> u128 {
    words.iter().rev().fold(0, |n, &word| n << 32 | u128::from(word))
}

/// Returns the words of an f64, low word first.
pub fn words64(x: Double) -> Vec<u32> {
    words(bits64(x).into(), 2)
}

/// Returns the f64 with these two words.
pub fn double_of(words: &[u32]) -> Double {
    double(number(words) as u64)
}

/// Returns the expected result of a conversion to an integer: the words of the number, and whether
/// it was in range.
pub fn to_integer<F: Float>(x: F, signed: bool, bits: usize) -> Vec<u32> {
    let (value, status) = if signed {
        let result = x.to_i128_r(bits, Round::TowardZero, &mut false);
        (result.value.cast_unsigned(), result.status)
    } else {
        let result = x.to_u128_r(bits, Round::TowardZero, &mut false);
        (result.value, result.status)
    };
    let mut all = words(value, bits / 32);
    all.push(match status.contains(Status::INVALID_OP) {
        _ if x.is_nan() => 2,
        out_of_range => out_of_range.into(),
    });
    all
}

/// Returns the float nearest to an integer of this number of bits.
pub fn from_integer<F: Float>(n: u128, signed: bool, bits: usize) -> F {
    if signed {
        let above = 128 - bits;
        F::from_i128((n << above).cast_signed() >> above).value
    } else {
        F::from_u128(n).value
    }
}

/// Returns the smaller number if `smaller` is set, and the larger otherwise. -0 is below +0. The
/// result is a NaN if one operand is.
pub fn extreme<F: Float>(a: F, b: F, smaller: bool) -> F {
    if a.is_nan() || b.is_nan() {
        return F::NAN;
    }
    let a_below = if a.is_zero() && b.is_zero() {
        a.is_negative()
    } else {
        a < b
    };
    if a_below == smaller { a } else { b }
}

/// A random number generator with the same sequence in every run.
pub struct Random(u64);

impl Random {
    /// Makes a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns 128 random bits.
    pub fn wide(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// Returns a number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// Returns a number in the range.
    pub fn range(&mut self, range: std::ops::Range<i64>) -> i64 {
        range.start + self.below((range.end - range.start).cast_unsigned()).cast_signed()
    }

    /// Returns this number of bits, often with long runs or with few bits that differ from the
    /// others.
    pub fn pattern(&mut self, bits: u32) -> u128 {
        let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let random = self.wide();
        let one = 1u128 << self.below(bits.into());
        let other = 1u128 << self.below(bits.into());
        let half = mask / 2 + 1;
        mask & match self.below(12) {
            0 => 0,
            1 => mask,
            2 => one,
            3 => !one,
            4 => one - 1,
            5 => !(one - 1),
            6 => one | other,
            7 => one.wrapping_sub(other),
            8 => half.wrapping_add(random % 3).wrapping_sub(1),
            9 => random & !(one - 1),
            10 => random | (one - 1),
            _ => random,
        }
    }

    /// Returns the bits that are rounded off: often half of their range or next to it, sometimes
    /// zero, sometimes any.
    pub fn rest(&mut self, bits: u32) -> u128 {
        if bits == 0 {
            return 0;
        }
        let mask = (1u128 << bits) - 1;
        let half = mask / 2 + 1;
        mask & match self.below(7) {
            0 => half,
            1 => half - 1,
            2 => half + 1,
            3 => 0,
            4 => mask,
            5 => self.pattern(bits),
            _ => self.wide(),
        }
    }

    /// Returns the bits of a float of any class, with these numbers of exponent and fraction bits.
    pub fn float(&mut self, exponent: u32, fraction: u32) -> u64 {
        let top = (1u64 << exponent) - 1;
        let spread = 2 * u64::from(fraction) + 10;
        let e = match self.below(8) {
            0 => 0,
            1 => self.below(4),
            2 => top - self.below(4),
            3 | 4 => top / 2 - 4 + self.below(spread).min(top / 2),
            _ => self.below(top + 1),
        };
        let sign = self.below(2) << (exponent + fraction);
        sign | e << fraction | self.pattern(fraction) as u64
    }
}

/// Returns the bits of floats of both signs at the limits of each class, and next to the powers of
/// two above which all floats are integers.
pub fn edges(exponent: u32, fraction: u32) -> Vec<u64> {
    let top = (1u64 << exponent) - 1;
    let bias = top / 2;
    let ones = (1u64 << fraction) - 1;
    let integral = bias + u64::from(fraction);
    let mut all = Vec::new();
    for e in [0, 1, 2, bias - 1, bias, bias + 1, integral, integral + 1, top - 1, top] {
        for f in [0, 1, 2, ones / 2, ones / 2 + 1, ones / 2 + 2, ones - 1, ones] {
            all.push(e << fraction | f);
        }
    }
    for bits in [7, 8, 15, 16, 31, 32, 63, 64, 127, 128] {
        let power = (bias + bits) << fraction;
        if bias + bits < top {
            all.extend([power - 2, power - 1, power, power + 1]);
        }
    }
    all.retain(|bits| *bits < 1 << (exponent + fraction));
    let negative: Vec<u64> = all.iter().map(|bits| bits | 1 << (exponent + fraction)).collect();
    all.extend(negative);
    all
}
