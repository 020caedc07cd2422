//! Every instruction on vectors that do not fit a register class, against `cranelift-interpreter`.
//!
//! The functions are compiled at both optimization levels with both register allocators and run on
//! the simulator. The interpreter does not support vectors of more than 128 bits; these are
//! compared with two halves.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Type, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use cranelift_naplespu::Isa;
use naplespu_fuzz as fuzz;
use naplespu_jit::Program;
use naplespu_reader::panics::caught;
use std::sync::Arc;

const INTS: [Type; 10] = [
    types::I8X2,
    types::I8X4,
    types::I8X8,
    types::I16X2,
    types::I16X4,
    types::I16X8,
    types::I32X2,
    types::I32X4,
    types::I64X2,
    types::I8X16,
];
const FLOATS: [Type; 3] = [types::F32X2, types::F32X4, types::F64X2];

/// Edge cases of operations. The low bits serve narrower types.
const EDGES: [u64; 10] = [
    0,
    1,
    u64::MAX,
    0x8000_8000_8000_8080,
    0x7fff_7fff_7fff_7f7f,
    0x8000_0000_8000_0000,
    0x7fff_ffff_7fff_ffff,
    0x8000_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xff,
];

/// Edge cases of floats, as f64.
const FLOAT_EDGES: [f64; 10] = [0.0, -0.0, 1.0, -1.5, 2.5, 1e9, -3e10, 1e30, f64::INFINITY, 0.49];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn lane(&mut self, ty: Type) -> Vec<u8> {
        let edge = self.next().is_multiple_of(3);
        let pick = (self.next() % 10) as usize;
        let bytes = match ty {
            types::F32 if edge => (FLOAT_EDGES[pick] as f32).to_le_bytes().to_vec(),
            types::F64 if edge => FLOAT_EDGES[pick].to_le_bytes().to_vec(),
            types::F32 => ((self.next() as i32) as f32 / 1024.0).to_le_bytes().to_vec(),
            types::F64 => ((self.next() as i64) as f64 / 1024.0).to_le_bytes().to_vec(),
            types::I128 => [self.next().to_le_bytes(), self.next().to_le_bytes()].concat(),
            _ if edge => EDGES[pick].to_le_bytes().to_vec(),
            _ => self.next().to_le_bytes().to_vec(),
        };
        bytes[..ty.bytes() as usize].to_vec()
    }

    fn value(&mut self, ty: Type) -> DataValue {
        let bytes: Vec<u8> = (0..ty.lane_count()).flat_map(|_| self.lane(ty.lane_type())).collect();
        DataValue::read_from_slice_le(&bytes, ty)
    }
}

/// Returns a function with the given instructions.
fn text(params: &[String], result: &str, body: &str) -> String {
    let names: Vec<String> = params.iter().enumerate().map(|(i, ty)| format!("v{i}: {ty}")).collect();
    format!(
        "function %f0({}) -> {result} {{\nblock0({}):\n{body}    return v9\n}}\n",
        params.join(", "),
        names.join(", ")
    )
}

/// Adds a function: types of parameters, type of the result, and instructions.
type Add<'a> = dyn FnMut(&[&str], &str, String) + 'a;

fn cases() -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |params: &[&str], result: &str, body: String| {
        let params: Vec<String> = params.iter().map(|ty| (*ty).to_owned()).collect();
        all.push(text(&params, result, &body));
    };
    INTS.into_iter().for_each(|ty| int_cases(ty, &mut add));
    FLOATS.into_iter().for_each(|ty| float_cases(ty, &mut add));
    byte_cases(&mut add);
    add(&["f64x2"], "f32x4", "    v9 = fvdemote v0\n".to_owned());
    add(&["f32x4"], "f64x2", "    v9 = fvpromote_low v0\n".to_owned());
    // Functions that use memory need a stack slot.
    for text in &mut all {
        if text.contains("ss0") {
            *text = text.replacen("{\n", "{\n    ss0 = explicit_slot 64, align = 16\n", 1);
        }
    }
    all
}

