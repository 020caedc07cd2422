//! Random programs against the evaluator: results, traps and memory.

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
use naplespu_fuzz::{self as fuzz, Case, Seen, Strategy};
use naplespu_reader::panics::silence_caught;
use std::collections::{BTreeSet, HashSet};

/// Texts that some programs must contain, besides the opcodes of the evaluator.
const STATEMENTS: &str = "func_addr|trapnz|trapz|call fn|call_indirect|brif|br_table|uload8|istore16|store aligned\
    |fcvt_from_uint.f32x16|fcvt_to_sint_sat.i32x16|fcvt_to_uint_sat.i128|i64x2|f64x2|i8x64\
    |%__builtin_npu_write_mask_regv16i32|%__builtin_npu_block_storev16i32_masked";

/// Compares compilers and evaluator. Calls that are not compared must be rare.
fn hold(strategy: Strategy, cases: u64) {
    let all = super::hold(strategy, cases);
    let sum = |of: fn(&Seen) -> usize| all.iter().map(of).sum::<usize>();
    let (calls, returned) = (sum(|seen| seen.calls), sum(|seen| seen.returned));
    let trapped = sum(|seen| seen.trapped);
    let counts = format!("{calls} calls, {returned} return, {trapped} trap");
    println!("{counts}");
    assert!(all.len() < 50 || (returned + trapped) * 10 > calls * 7, "{counts}");
    let traps = strategy == Strategy::Vectors || trapped * 100 > calls;
    assert!(all.len() < 50 || traps, "{counts}");
}

#[test]
fn scalars() {
    hold(Strategy::Scalars, 1500);
}

#[test]
fn vectors() {
    hold(Strategy::Vectors, 1200);
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
    let text = |stage| {
        let mut all = code.stages.iter();
        all.find(|(name, _)| *name == stage).map(|(_, text)| text)
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
    let held = all.into_iter().filter(|(_, holds)| *holds);
    held.map(|(name, _)| name).collect()
}

/// The generated loops reach the passes that they are meant for.
#[test]
fn loops_reach_the_passes() {
    let configs = Strategy::Loops.configs().unwrap();
    let speed = configs.iter().find(|(name, _)| name.contains("opt_level=speed"));
    let (_, speed) = speed.unwrap();
    let effects = |seed| effects(&Strategy::Loops.case(&fuzz::bytes(seed), speed).unwrap(), speed);
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
    let configs = Strategy::Scalars.configs().unwrap();
    let text = |strategy: Strategy, seed| strategy.case(&fuzz::bytes(seed), &configs[0].1).unwrap().text();
    let texts = |seed| text(Strategy::Scalars, seed) + &text(Strategy::Vectors, seed);
    let all: String = (0..400).map(texts).collect();
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
type Ended = Result<Vec<Lanes>, Stop>;

/// Returns the lanes of the results, or the trap. Returns `None` if the interpreter does not support
/// an instruction, or panics.
fn interpreted(func: &Function, args: &[Lanes]) -> Option<Ended> {
    let mut store = FunctionStore::default();
    let name = func.name.to_string();
    store.add(name.clone(), func);
    let args = fuzz::host_list(&func.signature.params, args);
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
fn without_nans(func: &Function, ended: Ended) -> Ended {
    let mut all = ended?;
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

/// Compares the evaluator with Cranelift's interpreter. Returns the number of compared calls.
fn agreements(case: &Case) -> Result<usize, String> {
    let func = &case.functions[0];
    let mut types = func.signature.params.iter().chain(&func.signature.returns);
    let is_wrong = insts(func).into_iter().any(|inst| interpret::is_wrong(func, inst));
    if is_wrong || types.any(|param| param.value_type.bytes() > 16) {
        return Ok(0);
    }
    let mut compared = 0;
    for call in &case.calls {
        let Some(found) = interpreted(func, &call.args) else {
            continue;
        };
        compared += 1;
        let wanted = eval::call(case, call, Arithmetic::Ieee).0;
        let [found, wanted] = [found, wanted].map(|ended| without_nans(func, ended));
        if found != wanted {
            let args = &call.args;
            return Err(format!(
                "{args:x?}: {wanted:x?}, interpreter {found:x?}\n{}",
                case.text()
            ));
        }
    }
    Ok(compared)
}

/// The evaluator agrees with the interpreter on each instruction, on scalars and on vectors of at
/// most 128 bits, except where the interpreter is wrong.
#[test]
fn evaluator_agrees_with_the_interpreter() {
    silence_caught();
    let configs = Strategy::Scalars.configs().unwrap();
    let all = operations(&configs[0].1, small_types(), false);
    let compared = super::check(all.len() as u64, |number| {
        let (_, case) = all.get(number as usize)?;
        Some(agreements(case))
    });
    let compared: usize = compared.into_iter().sum();
    println!("{compared} calls compared");
    assert!(compared > 33_000, "{compared} calls compared");
}
