//! Differential testing: random CLIF, compiled and simulated, against an evaluator.
//!
//! A program is a list of CLIF functions: Cranelift's data structure is also the one of the
//! generators, of the evaluator and of the reduction of failing cases.
//!
//! | module | content |
//! |---|---|
//! | `instruction` | any instruction, with operands in scope |
//! | `anything` | functions over all of CLIF, which only must not make the compiler panic |
//! | [`programs`] | programs with loops, branches, accesses and calls, for each [`Strategy`] |
//! | [`operations`] | filetests of each operation on each vector type |
//! | [`eval`], [`lane`] | the results of a program, and of an operation on one lane |
//!
//! [`check`] compares the results and the memory, and [`shrink`] reduces a failing case. The same
//! body runs under `cargo test` for a fixed number of seeds and under cargo-fuzz without a limit.
//! This crate is not part of the public contract of the project.

#![deny(missing_docs)]

mod anything;
pub mod compiles;
pub mod eval;
mod instruction;
pub mod lane;
pub mod operations;
pub mod programs;
mod random;
pub mod seeds;
pub mod shares;

pub use programs::Strategy;
pub use random::bytes;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, Type};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::{Isa, verify_function};
use eval::{Lanes, Memory, Stop};
use lane::Arithmetic;
use naplespu_jit::{Program, RunError};
use random::Random;
use std::fmt;
use std::sync::Arc;

/// Limit of CLIF instructions that the evaluator executes for one call.
const FUEL: u64 = 30_000;

/// Limit of machine instructions for one call; higher than a call within [`FUEL`] can need.
const STEPS: u64 = 50_000_000;

/// The seed for the initial contents of memory and registers.
const FILL_SEED: u64 = 1;

/// Number of bytes before and after the memory of a call that must not change.
const MARGIN: u32 = 256;

/// The largest number of evaluations while reducing a failing function.
const TRIES: usize = 1500;

/// Why a case fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The generated CLIF is invalid or cannot be evaluated: a bug of the generator.
    Generator(String),
    /// Compiler and evaluator disagree.
    Mismatch {
        /// The settings of the compiler.
        config: String,
        /// The call and both outcomes.
        message: String,
    },
    /// The compiler panics, or returns a wrong error.
    Panic {
        /// The settings of the compiler.
        config: String,
        /// The message.
        message: String,
    },
}

impl Failure {
    /// Returns whether two failures probably have the same cause. Shrinking keeps only cases that
    /// fail in the same way as the original.
    fn same_kind(&self, other: &Self) -> bool {
        // Messages are the same except for numbers.
        let plain = |text: &str| -> String {
            let kept = text.lines().next().unwrap_or("").chars();
            kept.filter(|c| !c.is_ascii_digit()).take(60).collect()
        };
        match (self, other) {
            (Self::Panic { config: a, message: m }, Self::Panic { config: b, message: n }) => {
                a == b && plain(m) == plain(n)
            }
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
            Self::Mismatch { config, message } | Self::Panic { config, message } => write!(f, "{config}: {message}"),
        }
    }
}

/// A compiler under test, with the name of its settings.
pub type Config = (String, Arc<Isa>);

/// Builds a target with shared flags and target settings, each a list of `name=value`, with the
/// checker of register allocation on.
fn config(flags: &str, target: &str) -> Result<Config, String> {
    let mut shared = settings::builder();
    let mut builder = cranelift_naplespu::isa::lookup_by_name("naplespu").map_err(|error| error.to_string())?;
    let pairs = |list: &str| -> Vec<(String, String)> {
        let pairs = list.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    for (name, value) in pairs(&format!("{flags} regalloc_checker=true")) {
        shared.set(&name, &value).map_err(|error| error.to_string())?;
    }
    for (name, value) in pairs(target) {
        builder.set(&name, &value).map_err(|error| error.to_string())?;
    }
    let isa = builder.finish(settings::Flags::new(shared));
    Ok((format!("{flags} {target}"), isa.map_err(|error| error.to_string())?))
}

/// Returns both optimization levels with both register allocators, with strict floats and without.
/// The compilers verify CLIF and check register allocation.
///
/// # Errors
///
/// The message of a flag that Cranelift does not have.
pub fn configs() -> Result<Vec<Config>, String> {
    let mut all = Vec::new();
    for strict in ["true", "false"] {
        for level in ["none", "speed"] {
            for algorithm in ["backtracking", "single_pass"] {
                let flags = format!("opt_level={level} regalloc_algorithm={algorithm}");
                all.push(config(&flags, &format!("strict_float={strict}"))?);
            }
        }
    }
    Ok(all)
}

/// The float operations of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// None; the settings of floats do not matter, and compilers without `strict_float` are used.
    #[default]
    None,
    /// Operations that need `strict_float`.
    Strict,
    /// Operations that each compiler does, in its own arithmetic.
    Any,
}

