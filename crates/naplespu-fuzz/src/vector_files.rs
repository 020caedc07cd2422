//! Filetests for single operations on sixteen lanes, generated at run time with expected results
//! from a model.
//!
//! Each operation on integers has a file for `i16x16` and `i32x16`, and one for `i8x16`, which
//! Cranelift's interpreter can check as well. The operands are two registers, a scalar splatted on
//! either side, or a splatted constant. Values are pairs of edge cases of the type and random
//! numbers. The name of a file is the seed of its random numbers.

mod lanes;

use crate::model::eval::{self, Arithmetic};
use lanes::{FLOAT_EDGES, Random, extend, integer, integer_holds, integer_unary, shift, truncate};
use std::fmt::Write;

/// Number of lanes of a vector.
const LANES: usize = 16;

/// The lanes of a vector, in the low bits of each word.
type Lanes = [u32; LANES];

/// A generated file.
pub struct VectorFile {
    /// The name.
    pub name: String,
    /// The contents.
    pub text: String,
}

const BINARY: &[&str] = &[
    "avg_round",
    "band",
    "bor",
    "bxor",
    "iadd",
    "imul",
    "isub",
    "sadd_sat",
    "smax",
    "smin",
    "smulhi",
    "ssub_sat",
    "uadd_sat",
    "umax",
    "umin",
    "umulhi",
    "usub_sat",
];
const UNARY: &[&str] = &["bnot", "iabs", "ineg", "popcnt"];
const SHIFTS: &[&str] = &["ishl", "ushr", "sshr", "rotl", "rotr"];
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
const FLOAT_CONDITIONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "ord", "uno", "one", "ueq", "ult", "ule", "ugt", "uge",
];
/// Operations on floats, with the end of the file's description.
const FLOAT_BINARY: &[(&str, &str)] = &[
    ("fadd", ", by the routine for scalars"),
    ("fsub", ", by the routine for scalars"),
    ("fmul", ", by the routine for scalars"),
    ("fdiv", ", by the routine for scalars"),
    ("fmin", ": -0 is below +0, a NaN wins"),
    ("fmax", ": -0 is below +0, a NaN wins"),
    ("fcopysign", ": every bit but the sign stays"),
];
const FLOAT_UNARY: &[(&str, &str)] = &[
    ("sqrt", ""),
    ("ceil", ""),
    ("floor", ""),
    ("trunc", ""),
    ("nearest", ""),
    ("fneg", ": every bit but the sign stays"),
    ("fabs", ": every bit but the sign stays"),
];
/// Vector operations that Cranelift's interpreter does not support.
const NOT_INTERPRETED: &[&str] = &["avg_round", "smulhi", "umulhi", "rotl", "rotr"];

/// Returns all generated files.
pub fn vector_files() -> Vec<VectorFile> {
    let mut files = Vec::new();
    for (suffix, widths) in [("", &[16, 32][..]), ("_i8x16", &[8])] {
        for op in BINARY {
            files.push(binary(op, suffix, widths));
        }
        for op in UNARY {
            files.push(unary(op, suffix, widths));
        }
        for op in SHIFTS {
            files.push(shifts(op, suffix, widths));
        }
        for condition in CONDITIONS {
            files.push(compare(condition, suffix, widths));
        }
    }
    files.extend(FLOAT_CONDITIONS.iter().map(|condition| float_compare(condition)));
    files.extend(FLOAT_BINARY.iter().map(|(op, about)| float_binary(op, about)));
    files.extend(FLOAT_UNARY.iter().map(|(op, about)| float_unary(op, about)));
    files.push(fma());
    files
}

/// A file under construction.
struct Writer {
    name: String,
    text: String,
    random: Random,
}

impl Writer {
    /// Writes the header. `interpreted` tells whether Cranelift's interpreter supports the
    /// contents.
    fn new(name: String, interpreted: bool, target: &str, about: &str) -> Writer {
        let mut text = String::new();
        if interpreted {
            text += "test interpret\n";
        }
        text += "test run\n";
        text += target;
        text += "\n\n; ";
        text += about;
        text += ".\n";
        let random = Random::new(&name);
        Writer { name, text, random }
    }

