//! The options of dispatches, in `run`, `shader` and `wasm`, and dispatches of CLIF files.

use crate::execute::{Device as Machine, ExecuteArgs};
use crate::{Outcome, Stop, fault, input, output};
use clap::ValueEnum;
use cranelift_codegen::ir::Function;
use naplespu_jit::device::{Arg, Buffer, LaunchConfig, ThreadSet};
use naplespu_jit::{Device, function_name};
use naplespu_spmd::{LANE_COUNTS, Options, Remark};
use npu_mc::machine::CACHE_LINE;
use npu_sim::THREADS;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The work-groups of a dispatch.
#[derive(clap::Args)]
pub struct GroupArgs {
    /// The numbers of work-groups; by default 1
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_counts)]
    pub dispatch: Option<[u32; 3]>,

    /// Work-items that a thread executes at once: 1, 16, 32, 64 or 128; by default 16, or as many as
    /// a work-group needs whose work-items wait for each other
    #[arg(long, value_name = "N")]
    pub lanes: Option<u32>,

    /// Report what became of accesses, branches, loops, divisions and calls on lanes, by line,
    /// instead of running the kernel
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "spmd")]
    pub explain: Option<Matter>,
}

/// The dispatch of a function for one work-item.
#[derive(clap::Args)]
pub struct KernelArgs {
    #[command(flatten)]
    pub groups: GroupArgs,

    /// The work-items of a work-group; by default 1
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_counts, requires = "dispatch")]
    pub workgroup_size: Option<[u32; 3]>,

    /// The bytes of the scratchpad, from address 0, that are zero when a work-group starts
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "dispatch")]
    pub workgroup_bytes: u32,
}

/// The matters of `--explain`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Matter {
    /// The execution on lanes
    Spmd,
}

/// The initial contents of a buffer.
#[derive(Clone, Debug)]
pub enum Contents {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Operand {
    Number(i32),
    Buffer(Contents),
}

/// The kind of numbers in a buffer.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Number {
    F32,
    U32,
    I32,
}

impl Contents {
    /// Parses `zeros:BYTES`, a list of numbers such as `f32:1,2`, or the name of a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = |list: &str, word: &dyn Fn(&str) -> Option<u32>| -> Result<Self, String> {
            let mut bytes = Vec::new();
            for one in list.split(',').map(str::trim) {
                let word = word(one).ok_or_else(|| format!("'{one}' is not a number of this kind"))?;
                bytes.extend(word.to_le_bytes());
            }
            Ok(Self::Bytes(bytes))
        };
        match text.split_once(':') {
            Some(("zeros", size)) => {
                let size: u32 = size.parse().map_err(|_| format!("'{size}' is not a number of bytes"))?;
                Ok(Self::Bytes(vec![0; size as usize]))
            }
            Some(("f32", list)) => numbers(list, &|one| one.parse::<f32>().ok().map(f32::to_bits)),
            Some(("u32", list)) => numbers(list, &|one| one.parse().ok()),
            Some(("i32", list)) => numbers(list, &|one| one.parse::<i32>().ok().map(i32::cast_unsigned)),
            _ => Ok(Self::File(text.into())),
        }
    }

    /// Allocates a buffer with the contents.
    pub fn allocate(&self, device: &mut Device) -> Result<Buffer, Stop> {
        match self {
            Self::Bytes(bytes) => device.allocate_from(bytes),
            Self::File(path) => device.allocate_from(&input::read(path)?.1),
        }
        .map_err(fault)
    }
}

impl Operand {
    /// Parses a number, or the contents of a buffer.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text.parse::<i32>(), text.parse::<u32>()) {
            (Ok(number), _) => Ok(Self::Number(number)),
            (_, Ok(number)) => Ok(Self::Number(number.cast_signed())),
            _ => Contents::parse(text).map(Self::Buffer),
        }
    }
}

