//! Differential testing: random CLIF, compiled and simulated, against an evaluator.
//!
//! A program is a list of CLIF functions: Cranelift's data structure is also the one of the
//! generators, of the evaluator and of the reduction of failing cases.
//!
//! | module | content |
//! |---|---|
//! | `instruction` | any instruction, with operands in scope |
//! | `anything` | functions over all of CLIF, to test only that the compiler does not panic |
//! | [`programs`] | programs with loops, branches, accesses and calls, for each [`Strategy`] |
//! | [`operations`] | functions of single operations on each type |
//! | `configs` | the compilers of each strategy |
//! | [`eval`], [`lane`] | a case and its results, and the result of an operation on one lane |
//!
//! [`check`] compares the results and the memory, and [`run`] also reduces a failing case. The same
//! body runs under `cargo test` for a fixed number of seeds and under cargo-fuzz without a limit.
//! This crate is not part of the public contract of the project.

#![deny(missing_docs)]

mod anything;
mod configs;
pub mod eval;
mod instruction;
pub mod lane;
pub mod programs;
mod random;

pub use configs::Config;
pub use eval::{Call, Case, Floats, host_list};
pub use programs::{Strategy, operations};
pub use random::bytes;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings;
use cranelift_naplespu::{CompileError, Isa, inlining, verify_function};
use eval::{Outcome, Stop};
use lane::Arithmetic;
use naplespu_jit::{Program, RunError};
use naplespu_reader::panics::caught;
use std::fmt;
use std::sync::Arc;

/// Limit of machine instructions for one call; higher than a call within the evaluator's limit can
/// need.
const STEPS: u64 = 50_000_000;

/// The seed for the initial contents of memory and registers.
const FILL_SEED: u64 = 1;

/// Number of bytes before and after the memory of a call that must not change.
const MARGIN: u32 = 256;

/// The largest number of evaluations while reducing a failing function.
const TRIES: usize = 2000;

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The generated CLIF is invalid or cannot be evaluated: a bug of the generator.
    Generator,
    /// Compiler and evaluator disagree.
    Mismatch,
    /// The compiler returns an error for a program that it must compile.
    Refused,
    /// The compiler panics, or returns a wrong error.
    Panic,
}

/// Why a case fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// The settings of the compiler, or the function that is not valid.
    pub config: String,
    /// The call and both outcomes, or the message of the compiler.
    pub message: String,
}

impl Failure {
    fn new(kind: Kind, config: impl ToString, message: impl ToString) -> Self {
        let (config, message) = (config.to_string(), message.to_string());
        Self { kind, config, message }
    }

    /// Returns whether two failures probably have the same cause. Shrinking keeps only cases that
    /// fail in the same way as the original.
    fn same_kind(&self, other: &Self) -> bool {
        // Messages of panics are the same except for numbers.
        let plain = |failure: &Self| -> String {
            let kept = failure.message.chars().take_while(|&c| c != '\n');
            kept.filter(|c| !c.is_ascii_digit()).take(60).collect()
        };
        let is_same = self.kind == other.kind && self.config == other.config;
        is_same && (self.kind != Kind::Panic || plain(self) == plain(other))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}: {}", self.kind, self.config, self.message)
    }
}

/// Counts in [`check`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// All calls.
    pub calls: usize,
    /// Calls that return.
    pub returned: usize,
    /// Calls that trap.
    pub trapped: usize,
    /// Compilers that refuse a function, in a case without calls.
    pub refused: usize,
}

/// Compares compilers and evaluator on a case. `turn` selects the compilers that are not used for
/// every seed. Calls with undefined behavior or too many instructions are not compared.
///
/// # Errors
///
/// Returns the first disagreement.
pub fn check(case: &Case, configs: &[Config], turn: u64) -> Result<Seen, Failure> {
    let flags = settings::Flags::new(settings::builder());
    for func in &case.functions {
        verify_function(func, &flags).map_err(|errors| Failure::new(Kind::Generator, &func.name, errors))?;
    }
    let outcomes = |arithmetic| -> Vec<Outcome> {
        let calls = case.calls.iter();
        calls.map(|call| eval::call(case, call, arithmetic)).collect()
    };
    let ieee = outcomes(Arithmetic::Ieee);
    let machine = (case.floats == Floats::Any).then(|| outcomes(Arithmetic::Machine));
    let mut seen = Seen::default();
    for (ended, _) in &ieee {
        seen.calls += 1;
        match ended {
            Ok(_) => seen.returned += 1,
            Err(Stop::Trapped(_)) => seen.trapped += 1,
            Err(Stop::OutOfFuel | Stop::Undefined(_)) => {}
            Err(Stop::Unsupported(opcode)) => return Err(Failure::new(Kind::Generator, opcode, "no evaluation")),
        }
    }
    for (name, isa) in configs.iter().filter(|config| is_used(config, case, turn)) {
        let failure = |(kind, message)| Failure::new(kind, name, message);
        if case.calls.is_empty() {
            seen.refused += usize::from(refuses(case, isa).map_err(failure)?);
            continue;
        }
        let machine = machine.as_ref().filter(|_| !isa.settings().strict_float);
        compare(case, machine.unwrap_or(&ieee), isa).map_err(failure)?;
    }
    Ok(seen)
}

/// Returns whether the case runs with a compiler.
fn is_used(config: &Config, case: &Case, turn: u64) -> bool {
    // Register allocation does not depend on loops over memory.
    let has_memory = case.calls.iter().any(|call| call.memory.is_some());
    let is_seldom = has_memory && config.0.contains("single_pass");
    let is_strict = config.1.settings().strict_float;
    let fits = case.floats == Floats::Any || is_strict == (case.floats == Floats::Strict);
    fits && (turn.is_multiple_of(7) || !is_seldom)
}