    fn integers(op: &str, prefix: &str, suffix: &str, about: &str) -> Writer {
        let interpreted = suffix == "_i8x16" && !NOT_INTERPRETED.contains(&op);
        Writer::new(
            format!("{prefix}{op}{suffix}.clif"),
            interpreted,
            "target naplespu",
            about,
        )
    }

    /// Adds a function with the given types and lines, which returns the last value.
    fn function(&mut self, name: &str, params: &[&str], result: &str, lines: &[String]) {
        let head: Vec<String> = params.iter().enumerate().map(|(n, ty)| format!("v{n}: {ty}")).collect();
        let (types, head) = (params.join(", "), head.join(", "));
        // Writing to a string cannot fail.
        let _ = write!(
            self.text,
            "\nfunction %{name}({types}) -> {result} {{\nblock0({head}):\n"
        );
        for line in lines {
            self.text += if line.starts_with("block") { "" } else { "    " };
            self.text += line;
            self.text.push('\n');
        }
        self.text += "}\n";
    }

    fn run(&mut self, name: &str, args: &[String], result: &str) {
        let args = args.join(", ");
        let _ = writeln!(self.text, "; run: %{name}({args}) == {result}");
    }

    fn done(self) -> VectorFile {
        VectorFile {
            name: self.name,
            text: self.text,
        }
    }
}

/// Formats lanes for run lines.
fn list(width: u32, lanes: &Lanes) -> String {
    let lanes: Vec<String> = lanes.iter().map(|&lane| extend(width, lane).to_string()).collect();
    format!("[{}]", lanes.join(" "))
}

fn number(width: u32, value: u32) -> String {
    extend(width, value).to_string()
}

/// Computes an operation lane by lane.
fn by_lane(f: impl Fn(usize) -> u32) -> Lanes {
    std::array::from_fn(f)
}

/// Returns the constants to splat: some fit an immediate, others are just outside its range.
fn constants(width: u32) -> Vec<i64> {
    let (min, max) = (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1);
    match width {
        8 => vec![1, -1, max, min, 100],
        16 => vec![1, -1, 255, -256, 256, -257, max, min],
        _ => vec![1, -1, 255, -256, 256, -257, max, min, 65535, 65536],
    }
}

fn binary(op: &str, suffix: &str, widths: &[u32]) -> VectorFile {
    let about = format!("{op} of lanes: registers, a scalar in every lane on either side, constants");
    let mut file = Writer::integers(op, "", suffix, &about);
    for &width in widths {
        let (scalar, ty) = (format!("i{width}"), format!("i{width}x16"));
        let name = format!("{op}_{ty}");
        file.function(
            &name,
            &[&ty, &ty],
            &ty,
            &[format!("v2 = {op} v0, v1"), "return v2".into()],
        );
        for (a, b) in file.random.edge_pairs(width) {
            let result = by_lane(|k| integer(op, width, a[k], b[k]));
            file.run(&name, &[list(width, &a), list(width, &b)], &list(width, &result));
        }
        for (side, operands) in [("right", "v0, v2"), ("left", "v2, v0")] {
            let name = format!("{name}_scalar_{side}");
            let lines = [
                format!("v2 = splat.{ty} v1"),
                format!("v3 = {op} {operands}"),
                "return v3".into(),
            ];
            file.function(&name, &[&ty, &scalar], &ty, &lines);
            for by in [37, 1, u32::MAX, 1 << (width - 1), (1 << (width - 1)) - 1] {
                let (a, by) = (file.random.lanes(width), truncate(width, by));
                let result = by_lane(|k| match side {
                    "right" => integer(op, width, a[k], by),
                    _ => integer(op, width, by, a[k]),
                });
                file.run(&name, &[list(width, &a), number(width, by)], &list(width, &result));
            }
        }
        for (n, value) in constants(width).into_iter().enumerate() {
            let name = format!("{name}_const{n}");
            let left = n % 3 == 0;
            let lines = [
                format!("v1 = iconst.{scalar} {value}"),
                format!("v2 = splat.{ty} v1"),
                format!("v3 = {op} {}", if left { "v2, v0" } else { "v0, v2" }),
                "return v3".into(),
            ];
            file.function(&name, &[&ty], &ty, &lines);
            let (a, value) = (file.random.lanes(width), truncate(width, value as u32));
            let result = by_lane(|k| {
                let (x, y) = if left { (value, a[k]) } else { (a[k], value) };
                integer(op, width, x, y)
            });
            file.run(&name, &[list(width, &a)], &list(width, &result));
        }
    }
    file.done()
}

