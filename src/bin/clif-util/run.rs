//! `clif-util run`: run lines, compiled and simulated.

use crate::{Outcome, Stop, input, output, run_lines};
use cranelift_naplespu::Program;
use cranelift_naplespu::filetest::file::call_simulated;
use cranelift_naplespu::filetest::lines::RunLines;
use cranelift_naplespu::filetest::outcome::Finding;
use cranelift_naplespu::filetest::panics::caught;
use cranelift_naplespu::filetest::{Options, Summary, Verdict};
use cranelift_naplespu::jit::DefineError;
use std::path::PathBuf;

/// Compile CLIF files and execute their `; run:` and `; print:` lines in the simulator
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    target: input::TargetArgs,

    /// Tell each line with the number of instructions it executed
    #[arg(short, long)]
    verbose: bool,

    /// Instructions that a line may execute
    #[arg(long, value_name = "N", default_value_t = Options::default().max_steps)]
    max_steps: u64,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    run_lines::in_files(&args.files, |path, summary| run_file(args, path, summary))
}

fn run_file(args: &Args, path: &std::path::Path, summary: &mut Summary) -> Outcome {
    let file = input::read_clif(path)?;
    let config = input::config_of(&file, &args.target.settings)?;
    let isa = config.isa().map_err(|e| Stop::Fault(e.to_string()))?;
    input::told(&file, &input::verify(&file, &config))?;
    let mut faults = Vec::new();
    let mut lines = RunLines::collect(&file, false, &mut faults);
    input::told(&file, &faults)?;

    let mut program = Program::new(isa);
    program.set_step_limit(args.max_steps);
    let mut bad = false;
    for case in &file.functions {
        match caught(|| match program.define(&case.func) {
            Ok(()) => Vec::new(),
            Err(DefineError::Compile(error)) => crate::compile::explain(&file, case, &error),
            Err(error) => vec![input::at_function(
                &file,
                case,
                "the function cannot be loaded",
                error.to_string(),
            )],
        }) {
            Ok(list) => faults.extend(list),
            Err(panic) => {
                bad = true;
                faults.push(input::at_function(&file, case, "the compiler panicked", panic));
            }
        }
    }
    bad |= input::told(&file, &faults).is_err();
    let mut findings = vec![Finding::default(); file.functions.len()];
    let mut failures = Vec::new();
    let mut steps = Vec::new();
    lines.execute(
        &file,
        &config.to_string(),
        &mut findings,
        &mut failures,
        |case, values| {
            let result = call_simulated(&mut program, case, values);
            steps.push(program.steps());
            result
        },
    );
    let outcomes = lines.outcomes(&file);
    let mut text = String::new();
    for (number, line) in outcomes.iter().enumerate() {
        summary.lines.add(line.verdict);
        for printed in &line.printed {
            text += &format!("{printed}\n");
        }
        if line.verdict == Verdict::Refused {
            text += &format!(
                "{}:{}: refused: {}: {}\n",
                file.source.name, line.line, line.text, line.reason
            );
        } else if args.verbose {
            // Lines that do not parse call nothing.
            let steps = steps.get(number).filter(|_| steps.len() == outcomes.len());
            let steps = steps.map_or(String::new(), |n| format!(" ({n} instructions)"));
            text += &format!(
                "{}:{}: {}: {}{steps}\n",
                file.source.name, line.line, line.verdict, line.text
            );
        }
    }
    output::print(text.as_bytes())?;
    input::told(&file, &failures)?;
    if bad { Err(Stop::Told) } else { Ok(()) }
}
