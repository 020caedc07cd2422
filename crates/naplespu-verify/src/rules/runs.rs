//! Bounded checks of rules that are not proved: functions that apply them are executed.
//!
//! Two sources supply runs. Undecided functions of the families run on the simulator with random
//! inputs, and the results are compared with those of Cranelift's interpreter. Files of CLIF run
//! with the expectations in them.

use super::compile_explained;
use super::table::Sample;
use crate::confirm::{data_value, same_or_nans};
use crate::term::{Bits, MAX_WIDTH};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Inst, Opcode, Type, Value, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_naplespu::{Compiler, Isa};
use naplespu_filetests::outcome::Verdict;
use naplespu_filetests::{file, interpret, runner};
use naplespu_jit::{Program, RunError, function_name};
use naplespu_reader::config::FileConfigs;
use naplespu_reader::{ClifFile, panics};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The number of random inputs of a function.
const INPUTS: u64 = 200;
/// The limit of instructions of a run.
const STEPS: u64 = 10_000_000;

/// The runs by rule, and the failures.
#[derive(Default, Debug)]
pub struct Runs {
    /// The number of runs that agreed, by rule.
    pub agreed: BTreeMap<u16, u64>,
    /// Runs that deviate, in words.
    pub failures: Vec<String>,
}

impl Runs {
    fn add(&mut self, rules: &[u16], count: u64) {
        if count > 0 {
            for &rule in rules {
                *self.agreed.entry(rule).or_default() += count;
            }
        }
    }

    /// Adds the runs of others.
    pub fn merge(&mut self, other: Self) {
        for (rule, count) in other.agreed {
            *self.agreed.entry(rule).or_default() += count;
        }
        self.failures.extend(other.failures);
    }
}

/// Returns random bits: often those of a small number, of a limit, or of a special float.
fn bits(seed: &mut u64, ty: Type) -> u128 {
    let mut next = || {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::term::eval::mixed(*seed)
    };
    let kind = next() % 6;
    let any = u128::from(next()) << 64 | u128::from(next());
    let width = ty.lane_bits();
    let exponent = match width {
        16 => 10,
        32 => 23,
        64 => 52,
        _ => 112,
    };
    let value = match kind {
        0 => u128::from(next() % 5).wrapping_sub(2),
        1 => 1u128 << (any % u128::from(width)),
        // An exponent near that of 1, of the limits of integers, or of infinity.
        2 if ty.is_float() => {
            let sign = any & 1 << 127;
            let bias = (1u128 << (width - exponent - 2)) - 1;
            let near = [0, 1, 8, 16, 24, 31, 32, 63, 64, bias + 1];
            let power = bias + near[(next() % 10) as usize] - u128::from(next() % 3 == 0);
            sign >> (128 - width) | power << exponent | any >> 8 & ((1 << exponent) - 1)
        }
        3 if ty.is_float() => (any >> 127) << (width - 1) | u128::from(next() % 3),
        3 => (any >> 127).wrapping_sub(1) >> 1,
        _ => any,
    };
    match width {
        128 => value,
        _ => value & ((1 << width) - 1),
    }
}

/// Returns a random value of a type, or `None` for types that runs do not support.
fn value(seed: &mut u64, ty: Type) -> Option<DataValue> {
    let lane = ty.lane_bits();
    let lanes = (0..ty.lane_count()).map(|_| bits(seed, ty.lane_type()));
    let whole = lanes.fold(Bits::ZERO, |whole, value| {
        whole.shl(lane, MAX_WIDTH).or(Bits::from(value))
    });
    data_value(ty, whole)
}

/// Returns whether the float unit performs the instruction, if the target has one.
fn computes_f32(func: &Function, inst: Inst) -> bool {
    let is_f32 = |value: &Value| func.dfg.value_type(*value).lane_type() == types::F32;
    matches!(
        func.dfg.insts[inst].opcode(),
        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv
    ) && func.dfg.inst_results(inst).iter().any(is_f32)
}