fn int_cases(ty: Type, add: &mut Add<'_>) {
    let (t, lane) = (ty.to_string(), ty.lane_type());
    let t = t.as_str();
    for op in [
        "iadd",
        "isub",
        "imul",
        "umulhi",
        "smulhi",
        "band",
        "bor",
        "bxor",
        "smin",
        "umin",
        "smax",
        "umax",
        "avg_round",
        "uadd_sat",
        "sadd_sat",
        "usub_sat",
        "ssub_sat",
    ] {
        add(&[t, t], t, format!("    v9 = {op} v0, v1\n"));
    }
    for op in ["bnot", "ineg", "iabs", "popcnt"] {
        add(&[t], t, format!("    v9 = {op} v0\n"));
    }
    for op in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
        add(&[t, "i32"], t, format!("    v9 = {op} v0, v1\n"));
    }
    for cc in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"] {
        add(&[t, t], t, format!("    v9 = icmp {cc} v0, v1\n"));
    }
    for op in ["vany_true", "vall_true"] {
        add(&[t], "i8", format!("    v9 = {op} v0\n"));
    }
    add(&[t], "i32", "    v9 = vhigh_bits.i32 v0\n".to_owned());
    // The contents of unused lanes after these instructions must not affect the result.
    for op in ["vany_true", "vall_true", "vhigh_bits.i32"] {
        let result = if op.ends_with("i32") { "i32" } else { "i8" };
        for first in [
            "bnot v0",
            "isub v0, v0",
            "icmp eq v0, v0",
            "icmp ne v0, v0",
            "icmp slt v0, v1",
        ] {
            add(&[t, t], result, format!("    v2 = {first}\n    v9 = {op} v2\n"));
        }
        let logic = "    v2 = icmp slt v0, v1\n    v3 = icmp ugt v0, v1\n    v4 = bxor v2, v3\n    v5 = bnot v4\n";
        add(&[t, t], result, format!("{logic}    v9 = {op} v5\n"));
    }
    add(&[t, t, t], t, "    v9 = bitselect v0, v1, v2\n".to_owned());
    add(&["i8", t, t], t, "    v9 = select v0, v1, v2\n".to_owned());
    add(&[&lane.to_string()], t, format!("    v9 = splat.{t} v0\n"));
    add(&[&lane.to_string()], t, format!("    v9 = scalar_to_vector.{t} v0\n"));
    add(&[t], &lane.to_string(), "    v9 = extractlane v0, 1\n".to_owned());
    add(&[t, &lane.to_string()], t, "    v9 = insertlane v0, v1, 1\n".to_owned());
    add(
        &[t],
        t,
        "    v1 = stack_addr.i64 ss0\n    store v0, v1+5\n    v9 = load.".to_owned() + t + " v1+5\n",
    );
    if lane.bits() < 64 {
        add(&[t, t], t, "    v9 = iadd_pairwise v0, v1\n".to_owned());
        if ty.lane_count() > 2 {
            let wide = ty.merge_lanes().unwrap().to_string();
            for op in ["swiden_low", "swiden_high", "uwiden_low", "uwiden_high"] {
                add(&[t], &wide, format!("    v9 = {op} v0\n"));
            }
        }
    }
    if lane.bits() > 8
        && ty.bits() >= 64
        && let Some(narrow) = ty.split_lanes()
    {
        for op in ["snarrow", "unarrow", "uunarrow"] {
            add(&[t, t], &narrow.to_string(), format!("    v9 = {op} v0, v1\n"));
        }
    }
    if matches!(ty, types::I16X8 | types::I32X4) {
        add(&[t, t], t, "    v9 = sqmul_round_sat v0, v1\n".to_owned());
    }
    for other in INTS {
        if other.bits() == ty.bits() && other != ty {
            add(
                &[t],
                &other.to_string(),
                format!("    v9 = bitcast.{other} little v0\n"),
            );
        }
    }
}

