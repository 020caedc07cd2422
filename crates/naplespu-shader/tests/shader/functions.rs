//! Operators and functions of WGSL on values from a buffer, with their expected results.

use crate::run::{Case, run, wgsl};
use naplespu_shader::Options;

/// The largest number of expressions in one shader.
const BATCH: usize = 24;

/// An expression of `u32`, `i32`, `f32` or `bool`, and the bits of its value.
struct Row {
    expression: &'static str,
    value: u32,
    /// The largest distance of floats, relative to the value.
    tolerance: f32,
}

const fn int(expression: &'static str, value: i32) -> Row {
    Row {
        expression,
        value: value as u32,
        tolerance: 0.0,
    }
}

const fn uint(expression: &'static str, value: u32) -> Row {
    Row {
        expression,
        value,
        tolerance: 0.0,
    }
}

const fn float(expression: &'static str, value: f32) -> Row {
    Row {
        expression,
        value: value.to_bits(),
        tolerance: 1e-6,
    }
}

const fn truth(expression: &'static str, value: bool) -> Row {
    Row {
        expression,
        value: value as u32,
        tolerance: 0.0,
    }
}

/// The values that the expressions use: `f(x)`, `i(x)` and `u(x)` return their argument, and the
/// translator cannot see it.
fn shader(rows: &[Row]) -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> zeros: array<u32>;
         fn f(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zeros[0]); }
         fn i(x: i32) -> i32 { return x ^ i32(zeros[0]); }
         fn u(x: u32) -> u32 { return x ^ zeros[0]; }
         fn v(x: f32, y: f32, z: f32) -> vec3f { return vec3f(f(x), f(y), f(z)); }
         fn bits_f(x: f32) -> u32 { return bitcast<u32>(x); }
         @compute @workgroup_size(1) fn main() {\n",
    );
    for (index, row) in rows.iter().enumerate() {
        let Row { expression, .. } = row;
        text.push_str(&format!(
            "  {{ let value = {expression}; out[{index}] = {}; }}\n",
            if row.tolerance > 0.0 {
                "bitcast<u32>(value)"
            } else {
                "u32(value)"
            }
        ));
    }
    text.push_str("}\n");
    text
}

fn check(rows: &[Row], lanes: u32) -> Result<(), String> {
    let mut failures = String::new();
    for batch in rows.chunks(BATCH) {
        let text = shader(batch);
        let module = wgsl(&text)?;
        let mut case = Case::new(&module, vec![vec![0; batch.len()], vec![0; 4]]);
        case.options = Options {
            lanes,
            ..Options::default()
        };
        case.threads = 1;
        let results = run(case)?;
        for (row, &found) in batch.iter().zip(&results[0]) {
            let (x, y) = (f32::from_bits(row.value), f32::from_bits(found));
            let close = row.tolerance > 0.0
                && (x == y || (x - y).abs() <= row.tolerance * x.abs().max(1e-30) || x.is_nan() && y.is_nan());
            if found != row.value && !close {
                failures += &format!(
                    "{}: expected {:#x} ({x}), found {found:#x} ({y})\n",
                    row.expression, row.value
                );
            }
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures),
    }
}

