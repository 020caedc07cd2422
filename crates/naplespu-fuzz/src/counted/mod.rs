//! Random loops over memory, with all forms of counters, addresses, loop-carried values and exits.
//!
//! The arguments make each assumption of the optimizer true, barely true, or false.
//!
//! [`generate`] makes a function and calls of it. [`check`] compares the compiler with Cranelift's
//! interpreter: results, traps, and the whole memory. It skips calls with undefined behavior (an
//! access outside of the memory, or a broken promise of a flag) and calls with too many iterations.
//!
//! | file | content |
//! |---|---|
//! | `params` | parameters, arguments, trip counts |
//! | `write` | values, constants, operations |
//! | `access` | addresses, loads, stores |
//! | `nest` | loops, branches, exits, checks |

mod access;
mod dice;
mod nest;
mod params;
mod write;

use super::{Failure, STEPS, parse};
use crate::flat::{self, Ended};
use crate::generate::Ty;
use arbitrary::Unstructured;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::Isa;
use cranelift_naplespu::remarks::LoopRemark;
use dice::Dice;
use naplespu_jit::{Program, RunError};
use params::{BASES, BYTES, Param};
use std::fmt::Write as _;
use std::sync::Arc;
use write::{Style, Writer};

/// Number of bytes that a case is generated from.
const CHOICES: usize = 1 << 14;

/// Limit of CLIF instructions that the interpreter executes for one call.
const FUEL: u64 = 30_000;

/// Number of bytes before and after the memory that must not change.
const MARGIN: u32 = 256;

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The arguments.
    pub args: Vec<DataValue>,
    /// The address of the memory.
    pub base: u32,
    /// The seed for the contents of the memory.
    pub fill: u64,
}

/// A function and calls of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The text of the function.
    pub text: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// Whether the function computes with floats; only `strict_float` then gives the interpreter's
    /// results.
    pub strict_floats: bool,
}

/// Returns the bytes for [`generate`] that belong to a seed.
pub fn bytes(seed: u64) -> Vec<u8> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6c6f_6f70);
    (0..CHOICES / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Generates the case of some bytes.
pub fn case(data: &[u8]) -> Case {
    generate(&mut Unstructured::new(data))
}

/// Generates a function and calls of it.
pub fn generate(u: &mut Unstructured<'_>) -> Case {
    let mut dice = Dice(u);
    let style = style(&mut dice);
    let strict_floats = style.floats;
    let mut writer = Writer::new(dice, style);
    let returned = function(&mut writer);
    let Writer {
        mut dice,
        text: blocks,
        params,
        slots,
        style,
        bases,
        ..
    } = writer;
    let types = |all: &[Ty]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let param_types: Vec<Ty> = params.iter().map(Param::ty).collect();
    let list: Vec<String> = param_types
        .iter()
        .enumerate()
        .map(|(at, ty)| format!("v{at}: {ty}"))
        .collect();
    let mut text = format!("function %f0({}) -> {} {{\n", types(&param_types), types(&returned));
    if style.regions {
        for region in 0..bases.len() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    region{region} = {} \"array{region}\"", region + 20);
        }
    }
    for (number, size) in slots.iter().enumerate() {
        let _ = writeln!(text, "    ss{number} = explicit_slot {size}, align = 64");
    }
    let _ = write!(text, "block0({}):\n{blocks}}}\n", list.join(", "));
    let calls = (0..16)
        .map(|_| {
            let base = dice.one_of(&BASES);
            Call {
                args: params::arguments(&mut dice, &params, base),
                base,
                fill: dice.bits(),
            }
        })
        .collect();
    Case {
        text,
        calls,
        strict_floats,
    }
}

fn style(dice: &mut Dice<'_, '_>) -> Style {
    let plain = dice.chance(3, 4);
    let pure = plain && dice.chance(4, 5);
    let all: &[Ty] = match plain {
        true => &[Ty::I8, Ty::I8, Ty::I16, Ty::I16, Ty::I32, Ty::I32, Ty::I32, Ty::F32],
        false => &[Ty::I8, Ty::I16, Ty::I32, Ty::I32, Ty::I64, Ty::F32],
    };
    let least = if pure && dice.chance(1, 2) { 2 } else { 1 };
    let elements: Vec<Ty> = (0..dice.range(least, 3)).map(|_| dice.one_of(all)).collect();
    Style {
        elements,
        plain,
        pure,
        checks: dice.chance(1, if plain { 4 } else { 2 }),
        exits: !plain && dice.chance(1, 2),
        floats: !plain && dice.chance(1, 4),
        regions: dice.chance(1, 8),
        aligned: !dice.chance(1, 6),
        depth: dice.one_of(&[0, 0, 0, 0, 1, 1, 2]),
    }
}