fn float_cases(ty: Type, add: &mut Add<'_>) {
    let t = ty.to_string();
    let t = t.as_str();
    let ints = ty.as_truthy_pedantic().to_string();
    for op in ["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fcopysign"] {
        add(&[t, t], t, format!("    v9 = {op} v0, v1\n"));
    }
    for op in ["fneg", "fabs", "sqrt", "ceil", "floor", "trunc", "nearest"] {
        add(&[t], t, format!("    v9 = {op} v0\n"));
    }
    for cc in [
        "eq", "ne", "lt", "le", "gt", "ge", "ord", "uno", "one", "ueq", "ult", "ule", "ugt", "uge",
    ] {
        add(&[t, t], &ints, format!("    v9 = fcmp {cc} v0, v1\n"));
    }
    add(&[t, t, t], t, "    v9 = fma v0, v1, v2\n".to_owned());
    for op in ["fcvt_to_sint_sat", "fcvt_to_uint_sat"] {
        add(&[t], &ints, format!("    v9 = {op}.{ints} v0\n"));
    }
    for op in ["fcvt_from_sint", "fcvt_from_uint"] {
        add(&[&ints], t, format!("    v9 = {op}.{t} v0\n"));
    }
}

/// Adds casts to bytes and back, with operations on the bytes between them.
fn byte_cases(add: &mut Add<'_>) {
    for (x, y) in [
        ("i32x4", "i32x4"),
        ("f32x4", "f32x4"),
        ("i16x8", "i16x8"),
        ("i32x4", "f32x4"),
        ("i64x2", "i64x2"),
        ("i64x2", "i32x4"),
        ("i16x8", "i32x4"),
        ("f64x2", "f64x2"),
    ] {
        let casts = "    v2 = bitcast.i8x16 little v0\n    v3 = bitcast.i8x16 little v1\n";
        for op in [
            "band v2, v3",
            "bor v2, v2",
            "bxor v3, v2",
            "bnot v3",
            "bitselect v2, v3, v2",
            "shuffle v2, v3, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]",
            "shuffle v2, v3, [12 13 14 15 16 17 18 19 0 1 2 3 28 29 30 31]",
            "shuffle v2, v3, [24 25 26 27 28 29 30 31 16 17 18 19 20 21 22 23]",
            "shuffle v2, v2, [8 9 10 11 12 13 14 15 20 21 22 23 0 1 2 3]",
            "shuffle v2, v3, [1 2 3 4 0 16 17 31 9 10 8 9 10 11 30 31]",
            "shuffle v2, v3, [2 3 0 1 18 19 16 17 14 15 30 31 8 9 24 25]",
            "swizzle v2, v3",
            "iadd v2, v3",
        ] {
            let shuffled = format!("{casts}    v4 = {op}\n");
            add(&[x, y], x, format!("{shuffled}    v9 = bitcast.{x} little v4\n"));
            add(
                &[x, y],
                "i8x16",
                format!(
                    "{shuffled}    v5 = bitcast.{x} little v4\n    v6 = bitcast.{x} little v2\n    v7 = band v5, v6\n    v9 = bitcast.i8x16 little v7\n"
                ),
            );
        }
        for op in ["vany_true", "vall_true"] {
            add(&[x, y], "i8", format!("{casts}    v9 = {op} v2\n"));
            let zero = "    v4 = bxor v2, v2\n";
            add(&[x, y], "i8", format!("{casts}{zero}    v9 = {op} v4\n"));
            let back = format!("    v5 = bitcast.{y} little v4\n");
            add(&[x, y], "i8", format!("{casts}{zero}{back}    v9 = {op} v5\n"));
        }
        let constant = "    v4 = vconst.i8x16 [1 2 3 4 255 255 255 255 0 0 0 0 128 0 7 9]\n    v5 = bitselect v4, v2, v3\n    v6 = shuffle v5, v4, [0 1 2 3 20 21 22 23 16 17 18 19 12 13 14 15]\n";
        add(&[x, y], y, format!("{casts}{constant}    v9 = bitcast.{y} little v6\n"));
        if x.starts_with('i') && x == y {
            let compare = "    v4 = icmp slt v0, v1\n    v5 = bitcast.i8x16 little v4\n    v6 = bitselect v5, v2, v3\n";
            add(&[x, y], x, format!("{casts}{compare}    v9 = bitcast.{x} little v6\n"));
            add(&[x, y], "i8", format!("{casts}{compare}    v9 = vany_true v5\n"));
            add(&[x, y], "i32", format!("{casts}{compare}    v9 = vhigh_bits.i32 v5\n"));
        }
        let blocks = format!(
            "{casts}    v4 = extractlane v2, 0\n    brif v4, block1, block2(v3)\nblock1:\n    v5 = bitcast.{x} little v3\n    v6 = bitcast.i8x16 little v5\n    v7 = bnot v6\n    jump block2(v7)\nblock2(v8: i8x16):\n    v10 = band v8, v2\n    v9 = bitcast.{x} little v10\n"
        );
        add(&[x, y], x, blocks);
    }
}