const INTEGERS: &[Row] = &[
    int("i(7) / i(-2)", -3),
    int("i(7) % i(-2)", 1),
    int("i(7) / i(0)", 7),
    int("i(7) % i(0)", 0),
    int("i(-2147483647 - 1) / i(-1)", i32::MIN),
    int("i(-2147483647 - 1) % i(-1)", 0),
    int("i(-17) / 5", -3),
    int("i(-17) % 5", -2),
    int("i(-17) / -4", 4),
    int("i(-2147483647 - 1) / -3", 715_827_882),
    uint("u(17) / u(0)", 17),
    uint("u(17) % u(0)", 0),
    uint("u(4294967295) / 7u", 613_566_756),
    uint("u(4294967295) % 7u", 3),
    uint("u(4294967295) / 3u", 1_431_655_765),
    uint("u(1000) / 641u", 1),
    uint("u(1000) % 16u", 8),
    int("i(2147483647) + i(1)", i32::MIN),
    uint("u(1) << u(33)", 2),
    int("i(-8) >> u(1)", -4),
    uint("u(4294967288) >> u(1)", 0x7fff_fffc),
    int("~i(5)", -6),
    int("-i(5)", -5),
    int("abs(i(-5))", 5),
    int("sign(i(-5)) + 10 * sign(i(0)) + 100 * sign(i(9))", 99),
    int("min(i(-5), i(3))", -5),
    uint("max(u(4294967291), u(3))", 4_294_967_291),
    int("clamp(i(-5), i(-3), i(3))", -3),
    uint("countOneBits(u(0xf0f1))", 9),
    uint("countLeadingZeros(u(0xffff))", 16),
    uint("countTrailingZeros(u(8))", 3),
    uint("reverseBits(u(0x12345678))", 0x1e6a_2c48),
    uint("firstLeadingBit(u(0x1000))", 12),
    int("firstLeadingBit(i(-1))", -1),
    int("firstLeadingBit(i(-256))", 7),
    uint("firstTrailingBit(u(0))", u32::MAX),
    uint("firstTrailingBit(u(0x50))", 4),
    int("extractBits(i(0xf0), u(4), u(4))", -1),
    uint("extractBits(u(0xf0), u(4), u(4))", 15),
    uint("extractBits(u(0xf0), u(4), u(0))", 0),
    uint("extractBits(u(0xdeadbeef), u(0), u(32))", 0xdead_beef),
    uint("extractBits(u(0xdeadbeef), u(28), u(30))", 0xd),
    uint("insertBits(u(0xffff), u(0), u(4), u(8))", 0xf00f),
    uint("insertBits(u(1), u(0x12345678), u(0), u(32))", 0x1234_5678),
    uint("insertBits(u(5), u(0xff), u(3), u(0))", 5),
    int("dot4I8Packed(u(0xff020304), u(0x01010101))", 8),
    uint("dot4U8Packed(u(0xff020304), u(0x01010101))", 264),
    int("dot(vec3i(i(1), i(2), i(3)), vec3i(4, 5, 6))", 32),
    uint("pack4xI8(vec4i(i(-1), i(2), i(3), i(260)))", 0x0403_02ff),
    uint("pack4xU8(vec4u(u(1), u(2), u(3), u(260)))", 0x0403_0201),
    uint("pack4xI8Clamp(vec4i(i(-200), i(2), i(3), i(260)))", 0x7f03_0280),
    uint("pack4xU8Clamp(vec4u(u(1), u(2), u(3), u(260)))", 0xff03_0201),
    int("unpack4xI8(u(0x80ff0102))[3]", -128),
    uint("unpack4xU8(u(0x80ff0102))[2]", 255),
];

const TRUTHS: &[Row] = &[
    truth("i(3) < i(-4)", false),
    truth("u(3) < u(4294967292)", true),
    truth("f(1.5) >= f(1.5)", true),
    truth("f(0.0) == f(-0.0)", true),
    truth("f(1.0) != f(2.0)", true),
    truth("(i(3) < i(4)) & (i(3) > i(4))", false),
    truth("(i(3) < i(4)) || (u(9) / u(0) == 1u)", true),
    truth("(i(3) < i(4)) && (zeros[u(9)] == 0u)", true),
    truth("!(f(1.0) > f(2.0))", true),
    truth("all(vec3f(f(1.0), 2.0, 3.0) < vec3f(2.0, 3.0, 4.0))", true),
    truth("any(vec3f(f(1.0), 2.0, 3.0) > vec3f(2.0, 3.0, 4.0))", false),
    truth("bool(f(-0.0))", false),
    truth("bool(i(2))", true),
    truth(
        "all(select(vec2<bool>(true), vec2<bool>(false), vec2<bool>(i(0) == 1, i(0) == 2)))",
        true,
    ),
];