/// Runs a function with random inputs. Returns the number of runs that agree with the interpreter,
/// or the deviation. The number is 0 if the interpreter or the simulator cannot run the function.
fn run(func: &Function, isa: &Arc<Isa>) -> Result<u64, String> {
    let has_unit = isa.settings().has_fpu && !isa.settings().strict_float;
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let is_unfit = |inst| {
        // `debugtrap` ends a run on the simulator, and the interpreter ignores it.
        let opcode = func.dfg.insts[inst].opcode();
        opcode == Opcode::Debugtrap
            // A random number is not a valid address.
            || (opcode.can_load() || opcode.can_store()) && opcode != Opcode::Bitcast
            || interpret::is_wrong(func, inst)
            // The float unit is not exact for subnormal numbers.
            || has_unit && computes_f32(func, inst)
    };
    if insts.any(is_unfit) {
        return Ok(0);
    }
    let mut program = Program::new(isa.clone());
    program.set_step_limit(STEPS);
    if program.define(func).is_err() {
        return Ok(0);
    }
    let mut store = FunctionStore::default();
    store.add(func.name.to_string(), func);
    let mut agreed = 0;
    for input in 0..INPUTS {
        let mut seed = input;
        let args = func
            .signature
            .params
            .iter()
            .map(|param| value(&mut seed, param.value_type));
        let Some(args) = args.collect::<Option<Vec<DataValue>>>() else {
            return Ok(0);
        };
        let expected = match interpret::call(&store, &func.name.to_string(), &args, STEPS) {
            Ok(values) => Some(values),
            Err(interpret::InterpretError::Trap { .. }) => None,
            // The interpreter does not implement the operation.
            Err(_) => return Ok(0),
        };
        let found = match program.call(&function_name(&func.name), &args) {
            Ok(values) => Some(values),
            Err(RunError::Trap(_)) => None,
            Err(error) => return Err(format!("{args:?}: {error}\n{}", func.display())),
        };
        let agrees = match (&expected, &found) {
            (Some(expected), Some(found)) => {
                let types = func.signature.returns.iter().map(|param| param.value_type);
                expected
                    .iter()
                    .zip(found)
                    .zip(types)
                    .all(|((a, b), ty)| same_or_nans(a, b, ty))
            }
            (None, None) => true,
            _ => false,
        };
        if !agrees {
            return Err(format!(
                "arguments {args:?}: CLIF {expected:?}, simulator {found:?}\n{}",
                func.display()
            ));
        }
        agreed += 1;
    }
    Ok(agreed)
}

/// Runs undecided functions with random inputs.
pub fn random(samples: Vec<Sample>) -> Runs {
    // The interpreter panics on operations that it does not implement.
    panics::silence_caught();
    let results: Vec<Runs> = samples
        .into_par_iter()
        .map(|sample| {
            let mut runs = Runs::default();
            match run(&sample.func, &sample.isa) {
                Ok(count) => runs.add(&sample.rules, count),
                Err(what) => runs.failures.push(what),
            }
            runs
        })
        .collect();
    let mut all = Runs::default();
    results.into_iter().for_each(|runs| all.merge(runs));
    all
}

/// Runs the files in which a function applies one of the rules.
///
/// # Errors
///
/// A path that cannot be read.
pub fn files(paths: &[PathBuf], rules: &BTreeSet<u16>) -> Result<Runs, String> {
    let files = runner::find(paths).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let results: Vec<Runs> = files
        .into_par_iter()
        .map(|path| match std::fs::read(&path) {
            Ok(bytes) => one_file(&path.display().to_string(), &bytes, rules),
            Err(_) => Runs::default(),
        })
        .collect();
    let mut all = Runs::default();
    results.into_iter().for_each(|runs| all.merge(runs));
    Ok(all)
}

fn one_file(name: &str, bytes: &[u8], rules: &BTreeSet<u16>) -> Runs {
    let mut runs = Runs::default();
    let mut file = ClifFile::parse(name, bytes);
    let mut faults = std::mem::take(&mut file.faults);
    let configs = FileConfigs::read(&file.header, None, &[], &mut faults);
    if !faults.is_empty() || !file.header.has_test("run") {
        return runs;
    }
    // The rules of each function in all configurations of the file.
    let mut applied: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    let mut compiler = Compiler::new();
    for isa in configs.list.iter().filter_map(|config| config.isa().ok()) {
        for case in &file.functions {
            if let Ok((_, list)) = compile_explained(&mut compiler, &isa, &case.func) {
                let list = list.into_iter().filter(|rule| rules.contains(rule));
                applied.entry(case.func.name.to_string()).or_default().extend(list);
            }
        }
    }
    if applied.values().all(BTreeSet::is_empty) {
        return runs;
    }
    let outcome = file::test(name, bytes, &file::Options::default());
    if outcome.verdict == Verdict::Failed {
        runs.failures.push(format!("{name} fails:\n{}", outcome.render()));
        return runs;
    }
    let passed = outcome.lines.iter().filter(|line| line.verdict == Verdict::Passed);
    for line in passed {
        for (function, rules) in &applied {
            // A run line names the function, and the arguments follow.
            if line.text.contains(&format!("{function}(")) {
                let rules: Vec<u16> = rules.iter().copied().collect();
                runs.add(&rules, 1);
            }
        }
    }
    runs
}
