//! Random programs against the evaluator: results, traps and memory.
//!
//! A failure prints its seed and the shrunk functions. `NAPLESPU_FUZZ_SEED=n` runs only that seed.
//! `NAPLESPU_FUZZ_CASES=n` runs n cases instead of the number of each test, counted from seed 0.
//! `cargo run --release -p naplespu-fuzz --example programs` runs new seeds for some time.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use naplespu_filetests::interpret;
use naplespu_fuzz::eval::{self, Lanes, Stop};
use naplespu_fuzz::lane::Arithmetic;
use naplespu_fuzz::shares::Shares;
use naplespu_fuzz::{self as fuzz, Call, Seen, Strategy, operations, programs, seeds};
use naplespu_reader::panics::caught;

/// Texts that some programs must contain, besides the opcodes of the evaluator.
const STATEMENTS: &str = "func_addr|trapnz|trapz|call fn|call_indirect|brif|br_table|uload8|istore16|store aligned\
    |fcvt_from_uint.f32x16|fcvt_to_sint_sat.i32x16|fcvt_to_uint_sat.i128|i64x2|f64x2|i8x64\
    |%__builtin_npu_write_mask_regv16i32|%__builtin_npu_block_storev16i32_masked";

/// Compares compilers and evaluator. Calls that are not compared must be rare.
fn hold(strategy: Strategy, cases: u64) {
    let configs = fuzz::configs().unwrap();
    let run = |seed| fuzz::run(strategy, &fuzz::bytes(seed), &configs, seed);
    let all = seeds::check(cases, run).unwrap_or_else(|reports| panic!("{reports}"));
    let (count, mut seen) = (all.len(), Seen::default());
    all.into_iter().for_each(|one| seen.add(one));
    println!("{seen:?}");
    let compared = seen.returned + seen.trapped;
    assert!(count < 50 || compared * 10 > seen.calls * 7, "{seen:?}");
    if strategy != Strategy::Vectors {
        assert!(count < 50 || seen.trapped * 100 > seen.calls, "{seen:?}");
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

/// The generated loops reach the passes that they are meant for.
#[test]
fn loops_reach_the_passes() {
    let configs = fuzz::configs().unwrap();
    let (_, speed) = configs
        .iter()
        .find(|(name, _)| name.contains("opt_level=speed"))
        .unwrap();
    let mut all = Shares::default();
    for seed in 0..200 {
        all.add(&Strategy::Loops.case(&fuzz::bytes(seed), speed), speed)
            .unwrap();
    }
    println!("{all:?}");
    assert!(
        all.vectorised >= 30 && all.checked >= 10 && all.unaligned >= 8 && all.reductions >= 8,
        "{all:?}"
    );
    assert!(all.versioned >= 12 && all.unrolled >= 120, "{all:?}");
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
    for case in programs::instructions(&configs[0].1) {
        let func = &case.functions[0];
        let inst = func.layout.block_insts(func.layout.entry_block().unwrap()).rev().nth(1);
        let opcode = func.dfg.insts[inst.unwrap()].opcode();
        let is_there = [" ", "."].iter().any(|end| all.contains(&format!("= {opcode}{end}")));
        assert!(is_there, "never `{opcode}`");
    }
}

/// The results of a call, or why it does not return.
type Outcome = Result<Vec<Lanes>, Stop>;

/// Arguments of calls with their outcomes.
type Calls = Vec<(Vec<Lanes>, Outcome)>;

/// Returns the lanes of the results, or the trap. Returns `None` if the interpreter does not support
/// an instruction, or panics.
fn interpreted(func: &Function, args: &[Lanes]) -> Option<Outcome> {
    let mut store = FunctionStore::default();
    store.add(func.name.to_string(), func);
    let params = func.signature.params.iter().zip(args);
    let value = |(param, lanes): (&AbiParam, &Lanes)| {
        DataValue::read_from_slice_le(&eval::to_bytes(param.value_type, lanes), param.value_type)
    };
    let args: Vec<DataValue> = params.map(value).collect();
    let call = || {
        let state = InterpreterState::default().with_function_store(store);
        Interpreter::new(state).call_by_name(&func.name.to_string(), &args)
    };
    let lanes = |(value, param): (&DataValue, &AbiParam)| {
        let mut bytes = vec![0; value.ty().bytes() as usize];
        value.write_to_slice_le(&mut bytes);
        // The interpreter gives some results a wrong type.
        let has_type = value.ty().bytes() == param.value_type.bytes();
        has_type.then(|| eval::from_bytes(param.value_type, &bytes))
    };
    match caught(call) {
        Ok(Ok(ControlFlow::Return(values))) => {
            let results = values.iter().zip(&func.signature.returns);
            results.map(lanes).collect::<Option<Vec<_>>>().map(Ok)
        }
        Ok(Ok(ControlFlow::Trap(CraneliftTrap::User(code)))) => Some(Err(Stop::Trapped(code))),
        _ => None,
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
    super::silence_caught_panics();
    let configs = fuzz::configs().unwrap();
    let mut all: Vec<(Function, Calls)> = Vec::new();
    for operation in operations::operations() {
        let calls = operation.calls.into_iter().map(|(args, results)| (args, Ok(results)));
        all.push((operation.func, calls.collect()));
    }
    for case in programs::instructions(&configs[0].1) {
        let outcome = |call: &Call| (call.args.clone(), fuzz::expected(&case, call, Arithmetic::Ieee).0);
        let calls = case.calls.iter().map(outcome).collect();
        all.push((case.functions[0].clone(), calls));
    }
    let (mut compared, mut unknown, mut failures) = (0, 0, Vec::new());
    for (func, calls) in all {
        let text = func.display().to_string();
        let mut types = func.signature.params.iter().chain(&func.signature.returns);
        let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        let is_wrong = insts.any(|inst| interpret::is_wrong(&func, inst));
        if is_wrong || types.any(|param| param.value_type.bytes() > 16) {
            continue;
        }
        for (args, outcome) in calls {
            let found = interpreted(&func, &args);
            compared += usize::from(found.is_some());
            unknown += usize::from(found.is_none());
            let wanted = without_nans(&func, outcome);
            match found.map(|found| without_nans(&func, found)) {
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
