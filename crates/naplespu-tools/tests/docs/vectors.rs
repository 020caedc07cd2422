//! What operations on vectors of other than sixteen lanes cost: `docs/vectors.md`.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::{Isa, isa};
use npu_mc::{Inst, Opcode};
use std::fmt::Write;
use std::sync::Arc;

const TYPES: [&str; 11] = [
    "i8x16", "i16x8", "i32x4", "f32x4", "i64x2", "f64x2", "i8x8", "i32x2", "i32x8", "i8x32", "i32x32",
];

const HEAD: &str = "\
# Short and long vectors

Made by `cargo test --test docs`, which compiles a function for each number; do not edit. `docs/clif-support.md` says what there is, `docs/abi.md` how vectors are passed.

A vector of 2, 4 or 8 lanes of `i8`, `i16`, `i32` or `f32` is held like one of sixteen lanes, with its lanes first, and an operation on lanes is the same instruction. What the other lanes
hold means nothing and never shows. A vector of 32 or 64 such lanes is held in two or four registers, and an operation on lanes is done to each of them. Lanes of other types (`i64`, `f64`, `f16`) are scalars, but `i64x8` and `i64x16` on their way from memory to memory are two vectors, of low and of high
words. The numbers are machine instructions at `opt_level=speed`, beside the return and nops, of a function that does nothing else. In parentheses is what comes before them to load
constants, which a loop does once. `call` means a routine of the runtime.

";

const TAIL: &str = "
- An aligned load (the flag `aligned`) takes the line of the cache that the vector is in, and shuffles its words down. Whatever else is in the line is read and not used: a cache holds whole
  lines, and memory ends at the end of one, the stack and the scratchpad likewise. A load of a stack slot knows its place in the line. Without the flag, a load of sixteen bytes takes the
  line of the first byte and that of the last one, so it touches no line that the vector is not in.
- A store to main memory writes all sixteen lanes whatever the mask says, but a store of bytes writes sixteen of them. So sixteen bytes are made bytes and stored at once, if they are aligned; else a
  routine stores them as words, 10 instructions at an address aligned to words and about 28 at others. No byte beside the vector is written, and none is read and written back.
- A cast to smaller lanes is a shuffle and a shift. One to larger lanes goes through the frame: a store packs the lanes and a load takes the words. Casts that nobody needs, such as those
  between two operations on the same shape, cost nothing.
- What is loaded, hardly used and stored is done lane by lane where that takes fewer instructions: a copy of an `i32x4` is four loads and four stores, as of `i64x2`.
- In the scratchpad short vectors are loaded and stored lane by lane.
- An access to a vector of several registers is one for each register, and the flag `aligned` says that the vector is aligned to its whole size. `select` chooses all registers by one branch.
- `sqrt` and `fma`, and all arithmetic of floats with `strict_float=true`, are a call for each lane.
";

/// Operations: what they are called, the types of operands, the type of the result, and the function's body. `T` is the type, `L` that
/// of a lane, `B` that of the truth of lanes, `C` the type that is cast to.
const OPERATIONS: [(&str, &str, &str, &str); 33] = [
    ("`load` aligned", "i32", "T", "v9 = load.T aligned v0"),
    ("`load`", "i32", "T", "v9 = load.T v0"),
    ("`store` aligned", "T, i32", "", "store aligned v0, v1"),
    ("`store`", "T, i32", "", "store v0, v1"),
    (
        "an aligned copy",
        "i32, i32",
        "",
        "v2 = load.T aligned v0\n    store aligned v2, v1",
    ),
    (
        "the sum of two in memory",
        "i32, i32, i32",
        "",
        "v3 = load.T aligned v0\n    v4 = load.T aligned v1\n    v5 = ADD v3, v4\n    store aligned v5, v2",
    ),
    (
        "`load` of a stack slot",
        "i32",
        "T",
        "v1 = stack_addr.i32 ss0\n    store v0, v1+36\n    v9 = load.T aligned v1+32",
    ),
    ("`iadd`, `fadd`", "T, T", "T", "v9 = ADD v0, v1"),
    ("`imul`, `fmul`", "T, T", "T", "v9 = MUL v0, v1"),
    ("`band`", "T, T", "T", "v9 = band v0, v1"),
    ("`bnot`", "T", "T", "v9 = bnot v0"),
    ("`smin`, `fmin`", "T, T", "T", "v9 = MIN v0, v1"),
    ("`uadd_sat`", "T, T", "T", "v9 = uadd_sat v0, v1"),
    ("`iabs`, `fabs`", "T", "T", "v9 = ABS v0"),
    ("`ishl` by a scalar", "T, i32", "T", "v9 = ishl v0, v1"),
    ("`ushr` by 3", "T", "T", "v1 = iconst.i32 3\n    v9 = ushr v0, v1"),
    ("`icmp slt`, `fcmp lt`", "T, T", "B", "v9 = CMP v0, v1"),
    (
        "the same and `bitselect`",
        "T, T",
        "T",
        "v2 = CMP v0, v1\n    v3 = bitcast.T little v2\n    v9 = bitselect v3, v0, v1",
    ),
    (
        "the same and `vany_true`",
        "T, T",
        "i8",
        "v2 = CMP v0, v1\n    v9 = vany_true v2",
    ),
    (
        "the same and `vall_true`",
        "T, T",
        "i8",
        "v2 = CMP v0, v1\n    v9 = vall_true v2",
    ),
    ("`vhigh_bits`", "T", "i32", "v9 = vhigh_bits.i32 v0"),
    ("`select` by a scalar", "i32, T, T", "T", "v9 = select v0, v1, v2"),
    ("`splat`", "L", "T", "v9 = splat.T v0"),
    ("`extractlane` 1", "T", "L", "v9 = extractlane v0, 1"),
    ("`insertlane` 1", "T, L", "T", "v9 = insertlane v0, v1, 1"),
    (
        "`shuffle` of one vector",
        "i8x16",
        "T",
        "v9 = shuffle v0, v0, [3 2 1 0 7 6 5 4 11 10 9 8 15 14 13 12]",
    ),
    (
        "`shuffle` of two",
        "i8x16, i8x16",
        "T",
        "v9 = shuffle v0, v1, [0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23]",
    ),
    ("`swizzle`", "i8x16, i8x16", "T", "v9 = swizzle v0, v1"),
    ("`bitcast` from `i8x16`", "i8x16", "T", "v9 = bitcast.T little v0"),
    ("`bitcast` to `i8x16`", "T", "i8x16", "v9 = bitcast.i8x16 little v0"),
    ("`bitcast` from `i32x4`", "i32x4", "T", "v9 = bitcast.T little v0"),
    ("`iadd_pairwise`", "T, T", "T", "v9 = iadd_pairwise v0, v1"),
    ("`swiden_low`", "T", "W", "v9 = swiden_low v0"),
];