/// Writes the whole function and returns the types of its results.
fn function(writer: &mut Writer<'_, '_>) -> Vec<Ty> {
    let bases = if writer.style.pure {
        writer.dice.one_of(&[1, 1, 2, 2, 2, 3])
    } else {
        writer.dice.range(1, 4)
    };
    for _ in 0..bases {
        writer.add_base();
    }
    for _ in 0..writer.dice.range(1, 3) {
        let ty = match writer.dice.below(3) {
            0 => writer.dice.one_of(&writer.style.elements.clone()),
            1 if !writer.style.plain => writer.dice.one_of(&[Ty::I8, Ty::I16, Ty::I64, Ty::F32]),
            _ => Ty::I32,
        };
        let param = writer.param(Param::Number(ty));
        writer.pool.push((param, ty));
    }
    if writer.dice.chance(1, 8) {
        writer.pointer_in_slot();
    }
    writer.nest(0);
    while writer.budget > 0 && writer.dice.chance(1, 4) {
        writer.nest(0);
    }
    let mut results = Vec::new();
    let mut types = Vec::new();
    let count = writer.pool.len();
    for at in count.saturating_sub(4)..count {
        let (value, ty) = writer.pool[at].clone();
        results.push(value);
        types.push(ty);
    }
    writer.line(&format!("return {}", results.join(", ")));
    types
}

/// A compiler under test.
#[derive(Clone)]
pub struct Compiler {
    /// The name of its settings.
    pub name: String,
    /// The target.
    pub isa: Arc<Isa>,
    /// Whether floats follow IEEE 754.
    pub strict_floats: bool,
    /// The compiler is used for every `every`-th seed.
    pub every: u64,
}

/// Returns compilers for both optimization levels; the second register allocator is used for few
/// seeds.
///
/// # Errors
///
/// The message of an unknown flag.
pub fn compilers() -> Result<Vec<Compiler>, String> {
    let mut all = Vec::new();
    for strict_floats in [false, true] {
        for (opt_level, algorithm, every) in [
            ("none", "backtracking", 1),
            ("speed", "backtracking", 1),
            ("speed", "single_pass", 7),
        ] {
            let shared = [("opt_level", opt_level), ("regalloc_algorithm", algorithm)];
            let own = [("strict_float", if strict_floats { "true" } else { "false" })];
            let (name, isa) = super::config(&shared, &own)?;
            all.push(Compiler {
                name,
                isa,
                strict_floats,
                every,
            });
        }
    }
    Ok(all)
}

/// The expected outcome of a call: how it ends, and the memory before and after it.
struct Expected<'c> {
    call: &'c Call,
    before: Vec<u8>,
    ended: Ended,
    after: Vec<u8>,
}

/// Counts of calls in [`check`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// All calls.
    pub calls: usize,
    /// Calls that return.
    pub returned: usize,
    /// Calls that trap.
    pub trapped: usize,
    /// Calls that exceed the limit of instructions.
    pub endless: usize,
}

impl Seen {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.returned += other.returned;
        self.trapped += other.trapped;
        self.endless += other.endless;
    }
}

