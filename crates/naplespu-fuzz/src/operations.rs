//! Cases of single operations on vectors, generated at run time.
//!
//! Each of the `TEMPLATES` is written for each vector type that has its instructions. Operands are
//! registers, splatted scalars or constants. Values are edge cases of the type, pairs of equal or
//! adjacent values, vectors that are equal in all lanes but one, and random numbers. The text of a
//! function is the seed of its random numbers. Floats are passed and returned as integer lanes.

use crate::eval::Lanes;
use crate::instruction::types_of;
use crate::lane::{Arithmetic, truncate};
use crate::random::{Dice, bytes};
use crate::{Call, Case, Floats, expected, host_list};
use arbitrary::Unstructured;
use cranelift_codegen::ir::{AbiParam, Function, Type, types};
use cranelift_codegen::settings;
use naplespu_filetests::lanes::display;
use std::collections::BTreeMap;

/// A generated file.
pub struct VectorFile {
    /// The name.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// Lists of names that templates refer to.
const LISTS: &[(&str, &str)] = &[
    (
        "@ARITHMETIC",
        "avg_round|band|bor|bxor|iadd|imul|isub|sadd_sat|smax|smin|smulhi|ssub_sat|uadd_sat|umax|umin|umulhi|usub_sat",
    ),
    ("@CONDITIONS", "eq|ne|slt|sle|sgt|sge|ult|ule|ugt|uge"),
    ("@FLOAT_CONDITIONS", "eq|ne|lt|le|gt|ge|ord|uno|one|ueq|ult|ule|ugt|uge"),
    ("@SHIFTS", "ishl|ushr|sshr|rotl|rotr"),
    // Values that are lanes of all ones or zeros.
    (
        "@MASKS",
        "bnot v0|isub v0, v0|icmp eq v0, v0|icmp ne v0, v0|icmp slt v0, v1|icmp ugt v0, v1",
    ),
    // Operations on the bytes v2 and v3.
    (
        "@ON_BYTES",
        "band v2, v3|bor v2, v2|bxor v3, v2|bnot v3|bitselect v2, v3, v2|swizzle v2, v3|iadd v2, v3\
        |shuffle v2, v3, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]\
        |shuffle v2, v3, [12 13 14 15 16 17 18 19 0 1 2 3 28 29 30 31]\
        |shuffle v2, v3, [24 25 26 27 28 29 30 31 16 17 18 19 20 21 22 23]\
        |shuffle v2, v2, [8 9 10 11 12 13 14 15 20 21 22 23 0 1 2 3]\
        |shuffle v2, v3, [1 2 3 4 0 16 17 31 9 10 8 9 10 11 30 31]\
        |shuffle v2, v3, [2 3 0 1 18 19 16 17 14 15 30 31 8 9 24 25]",
    ),
];

/// Functions on each vector type: names, parameters and results; then bodies, whose other lines are
/// indented more. The first word of a name is part of the function's name. The results of a body
/// are v9, v8 and v7.
///
/// `$T` is the vector type, `$L` its lane type, `$I` the integer vector of the same shape, `$N` and
/// `$W` the vectors of as many bits with lanes of half and twice the width. `$OP` is one of the
/// names, `$C` a constant of the lane type, `$F` one of f32, `$BY` an amount to shift by, `$LANE` a lane, `$U`
/// another type of as many bits, `$V` a vector. `$AT` is 64 plus the second word of the name, a
/// position in a slot; `$BEFORE`, `$LAST` and `$AFTER` are bytes around a vector there.
const TEMPLATES: &str = r"
@ARITHMETIC: $T $T -> $T
    v9 = $OP v0, v1
@ARITHMETIC: $T $L -> $T
    v2 = splat.$T v1; v9 = $OP v0, v2
    v2 = splat.$T v1; v9 = $OP v2, v0
@ARITHMETIC: $T -> $T
    v1 = iconst.$L $C; v2 = splat.$T v1; v9 = $OP v0, v2
    v1 = iconst.$L $C; v2 = splat.$T v1; v9 = $OP v2, v0
bnot|ineg|iabs|popcnt|fneg|fabs|sqrt|ceil|floor|trunc|nearest: $T -> $T
    v9 = $OP v0
fadd|fsub|fmul|fdiv|fmin|fmax|fcopysign: $T $T -> $T
    v9 = $OP v0, v1
fma|bitselect: $T $T $T -> $T
    v9 = $OP v0, v1, v2
sqmul_round_sat|iadd_pairwise: $T $T -> $T
    v9 = $OP v0, v1
@SHIFTS: $T i32 -> $T
    v9 = $OP v0, v1
@SHIFTS: $T i8 -> $T
    v9 = $OP v0, v1
@SHIFTS: $T i64 -> $T
    v9 = $OP v0, v1
@SHIFTS: $T -> $T
    v1 = iconst.i32 $BY; v9 = $OP v0, v1
@CONDITIONS: $T $T -> $T
    v9 = icmp $OP v0, v1
    v2 = icmp $OP v0, v1; v9 = bitselect v2, v0, v1
@CONDITIONS: $T $T -> i8 i8
    v2 = icmp $OP v0, v1; v9 = vany_true v2; v8 = vall_true v2
@CONDITIONS: $T $T -> i32
    v2 = icmp $OP v0, v1; v3 = vany_true v2; brif v3, block1, block2; block1:; v4 = iconst.i32 1
        jump block3(v4); block2:; v5 = iconst.i32 2; jump block3(v5); block3(v9: i32):
    v2 = icmp $OP v0, v1; v3 = vall_true v2; brif v3, block1, block2; block1:; v4 = iconst.i32 1
        jump block3(v4); block2:; v5 = iconst.i32 2; jump block3(v5); block3(v9: i32):
@CONDITIONS: $T $L -> $T
    v2 = splat.$T v1; v3 = icmp $OP v0, v2; v4 = icmp $OP v2, v0; v5 = iadd v4, v4; v9 = iadd v3, v5
@CONDITIONS: $T -> $T
    v1 = iconst.$L $C; v2 = splat.$T v1; v9 = icmp $OP v0, v2
@FLOAT_CONDITIONS: $T $T -> $I
    v9 = fcmp $OP v0, v1
@FLOAT_CONDITIONS: $T -> $I
    v1 = f32const $F; v2 = splat.$T v1; v9 = fcmp $OP v0, v2
    v1 = f32const $F; v2 = splat.$T v1; v9 = fcmp $OP v2, v0
@FLOAT_CONDITIONS: $T $T -> $T
    v2 = fcmp $OP v0, v1; v3 = bitcast.$T little v2; v9 = bitselect v3, v0, v1
vany_true|vall_true: $T -> i8
    v9 = $OP v0
vhigh_bits.i32|vhigh_bits.i64: $T -> i64
    v1 = $OP v0; v9 = bor v1, v1
vhigh_bits.i32: $T -> i32
    v9 = $OP v0
@MASKS: $T $T -> i8 i8
    v2 = $OP; v9 = vany_true v2; v8 = vall_true v2
@MASKS: $T $T -> i32
    v2 = $OP; v9 = vhigh_bits.i32 v2
band|bor|bxor: $T $T -> i8 i8
    v2 = icmp slt v0, v1; v3 = icmp ugt v0, v1; v4 = $OP v2, v3; v5 = bnot v4; v9 = vany_true v5
        v8 = vall_true v5
band|bor|bxor: $T $T -> $T
    v2 = icmp eq v0, v1; v3 = icmp sgt v0, v1; v4 = $OP v2, v3; v5 = band v4, v1; v9 = iadd v0, v5
select: i8 $T $T -> $T
    v9 = select v0, v1, v2
splat|scalar_to_vector: $L -> $T
    v9 = $OP.$T v0
extractlane: $T -> $L
    v9 = extractlane v0, $LANE
insertlane: $T $L -> $T
    v9 = insertlane v0, v1, $LANE
insertlane constant: $T -> $T
    v1 = iconst.$L $C; v9 = insertlane v0, v1, 1
vconst:  -> $T
    v9 = vconst.$T $V
swiden_low|swiden_high|uwiden_low|uwiden_high: $T -> $W
    v9 = $OP v0
snarrow|unarrow|uunarrow: $T $T -> $N
    v9 = $OP v0, v1
fcvt_to_sint_sat|fcvt_to_uint_sat: $T -> $I
    v9 = $OP.$I v0
fcvt_from_sint|fcvt_from_uint: $I -> $T
    v9 = $OP.$T v0
fcvt_to_sint_sat and back: $T $T -> $T
    v2 = fcvt_to_sint_sat.$I v0; v3 = fcvt_from_sint.$T v2; v9 = fadd v3, v1
fvpromote_low: f32x4 -> f64x2
    v9 = fvpromote_low v0
fvdemote: f64x2 -> f32x4
    v9 = fvdemote v0
bitcast: $T -> $U
    v9 = bitcast.$U little v0
store 0|store 1|store 4|store 62|store 64: $T -> $T i8 i8
    ss0 = explicit_slot 1280, align = 64; v1 = stack_addr.i32 ss0; v2 = iconst.i32 0xa5
        istore8 v2, v1+$BEFORE; istore8 v2, v1+$AFTER; store v0, v1+$AT; v9 = load.$T v1+$AT
        v8 = load.i8 v1+$BEFORE; v7 = load.i8 v1+$AFTER
store_aligned 0: $T -> $T i8
    ss0 = explicit_slot 1280, align = 64; v1 = stack_addr.i32 ss0; store aligned v0, v1+$AT
        v9 = load.$T aligned v1+$AT; v8 = load.i8 v1+$LAST
store_anywhere 0: $T i32 -> i32 $T
    ss0 = explicit_slot 1280, align = 64; v11 = iconst.i32 63; v10 = band v1, v11; v2 = stack_addr.i32 ss0
        v3 = iconst.i64 0x1122_3344_5566_7788; v4 = iconst.i32 0; v5 = iconst.i32 8; v6 = iconst.i32 1280
        jump block1(v4); block1(v12: i32):; v13 = iadd v2, v12; store v3, v13; v14 = iadd v12, v5
        v15 = icmp ult v14, v6; brif v15, block1(v14), block2; block2:; v16 = iadd v2, v10; store v0, v16+$AT
        v8 = load.$T v16+$AT; v17 = iconst.i32 7; v18 = iconst.i32 31; v19 = iconst.i32 1; jump block3(v4, v17)
        block3(v30: i32, v31: i32):; v32 = iadd v2, v30; v33 = uload8.i32 v32; v34 = imul v31, v18
        v9 = iadd v34, v33; v35 = iadd v30, v19; v36 = icmp ult v35, v6; brif v36, block3(v35, v9), block4
        block4:
load_changed 0: $T -> $T
    ss0 = explicit_slot 1280, align = 64; v1 = stack_addr.i32 ss0; store v0, v1+5; v2 = load.$T v1+5
        v3 = extractlane v2, 1; v4 = bnot v2; v5 = insertlane v4, v3, 0; store aligned v5, v1+$AT
        v9 = load.$T v1+$AT
call: $T $T -> $T
    fn0 = %isub_$T($T, $T) -> $T; v2 = call fn0(v1, v0); v9 = iadd v2, v0
loop: $T $T i32 -> $T
    v11 = iconst.i32 7; v12 = band v2, v11; v10 = iconst.i32 1; v13 = iadd v12, v10; jump block1(v0, v13)
        block1(v3: $T, v4: i32):; v9 = iadd v3, v1; v5 = isub v4, v10; brif v5, block1(v9, v5), block2; block2:
@ON_BYTES: $T $I -> $T i8x16
    v2 = bitcast.i8x16 little v0; v3 = bitcast.i8x16 little v1; v4 = $OP; v9 = bitcast.$T little v4
        v5 = bitcast.$T little v2; v6 = band v9, v5; v8 = bitcast.i8x16 little v6
vany_true|vall_true: $T $I -> i8 i8 i8
    v2 = bitcast.i8x16 little v0; v9 = $OP v2; v4 = bxor v2, v2; v8 = $OP v4; v5 = bitcast.$I little v4
        v7 = $OP v5
vconst bytes: $T $I -> $I
    v2 = bitcast.i8x16 little v0; v3 = bitcast.i8x16 little v1
        v4 = vconst.i8x16 [1 2 3 4 255 255 255 255 0 0 0 0 128 0 7 9]; v5 = bitselect v4, v2, v3
        v6 = shuffle v5, v4, [0 1 2 3 20 21 22 23 16 17 18 19 12 13 14 15]; v9 = bitcast.$I little v6
icmp slt bytes: $T $T -> $T i8 i32
    v2 = bitcast.i8x16 little v0; v3 = bitcast.i8x16 little v1; v4 = icmp slt v0, v1
        v5 = bitcast.i8x16 little v4; v6 = bitselect v5, v2, v3; v9 = bitcast.$T little v6; v8 = vany_true v5
        v7 = vhigh_bits.i32 v5
block bytes: $T $I -> $T
    v2 = bitcast.i8x16 little v0; v3 = bitcast.i8x16 little v1; v4 = extractlane v2, 0
        brif v4, block1, block2(v3); block1:; v5 = bitcast.$T little v3; v6 = bitcast.i8x16 little v5
        v7 = bnot v6; jump block2(v7); block2(v8: i8x16):; v10 = band v8, v2; v9 = bitcast.$T little v10
";

/// The vector types: lanes, and their numbers.
const TYPES: &[(Type, &[u32])] = &[
    (types::I8, &[2, 4, 8, 16, 32, 64]),
    (types::I16, &[2, 4, 8, 16, 32, 64]),
    (types::I32, &[2, 4, 8, 16, 32, 64]),
    (types::I64, &[2, 4, 8]),
    (types::F32, &[2, 4, 8, 16, 32, 64]),
    (types::F64, &[2, 4, 8]),
];

/// The scalars, as types of casts.
const SCALARS: &[Type] = &[types::I16, types::I32, types::I64, types::I128, types::F32, types::F64];

fn vectors() -> impl Iterator<Item = Type> {
    let of = |&(lane, counts): &(Type, &'static [u32])| counts.iter().filter_map(move |&count| lane.by(count));
    TYPES.iter().flat_map(of)
}

/// An operation of a type.
pub struct Operation {
    /// The type.
    pub ty: Type,
    /// The text of the first function.
    pub text: String,
    /// The functions and calls.
    pub case: Case,
    /// The results of each call.
    pub results: Vec<Vec<Lanes>>,
}

/// Returns a run line.
pub fn run_line(func: &Function, args: &[Lanes], results: &[Lanes]) -> String {
    let list = |params: &[AbiParam], values| display(&host_list(params, values), params).join(", ");
    let results = match func.signature.returns.as_slice() {
        [one] => list(&[*one], results),
        all => format!("[{}]", list(all, results)),
    };
    format!(
        "; run: {}({}) == {results}",
        func.name,
        list(&func.signature.params, args)
    )
}

/// Returns a filetest of the operations of each type, with results from the evaluator.
pub fn vector_files() -> Vec<VectorFile> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for Operation {
        ty,
        text,
        case,
        results,
    } in operations()
    {
        let header = || "test run\ntarget naplespu strict_float=true\n".to_owned();
        let file = files.entry(format!("{ty}.clif")).or_insert_with(header);
        *file += &format!("\n{text}");
        for (call, results) in case.calls.iter().zip(&results) {
            *file += &format!("{}\n", run_line(&case.functions[0], &call.args, results));
        }
    }
    let file = |(name, text)| VectorFile { name, text };
    files.into_iter().map(file).collect()
}

/// Returns all operations.
pub fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for ty in vectors() {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut callee = None;
        for [names, params, results, body] in templates() {
            for name in names.split('|') {
                for texts in substituted([&params, &results, &body], name, ty) {
                    let label = name.split([' ', '.']).next().unwrap_or_default();
                    let number = numbers.entry(label.to_owned()).or_default();
                    let suffix = if *number == 0 {
                        String::new()
                    } else {
                        format!("_{number}")
                    };
                    let text = function_text(&format!("{label}_{ty}{suffix}"), &texts);
                    let Some((case, results)) = case(&text, callee.as_ref(), ty) else {
                        continue;
                    };
                    *number += 1;
                    if number == &1 && label == "isub" {
                        callee = case.functions.first().cloned();
                    }
                    all.push(Operation {
                        ty,
                        text,
                        case,
                        results,
                    });
                }
            }
        }
    }
    all
}

