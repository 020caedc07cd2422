//! Computes the results of the lines of generated functions.

use super::{Bytes, Float, Floats, Func, Int, Ints, Kind, LANES, Lanes, Line, Op};
use npu_sim::fp;

/// The NaN of all IEEE results.
const NAN: u32 = 0x7fc0_0000;

/// The arithmetic of `fadd`, `fsub`, `fmul` and `fdiv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// The arithmetic of the float unit.
    Machine,
    /// IEEE 754.
    Ieee,
}

/// Functions, and the arithmetic that they are compiled for.
pub(super) struct Machine<'a> {
    pub funcs: &'a [Func],
    pub arithmetic: Arithmetic,
}

impl Machine<'_> {
    /// Returns the results of a call.
    pub fn call(&self, func: usize, args: &[Lanes]) -> Vec<Lanes> {
        let func = &self.funcs[func];
        let mut values = args.to_vec();
        let mut kinds = func.params.clone();
        // At the entry of a function all lanes are enabled.
        let mut mask = u16::MAX;
        self.lines(&func.lines, &mut values, &mut kinds, &mut mask);
        func.last.iter().map(|&value| values[value]).collect()
    }

    fn lines(&self, lines: &[Line], values: &mut Vec<Lanes>, kinds: &mut Vec<Kind>, mask: &mut u16) {
        for line in lines {
            let value = self.line(line, values, kinds, mask);
            values.push(value);
            kinds.push(line.kind);
        }
    }

    fn line(&self, line: &Line, values: &mut Vec<Lanes>, kinds: &mut Vec<Kind>, mask: &mut u16) -> Lanes {
        let args: Vec<Lanes> = line.args.iter().map(|&arg| values[arg]).collect();
        let kind = line.args.first().map_or(Int, |&arg| kinds[arg]);
        let lanes = |f: &dyn Fn(usize) -> u32| std::array::from_fn(f);
        match &line.op {
            Op::Plain("swizzle") => lanes(&|k| args[0].get(args[1][k] as usize).copied().unwrap_or(0)),
            Op::Plain("select") => args[if args[0][0] != 0 { 1 } else { 2 }],
            Op::Plain("bitselect") => lanes(&|k| args[0][k] & args[1][k] | !args[0][k] & args[2][k]),
            Op::Plain("fma") => lanes(&|k| fma(args[0][k], args[1][k], args[2][k])),
            Op::Plain(op) if line.args.len() == 2 && matches!(kind, Float | Floats) => {
                lanes(&|k| float_binary(self.arithmetic, op, args[0][k], args[1][k]))
            }
            Op::Plain(op) if matches!(kind, Float | Floats) => lanes(&|k| float_unary(op, args[0][k])),
            Op::Plain(op) if kind == Bytes => lanes(&|k| {
                // The operations on bytes depend on signedness.
                let [a, b] = [0, 1].map(|n| i32::from(args[n][k] as i8).cast_unsigned());
                let [ua, ub] = [args[0][k], args[1][k]];
                let result = if op.starts_with('u') {
                    binary(op, ua, ub)
                } else {
                    binary(op, a, b)
                };
                result & 0xff
            }),
            Op::Plain(op) if line.args.len() == 2 => lanes(&|k| binary(op, args[0][k], args[1][k])),
            Op::Plain(op) => lanes(&|k| unary(op, args[0][k])),
            Op::Shift(op, by) => lanes(&|k| match *op {
                "ishl" => args[0][k] << by,
                "ushr" => args[0][k] >> by,
                _ => (args[0][k].cast_signed() >> by).cast_unsigned(),
            }),
            Op::Compare(op, condition) => lanes(&|k| {
                let (a, b) = (args[0][k], args[1][k]);
                let holds = if *op == "icmp" {
                    integer_holds(condition, a, b)
                } else {
                    float_holds(condition, a, b)
                };
                match line.kind {
                    Ints => 0u32.wrapping_sub(holds.into()),
                    _ => holds.into(),
                }
            }),
            Op::Convert(op) => lanes(&|k| convert(op, args[0][k])),
            Op::Splat if line.kind == Bytes => [args[0][0] & 0xff; LANES],
            Op::Splat => [args[0][0]; LANES],
            Op::Extract(lane) => [args[0][*lane]; LANES],
            Op::Insert(lane) | Op::StoredLane(lane) => {
                let mut result = args[0];
                result[*lane] = args[1][0];
                result
            }
            Op::Shuffle(from) => lanes(&|k| match usize::from(from[k]) {
                lane @ ..LANES => args[0][lane],
                lane => args[1][lane - LANES],
            }),
            Op::Test(op) => {
                let result = match *op {
                    "vany_true" => args[0].iter().any(|&lane| lane != 0).into(),
                    "vall_true" => args[0].iter().all(|&lane| lane != 0).into(),
                    _ => bits_of(&args[0], |lane| lane >> 31 != 0),
                };
                [result; LANES]
            }
            Op::MaskedStore => under(*mask, &args[1], &args[0]),
            Op::Intrinsic(op) => intrinsic(op, &args, mask),
            Op::Call(callee, result) => self.call(*callee, &args)[*result],
            Op::Loop(inner) => {
                let outer = values.len();
                let mut carried = args[0];
                for round in 0..inner.count {
                    values.extend([[round; LANES], carried]);
                    kinds.extend([Int, line.kind]);
                    self.lines(&inner.lines, values, kinds, mask);
                    carried = values[inner.next];
                    values.truncate(outer);
                    kinds.truncate(outer);
                }
                carried
            }
            Op::Choose(arms) => {
                let (lines, last) = &arms[usize::from(args[0][0] == 0)];
                let outer = values.len();
                self.lines(lines, values, kinds, mask);
                let result = values[*last];
                values.truncate(outer);
                kinds.truncate(outer);
                result
            }
        }
    }
}