/// Returns the contents of memory before a call: numbers of all magnitudes, small ones more
/// frequent.
fn memory(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(BYTES as usize + 8);
    while bytes.len() < BYTES as usize {
        let mut word = random.next();
        if seed.is_multiple_of(4) {
            word &= 0x0f0f_0f0f_0f0f_0f0f;
        }
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Compares the compilers with the interpreter on a case. `turn` selects the compilers that are not
/// used for every seed.
///
/// # Errors
///
/// Returns the first disagreement.
pub fn check(case: &Case, compilers: &[Compiler], turn: u64) -> Result<Seen, Failure> {
    let functions = parse(&case.text)?;
    let Some(func) = functions.first() else {
        return Err(Failure::Generator("no function".to_owned()));
    };
    check_function(func, case, compilers, turn)
}

fn check_function(func: &Function, case: &Case, compilers: &[Compiler], turn: u64) -> Result<Seen, Failure> {
    let explicit = flat::explicit(func);
    let mut seen = Seen::default();
    let mut all = Vec::new();
    for call in &case.calls {
        let before = memory(call.fill);
        let mut after = before.clone();
        let ended = flat::run(&explicit, &call.args, call.base, &mut after, FUEL).map_err(Failure::Generator)?;
        seen.calls += 1;
        match &ended {
            Ended::Returned(_) => seen.returned += 1,
            Ended::Trapped(_) => seen.trapped += 1,
            Ended::OutOfFuel => {
                seen.endless += 1;
                continue;
            }
            Ended::Undefined(_) => continue,
        }
        all.push(Expected {
            call,
            before,
            ended,
            after,
        });
    }
    if all.is_empty() {
        return Ok(seen);
    }
    for compiler in compilers {
        if compiler.strict_floats == case.strict_floats && turn.is_multiple_of(compiler.every) {
            compare(func, &all, compiler).map_err(|message| Failure::Mismatch {
                config: compiler.name.clone(),
                message,
            })?;
        }
    }
    Ok(seen)
}

fn compare(func: &Function, all: &[Expected<'_>], compiler: &Compiler) -> Result<(), String> {
    let mut program = Program::with_config(compiler.isa.clone(), npu_sim::Config::testing(super::FILL_SEED));
    program.set_step_limit(STEPS);
    program
        .define(func)
        .map_err(|error| format!("did not compile: {error}"))?;
    for expected in all {
        let call = expected.call;
        let low = call.base - MARGIN;
        let image = |inner: &[u8]| {
            let margin = vec![0xa5; MARGIN as usize];
            [&margin[..], inner, &margin[..]].concat()
        };
        program
            .write_memory(low, &image(&expected.before))
            .map_err(|error| error.to_string())?;
        let args: Vec<String> = call.args.iter().map(ToString::to_string).collect();
        let shown = format!("%f0({}) with memory {} at {:#x}", args.join(", "), call.fill, call.base);
        let ended = match program.call("f0", &call.args) {
            Ok(values) => Ended::Returned(values),
            Err(RunError::Trap(report)) if report.code.is_some() => {
                report.code.map_or(Ended::OutOfFuel, Ended::Trapped)
            }
            Err(error) => return Err(format!("{shown} fails: {error}; expected {:?}", expected.ended)),
        };
        if !same(&ended, &expected.ended) {
            return Err(format!("{shown} gives {ended:?}, expected {:?}", expected.ended));
        }
        let wanted = image(&expected.after);
        let mut found = vec![0; wanted.len()];
        let module = program.module().map_err(|error| error.to_string())?;
        module.read_memory(low, &mut found);
        if let Some(at) = (0..found.len()).find(|&at| found[at] != wanted[at]) {
            let count = (0..found.len()).filter(|&at| found[at] != wanted[at]).count();
            return Err(format!(
                "{shown} leaves {:#04x} at {:#x}, expected {:#04x}; {count} bytes differ",
                found[at],
                low.wrapping_add(at as u32),
                wanted[at],
            ));
        }
    }
    Ok(())
}

fn same(a: &Ended, b: &Ended) -> bool {
    match (a, b) {
        (Ended::Returned(a), Ended::Returned(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| super::same_value(a, b))
        }
        _ => a == b,
    }
}

/// The compiler's remarks on the loops of a case at `opt_level=speed`, and the passes that changed
/// it.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The remarks.
    pub loops: Vec<LoopRemark>,
    /// Whether a loop was versioned.
    pub versioned: bool,
    /// Whether a loop was unrolled.
    pub unrolled: bool,
}

/// Compiles a case and returns the effects of the loop passes.
///
/// # Errors
///
/// Returns an error if the case does not compile.
pub fn reached(case: &Case, isa: &Isa) -> Result<Reached, String> {
    use cranelift_naplespu::passes::Stage;
    let functions = parse(&case.text).map_err(|failure| failure.to_string())?;
    let Some(func) = functions.first() else {
        return Err("no function".to_owned());
    };
    let mut ctx = cranelift_codegen::Context::for_function(func.clone());
    let request = [Stage::Bits, Stage::Versioning, Stage::Selects, Stage::Unroll]
        .into_iter()
        .collect();
    let code = isa
        .compile_with_stages(&mut ctx, &mut Default::default(), request)
        .map_err(|error| error.to_string())?;
    let text = |stage: Stage| {
        code.stages
            .iter()
            .find(|(name, _)| *name == stage)
            .map(|(_, text)| text)
    };
    Ok(Reached {
        loops: code.loops.clone(),
        versioned: text(Stage::Bits) != text(Stage::Versioning),
        unrolled: text(Stage::Selects) != text(Stage::Unroll),
    })
}

/// Reduces a failing case to one call and a smaller function.
pub fn shrink(case: &Case, compilers: &[Compiler], tries: usize) -> Case {
    let mut case = case.clone();
    let fails = |case: &Case, func: Option<&Function>| {
        let outcome = match func {
            Some(func) => check_function(func, case, compilers, 0),
            None => check(case, compilers, 0),
        };
        outcome.err()
    };
    let Some(first) = fails(&case, None) else {
        return case;
    };
    for call in case.calls.clone() {
        let one = Case {
            calls: vec![call],
            ..case.clone()
        };
        if fails(&one, None).is_some_and(|failure| failure.same_kind(&first)) {
            case = one;
            break;
        }
    }
    let Ok(functions) = parse(&case.text) else {
        return case;
    };
    let Some(func) = functions.into_iter().next() else {
        return case;
    };
    let small = naplespu_reduce::function(func, tries, |candidate| {
        fails(&case, Some(candidate)).is_some_and(|failure| failure.same_kind(&first))
    });
    case.text = small.display().to_string();
    case
}

/// Generates a case from bytes and checks it. Shrinks a failing case.
///
/// # Errors
///
/// Returns a report of the shrunk case for a human reader.
pub fn run(data: &[u8], compilers: &[Compiler], turn: u64) -> Result<Seen, String> {
    let case = case(data);
    let failure = match check(&case, compilers, turn) {
        Ok(seen) => return Ok(seen),
        Err(failure) => failure,
    };
    if let Failure::Generator(_) = failure {
        return Err(format!("{failure}\n\n{}", case.text));
    }
    let small = shrink(&case, compilers, 1500);
    let failure = check(&small, compilers, 0).err().unwrap_or(failure);
    Err(format!("{failure}\n\n{}", small.text))
}
