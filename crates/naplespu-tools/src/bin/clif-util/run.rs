//! `clif-util run`: compiles functions and executes their run lines in the simulator.

use crate::dispatch::{KernelArgs, Number, Operand, run_clif};
use crate::execute::{self, ExecuteArgs, ModuleSession};
use crate::run_lines::{self, worse};
use crate::{Outcome, Stop, fault, input, output};
use clap::ValueEnum;
use naplespu_filetests::file::call_simulated_threads;
use naplespu_filetests::{Options, Summary, Verdict};
use naplespu_jit::{DefineError, Program, function_name, parallel};
use naplespu_reader::FunctionCase;
use naplespu_reader::panics::caught;
use std::path::PathBuf;
use std::sync::Arc;

/// Compile CLIF files and execute their `; run:` and `; print:` lines in the simulator
///
/// All threads of a run call the function of a line at once with the same arguments. Each has its
/// own stack, and all must return the same results.
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    target: input::TargetArgs,

    #[command(flatten)]
    cache: input::CacheArgs,

    /// Print each line with the number of executed instructions
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    kernel: KernelArgs,

    /// With --dispatch, the arguments of the first function, in order: a number, or the contents of
    /// a buffer: `f32:1,2,3`, `u32:1,2`, `i32:-1`, `zeros:BYTES`, or a file
    #[arg(long, value_name = "NUMBER|CONTENTS", value_parser = Operand::parse, requires = "dispatch", allow_negative_numbers = true)]
    arg: Vec<Operand>,

    /// Print the buffer of an argument, counted from 0, after the dispatch
    #[arg(long, value_name = "ARGUMENT=f32|u32|i32", value_parser = parse_print, requires = "dispatch")]
    print: Vec<(usize, Number)>,

    #[command(flatten)]
    execute: ExecuteArgs,
}

fn parse_print(text: &str) -> Result<(usize, Number), String> {
    let parts = text.split_once('=');
    let parsed = parts.and_then(|(number, kind)| Some((number.parse().ok()?, Number::from_str(kind, false).ok()?)));
    parsed.ok_or_else(|| format!("'{text}' is not of the form ARGUMENT=f32, u32 or i32"))
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    if args.kernel.groups.dispatch.is_some() || args.kernel.groups.explain.is_some() {
        let [path] = &args.files[..] else {
            return Err(Stop::Usage("a dispatch is of one file".to_owned()));
        };
        let buffers = (&args.arg[..], &args.print[..]);
        return run_clif(path, &args.target.settings(), &args.kernel, &args.execute, buffers);
    }
    if args.execute.wants_profile() && args.files.len() > 1 {
        return Err(Stop::Usage("a profile is for one file only".to_owned()));
    }
    run_lines::in_files(&args.files, |path, summary| run_file(args, path, summary))
}

fn run_file(args: &Args, path: &std::path::Path, summary: &mut Summary) -> Outcome {
    let device = args.execute.device_of_calls()?;
    let input::Loaded { file, config, isa } = input::load(path, &args.target.settings())?;
    let isa = Arc::new(args.cache.with_cache(&isa)?);
    let lines = run_lines::collect(&file)?;
    let mut program = Program::with_config(isa.clone(), device.config);
    let functions = input::inlined(&file, &isa, FunctionCase::with_lines)?;
    let compiled = parallel::map(
        functions.iter().collect(),
        |function| function.dfg.num_insts(),
        |worker, function| caught(|| worker.compile(&isa, function)),
    );
    let mut faults = Vec::new();
    for ((case, function), code) in file.functions.iter().zip(&functions).zip(compiled) {
        match code.and_then(|code| caught(|| program.define_compiled(function, code))) {
            Ok(Ok(())) => program.set_source_file(&function_name(&case.func.name), &file.source.name),
            Ok(Err(DefineError::Compile(error))) => faults.extend(crate::compile::faults(&file, case, &error)),
            Ok(Err(error)) => faults.push(input::at_function(
                &file,
                case,
                "the function cannot be loaded",
                error.to_string(),
            )),
            Err(panic) => faults.push(input::panicked(&file, case, "the compiler panicked", &panic)),
        }
    }
    let loaded = input::report(&file, &faults);
    let module = program.module().map_err(fault)?;
    execute::finish(module)?;
    let (map, most) = (module.code_map(), Options::default().max_steps);
    let session = ModuleSession::new(&args.execute, module, map, &device.threads, most)?;
    // The number of instructions and the report of each line.
    let mut reports = Vec::new();
    let mut ended = Ok(());
    let (outcomes, failures) = run_lines::execute(lines, &file, &config.to_string(), |case, values| {
        let started = session.start();
        let result = call_simulated_threads(&mut program, case, values, session.threads());
        let module = program.module().map_err(fault);
        let report = started.and(module).and_then(|module| session.end(module));
        let (report, outcome) = report.map_or_else(|stop| (None, Err(stop)), |report| (report, Ok(())));
        reports.push((program.steps(), report));
        if ended.is_ok() {
            ended = outcome;
        }
        result
    });
    ended?;
    // If a line does not parse, no call is made, so reports and lines do not correspond.
    let has_reports = reports.len() == outcomes.len();
    let mut text = String::new();
    for (number, line) in outcomes.iter().enumerate() {
        let (steps, report) = match reports.get(number).filter(|_| has_reports) {
            Some((steps, report)) => (format!(" ({steps} instructions)"), report.as_deref()),
            None => (String::new(), None),
        };
        summary.lines.add(line.verdict);
        for printed in &line.printed {
            text += &format!("{printed}\n");
        }
        let place = format!("{}:{}", file.source.name, line.line);
        if line.verdict == Verdict::Refused {
            text += &format!("{place}: refused: {}: {}\n", line.text, line.reason);
        } else if args.verbose {
            text += &format!("{place}: {}: {}{steps}\n", line.verdict, line.text);
        }
        if let Some(report) = report {
            text += &format!("{place}: timing: {}\n", line.text);
            for line in report.lines() {
                text += &format!("  {line}\n");
            }
        }
    }
    output::print(text.as_bytes())?;
    session.finish(program.module().map_err(fault)?, &file.source.name)?;
    worse(loaded, input::report(&file, &failures))
}
