//! `clif-util wasm`: WebAssembly modules on the NPU.

use crate::{Outcome, Stop, input, output};
use clap::ValueEnum;
use cranelift_codegen::isa::CallConv;
use cranelift_module::Module;
use naplespu_jit::NpuModule;
use naplespu_object::NpuObjectModule;
use naplespu_reader::Config as Settings;
use naplespu_wasm::{Extern, Imports, Store, Types, Value, ValueType};
use npu_sim::TimingConfig;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Compile a WebAssembly module, and run a function of it in the simulator
#[derive(clap::Args)]
pub struct Args {
    /// A module, binary or as text; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A setting of Cranelift or of the target; unless set, `opt_level=speed` and `strict_float=true`
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = input::parse_setting)]
    settings: Vec<String>,

    /// Call this exported function with these arguments, and print its results
    #[arg(long, num_args = 1.., value_names = ["NAME", "ARG"], allow_negative_numbers = true)]
    invoke: Vec<String>,

    /// Print what the module becomes instead of running it
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "invoke")]
    emit: Option<Form>,

    /// Where to write what is emitted instead of standard output
    #[arg(short, long, value_name = "OUT", requires = "emit")]
    output: Option<PathBuf>,

    /// Leave out the checks of memory accesses and of the stack
    #[arg(long)]
    trusted: bool,

    /// Tell on standard error what the call took in cycles, and why
    #[arg(long)]
    timing: bool,

    /// Tell on standard error how many instructions the call executed
    #[arg(short, long)]
    verbose: bool,

    /// Instructions that a call may execute; without it there is no limit
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,

    /// MiB of memory that each linear memory may grow to
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=2048))]
    max_memory: u32,
}

/// What a module becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// CLIF
    Clif,
    /// Assembly
    Asm,
    /// A relocatable object file for `link`
    Obj,
}

fn fault(error: impl ToString) -> Stop {
    Stop::Fault(error.to_string())
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let (name, bytes) = input::read(&args.file)?;
    let bytes = wat::parse_bytes(&bytes).map_err(|error| Stop::Fault(format!("{name}: {error}")))?;
    let in_file = |error: naplespu_wasm::WasmError| Stop::Fault(format!("{name}: {error}"));
    let mut settings = Settings::new();
    for setting in ["opt_level=speed", "strict_float=true"] {
        settings.set(setting).map_err(fault)?;
    }
    for setting in &args.settings {
        settings.set(setting).map_err(fault)?;
    }
    let isa = settings.isa().map_err(fault)?;
    let config = naplespu_wasm::Config {
        memory_reservation: args.max_memory << 20,
        bounds_checks: !args.trusted,
        convention: if naplespu_wasm::has_tail_calls(&bytes).map_err(in_file)? {
            CallConv::Tail
        } else {
            CallConv::SystemV
        },
        ..naplespu_wasm::Config::default()
    };
    if let Some(form) = args.emit {
        return emit(args, form, isa, &bytes, &config, in_file);
    }
    let mut module = NpuModule::new(isa).map_err(fault)?;
    if args.timing {
        module.set_timing(Some(TimingConfig::default()));
    }
    let mut store = Store::new(module, config);
    if let Some(steps) = args.max_steps {
        store.module_mut().set_step_limit(steps);
    }
    let instance = store.load(&bytes).map_err(in_file)?;
    store.start(&instance).map_err(fault)?;
    let Some((function, operands)) = args.invoke.split_first() else {
        return Err(Stop::Usage(
            "name a function with --invoke, or a form with --emit".to_owned(),
        ));
    };
    let Some(Extern::Func(item)) = instance.export(function) else {
        let mut known: Vec<&str> = instance
            .exports()
            .filter_map(|(name, item)| matches!(item, Extern::Func(_)).then_some(name))
            .collect();
        known.sort_unstable();
        return Err(Stop::Fault(format!(
            "{name}: no function '{function}' is exported; there are: {}",
            known.join(", ")
        )));
    };
    let types = store.type_of(item).map_err(fault)?.params.clone();
    if types.len() != operands.len() {
        return Err(Stop::Usage(format!(
            "'{function}' takes {} arguments, not {}",
            types.len(),
            operands.len()
        )));
    }
    let values = types.iter().zip(operands).map(|(ty, text)| value(*ty, text));
    let values = values.collect::<Result<Vec<Value>, Stop>>()?;
    let called = store.call(item, &values);
    if args.verbose {
        output::report(&format!("{} instructions\n", store.module().steps()));
    }
    if let Some(report) = store.module().timing_report() {
        output::report(&format!("{report}\n"));
    }
    let mut text = String::new();
    for value in called.map_err(fault)? {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{value}");
    }
    output::print(text.as_bytes())
}

/// An argument.
fn value(ty: ValueType, text: &str) -> Result<Value, Stop> {
    let wrong = || Stop::Usage(format!("`{text}` is no {ty:?}"));
    Ok(match ty {
        // Unsigned numbers are taken as their bits.
        ValueType::I32 => match (text.parse::<i32>(), text.parse::<u32>()) {
            (Ok(value), _) => Value::I32(value),
            (_, Ok(value)) => Value::I32(value as i32),
            _ => return Err(wrong()),
        },
        ValueType::I64 => match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(value), _) => Value::I64(value),
            (_, Ok(value)) => Value::I64(value as i64),
            _ => return Err(wrong()),
        },
        ValueType::F32 => Value::F32(text.parse::<f32>().map_err(|_| wrong())?.to_bits()),
        ValueType::F64 => Value::F64(text.parse::<f64>().map_err(|_| wrong())?.to_bits()),
        ValueType::Ref(_) => return Err(Stop::Usage("the command line has no references".to_owned())),
    })
}

/// Writes what the module becomes.
fn emit(
    args: &Args,
    form: Form,
    isa: Arc<cranelift_naplespu::Isa>,
    bytes: &[u8],
    config: &naplespu_wasm::Config,
    in_file: impl Fn(naplespu_wasm::WasmError) -> Stop,
) -> Outcome {
    let mut module = NpuObjectModule::new(isa.clone()).map_err(fault)?;
    let mut types = Types::default();
    let translated = naplespu_wasm::translate(&mut module, bytes, config, &mut types, &Imports::default());
    let mut functions = translated.map_err(in_file)?.functions;
    let mut text = String::new();
    for (id, ctx) in &mut functions {
        let declaration = module.declarations().get_function_decl(*id);
        let function = declaration.linkage_name(*id).into_owned();
        match form {
            Form::Clif => {
                let _ = writeln!(text, "; {function}\n{}", ctx.func.display());
            }
            Form::Asm => {
                let code = isa.compile(ctx, &mut Default::default()).map_err(fault)?;
                let _ = writeln!(text, "{function}:\n{}", code.asm(Some(&ctx.func.params)));
            }
            Form::Obj => module.define_function(*id, ctx).map_err(fault)?,
        }
    }
    match form {
        Form::Clif | Form::Asm => output::write(args.output.as_deref(), text.as_bytes()),
        Form::Obj => output::write_file(args.output.as_deref(), &module.emit().map_err(fault)?),
    }
}