fn unary(op: &str, suffix: &str, widths: &[u32]) -> VectorFile {
    let mut file = Writer::integers(op, "", suffix, &format!("{op} of lanes"));
    for &width in widths {
        let ty = format!("i{width}x16");
        let name = format!("{op}_{ty}");
        file.function(&name, &[&ty], &ty, &[format!("v1 = {op} v0"), "return v1".into()]);
        for _ in 0..4 {
            let a = file.random.lanes(width);
            let result = by_lane(|k| integer_unary(op, width, a[k]));
            file.run(&name, &[list(width, &a)], &list(width, &result));
        }
    }
    file.done()
}

fn shifts(op: &str, suffix: &str, widths: &[u32]) -> VectorFile {
    let about = format!("{op} of lanes: amounts beyond the width count modulo it");
    let mut file = Writer::integers(op, "", suffix, &about);
    for &width in widths {
        let ty = format!("i{width}x16");
        let name = format!("{op}_{ty}");
        let lines = [format!("v2 = {op} v0, v1"), "return v2".into()];
        let run = |file: &mut Writer, name: &str, by: i64, given: bool| {
            let a = file.random.lanes(width);
            let result = by_lane(|k| shift(op, width, a[k], by));
            let mut args = vec![list(width, &a)];
            args.extend(given.then(|| by.to_string()));
            file.run(name, &args, &list(width, &result));
        };
        file.function(&name, &[&ty, "i32"], &ty, &lines);
        let w = i64::from(width);
        for by in [0, 1, 2, w / 2, w - 1, w, w + 1, 31, 32, 33, 63, 64, 100, 255, -1] {
            run(&mut file, &name, by, true);
        }
        for by in [0, 1, w - 1, w, w + 3, 100] {
            let name = format!("{name}_by{by}");
            let lines = [
                format!("v1 = iconst.i32 {by}"),
                format!("v2 = {op} v0, v1"),
                "return v2".into(),
            ];
            file.function(&name, &[&ty], &ty, &lines);
            run(&mut file, &name, by, false);
        }
        if width == 32 {
            for (amount, values) in [("i8", [1, 31, 35, -1]), ("i64", [1, 31, (1 << 32) + 3, -1])] {
                let name = format!("{name}_{amount}");
                file.function(&name, &[&ty, amount], &ty, &lines);
                for by in values {
                    run(&mut file, &name, by, true);
                }
            }
        }
    }
    file.done()
}

