//! Differential testing: random CLIF, compiled and simulated, against `cranelift-interpreter`.
//!
//! `generate` makes valid functions from bytes, [`check`] compares the results, and
//! [`shrink`](shrink::shrink) reduces a failing case. The same body runs under `cargo test` for a
//! fixed number of seeds and under cargo-fuzz without a limit. This crate is not part of the public
//! contract of the project.
//!
//! The generator avoids features that the interpreter executes wrongly: signed sums with a carry,
//! negative offsets, `isplit` and `iconcat` of narrow types, and conversions of floats to unsigned
//! i128. The interpreter cannot take the address of a function, so an indirect call in the text for
//! the compiler is a direct call in the text for the interpreter. All NaNs compare equal. Floats
//! are computed with `strict_float`.

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

/// Limit of CLIF instructions that the interpreter executes for one call.
const FUEL: u64 = 100_000;

/// Limit of machine instructions for one call; higher than a call within [`FUEL`] can need.
const STEPS: u64 = 50_000_000;

/// The seed for the initial contents of memory and registers.
const FILL_SEED: u64 = 1;

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The call returned these values.
    Results(Vec<DataValue>),
    /// The call trapped with this code.
    Trap(TrapCode),
}

impl Outcome {
    /// Returns whether two outcomes are equal; all NaNs are equal.
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

/// Why a case fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The generated CLIF is invalid or cannot be interpreted: a bug of the generator.
    Generator(String),
    /// Compiler and interpreter disagree.
    Mismatch {
        /// The settings of the compiler.
        config: String,
        /// The call and both outcomes.
        message: String,
    },
}

impl Failure {
    /// Returns whether two failures probably have the same cause. Shrinking keeps only cases that
    /// fail in the same way as the original.
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

/// Builds a target with the given shared flags and target settings, with the checker of register
/// allocation on.
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

/// Returns both optimization levels with both register allocators, with strict floats, verifier and
/// register allocation checker on.
///
/// # Errors
///
/// The message of a flag that Cranelift does not have.
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

/// Returns the low bits as a value of the type.
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

/// Returns whether two values have the same bits or are both NaN.
fn same_value(a: &DataValue, b: &DataValue) -> bool {
    match (a, b) {
        (DataValue::F32(a), DataValue::F32(b)) => a.bits() == b.bits() || a.is_nan() && b.is_nan(),
        (DataValue::F64(a), DataValue::F64(b)) => a.bits() == b.bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// Interprets a call. Returns `None` if it runs out of fuel.
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

/// The arguments of a call and its expected outcome. The outcome is `None` if the interpreter runs
/// out of fuel.
pub type Expected = (Vec<DataValue>, Option<Outcome>);

/// Verifies and interprets a case. Returns the expected outcome for each set of arguments.
///
/// # Errors
///
/// Returns [`Failure::Generator`] if the case is invalid.
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

/// Compares compiler and interpreter on one case under all given settings.
///
/// # Errors
///
/// Returns the first disagreement.
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
    /// Creates the set of compilers.
    pub fn new(configs: &[Config]) -> Self {
        Self(configs.to_vec())
    }
}

/// Returns the bytes for the generator that belong to a seed.
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

/// Generates a case from the bytes and checks it. Shrinks a failing case.
///
/// # Errors
///
/// Returns a report of the shrunk case for a human reader.
pub fn run(data: &[u8], programs: &Programs) -> Result<(), String> {
    // The generator reads zeros after the end of the bytes, so an error is not a failure of the
    // compiler.
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