/// Returns a function that stores a vector near the end of a cache line and loads it again. Its
/// results are a hash of the surrounding memory and the loaded value.
fn memory_text(ty: Type) -> String {
    format!(
        "function %f0({ty}, i64) -> i32, {ty} {{
    ss0 = explicit_slot 192, align = 64
block0(v0: {ty}, v1: i64):
    v2 = stack_addr.i64 ss0
    v3 = iconst.i64 0x1122_3344_5566_7788
    v4 = iconst.i64 0
    v5 = iconst.i64 8
    v6 = iconst.i64 192
    jump block1(v4)
block1(v7: i64):
    v8 = iadd v2, v7
    store v3, v8
    v9 = iadd v7, v5
    v10 = icmp ult v9, v6
    brif v10, block1(v9), block2
block2:
    v11 = iadd v2, v1
    store v0, v11+16
    v12 = load.{ty} v11+16
    v13 = iconst.i32 7
    v14 = iconst.i32 31
    v15 = iconst.i64 1
    jump block3(v4, v13)
block3(v20: i64, v21: i32):
    v22 = iadd v2, v20
    v23 = uload8.i32 v22
    v24 = imul v21, v14
    v25 = iadd v24, v23
    v26 = iadd v20, v15
    v27 = icmp ult v26, v6
    brif v27, block3(v26, v25), block4
block4:
    return v25, v12
}}
"
    )
}

#[test]
fn vectors_in_memory_touch_nothing_else() {
    let mut random = Random(11);
    let configs = fuzz::configs().unwrap();
    for ty in INTS.into_iter().chain(FLOATS) {
        let unaligned = memory_text(ty);
        let aligned = unaligned
            .replace("store v0,", "store aligned v0,")
            .replace(&format!("load.{ty}"), &format!("load.{ty} aligned"));
        let step = u64::from(ty.bytes());
        // A variant that stores a vector made from a loaded one, with one of its lanes moved to
        // another.
        let copies = |text: &str| {
            let stored = text
                .lines()
                .find(|line| line.contains("store") && line.contains("v0"))
                .unwrap();
            let lines = stored.replace("v0", "v32");
            let load = text
                .lines()
                .find(|line| line.contains("load.") && line.contains("v12"))
                .unwrap();
            let load = load.replace("v12", "v30").replace("v11", "v2");
            text.replace(
                stored,
                &format!("{load}\n    v31 = extractlane v30, 1\n    v33 = bnot v30\n    v32 = insertlane v33, v31, 0\n{lines}"),
            )
        };
        let copied = [copies(&unaligned), copies(&aligned)];
        let [copied, copied_aligned] = copied;
        for (text, step) in [(unaligned, 1), (aligned, step), (copied, 1), (copied_aligned, step)] {
            let function = cranelift_reader::parse_functions(&text).unwrap().remove(0);
            let mut programs: Vec<(&str, Program)> = Vec::new();
            for (name, isa) in &configs {
                let mut program = Program::new(isa.clone());
                program.define(&function).unwrap();
                programs.push((name, program));
            }
            for place in (0..64).step_by(step as usize) {
                let args = [random.value(ty), DataValue::I64(place)];
                let expected = interpret(&function, &args).unwrap();
                for (name, program) in &mut programs {
                    let result = program.call("f0", &args).unwrap();
                    assert_eq!(result[0], expected[0], "{name}: {args:?}\n{text}");
                    assert_eq!(bits(ty, &result[1]), bits(ty, &expected[1]), "{name}: {args:?}\n{text}");
                }
            }
        }
    }
}