/// A call of the first function.
#[derive(Clone, Debug)]
pub struct Call {
    /// The arguments.
    pub args: Vec<Lanes>,
    /// The address of the memory, and the seed of its contents; `None` without memory.
    pub memory: Option<(u32, u64)>,
}

/// Functions, and calls of the first. A function's name is `%fN`, where N is its index.
#[derive(Clone, Debug)]
pub struct Case {
    /// The functions.
    pub functions: Vec<Function>,
    /// The calls.
    pub calls: Vec<Call>,
    /// The float operations.
    pub floats: Floats,
}

impl Case {
    /// Returns the functions as CLIF.
    pub fn text(&self) -> String {
        let texts = self.functions.iter().map(|func| func.display().to_string());
        texts.collect::<Vec<_>>().join("\n")
    }

    fn uses(&self, config: &Config, turn: u64) -> bool {
        // Register allocation does not depend on loops over memory.
        let has_turn = turn.is_multiple_of(7) || !config.0.contains("single_pass");
        let has_memory = self.calls.iter().any(|call| call.memory.is_some());
        let fits = match self.floats {
            Floats::None => !config.1.settings().strict_float,
            Floats::Strict => config.1.settings().strict_float,
            Floats::Any => true,
        };
        fits && (has_turn || !has_memory)
    }
}

/// Returns the contents of memory before a call: numbers of all magnitudes, small ones more
/// frequent.
fn memory(call: &Call) -> Memory {
    let Some((base, seed)) = call.memory else {
        return Memory::default();
    };
    let mut random = Random(seed);
    let mask = if seed.is_multiple_of(4) {
        0x0f0f_0f0f_0f0f_0f0f
    } else {
        u64::MAX
    };
    let bytes = (0..programs::BYTES / 8).flat_map(|_| (random.next() & mask).to_le_bytes());
    Memory {
        base,
        bytes: bytes.collect(),
    }
}

/// Returns the values by which the host passes a value: a vector of more than 16 bytes lane by lane.
fn host_values(ty: Type, lanes: &[u128]) -> Vec<DataValue> {
    let bytes = eval::to_bytes(ty, lanes);
    let part = if ty.bytes() > 16 { ty.lane_type() } else { ty };
    let parts = bytes.chunks(part.bytes() as usize);
    parts.map(|bytes| DataValue::read_from_slice_le(bytes, part)).collect()
}

fn host_list(params: &[AbiParam], values: &[Lanes]) -> Vec<DataValue> {
    let values = params.iter().zip(values);
    values
        .flat_map(|(param, lanes)| host_values(param.value_type, lanes))
        .collect()
}

/// The outcome of a call, and the memory after it.
type Outcome = (Result<Vec<Lanes>, Stop>, Memory);