/// Returns the body of a function with more vectors than registers, live across a call.
fn pressure() -> String {
    let mut body = "fn0 = %isub_$T($T, $T) -> $T;".to_owned();
    for n in 0..72 {
        let (constant, all, sum) = (100 + n, 200 + n, 300 + n);
        body += &format!("v{constant} = iconst.$L {n}; v{all} = splat.$T v{constant}; v{sum} = iadd v0, v{all};");
    }
    body += "v400 = call fn0(v300, v371);";
    for n in 0..72 {
        let (product, last, next, other) = (500 + n, 400 + n, 401 + n, 300 + (n * 7 + 1) % 72);
        body += &format!(
            "v{product} = imul v{}, v{other}; v{next} = bxor v{last}, v{product};",
            300 + n
        );
    }
    body + "v9 = bxor v472, v0"
}

/// Returns names, parameters, results and body of each template.
fn templates() -> Vec<[String; 4]> {
    let mut all: Vec<[String; 4]> = Vec::new();
    let mut head = ["", "", ""];
    for line in TEMPLATES.lines().filter(|line| !line.is_empty()) {
        match (line.split_once(": "), all.last_mut()) {
            (Some((names, types)), _) if !line.starts_with(' ') => {
                let names = LISTS.iter().find(|list| list.0 == names).map_or(names, |list| list.1);
                let (params, results) = types.split_once("->").unwrap_or_default();
                head = [names, params, results];
            }
            (_, Some([.., body])) if line.starts_with("        ") => *body += &format!("\n{line}"),
            _ => all.push([head[0], head[1], head[2], line].map(str::to_owned)),
        }
    }
    all.push(["call", "$T", "$T", &pressure()].map(str::to_owned));
    all
}

