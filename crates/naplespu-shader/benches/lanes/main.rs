//! Cycles of shaders on lanes, beside one work-item at a time and beside hand-written CLIF with
//! vectors. The table is in docs/compute.md.
//!
//! `cargo bench -p naplespu-shader --bench lanes` prints it. The bench fails if a shader and the
//! hand-written kernel have different results. The counts do not depend on the host.
//!
//! - `-- --listing KERNEL` prints the code of a kernel on sixteen lanes, and of the hand-written one.

use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_jit::device::{Arg, Buffer, LaunchConfig, ThreadSet};
use naplespu_shader::{Bound, Dispatch, Module, Options, Runner};
use npu_sim::TimingConfig;
use std::process::ExitCode;

type Error = Box<dyn std::error::Error>;

/// A shader, its buffers, and the same kernel by hand.
struct Kernel {
    name: &'static str,
    wgsl: &'static str,
    clif: &'static str,
    groups: [u32; 3],
    buffers: Vec<Vec<u32>>,
    /// The buffers that the hand-written kernel gets, followed by the size of the first in bytes if
    /// `sized`.
    by_hand: Vec<usize>,
    sized: bool,
    result: usize,
}

macro_rules! sources {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!($name, ".wgsl")),
            include_str!(concat!($name, ".clif")),
        )
    };
}

/// Returns numbers between -1 and 1.
fn numbers(count: u32) -> Vec<u32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0).to_bits()
    };
    (0..count).map(|_| next()).collect()
}

fn kernels() -> Vec<Kernel> {
    let of = |(name, wgsl, clif), groups, buffers: Vec<Vec<u32>>, by_hand: &[usize], sized, result| Kernel {
        name,
        wgsl,
        clif,
        groups,
        buffers,
        by_hand: by_hand.to_vec(),
        sized,
        result,
    };
    let (x, y) = (numbers(1024), numbers(2048)[1024..].to_vec());
    let lanes: Vec<u32> = (0..16).collect();
    vec![
        of(
            sources!("saxpy"),
            [16, 1, 1],
            vec![x.clone(), y.clone()],
            &[0, 1],
            true,
            1,
        ),
        of(
            sources!("dot"),
            [1, 1, 1],
            vec![x.clone(), y.clone(), vec![0; 16]],
            &[0, 1, 2],
            true,
            2,
        ),
        of(
            sources!("relu"),
            [16, 1, 1],
            vec![x.clone(), vec![0; 1024]],
            &[0, 1],
            true,
            1,
        ),
        of(
            sources!("matmul"),
            [2, 8, 1],
            vec![x, y, vec![0; 1024]],
            &[0, 1, 2],
            false,
            2,
        ),
        of(
            sources!("mandelbrot"),
            [4, 4, 1],
            vec![vec![0; 1024], lanes],
            &[0, 1],
            false,
            0,
        ),
    ]
}

fn device() -> Result<Device, Error> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    Ok(Device::new(isa)?)
}

fn fill(device: &mut Device, kernel: &Kernel) -> Result<Vec<Buffer>, Error> {
    let mut buffers = Vec::new();
    for words in &kernel.buffers {
        let buffer = device.allocate(4 * words.len() as u32)?;
        device.copy_words_in(buffer, 0, words)?;
        buffers.push(buffer);
    }
    Ok(buffers)
}

fn read(device: &Device, kernel: &Kernel, buffers: &[Buffer]) -> Result<Vec<u32>, Error> {
    let count = kernel.buffers[kernel.result].len();
    Ok(device.copy_words_out(buffers[kernel.result], 0, count)?)
}