/// Computes an operation on two floats.
pub(crate) fn float_binary(arithmetic: Arithmetic, op: &str, a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match (op, arithmetic) {
        ("fadd", Arithmetic::Machine) => fp::add(a, b),
        ("fsub", Arithmetic::Machine) => fp::sub(a, b),
        ("fmul", Arithmetic::Machine) => fp::mul(a, b),
        ("fdiv", Arithmetic::Machine) => fp::div(a, b),
        ("fadd", Arithmetic::Ieee) => ieee(x + y),
        ("fsub", Arithmetic::Ieee) => ieee(x - y),
        ("fmul", Arithmetic::Ieee) => ieee(x * y),
        ("fdiv", Arithmetic::Ieee) => ieee(x / y),
        ("fcopysign", _) => a & 0x7fff_ffff | b & 1 << 31,
        _ if x.is_nan() || y.is_nan() => NAN,
        // -0 is less than +0.
        ("fmin", _) if x == y => a | b,
        ("fmax", _) if x == y => a & b,
        ("fmin", _) => x.min(y).to_bits(),
        _ => x.max(y).to_bits(),
    }
}

/// Computes `a * b + c`, rounded once.
pub(crate) fn fma(a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = [a, b, c].map(f32::from_bits);
    ieee(a.mul_add(b, c))
}

/// Returns the bits of an IEEE result.
fn ieee(x: f32) -> u32 {
    if x.is_nan() { NAN } else { x.to_bits() }
}

/// Computes an operation on one float.
pub(crate) fn float_unary(op: &str, a: u32) -> u32 {
    let x = f32::from_bits(a);
    match op {
        "fneg" => a ^ 1 << 31,
        "fabs" => a & 0x7fff_ffff,
        "sqrt" => ieee(x.sqrt()),
        "ceil" => ieee(x.ceil()),
        "floor" => ieee(x.floor()),
        "trunc" => ieee(x.trunc()),
        _ => ieee(x.round_ties_even()),
    }
}

fn binary(op: &str, a: u32, b: u32) -> u32 {
    let (x, y) = (a.cast_signed(), b.cast_signed());
    match op {
        "iadd" => a.wrapping_add(b),
        "isub" => a.wrapping_sub(b),
        "imul" => a.wrapping_mul(b),
        "band" => a & b,
        "bor" => a | b,
        "bxor" => a ^ b,
        "smin" => x.min(y).cast_unsigned(),
        "smax" => x.max(y).cast_unsigned(),
        "umin" => a.min(b),
        "umax" => a.max(b),
        "smulhi" => ((i64::from(x) * i64::from(y)) >> 32) as u32,
        _ => ((u64::from(a) * u64::from(b)) >> 32) as u32,
    }
}

