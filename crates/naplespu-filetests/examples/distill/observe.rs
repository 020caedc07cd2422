//! Runs the lines of a function, unchanged and with each small change of its code.

use super::cases::{Case, Target};
use super::features::{Feature, Kind, feature, of_clif, of_code, operation, reason};
use super::mutate::mutants;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::explain::Explanation;
use cranelift_naplespu::{CompiledCode, Compiler, Stage, StageRequest};
use naplespu_filetests::file::call_simulated;
use naplespu_jit::{CodeMap, Program, function_name};
use naplespu_reader::panics::caught;
use npu_mc::{Inst, Operand, Unit, decode};
use npu_sim::{Thread, TraceEvent};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The limit of instructions for all changed forms of a function with one target. Slower functions
/// are sampled.
const BUDGET: u64 = 1_500_000;

/// The limit of instructions of a line that is executed twice to observe all operands.
const SHORT: u64 = 2000;

/// Memory size of the simulated device in bytes. It is small because a changed function may store
/// anywhere.
const MEMORY: u64 = 64 << 20;

/// The observations of a function and its run lines.
#[derive(Default)]
pub struct Observation {
    /// The features of the function with all of its lines.
    pub features: Vec<Feature>,
    /// For each noticed change, the lines that notice it, by their index in the function.
    pub noticed: Vec<Vec<u16>>,
    /// The number of tried changes.
    pub tried: usize,
    /// For each line, its features other than noticed changes.
    pub lines: Vec<Vec<Feature>>,
    /// Whether a line executes routines of the runtime.
    pub has_routines: bool,
    /// Why the function could not be observed.
    pub failure: Option<String>,
}

/// Decoded instructions by address.
pub type Known = Arc<Mutex<HashMap<u32, Option<Inst>>>>;

/// The execution of a line without a change.
#[derive(Default)]
pub struct Trace {
    /// The executed instruction words by address.
    pub words: HashMap<u32, u32>,
    /// The observed combinations of an opcode and its operands' kinds.
    operands: HashSet<u32>,
    steps: u64,
}

/// Creates a program with a function and its callees.
pub fn program(case: &Case, target: &Target, function: usize) -> Result<Program, String> {
    let mut config = npu_sim::Config::testing(1);
    config.memory_limit = MEMORY;
    config.translate_after = None;
    let mut program = Program::with_config(target.isa.clone(), config);
    let mut ranges = Vec::new();
    let functions = case.closure(function);
    for &function in &functions {
        let func = &case.file.functions[function].func;
        let code = case.compiled(target, function)?;
        program
            .define_compiled(func, Ok(code))
            .map_err(|error| error.to_string())?;
    }
    program
        .module()
        .and_then(|module| module.finalize_definitions())
        .map_err(|error| error.to_string())?;
    for &function in &functions {
        let name = function_name(&case.file.functions[function].func.name);
        if let (Some(address), Some(code)) = (program.address(&name), program.code(&name)) {
            ranges.push((address, code.bytes.len() as u32));
        }
    }
    let module = program.module().map_err(|error| error.to_string())?;
    for (address, length) in ranges {
        let kept = module.machine_mut().protect(address, length);
        kept.map_err(|error| error.to_string())?;
    }
    Ok(program)
}

/// Returns whether a line passes.
pub fn passes(case: &Case, program: &mut Program, line: usize, limit: u64) -> bool {
    program.set_step_limit(limit);
    let line = &case.lines.list()[line];
    let function = &case.file.functions[line.function];
    let result = caught(|| line.check(function, |function, args| call_simulated(program, function, args)));
    matches!(result, Ok(Ok(_)))
}

/// Compiles like a program does, with the origins of instructions and all stages.
fn explained(target: &Target, func: &Function) -> Result<(CompiledCode, Explanation, Context), String> {
    let mut ctx = Context::for_function(func.clone());
    let request: StageRequest = Stage::ALL.iter().copied().collect();
    let compiled = Compiler::new().compile_explained(&target.isa, &mut ctx, &mut ControlPlane::default(), request);
    let (code, explanation) = compiled.map_err(|error| error.to_string())?;
    Ok((code, explanation, ctx))
}

/// Returns the kind of a number in a register.
fn class(value: u32, is_float: bool) -> u8 {
    let magnitude = value & 0x7fff_ffff;
    if is_float {
        let kind = match magnitude {
            0 => 0,
            1..0x0080_0000 => 1,
            0x7f80_0000 => 2,
            0x7f80_0001.. => 3,
            0x3f80_0000 => 4,
            0x0080_0000..0x3f80_0000 => 5,
            _ => 6,
        };
        return kind * 2 + (value >> 31) as u8;
    }
    match value {
        0 => 0,
        1 => 1,
        u32::MAX => 2,
        0x8000_0000 => 3,
        0x7fff_ffff => 4,
        2..0x1_0000 => 5,
        0x1_0000..0x7fff_ffff => 6,
        0xffff_0000.. => 7,
        _ => 8,
    }
}

