//! The costs of operations on short vectors, for `docs/vectors.md`.

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

Made by `cargo test --test all docs::`, which compiles a function for each number; do not edit.
[clif-support.md](clif-support.md) lists the supported instructions, and [abi.md](abi.md) describes
how vectors are passed.

A vector of 2, 4 or 8 lanes of `i8`, `i16`, `i32` or `f32` occupies the first lanes of a vector
register of sixteen lanes. An operation on it is the same instruction as on sixteen lanes. The other
lanes are undefined and never visible. A vector of 32 or 64 such lanes occupies two or four
registers, and an operation is executed on each of them. Lanes of other types (`i64`, `f64`, `f16`)
are scalars, except that `i64x8` and `i64x16` can be two vectors, of low and high words, between a
load and a store.

A number in the table is the machine instructions at `opt_level=speed`, without the return and nops,
of a function with this operation only. In parentheses are the instructions that load constants
before them, which a loop executes once. `call` is a call of a runtime routine.

";

const TAIL: &str = "
- An aligned load (the flag `aligned`) loads the cache line of the vector and shuffles its words
  down. It reads the rest of the line as well and ignores it. This is safe because a cache holds
  whole lines, and memory, stack and scratchpad end at the end of a line. For a load of a stack
  slot, the offset in the line is constant. Without the flag, a load of sixteen bytes loads the
  lines of the first and the last byte, so it touches only lines of the vector.
- A vector store to main memory writes all lanes whatever the mask is, but a store of bytes writes
  only sixteen bytes. So the lanes of a short vector of sixteen bytes are converted to bytes and
  stored at once if the address is aligned. Otherwise a routine stores them as words, in 10
  instructions at an address aligned to words and about 28 at others. No byte beside the vector is
  read or written.
- A cast to smaller lanes is a shuffle and a shift. A cast to larger lanes goes through the frame: a
  store packs the lanes and a load reads the words. Casts without a use, such as those between two
  operations on the same shape, cost nothing.
- A vector that is loaded, hardly used and stored is processed lane by lane if that takes fewer
  instructions: a copy of an `i32x4` is four loads and four stores, like a copy of an `i64x2`.
- In the scratchpad, short vectors are loaded and stored lane by lane.
- An access to a vector of several registers is one access for each register; the flag `aligned`
  promises alignment to the size of the whole vector. `select` moves all registers with one branch.
- `sqrt` and `fma`, and all float arithmetic with `strict_float=true`, are a call for each lane.
";

/// Operations: name, types of operands, type of the result, and body of the function. `T` is the
/// type, `L` that of a lane, `B` that of a compare's result, `W` that of widened lanes.
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

/// Returns the function of an operation on a type, or `None` if CLIF has no such form.
fn function(ty: &str, (_, params, result, body): (&str, &str, &str, &str)) -> Option<Function> {
    let (lane, count) = ty.split_once('x')?;
    let bits: u32 = lane[1..].parse().ok()?;
    let is_float = lane.starts_with('f');
    let is_shuffle = body.contains("shuffle") || body.contains("swizzle");
    let integers = ["uadd_sat", "ishl", "ushr", "iadd_pairwise", "swiden"];
    if body.contains("ss0") && ty == "i32x32" {
        // The stack slot is too small for the type.
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

/// Returns the number of instructions of the function, with those that load constants in
/// parentheses.
fn cost(isa: &Isa, function: Function) -> String {
    let mut ctx = Context::for_function(function);
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
    let (words, _) = code.bytes[..code.pool_start as usize].as_chunks();
    let decode = |&word: &[u8; 4]| npu_mc::decode(u32::from_le_bytes(word)).unwrap();
    let insts: Vec<Inst> = words.iter().map(decode).collect();
    let counts = insts
        .iter()
        .filter(|inst| !matches!(inst.opcode, Opcode::JRET | Opcode::NOP));
    // Constants follow the code, and their address is in the scratch register.
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