/// Casts between scalars and vectors, which the interpreter does not execute correctly.
#[test]
fn casts_keep_all_bits() {
    let groups: [&[&str]; 4] = [
        &["i16", "i8x2"],
        &["i32", "f32", "i8x4", "i16x2"],
        &["i64", "f64", "i8x8", "i16x4", "i32x2", "f32x2"],
        &["i128", "i8x16", "i16x8", "i32x4", "f32x4", "i64x2", "f64x2"],
    ];
    let mut random = Random(5);
    let configs = fuzz::configs().unwrap();
    for group in groups {
        for (from, to) in group.iter().flat_map(|from| group.iter().map(move |to| (*from, *to))) {
            let text = text(&[from.to_owned()], to, &format!("    v9 = bitcast.{to} little v0\n"));
            let function = cranelift_reader::parse_functions(&text).unwrap().remove(0);
            let (from, to) = (
                function.signature.params[0].value_type,
                function.signature.returns[0].value_type,
            );
            for (name, isa) in &configs {
                let mut program = Program::new(isa.clone());
                program.define(&function).unwrap();
                for _ in 0..4 {
                    let bytes: Vec<u8> = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
                    let result = program.call("f0", &[DataValue::read_from_slice_le(&bytes, from)]);
                    let mut found = vec![0; to.bytes() as usize];
                    result.unwrap()[0].write_to_slice_le(&mut found);
                    assert_eq!(found, bytes[..found.len()], "{name}\n{text}");
                }
            }
        }
    }
}

/// More vectors than registers are live across a call that clobbers most registers.
#[test]
fn many_vectors_live_through_calls() {
    let mut random = Random(13);
    let configs = fuzz::configs().unwrap();
    for ty in [types::I8X8, types::I16X8, types::I32X4, types::I32X2, types::I64X2] {
        let mut body = String::new();
        for number in 0..72 {
            let lane = ty.lane_type();
            body += &format!("    v{} = iconst.{lane} {number}\n", 100 + number);
            body += &format!("    v{} = splat.{ty} v{}\n", 200 + number, 100 + number);
            body += &format!("    v{} = iadd v0, v{}\n", 300 + number, 200 + number);
        }
        body += "    v1, v2 = call fn0(v300, v371, v371, v371, v371, v371, v371, v371, v371, v371)\n    v400 = isub v1, v2\n";
        for number in 0..72 {
            body += &format!(
                "    v{} = imul v{}, v{}\n    v{} = bxor v{0}, v{}\n",
                500 + number,
                300 + number,
                300 + (number * 7 + 1) % 72,
                401 + number,
                400 + number,
            );
        }
        let params = vec![ty.to_string(); 10].join(", ");
        let text = format!(
            "function %f1({params}) -> {ty}, {ty} {{
block0(v0: {ty}, v1: {ty}, v2: {ty}, v3: {ty}, v4: {ty}, v5: {ty}, v6: {ty}, v7: {ty}, v8: {ty}, v9: {ty}):
    v10 = bnot v9
    return v10, v0
}}

function %f0({ty}) -> {ty} {{
    fn0 = %f1({params}) -> {ty}, {ty}
block0(v0: {ty}):
{body}    return v472
}}
"
        );
        let functions = cranelift_reader::parse_functions(&text).unwrap();
        let args = [random.value(ty)];
        let mut store = FunctionStore::default();
        for function in &functions {
            store.add(function.name.to_string(), function);
        }
        let state = InterpreterState::default().with_function_store(store);
        let expected = match Interpreter::new(state).call_by_name("%f0", &args) {
            Ok(ControlFlow::Return(values)) => values.to_vec(),
            other => panic!("{other:?}"),
        };
        for (name, isa) in &configs {
            let mut program = Program::new(isa.clone());
            for function in &functions {
                program.define(function).unwrap();
            }
            let result = program.call("f0", &args).unwrap();
            assert_eq!(bits(ty, &result[0]), bits(ty, &expected[0]), "{name}: {args:?}\n{text}");
        }
    }
}