/// Returns parameters, results and body with each value of the placeholders.
fn substituted(texts: [&str; 3], name: &str, ty: Type) -> Vec<[String; 3]> {
    let [params, _, body] = texts;
    let other = |ty: Option<Type>| ty.map_or("none".to_owned(), |ty| ty.to_string());
    let at = 64 + name.split(' ').nth(1).and_then(|at| at.parse().ok()).unwrap_or(0);
    let marks = [
        ("$AT", at.to_string()),
        ("$BEFORE", (at - 1).to_string()),
        ("$AFTER", (at + ty.bytes()).to_string()),
        ("$LAST", (at + ty.bytes() - ty.lane_type().bytes()).to_string()),
        ("$OP", name.to_owned()),
        ("$T", ty.to_string()),
        ("$L", ty.lane_type().to_string()),
        ("$I", ty.as_int().to_string()),
        ("$N", other(ty.split_lanes())),
        ("$W", other(ty.merge_lanes())),
    ];
    let fixed = |text: &str| {
        let replace = |text: String, (mark, value): &(&str, String)| text.replace(mark, value);
        marks.iter().fold(text.to_owned(), replace)
    };
    // A template with a fixed type belongs to that type only.
    if !params.contains('$') && !params.trim().is_empty() && params.trim() != ty.to_string() {
        return Vec::new();
    }
    let (width, count) = (ty.lane_bits(), ty.lane_count());
    let (min, max) = (i64::MIN >> (64 - width), i64::MAX >> (64 - width));
    // Some constants fit an immediate, others are just outside its range.
    let constants = [1, -1, 100, 255, -256, 256, -257, 65535, 65536, max, min];
    let constants = constants.into_iter().filter(|number| (min..=max).contains(number));
    let same = vectors()
        .chain(SCALARS.iter().copied())
        .filter(|other| other.bits() == ty.bits());
    let vector: Lanes = (0..count)
        .map(|lane| truncate(width, 0x0123_4567_89ab_cdef_u128.rotate_left(8 * lane)))
        .collect();
    let int = [AbiParam::new(ty.as_int())];
    let texts_of = |all: &[u32]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
    let floats = ["0.0", "0x1.0p2", "-0x1.0p0", "+NaN", "+Inf", "-0.0"];
    let mut lanes = vec![0, count / 2, count - 1];
    lanes.dedup();
    let choices = [
        ("$F", floats.map(str::to_owned).to_vec()),
        ("$C", constants.map(|number| number.to_string()).collect()),
        ("$BY", texts_of(&[0, 1, width - 1, width, width + 3, 100])),
        ("$LANE", texts_of(&lanes)),
        ("$V", display(&host_list(&int, &[vector]), &int)),
        ("$U", same.map(|other| other.to_string()).collect()),
    ];
    match choices.iter().find(|(mark, _)| body.contains(mark)) {
        Some((mark, choices)) => {
            let one = |choice: &String| texts.map(|text| fixed(&text.replace(mark, choice)));
            choices.iter().map(one).collect()
        }
        None => vec![texts.map(fixed)],
    }
}

