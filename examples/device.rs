//! Uses the simulated machine as an accelerator: memory, a kernel on all threads of two cores, a
//! host function, and an error.

use cranelift_codegen::ir::{AbiParam, Signature, types::I32};
use cranelift_codegen::{isa::CallConv, settings};
use cranelift_naplespu::isa;
use naplespu_jit::device::{Arg, DeviceError, LaunchConfig, ThreadId};
use naplespu_jit::{Device, HostCall};
use naplespu_reader::ClifFile;
use npu_sim::{Config, TimingConfig};
use std::error::Error;
use std::sync::mpsc;

/// Divides a million by each of a thousand numbers, one of which is 0 at first.
pub fn run() -> Result<String, Box<dyn Error>> {
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(settings::builder()))?;
    let two_cores = Config {
        cores: 2,
        ..Config::default()
    };
    let mut device = Device::with_config(isa, two_cores)?;

    let (sender, reports) = mpsc::channel();
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(I32)];
    let report = move |call: HostCall<'_>, _: &[_]| {
        let _ = sender.send((call.core(), call.thread));
        Ok(Vec::new())
    };
    device.add_host_function("report", &signature, Box::new(report))?;

    // The lines of this file are the source locations of the functions.
    let file = ClifFile::parse("reciprocals.clif", include_bytes!("reciprocals.clif"));
    if !file.faults.is_empty() {
        return Err(file.source.render(&file.faults).into());
    }
    let functions: Vec<_> = file.functions.iter().map(|case| case.with_debug_info()).collect();
    for function in device.add_functions(&functions) {
        device.module_mut().set_source_file(function?, "reciprocals.clif");
    }
    let kernel = device.function("kernel").ok_or("no kernel")?;

    let mut numbers: Vec<u32> = (1..=1000).collect();
    numbers[500] = 0;
    let input = device.allocate(4 * 1000)?;
    let output = device.allocate(4 * 1000)?;
    device.copy_words_in(input, 0, &numbers)?;

    let args = |place: usize, _: ThreadId| -> Vec<Arg> {
        let (count, place, places) = (1000.into(), (place as i32).into(), 16.into());
        vec![input.into(), output.into(), count, place, places]
    };
    let config = LaunchConfig::new(device.threads()).timed_up_to(TimingConfig::default(), 1_000_000);
    let mut text = match device.launch_each(kernel, config.clone(), args)?.wait() {
        Err(DeviceError::Fault(fault)) => format!("{fault}\n"),
        other => format!("{other:?}\n"),
    };
    device.copy_words_in(input, 4 * 500, &[501])?;
    let done = device.launch_each(kernel, config, args)?.wait()?;
    let results = device.copy_words_out(output, 0, 1000)?;
    device.free(input)?;
    device.free(output)?;

    let statistics = done.statistics;
    let (instructions, cycles) = (statistics.instructions, statistics.cycles().ok_or("no cycles")?);
    text += &format!(
        "1000000 / 501 = {}, {} reports\n",
        results[500],
        reports.try_iter().count()
    );
    text += &format!(
        "{instructions} instructions on {} threads in {cycles} cycles\n",
        done.results.len()
    );
    Ok(text)
}

/// Prints the results.
pub fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", run()?);
    Ok(())
}
