//! Random CLIF on vectors of sixteen lanes against the interpreter, which does not support such
//! vectors.
//!
//! All operations work lane by lane, so each function is written twice. The compiler gets a
//! function on vectors. The interpreter gets a function on scalars with the lane number as an
//! additional argument, and runs it once for each lane. Control flow depends on scalars only, so it
//! is the same in both.

use super::{FILL_SEED, FUEL, Failure, Programs, STEPS, argument, parse};
use arbitrary::{Result, Unstructured};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Type, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use naplespu_jit::Program;

const LANES: usize = 16;

/// The number of vector parameters and of scalar parameters.
const VECTORS: usize = 4;
const SCALARS: usize = 2;

/// Size in bytes of the stack slot for vectors.
const SLOT: u32 = 512;

const BINARY: &[&str] = &[
    "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax",
];
const UNARY: &[&str] = &["bnot", "ineg", "iabs", "popcnt"];
const SHIFTS: &[&str] = &["ishl", "ushr", "sshr"];
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

/// A function in both forms.
#[derive(Clone, Debug)]
pub struct Case {
    /// The function on vectors.
    pub vectors: String,
    /// The function on one lane.
    pub scalars: String,
    lane: Type,
    vector_args: Vec<[u32; LANES]>,
    scalar_args: Vec<u32>,
}

struct Writer<'a, 'b> {
    u: &'a mut Unstructured<'b>,
    lane: Type,
    vectors: String,
    scalars: String,
    next: u32,
    /// The vectors in scope.
    values: Vec<u32>,
    /// The scalars in scope that have the type of a lane.
    lanes: Vec<u32>,
}