fn compare(condition: &str, suffix: &str, widths: &[u32]) -> VectorFile {
    let about =
        format!("icmp {condition} of lanes: as lanes, as a choice, as a branch, with a scalar and with constants");
    let mut file = Writer::integers(condition, "icmp_", suffix, &about);
    for &width in widths {
        let (scalar, ty) = (format!("i{width}"), format!("i{width}x16"));
        let name = format!("{condition}_{ty}");
        let compare = format!("v2 = icmp {condition} v0, v1");
        let holds = |a: u32, b: u32| integer_holds(condition, width, a, b);
        let ones = |holds: bool| truncate(width, 0u32.wrapping_sub(holds.into()));
        file.function(&name, &[&ty, &ty], &ty, &[compare.clone(), "return v2".into()]);
        for (a, b) in file.random.edge_pairs(width) {
            let result = by_lane(|k| ones(holds(a[k], b[k])));
            file.run(&name, &[list(width, &a), list(width, &b)], &list(width, &result));
        }
        let choose = format!("{name}_choose");
        let lines = [compare.clone(), "v3 = bitselect v2, v0, v1".into(), "return v3".into()];
        file.function(&choose, &[&ty, &ty], &ty, &lines);
        for _ in 0..4 {
            let (a, b) = file.random.near(width);
            let result = by_lane(|k| if holds(a[k], b[k]) { a[k] } else { b[k] });
            file.run(&choose, &[list(width, &a), list(width, &b)], &list(width, &result));
        }
        for what in ["any", "all"] {
            let test = format!("v3 = v{what}_true v2");
            let plain = format!("{name}_{what}");
            file.function(
                &plain,
                &[&ty, &ty],
                "i8",
                &[compare.clone(), test.clone(), "return v3".into()],
            );
            let cases = file.random.almost_equal(width);
            let outcome = |a: &Lanes, b: &Lanes| {
                let mut lanes = (0..LANES).map(|k| holds(a[k], b[k]));
                if what == "any" {
                    lanes.any(|holds| holds)
                } else {
                    lanes.all(|holds| holds)
                }
            };
            for (a, b) in &cases {
                let result = u8::from(outcome(a, b)).to_string();
                file.run(&plain, &[list(width, a), list(width, b)], &result);
            }
            let branch = format!("{plain}_branch");
            let lines = [
                &compare,
                &test,
                "brif v3, block1, block2",
                "block1:",
                "v4 = iconst.i32 1",
                "return v4",
            ];
            let more = ["block2:", "v5 = iconst.i32 2", "return v5"];
            let lines: Vec<String> = lines.into_iter().chain(more).map(str::to_owned).collect();
            file.function(&branch, &[&ty, &ty], "i32", &lines);
            for (a, b) in &cases {
                let result = if outcome(a, b) { "1" } else { "2" };
                file.run(&branch, &[list(width, a), list(width, b)], result);
            }
        }
        let name_scalar = format!("{name}_scalar");
        let lines = [
            format!("v2 = splat.{ty} v1"),
            format!("v3 = icmp {condition} v0, v2"),
            format!("v4 = icmp {condition} v2, v0"),
            "v5 = iadd v4, v4".into(),
            "v6 = iadd v3, v5".into(),
            "return v6".into(),
        ];
        file.function(&name_scalar, &[&ty, &scalar], &ty, &lines);
        for by in [37, 1, u32::MAX, 1 << (width - 1)] {
            let by = truncate(width, by);
            let a = file.random.lanes_near(width, by);
            let result = by_lane(|k| {
                let (left, right) = (ones(holds(a[k], by)), ones(holds(by, a[k])));
                truncate(width, left.wrapping_add(right.wrapping_mul(2)))
            });
            file.run(
                &name_scalar,
                &[list(width, &a), number(width, by)],
                &list(width, &result),
            );
        }
        for (n, value) in constants(width).into_iter().take(6).enumerate() {
            let name = format!("{name}_const{n}");
            let lines = [
                format!("v1 = iconst.{scalar} {value}"),
                format!("v2 = splat.{ty} v1"),
                format!("v3 = icmp {condition} v0, v2"),
                "return v3".into(),
            ];
            file.function(&name, &[&ty], &ty, &lines);
            let value = truncate(width, value as u32);
            let a = file.random.lanes_near(width, value);
            let result = by_lane(|k| ones(holds(a[k], value)));
            file.run(&name, &[list(width, &a)], &list(width, &result));
        }
    }
    file.done()
}

/// Returns lines that cast the parameters to floats, and the numbers of the results.
fn as_floats(count: usize) -> (Vec<String>, Vec<String>) {
    let lines = (0..count).map(|n| format!("v{} = bitcast.f32x16 little v{n}", count + n));
    (lines.collect(), (count..2 * count).map(|n| format!("v{n}")).collect())
}

/// Adds a function on floats, which are passed as bits, with run lines.
fn float_function(file: &mut Writer, op: &str, count: usize, args: &[Vec<Lanes>], f: impl Fn(&[u32]) -> u32) {
    let (mut lines, values) = as_floats(count);
    lines.push(format!("v{} = {op} {}", 2 * count, values.join(", ")));
    lines.push(format!("v{} = bitcast.i32x16 little v{}", 2 * count + 1, 2 * count));
    lines.push(format!("return v{}", 2 * count + 1));
    file.function(op, &vec!["i32x16"; count], "i32x16", &lines);
    for args in args {
        let result = by_lane(|k| f(&args.iter().map(|arg| arg[k]).collect::<Vec<_>>()));
        let args: Vec<String> = args.iter().map(|arg| list(32, arg)).collect();
        file.run(op, &args, &list(32, &result));
    }
}

