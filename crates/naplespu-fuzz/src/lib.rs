//! Differential testing: random scalar CLIF, compiled and simulated, against `cranelift-interpreter`.
//!
//! `generate` makes valid functions from bytes, [`check`] compares, [`shrink`](shrink::shrink) makes a failing case
//! small. The same body runs under `cargo test` for a fixed number of seeds and under cargo-fuzz without end. Not part
//! of the public contract of this crate.
//!
//! Where the interpreter is known to be wrong the generator stays away: signed sums with a carry, negative offsets,
//! `isplit` and `iconcat` of narrow types, floats to unsigned i128. It cannot take the address of a function, so what is
//! an indirect call for the compiler is a direct call in the text that the interpreter reads. Of a NaN only that it is
//! one is compared, and floats are computed with `strict_float`.

#![deny(missing_docs)]

mod anything;
pub mod arrays;
mod body;
pub mod compiles;
pub mod counted;
mod flat;
pub mod generate;
mod instruction;
pub mod lanes;
mod loops;
pub mod model;
mod operations;
pub mod seeds;
pub mod shape_files;
pub mod shrink;
pub mod vector_files;

pub use generate::{Case, generate};

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, TrapCode, Type, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use cranelift_naplespu::Isa;
use naplespu_jit::Program;
use naplespu_jit::RunError;
use std::fmt;
use std::sync::Arc;

/// CLIF instructions that the interpreter may execute for one call.
const FUEL: u64 = 100_000;

/// Machine instructions for the same call, more than [`FUEL`] can need.
const STEPS: u64 = 50_000_000;

/// Seed of what memory and registers hold that nobody wrote.
const FILL_SEED: u64 = 1;

/// What a call comes to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It returned.
    Results(Vec<DataValue>),
    /// It trapped.
    Trap(TrapCode),
}

impl Outcome {
    /// Whether it is the same, where NaNs are all the same.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Results(a), Self::Results(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
            }
            (Self::Trap(a), Self::Trap(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Results(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Trap(code) => write!(f, "trap {code}"),
        }
    }
}

/// Why a case is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The generator made CLIF that is not valid, or that the interpreter cannot run: a fault of the generator.
    Generator(String),
    /// Compiler and interpreter disagree.
    Mismatch {
        /// Under which settings.
        config: String,
        /// What was called and what came out.
        message: String,
    },
}

impl Failure {
    /// Whether two failures look like the same fault, so that shrinking does not drift from one to another.
    pub fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mismatch { config: a, message: m }, Self::Mismatch { config: b, message: n }) => {
                a == b && m.contains("did not compile") == n.contains("did not compile")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generator(what) => write!(f, "generator: {what}"),
            Self::Mismatch { config, message } => write!(f, "{config}: {message}"),
        }
    }
}

/// A compiler under test, with the name of its settings.
pub type Config = (String, Arc<Isa>);

/// A target with these shared flags and settings of its own, and the checker of register allocation on.
fn config(flags: &[(&str, &str)], target: &[(&str, &str)]) -> Result<Config, String> {
    let mut shared = settings::builder();
    for (name, value) in flags.iter().chain(&[("regalloc_checker", "true")]) {
        shared.set(name, value).map_err(|error| error.to_string())?;
    }
    let mut builder = cranelift_naplespu::isa::lookup_by_name("naplespu").map_err(|error| error.to_string())?;
    for (name, value) in target {
        builder.set(name, value).map_err(|error| error.to_string())?;
    }
    let named = flags
        .iter()
        .chain(target)
        .map(|(name, value)| format!("{name}={value}"));
    let name = named.collect::<Vec<_>>().join(" ");
    let isa = builder.finish(settings::Flags::new(shared));
    Ok((name, isa.map_err(|error| error.to_string())?))
}

/// Both optimization levels with both register allocators, strict floats, verifier and checker on.
///
/// # Errors
///
/// The message of a flag that Cranelift does not know.
pub fn configs() -> Result<Vec<Config>, String> {
    let mut all = Vec::new();
    for opt_level in ["none", "speed"] {
        for algorithm in ["backtracking", "single_pass"] {
            let flags = [("opt_level", opt_level), ("regalloc_algorithm", algorithm)];
            all.push(config(&flags, &[("strict_float", "true")])?);
        }
    }
    Ok(all)
}

fn parse(text: &str) -> Result<Vec<Function>, Failure> {
    let functions = cranelift_reader::parse_functions(text).map_err(|error| Failure::Generator(error.to_string()))?;
    let flags = settings::Flags::new(settings::builder());
    for function in &functions {
        cranelift_codegen::verify_function(function, &flags)
            .map_err(|errors| Failure::Generator(format!("{}: {errors}", function.name)))?;
    }
    Ok(functions)
}