const FLOATS: &[Row] = &[
    float("f(1.5) + f(2.25)", 3.75),
    float("f(7.5) % f(2.0)", 1.5),
    float("f(-7.5) % f(2.0)", -1.5),
    float("-f(2.0)", -2.0),
    float("abs(f(-2.0))", 2.0),
    float("min(f(2.0), f(-3.0))", -3.0),
    float("max(f(2.0), f(-3.0))", 2.0),
    float("clamp(f(5.0), f(1.0), f(2.0))", 2.0),
    float("saturate(f(-5.0))", 0.0),
    float("ceil(f(1.2))", 2.0),
    float("floor(f(-1.2))", -2.0),
    float("round(f(2.5))", 2.0),
    float("round(f(3.5))", 4.0),
    float("trunc(f(-2.7))", -2.0),
    float("fract(f(-1.25))", 0.75),
    float("sign(f(-3.0))", -1.0),
    float("fma(f(2.0), f(3.0), f(4.0))", 10.0),
    float("mix(f(2.0), f(4.0), f(0.25))", 2.5),
    float("step(f(2.0), f(3.0))", 1.0),
    float("smoothstep(f(0.0), f(2.0), f(1.0))", 0.5),
    float("radians(f(180.0))", std::f32::consts::PI),
    float("degrees(f(3.1415927))", 180.0),
    float("ldexp(f(1.5), i(4))", 24.0),
    float("ldexp(f(1.5), i(-126))", 1.763_241_5e-38),
    float("ldexp(f(-1.5), i(-130))", -0.0),
    float("ldexp(f(1.5), i(200))", f32::INFINITY),
    float("frexp(f(24.0)).fract", 0.75),
    float("f32(frexp(f(24.0)).exp)", 5.0),
    float("f32(frexp(f(0.0)).exp)", 0.0),
    float("modf(f(-3.25)).fract", -0.25),
    float("modf(f(-3.25)).whole", -3.0),
    float("dot(v(1.0, 2.0, 3.0), v(4.0, 5.0, 6.0))", 32.0),
    float("cross(v(1.0, 2.0, 3.0), v(4.0, 5.0, 6.0)).y", 6.0),
    float(
        "faceForward(v(1.0, 2.0, 3.0), v(1.0, 0.0, 0.0), v(-1.0, 0.0, 0.0)).y",
        2.0,
    ),
    float("reflect(v(1.0, -1.0, 0.0), v(0.0, 1.0, 0.0)).y", 1.0),
    float("quantizeToF16(f(1.0009766))", 1.000_976_6),
    float("quantizeToF16(f(3.1415927))", 3.140_625),
    float("quantizeToF16(f(5.9604645e-8))", 5.960_464_5e-8),
    float("unpack2x16float(u(0x3c00c000)).x", -2.0),
    float("unpack2x16float(u(0x00013c00)).y", 5.960_464_5e-8),
    float("unpack4x8snorm(u(0x7f81)).y", 1.0),
    float("unpack4x8unorm(u(0xff)).x", 1.0),
    float("unpack2x16snorm(u(0x8000)).x", -1.0),
    float("unpack2x16unorm(u(0xffff0000)).y", 1.0),
    float("determinant(mat2x2f(f(1.0), f(2.0), f(3.0), f(4.0)))", -2.0),
    float(
        "determinant(mat3x3f(f(2.0), 0.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 4.0))",
        18.0,
    ),
    float("transpose(mat2x3f(v(1.0, 2.0, 3.0), v(4.0, 5.0, 6.0)))[2].y", 6.0),
    float(
        "(mat2x3f(v(1.0, 2.0, 3.0), v(4.0, 5.0, 6.0)) * vec2f(1.0, 2.0)).z",
        15.0,
    ),
    float(
        "(v(1.0, 2.0, 3.0) * mat2x3f(v(1.0, 2.0, 3.0), v(4.0, 5.0, 6.0))).y",
        32.0,
    ),
    float(
        "(mat2x2f(f(1.0), 2.0, 3.0, 4.0) * mat2x2f(5.0, 6.0, 7.0, 8.0))[1].x",
        31.0,
    ),
    float("(2.0 * mat2x2f(f(1.0), 2.0, 3.0, 4.0))[1].y", 8.0),
    float("v(1.0, 2.0, 3.0)[u(2)]", 3.0),
    float("v(1.0, 2.0, 3.0).zyx.x", 3.0),
    float("array(f(1.0), f(2.0), f(3.0))[i(1)]", 2.0),
    float("select(f(1.0), f(2.0), i(1) > i(0))", 2.0),
    float("f32(i(-7))", -7.0),
    float("f32(u(4294967295))", 4_294_967_296.0),
    float("f32(i(1) == 1)", 1.0),
    float("bitcast<f32>(u(0x40490fdb))", std::f32::consts::PI),
];

