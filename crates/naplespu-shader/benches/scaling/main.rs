//! Cycles of the shaders of `examples/shaders` on several threads and cores. The table is in
//! docs/compute.md.
//!
//! `cargo bench -p naplespu-shader --bench scaling` prints it. The bench fails if another number of
//! threads or cores changes a result. All counts but the time of the compiler are independent of the
//! host.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_jit::device::Buffer;
use naplespu_shader::{Bound, Dispatch, Module, Options, Runner};

use npu_sim::{Config, Space, TimingConfig};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error>;

/// Threads of a core, and cores. The speed-ups are between the first and third, and the third and
/// last.
const SHAPES: [(usize, usize); 5] = [(1, 1), (4, 1), (8, 1), (8, 4), (8, 16)];

/// A shader with its work-groups and the words of its buffers.
struct Kernel {
    name: &'static str,
    wgsl: &'static str,
    groups: [u32; 3],
    /// The number of work-items in a work-group.
    items: u32,
    buffers: Vec<Vec<u32>>,
    overrides: &'static [(&'static str, f64)],
}

macro_rules! kernel {
    ($name:literal, $groups:expr, $items:expr, $buffers:expr) => {
        kernel!($name, $groups, $items, $buffers, &[])
    };
    ($name:literal, $groups:expr, $items:expr, $buffers:expr, $overrides:expr) => {
        Kernel {
            name: $name,
            wgsl: include_str!(concat!("../../../../examples/shaders/", $name, ".wgsl")),
            groups: $groups,
            items: $items,
            buffers: $buffers,
            overrides: $overrides,
        }
    };
}

/// Returns the words of a linear congruential generator.
fn words(count: u32) -> Vec<u32> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    std::iter::repeat_with(next).take(count as usize).collect()
}

/// Returns numbers from 0 to 1.
fn floats(count: u32) -> Vec<u32> {
    let float = |word: u32| (word as f32 / (1 << 24) as f32).to_bits();
    words(count).into_iter().map(float).collect()
}

fn zeros(count: u32) -> Vec<u32> {
    vec![0; count as usize]
}

/// The shaders, most with 128 work-groups, of which each of sixteen cores gets eight.
fn kernels() -> Vec<Kernel> {
    let cells = words(128 * 64).into_iter().map(|word| word & 1).collect();
    let view = vec![
        (-2.0f32).to_bits(),
        (-1.0f32).to_bits(),
        (3.0f32 / 128.0).to_bits(),
        128,
    ];
    vec![
        kernel!("saxpy", [128, 1, 1], 64, vec![floats(8192), floats(8192), floats(1)]),
        kernel!("reduction", [128, 1, 1], 128, vec![words(16384), zeros(128)]),
        kernel!("scan", [128, 1, 1], 128, vec![words(16384)]),
        kernel!("histogram", [128, 1, 1], 64, vec![words(8192), zeros(256)]),
        kernel!("bitonic", [1, 1, 1], 128, vec![words(128)]),
        kernel!(
            "matmul",
            [8, 16, 1],
            128,
            vec![floats(16384), floats(16384), zeros(16384)],
            &[("size", 128.0)]
        ),
        kernel!(
            "convolution",
            [8, 16, 1],
            64,
            vec![floats(8192), zeros(8192), vec![128, 64]]
        ),
        kernel!("nbody", [16, 1, 1], 64, vec![floats(8192), zeros(8192)]),
        kernel!("mandelbrot", [128, 1, 1], 64, vec![zeros(8192), view]),
        kernel!("fft", [1, 1, 1], 64, vec![floats(128)]),
        kernel!(
            "transpose",
            [8, 16, 1],
            64,
            vec![floats(32768), zeros(32768), vec![128, 256]]
        ),
        kernel!(
            "life",
            [8, 16, 1],
            64,
            vec![cells, zeros(8192)],
            &[("width", 128.0), ("height", 64.0)]
        ),
    ]
}

/// What one run of a kernel has to show.
struct Run {
    cycles: u64,
    result: Vec<Vec<u32>>,
    compiled_in: Duration,
}

/// Counts of the instructions of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Vector instructions, and those of them with a partial lane mask.
    vector: u64,
    partial: u64,
    /// Accesses to main memory: of vectors, and of scalars.
    vectors: u64,
    scalars: u64,
    /// Accesses to the scratchpad.
    scratchpad: u64,
}

fn device(cores: usize) -> Result<Device, Error> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let mut builder = isa::lookup_by_name("naplespu")?;
    if cores > 1 {
        builder.set("atomics", "machine")?;
    }
    let isa = builder.finish(settings::Flags::new(flags))?;
    let config = Config {
        cores,
        ..Config::default()
    };
    Ok(Device::with_config(isa, config)?)
}

