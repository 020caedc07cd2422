//! Compiles a shader, binds buffers and runs its work-groups.

use super::{Args, Form, Place};
use crate::dispatch::{Matter, explain};
use crate::progress::Progress;
use crate::{Outcome, Stop, fault, input, output};
use naplespu_jit::Device;
use naplespu_jit::device::Buffer;
use naplespu_reader::Config as Settings;
use naplespu_shader::{Binding, BindingKind, Bound, Dispatch, Error, Module, Options, RunError, Runner};
use npu_sim::TimingConfig;
use std::fmt::Write as _;

/// The start of a SPIR-V module, in either byte order.
const MAGIC: [[u8; 4]; 2] = [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03]];

/// A shader with its name for messages.
struct Source {
    name: String,
    /// The text, unless the shader is SPIR-V.
    text: Option<String>,
}

impl Source {
    /// Reports an error with its lines.
    fn failed(&self, error: &Error) -> Stop {
        output::report(&error.render(&self.name, self.text.as_deref()));
        match error {
            Error::FrontEnd(_) => Stop::Panicked,
            _ => Stop::Reported,
        }
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (source, module) = load(args)?;
    if args.list {
        return list(&module);
    }
    let mut options = Options {
        overrides: args.overrides.iter().cloned().collect(),
        ..Options::default()
    };
    let entry = args.entry.as_deref();
    let kernel = match args.groups.lanes {
        Some(lanes) => {
            options.lanes = lanes;
            module.compile(entry, &options)
        }
        None => module.compile_for(args.threads.into(), entry, &options),
    };
    let kernel = kernel.map_err(|error| source.failed(&error))?;
    if let Some(Matter::Spmd) = args.groups.explain {
        let remarks = kernel.remarks().map_err(fault)?;
        return explain(&remarks, |line| format!("{}:{line}", source.name));
    }
    match args.emit {
        Some(Form::Clif) => return output::print(kernel.function.display().to_string().as_bytes()),
        Some(Form::Spmd) => {
            let functions = kernel.dispatch_functions().map_err(fault)?;
            let texts: Vec<String> = functions.iter().map(|one| one.display().to_string()).collect();
            return output::print(texts.join("\n").as_bytes());
        }
        None => {}
    }
    let mut settings = Settings::new();
    settings.set("opt_level=speed").map_err(fault)?;
    if args.cores > 1 {
        settings.set("atomics=machine").map_err(fault)?;
    }
    for setting in &args.settings.list() {
        settings.set(setting).map_err(fault)?;
    }
    let config = npu_sim::Config {
        cores: args.cores.into(),
        ..npu_sim::Config::default()
    };
    let mut device = Device::with_config(settings.isa().map_err(fault)?, config).map_err(fault)?;
    let in_file = |error: RunError| Stop::Fault(format!("{}: {error}", source.name));
    let runner = Runner::new(&mut device, kernel).map_err(in_file)?;
    let bound = bind(args, &mut device)?;
    let dispatch = Dispatch {
        groups: args.groups.dispatch.unwrap_or([1; 3]),
        threads: args.threads.into(),
        cores: args.cores.into(),
        timing: args.timing.then(TimingConfig::default),
        instruction_limit: args.max_steps,
    };
    let progress = Progress::spinner("work-groups run");
    let statistics = runner.dispatch(&mut device, &dispatch, &bound).map_err(in_file)?;
    drop(progress);
    if args.verbose {
        output::report(&format!("{} instructions\n", statistics.instructions));
    }
    if let Some(report) = &statistics.timing {
        output::report(&report.to_string());
    }
    results(args, &device, &bound)
}

/// Reads and parses the shader.
fn load(args: &Args) -> Result<(Source, Module), Stop> {
    let (name, bytes) = input::read(&args.file)?;
    let extension = args.file.extension().and_then(|one| one.to_str()).unwrap_or_default();
    if extension == "spv" || MAGIC.iter().any(|magic| bytes.starts_with(magic)) {
        let source = Source { name, text: None };
        let module = Module::from_spirv(&bytes).map_err(|error| source.failed(&error))?;
        return Ok((source, module));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Stop::Fault(format!("{name}: neither text nor a SPIR-V module")))?;
    let parsed = match extension {
        "glsl" | "comp" => Module::from_glsl(&text),
        _ => Module::from_wgsl(&text),
    };
    let source = Source { name, text: Some(text) };
    let module = parsed.map_err(|error| source.failed(&error))?;
    Ok((source, module))
}

/// Lists the entry points and their buffers.
fn list(module: &Module) -> Outcome {
    let mut text = String::new();
    // Writing to a string does not fail.
    for entry in module.entry_points() {
        let [x, y, z] = entry.workgroup_size;
        let _ = writeln!(text, "{}: work-groups of {x} x {y} x {z}", entry.name);
        for binding in &entry.bindings {
            let _ = writeln!(text, "  {}", described(binding));
        }
    }
    output::print(text.as_bytes())
}

fn described(binding: &Binding) -> String {
    let kind = match binding.kind {
        BindingKind::Uniform => "uniform",
        BindingKind::ReadOnlyStorage => "storage, read",
        BindingKind::Storage => "storage, read and written",
    };
    let name = binding.name.as_deref().unwrap_or("unnamed");
    format!(
        "{}:{} {name}: {kind}, at least {} bytes",
        binding.group, binding.binding, binding.min_size
    )
}

/// Allocates and fills the buffers.
fn bind(args: &Args, device: &mut Device) -> Result<Vec<Bound>, Stop> {
    let mut bound = Vec::new();
    for ((group, binding), contents) in &args.bind {
        let buffer = contents.allocate(device)?;
        bound.push(Bound::whole(*group, *binding, buffer));
    }
    Ok(bound)
}

/// Writes and prints buffers.
fn results(args: &Args, device: &Device, bound: &[Bound]) -> Outcome {
    let contents = |(group, binding): Place| -> Result<Vec<u8>, Stop> {
        let found = bound.iter().find(|one| (one.group, one.binding) == (group, binding));
        let buffer: Buffer = match found {
            Some(found) => found.buffer,
            None => return Err(Stop::Usage(format!("no buffer is bound to {group}:{binding}"))),
        };
        let mut bytes = vec![0; buffer.size() as usize];
        device.copy_out(buffer, 0, &mut bytes).map_err(fault)?;
        Ok(bytes)
    };
    for (place, path) in &args.out {
        output::write(Some(path), &contents(*place)?)?;
    }
    let mut text = String::new();
    for (place, kind) in &args.print {
        let bytes = contents(*place)?;
        let _ = writeln!(text, "{}:{}: {}", place.0, place.1, kind.text(&bytes));
    }
    output::print(text.as_bytes())
}