/// Returns the cycles and the result of the shader.
fn shader(kernel: &Kernel, lanes: u32, threads: usize, listing: bool) -> Result<(u64, Vec<u32>), Error> {
    let module = Module::from_wgsl(kernel.wgsl).map_err(|error| error.render(kernel.name, Some(kernel.wgsl)))?;
    let options = Options {
        lanes,
        ..Options::default()
    };
    let compiled = module.compile(None, &options)?;
    let mut device = device()?;
    let name = naplespu_jit::function_name(&compiled.function.name);
    let runner = Runner::new(&mut device, compiled)?;
    let buffers = fill(&mut device, kernel)?;
    let bound: Vec<Bound> = (0..)
        .zip(&buffers)
        .map(|(binding, &buffer)| Bound::whole(0, binding, buffer))
        .collect();
    let mut dispatch = Dispatch::new(kernel.groups, threads);
    dispatch.timing = Some(TimingConfig::default());
    let statistics = runner.dispatch(&mut device, &dispatch, &bound)?;
    if listing {
        print_code(&device, &name);
        println!("{}", statistics.timing.as_ref().ok_or("no report")?);
    }
    let cycles = statistics.cycles().ok_or("no cycles")?;
    Ok((cycles, read(&device, kernel, &buffers)?))
}

/// Returns the cycles and the result of the hand-written kernel on one thread.
fn by_hand(kernel: &Kernel, listing: bool) -> Result<(u64, Vec<u32>), Error> {
    let function: Function = cranelift_reader::parse_functions(kernel.clif)?.remove(0);
    let mut device = device()?;
    let id = device.add_function(&function)?;
    let buffers = fill(&mut device, kernel)?;
    let mut args: Vec<Arg> = kernel.by_hand.iter().map(|&index| buffers[index].into()).collect();
    if kernel.sized {
        args.push(Arg::from(buffers[0].size() as i32));
    }
    let config = LaunchConfig::new(ThreadSet::first(1)).timed(TimingConfig::default());
    let finished = device.launch(id, config, &args)?.wait()?;
    device.module_mut().write_back()?;
    if listing {
        print_code(&device, &naplespu_jit::function_name(&function.name));
        println!("{}", finished.statistics.timing.as_ref().ok_or("no report")?);
    }
    let cycles = finished.statistics.cycles().ok_or("no cycles")?;
    Ok((cycles, read(&device, kernel, &buffers)?))
}

fn print_code(device: &Device, name: &str) {
    let code = device.function(name).and_then(|id| device.module().code(id));
    let Some(code) = code else {
        return;
    };
    println!("{name}:");
    for (index, word) in code.code_buffer().as_chunks::<4>().0.iter().enumerate() {
        println!(
            "{:5x}  {}",
            4 * index,
            npu_mc::disasm::word_text(u32::from_le_bytes(*word))
        );
    }
}

fn run() -> Result<(), Error> {
    let listed = std::env::args().skip_while(|argument| argument != "--listing").nth(1);
    if listed.is_none() {
        println!("kernel          1 lane  16 lanes  ratio   by hand  ratio  64 lanes  16 lanes, 8 threads");
    }
    for kernel in kernels() {
        if let Some(listed) = &listed {
            if listed == kernel.name {
                shader(&kernel, 16, 1, true)?;
                by_hand(&kernel, true)?;
            }
            continue;
        }
        let (hand, expected) = by_hand(&kernel, false)?;
        let mut cycles = Vec::new();
        for (lanes, threads) in [(1, 1), (16, 1), (64, 1), (16, 8)] {
            let (one, result) = shader(&kernel, lanes, threads, false)?;
            if result != expected {
                return Err(format!("{}: another result with {lanes} lanes", kernel.name).into());
            }
            cycles.push(one);
        }
        let ratio = |x: u64, y: u64| x as f64 / y as f64;
        println!(
            "{:12} {:9} {:9} {:6.2} {hand:9} {:6.2} {:9} {:9}",
            kernel.name,
            cycles[0],
            cycles[1],
            ratio(cycles[0], cycles[1]),
            ratio(cycles[1], hand),
            cycles[2],
            cycles[3],
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    // `cargo bench` passes this option, `cargo test` does not.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