impl Number {
    /// Returns bytes as numbers, separated by commas.
    pub fn text(self, bytes: &[u8]) -> String {
        let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let numbers = words.map(|word| match self {
            Self::F32 => f32::from_bits(word).to_string(),
            Self::U32 => word.to_string(),
            Self::I32 => word.cast_signed().to_string(),
        });
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// Parses one to three numbers; the others are 1.
pub fn parse_counts(text: &str) -> Result<[u32; 3], String> {
    let mut counts = [1; 3];
    let mut parts = text.split(',');
    for (count, part) in counts.iter_mut().zip(&mut parts) {
        *count = part.trim().parse().map_err(|_| format!("'{part}' is not a number"))?;
    }
    match parts.next() {
        None => Ok(counts),
        Some(_) => Err("there are three dimensions".to_owned()),
    }
}

/// Prints remarks; `place` returns the place of a source location.
pub fn explain(remarks: &[Remark], place: impl Fn(u32) -> String) -> Outcome {
    let report = naplespu_spmd::report(remarks, |at| place(at.bits()));
    if report.is_empty() {
        output::report("note: nothing is executed on lanes\n");
    }
    output::print(report.as_bytes())
}

/// Returns the cores and the threads of each, if they are the first ones.
pub fn shape(machine: &Machine) -> Result<(usize, usize), Stop> {
    let cores = machine.config.cores;
    let of_core = machine.threads.iter().filter(|&&thread| thread < THREADS).count();
    let first = (0..cores).flat_map(|core| (0..of_core).map(move |thread| core * THREADS + thread));
    if machine.threads.iter().copied().eq(first) {
        return Ok((cores, of_core));
    }
    Err(Stop::Usage(
        "a dispatch runs on the first threads of each core, the same number on each".to_owned(),
    ))
}

/// Runs the first function of a CLIF file over work-groups, and prints buffers.
pub fn run_clif(
    path: &Path,
    settings: &[String],
    args: &KernelArgs,
    execute: &ExecuteArgs,
    (operands, print): (&[Operand], &[(usize, Number)]),
) -> Outcome {
    if let Some(option) = execute.not_of_dispatch() {
        return Err(Stop::Usage(format!("a dispatch of a CLIF file has no {option}")));
    }
    let input::Loaded { file, isa, .. } = input::load(path, settings)?;
    let functions: Vec<Function> = file.functions.iter().map(|case| case.with_lines()).collect();
    let Some((kernel, callees)) = functions.split_first() else {
        return Err(Stop::Fault(format!("{}: no function", file.source.name)));
    };
    if operands.len() != kernel.signature.params.len() {
        return Err(Stop::Usage(format!(
            "{} takes {} arguments, not {}; --arg gives one",
            kernel.name,
            kernel.signature.params.len(),
            operands.len()
        )));
    }
    let machine = execute.device()?;
    let (cores, threads) = shape(&machine)?;
    let alignment = |operand: &Operand| match operand {
        Operand::Number(number) => 1 << number.trailing_zeros().min(CACHE_LINE.trailing_zeros()),
        Operand::Buffer(_) => CACHE_LINE,
    };
    let mut options = Options {
        workgroup_size: args.workgroup_size.unwrap_or([1; 3]),
        workgroup_bytes: args.workgroup_bytes,
        lanes: args.groups.lanes.unwrap_or(LANE_COUNTS[0]),
        alignment: operands.iter().map(alignment).collect(),
    };
    if args.groups.lanes.is_none() {
        options.lanes = options.lanes_for(kernel, threads as u32);
    }
    let in_file = |error: &dyn std::fmt::Display| Stop::Fault(format!("{}: {error}", file.source.name));
    if let Some(Matter::Spmd) = args.groups.explain {
        let (_, remarks) =
            naplespu_spmd::compile_explained(kernel, callees, &options).map_err(|error| in_file(&error))?;
        return explain(&remarks, |line| format!("{}:{line}", file.source.name));
    }
    let mut device = Device::with_config(isa, machine.config).map_err(fault)?;
    let compiled = device
        .add_kernel(kernel, callees, &options)
        .map_err(|error| in_file(&error))?;
    let mut buffers = Vec::new();
    let mut arguments: Vec<Arg> = Vec::new();
    for operand in operands {
        let buffer = match operand {
            Operand::Number(number) => {
                arguments.push((*number).into());
                None
            }
            Operand::Buffer(contents) => {
                let buffer = contents.allocate(&mut device)?;
                arguments.push(buffer.into());
                Some(buffer)
            }
        };
        buffers.push(buffer);
    }
    let mut config = LaunchConfig::new(ThreadSet::on_cores(0..cores, threads));
    if let Some(timing) = execute.timing() {
        config = config.timed(timing);
    }
    if let Some(limit) = execute.max_steps {
        config = config.instruction_limit(limit);
    }
    let groups = args.groups.dispatch.unwrap_or([1; 3]);
    let done = device.dispatch(&compiled, groups, config, &arguments);
    let done = done.map_err(|error| in_file(&error))?;
    if let Some(report) = &done.statistics.timing {
        output::report(&report.to_string());
    }
    let mut text = String::new();
    for &(number, kind) in print {
        let Some(&Some(buffer)) = buffers.get(number) else {
            return Err(Stop::Usage(format!(
                "argument {number} of {} is no buffer",
                function_name(&kernel.name)
            )));
        };
        let mut bytes = vec![0; buffer.size() as usize];
        device.copy_out(buffer, 0, &mut bytes).map_err(fault)?;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{number}: {}", kind.text(&bytes));
    }
    output::print(text.as_bytes())
}
