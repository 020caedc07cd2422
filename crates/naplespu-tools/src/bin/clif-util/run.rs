//! `clif-util run`: compiles functions and executes their run lines in the simulator.

use crate::profile::ProfileArgs;
use crate::run_lines::{self, worse};
use crate::speed_args::SpeedArgs;
use crate::timing_args::{self, TimingArgs};
use crate::{Outcome, Stop, input, output};
use naplespu_filetests::file::call_simulated_threads;
use naplespu_filetests::lines::RunLines;
use naplespu_filetests::outcome::Finding;
use naplespu_filetests::{Options, Summary, Verdict};
use naplespu_jit::{DefineError, NpuModule, Program, function_name, parallel};
use naplespu_reader::panics::caught;
use npu_sim::{CORE_LIMIT, QUANTUM, Schedule, THREADS};
use std::path::PathBuf;
use std::sync::Arc;

/// Compile CLIF files and execute their `; run:` and `; print:` lines in the simulator
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

    /// Hardware threads that call the function of a line at once with the same arguments; each has
    /// its own stack, and all must return the same results
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS))]
    threads: u16,

    /// Instructions of a thread's turn if there are several threads
    #[arg(long, value_name = "N", default_value_t = QUANTUM, value_parser = clap::value_parser!(u32).range(1..))]
    quantum: u32,

    /// Random turns: which thread is next, and for how many instructions, up to the quantum
    #[arg(long, value_name = "SEED")]
    random_turns: Option<u64>,

    #[command(flatten)]
    timing: TimingArgs,

    #[command(flatten)]
    profile: ProfileArgs,

    /// Instructions that a line may execute, all threads together
    #[arg(long, value_name = "N", default_value_t = Options::default().max_steps)]
    max_steps: u64,

    #[command(flatten)]
    speed: SpeedArgs,
}

/// The maximum number of threads of a device.
const MOST_THREADS: i64 = (CORE_LIMIT * THREADS) as i64;

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    if args.profile.wanted() && args.files.len() > 1 {
        return Err(Stop::Usage("a profile is for one file only".to_owned()));
    }
    run_lines::in_files(&args.files, |path, summary| run_file(args, path, summary))
}

fn run_file(args: &Args, path: &std::path::Path, summary: &mut Summary) -> Outcome {
    let file = input::read_clif(path)?;
    let config = input::config_of(&file, &args.target.settings)?;
    let isa = config.isa().map_err(|e| Stop::Fault(e.to_string()))?;
    let isa = Arc::new(args.cache.with_cache(&isa)?);
    input::report(&file, &input::verify(&file, &config))?;
    let mut faults = Vec::new();
    let mut lines = RunLines::collect(&file, false, &mut faults);
    input::report(&file, &faults)?;

    let threads = usize::from(args.threads);
    let mut program = Program::with_config(
        isa.clone(),
        npu_sim::Config {
            cores: threads.div_ceil(THREADS),
            ..args.speed.config()
        },
    );
    program.set_step_limit(args.max_steps);
    program.set_timing(args.timing.config());
    let module = program.module().map_err(|e| Stop::Fault(e.to_string()))?;
    module.set_waits(args.timing.wants_waits());
    module.set_schedule(match args.random_turns {
        Some(seed) => Schedule::random(seed, args.quantum),
        None => Schedule::round_robin(args.quantum),
    });
    let compiled = parallel::map(
        file.functions.iter().collect(),
        |case| case.func.dfg.num_insts(),
        |worker, case| caught(|| worker.compile(&isa, &case.with_lines())),
    );
    for (case, code) in file.functions.iter().zip(compiled) {
        match code.and_then(|code| caught(|| program.define_compiled(&case.func, code))) {
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
    let module = program.module().map_err(|e| Stop::Fault(e.to_string()))?;
    let profile = args.profile.watch(module)?;
    let mut findings = vec![Finding::default(); file.functions.len()];
    let mut failures = Vec::new();
    let mut steps = Vec::new();
    let mut reports = Vec::new();
    let mut waited = Waited::default();
    lines.execute(
        &file,
        &config.to_string(),
        &mut findings,
        &mut failures,
        |case, values| {
            if let Some(profile) = &profile {
                profile.lock().start_over();
            }
            let result = call_simulated_threads(&mut program, case, values, threads);
            steps.push(program.steps());
            if let Some(report) = program.timing_report() {
                let waits = program
                    .module()
                    .ok()
                    .and_then(|module| waited.of_line(&args.timing, module));
                reports.push((report, waits.unwrap_or_default()));
            }
            result
        },
    );
    waited.stop?;
    if let Some(profile) = &profile {
        args.profile.write(&profile.lock(), &file.source.name)?;
    }
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
            // Lines that do not parse have no calls.
            let steps = steps.get(number).filter(|_| steps.len() == outcomes.len());
            let steps = steps.map_or(String::new(), |n| format!(" ({n} instructions)"));
            text += &format!(
                "{}:{}: {}: {}{steps}\n",
                file.source.name, line.line, line.verdict, line.text
            );
        }
        // Lines that do not parse have no calls.
        if let Some((report, waits)) = reports.get(number).filter(|_| reports.len() == outcomes.len()) {
            text += &format!("{}:{}: timing: {}\n", file.source.name, line.line, line.text);
            for line in report.to_string().lines().chain(waits.lines()) {
                text += &format!("  {line}\n");
            }
        }
    }
    output::print(text.as_bytes())?;
    worse(loaded, input::report(&file, &failures))
}

/// The reports of waits.
struct Waited {
    /// The result of writing the file of waits.
    stop: Outcome,
}

impl Default for Waited {
    fn default() -> Self {
        Self { stop: Ok(()) }
    }
}

impl Waited {
    /// Returns the report for the line that was executed last. The file contains the waits of that
    /// line.
    fn of_line(&mut self, args: &TimingArgs, module: &NpuModule) -> Option<String> {
        let waits = module.waits_report()?;
        let place = |pc| timing_args::place(module, pc);
        if self.stop.is_ok() {
            self.stop = args.write_waits(&waits, &place);
        }
        Some(args.waits_text(&waits, &place))
    }
}
