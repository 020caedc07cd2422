//! Runs a kernel on the simulator.

use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::verify_function;
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_jit::device::{Arg, LaunchConfig, ThreadSet};
use naplespu_spmd::Options;
use npu_sim::TimingConfig;

/// A kernel with one buffer, whose address is its first parameter, and more numbers.
pub struct Case<'a> {
    pub functions: &'a [Function],
    pub options: Options,
    pub counts: [u32; 3],
    pub threads: usize,
    pub memory: Vec<u32>,
    pub numbers: &'a [i32],
    /// Value of the setting `opt_level`.
    pub opt_level: &'a str,
    /// Whether the timing model runs, which counts cycles and hangs where the hardware does.
    pub timed: bool,
}

/// The memory after a run, and its cycles.
#[derive(Debug)]
pub struct Done {
    pub memory: Vec<u32>,
    pub cycles: u64,
}

/// Returns options for a one-dimensional work-group.
pub fn options(size: u32, lanes: u32) -> Options {
    Options {
        workgroup_size: [size, 1, 1],
        workgroup_bytes: 0,
        lanes,
        alignment: vec![64],
    }
}

/// Compiles and runs a kernel.
pub fn run(case: Case<'_>) -> Result<Done, String> {
    let (kernel, callees) = case.functions.split_first().ok_or("no kernel")?;
    let compiled = naplespu_spmd::compile(kernel, callees, &case.options).map_err(|error| error.to_string())?;
    let mut flags = settings::builder();
    flags
        .set("opt_level", case.opt_level)
        .map_err(|error| error.to_string())?;
    flags
        .set("regalloc_checker", "true")
        .map_err(|error| error.to_string())?;
    let flags = settings::Flags::new(flags);
    for function in &compiled {
        verify_function(function, &flags).map_err(|error| format!("{error}\n{}", function.display()))?;
    }
    let builder = isa::lookup_by_name("naplespu").map_err(|error| error.to_string())?;
    let isa = builder.finish(flags).map_err(|error| error.to_string())?;
    let mut device = Device::new(isa).map_err(|error| error.to_string())?;
    let added = device.add_kernel(kernel, callees, &case.options);
    let kernel = added.map_err(|error| format!("{error}\n{}", compiled[0].display()))?;
    let buffer = device
        .allocate(4 * case.memory.len() as u32)
        .map_err(|error| error.to_string())?;
    device
        .copy_words_in(buffer, 0, &case.memory)
        .map_err(|error| error.to_string())?;
    let mut args: Vec<Arg> = vec![buffer.into()];
    args.extend(case.numbers.iter().map(|&number| Arg::from(number)));
    let mut config = LaunchConfig::new(ThreadSet::first(case.threads)).instruction_limit(50_000_000);
    if case.timed {
        config = config.timed(TimingConfig::default());
    }
    let done = device.dispatch(&kernel, case.counts, config, &args);
    let done = done.map_err(|error| format!("{error}\n{}", compiled[0].display()))?;
    let memory = device
        .copy_words_out(buffer, 0, case.memory.len())
        .map_err(|error| error.to_string())?;
    Ok(Done {
        memory,
        cycles: done.statistics.cycles().unwrap_or(0),
    })
}