impl Writer<'_, '_> {
    fn name(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn pick(&mut self) -> Result<u32> {
        // Recent values are more frequent.
        let count = self.values.len();
        let near = self.u.ratio(2u8, 3)?;
        let from = if near { count.saturating_sub(6) } else { 0 };
        Ok(self.values[self.u.int_in_range(from..=count - 1)?])
    }

    fn both(&mut self, text: &str) {
        let line = format!("    {text}\n");
        self.vectors += &line;
        self.scalars += &line;
    }

    fn on_vectors(&mut self, text: &str) {
        self.vectors += &format!("    {text}\n");
    }

    fn on_scalars(&mut self, text: &str) {
        self.scalars += &format!("    {text}\n");
    }

    fn number(&mut self) -> Result<i64> {
        let bits = self.lane.bits();
        Ok(match self.u.int_in_range(0..=3)? {
            0 => self.u.int_in_range(-3..=3)?,
            1 => self.u.int_in_range(-300..=300)?,
            2 => {
                let shift = self.u.int_in_range(0..=bits - 1)?;
                (1i64 << shift) - i64::from(self.u.arbitrary::<bool>()?)
            }
            _ => i64::from(self.u.arbitrary::<i32>()?),
        } << (64 - bits)
            >> (64 - bits))
    }

    /// Adds an operation with a vector result.
    fn line(&mut self) -> Result<()> {
        let ty = self.lane;
        let vector = ty.by(16).map_or(types::I32X16, |ty| ty);
        let result = self.name();
        match self.u.int_in_range(0..=15)? {
            0..=4 => {
                let op = *self.u.choose(BINARY)?;
                let (x, y) = (self.pick()?, self.pick()?);
                self.both(&format!("v{result} = {op} v{x}, v{y}"));
            }
            5 => {
                let op = *self.u.choose(UNARY)?;
                let x = self.pick()?;
                self.both(&format!("v{result} = {op} v{x}"));
            }
            6 => {
                let op = *self.u.choose(SHIFTS)?;
                let (x, amount) = (self.pick()?, self.name());
                let by = self.u.int_in_range(0..=40)?;
                self.both(&format!("v{amount} = iconst.i32 {by}"));
                self.both(&format!("v{result} = {op} v{x}, v{amount}"));
            }
            7..=9 => {
                let cc = *self.u.choose(CONDITIONS)?;
                let (x, y) = (self.pick()?, self.pick()?);
                self.on_vectors(&format!("v{result} = icmp {cc} v{x}, v{y}"));
                let truth = self.name();
                self.on_scalars(&format!("v{truth} = icmp {cc} v{x}, v{y}"));
                self.on_scalars(&format!("v{result} = bmask.{ty} v{truth}"));
            }
            10..=11 => {
                let (c, x, y) = (self.pick()?, self.pick()?, self.pick()?);
                self.both(&format!("v{result} = bitselect v{c}, v{x}, v{y}"));
            }
            12 => {
                let scalar = if self.u.arbitrary()? {
                    *self.u.choose(&self.lanes)?
                } else {
                    let (scalar, number) = (self.name(), self.number()?);
                    self.both(&format!("v{scalar} = iconst.{ty} {number}"));
                    scalar
                };
                self.on_vectors(&format!("v{result} = splat.{vector} v{scalar}"));
                self.on_scalars(&format!("v{result} = bor v{scalar}, v{scalar}"));
            }
            13 => {
                let (x, scalar) = (self.pick()?, *self.u.choose(&self.lanes)?);
                let lane = self.u.int_in_range(0..=LANES - 1)?;
                self.on_vectors(&format!("v{result} = insertlane v{x}, v{scalar}, {lane}"));
                let (number, here) = (self.name(), self.name());
                self.on_scalars(&format!("v{number} = iconst.i32 {lane}"));
                self.on_scalars(&format!("v{here} = icmp eq v0, v{number}"));
                self.on_scalars(&format!("v{result} = select v{here}, v{scalar}, v{x}"));
            }
            14 => {
                let x = self.pick()?;
                let size = vector.bytes();
                let aligned = self.u.arbitrary::<bool>()?;
                let step = if aligned { size } else { 1 };
                let at = self.u.int_in_range(0..=(SLOT - size) / step)? * step;
                let flag = if aligned { " aligned" } else { "" };
                let address = self.name();
                self.on_vectors(&format!("v{address} = stack_addr.i32 ss0"));
                self.on_vectors(&format!("store notrap{flag} v{x}, v{address}+{at}"));
                self.on_vectors(&format!("v{result} = load.{vector} notrap{flag} v{address}+{at}"));
                self.on_scalars(&format!("v{result} = bor v{x}, v{x}"));
            }
            _ => {
                let (x, y, c) = (self.pick()?, self.pick()?, *self.u.choose(&self.lanes)?);
                self.both(&format!("v{result} = select v{c}, v{x}, v{y}"));
            }
        }
        self.values.push(result);
        Ok(())
    }

    fn lines(&mut self, most: usize) -> Result<()> {
        for _ in 0..self.u.int_in_range(1..=most)? {
            self.line()?;
        }
        Ok(())
    }
}

/// Generates a case from bytes.
///
/// # Errors
///
/// Returns an error if the bytes cannot produce a choice. The end of the bytes is not an error.
pub fn generate(u: &mut Unstructured<'_>) -> Result<Case> {
    let lane = *u.choose(&[types::I8, types::I16, types::I32, types::I32])?;
    let vector = lane.by(16).unwrap_or(types::I32X16);
    let mut w = Writer {
        u,
        lane,
        vectors: String::new(),
        scalars: String::new(),
        next: (VECTORS + SCALARS) as u32,
        values: (1..=VECTORS as u32).collect(),
        lanes: (VECTORS as u32 + 1..=(VECTORS + SCALARS) as u32).collect(),
    };
    let params = |ty: Type| {
        let mut list = vec!["i32".to_owned()];
        list.extend(std::iter::repeat_n(ty.to_string(), VECTORS));
        list.extend(std::iter::repeat_n(lane.to_string(), SCALARS));
        list
    };
    let named = |list: &[String]| -> String {
        let named = list.iter().enumerate().map(|(i, ty)| format!("v{i}: {ty}"));
        named.collect::<Vec<_>>().join(", ")
    };
    let (of_vectors, of_scalars) = (params(vector), params(lane));
    w.vectors = format!(
        "function %f0({}) -> {vector} {{\n    ss0 = explicit_slot {SLOT}, align = 64\n\nblock0({}):\n",
        of_vectors.join(", "),
        named(&of_vectors)
    );
    w.scalars = format!(
        "function %f0({}) -> {lane} {{\nblock0({}):\n",
        of_scalars.join(", "),
        named(&of_scalars)
    );
    w.lines(14)?;
    if w.u.ratio(2u8, 3)? {
        // A loop with loop-carried vectors.
        let rounds = w.u.int_in_range(1..=4)?;
        let handed = w.u.int_in_range(1..=3)?;
        let counter = w.name();
        w.both(&format!("v{counter} = iconst.i32 {rounds}"));
        let mut start = Vec::new();
        for _ in 0..handed {
            start.push(w.pick()?);
        }
        let names: Vec<u32> = start.iter().map(|_| w.name()).collect();
        let left = w.name();
        let list = |names: &[u32], last: u32| {
            let all = names.iter().chain([&last]).map(|v| format!("v{v}"));
            all.collect::<Vec<_>>().join(", ")
        };
        w.both(&format!("jump block1({})", list(&start, counter)));
        let typed = |ty: Type| -> String { names.iter().map(|v| format!("v{v}: {ty}, ")).collect() };
        w.vectors += &format!("block1({}v{left}: i32):\n", typed(vector));
        w.scalars += &format!("block1({}v{left}: i32):\n", typed(lane));
        w.values.extend(&names);
        w.lines(10)?;
        let mut next = Vec::new();
        for _ in 0..handed {
            next.push(w.pick()?);
        }
        let (one, less) = (w.name(), w.name());
        w.both(&format!("v{one} = iconst.i32 -1"));
        w.both(&format!("v{less} = iadd v{left}, v{one}"));
        w.both(&format!("brif v{less}, block1({}), block2", list(&next, less)));
        w.vectors += "block2:\n";
        w.scalars += "block2:\n";
        w.lines(6)?;
    }
    // The result depends on all values.
    let mut sum = w.values[0];
    let all = w.values.clone();
    for value in all.iter().rev().take(40) {
        let next = w.name();
        let op = if next.is_multiple_of(2) { "bxor" } else { "isub" };
        w.both(&format!("v{next} = {op} v{sum}, v{value}"));
        sum = next;
    }
    w.both(&format!("return v{sum}"));
    w.vectors += "}\n";
    w.scalars += "}\n";
    let mut vector_args = Vec::new();
    for _ in 0..VECTORS {
        let mut lanes = [0; LANES];
        for lane in &mut lanes {
            *lane = (w.number()? & i64::from(u32::MAX)) as u32;
        }
        vector_args.push(lanes);
    }
    let mut scalar_args = Vec::new();
    for _ in 0..SCALARS {
        scalar_args.push((w.number()? & i64::from(u32::MAX)) as u32);
    }
    Ok(Case {
        vectors: w.vectors,
        scalars: w.scalars,
        lane,
        vector_args,
        scalar_args,
    })
}

/// Interprets the function for one lane. Returns `None` if it runs out of fuel.
fn interpret(functions: &[Function], args: &[DataValue]) -> std::result::Result<Option<DataValue>, Failure> {
    let mut store = FunctionStore::default();
    for function in functions {
        store.add(function.name.to_string(), function);
    }
    let state = InterpreterState::default().with_function_store(store);
    match Interpreter::new(state).with_fuel(Some(FUEL)).call_by_name("%f0", args) {
        Ok(ControlFlow::Return(values)) => Ok(values.into_iter().next()),
        Ok(other) => Err(Failure::Generator(format!("the interpreter ended with {other:?}"))),
        Err(cranelift_interpreter::interpreter::InterpreterError::FuelExhausted) => Ok(None),
        Err(error) => Err(Failure::Generator(format!("the interpreter failed: {error}"))),
    }
}

/// Compares compiler and interpreter under all given settings.
///
/// # Errors
///
/// Returns the first disagreement.
pub fn check(case: &Case, programs: &Programs) -> std::result::Result<(), Failure> {
    let scalars: Vec<DataValue> = case
        .scalar_args
        .iter()
        .map(|&n| argument(case.lane, n.into()))
        .collect();
    let functions = parse(&case.scalars)?;
    let mut expected = Vec::new();
    for lane in 0..LANES {
        let mut args = vec![argument(types::I32, lane as u128)];
        args.extend(
            case.vector_args
                .iter()
                .map(|lanes| argument(case.lane, lanes[lane].into())),
        );
        args.extend(scalars.iter().cloned());
        match interpret(&functions, &args)? {
            Some(value) => expected.push(value),
            None => return Ok(()),
        }
    }
    let vector = case.lane.by(16).unwrap_or(types::I32X16);
    let mut args = vec![argument(types::I32, 0)];
    for lanes in &case.vector_args {
        if vector.bytes() as usize > LANES {
            args.extend(lanes.iter().map(|&lane| argument(case.lane, lane.into())));
        } else {
            args.push(DataValue::V128(lanes.map(|lane| lane as u8)));
        }
    }
    args.extend(scalars);
    let expected = if vector.bytes() as usize > LANES {
        expected
    } else {
        let mut bytes = [0; LANES];
        for (byte, lane) in bytes.iter_mut().zip(&expected) {
            lane.write_to_slice_le(std::slice::from_mut(byte));
        }
        vec![DataValue::V128(bytes)]
    };
    let functions = parse(&case.vectors)?;
    for (config, isa) in &programs.0 {
        let mismatch = |message: String| Failure::Mismatch {
            config: config.clone(),
            message,
        };
        let mut program = Program::with_config(isa.clone(), npu_sim::Config::testing(FILL_SEED));
        program.set_step_limit(STEPS);
        for function in &functions {
            let defined = program.define(function);
            defined.map_err(|error| mismatch(format!("{} did not compile: {error}", function.name)))?;
        }
        match program.call("f0", &args) {
            Ok(values) if values == expected => {}
            Ok(values) => return Err(mismatch(format!("gives {values:?}, expected {expected:?}"))),
            Err(error) => return Err(mismatch(error.to_string())),
        }
    }
    Ok(())
}

/// Generates a case from bytes and checks it.
///
/// # Errors
///
/// Returns a report for a human reader.
pub fn run(data: &[u8], programs: &Programs) -> std::result::Result<(), String> {
    // The generator reads zeros after the end of the bytes, so an error is not a failure of the
    // compiler.
    let Ok(case) = generate(&mut Unstructured::new(data)) else {
        return Ok(());
    };
    check(&case, programs).map_err(|failure| format!("{failure}\n\n{}\n{}", case.vectors, case.scalars))
}
