//! Random programs against the evaluator: results, traps and memory.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of the number of each test, counted from seed 0 or
//! from `NAPLESPU_FUZZ_SEED`. With `NAPLESPU_FUZZ_SHOW` each test prints its programs.

use cranelift_codegen::Context;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_naplespu::Isa;
use cranelift_naplespu::passes::Stage;
use cranelift_naplespu::remarks::LoopOutcome;
use naplespu_filetests::interpret::{self, InterpretError};
use naplespu_filetests::reduce::insts;
use naplespu_fuzz::eval::{self, Lanes, Stop};
use naplespu_fuzz::lane::Arithmetic;
use naplespu_fuzz::operations::{operations, small_types};
use naplespu_fuzz::{self as fuzz, Case, Seen, Strategy, seeds};
use naplespu_reader::panics::silence_caught;
use std::collections::{BTreeSet, HashSet};

/// Texts that some programs must contain, besides the opcodes of the evaluator.
const STATEMENTS: &str = "func_addr|trapnz|trapz|call fn|call_indirect|brif|br_table|uload8|istore16|store aligned\
    |fcvt_from_uint.f32x16|fcvt_to_sint_sat.i32x16|fcvt_to_uint_sat.i128|i64x2|f64x2|i8x64\
    |%__builtin_npu_write_mask_regv16i32|%__builtin_npu_block_storev16i32_masked";

/// Compares compilers and evaluator. Calls that are not compared must be rare.
fn hold(strategy: Strategy, cases: u64) {
    let configs = fuzz::configs().unwrap();
    let shows = std::env::var_os("NAPLESPU_FUZZ_SHOW").is_some();
    let run = |seed| {
        let case = strategy.case(&fuzz::bytes(seed), &configs[0].1);
        if shows {
            println!("; seed {seed}\n{}", case.text());
        }
        fuzz::run(case, &configs, seed)
    };
    let all = seeds::check(cases, run).unwrap_or_else(|reports| panic!("{reports}"));
    let sum = |of: fn(&Seen) -> usize| all.iter().map(of).sum::<usize>();
    let (calls, returned, trapped) = (
        sum(|seen| seen.calls),
        sum(|seen| seen.returned),
        sum(|seen| seen.trapped),
    );
    let counts = format!("{calls} calls, {returned} return, {trapped} trap");
    println!("{counts}");
    assert!(all.len() < 50 || (returned + trapped) * 10 > calls * 7, "{counts}");
    if strategy != Strategy::Vectors {
        assert!(all.len() < 50 || trapped * 100 > calls, "{counts}");
    }
}

#[test]
fn scalars() {
    hold(Strategy::Scalars, 2000);
}

#[test]
fn vectors() {
    hold(Strategy::Vectors, 1500);
}

#[test]
fn loops() {
    hold(Strategy::Loops, 1200);
}

/// Returns the effects of the loop passes on the first function of a case.
fn effects(case: &Case, isa: &Isa) -> BTreeSet<&'static str> {
    let mut ctx = Context::for_function(case.functions[0].clone());
    let request = [Stage::Bits, Stage::Versioning, Stage::Selects, Stage::Unroll];
    let code = isa.compile_with_stages(&mut ctx, &mut Default::default(), request.into_iter().collect());
    let code = code.unwrap();
    let text = |stage: Stage| {
        code.stages
            .iter()
            .find(|(name, _)| *name == stage)
            .map(|stage| &stage.1)
    };
    let mut all = vec![
        ("versioned", text(Stage::Bits) != text(Stage::Versioning)),
        ("unrolled", text(Stage::Selects) != text(Stage::Unroll)),
    ];
    for remark in &code.loops {
        if let LoopOutcome::Vectorized(how) = &remark.outcome {
            all.extend([
                ("vectorized", true),
                ("checked", how.alignment_check && how.overlap_checks > 0),
                ("unaligned", how.unaligned_loads > 0),
                ("reductions", how.reductions > 0),
            ]);
        }
    }
    all.into_iter()
        .filter_map(|(name, holds)| holds.then_some(name))
        .collect()
}

/// The generated loops reach the passes that they are meant for.
#[test]
fn loops_reach_the_passes() {
    let configs = fuzz::configs().unwrap();
    let speed = configs.iter().find(|(name, _)| name.contains("opt_level=speed"));
    let (_, speed) = speed.unwrap();
    let effects = |seed| effects(&Strategy::Loops.case(&fuzz::bytes(seed), speed), speed);
    let all: Vec<BTreeSet<&str>> = (0..200).map(effects).collect();
    for (name, least) in [
        ("vectorized", 30),
        ("checked", 10),
        ("unaligned", 8),
        ("reductions", 8),
        ("versioned", 12),
        ("unrolled", 120),
    ] {
        let count = all.iter().filter(|effects| effects.contains(name)).count();
        println!("{count} programs are {name}");
        assert!(count >= least, "{count} programs are {name}");
    }
}