const LIBRARY: &[Row] = &[
    float("cos(f(1.0))", 0.540_302_3),
    float("sin(f(1.0))", 0.841_471),
    float("tan(f(1.0))", 1.557_407_7),
    float("cosh(f(1.0))", 1.543_080_6),
    float("sinh(f(1.0))", 1.175_201_2),
    float("tanh(f(1.0))", 0.761_594_2),
    float("acos(f(0.5))", std::f32::consts::FRAC_PI_3),
    float("asin(f(0.5))", std::f32::consts::FRAC_PI_6),
    float("atan(f(2.0))", 1.107_148_7),
    float("atan2(f(1.0), f(-2.0))", 2.677_945),
    float("asinh(f(2.0))", 1.443_635_5),
    float("acosh(f(2.0))", 1.316_958),
    float("atanh(f(0.5))", 0.549_306_2),
    float("exp(f(1.0))", std::f32::consts::E),
    float("exp2(f(0.5))", std::f32::consts::SQRT_2),
    float("log(f(10.0))", std::f32::consts::LN_10),
    float("log2(f(10.0))", std::f32::consts::LOG2_10),
    float("pow(f(2.0), f(0.5))", std::f32::consts::SQRT_2),
    float("sqrt(f(9.0))", 3.0),
    float("inverseSqrt(f(4.0))", 0.5),
    float("length(v(2.0, 3.0, 6.0))", 7.0),
    float("length(f(-2.0))", 2.0),
    float("distance(v(2.0, 3.0, 6.0), v(1.0, 1.0, 4.0))", 3.0),
    float("normalize(v(2.0, 3.0, 6.0)).z", 0.857_142_86),
    float("refract(v(1.0, -1.0, 0.0), v(0.0, 1.0, 0.0), f(0.5)).y", -1.0),
    float("refract(v(1.0, 0.0, 0.0), v(0.0, 1.0, 0.0), f(2.0)).x", 0.0),
];

const CONVERSIONS: &[Row] = &[
    int("i32(f(-2.9))", -2),
    int("i32(f(3e9))", 0x7fff_ff80),
    uint("u32(f(-5.0))", 0),
    uint("u32(f(5e9))", 0xffff_ff00),
    uint("u32(i(-1))", u32::MAX),
    int("bitcast<i32>(f(1.0))", 0x3f80_0000),
    uint("pack4x8snorm(vec4f(f(1.0), f(-1.0), f(0.0), f(2.0)))", 0x7f00_817f),
    uint("pack4x8unorm(vec4f(f(1.0), f(-1.0), f(0.5), f(2.0)))", 0xff80_00ff),
    uint("pack2x16snorm(vec2f(f(1.0), f(-1.0)))", 0x8001_7fff),
    uint("pack2x16unorm(vec2f(f(1.0), f(0.0)))", 0xffff),
    uint("pack2x16float(vec2f(f(1.0), f(-2.0)))", 0xc000_3c00),
    uint("pack2x16float(vec2f(f(65520.0), f(1e-8)))", 0x7c00),
];

#[test]
fn integer_operations_have_the_defined_results() -> Result<(), String> {
    check(INTEGERS, 1)?;
    check(INTEGERS, 16)
}

#[test]
fn conditions_and_logic() -> Result<(), String> {
    check(TRUTHS, 1)?;
    check(TRUTHS, 16)
}

#[test]
fn float_operations() -> Result<(), String> {
    check(FLOATS, 1)?;
    check(FLOATS, 16)
}

#[test]
fn conversions_saturate_and_packing_rounds() -> Result<(), String> {
    check(CONVERSIONS, 1)?;
    check(CONVERSIONS, 16)
}

#[test]
fn library_functions() -> Result<(), String> {
    check(LIBRARY, 1)?;
    check(LIBRARY, 16)
}
