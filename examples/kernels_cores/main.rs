//! Runs a convolution and a histogram in CLIF on 1, 2, 4 and 8 cores of eight threads, with the data
//! of each core in the memory of its tile, and checks the results.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_jit::device::{Arg, Buffer, DeviceError, LaunchConfig, ThreadId};
use npu_sim::{Config, MissesReport, TimingConfig};
use std::error::Error;
use std::fmt::Write;

/// The number of rows and of columns of the image.
const SIZE: u32 = 32;

/// The weights of the convolution.
const WEIGHTS: [u32; 9] = [1, 2, 1, 2, 4, 2, 1, 2, 1];

/// The numbers of words and of bins of the histogram.
const WORDS: u32 = 2048;
const BINS: u32 = 128;

/// A kernel with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The convolution.
    Convolution,
    /// The histogram.
    Histogram,
}

/// The cycles and the misses of a run.
#[derive(Debug)]
pub struct Measured {
    /// The cycles of the kernel, without those in which the cores fill the input.
    pub cycles: u32,
    /// The misses of the whole launch.
    pub misses: MissesReport,
    /// The misses as text, with the names of the buffers.
    pub text: String,
    /// A heat map of the mesh as SVG.
    pub map: String,
}

/// Runs a kernel on a number of cores, which is a power of two up to 8.
///
/// # Errors
///
/// A wrong result, or an error of the device.
pub fn run(kernel: Kernel, cores: u32) -> Result<Measured, Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let config = Config {
        cores: cores as usize,
        coherent: false,
        ..Config::default()
    };
    let mut device = Device::with_config(isa, config)?;
    let source = match kernel {
        Kernel::Convolution => include_str!("convolution.clif"),
        Kernel::Histogram => include_str!("histogram.clif"),
    };
    for function in device.add_functions(&cranelift_reader::parse_functions(source)?) {
        function?;
    }
    let function = device.function("kernel").ok_or("no kernel")?;
    let buffers = buffers(&mut device, kernel, cores)?;
    // Each thread receives its core, which decides its part of the data, and its number.
    let args = |_: usize, thread: ThreadId| -> Vec<Arg> {
        let numbers = [thread.core, thread.thread, cores.ilog2() as usize];
        let numbers = numbers.map(|number| Arg::from(number as i32));
        let addresses = buffers.iter().map(|parts| Arg::from(parts[0]));
        addresses.chain(numbers).collect()
    };
    let launch = LaunchConfig::new(device.threads()).timed_up_to(TimingConfig::default(), 1_000_000);
    let done = device.launch_each(function, launch.with_misses(), args)?.wait()?;
    match kernel {
        Kernel::Convolution => check_convolution(&device, &buffers[1], cores)?,
        Kernel::Histogram => check_histogram(&device, &buffers[2], cores)?,
    }
    let cycles = done.results.iter().filter_map(|(_, result)| match result.first() {
        Some(DataValue::I32(cycles)) => Some(cycles.cast_unsigned()),
        _ => None,
    });
    let misses = done.statistics.misses.ok_or("no misses")?;
    let report = done.statistics.timing.ok_or("no cycles")?;
    Ok(Measured {
        cycles: cycles.max().ok_or("the kernel returns no cycles")?,
        text: misses.text(&device.variables(), 10),
        map: misses.heat_map(&report.mesh, &report.links),
        misses,
    })
}

/// Allocates the buffers of a kernel: at the same offset in the memory of each tile, where every
/// core uses its part.
fn buffers(device: &mut Device, kernel: Kernel, cores: u32) -> Result<Vec<Vec<Buffer>>, DeviceError> {
    let image = 4 * SIZE * SIZE;
    let weights: Vec<u8> = WEIGHTS.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let names = match kernel {
        Kernel::Convolution => ["image", "result", "weights", "other image"],
        Kernel::Histogram => ["words", "bins", "result", "other memory"],
    };
    let parts = match kernel {
        Kernel::Convolution => vec![
            device.allocate_parts(0..cores, image)?,
            device.allocate_parts(0..cores, image)?,
            // All cores read the weights, so each has a copy.
            device.replicate(0..cores, &weights)?,
            device.allocate_parts(0..cores, image)?,
        ],
        Kernel::Histogram => vec![
            device.allocate_parts(0..cores, 4 * WORDS)?,
            device.allocate_parts(0..cores, 4 * BINS)?,
            device.allocate_parts(0..cores, 4 * BINS)?,
            device.allocate_parts(0..cores, 4 * (WORDS + 2 * BINS))?,
        ],
    };
    for (buffers, name) in parts.iter().zip(names) {
        for &buffer in buffers {
            device.set_name(buffer, name)?;
        }
    }
    Ok(parts)
}

fn check_convolution(device: &Device, result: &[Buffer], cores: u32) -> Result<(), Box<dyn Error>> {
    let pixel = |row: u32, column: u32| (row * SIZE + column) * 7 + 1;
    for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
        let part = result[(row / (SIZE / cores)) as usize];
        let word = device.copy_words_out(part, 4 * (row * SIZE + column), 1)?;
        let at = |position: u32, by: u32| (position + by).saturating_sub(1).min(SIZE - 1);
        let terms = (0..).zip(WEIGHTS);
        let terms = terms.map(|(k, weight)| weight * pixel(at(row, k / 3), at(column, k % 3)));
        if word != [terms.sum::<u32>()] {
            return Err(format!("row {row}, column {column}: {word:?}").into());
        }
    }
    Ok(())
}

fn check_histogram(device: &Device, result: &[Buffer], cores: u32) -> Result<(), Box<dyn Error>> {
    let mut bins = [0; BINS as usize];
    for word in (0..WORDS).map(|i| i.wrapping_mul(0x9e37_79b1).wrapping_add(1)) {
        bins[(word >> 25) as usize] += 1;
    }
    for (line, bins) in (0..).zip(bins.chunks(16)) {
        let words = device.copy_words_out(result[(line % cores) as usize], 64 * line, 16)?;
        if words != bins {
            return Err(format!("bins from {} on: {words:?}", 16 * line).into());
        }
    }
    Ok(())
}

/// Returns the table of cycles and speedups.
///
/// # Errors
///
/// See [`run`].
pub fn table() -> Result<String, Box<dyn Error>> {
    let mut text = "cores  convolution  speedup  histogram  speedup\n".to_owned();
    let kernels = [Kernel::Convolution, Kernel::Histogram];
    let mut one = Vec::new();
    for cores in [1, 2, 4, 8] {
        write!(text, "{cores:5}")?;
        for (number, kernel) in kernels.into_iter().enumerate() {
            let cycles = run(kernel, cores)?.cycles;
            if cores == 1 {
                one.push(cycles);
            }
            let speedup = f64::from(one[number]) / f64::from(cycles);
            let width = [13, 11][number];
            write!(text, "{cycles:width$}{speedup:9.2}")?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// Prints the table, and the misses of eight cores.
pub fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", table()?);
    for kernel in [Kernel::Convolution, Kernel::Histogram] {
        println!("\n{kernel:?}\n{}", run(kernel, 8)?.text);
    }
    Ok(())
}
