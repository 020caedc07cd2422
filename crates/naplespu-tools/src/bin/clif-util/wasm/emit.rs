//! `clif-util wasm --emit`: writes a module as text, as an object file, or as a program without a
//! host.

use super::{Args, Form, exported, values};
use crate::{Outcome, Stop, fault, objcopy, output};
use cranelift_module::Module;
use cranelift_naplespu::Isa;
use naplespu_object::{NpuObjectModule, RuntimeLibrary};
use naplespu_wasm::{Config, Imports, Program, ProgramCall, Types, WasmError};
use npu_link::elf::write_executable;
use npu_link::{Input, LinkOptions, MemoryLayout, link_program};
use npu_sim::THREADS;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Writes the compiled module of a file.
pub(super) fn run(
    args: &Args,
    form: Form,
    threads: &[usize],
    isa: &Arc<Isa>,
    name: &str,
    bytes: &[u8],
    config: &Config,
) -> Outcome {
    let invoked = args.invoke.split_first();
    match (form.is_program(), invoked) {
        (true, None) => {
            return Err(Stop::Usage(
                "name the function that the program calls with --invoke".to_owned(),
            ));
        }
        (false, Some(_)) => {
            return Err(Stop::Usage(
                "--invoke is only for the programs of --emit=elf and --emit=hex; other forms call no function"
                    .to_owned(),
            ));
        }
        _ => {}
    }
    let count = threads.len();
    if form.is_program() && (count > THREADS || !threads.iter().copied().eq(0..count)) {
        return Err(Stop::Usage(format!(
            "a program of --emit runs on the first threads of one core: --threads is a number of at most {THREADS}"
        )));
    }
    let mut module = NpuObjectModule::new(isa.clone()).map_err(fault)?;
    let mut types = Types::default();
    let mut translated = naplespu_wasm::translate(&mut module, bytes, config, &mut types, &Imports::default())
        .map_err(|error| refused(name, error))?;
    let mut functions = std::mem::take(&mut translated.functions);
    for kernel in translated.kernels.drain(..) {
        if !matches!(form, Form::Clif | Form::Asm) {
            return Err(Stop::Fault(format!(
                "{name}: at offset {:#x}: {} exists only in a dispatch, which this form cannot have",
                kernel.offset, kernel.operation
            )));
        }
        if let Some((_, ctx)) = functions
            .iter_mut()
            .find(|(id, _)| *id == kernel.id && form == Form::Clif)
        {
            ctx.func = kernel.function;
        }
    }
    let mut entry = None;
    if let (true, Some((function, operands))) = (form.is_program(), invoked) {
        let exports = translated.exports.iter().map(|(name, item)| (name.as_str(), *item));
        let function_item = exported(name, function, exports)?;
        let params = types.get(function_item.ty).map_err(fault)?.params.clone();
        let call = ProgramCall {
            function: function_item,
            args: values(function, &params, operands)?,
            threads: count as u32,
            stack_bytes: args.stack_size,
        };
        let program = naplespu_wasm::program(&mut module, &translated, &types, config, &call);
        let Program {
            entry: own,
            functions: more,
        } = program.map_err(|error| refused(name, error))?;
        functions.extend(more);
        entry = Some(own);
    }
    let mut text = String::new();
    for (id, ctx) in &mut functions {
        let declaration = module.declarations().get_function_decl(*id);
        let function = declaration.linkage_name(*id).into_owned();
        match form {
            Form::Clif => {
                // Writing to a string does not fail.
                let _ = writeln!(text, "; {function}\n{}", ctx.func.display());
            }
            Form::Asm => {
                let code = isa.compile(ctx, &mut Default::default()).map_err(fault)?;
                let _ = writeln!(text, "{function}:\n{}", code.asm(Some(&ctx.func.params)));
            }
            Form::Obj | Form::Elf | Form::Hex => module.define_function(*id, ctx).map_err(fault)?,
        }
    }
    match (form, entry) {
        (Form::Elf | Form::Hex, Some(entry)) => {
            let program = linked(count as u32, isa, name, module, entry)?;
            if form == Form::Elf {
                let bytes = write_executable(&program).map_err(fault)?;
                return output::write_file(args.output.as_deref(), &bytes);
            }
            let format = objcopy::format_of(args.output.as_deref().unwrap_or(Path::new("")));
            let mut image = program.image();
            image.segments.sort_by_key(|segment| segment.address);
            let bytes = image.write(format.into()).map_err(fault)?;
            output::write(args.output.as_deref(), &bytes)
        }
        (Form::Obj, _) => output::write_file(args.output.as_deref(), &module.emit().map_err(fault)?),
        _ => output::write(args.output.as_deref(), text.as_bytes()),
    }
}

/// Links a program of an object, the start-up code and the runtime.
fn linked(
    threads: u32,
    isa: &Isa,
    name: &str,
    module: NpuObjectModule,
    entry: String,
) -> Result<npu_link::Program, Stop> {
    let object = module.finish().map_err(fault)?;
    let input = Input {
        name: name.to_owned(),
        object,
    };
    let options = LinkOptions {
        layout: MemoryLayout::DEFAULT,
        entry,
        startup: true,
        gc_sections: false,
        threads,
        ..LinkOptions::default()
    };
    let mut runtime = RuntimeLibrary::new(isa);
    link_program(vec![input], &mut [&mut runtime], &options).map_err(|errors| {
        for error in errors {
            output::report(&format!("error: {error}\n"));
        }
        Stop::Reported
    })
}

/// Returns the error for a module that was not compiled.
fn refused(name: &str, error: WasmError) -> Stop {
    let hint = match &error {
        WasmError::UnknownImport { .. } => {
            "; with `--emit` nothing is imported but functions of `npu`: hosts such as WASI are there only when a module runs"
        }
        _ => "",
    };
    Stop::Fault(format!("{name}: {error}{hint}"))
}