/// Writes a function. Vectors of floats are passed as integers.
fn function_text(name: &str, [params, results, body]: &[String; 3]) -> String {
    let bits = |ty: &str| match ty.contains('x') {
        true => ty.replace('f', "i"),
        false => ty.to_owned(),
    };
    let (mut head, mut lines) = (Vec::new(), Vec::new());
    for (number, ty) in params.split_whitespace().enumerate() {
        let is_cast = bits(ty) != ty;
        let value = if is_cast { 20 + number } else { number };
        head.push(format!("v{value}: {}", bits(ty)));
        lines.extend(is_cast.then(|| format!("v{number} = bitcast.{ty} little v{value}")));
    }
    let is_declaration = |line: &&str| line.starts_with("ss") || line.starts_with("fn");
    let (declarations, own): (Vec<&str>, Vec<&str>) = {
        let lines = body.split([';', '\n']).map(str::trim);
        lines.filter(|line| !line.is_empty()).partition(is_declaration)
    };
    lines.extend(own.iter().map(|line| (*line).to_owned()));
    let mut returned = Vec::new();
    for (number, ty) in results.split_whitespace().enumerate() {
        let value = 9 - number;
        if bits(ty) != ty {
            lines.push(format!("v{} = bitcast.{} little v{value}", 40 + value, bits(ty)));
            returned.push(format!("v{}", 40 + value));
        } else {
            returned.push(format!("v{value}"));
        }
    }
    let list = |types: &str| types.split_whitespace().map(bits).collect::<Vec<_>>().join(", ");
    let mut text = format!("function %{name}({}) -> {} {{\n", list(params), list(results));
    for line in declarations {
        text += &format!("    {line}\n");
    }
    text += &format!("block0({}):\n", head.join(", "));
    for line in lines {
        let indent = if line.starts_with("block") { "" } else { "    " };
        text += &format!("{indent}{line}\n");
    }
    text += &format!("    return {}\n}}\n", returned.join(", "));
    text
}

