//! `clif-util prove`: proves that compiled code does what its CLIF says.

use crate::compile::{self, Left};
use crate::progress::Progress;
use crate::{Outcome, Stop, input, output};
use cranelift_naplespu::CompileError;
use naplespu_jit::parallel::Worker;
use naplespu_reader::panics::caught;
use naplespu_reader::{ClifFile, FunctionCase};
use naplespu_verify::answer::{Answer, Reason, Verdict};
use naplespu_verify::cache::AnswerCache;
use naplespu_verify::prove::{Options, prove_code};
use naplespu_verify::solver;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Prove for each function of CLIF files that its compiled code does what its CLIF says, for all
/// inputs
///
/// The exit status is 1 if the code of a function is wrong, and 3 if a function is undecided.
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    target: input::TargetArgs,

    /// A pass to leave out
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    disable_pass: Vec<Left>,

    /// Functions to prove, with or without the `%`, instead of all
    #[arg(short, long, value_name = "NAME")]
    function: Vec<String>,

    /// Seconds for each function; a running query may take a few more
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// Maximum executions of a block; the answer says so if a function needs more
    #[arg(long, value_name = "N", default_value_t = Options::default().iterations, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    iterations: u32,

    /// The solver: a program that accepts SMT-LIB and the options of Z3
    #[arg(long, value_name = "PROGRAM", default_value = solver::PROGRAM)]
    solver: String,

    /// A folder for the queries to the solver, one file each
    #[arg(long, value_name = "FOLDER")]
    dump: Option<PathBuf>,

    /// A folder that caches proofs by the content of function and code
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,

    /// Print one JSON object on a line for each function
    #[arg(long)]
    json: bool,
}

/// No function is refuted, but at least one is undecided.
const UNDECIDED: u8 = 3;

/// The answers for all functions.
#[derive(Default)]
struct Counts {
    proved: usize,
    refuted: usize,
    undecided: usize,
    no_solver: bool,
    /// The requested functions that exist, without the `%`.
    found: BTreeSet<String>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    if let Some(folder) = &args.dump {
        std::fs::create_dir_all(folder).map_err(|error| Stop::of_file(folder, &error))?;
    }
    let open = |folder: &PathBuf| AnswerCache::open(folder).map_err(|error| Stop::of_file(folder, &error));
    let cache = args.cache.as_ref().map(open).transpose()?;
    let mut counts = Counts::default();
    let mut worst = Ok(());
    for file in &args.files {
        if let Err(stop) = prove_file(args, cache.as_ref(), file, &mut counts) {
            match stop {
                Stop::Reported => worst = Err(stop),
                stop => return Err(stop),
            }
        }
    }
    if let Some(name) = args.function.iter().find(|name| !counts.found.contains(bare(name))) {
        return Err(Stop::Fault(format!("there is no function `%{}`", bare(name))));
    }
    if !args.json {
        let Counts {
            proved,
            refuted,
            undecided,
            ..
        } = &counts;
        output::print(format!("functions: {proved} proved, {refuted} refuted, {undecided} undecided\n").as_bytes())?;
    }
    if counts.no_solver {
        return Err(Stop::Fault(format!(
            "the solver `{}` cannot be run: install Z3 (Debian: apt-get install z3) or name another one with --solver",
            args.solver
        )));
    }
    worst?;
    match counts {
        Counts { refuted: 1.., .. } => Err(Stop::Reported),
        Counts { undecided: 1.., .. } => Err(Stop::Exit(UNDECIDED)),
        _ => Ok(()),
    }
}

fn prove_file(args: &Args, cache: Option<&AnswerCache>, path: &Path, counts: &mut Counts) -> Outcome {
    let input::Loaded { file, isa, .. } = input::load(path, &args.target.settings())?;
    let isa = args
        .disable_pass
        .iter()
        .fold((*isa).clone(), |isa, &Left(pass)| isa.without_pass(pass));
    let isa = Arc::new(isa);
    let options = Options {
        timeout: Duration::from_secs(args.timeout),
        solver: args.solver.clone(),
        dump: args.dump.clone(),
        iterations: args.iterations,
        ..Options::default()
    };
    let wanted: Vec<&FunctionCase> = file.functions.iter().filter(|case| is_wanted(args, case)).collect();
    counts
        .found
        .extend(wanted.iter().map(|case| bare(&case.name).to_owned()));
    let progress = Progress::bar(wanted.len(), "functions");
    let mut worker = Worker::default();
    let mut faults = Vec::new();
    for case in wanted {
        let found = caught(|| -> Result<Answer, CompileError> {
            let code = worker.compile(&isa, &case.func)?;
            if let Some(known) = cache.and_then(|cache| cache.get(&case.func, &code, &isa, &options)) {
                return Ok(known);
            }
            let answer = prove_code(&case.func, &code, &isa, &options);
            if let Some(cache) = cache {
                // A proof that cannot be cached is repeated later.
                let _ = cache.put(&case.func, &code, &isa, &options, &answer);
            }
            Ok(answer)
        });
        match found {
            Ok(Ok(answer)) => {
                counts.add(&answer);
                let text = line(args, &file, &answer);
                output::print(text.as_bytes())?;
            }
            Ok(Err(error)) => faults.extend(compile::faults(&file, case, &error)),
            Err(panic) => faults.push(input::panicked(&file, case, "the proof panicked", &panic)),
        }
        progress.step();
    }
    drop(progress);
    input::report(&file, &faults)
}

impl Counts {
    fn add(&mut self, answer: &Answer) {
        match &answer.verdict {
            Verdict::Proved => self.proved += 1,
            Verdict::Refuted { .. } => self.refuted += 1,
            Verdict::Undecided(reason) => {
                self.undecided += 1;
                self.no_solver |= matches!(reason, Reason::NoSolver(_));
            }
        }
    }
}

fn bare(name: &str) -> &str {
    name.trim_start_matches('%')
}

fn is_wanted(args: &Args, case: &FunctionCase) -> bool {
    args.function.is_empty() || args.function.iter().any(|name| bare(name) == bare(&case.name))
}

/// Returns the answer as text or JSON.
fn line(args: &Args, file: &ClifFile, answer: &Answer) -> String {
    if args.json {
        let mut value = answer.to_json();
        value["file"] = file.source.name.as_str().into();
        return format!("{value}\n");
    }
    format!("{answer}\n")
}
