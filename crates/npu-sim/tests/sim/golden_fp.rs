//! All rows of golden-fp.tsv.

use super::common;

use npu_sim::fp;

/// Rounding to and from significands of all ones, as in `npusim`: the result is half or twice the
/// correct one.
#[test]
fn carries_of_itof() {
    for (number, float) in [
        (16_777_217, 0x4b80_0000),
        (33_554_431, 0x4b80_0000),
        (67_108_859, 0x4cff_ffff),
        (67_108_862, 0x4c00_0000),
        (2_147_483_488, 0x4f7f_ffff),
        (-2_147_483_488, 0xcf7f_ffff),
        (2_147_483_520, 0x4eff_ffff),
        (i32::MAX, 0x4e80_0000),
        (i32::MIN, 0xcf00_0000),
    ] {
        let found = fp::from_int(number.cast_unsigned());
        assert_eq!(found, float, "{number}: {found:#x}");
    }
}

#[test]
fn every_row_is_bit_exact() {
    let path = common::goldens().join("golden-fp.tsv");
    let text = std::fs::read_to_string(&path).expect("golden-fp.tsv");
    let mut rows = 0;
    let mut wrong = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [op, a, b, expected] = fields[..] else {
            panic!("row `{line}`");
        };
        let hex = |s: &str| {
            if s == "-" {
                0
            } else {
                u32::from_str_radix(s, 16).expect("hexadecimal")
            }
        };
        let (x, y) = (hex(a), hex(b));
        let got = match op {
            "fadd" => fp::add(x, y),
            "fsub" => fp::sub(x, y),
            "fmul" => fp::mul(x, y),
            "fdiv" => fp::div(x, y),
            "itof" => fp::from_int(x),
            "ftoi" => fp::to_int(x),
            "cmpfeq" => u32::from(fp::eq(x, y)),
            "cmpfgt" => u32::from(fp::gt(x, y)),
            "cmpflt" => u32::from(fp::lt(x, y)),
            _ => panic!("operation `{op}`"),
        };
        if got != hex(expected) {
            wrong.push(format!("{line}: got {got:08x}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    assert!(rows > 0);
    println!("{rows} rows");
}
