//! `clif-util interpret`: executes run lines in Cranelift's interpreter.

use crate::{Outcome, input, output, run_lines};
use cranelift_interpreter::environment::FunctionStore;
use naplespu_filetests::interpret;
use naplespu_filetests::lines::CallError;
use naplespu_filetests::{Options, Summary, Verdict};
use std::path::{Path, PathBuf};

/// Execute the `; run:` and `; print:` lines of CLIF files in Cranelift's interpreter
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print each line with its result
    #[arg(short, long)]
    verbose: bool,

    /// CLIF instructions that a line may execute
    #[arg(long, value_name = "N", default_value_t = Options::default().max_steps)]
    max_steps: u64,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    run_lines::in_files(&args.files, |path, summary| run_file(args, path, summary))
}

fn run_file(args: &Args, path: &Path, summary: &mut Summary) -> Outcome {
    let file = input::read_clif(path)?;
    let config = input::config_of(&file, &[])?;
    input::report(&file, &input::verify(&file, &config))?;
    let lines = run_lines::collect(&file)?;
    let mut store = FunctionStore::default();
    for case in &file.functions {
        store.add(case.name.clone(), &case.func);
    }
    let (outcomes, failures) = run_lines::execute(lines, &file, "the interpreter", |case, values| {
        interpret::call(&store, &case.name, values, args.max_steps).map_err(CallError::from)
    });
    let mut text = String::new();
    for line in outcomes {
        summary.lines.add(line.verdict);
        for printed in &line.printed {
            text += &format!("{printed}\n");
        }
        let place = format!("{}:{}", file.source.name, line.line);
        if line.verdict == Verdict::Refused {
            text += &format!("{place}: refused: {}: {}\n", line.text, line.reason);
        } else if args.verbose {
            text += &format!("{place}: {}: {}\n", line.verdict, line.text);
        }
    }
    output::print(text.as_bytes())?;
    input::report(&file, &failures)
}
