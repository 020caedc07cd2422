//! `clif-util test`: runs filetests.

use crate::input::{CacheArgs, SettingArgs};
use crate::progress::Progress;
use crate::{Outcome, Stop, output};
use cranelift_naplespu::timing;
use naplespu_filetests::{Options, Summary, Verdict, runner};
use naplespu_reader::ForcedTarget;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Run filetests
///
/// CRANELIFT_TEST_BLESS=1 in the environment rewrites the expectations of `precise-output` tests.
#[derive(clap::Args)]
pub struct Args {
    /// CLIF files, or folders with such files at any depth
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Print the result of every file and of every function that does not pass
    #[arg(short, long)]
    verbose: bool,

    /// Number of threads [default: one for each processor]
    #[arg(short = 'j', long = "jobs", value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZeroUsize>,

    /// Replace the `target` lines of all files by a target with settings
    #[arg(long, value_name = "\"TARGET [NAME=VALUE ...]\"", value_parser = ForcedTarget::parse)]
    force_target: Option<ForcedTarget>,

    #[command(flatten)]
    settings: SettingArgs,

    #[command(flatten)]
    cache: CacheArgs,

    /// Print the time of each stage of the compiler, the sum over all files and threads
    #[arg(short = 'T', long)]
    time_passes: bool,

    /// Write one line per function to this file: file, name, result, reason, separated by tabs
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Instructions that a run line may execute
    #[arg(long, value_name = "N", default_value_t = Options::default().max_steps)]
    max_steps: u64,

    /// Seed of the random initial contents of memory, scratchpad and registers in `test run`
    #[arg(long, value_name = "SEED", default_value_t = Options::default().fill_seed)]
    fill_seed: u64,
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a number from 1 on is expected".to_owned())
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let files = runner::find(&args.paths).map_err(|(path, error)| Stop::of_file(&path, &error))?;
    let options = Options {
        forced: args.force_target.clone(),
        settings: args.settings.list(),
        bless: std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1"),
        max_steps: args.max_steps,
        fill_seed: args.fill_seed,
        cache: args.cache.open()?,
    };
    let threads = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get);
    timing::set_enabled(args.time_passes);
    let progress = Progress::bar(files.len(), "files");
    let mut summary = Summary::default();
    let mut printed = Ok(());
    let outcomes = runner::test_files(
        &files,
        &options,
        threads,
        |outcome, _| {
            summary.add(outcome);
            let text = describe(outcome, args.verbose);
            if !text.is_empty() && printed.is_ok() {
                printed = output::print_messages(&text);
            }
        },
        |_| progress.step(),
    )?;
    drop(progress);
    printed?;
    if let Some(path) = &args.report {
        output::write(Some(path), runner::report(&outcomes).as_bytes())?;
    }
    output::print(format!("{summary}\n").as_bytes())?;
    if args.time_passes {
        output::print(timing::take().to_string().as_bytes())?;
    }
    match summary {
        Summary { panics: 1.., .. } => Err(Stop::Panicked),
        summary if summary.is_good() => Ok(()),
        _ => Err(Stop::Reported),
    }
}

/// Describes the result of a file.
fn describe(outcome: &naplespu_filetests::FileOutcome, verbose: bool) -> String {
    let mut text = String::new();
    let name = &outcome.source.name;
    // Writing to a string does not fail.
    if verbose || outcome.verdict == Verdict::Failed {
        let _ = writeln!(text, "{}: {name}", outcome.verdict);
    }
    if verbose {
        let of_note = outcome.functions.iter().filter(|f| f.verdict != Verdict::Passed);
        for function in of_note {
            let reason = function.reason.lines().next().unwrap_or_default();
            let _ = writeln!(text, "  {}: {}: {reason}", function.verdict, function.name);
        }
    }
    for printed in outcome.lines.iter().flat_map(|l| &l.printed) {
        let _ = writeln!(text, "{printed}");
    }
    if outcome.rewritten.is_some() {
        let _ = writeln!(text, "rewritten: {name}");
    }
    text + &outcome.render()
}