/// Interprets a call. Returns `None` if the interpreter does not support an instruction.
fn interpret(function: &Function, args: &[DataValue]) -> Option<Vec<DataValue>> {
    let mut store = FunctionStore::default();
    store.add(function.name.to_string(), function);
    let call = || {
        let state = InterpreterState::default().with_function_store(store);
        Interpreter::new(state).call_by_name("%f0", args)
    };
    match caught(call) {
        Ok(Ok(ControlFlow::Return(values))) => Some(values.to_vec()),
        _ => None,
    }
}

/// Returns the bits of a value; all NaNs have the same bits.
fn bits(ty: Type, value: &DataValue) -> Vec<u8> {
    let mut bytes = vec![0; ty.bytes() as usize];
    value.write_to_slice_le(&mut bytes);
    let size = ty.lane_type().bytes() as usize;
    for lane in bytes.chunks_mut(size) {
        let nan = match ty.lane_type() {
            types::F32 => lane.try_into().is_ok_and(|lane| f32::from_le_bytes(lane).is_nan()),
            types::F64 => lane.try_into().is_ok_and(|lane| f64::from_le_bytes(lane).is_nan()),
            _ => false,
        };
        if nan {
            lane.fill(0xff);
        }
    }
    bytes
}

#[test]
fn differential_lanes() {
    super::silence_caught_panics();
    let mut random = Random(7);
    let configs = fuzz::configs().unwrap();
    let (mut compared, mut unknown, mut failures) = (0, Vec::new(), Vec::new());
    for text in cases() {
        let Ok(mut functions) = cranelift_reader::parse_functions(&text) else {
            failures.push(format!("not CLIF: {text}"));
            continue;
        };
        let function = functions.remove(0);
        let mut programs: Vec<(&str, Program)> = Vec::new();
        for (name, isa) in &configs {
            let mut program = Program::new(isa.clone());
            match program.define(&function) {
                Ok(()) => programs.push((name, program)),
                Err(error) => failures.push(format!("{name}: {error}\n{text}")),
            }
        }
        let mut known = false;
        for _ in 0..12 {
            let params = function.signature.params.iter();
            let args: Vec<DataValue> = params.map(|param| random.value(param.value_type)).collect();
            let Some(expected) = interpret(&function, &args) else {
                continue;
            };
            known = true;
            let ty = function.signature.returns[0].value_type;
            for (name, program) in &mut programs {
                let result = program.call("f0", &args);
                let same = |values: &Vec<DataValue>| bits(ty, &values[0]) == bits(ty, &expected[0]);
                if !result.as_ref().is_ok_and(same) {
                    failures.push(format!(
                        "{name}: {args:?} gives {result:?}, expected {expected:?}\n{text}"
                    ));
                    break;
                }
                compared += 1;
            }
        }
        if !known {
            unknown.push(text);
        }
    }
    failures.truncate(12);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(
        compared > 12_000,
        "{compared} calls compared; unknown to the interpreter:\n{}",
        unknown.join("\n")
    );
}

/// Operations on two integers; `T` stands for the type.
const ON_INTS: [&str; 9] = [
    "v9 = isub v0, v1",
    "v9 = smin v0, v1",
    "v9 = uadd_sat v0, v1",
    "v2 = icmp slt v0, v1\n    v9 = bitselect v2, v0, v1",
    "v2 = icmp ule v0, v1\n    v3 = imul v0, v1\n    v9 = bitselect v2, v3, v1",
    "v2 = icmp ne v0, v1\n    v3 = band v2, v1\n    v9 = iadd v0, v3",
    "v2 = icmp eq v0, v1\n    v3 = icmp sgt v0, v1\n    v9 = bor v2, v3",
    "v2 = iconst.i32 3\n    v3 = sshr v0, v2\n    v9 = bxor v3, v1",
    "ss0 = explicit_slot 2048\n    v2 = stack_addr.i32 ss0\n    store v0, v2+3\n    store v1, v2+600\n    v3 = load.T v2+3\n    v4 = load.T v2+600\n    v9 = iadd v3, v4",
];

