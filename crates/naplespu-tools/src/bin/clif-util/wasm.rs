//! `clif-util wasm`: runs WebAssembly modules in the simulator.

mod emit;

use crate::dispatch::{KernelArgs, explain, shape};
use crate::execute::{self, Device, ExecuteArgs, ModuleSession};
use crate::{Outcome, Stop, TRAPPED, fault, input, output};
use clap::ValueEnum;
use cranelift_codegen::isa::CallConv;
use naplespu_jit::{NpuModule, RunError};
use naplespu_reader::Config as Settings;
use naplespu_spmd::Remark;
use naplespu_wasm::wasi::{Folder, Wasi, World};
use naplespu_wasm::{CallError, Dispatch, Extern, FuncItem, Instance, Store, Value, ValueType, WasmError, readable};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Compile a WebAssembly module, and run a function of it in the simulator
///
/// The default settings are `opt_level=speed`, `strict_float=true` (but not with --dispatch), and
/// `atomics=machine` with threads of several cores.
///
/// All threads call the function at once with the same arguments. Each has its part of the shadow
/// stack.
#[derive(clap::Args)]
#[command(
    override_usage = "clif-util wasm [OPTIONS] <FILE> [PROGRAM_ARG]...\n       clif-util wasm [OPTIONS] <FILE> --invoke <NAME> [ARG]..."
)]
pub struct Args {
    /// A module, binary or as text; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Arguments of a WASI program
    #[arg(value_name = "PROGRAM_ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    program_args: Vec<String>,

    /// An environment variable of a program
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Seed of a program's random numbers; 1 by default, so that runs repeat
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// A folder of the host that a program may use, and the name under which it finds the folder; by
    /// default the same
    #[arg(long, value_name = "FOLDER[::NAME]")]
    dir: Vec<String>,

    #[command(flatten)]
    settings: input::SettingArgs,

    #[command(flatten)]
    cache: input::CacheArgs,

    /// Call this exported function with these arguments, and print its results
    #[arg(long, num_args = 1.., value_names = ["NAME", "ARG"], allow_negative_numbers = true)]
    invoke: Vec<String>,

    /// Call this exported function with these arguments before the dispatch, on one thread
    #[arg(long, num_args = 1.., value_names = ["NAME", "ARG"], allow_negative_numbers = true, requires = "dispatch")]
    before: Vec<String>,

    /// Call this exported function with these arguments after the dispatch, on one thread, and print
    /// its results
    #[arg(long, num_args = 1.., value_names = ["NAME", "ARG"], allow_negative_numbers = true, requires = "dispatch")]
    then: Vec<String>,

    #[command(flatten)]
    kernel: KernelArgs,

    /// Write the compiled module in this form instead of running it
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Option<Form>,

    /// Output file of --emit instead of standard output
    #[arg(short, long, value_name = "OUT", requires = "emit")]
    output: Option<PathBuf>,

    /// Bytes of the shadow stack that the module was linked with, which the threads share
    #[arg(long, value_name = "BYTES", default_value_t = 0x1_0000)]
    stack_size: u32,

    /// Leave out the checks of memory accesses and of the stack
    #[arg(long)]
    trusted: bool,

    /// Print the number of executed instructions to standard error
    #[arg(short, long)]
    verbose: bool,

    /// Maximum size of each linear memory in MiB; 256 by default, and 16 for --emit=hex, because an
    /// image contains the zeros
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=2048))]
    max_memory: Option<u32>,

    #[command(flatten)]
    execute: ExecuteArgs,
}

/// The output forms of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// CLIF
    Clif,
    /// Assembly
    Asm,
    /// A relocatable object file for `link`
    Obj,
    /// An executable ELF file that calls the function of --invoke
    Elf,
    /// The image of such a program, in the format of OUT's name, as for `objcopy`
    Hex,
}