fn unary(op: &str, a: u32) -> u32 {
    match op {
        "bnot" => !a,
        "ineg" => a.wrapping_neg(),
        "iabs" => a.cast_signed().wrapping_abs().cast_unsigned(),
        _ => a.count_ones(),
    }
}

fn convert(op: &str, a: u32) -> u32 {
    let x = f32::from_bits(a);
    match op {
        "bitcast" => a,
        "fcvt_from_sint" => (a.cast_signed() as f32).to_bits(),
        "fcvt_from_uint" => (a as f32).to_bits(),
        "fcvt_to_sint_sat" => (x as i32).cast_unsigned(),
        _ => x as u32,
    }
}

fn integer_holds(condition: &str, a: u32, b: u32) -> bool {
    let (x, y) = (a.cast_signed(), b.cast_signed());
    match condition {
        "eq" => a == b,
        "ne" => a != b,
        "slt" => x < y,
        "sle" => x <= y,
        "sgt" => x > y,
        "sge" => x >= y,
        "ult" => a < b,
        "ule" => a <= b,
        "ugt" => a > b,
        _ => a >= b,
    }
}

/// Returns whether a condition of `fcmp` holds.
pub(crate) fn float_holds(condition: &str, a: u32, b: u32) -> bool {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let unordered = x.is_nan() || y.is_nan();
    match condition {
        "eq" => x == y,
        "ne" => x != y,
        "lt" => x < y,
        "le" => x <= y,
        "gt" => x > y,
        "ge" => x >= y,
        "ord" => !unordered,
        "uno" => unordered,
        "one" => !unordered && x != y,
        "ueq" => unordered || x == y,
        "ult" => unordered || x < y,
        "ule" => unordered || x <= y,
        "ugt" => unordered || x > y,
        _ => unordered || x >= y,
    }
}

/// Returns one bit per lane.
fn bits_of(lanes: &Lanes, holds: impl Fn(u32) -> bool) -> u32 {
    (0..LANES).fold(0, |bits, k| bits | u32::from(holds(lanes[k])) << k)
}

/// Returns the enabled lanes from `a` and the others from `b`.
fn under(mask: u16, a: &Lanes, b: &Lanes) -> Lanes {
    std::array::from_fn(|k| if mask >> k & 1 != 0 { a[k] } else { b[k] })
}

fn intrinsic(op: &str, args: &[Lanes], mask: &mut u16) -> Lanes {
    let compare = |holds: &dyn Fn(u32, u32) -> bool| {
        let bits = (0..LANES).fold(0, |bits, k| bits | u32::from(holds(args[0][k], args[1][k])) << k);
        [bits; LANES]
    };
    let word = |n: usize| args[n][0];
    match op {
        "shufflei32" | "shufflef32" => std::array::from_fn(|k| args[0][args[1][k] as usize % LANES]),
        "vector_mixi32" | "vector_mixf32" => under(*mask, &args[0], &args[1]),
        "read_mask_reg" => [(*mask).into(); LANES],
        "createmaskv16i32" => [bits_of(&args[0], |lane| lane & 1 != 0); LANES],
        "clzv16i32" | "clzi32" => args[0].map(u32::leading_zeros),
        "ctzv16i32" | "ctzi32" => args[0].map(u32::trailing_zeros),
        "mask_cmpi32_eq" => compare(&|a, b| a == b),
        "mask_cmpi32_sgt" => compare(&|a, b| integer_holds("sgt", a, b)),
        "mask_cmpi32_ule" => compare(&|a, b| a <= b),
        "mask_cmpf32_lt" => compare(&|a, b| float_holds("lt", a, b)),
        "mask_cmpf32_ne" => compare(&|a, b| float_holds("ne", a, b)),
        "raw_fadd" => [fp::add(word(0), word(1)); LANES],
        "raw_fmul" => [fp::mul(word(0), word(1)); LANES],
        "raw_fdiv" => [fp::div(word(0), word(1)); LANES],
        "raw_itof" => [fp::from_int(word(0)); LANES],
        "raw_ftoi" => [fp::to_int(word(0)); LANES],
        "write_mask_reg" => {
            *mask = word(0) as u16;
            args[0]
        }
        // The intrinsic `write_mask_regv16i32`.
        _ => {
            *mask = bits_of(&args[0], |lane| lane & 1 != 0) as u16;
            args[0]
        }
    }
}