/// The generated programs have all instructions that the evaluator supports.
#[test]
fn programs_have_all_instructions() {
    let configs = fuzz::configs().unwrap();
    let mut all = String::new();
    for (strategy, seed) in (0..400).flat_map(|seed| [(Strategy::Scalars, seed), (Strategy::Vectors, seed)]) {
        all += &strategy.case(&fuzz::bytes(seed), &configs[0].1).text();
    }
    for what in STATEMENTS.split('|') {
        assert!(all.contains(what), "never `{what}`");
    }
    let operations = operations(&configs[0].1, small_types(), false);
    let funcs = operations.iter().map(|(_, case)| &case.functions[0]);
    let opcodes = funcs.flat_map(|func| insts(func).into_iter().map(|inst| func.dfg.insts[inst].opcode()));
    for opcode in opcodes.collect::<HashSet<_>>() {
        let is_there = [" ", "."].iter().any(|end| all.contains(&format!(" {opcode}{end}")));
        assert!(is_there, "never `{opcode}`");
    }
}

/// The results of a call, or why it does not return.
type Outcome = Result<Vec<Lanes>, Stop>;

/// Returns the lanes of the results, or the trap. Returns `None` if the interpreter does not support
/// an instruction, or panics.
fn interpreted(func: &Function, args: &[Lanes]) -> Option<Outcome> {
    let mut store = FunctionStore::default();
    let name = func.name.to_string();
    store.add(name.clone(), func);
    let params = func.signature.params.iter().zip(args);
    let value = |(param, lanes): (&AbiParam, &Lanes)| {
        DataValue::read_from_slice_le(&eval::to_bytes(param.value_type, lanes), param.value_type)
    };
    let args: Vec<DataValue> = params.map(value).collect();
    let lanes = |(value, param): (&DataValue, &AbiParam)| {
        let mut bytes = vec![0; value.ty().bytes() as usize];
        value.write_to_slice_le(&mut bytes);
        // The interpreter gives some results a wrong type.
        let has_type = value.ty().bytes() == param.value_type.bytes();
        has_type.then(|| eval::from_bytes(param.value_type, &bytes))
    };
    match interpret::call(&store, &name, &args, 100_000) {
        Ok(values) => {
            let results = values.iter().zip(&func.signature.returns);
            results.map(lanes).collect::<Option<Vec<_>>>().map(Ok)
        }
        Err(InterpretError::Trap { code, .. }) => code.map(|code| Err(Stop::Trapped(code))),
        Err(_) => None,
    }
}

/// Returns the outcome with equal bits for all NaNs.
fn without_nans(func: &Function, outcome: Outcome) -> Outcome {
    let mut all = outcome?;
    for (lanes, param) in all.iter_mut().zip(&func.signature.returns) {
        for lane in lanes {
            let is_nan = match param.value_type.lane_type() {
                types::F32 => f32::from_bits(*lane as u32).is_nan(),
                types::F64 => f64::from_bits(*lane as u64).is_nan(),
                _ => false,
            };
            *lane = if is_nan { u128::MAX } else { *lane };
        }
    }
    Ok(all)
}

/// The evaluator agrees with Cranelift's interpreter on each instruction, on scalars and on vectors
/// of at most 128 bits, except where the interpreter is wrong.
#[test]
fn evaluator_agrees_with_the_interpreter() {
    silence_caught();
    let configs = fuzz::configs().unwrap();
    let (mut compared, mut unknown, mut failures) = (0, 0, Vec::new());
    for (_, case) in operations(&configs[0].1, small_types(), false) {
        let func = &case.functions[0];
        let text = func.display().to_string();
        let mut types = func.signature.params.iter().chain(&func.signature.returns);
        let is_wrong = insts(func).into_iter().any(|inst| interpret::is_wrong(func, inst));
        if is_wrong || types.any(|param| param.value_type.bytes() > 16) {
            continue;
        }
        for call in &case.calls {
            let (found, args) = (interpreted(func, &call.args), &call.args);
            compared += usize::from(found.is_some());
            unknown += usize::from(found.is_none());
            let wanted = without_nans(func, fuzz::expected(&case, call, Arithmetic::Ieee).0);
            match found.map(|found| without_nans(func, found)) {
                Some(found) if found != wanted => {
                    failures.push(format!("{args:x?}: {wanted:x?}, interpreter {found:x?}\n{text}"));
                    break;
                }
                _ => {}
            }
        }
    }
    failures.truncate(12);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    println!("{compared} calls compared, {unknown} unknown to the interpreter");
    assert!(
        compared > 33_000,
        "{compared} calls compared, {unknown} unknown to the interpreter"
    );
}
