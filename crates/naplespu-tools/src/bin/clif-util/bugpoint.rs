//! `clif-util bugpoint`: makes a CLIF file as small as possible while a failure persists.

use crate::progress::Progress;
use crate::{Outcome, Stop, input, output};
use cranelift_codegen::data_value::DataValue;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_naplespu::CompileError;
use naplespu_filetests::file::call_simulated;
use naplespu_filetests::interpret;
use naplespu_filetests::lines::{CallError, RunLines};
use naplespu_filetests::outcome::Finding;
use naplespu_filetests::reduce::{self, Candidate};
use naplespu_jit::Program;
use naplespu_jit::parallel::Worker;
use naplespu_reader::panics::caught;
use naplespu_reader::{ClifFile, Config};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Make a CLIF file smaller while it still makes the compiler fail
#[derive(clap::Args)]
pub struct Args {
    /// A CLIF file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    target: input::TargetArgs,

    /// A shell command that tests a candidate: it receives the path of a smaller file as its last
    /// argument, and exits with 0 if the failure persists. Without this option and --mismatch, the
    /// failure is a panic of the compiler, or an error that is not caused by its input
    #[arg(long, value_name = "CMD", conflicts_with = "mismatch")]
    check: Option<String>,

    /// The failure is a run line with another result in the simulator than in Cranelift's
    /// interpreter
    #[arg(long)]
    mismatch: bool,

    /// Maximum number of candidates
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    tries: usize,

    /// CLIF instructions that a line may execute in the interpreter; it may execute a thousand
    /// times as many machine instructions
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_steps: u64,

    /// Output file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Machine instructions for each step of the interpreter.
const STEPS: u64 = 1000;

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let input::Loaded { file, config, .. } = input::load(&args.file, &args.target.settings())?;
    let check = Check::of(args, config)?;
    let whole = Candidate::of(&file);
    if !check.holds(&whole)? {
        return Err(Stop::Fault(format!("nothing to reduce: {}", check.absent())));
    }
    let (mut tried, mut fault) = (0u32, None);
    let progress = Progress::spinner("candidates are tried");
    let small = reduce::file(whole, args.tries, |candidate| {
        // After an error no candidate holds, so the reduction ends soon.
        if fault.is_some() {
            return false;
        }
        tried += 1;
        check.holds(candidate).unwrap_or_else(|stop| {
            fault = Some(stop);
            false
        })
    });
    drop(progress);
    if let Some(stop) = fault {
        return Err(stop);
    }
    output::report(&format!("{tried} files tried\n"));
    output::write(args.output.as_deref(), small.to_string().as_bytes())
}

/// The failure that a smaller file must keep.
enum Check<'a> {
    /// The compiler fails.
    Failure(Config),
    /// Simulation and interpretation have different results.
    Mismatch(Config, u64),
    /// A shell command accepts the file.
    Command(&'a str, tempfile::TempDir),
}

impl<'a> Check<'a> {
    fn of(args: &'a Args, config: Config) -> Result<Self, Stop> {
        Ok(match &args.check {
            Some(command) => Self::Command(command, tempfile::tempdir()?),
            None if args.mismatch => Self::Mismatch(config, args.max_steps),
            None => Self::Failure(config),
        })
    }

    /// Returns a description of a file without the failure.
    fn absent(&self) -> &'static str {
        match self {
            Self::Failure(_) => "the compiler compiles or refuses all functions as expected",
            Self::Mismatch(..) => "no run line has another result than in the interpreter",
            Self::Command(..) => "the command does not exit with 0",
        }
    }

    fn holds(&self, candidate: &Candidate) -> Result<bool, Stop> {
        let text = candidate.to_string();
        if let Self::Command(command, folder) = self {
            return says_so(command, &folder.path().join("small.clif"), &text);
        }
        // The candidate is parsed again, as a reader of the result will do.
        let file = ClifFile::parse("small.clif", text.as_bytes());
        if !file.faults.is_empty() {
            return Ok(false);
        }
        Ok(match self {
            Self::Failure(config) => fails(&file, config),
            Self::Mismatch(config, steps) => differs(&file, config, *steps),
            Self::Command(..) => false,
        })
    }
}

fn says_so(command: &str, path: &Path, text: &str) -> Result<bool, Stop> {
    std::fs::write(path, text)?;
    let status = Command::new("sh")
        .args(["-c", &format!("{command} \"$1\""), "sh"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Stop::Fault(format!("sh: {error}")))?;
    // The exit statuses of a shell that could not start the command.
    let why = match status.code() {
        Some(127) => "was not found",
        Some(126) => "cannot be executed",
        _ => return Ok(status.success()),
    };
    Err(Stop::Fault(format!("--check: `{command}` {why}")))
}

/// Returns whether the compiler panics or fails in a way that is not a refusal.
fn fails(file: &ClifFile, config: &Config) -> bool {
    let Ok(isa) = config.isa() else { return false };
    file.functions.iter().any(|case| {
        let mut worker = Worker::default();
        match caught(|| worker.compile(&isa, &case.func)) {
            Ok(Ok(_) | Err(CompileError::Unsupported(_) | CompileError::Verifier(_) | CompileError::TooLarge(_))) => {
                false
            }
            Ok(Err(_)) | Err(_) => true,
        }
    })
}

/// Returns whether a run line that the interpreter can execute has another result in the simulator.
fn differs(file: &ClifFile, config: &Config, steps: u64) -> bool {
    let Ok(isa) = config.isa() else { return false };
    let mut program = Program::new(isa);
    program.set_step_limit(steps.saturating_mul(STEPS));
    for case in &file.functions {
        // A refused function does not matter if no run line reaches it.
        if caught(|| program.define(&case.func)).is_err() {
            return false;
        }
    }
    let mut store = FunctionStore::default();
    for case in &file.functions {
        store.add(case.name.clone(), &case.func);
    }
    let mut faults = Vec::new();
    let mut lines = RunLines::collect(file, false, &mut faults);
    let (mut findings, mut failures) = (vec![Finding::default(); file.functions.len()], Vec::new());
    let mut found = false;
    lines.execute(file, "bugpoint", &mut findings, &mut failures, |case, values| {
        let expected = match caught(|| interpret::call(&store, &case.name, values, steps)) {
            Ok(result) => result.map_err(CallError::from),
            Err(panic) => Err(CallError::Refused(panic.to_string())),
        };
        let result = call_simulated(&mut program, case, values);
        found |= match (&expected, &result) {
            (Ok(expected), Ok(result)) => {
                expected.len() != result.len() || expected.iter().zip(result).any(|(a, b)| !is_same(a, b))
            }
            (Ok(_), Err(CallError::Trap { .. })) => true,
            (Err(CallError::Trap { .. }), Ok(_)) => true,
            // The interpreter cannot execute the line, or both stopped without a result.
            _ => false,
        };
        expected
    });
    found
}

/// Returns whether two results are equal, where all NaNs are equal.
fn is_same(a: &DataValue, b: &DataValue) -> bool {
    let is_nan = |value: &DataValue| match value {
        DataValue::F32(value) => value.is_nan(),
        DataValue::F64(value) => value.is_nan(),
        _ => false,
    };
    a.bitwise_eq(b) || is_nan(a) && is_nan(b)
}