/// An argument as a value of its type.
fn argument(ty: Type, bits: u128) -> DataValue {
    match ty {
        types::I8 => DataValue::I8(bits as i8),
        types::I16 => DataValue::I16(bits as i16),
        types::I64 => DataValue::I64(bits as i64),
        types::I128 => DataValue::I128(bits.cast_signed()),
        types::F32 => DataValue::F32(Ieee32::with_bits(bits as u32)),
        types::F64 => DataValue::F64(Ieee64::with_bits(bits as u64)),
        _ => DataValue::I32(bits as i32),
    }
}

/// Whether two values are the same bits, or both a NaN.
fn same_value(a: &DataValue, b: &DataValue) -> bool {
    match (a, b) {
        (DataValue::F32(a), DataValue::F32(b)) => a.bits() == b.bits() || a.is_nan() && b.is_nan(),
        (DataValue::F64(a), DataValue::F64(b)) => a.bits() == b.bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// Interprets a call; `None` if it takes too long.
fn interpret(functions: &[Function], args: &[DataValue]) -> Result<Option<Outcome>, Failure> {
    let mut store = FunctionStore::default();
    for function in functions {
        store.add(function.name.to_string(), function);
    }
    let state = InterpreterState::default().with_function_store(store);
    let mut interpreter = Interpreter::new(state).with_fuel(Some(FUEL));
    match interpreter.call_by_name("%f0", args) {
        Ok(ControlFlow::Return(values)) => Ok(Some(Outcome::Results(values.to_vec()))),
        Ok(ControlFlow::Trap(CraneliftTrap::User(code))) => Ok(Some(Outcome::Trap(code))),
        Ok(other) => Err(Failure::Generator(format!("the interpreter ended with {other:?}"))),
        Err(cranelift_interpreter::interpreter::InterpreterError::FuelExhausted) => Ok(None),
        Err(error) => Err(Failure::Generator(format!("the interpreter failed: {error}"))),
    }
}

/// Arguments of a call, and what it comes to; `None` if the interpreter takes too long.
pub type Expected = (Vec<DataValue>, Option<Outcome>);

/// Verifies and interprets a case: what its calls should come to, by set of arguments.
///
/// # Errors
///
/// [`Failure::Generator`].
pub fn expected(case: &Case) -> Result<Vec<Expected>, Failure> {
    let functions = parse(&case.text(true))?;
    let Some(first) = functions.first() else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for bits in &case.args {
        let params = first.signature.params.iter();
        let args: Vec<DataValue> = params
            .enumerate()
            .map(|(i, p)| argument(p.value_type, bits.get(i).copied().unwrap_or(0)))
            .collect();
        let outcome = interpret(&functions, &args)?;
        all.push((args, outcome));
    }
    Ok(all)
}

/// Compares compiler and interpreter on one case under all the settings given.
///
/// # Errors
///
/// The first disagreement.
pub fn check(case: &Case, programs: &Programs) -> Result<(), Failure> {
    let expected = expected(case)?;
    let functions = parse(&case.text(false))?;
    for (config, isa) in &programs.0 {
        let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(FILL_SEED));
        program.set_step_limit(STEPS);
        let mismatch = |message: String| Failure::Mismatch {
            config: config.clone(),
            message,
        };
        for function in &functions {
            program
                .define(function)
                .map_err(|error| mismatch(format!("{} did not compile: {error}", function.name)))?;
        }
        for (args, outcome) in &expected {
            let Some(outcome) = outcome else { continue };
            let actual = match program.call("f0", args) {
                Ok(values) => Ok(Outcome::Results(values)),
                Err(RunError::Trap(report)) if report.code.is_some() => {
                    report.code.map(Outcome::Trap).ok_or_else(String::new)
                }
                Err(error) => Err(error.to_string()),
            };
            if !actual.as_ref().is_ok_and(|actual| actual.same(outcome)) {
                let got = actual.map_or_else(|error| error, |outcome| outcome.to_string());
                let args: Vec<String> = args.iter().map(ToString::to_string).collect();
                return Err(mismatch(format!(
                    "%f0({}) gives {got}, expected {outcome}",
                    args.join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// The compilers under test.
pub struct Programs(Vec<Config>);

impl Programs {
    /// These compilers.
    pub fn new(configs: &[Config]) -> Self {
        Self(configs.to_vec())
    }
}

/// Bytes for the generator from a seed.
pub fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(4096);
    while out.len() < 4096 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes());
    }
    out
}

/// Runs the case of some bytes; a failure comes back shrunk, as text for a person.
///
/// # Errors
///
/// The report.
pub fn run(data: &[u8], programs: &Programs) -> Result<(), String> {
    // Bytes that run out are no failure: the generator then takes zeros.
    let Ok(case) = generate(&mut arbitrary::Unstructured::new(data)) else {
        return Ok(());
    };
    let Err(failure) = check(&case, programs) else {
        return Ok(());
    };
    let small = shrink::shrink(case, |candidate| {
        check(candidate, programs).is_err_and(|candidate| candidate.same_kind(&failure))
    });
    let failure = check(&small, programs).err().unwrap_or(failure);
    Err(format!("{failure}\n\n{}", small.text(false)))
}
