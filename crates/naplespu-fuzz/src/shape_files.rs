//! Filetests for operations on vectors of other than sixteen lanes, generated at run time.
//!
//! Each type has a file with every operation and with expected results from a model in Rust. The
//! lanes differ from one another, so that a swapped lane is detected. Floats are passed and
//! returned as integer lanes.

mod lanes;

use crate::vector_files::VectorFile;
use lanes::truncate;
use std::fmt::Write;

const BINARY: &[&str] = &[
    "iadd",
    "isub",
    "imul",
    "band",
    "bor",
    "bxor",
    "smin",
    "smax",
    "umin",
    "umax",
    "smulhi",
    "umulhi",
    "sadd_sat",
    "ssub_sat",
    "uadd_sat",
    "usub_sat",
    "avg_round",
];
const UNARY: &[&str] = &["bnot", "ineg", "iabs", "popcnt"];
const SHIFTS: &[&str] = &["ishl", "ushr", "sshr", "rotl", "rotr"];
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
const FLOAT_BINARY: &[&str] = &["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fcopysign"];
const FLOAT_UNARY: &[&str] = &["fneg", "fabs", "sqrt", "ceil", "floor", "trunc", "nearest"];

/// Width in bits and number of lanes of the integer vectors.
const INTEGERS: &[(u32, usize)] = &[
    (8, 2),
    (8, 4),
    (8, 8),
    (8, 32),
    (8, 64),
    (16, 2),
    (16, 4),
    (16, 8),
    (16, 32),
    (32, 2),
    (32, 4),
    (32, 8),
    (32, 32),
    (64, 2),
    (64, 4),
    (64, 8),
];
const FLOATS: &[(u32, usize)] = &[(32, 2), (32, 4), (32, 8), (64, 2), (64, 4), (64, 8)];

/// Returns all generated files.
pub fn shape_files() -> Vec<VectorFile> {
    let integers = INTEGERS.iter().map(|&(width, count)| integers(width, count));
    integers
        .chain(FLOATS.iter().map(|&(width, count)| floats(width, count)))
        .collect()
}

type Lanes = Vec<u64>;

/// A pseudorandom generator (splitmix64) that is seeded by a name, so it is the same on all hosts.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn lanes(&mut self, width: u32, count: usize) -> Lanes {
        let (min, max) = lanes::limits(width);
        let edges = [0, 1, -1, min, max, min + 1, 37];
        let mut lane = || match self.word() % 3 {
            0 => truncate(width, edges[(self.word() % 7) as usize]),
            _ => truncate(width, self.word().into()),
        };
        (0..count).map(|_| lane()).collect()
    }

    /// Returns finite floats in the range of integers, with fractions.
    fn floats(&mut self, width: u32, count: usize) -> Lanes {
        let mut lane = || {
            let number = (self.word() % 400_000) as f64 / 8.0 - 25000.03125;
            if width == 32 {
                (number as f32).to_bits().into()
            } else {
                number.to_bits()
            }
        };
        (0..count).map(|_| lane()).collect()
    }
}

struct Writer {
    name: String,
    text: String,
    random: Random,
}

impl Writer {
    fn new(ty: &str) -> Writer {
        let hash = ty.bytes().fold(7, |hash: u64, byte| {
            hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        });
        let text = format!("test run\ntarget naplespu strict_float=true\n\n; Operations on {ty}.\n");
        Writer {
            name: format!("{ty}.clif"),
            text,
            random: Random(hash),
        }
    }

    /// Adds a function; the lines refer to parameters as v0, v1 and so on.
    fn function(&mut self, name: &str, params: &[&str], result: &str, lines: &[&str]) {
        let head: Vec<String> = params.iter().enumerate().map(|(n, ty)| format!("v{n}: {ty}")).collect();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "\nfunction %{name}({}) -> {result} {{\n", params.join(", "));
        let (preamble, body): (Vec<&str>, Vec<&str>) = lines
            .iter()
            .partition(|line| line.starts_with("ss") || line.starts_with("fn"));
        for line in preamble {
            let _ = writeln!(self.text, "    {line}");
        }
        let _ = writeln!(self.text, "block0({}):", head.join(", "));
        for line in body {
            let indent = if line.starts_with("block") { "" } else { "    " };
            let _ = writeln!(self.text, "{indent}{line}");
        }
        self.text += "}\n";
    }

    fn run(&mut self, name: &str, args: &[String], result: &str) {
        let _ = writeln!(self.text, "; run: %{name}({}) == {result}", args.join(", "));
    }
}

