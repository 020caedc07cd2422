//! `clif-util`: compile, assemble, run, test and look at CLIF and NPU code.
//!
//! # Contract
//!
//! One file per subcommand, `print` for two; this one only parses the command line. Results go to standard output, faults to standard error.
//! Exit status: 0 if all is well, 1 if the input is bad or a test failed, 2 if the command line is wrong, 101 if something
//! panicked, whatever else happened.

#![deny(missing_docs)]

mod asm;
mod bugpoint;
mod compile;
mod disasm;
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
mod profile;
mod prove;
mod run;
mod run_lines;
mod sim;
mod sim_report;
mod sim_trace;
mod sim_waits;
mod speed_args;
mod test;
mod timing_args;
mod wasm;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use naplespu_reader::panics;
use std::process::ExitCode;

/// Compile, assemble, run, test and look at CLIF and NPU code.
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
    Disasm(disasm::Args),
    Interpret(interpret::Args),
    Isa(isa::Args),
    Link(link::Args),
    Nm(nm::Args),
    Objcopy(objcopy::Args),
    Objdump(objdump::Args),
    /// Print control-flow graphs in the language of Graphviz
    PrintCfg(print::Args),
    Prove(prove::Args),
    Run(run::Args),
    Sim(sim::Args),
    Size(nm::SizeArgs),
    Test(test::Args),
    Wasm(wasm::Args),
}

/// Why a subcommand ended early. Everything has been said already, except for what stands here.
enum Stop {
    /// The input is bad or a test failed; reported.
    Reported,
    /// Something panicked; reported.
    Panicked,
    /// A fault to report.
    Fault(String),
    /// The command line asks for what does not go together.
    Usage(String),
    /// Nobody reads the output any more.
    Closed,
    /// A program ended with this status, which is the command's.
    Exit(u8),
}

type Outcome = Result<(), Stop>;

/// The exit status after a panic, which is that of any Rust program.
const PANICKED: u8 = 101;

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Fault(error.to_string()),
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    std::panic::set_hook(panics::hook(std::panic::take_hook()));
    // Deeply nested or very long functions need more stack than the main thread has.
    let outcome = naplespu_filetests::runner::with_large_stack(|| match cli.command {
        Command::Asm(args) => asm::run(&args),
        Command::Bugpoint(args) => bugpoint::run(&args),
        Command::Cat(args) => print::cat(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Disasm(args) => disasm::run(&args),
        Command::Interpret(args) => interpret::run(&args),
        Command::Isa(args) => isa::run(&args),
        Command::Link(args) => link::run(&args),
        Command::Nm(args) => nm::run(&args),
        Command::Size(args) => nm::size(&args),
        Command::Objcopy(args) => objcopy::run(&args),
        Command::Objdump(args) => objdump::run(&args),
        Command::PrintCfg(args) => print::cfg(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Wasm(args) => wasm::run(&args),
    });
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        // What nobody read may have been that something failed.
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

/// Reports what is wrong with the command line, with the usage of the subcommand; or help, if that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    // Nothing is left to do if standard error is closed.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return ExitCode::SUCCESS,
        _ => {}
    }
    if !error.to_string().contains("Usage:") {
        let mut command = Cli::command();
        command.build();
        let name = std::env::args().nth(1).unwrap_or_default();
        let mut usage = command.render_usage();
        if let Some(subcommand) = command.find_subcommand_mut(&name) {
            usage = subcommand.render_usage();
        }
        output::report(&format!("\n{usage}\n"));
    }
    ExitCode::from(2)
}