/// Returns whether the compiler refuses a function. A panic or a wrong error is a failure.
fn refuses(case: &Case, isa: &Isa) -> Result<bool, (Kind, String)> {
    let mut is_refused = false;
    for func in &case.functions {
        let outcome = caught(|| {
            let mut ctx = Context::for_function(func.clone());
            isa.compile(&mut ctx, &mut ControlPlane::default()).map(|_| ())
        });
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(CompileError::Unsupported(refusals))) if !refusals.is_empty() => is_refused = true,
            Ok(Err(error)) => return Err((Kind::Panic, error.to_string())),
            Err(panic) => return Err((Kind::Panic, format!("panic: {panic}"))),
        }
    }
    Ok(is_refused)
}

/// Compares a compiler with the outcomes of all calls.
fn compare(case: &Case, outcomes: &[Outcome], isa: &Arc<Isa>) -> Result<(), (Kind, String)> {
    let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(FILL_SEED));
    program.set_step_limit(STEPS);
    let mut functions = case.functions.clone();
    inlining::inline_text(isa, &mut functions).map_err(|error| (Kind::Refused, error.to_string()))?;
    for func in &functions {
        let defined = program.define(func);
        defined.map_err(|error| (Kind::Refused, format!("{}: {error}", func.name)))?;
    }
    let is_compared = |outcome: &Outcome| matches!(outcome.0, Ok(_) | Err(Stop::Trapped(_)));
    let calls = case.calls.iter().zip(outcomes);
    for (call, outcome) in calls.filter(|(_, outcome)| is_compared(outcome)) {
        let func = &case.functions[0];
        call_one(&mut program, func, call, outcome).map_err(|found| {
            let line = operations::run_line(func, &call.args, outcome.0.as_deref().unwrap_or_default());
            let (stop, memory) = (outcome.0.as_ref().err(), call.memory);
            let message = format!("{line}\nstop {stop:?}, memory {memory:x?}\n{found}");
            (Kind::Mismatch, message)
        })?;
    }
    Ok(())
}

/// Makes a call and compares results and memory. Returns the difference as an error.
fn call_one(program: &mut Program, func: &Function, call: &Call, outcome: &Outcome) -> Result<(), String> {
    let (ended, after) = outcome;
    let low = call.memory.map(|(base, _)| base.wrapping_sub(MARGIN));
    let image = |inner: &[u8]| {
        let margin = vec![0xa5; MARGIN as usize];
        [&margin[..], inner, &margin[..]].concat()
    };
    if let Some(low) = low {
        let before = image(&call.memory());
        program.write_memory(low, &before).map_err(|error| error.to_string())?;
    }
    let args = host_list(&func.signature.params, &call.args);
    let name = func.name.to_string();
    match (program.call(name.trim_start_matches('%'), &args), ended) {
        (Ok(values), Ok(results)) => {
            let wanted = host_list(&func.signature.returns, results);
            let same = |(a, b): (&DataValue, &DataValue)| a.bitwise_eq(b);
            if values.len() != wanted.len() || !values.iter().zip(&wanted).all(same) {
                return Err(format!("gives {values:?}"));
            }
        }
        (Err(RunError::Trap(report)), Err(Stop::Trapped(code))) if report.code == Some(*code) => {}
        (outcome, _) => return Err(format!("gives {outcome:?}")),
    }
    if let Some(low) = low {
        let wanted = image(after);
        let mut found = vec![0; wanted.len()];
        let module = program.module().map_err(|error| error.to_string())?;
        module.read_memory(low, &mut found);
        if let Some(at) = (0..found.len()).find(|&at| found[at] != wanted[at]) {
            let (found, wanted, at) = (found[at], wanted[at], low.wrapping_add(at as u32));
            return Err(format!("leaves {found:#04x} at {at:#x}, expected {wanted:#04x}"));
        }
    }
    Ok(())
}

/// Reduces a failing case to one call and smaller functions.
fn shrink(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    let one = |call: &Call| Case {
        calls: vec![call.clone()],
        ..case.clone()
    };
    if let Some(one) = case.calls.iter().map(one).find(|one| fails(one)) {
        case = one;
    }
    for index in 0..case.functions.len() {
        // A function without callers is removed.
        let mut fewer = case.clone();
        fewer.functions.truncate(index.max(1));
        if index > 0 && fails(&fewer) {
            return fewer;
        }
        let small = naplespu_filetests::reduce::function(case.functions[index].clone(), TRIES, |candidate| {
            let mut other = case.clone();
            other.functions[index] = candidate.clone();
            fails(&other)
        });
        case.functions[index] = small;
    }
    case
}

/// Checks a case, and shrinks it if it fails.
///
/// # Errors
///
/// Returns a report of the shrunk case for a human reader. Without memory, it is a filetest.
pub fn run(case: Case, configs: &[Config], turn: u64) -> Result<Seen, String> {
    check(&case, configs, turn).map_err(|failure| {
        let fails = |case: &Case| check(case, configs, turn).is_err_and(|other| other.same_kind(&failure));
        let small = match failure.kind {
            Kind::Generator => case,
            _ => shrink(case, fails),
        };
        let failure = check(&small, configs, turn).err().unwrap_or(failure);
        format!("{failure}\n\n{}", small.text())
    })
}

/// The body of the cargo-fuzz targets of the strategies.
///
/// # Panics
///
/// Panics with the report of a failure.
pub fn exercise(strategy: Strategy, data: &[u8]) {
    let configs = strategy.configs().unwrap_or_else(|error| panic!("{error}"));
    if let Some(case) = strategy.case(data, &configs[0].1) {
        run(case, &configs, 0).unwrap_or_else(|report| panic!("{report}"));
    }
}
