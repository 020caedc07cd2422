//! `clif-util`: compiles, assembles, runs, tests and inspects CLIF and NPU code.
//!
//! # Contract
//!
//! Each subcommand has its own file (`print` has two); this file only parses the command line.
//! Results go to standard output, errors to standard error. The exit status is 0 for success, 1 for
//! bad input or a failed test, 2 for a bad command line, 134 after a trap of a program, and 101
//! after a panic, whatever else happened.

#![deny(missing_docs)]

mod asm;
mod bugpoint;
mod compile;
mod disasm;
mod dispatch;
mod execute;
mod explain;
mod gdb;
mod html;
mod input;
mod interpret;
mod isa;
mod link;
mod nm;
mod objcopy;
mod objdump;
mod output;
mod print;
mod progress;
mod prove;
mod run;
mod run_lines;
mod shader;
mod sim;
mod test;
mod wasm;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use naplespu_reader::panics;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compile, assemble, run, test and inspect CLIF and NPU code.
#[derive(Parser)]
#[command(name = "clif-util", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Asm(asm::Args),
    Bugpoint(bugpoint::Args),
    /// Print CLIF files in normal form
    Cat(print::Args),
    Compile(compile::Args),
    /// Print a script that completes command lines in a shell
    Completions {
        shell: Shell,
    },
    Disasm(disasm::Args),
    Interpret(interpret::Args),
    Isa(isa::Args),
    Link(link::Args),
    /// Write a manual page for each subcommand to a folder
    Man {
        folder: PathBuf,
    },
    Nm(nm::Args),
    Objcopy(objcopy::Args),
    Objdump(objdump::Args),
    /// Print control-flow graphs for Graphviz
    PrintCfg(print::Args),
    Prove(prove::Args),
    Run(run::Args),
    Shader(shader::Args),
    Sim(sim::Args),
    Size(nm::SizeArgs),
    Test(test::Args),
    Wasm(wasm::Args),
}

/// Why a subcommand ended early. Messages have been printed already, except for the texts here.
enum Stop {
    /// The input is bad or a test failed. Reported already.
    Reported,
    /// A panic. Reported already.
    Panicked,
    /// An error that is not reported yet.
    Fault(String),
    /// The options of the command line do not fit together.
    Usage(String),
    /// The reader of the output has ended.
    Closed,
    /// The status of a simulated program, which becomes the exit status.
    Exit(u8),
}

type Outcome = Result<(), Stop>;

/// Returns an error that is not reported yet.
fn fault(error: impl ToString) -> Stop {
    Stop::Fault(error.to_string())
}

impl Stop {
    /// Returns the error of an operation on a file.
    fn of_file(path: &Path, error: &std::io::Error) -> Self {
        Self::Fault(format!("{}: {error}", path.display()))
    }
}

/// The exit status after a panic, as for any Rust program.
const PANICKED: u8 = 101;

/// The exit status after a trap of a program, as for a process that aborts.
const TRAPPED: u8 = 134;

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Fault(error.to_string()),
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    panics::silence_caught();
    // Deeply nested or very long functions need more stack than the main thread has.
    let outcome = naplespu_filetests::runner::with_large_stack(|| match cli.command {
        Command::Asm(args) => asm::run(&args),
        Command::Bugpoint(args) => bugpoint::run(&args),
        Command::Cat(args) => print::cat(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "clif-util", &mut script);
            output::print(&script)
        }
        Command::Disasm(args) => disasm::run(&args),
        Command::Interpret(args) => interpret::run(&args),
        Command::Isa(args) => isa::run(&args),
        Command::Link(args) => link::run(&args),
        Command::Man { folder } => std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &folder))
            .map_err(|error| Stop::of_file(&folder, &error)),
        Command::Nm(args) => nm::run(&args),
        Command::Size(args) => nm::size(&args),
        Command::Objcopy(args) => objcopy::run(&args),
        Command::Objdump(args) => objdump::run(&args),
        Command::PrintCfg(args) => print::cfg(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Shader(args) => shader::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Wasm(args) => wasm::run(&args),
    });
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        // The output that was not read may have reported a failure.
        Ok(Err(Stop::Reported | Stop::Closed)) => ExitCode::FAILURE,
        Ok(Err(Stop::Exit(status))) => ExitCode::from(status),
        Ok(Err(Stop::Panicked)) => ExitCode::from(PANICKED),
        Ok(Err(Stop::Usage(text))) => {
            output::report(&format!("error: {text}\n"));
            ExitCode::from(2)
        }
        Ok(Err(Stop::Fault(text))) => {
            output::report(&format!("error: {text}\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            output::report(&format!("error: {error}\n"));
            ExitCode::from(PANICKED)
        }
    }
}

/// Returns the arguments of the command line. The file of `sim --trace=kanata FILE` and `sim
/// --trace=chrome FILE` becomes a part of the option.
fn arguments(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for arg in args {
        let is_sim = joined.get(1).is_some_and(|command| command == "sim");
        match joined
            .last_mut()
            .filter(|last| is_sim && (*last == "--trace=kanata" || *last == "--trace=chrome"))
        {
            Some(last) => {
                last.push(":");
                last.push(arg);
            }
            None => joined.push(arg),
        }
    }
    joined
}

/// Reports an error in the command line with the usage of the subcommand, or prints help.
fn usage(mut error: clap::Error) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_help && !error.to_string().contains("Usage:") {
        let mut command = Cli::command();
        command.build();
        let name = args.get(1).cloned().unwrap_or_default();
        let usage = match command.find_subcommand_mut(name) {
            Some(subcommand) => subcommand.render_usage(),
            None => command.render_usage(),
        };
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    // A closed standard error cannot be reported.
    let _ = error.print();
    if is_help {
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && args.get(1).is_some_and(|name| name == "wasm")
        && args.iter().any(|arg| arg == "--invoke")
    {
        output::report("\ntip: FILE goes before --invoke, which takes all arguments up to the next option\n");
    }
    ExitCode::from(2)
}
