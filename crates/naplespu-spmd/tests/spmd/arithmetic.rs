//! Divisions and conversions, which have no instruction for vectors, beside those of Rust.

use crate::kernels::parse;
use crate::run::{Case, options, run};

/// Numbers at the edges of ranges and of roundings.
const INTS: [u32; 24] = [
    0,
    1,
    2,
    3,
    7,
    10,
    99,
    255,
    0xffff,
    0x0001_0000,
    0x00ff_ffff,
    0x0100_0000,
    0x0100_0001,
    0x0100_0003,
    0x01ff_ffff,
    0x7fff_ff80,
    0x7fff_ffbf,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0x8000_0080,
    0xffff_ff7f,
    0xffff_fffe,
    0xffff_ffff,
];

/// Floats at the edges of the ranges of integers.
const FLOATS: [f32; 24] = [
    0.0,
    -0.0,
    0.5,
    0.999_999_94,
    1.0,
    -1.0,
    -1.5,
    2.75,
    1e-40,
    8_388_607.5,
    8_388_608.0,
    16_777_215.0,
    16_777_216.0,
    -16_777_218.0,
    2_147_483_500.0,
    2_147_483_600.0,
    -2_147_483_600.0,
    -2_147_484_000.0,
    4_294_967_000.0,
    4_294_967_300.0,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Applies `body`, which computes `v12` from the word `v11` and the parameter `v1`, to each word.
fn apply(body: &str, words: &[u32], number: u32) -> Result<Vec<u32>, String> {
    let text = format!(
        "function %kernel(i32, i32) system_v {{
    fn0 = %__builtin_npu_global_id_x() -> i32
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v3 = iconst.i32 2
    v4 = ishl v2, v3
    v5 = iadd v0, v4
    v11 = load.i32 notrap aligned v5
    {body}
    store notrap aligned v12, v5
    return
}}"
    );
    let functions = parse(&text);
    let case = Case {
        functions: &functions,
        options: options(words.len() as u32, 16),
        counts: [1, 1, 1],
        threads: 2,
        memory: words.to_vec(),
        numbers: &[number as i32],
        opt_level: "speed",
        timed: false,
    };
    run(case).map(|done| done.memory)
}

#[test]
fn divisions_by_a_uniform_number() {
    type Operation = (&'static str, fn(u32, u32) -> u32);
    let operations: [Operation; 4] = [
        ("udiv", |x, y| x / y),
        ("urem", |x, y| x % y),
        ("sdiv", |x, y| (x as i32).wrapping_div(y as i32) as u32),
        ("srem", |x, y| (x as i32).wrapping_rem(y as i32) as u32),
    ];
    for divisor in INTS.into_iter().filter(|&divisor| divisor != 0) {
        for (name, expected) in operations {
            // This quotient traps.
            let overflows = |&x: &u32| name == "sdiv" && divisor == u32::MAX && x == 1 << 31;
            let words: Vec<u32> = INTS.into_iter().filter(|x| !overflows(x)).collect();
            let right: Vec<u32> = words.iter().map(|&x| expected(x, divisor)).collect();
            let by_param = format!("v12 = {name} v11, v1");
            assert_eq!(
                apply(&by_param, &words, divisor),
                Ok(right.clone()),
                "{name} by {divisor}"
            );
            let by_constant = format!("v10 = iconst.i32 {divisor:#x}\n v12 = {name} v11, v10");
            assert_eq!(
                apply(&by_constant, &words, 0),
                Ok(right),
                "{name} by the constant {divisor}"
            );
        }
    }
}

#[test]
fn divisions_trap_only_for_active_lanes() {
    let quotient = |name: &str, x: u32, y: u32| apply(&format!("v12 = {name} v11, v1"), &[5, x, 7, 9], y);
    for name in ["udiv", "urem", "sdiv", "srem"] {
        let error = quotient(name, 6, 0).unwrap_err();
        assert!(error.starts_with("trap: int_divz"), "{name}: {error}");
    }
    let error = quotient("sdiv", 1 << 31, u32::MAX).unwrap_err();
    assert!(error.starts_with("trap: int_ovf"), "{error}");
    assert_eq!(quotient("srem", 1 << 31, u32::MAX), Ok(vec![0; 4]));
}

#[test]
fn compares_of_floats_with_constants() {
    type Condition = (&'static str, fn(f32, f32) -> bool);
    let conditions: [Condition; 8] = [
        ("lt", |x, y| x < y),
        ("le", |x, y| x <= y),
        ("gt", |x, y| x > y),
        ("ge", |x, y| x >= y),
        ("ult", |x, y| x < y || x.is_nan()),
        ("ule", |x, y| x <= y || x.is_nan()),
        ("ugt", |x, y| x > y || x.is_nan()),
        ("uge", |x, y| x >= y || x.is_nan()),
    ];
    let mut floats = FLOATS.map(f32::to_bits);
    floats[0] = (-f32::NAN).to_bits();
    for (text, constant) in [("0x1.0p0", 1.0f32), ("-0x1.0p0", -1.0), ("0x1.0p24", 16_777_216.0)] {
        for (name, holds) in conditions {
            let body = format!(
                "v10 = bitcast.f32 v11
    v13 = f32const {text}
    v14 = fcmp {name} v10, v13
    v12 = uextend.i32 v14"
            );
            let right: Vec<u32> = floats
                .iter()
                .map(|&x| holds(f32::from_bits(x), constant).into())
                .collect();
            assert_eq!(apply(&body, &floats, 0), Ok(right), "{name} {text}");
        }
    }
}

#[test]
fn conversions_between_integers_and_floats() {
    let signed: Vec<u32> = INTS.iter().map(|&x| (x as i32 as f32).to_bits()).collect();
    let unsigned: Vec<u32> = INTS.iter().map(|&x| (x as f32).to_bits()).collect();
    let to_float = |name: &str| apply(&format!("v10 = {name}.f32 v11\n v12 = bitcast.i32 v10"), &INTS, 0);
    assert_eq!(to_float("fcvt_from_sint"), Ok(signed));
    assert_eq!(to_float("fcvt_from_uint"), Ok(unsigned));
    let floats = FLOATS.map(f32::to_bits);
    let to_int = |name: &str| apply(&format!("v10 = bitcast.f32 v11\n v12 = {name}.i32 v10"), &floats, 0);
    let signed: Vec<u32> = FLOATS.iter().map(|&x| x as i32 as u32).collect();
    let unsigned: Vec<u32> = FLOATS.iter().map(|&x| x as u32).collect();
    assert_eq!(to_int("fcvt_to_sint_sat"), Ok(signed));
    assert_eq!(to_int("fcvt_to_uint_sat"), Ok(unsigned));
}