fn float_compare(condition: &str) -> VectorFile {
    let about = format!("fcmp {condition} of lanes, also with constants");
    let mut file = Writer::new(format!("fcmp_{condition}.clif"), false, "target naplespu", &about);
    let ones = |a: u32, b: u32| 0u32.wrapping_sub(eval::float_holds(condition, a, b).into());
    let (mut lines, _) = as_floats(2);
    lines.extend([format!("v4 = fcmp {condition} v2, v3"), "return v4".into()]);
    file.function(condition, &["i32x16"; 2], "i32x16", &lines);
    for _ in 0..9 {
        let (a, b) = file.random.float_pairs();
        let result = by_lane(|k| ones(a[k], b[k]));
        file.run(condition, &[list(32, &a), list(32, &b)], &list(32, &result));
    }
    let constants = [
        ("0.0", 0.0),
        ("0x1.0p2", 4.0),
        ("-0x1.0p0", -1.0),
        ("+NaN", f32::NAN),
        ("+Inf", f32::INFINITY),
        ("-0.0", -0.0),
    ];
    for (n, (text, value)) in constants.into_iter().enumerate() {
        let name = format!("{condition}_const{n}");
        let left = n % 2 == 0;
        let lines = [
            "v1 = bitcast.f32x16 little v0".into(),
            format!("v2 = f32const {text}"),
            "v3 = splat.f32x16 v2".into(),
            format!("v4 = fcmp {condition} {}", if left { "v3, v1" } else { "v1, v3" }),
            "return v4".into(),
        ];
        file.function(&name, &["i32x16"], "i32x16", &lines);
        for _ in 0..2 {
            let mut a = file.random.floats();
            a[5] = value.to_bits();
            let result = by_lane(|k| match left {
                true => ones(value.to_bits(), a[k]),
                false => ones(a[k], value.to_bits()),
            });
            file.run(&name, &[list(32, &a)], &list(32, &result));
        }
    }
    file.done()
}

fn float_binary(op: &str, about: &str) -> VectorFile {
    let strict = matches!(op, "fadd" | "fsub" | "fmul" | "fdiv");
    let target = if strict {
        "target naplespu strict_float=true"
    } else {
        "target naplespu"
    };
    let mut file = Writer::new(format!("{op}.clif"), false, target, &format!("{op} of lanes{about}"));
    let pairs = (0..5).map(|_| file.random.float_pairs()).map(|(a, b)| vec![a, b]);
    let args: Vec<Vec<Lanes>> = pairs.collect();
    float_function(&mut file, op, 2, &args, |args| {
        eval::float_binary(Arithmetic::Ieee, op, args[0], args[1])
    });
    file.done()
}

fn float_unary(op: &str, about: &str) -> VectorFile {
    let mut file = Writer::new(
        format!("{op}.clif"),
        false,
        "target naplespu",
        &format!("{op} of lanes{about}"),
    );
    let mut args = vec![vec![by_lane(|k| FLOAT_EDGES[k])]];
    args.push(vec![by_lane(|k| FLOAT_EDGES[FLOAT_EDGES.len() - LANES + k])]);
    args.extend((0..3).map(|_| vec![file.random.fractions()]));
    float_function(&mut file, op, 1, &args, |args| eval::float_unary(op, args[0]));
    file.done()
}

fn fma() -> VectorFile {
    let mut file = Writer::new(
        "fma.clif".into(),
        false,
        "target naplespu",
        "fma of lanes: one rounding",
    );
    let args: Vec<Vec<Lanes>> = (0..4).map(|_| file.random.products()).collect();
    float_function(&mut file, "fma", 3, &args, |args| eval::fma(args[0], args[1], args[2]));
    file.done()
}
