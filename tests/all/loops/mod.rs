//! Checks that loops behave the same at `opt_level=speed` as at `none`: with every small trip
//! count, at every alignment, and on both sides of every bound.
//!
//! The shapes are enumerated and not random. Each shape is one CLIF function. It is compiled at
//! both levels and called with all combinations of its arguments. The tests compare results, traps
//! and memory.

mod arrays;
mod checks;
mod counts;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{Isa, isa};
use naplespu_jit::{Program, RunError};
use std::sync::Arc;

/// The size of the memory of a function in bytes.
const BYTES: u32 = 2048;

/// The number of instructions after which a call counts as endless.
const STEPS: u64 = 3_000;

fn target(opt_level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(Flags::new(flags))
        .unwrap()
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
enum End {
    Returned(Vec<DataValue>),
    Trapped(String),
    Misaligned,
    /// The call did not end, so it cannot be compared.
    Unknown,
}

/// A function compiled at one level.
struct Compiled {
    program: Program,
    name: String,
    memory: u32,
}

impl Compiled {
    fn new(function: &Function, isa: &Arc<Isa>) -> Self {
        let mut program = Program::new(isa.clone());
        program.set_step_limit(STEPS);
        program
            .define(function)
            .unwrap_or_else(|error| panic!("{error}\n{function}"));
        let memory = program.module().unwrap().allocate(BYTES, 64).unwrap();
        Self {
            program,
            name: naplespu_jit::function_name(&function.name),
            memory,
        }
    }

    /// Calls the function. `before` is the initial content of the memory. Returns the result of the
    /// call, and the memory after it.
    fn call(&mut self, before: &[u8], args: &[i32]) -> (End, Vec<u32>) {
        self.program.write_memory(self.memory, before).unwrap();
        let args: Vec<DataValue> = args.iter().copied().map(DataValue::I32).collect();
        let end = match self.program.call(&self.name, &args) {
            Ok(results) => End::Returned(results),
            Err(RunError::Trap(report)) => End::Trapped(format!("{:?}", report.code)),
            Err(RunError::Misaligned(_)) => End::Misaligned,
            Err(RunError::Timeout { .. }) => End::Unknown,
            Err(other) => panic!("{}: {other}", self.name),
        };
        let words = (0..before.len() as u32).step_by(4);
        let after = words
            .map(|at| self.program.read_word(self.memory + at).unwrap())
            .collect();
        (end, after)
    }
}

/// A function compiled at both levels.
struct Pair {
    text: String,
    levels: [Compiled; 2],
    /// The number of compared calls, and the number of those that trapped.
    compared: usize,
    trapped: usize,
}

impl Pair {
    fn new(text: String) -> Self {
        let functions = cranelift_reader::parse_functions(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        thread_local! {
            static TARGETS: [Arc<Isa>; 2] = ["none", "speed"].map(target);
        }
        let levels = TARGETS.with(|targets| [0, 1].map(|level| Compiled::new(&functions[0], &targets[level])));
        Self {
            text,
            levels,
            compared: 0,
            trapped: 0,
        }
    }

    /// Returns the address of the memory at each level. Both are aligned to a cache line.
    fn memory(&self) -> [i32; 2] {
        self.levels.each_ref().map(|level| level.memory as i32)
    }

    /// Calls the function at both levels and compares. `args` returns the arguments for an address
    /// of the memory.
    fn check(&mut self, before: &[u8], args: impl Fn(i32) -> Vec<i32>) {
        let memory = self.memory();
        let [plain, fast] = &mut self.levels;
        let expected = plain.call(before, &args(memory[0]));
        if expected.0 == End::Unknown {
            return;
        }
        let found = fast.call(before, &args(memory[1]));
        // The addresses may be part of the results.
        let shown: Vec<i32> = args(0);
        assert!(
            expected == found,
            "{}\narguments, from the memory on: {shown:?}\nat none:  {:?}\nat speed: {:?}\nfirst words that differ: {:?}",
            self.text,
            expected.0,
            found.0,
            differing(&expected.1, &found.1)
        );
        self.compared += 1;
        self.trapped += usize::from(matches!(expected.0, End::Trapped(_)));
    }
}

/// Returns the first words that differ: their indices and both values.
fn differing(a: &[u32], b: &[u32]) -> Vec<(usize, u32, u32)> {
    let all = a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b);
    all.map(|(number, (a, b))| (number, *a, *b)).take(4).collect()
}

/// Returns memory contents in which neighboring bytes differ.
fn pattern() -> Vec<u8> {
    let mut state = 0x2545_f491u32;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..BYTES).map(byte).collect()
}
