//! Compares the runtime routines for 64- and 128-bit integers, run on the simulator, with Rust's
//! arithmetic.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Program;

/// The address of the operands and results of the drivers.
const DATA: u32 = 0x1000_0000;

/// Returns a function that calls a routine on `count` records. A record contains the words of the
/// operands, followed by space for the words of the results.
fn driver(name: &str, args: usize, results: usize) -> String {
    let types = |n: usize| vec!["i32"; n].join(", ");
    let values = |base: usize, n: usize| (0..n).map(|i| format!("v{}", base + i)).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "function %drive_{name}(i32, i32) {{
            sig0 = ({}) -> {} probestack
            fn0 = %__npu_{name} sig0
        block0(v0: i32, v1: i32):
            jump block1(v0, v1)
        block1(v2: i32, v3: i32):
            brif v3, block2, block3
        block3:
            return
        block2:\n",
        types(args),
        types(results)
    );
    for i in 0..args {
        text += &format!("v{} = load.i32 aligned v2+{}\n", 100 + i, 4 * i);
    }
    text += &format!("{} = call fn0({})\n", values(200, results), values(100, args));
    for i in 0..results {
        text += &format!("store aligned v{}, v2+{}\n", 200 + i, 4 * (args + i));
    }
    text += &format!(
        "v4 = iconst.i32 {}
            v5 = iadd v2, v4
            v6 = iconst.i32 1
            v7 = isub v3, v6
            jump block1(v5, v7)
        }}\n",
        4 * (args + results)
    );
    text
}

/// A random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    fn bits(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Returns a number of `width` bits in one of the shapes that are hard for multi-word
    /// algorithms.
    fn number(&mut self, width: u32) -> u128 {
        let mask = u128::MAX >> (128 - width);
        let power = |r: &mut Self| 1u128 << r.below(width);
        let value = match self.below(8) {
            0 | 1 => self.bits() & mask,
            2 | 3 => (self.bits() & mask) >> self.below(width),
            4 => power(self).wrapping_add(u128::from(self.below(5))).wrapping_sub(2),
            5 => power(self)
                .wrapping_sub(power(self))
                .wrapping_add(u128::from(self.below(3))),
            6 => {
                // Words of all ones or all zeros, and close numbers.
                (0..4).fold(0, |all, _| {
                    let word = match self.below(6) {
                        0 => 0,
                        1 => 0xffff_ffff,
                        2 => self.below(3),
                        3 => 0xffff_fffd + self.below(3),
                        4 => 0x8000_0000 + self.below(3) - 1,
                        _ => self.next() as u32,
                    };
                    all << 32 | u128::from(word)
                })
            }
            _ => self.bits() & self.bits() & self.bits(),
        };
        value & mask
    }

    /// Returns a dividend and a divisor. A quarter of the pairs are independent. The dividends of
    /// the others are close to a multiple of the divisor, or have the same high digits.
    fn division(&mut self, width: u32) -> (u128, u128) {
        let mask = u128::MAX >> (128 - width);
        let d = self.number(width).max(1);
        let n = match self.below(4) {
            0 => self.number(width),
            1 | 2 => {
                let limit = mask / d;
                let q = self.number(width);
                let q = if q > limit { q >> d.ilog2().min(width - 1) } else { q }.min(limit);
                match self.below(4) {
                    0 => q * d,
                    1 => (q * d).wrapping_sub(1),
                    2 => (q * d).wrapping_add(d - 1),
                    _ => (q * d).wrapping_add(u128::from(self.below(3))),
                }
            }
            _ => {
                // The same high digits, shifted.
                let shift = self.below(width);
                (d << self.below(d.leading_zeros() - (128 - width) + 1)) ^ (self.bits() & mask) >> shift
            }
        };
        (n & mask, d)
    }
}

fn words(value: u128, width: u32) -> impl Iterator<Item = u32> {
    (0..width / 32).map(move |i| (value >> (32 * i)) as u32)
}

fn signed(value: u128, width: u32) -> i128 {
    (value << (128 - width)).cast_signed() >> (128 - width)
}

/// Returns the upper 128 bits of the product.
fn high128(a: u128, b: u128) -> u128 {
    let (a0, a1, b0, b1) = (a & u128::from(u64::MAX), a >> 64, b & u128::from(u64::MAX), b >> 64);
    let middle = a0 * b1 + ((a0 * b0) >> 64);
    let (middle, low) = (middle >> 64, middle & u128::from(u64::MAX));
    a1 * b1 + middle + ((a1 * b0 + low) >> 64)
}

/// Returns the expected result of an operation.
fn expected(op: &str, width: u32, a: u128, b: u128) -> u128 {
    let (sa, sb) = (signed(a, width), signed(b, width));
    let amount = b as u32 & 127;
    let value = match op {
        "udiv" => a / b,
        "urem" => a % b,
        "sdiv" => sa.wrapping_div(sb).cast_unsigned(),
        "srem" => sa.wrapping_rem(sb).cast_unsigned(),
        "mul" => a.wrapping_mul(b),
        "umulhi" if width == 64 => (a * b) >> 64,
        "smulhi" if width == 64 => ((sa * sb) >> 64).cast_unsigned(),
        "umulhi" => high128(a, b),
        "smulhi" => high128(a, b)
            .wrapping_sub(if sa < 0 { b } else { 0 })
            .wrapping_sub(if sb < 0 { a } else { 0 }),
        "shl" => a << amount,
        "ushr" => a >> amount,
        "sshr" => (sa >> amount).cast_unsigned(),
        "rotl" => a.rotate_left(amount),
        other => panic!("{other}"),
    };
    value & (u128::MAX >> (128 - width))
}