/// Formats lanes for run lines.
fn list(width: u32, lanes: &[u64]) -> String {
    let lanes: Vec<String> = lanes
        .iter()
        .map(|&lane| lanes::signed(width, lane).to_string())
        .collect();
    format!("[{}]", lanes.join(" "))
}

fn number(width: u32, lane: u64) -> String {
    lanes::signed(width, lane).to_string()
}

fn map(a: &[u64], f: impl Fn(u64) -> u64) -> Lanes {
    a.iter().map(|&a| f(a)).collect()
}

fn zip(a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) -> Lanes {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

fn integers(width: u32, count: usize) -> VectorFile {
    let (scalar, ty) = (format!("i{width}"), format!("i{width}x{count}"));
    let mut file = Writer::new(&ty);
    let ty = ty.as_str();
    let ones = truncate(width, -1);
    for op in BINARY {
        if width == 64 && op.ends_with("mulhi") {
            // The products exceed the range of the model; scalars have other tests.
            continue;
        }
        file.function(op, &[ty, ty], ty, &[&format!("v2 = {op} v0, v1"), "return v2"]);
        for _ in 0..3 {
            let (a, b) = (file.random.lanes(width, count), file.random.lanes(width, count));
            let result = zip(&a, &b, |a, b| lanes::binary(op, width, a, b));
            file.run(op, &[list(width, &a), list(width, &b)], &list(width, &result));
        }
    }
    for op in UNARY {
        file.function(op, &[ty], ty, &[&format!("v1 = {op} v0"), "return v1"]);
        let a = file.random.lanes(width, count);
        let result = map(&a, |a| lanes::unary(op, width, a));
        file.run(op, &[list(width, &a)], &list(width, &result));
    }
    for op in SHIFTS {
        file.function(op, &[ty, "i32"], ty, &[&format!("v2 = {op} v0, v1"), "return v2"]);
        for by in [0, 1, width - 1, width, width + 3] {
            let a = file.random.lanes(width, count);
            let result = map(&a, |a| lanes::shift(op, width, a, by));
            file.run(op, &[list(width, &a), by.to_string()], &list(width, &result));
        }
    }
    for condition in CONDITIONS {
        let name = format!("icmp_{condition}");
        let compare = format!("v2 = icmp {condition} v0, v1");
        file.function(&name, &[ty, ty], ty, &[&compare, "return v2"]);
        let choose = format!("choose_{condition}");
        let (a, mut b) = (file.random.lanes(width, count), file.random.lanes(width, count));
        b[0] = a[0];
        let args = [list(width, &a), list(width, &b)];
        let mask = zip(
            &a,
            &b,
            |a, b| if lanes::holds(condition, width, a, b) { ones } else { 0 },
        );
        file.run(&name, &args, &list(width, &mask));
        file.function(
            &choose,
            &[ty, ty],
            ty,
            &[&compare, "v3 = bitselect v2, v0, v1", "return v3"],
        );
        let result = zip(&a, &b, |a, b| if lanes::holds(condition, width, a, b) { a } else { b });
        file.run(&choose, &args, &list(width, &result));
    }
    truth(&mut file, width, count, ty);
    single_lanes(&mut file, width, count, ty, &scalar);
    memory(&mut file, width, count, ty);
    passing(&mut file, width, count, ty);
    other_shapes(&mut file, width, count, ty);
    VectorFile {
        name: file.name,
        text: file.text,
    }
}

/// Tests reductions of all lanes to one result.
fn truth(file: &mut Writer, width: u32, count: usize, ty: &str) {
    let mut cases = vec![vec![0; count], vec![truncate(width, -1); count]];
    let mut one = vec![0; count];
    one[count - 1] = 1 << (width - 1);
    cases.push(one);
    let mut all_but_one = vec![2; count];
    all_but_one[count - 1] = 0;
    cases.push(all_but_one);
    cases.push(file.random.lanes(width, count));
    for op in ["vany_true", "vall_true"] {
        file.function(op, &[ty], "i8", &[&format!("v1 = {op} v0"), "return v1"]);
        for case in &cases {
            let mut lanes = case.iter();
            let holds = match op {
                "vany_true" => lanes.any(|&lane| lane != 0),
                _ => lanes.all(|&lane| lane != 0),
            };
            file.run(op, &[list(width, case)], &u8::from(holds).to_string());
        }
    }
    file.function("vhigh_bits", &[ty], "i64", &["v1 = vhigh_bits.i64 v0", "return v1"]);
    for case in &cases {
        let bits = case
            .iter()
            .enumerate()
            .fold(0, |bits, (n, lane)| bits | (lane >> (width - 1)) << n);
        file.run("vhigh_bits", &[list(width, case)], &number(64, bits));
    }
}

/// Tests `extractlane` and `insertlane`.
fn single_lanes(file: &mut Writer, width: u32, count: usize, ty: &str, scalar: &str) {
    for lane in [0, count / 2, count - 1] {
        let a = file.random.lanes(width, count);
        let x = file.random.lanes(width, 1)[0];
        let name = format!("extractlane{lane}");
        if !file.text.contains(&format!("%{name}(")) {
            file.function(
                &name,
                &[ty],
                scalar,
                &[&format!("v1 = extractlane v0, {lane}"), "return v1"],
            );
            file.run(&name, &[list(width, &a)], &number(width, a[lane]));
            let name = format!("insertlane{lane}");
            file.function(
                &name,
                &[ty, scalar],
                ty,
                &[&format!("v2 = insertlane v0, v1, {lane}"), "return v2"],
            );
            let mut result = a.clone();
            result[lane] = x;
            file.run(&name, &[list(width, &a), number(width, x)], &list(width, &result));
        }
    }
    let x = file.random.lanes(width, 1)[0];
    file.function("splat", &[scalar], ty, &[&format!("v1 = splat.{ty} v0"), "return v1"]);
    file.run("splat", &[number(width, x)], &list(width, &vec![x; count]));
    file.function(
        "scalar_to_vector",
        &[scalar],
        ty,
        &[&format!("v1 = scalar_to_vector.{ty} v0"), "return v1"],
    );
    let mut result = vec![0; count];
    result[0] = x;
    file.run("scalar_to_vector", &[number(width, x)], &list(width, &result));
    let constant = file.random.lanes(width, count);
    let text = format!("v0 = vconst.{ty} {}", list(width, &constant));
    file.function("vconst", &[], ty, &[&text, "return v0"]);
    file.run("vconst", &[], &list(width, &constant));
}

/// Tests loads and stores at each alignment, and that stores keep the adjacent bytes.
fn memory(file: &mut Writer, width: u32, count: usize, ty: &str) {
    let bytes = width as usize / 8 * count;
    let slot = format!("ss0 = explicit_slot {}, align = 64", bytes + 128);
    for offset in [0, 1, 4, 62] {
        let name = format!("memory{offset}");
        let (before, after) = (64 + offset - 1, 64 + offset + bytes);
        let lines = [
            slot.clone(),
            "v1 = stack_addr.i32 ss0".into(),
            "v2 = iconst.i32 0xa5".into(),
            format!("istore8 v2, v1+{before}"),
            format!("istore8 v2, v1+{after}"),
            format!("store v0, v1+{}", 64 + offset),
            format!("v3 = uload8.i32 v1+{before}"),
            format!("v4 = uload8.i32 v1+{after}"),
            "v5 = icmp eq v3, v2".into(),
            "trapz v5, user1".into(),
            "v6 = icmp eq v4, v2".into(),
            "trapz v6, user2".into(),
            format!("v7 = load.{ty} v1+{}", 64 + offset),
            "return v7".into(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        file.function(&name, &[ty], ty, &lines);
        let a = file.random.lanes(width, count);
        file.run(&name, &[list(width, &a)], &list(width, &a));
    }
    // Lanes are little-endian.
    let step = (width / 8) as usize;
    let lane = count - 1;
    let lines = [
        slot,
        "v1 = stack_addr.i32 ss0".into(),
        "store v0, v1".into(),
        format!("v2 = load.i8 v1+{}", lane * step),
        "return v2".into(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    file.function("layout", &[ty], "i8", &lines);
    let a = file.random.lanes(width, count);
    file.run("layout", &[list(width, &a)], &number(8, a[lane] & 0xff));
}

/// Tests calls, block parameters and selects.
fn passing(file: &mut Writer, width: u32, count: usize, ty: &str) {
    let (a, b) = (file.random.lanes(width, count), file.random.lanes(width, count));
    let both = [list(width, &a), list(width, &b)];
    let lines = [
        &format!("fn0 = %isub({ty}, {ty}) -> {ty}"),
        "v2 = call fn0(v1, v0)",
        "v3 = iadd v2, v0",
        "return v3",
    ];
    file.function("calls", &[ty, ty], ty, &lines);
    file.run("calls", &both, &list(width, &b));
    let loops = [
        "jump block1(v0, v2)",
        &format!("block1(v3: {ty}, v4: i32):"),
        "v5 = iadd v3, v1",
        "v7 = iconst.i32 -1",
        "v6 = iadd v4, v7",
        "brif v6, block1(v5, v6), block2",
        "block2:",
        "return v5",
    ];
    file.function("loops", &[ty, ty, "i32"], ty, &loops);
    let result = zip(&a, &b, |a, b| truncate(width, i128::from(a) + 3 * i128::from(b)));
    file.run(
        "loops",
        &[both[0].clone(), both[1].clone(), "3".into()],
        &list(width, &result),
    );
    file.function("select", &["i8", ty, ty], ty, &["v3 = select v0, v1, v2", "return v3"]);
    for (condition, result) in [("1", &a), ("0", &b), ("-128", &a)] {
        file.run(
            "select",
            &[condition.into(), both[0].clone(), both[1].clone()],
            &list(width, result),
        );
    }
}

/// Tests instructions whose result has another type.
fn other_shapes(file: &mut Writer, width: u32, count: usize, ty: &str) {
    let a = file.random.lanes(width, count);
    let b = file.random.lanes(width, count);
    let both = [list(width, &a), list(width, &b)];
    let bits: Vec<u8> = a
        .iter()
        .flat_map(|lane| lane.to_le_bytes().into_iter().take(width as usize / 8))
        .collect();
    for to in [8u32, 16, 32, 64] {
        let lanes = bits.len() * 8 / to as usize;
        if to == width || lanes < 2 {
            continue;
        }
        let result: Lanes = bits
            .chunks(to as usize / 8)
            .map(|bytes| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
            .collect();
        let (name, other) = (format!("bitcast_i{to}"), format!("i{to}x{lanes}"));
        file.function(
            &name,
            &[ty],
            &other,
            &[&format!("v1 = bitcast.{other} little v0"), "return v1"],
        );
        file.run(&name, &both[..1], &list(to, &result));
    }
    if bits.len() != 16 {
        return;
    }
    if width < 64 {
        let (wide, half) = (width * 2, count / 2);
        for op in ["swiden_low", "swiden_high", "uwiden_low", "uwiden_high"] {
            let part = if op.ends_with("low") { &a[..half] } else { &a[half..] };
            let extend = |lane| {
                if op.starts_with('s') {
                    truncate(wide, lanes::signed(width, lane))
                } else {
                    lane
                }
            };
            file.function(
                op,
                &[ty],
                &format!("i{wide}x{half}"),
                &[&format!("v1 = {op} v0"), "return v1"],
            );
            file.run(op, &both[..1], &list(wide, &map(part, extend)));
        }
        let all: Lanes = a.iter().chain(&b).copied().collect();
        let result: Lanes = all
            .chunks(2)
            .map(|pair| lanes::binary("iadd", width, pair[0], pair[1]))
            .collect();
        file.function(
            "iadd_pairwise",
            &[ty, ty],
            ty,
            &["v2 = iadd_pairwise v0, v1", "return v2"],
        );
        file.run("iadd_pairwise", &both, &list(width, &result));
    }
    if width > 8 {
        let narrow = format!("i{}x{}", width / 2, count * 2);
        let all: Lanes = a.iter().chain(&b).copied().collect();
        for op in ["snarrow", "unarrow", "uunarrow"] {
            file.function(op, &[ty, ty], &narrow, &[&format!("v2 = {op} v0, v1"), "return v2"]);
            file.run(
                op,
                &both,
                &list(width / 2, &map(&all, |lane| lanes::narrow(op, width, lane))),
            );
        }
    }
    if matches!(width, 16 | 32) {
        let op = "sqmul_round_sat";
        file.function(op, &[ty, ty], ty, &[&format!("v2 = {op} v0, v1"), "return v2"]);
        let least = vec![1 << (width - 1); count];
        for (a, b) in [(&a, &b), (&least, &least), (&least, &a)] {
            let result = zip(a, b, |a, b| lanes::binary(op, width, a, b));
            file.run(op, &[list(width, a), list(width, b)], &list(width, &result));
        }
    }
}

fn floats(width: u32, count: usize) -> VectorFile {
    let (ty, int) = (format!("f{width}x{count}"), format!("i{width}x{count}"));
    let (ty, int) = (ty.as_str(), int.as_str());
    let mut file = Writer::new(ty);
    let first = format!("v10 = bitcast.{ty} little v0");
    let second = format!("v11 = bitcast.{ty} little v1");
    let back = format!("v13 = bitcast.{int} little v12");
    for op in FLOAT_BINARY {
        file.function(
            op,
            &[int, int],
            int,
            &[&first, &second, &format!("v12 = {op} v10, v11"), &back, "return v13"],
        );
        for _ in 0..2 {
            let (a, b) = (file.random.floats(width, count), file.random.floats(width, count));
            let result = zip(&a, &b, |a, b| lanes::float_binary(op, width, a, b));
            file.run(op, &[list(width, &a), list(width, &b)], &list(width, &result));
        }
    }
    for op in FLOAT_UNARY {
        let root = ["v14 = fabs v10", "v12 = sqrt v14"];
        let plain = format!("v12 = {op} v10");
        let mut lines = vec![first.as_str()];
        if *op == "sqrt" {
            lines.extend(root)
        } else {
            lines.push(&plain)
        }
        lines.extend([back.as_str(), "return v13"]);
        file.function(op, &[int], int, &lines);
        let a = file.random.floats(width, count);
        file.run(
            op,
            &[list(width, &a)],
            &list(width, &map(&a, |a| lanes::float_unary(op, width, a))),
        );
    }
    for (condition, holds) in [
        ("lt", [true, false, false]),
        ("ge", [false, true, true]),
        ("ne", [true, false, true]),
        ("ueq", [false, true, false]),
    ] {
        let name = format!("fcmp_{condition}");
        file.function(
            &name,
            &[int, int],
            int,
            &[
                &first,
                &second,
                &format!("v12 = fcmp {condition} v10, v11"),
                "return v12",
            ],
        );
        let (a, mut b) = (file.random.floats(width, count), file.random.floats(width, count));
        b[0] = a[0];
        let value = |bits| {
            if width == 32 {
                f64::from(f32::from_bits(bits as u32))
            } else {
                f64::from_bits(bits)
            }
        };
        let result = zip(&a, &b, |a, b| {
            let (a, b) = (value(a), value(b));
            let holds = holds[if a < b {
                0
            } else if a == b {
                1
            } else {
                2
            }];
            if holds { truncate(width, -1) } else { 0 }
        });
        file.run(&name, &[list(width, &a), list(width, &b)], &list(width, &result));
    }
    for op in ["fcvt_to_sint_sat", "fcvt_to_uint_sat"] {
        file.function(
            op,
            &[int],
            int,
            &[&first, &format!("v12 = {op}.{int} v10"), "return v12"],
        );
        let a = file.random.floats(width, count);
        file.run(
            op,
            &[list(width, &a)],
            &list(width, &map(&a, |a| lanes::float_to_integer(op, width, a))),
        );
    }
    for op in ["fcvt_from_sint", "fcvt_from_uint"] {
        file.function(op, &[int], int, &[&format!("v12 = {op}.{ty} v0"), &back, "return v13"]);
        let a = file.random.lanes(width, count);
        file.run(
            op,
            &[list(width, &a)],
            &list(width, &map(&a, |a| lanes::integer_to_float(op, width, a))),
        );
    }
    if (width, count) == (32, 4) {
        let lines = [
            &first,
            "v12 = fvpromote_low v10",
            "v13 = bitcast.i64x2 little v12",
            "return v13",
        ];
        file.function("fvpromote_low", &[int], "i64x2", &lines);
        let a = file.random.floats(width, count);
        let result = map(&a[..2], |a| f64::from(f32::from_bits(a as u32)).to_bits());
        file.run("fvpromote_low", &[list(width, &a)], &list(64, &result));
    }
    if (width, count) == (64, 2) {
        let lines = [
            &first,
            "v12 = fvdemote v10",
            "v13 = bitcast.i32x4 little v12",
            "return v13",
        ];
        file.function("fvdemote", &[int], "i32x4", &lines);
        let a = file.random.floats(width, count);
        let mut result = map(&a, |a| (f64::from_bits(a) as f32).to_bits().into());
        result.extend([0, 0]);
        file.run("fvdemote", &[list(width, &a)], &list(32, &result));
    }
    VectorFile {
        name: file.name,
        text: file.text,
    }
}