/// Returns the function with calls and their results, or `None` if CLIF or the evaluator does not have
/// an instruction.
fn case(text: &str, callee: Option<&Function>, ty: Type) -> Option<(Case, Vec<Vec<Lanes>>)> {
    let func = cranelift_reader::parse_functions(text).ok()?.pop()?;
    let flags = settings::Flags::new(settings::builder());
    cranelift_codegen::verify_function(&func, &flags).ok()?;
    let params = types_of(&func.signature.params);
    let vectors = params.iter().filter(|ty| ty.is_vector()).count();
    let runs = match (ty.lane_count() == 16, vectors, text.contains("const")) {
        (_, 0, _) => 2,
        (true, 2, false) => 13,
        (true, _, false) => 6,
        (true, _, true) | (false, 1, false) => 2,
        (false, 1, true) => 1,
        (false, _, _) => 4,
    };
    let seed = text.bytes().fold(7, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let data = bytes(seed);
    let mut source = Unstructured::new(&data);
    let call = |run| Call {
        args: arguments(&mut Dice(&mut source), ty, &params, run),
        memory: None,
    };
    let calls = (0..runs).map(call).collect();
    let callee = callee.filter(|_| text.contains("fn0")).cloned();
    let case = Case {
        functions: [func].into_iter().chain(callee).collect(),
        calls,
        floats: Floats::Strict,
    };
    let outcomes = case.calls.iter().map(|call| expected(&case, call, Arithmetic::Ieee).0);
    let results = outcomes.collect::<Result<_, _>>().ok()?;
    Some((case, results))
}

/// Chooses arguments. Vectors are edge cases, near one another, or equal in all lanes but one.
fn arguments(dice: &mut Dice<'_, '_>, ty: Type, params: &[Type], run: usize) -> Vec<Lanes> {
    const NUMBERS: [i64; 17] = {
        let (min, max) = (i64::MIN, i64::MAX);
        [1, 0, -1, 31, 8, 33, 7, 15, 16, 32, 63, 64, 100, 255, 37, max, min]
    };
    let mut all: Vec<Lanes> = Vec::new();
    let value = u128::from(dice.number(ty));
    for param in params {
        let width = param.lane_bits();
        if !param.is_vector() {
            let number = NUMBERS[(run * 7 + dice.below(2)) % NUMBERS.len()];
            all.push(vec![truncate(width, i128::from(number).cast_unsigned())]);
            continue;
        }
        let mut lanes: Lanes = (0..param.lane_count()).map(|_| dice.number(ty).into()).collect();
        match (run % 4, all.first().filter(|first| first.len() == lanes.len())) {
            (1, Some(first)) => {
                for (lane, near) in lanes.iter_mut().zip(first).step_by(2) {
                    *lane = near.wrapping_add(dice.range(0, 2)).wrapping_sub(1);
                }
            }
            (2 | 3, _) => {
                let odd = dice.below(lanes.len());
                lanes.fill(value);
                lanes[odd] = value.wrapping_add(if run % 8 < 4 { dice.range(0, 2) } else { 0 });
            }
            _ => {}
        }
        all.push(lanes.iter().map(|&lane| truncate(width, lane)).collect());
    }
    all
}