impl Form {
    /// Returns whether the form is a program that calls a function.
    fn is_program(self) -> bool {
        matches!(self, Self::Elf | Self::Hex)
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (name, bytes) = input::read(&args.file)?;
    if !bytes.starts_with(b"\0asm") && std::str::from_utf8(&bytes).is_err() {
        let kind = npu_link::file_kind(&bytes).map_or(String::new(), |kind| format!("; it seems to be {kind}"));
        return Err(Stop::Fault(format!(
            "{name}: neither a WebAssembly module nor the text of one{kind}"
        )));
    }
    let bytes = wat::parse_bytes(&bytes).map_err(|mut error| {
        error.set_path(&name);
        fault(error)
    })?;
    let in_file = |error: WasmError| Stop::Fault(format!("{name}: {error}"));
    let mut settings = Settings::new();
    // Vectors of IEEE 754 floats are computed lane by lane.
    let floats = match args.kernel.groups.dispatch {
        Some(_) => "strict_float=false",
        None => "strict_float=true",
    };
    for setting in ["opt_level=speed", floats] {
        settings.set(setting).map_err(fault)?;
    }
    let device = args.execute.device_of_calls()?;
    let threads = device.threads.as_slice();
    if device.config.cores > 1 {
        settings.set("atomics=machine").map_err(fault)?;
    }
    for setting in &args.settings.list() {
        settings.set(setting).map_err(fault)?;
    }
    let isa = Arc::new(args.cache.with_cache(&*settings.isa().map_err(fault)?)?);
    let max_memory = args.max_memory.unwrap_or(match args.emit {
        Some(Form::Hex) => 16,
        _ => 256,
    });
    let config = naplespu_wasm::Config {
        memory_reservation: max_memory << 20,
        bounds_checks: !args.trusted,
        thread_stacks: threads.len() > 1 || args.kernel.groups.dispatch.is_some(),
        convention: if naplespu_wasm::has_tail_calls(&bytes).map_err(in_file)? {
            CallConv::Tail
        } else {
            CallConv::SystemV
        },
        ..naplespu_wasm::Config::default()
    };
    let grid = match args.kernel.groups.dispatch {
        Some(groups) => Some(grid(args, &device, groups)?),
        None => None,
    };
    if let Some(form) = args.emit {
        if grid.is_some() {
            return Err(Stop::Usage(
                "--emit writes a module, and --dispatch runs one".to_owned(),
            ));
        }
        return emit::run(args, form, threads, &isa, &name, &bytes, &config);
    }
    if args.kernel.groups.explain.is_some() && grid.is_none() {
        return Err(Stop::Usage("--explain needs --dispatch".to_owned()));
    }
    if threads.len() > 1 && args.invoke.is_empty() {
        return Err(Stop::Usage(
            "several threads call a function that --invoke names; a program runs on one".to_owned(),
        ));
    }
    let module = NpuModule::with_config(isa, device.config).map_err(fault)?;
    let mut store = Store::new(module, config);
    let world = world(args, &name)?;
    let wasi = Wasi::define(&mut store, &bytes, world).map_err(in_file)?;
    let instance = store.load(&bytes).map_err(in_file)?;
    wasi.attach(&store, &instance).map_err(in_file)?;
    execute::finish(store.module_mut())?;
    let map = store.code_map();
    let session = ModuleSession::new(&args.execute, store.module_mut(), map, threads, u64::MAX)?;
    session.start()?;
    if let Err(error) = store.start(&instance) {
        session.end(store.module())?;
        session.finish(store.module(), &name)?;
        return Err(ended(error, &store, threads));
    }
    session.end(store.module())?;
    call_once(&args.before, args, &name, &mut store, &instance)?;
    session.start()?;
    let called = match args.invoke.split_first() {
        None if instance.export("_start").is_none() => {
            return Err(Stop::Usage(
                "name a function with --invoke, or a form with --emit: the module is no program, which would export '_start'".to_owned(),
            ));
        }
        None => store.invoke(&instance, "_start", &[]).map(|_| Vec::new()),
        Some((function, operands)) => {
            let item = exported(&name, function, instance.exports())?;
            let types = store.type_of(item).map_err(fault)?.params.clone();
            let values = values(function, &types, operands)?;
            let _progress = args.execute.progress();
            match &grid {
                None => store.call_threads(&instance, item, &values, threads, args.stack_size),
                Some(grid) if args.kernel.groups.explain.is_some() => {
                    let remarks = store
                        .remarks(item, &values, grid)
                        .map_err(|error| ended(error, &store, threads))?;
                    return explained(&remarks, &store, &name);
                }
                Some(grid) => store.dispatch(&instance, item, &values, grid).map(|()| Vec::new()),
            }
        }
    };
    let report = session.end(store.module())?;
    session.finish(store.module(), &name)?;
    for name in wasi.missing() {
        output::report(&format!(
            "note: the program called `{name}` of WASI, which is not implemented and returned ENOSYS\n"
        ));
    }
    if wasi.used_random() {
        let seed = args.seed.unwrap_or(DEFAULT_SEED);
        output::report(&format!("note: random numbers came from --seed {seed}\n"));
    }
    if args.verbose {
        output::report(&format!("{} instructions\n", store.module().steps()));
    }
    output::report(&report.unwrap_or_default());
    let mut results = called.map_err(|error| ended(error, &store, threads))?;
    if !args.then.is_empty() {
        results = call_once(&args.then, args, &name, &mut store, &instance)?;
    }
    let mut text = String::new();
    let all_same = results.windows(2).all(|pair| pair[0] == pair[1]);
    // Writing to a string does not fail, here and below.
    for value in results.iter().take(1).filter(|_| all_same).flatten() {
        let _ = writeln!(text, "{value}");
    }
    for (thread, values) in threads.iter().zip(results).filter(|_| !all_same) {
        for value in values {
            let _ = writeln!(text, "thread {thread}: {value}");
        }
    }
    output::print(text.as_bytes())
}

/// Calls a function on one thread, if a name and arguments are given.
fn call_once(
    call: &[String],
    args: &Args,
    name: &str,
    store: &mut Store,
    instance: &Instance,
) -> Result<Vec<Vec<Value>>, Stop> {
    let Some((function, operands)) = call.split_first() else {
        return Ok(Vec::new());
    };
    let item = exported(name, function, instance.exports())?;
    let types = store.type_of(item).map_err(fault)?.params.clone();
    let values = values(function, &types, operands)?;
    let called = store.call_threads(instance, item, &values, &[0], args.stack_size);
    called.map_err(|error| ended(error, store, &[0]))
}

/// Returns the work-groups of a dispatch.
fn grid(args: &Args, device: &Device, groups: [u32; 3]) -> Result<Dispatch, Stop> {
    if args.invoke.is_empty() {
        return Err(Stop::Usage("name the kernel with --invoke".to_owned()));
    }
    let (cores, threads) = shape(device)?;
    Ok(Dispatch {
        groups,
        workgroup_size: args.kernel.workgroup_size.unwrap_or([1; 3]),
        workgroup_bytes: args.kernel.workgroup_bytes,
        lanes: args.kernel.groups.lanes,
        threads,
        cores,
        stack_bytes: args.stack_size,
    })
}

/// Prints the remarks about a kernel, with source lines if the module has debug information.
fn explained(remarks: &[Remark], store: &Store, name: &str) -> Outcome {
    let functions: HashMap<u32, &str> = remarks
        .iter()
        .map(|remark| (remark.location.bits(), remark.function.trim_start_matches('%')))
        .collect();
    explain(remarks, |offset| {
        let line = functions
            .get(&offset)
            .and_then(|function| store.source_line(function, offset));
        line.map_or_else(|| format!("{name}: offset {offset:#x}"), |line| line.to_string())
    })
}

/// Returns the environment of a program.
fn world(args: &Args, name: &str) -> Result<World, Stop> {
    let mut list = vec![name.to_owned()];
    list.extend(args.program_args.iter().cloned());
    let seed = args.seed.unwrap_or(DEFAULT_SEED);
    let folders = args.dir.iter().map(|text| {
        let (folder, name) = text.split_once("::").unwrap_or((text, text));
        Folder::open(folder.as_ref(), name).map_err(|error| Stop::of_file(folder.as_ref(), &error))
    });
    Ok(World {
        args: list,
        environment: args.env.clone(),
        input: Box::new(std::io::stdin()),
        output: Box::new(std::io::stdout()),
        errors: Box::new(std::io::stderr()),
        seed,
        folders: folders.collect::<Result<_, _>>()?,
    })
}

/// The default seed, so that runs repeat.
const DEFAULT_SEED: u64 = 1;

/// Returns the outcome of a call that ended without results.
fn ended(error: CallError, store: &Store, threads: &[usize]) -> Stop {
    match error {
        CallError::Exit(0) => Stop::Exit(0),
        // Only the low byte of a status is visible outside of a process; a nonzero status must stay
        // nonzero.
        CallError::Exit(status) => Stop::Exit((status as u8).max(1)),
        other => {
            let text = format!("error: {other}{}\n", calls(store, threads));
            output::report(&text);
            let is_trap = match &other {
                CallError::Trap { .. } => true,
                CallError::Run(error) => is_trap(error),
                _ => false,
            };
            if is_trap { Stop::Exit(TRAPPED) } else { Stop::Reported }
        }
    }
}

fn is_trap(error: &RunError) -> bool {
    match error {
        RunError::Trap(_) => true,
        RunError::Thread { error, .. } => is_trap(error),
        _ => false,
    }
}

/// Returns the call stacks of threads that did not return, if they contain more than the host's
/// call.
fn calls(store: &Store, threads: &[usize]) -> String {
    let module = store.module();
    let traces = threads.iter().map(|&thread| (thread, module.back_trace(thread)));
    let mut text = String::new();
    for (thread, frames) in traces.filter(|(_, frames)| frames.len() > 1) {
        if threads.len() > 1 {
            // Writing to a string does not fail.
            let _ = write!(text, "\nthread {thread}:");
        }
        for (number, frame) in frames.iter().take(MOST_FRAMES).enumerate() {
            let _ = write!(
                text,
                "\n  #{number} {}",
                readable(frame.function.as_deref().unwrap_or("??"))
            );
            if let Some(offset) = frame.srcloc {
                let _ = write!(text, " at offset {:#x}", offset.bits());
                let function = frame.function.as_deref();
                if let Some(line) = function.and_then(|name| store.source_line(name, offset.bits())) {
                    let _ = write!(text, " ({line})");
                }
            }
        }
        if frames.len() > MOST_FRAMES {
            text += "\n  ... and more";
        }
    }
    text
}

/// The maximum number of printed calls in a back trace; an infinite recursion has too many.
const MOST_FRAMES: usize = 16;

/// Returns the exported function with this name.
fn exported<'a>(
    module: &str,
    function: &str,
    exports: impl Iterator<Item = (&'a str, Extern)>,
) -> Result<FuncItem, Stop> {
    let mut known: Vec<(&str, FuncItem)> = exports
        .filter_map(|(name, item)| match item {
            Extern::Func(item) => Some((name, item)),
            _ => None,
        })
        .collect();
    if let Some((_, item)) = known.iter().find(|(name, _)| *name == function) {
        return Ok(*item);
    }
    known.sort_unstable_by_key(|(name, _)| *name);
    let known: Vec<&str> = known.into_iter().map(|(name, _)| name).collect();
    Err(Stop::Fault(format!(
        "{module}: no function '{function}' is exported; the exported functions are: {}",
        known.join(", ")
    )))
}

/// Parses the arguments of a function.
fn values(function: &str, types: &[ValueType], operands: &[String]) -> Result<Vec<Value>, Stop> {
    if types.len() != operands.len() {
        return Err(Stop::Usage(format!(
            "'{function}' takes {} argument{}, not {}",
            types.len(),
            if types.len() == 1 { "" } else { "s" },
            operands.len()
        )));
    }
    types.iter().zip(operands).map(|(ty, text)| value(*ty, text)).collect()
}

/// Parses an argument.
fn value(ty: ValueType, text: &str) -> Result<Value, Stop> {
    let wrong = || {
        let name = match ty {
            ValueType::I32 => "i32",
            ValueType::I64 => "i64",
            ValueType::F32 => "f32",
            ValueType::F64 => "f64",
            ValueType::V128 => "v128, such as i32x4:1,2,3,4",
            ValueType::Ref(_) => "reference",
        };
        Stop::Usage(format!("`{text}` is not a value of type {name}"))
    };
    Ok(match ty {
        ValueType::I32 => Value::I32(integer(text, 32).ok_or_else(wrong)? as i32),
        ValueType::I64 => Value::I64(integer(text, 64).ok_or_else(wrong)? as i64),
        ValueType::F32 => Value::F32(text.parse::<f32>().map_err(|_| wrong())?.to_bits()),
        ValueType::F64 => Value::F64(text.parse::<f64>().map_err(|_| wrong())?.to_bits()),
        ValueType::V128 => Value::V128(vector(text).ok_or_else(wrong)?),
        ValueType::Ref(_) => {
            return Err(Stop::Usage(
                "references cannot be passed on the command line".to_owned(),
            ));
        }
    })
}

/// Parses a vector: its shape and its lanes, separated by a colon, commas or spaces.
fn vector(text: &str) -> Option<u128> {
    let mut parts = text.split([':', ',', ' ']).filter(|part| !part.is_empty());
    let (bits, is_float) = match parts.next()? {
        "i8x16" => (8, false),
        "i16x8" => (16, false),
        "i32x4" => (32, false),
        "i64x2" => (64, false),
        "f32x4" => (32, true),
        "f64x2" => (64, true),
        _ => return None,
    };
    let mut bytes = 0;
    for shift in (0..u128::BITS).step_by(bits) {
        let part = parts.next()?;
        let lane = match (is_float, bits) {
            (true, 32) => part.parse::<f32>().ok()?.to_bits().into(),
            (true, _) => part.parse::<f64>().ok()?.to_bits(),
            (false, bits) => integer(part, bits as u32)?,
        };
        bytes |= u128::from(lane) << shift;
    }
    parts.next().is_none().then_some(bytes)
}

/// Parses a number of this many bits, with or without a sign, decimal or hexadecimal.
fn integer(text: &str, bits: u32) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let magnitude: i128 = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.into(),
        None => digits.parse::<u64>().ok()?.into(),
    };
    let value = if negative { -magnitude } else { magnitude };
    let fits = (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
    fits.then_some(value as u64 & (u64::MAX >> (u64::BITS - bits)))
}
