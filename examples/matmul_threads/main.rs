//! Runs a matrix product in CLIF on 1, 2, 4 and 8 hardware threads, checks the product, and prints
//! the speed-up.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Program;
use npu_sim::TimingConfig;
use std::error::Error;
use std::fmt::Write;

/// The number of rows and of columns.
const SIZE: usize = 64;

/// The additional latency of memory, in cycles.
const MEMORY_DELAY: u32 = 20;

fn word(number: u32) -> DataValue {
    DataValue::I32(number.cast_signed())
}

/// The costs of one run.
pub struct Run {
    /// The number of hardware threads.
    pub threads: usize,
    /// The number of cycles.
    pub cycles: u64,
    /// The number of instructions of all threads.
    pub instructions: u64,
}

/// Runs the kernel on each number of threads and checks the product.
///
/// # Errors
///
/// A wrong product, or the error of a call.
pub fn run(numbers: &[usize]) -> Result<Vec<Run>, Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let mut program = Program::new(isa);
    for func in cranelift_reader::parse_functions(include_str!("matmul.clif"))? {
        program.define(&func)?;
    }
    let module = program.module()?;
    let bytes = u32::try_from(SIZE * SIZE * 4)?;
    let [a, b, c] = [
        module.allocate(bytes, 64)?,
        module.allocate(bytes, 64)?,
        module.allocate(bytes, 64)?,
    ];
    let left: Vec<u32> = (0..SIZE * SIZE).map(|i| (i * 7 + 3) as u32 % 1000).collect();
    let right: Vec<u32> = (0..SIZE * SIZE).map(|i| (i * 5 + 1) as u32 % 1000).collect();
    module.write_words(a, &left)?;
    module.write_words(b, &right)?;
    module.set_timing(Some(TimingConfig {
        memory_delay: MEMORY_DELAY,
        ..TimingConfig::default()
    }));
    let mut runs = Vec::new();
    for &threads in numbers {
        module.write_words(c, &vec![0; SIZE * SIZE])?;
        let args = [word(a), word(b), word(c), word(SIZE as u32), word(threads as u32)];
        let results = module.call_threads_by_name("matmul", &args, threads)?;
        if module.read_words(c, SIZE * SIZE) != product(&left, &right) || results.iter().any(|r| *r != results[0]) {
            return Err(format!("a wrong product on {threads} threads").into());
        }
        let report = module.timing_report().ok_or("no report")?;
        runs.push(Run {
            threads,
            cycles: report.cycles,
            instructions: report.total.instructions,
        });
    }
    Ok(runs)
}

fn product(a: &[u32], b: &[u32]) -> Vec<u32> {
    let sum = |row: usize, column: usize| {
        let terms = (0..SIZE).map(|k| a[row * SIZE + k].wrapping_mul(b[k * SIZE + column]));
        terms.fold(0u32, u32::wrapping_add)
    };
    (0..SIZE * SIZE).map(|i| sum(i / SIZE, i % SIZE)).collect()
}

/// Returns a table with a line for each run.
pub fn table(runs: &[Run]) -> String {
    let mut text = String::from("threads    cycles  instructions   IPC  speed-up\n");
    for run in runs {
        let per_cycle = run.instructions as f64 / run.cycles as f64;
        let faster = runs[0].cycles as f64 / run.cycles as f64;
        let _ = writeln!(
            text,
            "{:7} {:9} {:13} {per_cycle:5.2} {faster:9.2}",
            run.threads, run.cycles, run.instructions
        );
    }
    text
}

/// Prints the table.
pub fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", table(&run(&[1, 2, 4, 8])?));
    Ok(())
}