/// Operations on two floats; `I` stands for the integer type of the same width.
const ON_FLOATS: [&str; 6] = [
    "v9 = fmul v0, v1",
    "v9 = fmin v0, v1",
    "v2 = sqrt v0\n    v9 = fdiv v2, v1",
    "v9 = fma v0, v1, v1",
    "v2 = fcmp lt v0, v1\n    v3 = bitcast.T little v2\n    v9 = bitselect v3, v0, v1",
    "v2 = fcvt_to_sint_sat.I v0\n    v3 = fcvt_from_sint.T v2\n    v9 = fadd v3, v1",
];

/// An operation on each lane of a vector equals the operation on its halves.
#[test]
fn wide_vectors_are_their_halves() {
    let isas = fuzz::configs().unwrap();
    let mut number = 0;
    for (wide, half) in [
        ("i8x64", "i8x32"),
        ("i64x8", "i64x4"),
        ("f64x8", "f64x4"),
        ("f32x64", "f32x32"),
        ("f32x32", "f32x16"),
        ("i16x64", "i16x32"),
        ("i16x32", "i16x16"),
        ("i32x128", "i32x64"),
        ("i32x64", "i32x32"),
        ("i32x32", "i32x16"),
    ] {
        let operations: &[&str] = if wide.starts_with('f') { &ON_FLOATS } else { &ON_INTS };
        for operation in operations {
            let (_, isa) = &isas[number % isas.len()];
            number += 1;
            halves(isa, wide, half, operation);
        }
    }
}

/// Compares an operation on a type with the same operation on halves.
fn halves(isa: &Arc<Isa>, wide: &str, half: &str, operation: &str) {
    let lanes: Type = cranelift_reader::parse_functions(&text(&[wide.to_owned()], wide, "    v9 = bnot v0\n")).unwrap()
        [0]
    .signature
    .params[0]
        .value_type;
    let [wide, half] = [wide, half].map(|ty| {
        let bits = ty.replace('f', "i");
        let body = operation.replace('T', ty).replace('I', &bits);
        let (slot, body) = body.split_once("2048\n").unwrap_or(("", &body));
        let text = text(
            &[ty.to_owned(), ty.to_owned()],
            ty,
            &format!("    {}\n", body.trim_start()),
        );
        match slot {
            "" => text,
            slot => text.replacen("{\n", &format!("{{\n    {slot}2048\n"), 1),
        }
    });
    let call = |text: &str, args: &[DataValue]| {
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let mut program = Program::new(isa.clone());
        program.define(&functions[0]).unwrap();
        program.call("f0", args).unwrap()
    };
    let mut random = Random(3);
    let count = lanes.lane_count() as usize;
    let args: Vec<DataValue> = (0..2 * count)
        .map(|_| DataValue::read_from_slice_le(&random.lane(lanes.lane_type()), lanes.lane_type()))
        .collect();
    let all = call(&wide, &args);
    for part in 0..2 {
        let place = |operand: usize| operand * count + part * count / 2;
        let own: Vec<DataValue> = (0..2)
            .flat_map(|operand| args[place(operand)..place(operand) + count / 2].to_vec())
            .collect();
        let lane = lanes.lane_type();
        let flat = |values: &[DataValue]| -> Vec<u8> { values.iter().flat_map(|value| bits(lane, value)).collect() };
        assert_eq!(
            flat(&call(&half, &own)),
            flat(&all[part * count / 2..(part + 1) * count / 2]),
            "{wide}"
        );
    }
}