/// Adds the kinds of the first two sources of an instruction with its opcode, for each lane of
/// vectors.
fn operand_kinds(inst: &Inst, thread: &Thread, list: &mut HashSet<u32>) {
    let is_float = inst.desc().unit == Unit::Fp;
    let operands = inst.desc().operands.iter().zip(inst.operands.iter());
    let mut sources = operands
        .filter(|(operand, _)| !operand.is_def)
        .map(|(_, operand)| *operand);
    let sources = [sources.next(), sources.next()];
    let has_lanes = sources.iter().flatten().any(|operand| matches!(operand, Operand::V(_)));
    let mut last = None;
    for lane in 0..if has_lanes { 16 } else { 1 } {
        let kinds = sources.map(|operand| match operand {
            Some(Operand::S(reg)) => class(thread.scalar(reg), is_float),
            Some(Operand::V(reg)) => class(thread.vector(reg).0[lane], is_float),
            Some(Operand::Imm(value)) => class(value as u32, false),
            None => 0,
        });
        if last.replace(kinds) != Some(kinds) {
            list.insert((inst.opcode.index() as u32) << 8 | u32::from(kinds[0]) << 4 | u32::from(kinds[1]));
        }
    }
}

/// Runs a line. Returns the executed instructions and their number. `known` has the decoded
/// instructions of earlier lines.
pub fn trace(case: &Case, program: &mut Program, line: usize, known: &Known) -> Option<(Trace, u64)> {
    let shared = Arc::new(Mutex::new(Trace::default()));
    let (into, instructions) = (shared.clone(), known.clone());
    let watcher = move |event: &TraceEvent<'_>| {
        let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
        let mut instructions = instructions.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.words.insert(event.pc, event.word).is_none() {
            instructions.entry(event.pc).or_insert_with(|| decode(event.word).ok());
        }
        // Later iterations of long loops are similar.
        seen.steps += 1;
        if seen.steps < SHORT
            && let Some(Some(next)) = instructions.get(&event.state.pc())
        {
            operand_kinds(next, event.state, &mut seen.operands);
        }
    };
    program.module().ok()?.set_watcher(Some(Box::new(watcher)));
    let good = passes(case, program, line, 20_000_000);
    let steps = program.steps();
    program.module().ok()?.set_watcher(None);
    let seen = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
    good.then_some((seen, steps))
}

/// Returns the kind of an argument, from its bytes, so that it works for all types.
fn argument_class(value: &DataValue) -> (u8, u8) {
    let mut bytes = [0; 16];
    let size = (value.ty().bytes() as usize).clamp(1, 16);
    value.write_to_slice_le(&mut bytes);
    let whole = u128::from_le_bytes(bytes) << (128 - size * 8);
    let top = (whole >> 112) as u32;
    let kind = match whole {
        0 => 0,
        _ if whole == 1 << (128 - size * 8) => 1,
        _ if whole == 1 << 127 => 2,
        _ if whole >> (128 - size * 8) == u128::MAX >> (128 - size * 8) => 3,
        _ if whole | 1 << 127 == u128::MAX << (128 - size * 8) => 4,
        _ => 5,
    };
    let kind = kind * 2 + (top >> 15) as u8;
    let exponent = if value.ty().is_float() {
        match (top >> 7) & 0xff {
            0 => 1,
            0xff => 2,
            _ => 3,
        }
    } else {
        0
    };
    (kind, exponent)
}

/// Returns the features of a line's arguments: each argument separately, combined with the
/// operations of the function.
fn argument_features(func: &Function, args: &[DataValue]) -> Vec<Feature> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let operations: BTreeSet<String> = insts.map(|inst| format!("{:?}", operation(func, inst))).collect();
    let kinds: Vec<_> = args.iter().map(argument_class).collect();
    let each = kinds.iter().enumerate();
    each.map(|(index, kind)| feature(Kind::Argument, ("argument", &operations, index, kind)))
        .collect()
}

/// Observes the features of a function and the changes that its lines notice. The functions in
/// `callees` are changed as well.
pub fn observe(case: &Case, function: usize, callees: &[usize]) -> Observation {
    let lines = &case.lines_of[function];
    let mut found = Observation {
        lines: vec![Vec::new(); lines.len()],
        ..Observation::default()
    };
    let func = &case.file.functions[function].func;
    of_clif(func, &mut found.features);
    #[cfg(feature = "rule-switches")]
    rules_that_decide(case, func, &mut found.features);
    for (features, &line) in found.lines.iter_mut().zip(lines) {
        features.extend(argument_features(func, case.lines.list()[line].arguments()));
    }
    for target in &case.targets {
        let result = caught(|| with_target(case, function, callees, target, &mut found));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(why)) => found.failure = Some(why),
            Err(panic) => found.failure = Some(panic.to_string()),
        }
    }
    found.features.extend(found.lines.iter().flatten());
    found.features.sort_unstable();
    found.features.dedup();
    for features in &mut found.lines {
        features.sort_unstable();
        features.dedup();
    }
    found
}