/// Evaluates a call.
pub fn expected(case: &Case, call: &Call, arithmetic: Arithmetic) -> Outcome {
    let mut memory = memory(call);
    let ended = eval::call(&case.functions, arithmetic, &call.args, &mut memory, FUEL);
    (ended, memory)
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

/// Compares compilers and evaluator on a case. `turn` selects the compilers that are not used for
/// every seed. Calls with undefined behavior or too many instructions are not compared.
///
/// # Errors
///
/// Returns the first disagreement.
pub fn check(case: &Case, configs: &[Config], turn: u64) -> Result<Seen, Failure> {
    let flags = settings::Flags::new(settings::builder());
    for func in &case.functions {
        verify_function(func, &flags).map_err(|errors| Failure::Generator(format!("{}: {errors}", func.name)))?;
    }
    let outcomes = |arithmetic| -> Vec<Outcome> {
        let calls = case.calls.iter();
        calls.map(|call| expected(case, call, arithmetic)).collect()
    };
    let ieee = outcomes(Arithmetic::Ieee);
    let machine = if case.floats == Floats::Any {
        outcomes(Arithmetic::Machine)
    } else {
        Vec::new()
    };
    let mut seen = Seen {
        calls: ieee.len(),
        ..Seen::default()
    };
    for (ended, _) in &ieee {
        match ended {
            Ok(_) => seen.returned += 1,
            Err(Stop::Trapped(_)) => seen.trapped += 1,
            Err(Stop::OutOfFuel) => seen.endless += 1,
            Err(Stop::Undefined(_)) => {}
            Err(Stop::Unsupported(opcode)) => return Err(Failure::Generator(format!("no evaluation of {opcode}"))),
        }
    }
    for config in configs.iter().filter(|config| case.uses(config, turn)) {
        let is_machine = case.floats == Floats::Any && !config.1.settings().strict_float;
        let outcomes = if is_machine { &machine } else { &ieee };
        compare(case, outcomes, &config.1).map_err(|message| Failure::Mismatch {
            config: config.0.clone(),
            message,
        })?;
    }
    Ok(seen)
}

fn compare(case: &Case, outcomes: &[Outcome], isa: &Arc<Isa>) -> Result<(), String> {
    let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(FILL_SEED));
    program.set_step_limit(STEPS);
    for func in &case.functions {
        let defined = program.define(func);
        defined.map_err(|error| format!("{} did not compile: {error}", func.name))?;
    }
    let Some(first) = case.functions.first() else {
        return Ok(());
    };
    for (call, (ended, after)) in case.calls.iter().zip(outcomes) {
        if !matches!(ended, Ok(_) | Err(Stop::Trapped(_))) {
            continue;
        }
        let low = after.base.wrapping_sub(MARGIN);
        let image = |inner: &[u8]| {
            let margin = vec![0xa5; MARGIN as usize];
            [&margin[..], inner, &margin[..]].concat()
        };
        if call.memory.is_some() {
            let before = image(&memory(call).bytes);
            program.write_memory(low, &before).map_err(|error| error.to_string())?;
        }
        let line = |results: &[Lanes]| operations::run_line("%f0", first, &call.args, results);
        let expected = match ended {
            Ok(results) => line(results),
            Err(stop) => format!("{} {stop:?}", line(&[])),
        };
        let shown = match call.memory {
            Some((base, fill)) => format!("{expected}, with memory {fill} at {base:#x}"),
            None => expected,
        };
        let is_same = match (
            program.call("f0", &host_list(&first.signature.params, &call.args)),
            ended,
        ) {
            (Ok(values), Ok(results)) => {
                let wanted = host_list(&first.signature.returns, results);
                let same = |(a, b): (&DataValue, &DataValue)| a.bitwise_eq(b);
                let is_same = values.len() == wanted.len() && values.iter().zip(&wanted).all(same);
                is_same.then_some(()).ok_or_else(|| format!("{values:?}"))
            }
            (Ok(values), Err(_)) => Err(format!("{values:?}")),
            (Err(RunError::Trap(report)), Err(Stop::Trapped(code))) if report.code == Some(*code) => Ok(()),
            (Err(error), _) => Err(error.to_string()),
        };
        is_same.map_err(|found| format!("{shown}\ngives {found}"))?;
        if call.memory.is_none() {
            continue;
        }
        let wanted = image(&after.bytes);
        let mut found = vec![0; wanted.len()];
        let module = program.module().map_err(|error| error.to_string())?;
        module.read_memory(low, &mut found);
        let differing: Vec<usize> = (0..found.len()).filter(|&at| found[at] != wanted[at]).collect();
        if let Some(&at) = differing.first() {
            return Err(format!(
                "{shown}\nleaves {:#04x} at {:#x}, expected {:#04x}; {} bytes differ",
                found[at],
                low.wrapping_add(at as u32),
                wanted[at],
                differing.len(),
            ));
        }
    }
    Ok(())
}

/// Reduces a failing case to one call and smaller functions.
pub fn shrink(mut case: Case, configs: &[Config], failure: &Failure) -> Case {
    let fails = |case: &Case| check(case, configs, 0).is_err_and(|other| other.same_kind(failure));
    for call in case.calls.clone() {
        let one = Case {
            calls: vec![call],
            ..case.clone()
        };
        if fails(&one) {
            case = one;
            break;
        }
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

/// Generates a case from bytes and checks it. Shrinks a failing case.
///
/// # Errors
///
/// Returns a report of the shrunk case for a human reader. Without memory, it is a filetest.
pub fn run(strategy: Strategy, data: &[u8], configs: &[Config], turn: u64) -> Result<Seen, String> {
    let Some((_, isa)) = configs.first() else {
        return Ok(Seen::default());
    };
    let case = strategy.case(data, isa);
    let failure = match check(&case, configs, turn) {
        Ok(seen) => return Ok(seen),
        Err(failure) => failure,
    };
    let small = match failure {
        Failure::Generator(_) => case,
        _ => shrink(case, configs, &failure),
    };
    let failure = check(&small, configs, 0).err().unwrap_or(failure);
    Err(format!("{failure}\n\n{}", small.text()))
}
