//! Measures time and memory per CLIF instruction, by the size of the function.

use crate::{Compiler, Error, memory};
use cranelift_codegen::Context;
use cranelift_codegen::ir::Function;
use naplespu_reader::ClifFile;
use std::time::{Duration, Instant};

#[path = "../../growth/shapes.rs"]
mod shapes;

use shapes::SHAPES;

/// The sizes of the functions, in CLIF instructions.
const SIZES: [usize; 5] = [1_000, 5_000, 20_000, 100_000, 200_000];

/// The time of a measurement after which larger sizes of the row are skipped.
const PATIENCE: Duration = Duration::from_secs(4);

/// The number of instructions that are compiled for a measurement.
const TOGETHER: usize = 200_000;

/// The stack of the compiling thread, in bytes: the default of Rust's threads. Larger functions
/// must not need more.
const STACK: usize = 2 << 20;

/// The costs for a function of one size.
struct Cell {
    time: Duration,
    /// The maximum number of bytes in use.
    peak: u64,
}

/// Parses the function of a shape.
fn function(text: &str) -> Result<Function, Error> {
    let file = ClifFile::parse("growth", text.as_bytes());
    let mut functions = file.functions;
    match functions.pop() {
        Some(case) if file.faults.is_empty() => Ok(case.func),
        _ => Err(file.source.render(&file.faults).into()),
    }
}

/// Returns the text of the shape with this name.
pub fn text(name: &str, count: usize) -> Result<String, Error> {
    let shape = SHAPES.iter().find(|shape| shape.name == name);
    Ok((shape.ok_or_else(|| format!("there is no shape `{name}`"))?.text)(
        count,
    ))
}

/// Returns the processor time of the thread, independent of other load.
fn processor_time() -> Option<Duration> {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(spent.split_whitespace().next()?.parse().ok()?))
}

fn measure(compiler: &mut Compiler, func: &Function) -> Option<Cell> {
    // Small functions are compiled repeatedly, so that all sizes take similar time.
    let iterations = (TOGETHER / func.dfg.num_insts()).max(1) as u32;
    let mut peak = 0;
    let mut contexts: Vec<Context> = (0..iterations).map(|_| Context::for_function(func.clone())).collect();
    let (start, since) = (Instant::now(), processor_time());
    for ctx in &mut contexts {
        let before = memory::restart();
        if !compiler.accepts(ctx) {
            return None;
        }
        peak = peak.max(memory::peak() - before);
    }
    let spent = processor_time()
        .zip(since)
        .map(|(now, since)| now.saturating_sub(since));
    let time = spent.unwrap_or_else(|| start.elapsed()) / iterations;
    Some(Cell { time, peak })
}

/// Prints a tab-separated line for each shape whose name contains `part`, compiler and size:
/// nanoseconds of processor time, and the maximum bytes in use, both per CLIF instruction.
pub fn table(level: &str, allocator: &str, part: &str) -> Result<(), Error> {
    println!(
        "# opt_level={level} regalloc_algorithm={allocator}: shape, compiler, CLIF instructions, ns each, bytes each"
    );
    let shapes = || SHAPES.iter().filter(|shape| shape.name.contains(part));
    for shape in shapes() {
        println!("# {}: {}", shape.name, shape.about);
    }
    for shape in shapes() {
        for name in ["ours", "pulley32"] {
            for size in SIZES {
                let func = function(&(shape.text)(size))?;
                let (level, allocator) = (level.to_owned(), allocator.to_owned());
                let count = func.dfg.num_insts() as f64;
                let work = move || {
                    let mut compiler = Compiler::new(name, &level, &allocator).ok()?;
                    measure(&mut compiler, &func)
                };
                let thread = std::thread::Builder::new().stack_size(STACK).spawn(work)?;
                let Some(cell) = thread.join().map_err(|_| "a compiler panicked")? else {
                    break;
                };
                let each = cell.time.as_nanos() as f64 / count;
                println!(
                    "{}\t{name}\t{size}\t{each:.0}\t{:.0}",
                    shape.name,
                    cell.peak as f64 / count
                );
                if cell.time > PATIENCE {
                    break;
                }
            }
        }
    }
    Ok(())
}