/// Adds the rules of lowering that affect the code.
#[cfg(feature = "rule-switches")]
fn rules_that_decide(case: &Case, func: &Function, list: &mut Vec<Feature>) {
    use cranelift_naplespu::rule_switches::{take_matched, turn_off};
    for isa in &case.levels {
        let compile = |rule| {
            turn_off(rule);
            let compiled = caught(|| {
                let mut ctx = Context::for_function(func.clone());
                isa.compile(&mut ctx, &mut ControlPlane::default())
            });
            match compiled {
                Ok(Ok(code)) => code.to_bytes(),
                Ok(Err(error)) => error.to_string().into_bytes(),
                Err(panic) => panic.to_string().into_bytes(),
            }
        };
        take_matched();
        let all = compile(None);
        for rule in take_matched() {
            if compile(Some(rule)) != all {
                list.push(feature(Kind::Decides, ("decides", rule)));
            }
        }
        turn_off(None);
    }
}

/// The lines of a function without a change.
struct Baseline {
    /// For each line, the executed instructions and their number.
    lines: Vec<(HashMap<u32, u32>, u64)>,
}

fn baseline(case: &Case, program: &mut Program, lines: &[usize], found: &mut Observation) -> Result<Baseline, String> {
    let words = Arc::new(Mutex::new(HashMap::new()));
    let mut all = Vec::new();
    for &line in lines {
        let (mut traced, steps) = trace(case, program, line, &words).ok_or("a line fails")?;
        if steps < SHORT {
            // Operands are observed only for instructions that are decoded already. The second run
            // also observes instructions that execute only once.
            (traced, _) = trace(case, program, line, &words).ok_or("a line fails")?;
        }
        all.push((traced.words, steps));
        found.lines[all.len() - 1].extend(traced.operands.iter().map(|kinds| feature(Kind::Operands, kinds)));
    }
    let map: CodeMap = program.module().map_err(|error| error.to_string())?.code_map();
    let mut places = all
        .iter()
        .flat_map(|(words, _)| words.keys())
        .filter_map(|&pc| map.name(pc));
    found.has_routines |= places.any(|(name, _)| is_routine(name));
    Ok(Baseline { lines: all })
}

fn with_target(
    case: &Case,
    function: usize,
    callees: &[usize],
    target: &Target,
    found: &mut Observation,
) -> Result<(), String> {
    let func = &case.file.functions[function].func;
    let (code, explanation, ctx) = explained(target, func)?;
    of_code(&target.name, &code, &ctx.func, &explanation.insts, &mut found.features);
    let lines = &case.lines_of[function];
    if lines.is_empty() {
        return Ok(());
    }
    let mut program = program(case, target, function)?;
    let base = baseline(case, &mut program, lines, found)?;
    for &changed in std::iter::once(&function).chain(callees) {
        let func = &case.file.functions[changed].func;
        let (code, explanation, ctx) = explained(target, func)?;
        let address = program
            .address(&function_name(&func.name))
            .ok_or("the function has no address")?;
        let count = (code.pool_start / 4).min(explanation.insts.len() as u32);
        // The cost of one change of each instruction.
        let places = (0..count).map(|number| address + number * 4);
        let cost: u64 = places
            .clone()
            .map(|pc| {
                base.lines
                    .iter()
                    .filter(|(words, _)| words.contains_key(&pc))
                    .map(|(_, steps)| steps + 50)
                    .sum::<u64>()
            })
            .sum();
        let stride = (cost * 7).div_ceil(BUDGET).max(1);
        let mut turn = 0;
        for (number, pc) in places.enumerate() {
            let Some(word) = base.lines.iter().find_map(|(words, _)| words.get(&pc)) else {
                continue;
            };
            let explained = &explanation.insts[number];
            let operation = explained.inst.map(|inst| operation(&ctx.func, inst));
            let opcode = decode(*word).map(|inst| inst.opcode.index());
            for mutant in mutants(*word) {
                turn += 1;
                if turn % stride != 0 {
                    continue;
                }
                write(&mut program, pc, mutant.word)?;
                let mut noticed = Vec::new();
                for (at, (words, steps)) in base.lines.iter().enumerate() {
                    if words.contains_key(&pc) && !passes(case, &mut program, lines[at], steps * 3 + 2000) {
                        noticed.push(at as u16);
                    }
                }
                write(&mut program, pc, *word)?;
                found.tried += 1;
                if !noticed.is_empty() {
                    let what = (&target.name, reason(explained), operation, opcode.ok(), mutant.kind);
                    found.features.push(feature(Kind::Change, ("mutant", what)));
                    found.noticed.push(noticed);
                }
            }
        }
        // A changed function may have modified state that later runs depend on.
        let still = |program: &mut Program| {
            let mut pairs = lines.iter().zip(&base.lines);
            pairs.all(|(&line, (_, steps))| passes(case, program, line, steps * 3 + 2000))
        };
        if !still(&mut program) {
            program = self::program(case, target, function)?;
        }
    }
    Ok(())
}

/// Returns whether a function of this name belongs to the runtime.
pub fn is_routine(name: &str) -> bool {
    name.starts_with("__npu_")
}

/// Writes an instruction word of a program.
pub fn write(program: &mut Program, address: u32, word: u32) -> Result<(), String> {
    program
        .write_memory(address, &word.to_le_bytes())
        .map_err(|error| error.to_string())
}
