//! Runs counterexamples on the simulator.
//!
//! The solver alone does not refute a function: the compiled code runs on the simulator with the
//! input, and a counterexample counts only if the result deviates from the CLIF.

use crate::abi::{self, Layout};
use crate::answer::Example;
use crate::floats::{self, Arithmetic};
use crate::goals::Expected;
use crate::memory::{Region, initial_name};
use crate::term::eval::Evaluator;
use crate::term::{Bits, Op, Pool, Term};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Ieee128};
use cranelift_codegen::ir::{Function, Type, types};
use cranelift_naplespu::{CompiledCode, Isa};
use naplespu_jit::{Program, RunError, function_name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The address of memory for pointers of counterexamples, in the data of the simulated device.
pub const MEMORY: u32 = 0x6000_0000;
/// The data of the device.
const DATA: std::ops::Range<u32> = 0x4000_0000..0xd000_0000;
/// The limit of instructions of a counterexample.
const STEPS: u64 = 10_000_000;

/// The result of running a counterexample.
pub enum Confirmation {
    /// The simulator deviates from the CLIF.
    Confirmed(Example),
    /// The simulator agrees with the CLIF, or cannot run the input; the text is the reason.
    Not(String),
    /// The result of the CLIF depends on the address of the stack or a symbol.
    OnPlaces,
}

/// Returns a value of a CLIF type with these bits, or `None` for vectors that [`DataValue`] cannot
/// represent.
pub fn data_value(ty: Type, bits: Bits) -> Option<DataValue> {
    Some(match ty {
        types::I8 => DataValue::I8(bits.low() as i8),
        types::I16 => DataValue::I16(bits.low() as i16),
        types::I32 => DataValue::I32(bits.low() as i32),
        types::I64 => DataValue::I64(bits.low() as i64),
        types::I128 => DataValue::I128(bits.low128() as i128),
        types::F16 => DataValue::F16(Ieee16::with_bits(bits.low() as u16)),
        types::F32 => DataValue::F32(Ieee32::with_bits(bits.low() as u32)),
        types::F64 => DataValue::F64(Ieee64::with_bits(bits.low())),
        types::F128 => DataValue::F128(Ieee128::with_bits(bits.low128())),
        _ if ty.is_vector() && ty.bits() == 128 => DataValue::V128(bits.low128().to_le_bytes()),
        _ if ty.is_vector() && ty.bits() == 64 => DataValue::V64(bits.low().to_le_bytes()),
        _ => return None,
    })
}

/// Runs an input on the simulator.
pub fn confirm(
    pool: &mut Pool,
    func: &Function,
    code: &CompiledCode,
    isa: &Arc<Isa>,
    layout: &Layout,
    expected: &Expected,
    values: &mut Evaluator,
) -> Confirmation {
    let has_floats = set_floats(pool, expected, values, Arithmetic::Unit);
    if has_floats && depends_on_floats(pool, expected, values) {
        return Confirmation::Not("the CLIF result depends on float operations without a meaning here".to_owned());
    }
    let mut arguments = Vec::new();
    let pieces = layout.arguments(pool, &func.signature);
    for (param, pieces) in func.signature.params.iter().zip(pieces) {
        let whole = pool.of_words(&pieces);
        let bits = values.value(pool, whole);
        match data_value(param.value_type, bits) {
            Some(value) => arguments.push(value),
            None => return Confirmation::Not(format!("values of type {} cannot be created", param.value_type)),
        }
    }
    let trap = expected
        .traps
        .iter()
        .find(|(_, condition)| !values.value(pool, *condition).is_zero())
        .map(|trap| trap.0);
    let results = match trap {
        Some(_) => Ok(Vec::new()),
        None => expected_results(pool, func, expected, values),
    };
    let results = match results {
        Ok(results) => results,
        Err(why) => return Confirmation::Not(why),
    };
    if depends_on_places(pool, expected, values) {
        return Confirmation::OnPlaces;
    }
    let memory = initial_memory(pool, expected, values);
    let found = run(func, code, isa, &arguments, &memory, |program| {
        for &(address, value) in &expected.written {
            let address = values.value(pool, address).low() as u32;
            let value = values.value(pool, value).low() as u8;
            let word = program.read_word(address & !3).map_err(|error| error.to_string())?;
            let have = (word >> (8 * (address & 3))) as u8;
            if have != value && DATA.contains(&address) {
                return Err(format!(
                    "the byte at {address:#x} is {have:#04x} instead of {value:#04x}"
                ));
            }
        }
        Ok(())
    });
    let name = func.name.to_string();
    let show = |values: &[DataValue]| -> String {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        match texts.len() {
            1 => texts.into_iter().next().unwrap_or_default(),
            _ => format!("[{}]", texts.join(", ")),
        }
    };
    let texts: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let wanted = match trap {
        Some(code) => format!("trap {}", trap_name(code)),
        None => show(&results),
    };
    let found = match (found, trap) {
        (Run::Impossible(why), _) => return Confirmation::Not(why),
        (Run::Trap(code), Some(want)) if code == Some(want) => return Confirmation::Not("both trap".to_owned()),
        (Run::Results(have), None) if same(func, &have, &results, has_floats) => {
            return Confirmation::Not("the simulator agrees with CLIF".to_owned());
        }
        (Run::Results(have), None)
            if has_floats && {
                set_floats(pool, expected, values, Arithmetic::Ieee);
                expected_results(pool, func, expected, values).is_ok_and(|results| same(func, &have, &results, true))
            } =>
        {
            return Confirmation::Not("the compiler computes floats by IEEE 754".to_owned());
        }
        (Run::Results(have), _) => show(&have),
        (Run::Trap(code), _) => format!("trap {}", code.map_or_else(|| "without a code".to_owned(), trap_name)),
        (Run::Fault(what), _) => what,
    };
    let call = format!("{name}({})", texts.join(", "));
    let run_line = match trap {
        _ if !memory.is_empty() => None,
        Some(code) => Some(format!("; trap: {call} == {}", trap_name(code))),
        None if results.is_empty() => Some(format!("; run: {call}")),
        None => Some(format!("; run: {call} == {}", show(&results))),
    };
    Confirmation::Confirmed(Example {
        arguments: texts,
        expected: wanted,
        found,
        run_line,
        memory,
    })
}

/// Returns the results of the CLIF for an input, or the reason why they cannot be compared.
fn expected_results(
    pool: &mut Pool,
    func: &Function,
    expected: &Expected,
    values: &mut Evaluator,
) -> Result<Vec<DataValue>, String> {
    let params = func.signature.returns.iter().zip(&expected.results);
    params
        .map(|(param, lanes)| {
            let whole = pool.of_words(lanes);
            let bits = values.value(pool, whole);
            data_value(param.value_type, bits)
                .ok_or_else(|| format!("values of type {} cannot be compared", param.value_type))
        })
        .collect()
}

/// Returns whether results have the same bits. The NaN that a float operation returns is any NaN.
fn same(func: &Function, a: &[DataValue], b: &[DataValue], has_floats: bool) -> bool {
    let types = func.signature.returns.iter().map(|param| param.value_type);
    let agree = |((a, b), ty): ((&DataValue, &DataValue), Type)| match has_floats {
        true => same_or_nans(a, b, ty),
        false => a.bitwise_eq(b),
    };
    a.len() == b.len() && a.iter().zip(b).zip(types).all(agree)
}

/// Returns whether values of a type are the same. All NaNs count as the same value.
pub fn same_or_nans(a: &DataValue, b: &DataValue, ty: Type) -> bool {
    let lanes = |value: &DataValue| -> Option<Vec<u64>> {
        let bytes: &[u8] = match value {
            DataValue::V128(bytes) => bytes,
            DataValue::V64(bytes) => bytes,
            _ => return None,
        };
        let chunks = bytes.chunks(ty.lane_bits() as usize / 8);
        Some(
            chunks
                .map(|chunk| chunk.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
                .collect(),
        )
    };
    if a.bitwise_eq(b) {
        return true;
    }
    match (a, b) {
        (DataValue::F16(a), DataValue::F16(b)) => a.is_nan() && b.is_nan(),
        (DataValue::F32(a), DataValue::F32(b)) => a.is_nan() && b.is_nan(),
        (DataValue::F64(a), DataValue::F64(b)) => a.is_nan() && b.is_nan(),
        (DataValue::F128(a), DataValue::F128(b)) => a.is_nan() && b.is_nan(),
        _ => match (lanes(a), lanes(b), ty.lane_type()) {
            (Some(a), Some(b), types::F32) => a
                .iter()
                .zip(&b)
                .all(|(&a, &b)| a == b || f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan()),
            (Some(a), Some(b), types::F64) => a
                .iter()
                .zip(&b)
                .all(|(&a, &b)| a == b || f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()),
            _ => false,
        },
    }
}

fn trap_name(code: u8) -> String {
    match std::num::NonZeroU8::new(code) {
        Some(code) => cranelift_codegen::ir::TrapCode::from_raw(code).to_string(),
        None => "0".to_owned(),
    }
}

/// Returns the terms on which the expectation depends.
fn roots(expected: &Expected) -> Vec<Term> {
    let mut roots: Vec<Term> = expected.results.iter().flatten().copied().collect();
    roots.extend(expected.traps.iter().map(|trap| trap.1));
    roots.extend(expected.written.iter().map(|written| written.1));
    roots
}

/// Gives each operation of the float unit a result. Returns whether the expectation contains float
/// operations.
fn set_floats(pool: &Pool, expected: &Expected, values: &mut Evaluator, arithmetic: Arithmetic) -> bool {
    let mut has_floats = false;
    // Operands come before the operations that use them.
    for term in pool.cone(&roots(expected)) {
        if let Op::App(symbol) = pool.node(term).op
            && floats::is_function(&pool.symbol(symbol).name)
        {
            has_floats = true;
            let args: Vec<Bits> = pool.args(term).iter().map(|&arg| values.value(pool, arg)).collect();
            if let Some(result) = floats::result(&pool.symbol(symbol).name, &args, arithmetic) {
                values.set_application(symbol, args, result);
            }
        }
    }
    has_floats
}

/// Returns whether a goal fails for an input when all float operations compute what the float unit
/// computes.
pub fn fails_on_the_unit(pool: &Pool, failure: Term, values: &mut Evaluator) -> bool {
    // Operands come before the operations that use them.
    for term in pool.cone(&[failure]) {
        if let Op::App(symbol) = pool.node(term).op
            && floats::is_function(&pool.symbol(symbol).name)
        {
            let args: Vec<Bits> = pool.args(term).iter().map(|&arg| values.value(pool, arg)).collect();
            let Some(result) = floats::result(&pool.symbol(symbol).name, &args, Arithmetic::Unit) else {
                return false;
            };
            values.set_application(symbol, args, result);
        }
    }
    !values.value(pool, failure).is_zero()
}

/// Returns whether results, traps or written bytes depend on float operations that are not those of
/// the float unit.
fn depends_on_floats(pool: &Pool, expected: &Expected, values: &Evaluator) -> bool {
    let roots = roots(expected);
    let mut moved = values.clone();
    for term in pool.cone(&roots) {
        if let Op::App(symbol) = pool.node(term).op
            && floats::is_function(&pool.symbol(symbol).name)
        {
            let args: Vec<Bits> = pool.args(term).iter().map(|&arg| moved.value(pool, arg)).collect();
            if floats::result(&pool.symbol(symbol).name, &args, Arithmetic::Unit).is_none() {
                let width = pool.width(term);
                let other = moved.value(pool, term).not(width);
                moved.set_application(symbol, args, other);
            }
        }
    }
    let mut values = values.clone();
    roots
        .into_iter()
        .any(|root| values.value(pool, root) != moved.value(pool, root))
}

/// Returns whether results or traps depend on the stack pointer or on symbol addresses, which
/// differ on the simulator.
fn depends_on_places(pool: &Pool, expected: &Expected, values: &Evaluator) -> bool {
    let mut roots: Vec<Term> = expected.results.iter().flatten().copied().collect();
    roots.extend(expected.traps.iter().map(|trap| trap.1));
    let mut moved = values.clone();
    for term in pool.cone(&roots) {
        if let Op::Var(symbol) = pool.node(term).op
            && abi::is_place(&pool.symbol(symbol).name)
        {
            // Another address with the alignment of stacks.
            moved.set(
                pool,
                term,
                Bits::from(u64::from(MEMORY) + 0x1540 + 0x1_0000 * symbol.index() as u64),
            );
        }
    }
    let mut values = values.clone();
    roots
        .into_iter()
        .any(|root| values.value(pool, root) != moved.value(pool, root))
}

/// Returns the bytes of main memory that the function reads.
fn initial_memory(pool: &mut Pool, expected: &Expected, values: &mut Evaluator) -> Vec<(u32, Vec<u8>)> {
    let roots = roots(expected);
    let mut bytes: BTreeMap<u32, u8> = BTreeMap::new();
    for term in pool.cone(&roots) {
        if let Op::App(symbol) = pool.node(term).op
            && pool.symbol(symbol).name == initial_name(Region::Main)
        {
            let address = pool.args(term)[0];
            let at = values.value(pool, address).low() as u32;
            bytes.insert(at, values.value(pool, term).low() as u8);
        }
    }
    let mut out: Vec<(u32, Vec<u8>)> = Vec::new();
    for (address, byte) in bytes {
        match out.last_mut() {
            Some((start, list)) if *start + list.len() as u32 == address => list.push(byte),
            _ => out.push((address, vec![byte])),
        }
    }
    out
}

/// The result of a run on the simulator.
enum Run {
    Results(Vec<DataValue>),
    Trap(Option<u8>),
    /// An error that no program may cause.
    Fault(String),
    /// The input cannot be run.
    Impossible(String),
}

fn run(
    func: &Function,
    code: &CompiledCode,
    isa: &Arc<Isa>,
    arguments: &[DataValue],
    memory: &[(u32, Vec<u8>)],
    check: impl FnOnce(&mut Program) -> Result<(), String>,
) -> Run {
    let mut program = Program::new(isa.clone());
    program.set_step_limit(STEPS);
    if let Err(error) = program.define_compiled(func, Ok(code.clone())) {
        return Run::Impossible(error.to_string());
    }
    for (address, bytes) in memory {
        let end = address.checked_add(bytes.len() as u32);
        if !DATA.contains(address) || end.is_none_or(|end| end >= DATA.end) {
            return Run::Impossible(format!(
                "an address of the example, {address:#x}, is no memory for data"
            ));
        }
        if let Err(error) = program.write_memory(*address, bytes) {
            return Run::Impossible(error.to_string());
        }
    }
    match program.call(&function_name(&func.name), arguments) {
        Ok(results) => match check(&mut program) {
            Ok(()) => Run::Results(results),
            Err(what) => Run::Fault(what),
        },
        Err(RunError::Trap(report)) => Run::Trap(report.code.map(|code| code.as_raw().get())),
        Err(
            error @ (RunError::Undefined { .. }
            | RunError::NoSuchFunction(_)
            | RunError::Refused { .. }
            | RunError::NotCompiled { .. }
            | RunError::Signature(_)
            | RunError::Link(_)),
        ) => Run::Impossible(error.to_string()),
        Err(error) => Run::Fault(error.to_string()),
    }
}
