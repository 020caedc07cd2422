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

/// The operations: name, types of parameters, type of the result, and body of the function. `T` is
/// the type, `L` that of a lane, `B` that of a compare's result, `W` that of widened lanes.
const OPERATIONS: &str = include_str!("vectors.tsv");

/// Returns the function of an operation on a type, or `None` if CLIF has no such form.
fn function(ty: &str, params: &str, result: &str, body: &str) -> Option<Function> {
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
        own(body).replace("; ", "\n    "),
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

/// Returns the table of costs.
pub fn costs() -> String {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    let mut builder = isa::lookup_by_name("naplespu").unwrap();
    builder.set("erratum_lost_result_before_taken_branch", "false").unwrap();
    let isa: Arc<Isa> = builder.finish(settings::Flags::new(flags)).unwrap();
    let mut text = format!("| | `{}` |\n", TYPES.join("` | `"));
    let _ = writeln!(text, "|---|{}", "---|".repeat(TYPES.len()));
    for row in OPERATIONS.lines().filter(|line| !line.starts_with('#')) {
        let [name, params, result, body] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns, not `{row}`");
        };
        let cost = |ty: &&str| {
            let function = function(ty, params, result, body);
            function.map_or(String::new(), |function| cost(&isa, function))
        };
        let costs: Vec<String> = TYPES.iter().map(cost).collect();
        assert!(costs.iter().any(|cost| !cost.is_empty()), "{name}");
        let _ = writeln!(text, "| {name} | {} |", costs.join(" | "));
    }
    text
}