/// The function of an operation on a type; none if CLIF has no such form.
fn function(ty: &str, (_, params, result, body): (&str, &str, &str, &str)) -> Option<Function> {
    let (lane, count) = ty.split_once('x')?;
    let bits: u32 = lane[1..].parse().ok()?;
    let is_float = lane.starts_with('f');
    let is_shuffle = body.contains("shuffle") || body.contains("swizzle");
    let integers = ["uadd_sat", "ishl", "ushr", "iadd_pairwise", "swiden"];
    if body.contains("ss0") && ty == "i32x32" {
        // The slot has no room for it.
        return None;
    }
    if is_shuffle && ty != "i8x16" || is_float && integers.iter().any(|op| body.contains(op)) {
        return None;
    }
    let wide = format!("i{}x{}", 2 * bits, count.parse::<u32>().ok()? / 2);
    let own = |text: &str| {
        let pick = |int: &str, float: &str| if is_float { float.to_owned() } else { int.to_owned() };
        let names = [
            ("ADD", pick("iadd", "fadd")),
            ("MUL", pick("imul", "fmul")),
            ("MIN", pick("smin", "fmin")),
            ("ABS", pick("iabs", "fabs")),
            ("CMP", pick("icmp slt", "fcmp lt")),
            ("T", ty.to_owned()),
            ("L", lane.to_owned()),
            ("B", format!("i{bits}x{count}")),
            ("W", wide.clone()),
        ];
        names
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    let params: Vec<String> = own(params).split(", ").map(str::to_owned).collect();
    let named: Vec<String> = params
        .iter()
        .zip(0..)
        .map(|(ty, number)| format!("v{number}: {ty}"))
        .collect();
    let (result, results) = (own(result), if result.is_empty() { "" } else { "v9" });
    let slot = match body.contains("ss0") {
        true => "    ss0 = explicit_slot 64, align = 64\n",
        false => "",
    };
    let arrow = if result.is_empty() { "" } else { "-> " };
    let text = format!(
        "function %f({}) {arrow}{result} {{\n{slot}block0({}):\n    {}\n    return {results}\n}}\n",
        params.join(", "),
        named.join(", "),
        own(body),
    );
    let functions = cranelift_reader::parse_functions(&text).ok()?;
    let function = functions.into_iter().next()?;
    let flags = settings::Flags::new(settings::builder());
    cranelift_codegen::verify_function(&function, &flags).ok()?;
    Some(function)
}

/// How many instructions the function takes, and how many of them load constants.
fn cost(isa: &Isa, function: Function) -> String {
    let mut ctx = Context::for_function(function);
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
    let (words, _) = code.bytes[..code.pool_start as usize].as_chunks();
    let decode = |&word: &[u8; 4]| npu_mc::decode(u32::from_le_bytes(word)).unwrap();
    let insts: Vec<Inst> = words.iter().map(decode).collect();
    let counts = insts
        .iter()
        .filter(|inst| !matches!(inst.opcode, Opcode::JRET | Opcode::NOP));
    // Constants stand behind the code, and their address is in the scratch register.
    let of_constants = |inst: &&Inst| inst.to_string().split([' ', ',', '(', ')']).any(|word| word == "tr");
    let constants = counts.clone().filter(of_constants).count();
    let mut text = (counts.count() - constants).to_string();
    if constants > 0 {
        let _ = write!(text, " ({constants})");
    }
    if code
        .relocs
        .iter()
        .any(|reloc| matches!(reloc.target, RelocTarget::Runtime(_)))
    {
        text += " call";
    }
    text
}

pub fn document() -> String {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    let mut builder = isa::lookup_by_name("naplespu").unwrap();
    builder.set("erratum_lost_result_before_taken_branch", "false").unwrap();
    let isa: Arc<Isa> = builder.finish(settings::Flags::new(flags)).unwrap();
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "| | `{}` |", TYPES.join("` | `"));
    let _ = writeln!(text, "|---|{}", "---|".repeat(TYPES.len()));
    for operation in OPERATIONS {
        let costs: Vec<String> = TYPES
            .iter()
            .map(|ty| function(ty, operation).map_or(String::new(), |function| cost(&isa, function)))
            .collect();
        assert!(costs.iter().any(|cost| !cost.is_empty()), "{}", operation.0);
        let _ = writeln!(text, "| {} | {} |", operation.0, costs.join(" | "));
    }
    text + TAIL
}
