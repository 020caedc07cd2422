//! Runs a product of 32 x 32 matrices in CLIF on 1, 2, 4 and 8 cores of eight threads, with the
//! parts of each matrix in the memory of the tiles of the cores, and checks it.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_jit::device::{Arg, LaunchConfig, ThreadId};
use npu_sim::{Config, TimingConfig};
use std::error::Error;
use std::fmt::Write;

/// The number of rows and of columns.
const SIZE: u32 = 32;

/// Runs the product on a number of cores, which is a power of two up to 8. Returns its cycles,
/// without those in which the cores fill the factors.
///
/// # Errors
///
/// A wrong product, or an error of the device.
pub fn run(cores: u32) -> Result<u32, Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let config = Config {
        cores: cores as usize,
        coherent: false,
        ..Config::default()
    };
    let mut device = Device::with_config(isa, config)?;
    for function in device.add_functions(&cranelift_reader::parse_functions(include_str!("matmul.clif"))?) {
        function?;
    }
    let kernel = device.function("matmul").ok_or("no kernel")?;
    // The same addresses in the memory of each tile; every core uses a part.
    let bytes = 4 * SIZE * SIZE;
    let [a, b, c, other] = [(); 4].map(|()| device.allocate_parts(0..cores, bytes));
    let (a, b, c, other) = (a?, b?, c?, other?);
    let args = |_: usize, thread: ThreadId| -> Vec<Arg> {
        let numbers = [thread.core, thread.thread, cores.ilog2() as usize];
        let matrices = [&a, &b, &c, &other].map(|parts| Arg::from(parts[0]));
        let numbers = numbers.map(|number| Arg::from(number as i32));
        matrices.into_iter().chain(numbers).collect()
    };
    let launch = LaunchConfig::new(device.threads()).timed_up_to(TimingConfig::default(), 1_000_000);
    let done = device.launch_each(kernel, launch, args)?.wait()?;
    let factor = |by: u32| move |row: u32, column: u32| (row * SIZE + column).wrapping_mul(by) + 1;
    let (left, right) = (factor(7), factor(3));
    for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        // A core has eight rows of one half of the columns, or several such units.
        let unit = row / 8 * 2 + column / 16;
        let part = c[(unit * cores / 8) as usize];
        let word = device.copy_words_out(part, 4 * (row * SIZE + column), 1)?;
        let terms = (0..SIZE).map(|k| left(row, k).wrapping_mul(right(k, column)));
        if word != [terms.fold(0, u32::wrapping_add)] {
            return Err(format!("row {row}, column {column}: {word:?}").into());
        }
    }
    let cycles = done.results.iter().filter_map(|(_, result)| match result.first() {
        Some(DataValue::I32(cycles)) => Some(cycles.cast_unsigned()),
        _ => None,
    });
    cycles.max().ok_or_else(|| "the kernel returns no cycles".into())
}

/// Returns the table of cycles and speedups.
///
/// # Errors
///
/// See [`run`].
pub fn table() -> Result<String, Box<dyn Error>> {
    let one = run(1)?;
    let mut text = "cores   cycles  speedup\n".to_owned();
    for cores in [1, 2, 4, 8] {
        let cycles = if cores == 1 { one } else { run(cores)? };
        let speedup = f64::from(one) / f64::from(cycles);
        writeln!(text, "{cores:5} {cycles:8} {speedup:8.2}")?;
    }
    Ok(text)
}

/// Prints the table.
pub fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", table()?);
    Ok(())
}