fn is_shift(op: &str) -> bool {
    ["shl", "ushr", "sshr", "rotl"].contains(&op)
}

/// Runs an operation on pairs of operands and compares the results.
fn check(program: &mut Program, op: &str, width: u32, pairs: &[(u128, u128)]) {
    let (per, second) = (
        (width / 32) as usize,
        if is_shift(op) { 1 } else { (width / 32) as usize },
    );
    let stride = 4 * (2 * per + second);
    let name = format!("drive_{op}{width}");
    for batch in pairs.chunks(20_000) {
        let mut bytes = Vec::with_capacity(batch.len() * stride);
        for &(a, b) in batch {
            let operands = words(a, width).chain(words(b, width).take(second));
            bytes.extend(operands.flat_map(u32::to_le_bytes));
            bytes.resize(bytes.len() + 4 * per, 0);
        }
        program.write_memory(DATA, &bytes).unwrap();
        let args = [DATA, batch.len() as u32].map(|arg| DataValue::I32(arg.cast_signed()));
        program
            .call(&name, &args)
            .unwrap_or_else(|error| panic!("{op}{width}: {error}"));
        for (i, &(a, b)) in batch.iter().enumerate() {
            let at = DATA + (i * stride) as u32 + 4 * (per + second) as u32;
            let result = (0..per).rev().fold(0, |all, word| {
                all << 32 | u128::from(program.read_word(at + 4 * word as u32).unwrap())
            });
            let right = expected(op, width, a, b);
            assert_eq!(
                result, right,
                "{op}{width} of {a:#x} and {b:#x}: {result:#x} for {right:#x}"
            );
        }
    }
}

const DIVISIONS: [&str; 4] = ["udiv", "urem", "sdiv", "srem"];
const OTHERS_64: &[&str] = &["umulhi", "smulhi"];
const OTHERS_128: &[&str] = &["mul", "umulhi", "smulhi", "shl", "ushr", "sshr", "rotl"];

fn allowed(op: &str, width: u32, a: u128, b: u128) -> bool {
    op != "sdiv" || signed(b, width) != -1 || a != 1 << (width - 1)
}

/// Returns a program with a driver for each operation on numbers of `width` bits.
fn program(ops: &[&str], width: u32) -> Program {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    let isa = isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap();
    let mut program = Program::with_config(isa, npu_sim::Config::testing(1));
    program.module().unwrap().import_runtime();
    let per = (width / 32) as usize;
    for op in ops {
        let args = if is_shift(op) { per + 1 } else { 2 * per };
        let text = driver(&format!("{op}{width}"), args, per);
        for function in cranelift_reader::parse_functions(&text).unwrap() {
            program.define(&function).unwrap();
        }
    }
    program
}

/// Returns numbers next to powers of two, and a few others.
fn edges(width: u32) -> Vec<u128> {
    let mask = u128::MAX >> (128 - width);
    let mut all = vec![mask - 1, mask - 2, 10, 100, 1_000_000_007];
    for bit in 0..width {
        let power = 1u128 << bit;
        all.extend([
            power - 1,
            power,
            power + 1,
            power | power >> 1,
            power.wrapping_neg() & mask,
        ]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Compares all pairs of edge cases, and `count` random pairs for each operation.
fn compare(ops: &[&str], width: u32, count: usize) {
    let (mut program, mut random) = (program(ops, width), Random(0x1234_5678_9abc_def1));
    let (edges, mask) = (edges(width), u128::MAX >> (128 - width));
    for op in ops {
        let division = DIVISIONS.contains(op);
        let mut pairs: Vec<(u128, u128)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
        for _ in 0..count {
            pairs.push(if division {
                let ((n, d), signs) = (random.division(width), random.below(8));
                let turn = |x: u128, yes: bool| if yes { x.wrapping_neg() & mask } else { x };
                (turn(n, signs & 1 != 0), turn(d, signs & 2 != 0))
            } else {
                (random.number(width), random.number(width))
            });
        }
        pairs.retain(|&(a, b)| !division || b != 0 && allowed(op, width, a, b));
        check(&mut program, op, width, &pairs);
    }
}

#[test]
fn divisions_of_64_bits() {
    compare(&DIVISIONS, 64, 1_000_000);
}

#[test]
fn products_of_64_bits() {
    compare(OTHERS_64, 64, 1_000_000);
}

#[test]
fn divisions_of_128_bits() {
    compare(&DIVISIONS, 128, 1_000_000);
}

#[test]
fn products_and_shifts_of_128_bits() {
    compare(OTHERS_128, 128, 1_000_000);
}

/// Callers check the operands, but the routines must terminate for unchecked ones.
#[test]
fn unchecked_operands() {
    for width in [64, 128] {
        let mut program = program(&DIVISIONS, width);
        program.set_step_limit(2000);
        for op in DIVISIONS {
            let mut operands: Vec<(u128, u128)> = edges(width).into_iter().map(|n| (n, 0)).collect();
            operands.push((1 << (width - 1), u128::MAX >> (128 - width)));
            for (n, d) in operands {
                let bytes: Vec<u8> = words(n, width)
                    .chain(words(d, width))
                    .flat_map(u32::to_le_bytes)
                    .collect();
                program.write_memory(DATA, &bytes).unwrap();
                let args = [DATA, 1].map(|arg| DataValue::I32(arg.cast_signed()));
                let name = format!("drive_{op}{width}");
                program
                    .call(&name, &args)
                    .unwrap_or_else(|error| panic!("{op}{width} of {n:#x}: {error}"));
            }
        }
    }
}