/// Runs a kernel on this many threads of each core. With `counts`, the timing model is off.
fn run(kernel: &Kernel, threads: usize, cores: usize, counts: Option<&Arc<Mutex<Counts>>>) -> Result<Run, Error> {
    let mut device = device(cores)?;
    let begun = Instant::now();
    let module = Module::from_wgsl(kernel.wgsl).map_err(|error| error.render(kernel.name, Some(kernel.wgsl)))?;
    let overrides = kernel.overrides.iter().map(|&(name, value)| (name.to_owned(), value));
    let options = Options {
        overrides: overrides.collect(),
        ..Options::default()
    };
    let runner = Runner::new(&mut device, module.compile_for(threads as u32, None, &options)?)?;
    let compiled_in = begun.elapsed();
    let mut buffers: Vec<Buffer> = Vec::new();
    for words in &kernel.buffers {
        let buffer = device.allocate(4 * words.len() as u32)?;
        device.copy_words_in(buffer, 0, words)?;
        buffers.push(buffer);
    }
    let bound: Vec<Bound> = (0..)
        .zip(&buffers)
        .map(|(binding, &buffer)| Bound::whole(0, binding, buffer))
        .collect();
    let mut dispatch = Dispatch::new(kernel.groups, threads);
    dispatch.cores = cores;
    match counts {
        None => dispatch.timing = Some(TimingConfig::default()),
        Some(counts) => {
            let counts = Arc::clone(counts);
            device.module_mut().set_watcher(Some(Box::new(move |event| {
                let mut counts = counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let access = event.effect.access;
                if event.effect.vector.is_some() || access.is_some_and(|access| access.vector) {
                    counts.vector += 1;
                    counts.partial += u64::from(event.state.mask() != u16::MAX);
                }
                match access {
                    Some(access) if access.space == Space::Scratchpad => counts.scratchpad += 1,
                    Some(access) if access.vector => counts.vectors += 1,
                    Some(_) => counts.scalars += 1,
                    None => {}
                }
            })));
        }
    }
    let statistics = runner.dispatch(&mut device, &dispatch, &bound)?;
    let mut result = Vec::new();
    for (buffer, words) in buffers.iter().zip(&kernel.buffers) {
        result.push(device.copy_words_out(*buffer, 0, words.len())?);
    }
    Ok(Run {
        cycles: statistics.cycles().unwrap_or_default(),
        result,
        compiled_in,
    })
}

fn table() -> Result<(), Error> {
    println!(
        "| kernel | 1 thread | 4 | 8 | 4 cores | 16 cores | 8 threads | 16 cores | partial masks | vectors | scalars | scratchpad | ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for kernel in kernels() {
        if !only.is_empty() && !only.iter().any(|one| one == kernel.name) {
            continue;
        }
        let items = u64::from(kernel.groups.iter().product::<u32>() * kernel.items) as f64;
        let counts = Arc::new(Mutex::new(Counts::default()));
        let first = run(&kernel, 8, 1, Some(&counts))?;
        let mut cycles = Vec::new();
        for (threads, cores) in SHAPES {
            if cores > 1 && kernel.groups == [1, 1, 1] {
                cycles.push(None);
                continue;
            }
            let here = |error: Error| format!("{} on {threads} threads of {cores} cores: {error}", kernel.name);
            let one = run(&kernel, threads, cores, None).map_err(here)?;
            if one.result != first.result {
                return Err(format!("{}: another result on {threads} threads of {cores} cores", kernel.name).into());
            }
            cycles.push(Some(one.cycles as f64));
        }
        let counts = *counts.lock().map_err(|_| "a count failed")?;
        let each = |count: u64| format!("{:.2}", count as f64 / items);
        let mut row = vec![format!("`{}`", kernel.name)];
        row.extend(
            cycles
                .iter()
                .map(|cycles| cycles.map_or(String::new(), |cycles| format!("{:.1}", cycles / items))),
        );
        for (slow, fast) in [(0, 2), (2, 4)] {
            let ratio = cycles[slow]
                .zip(cycles[fast])
                .map(|(slow, fast)| format!("{:.1} times", slow / fast));
            row.push(ratio.unwrap_or_default());
        }
        row.push(format!(
            "{:.0} %",
            100.0 * counts.partial as f64 / counts.vector.max(1) as f64
        ));
        row.extend([counts.vectors, counts.scalars, counts.scratchpad].map(each));
        row.push(format!("{:.0}", first.compiled_in.as_secs_f64() * 1000.0));
        println!("| {} |", row.join(" | "));
    }
    Ok(())
}

fn main() -> ExitCode {
    // `cargo bench` passes this option, `cargo test` does not.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
