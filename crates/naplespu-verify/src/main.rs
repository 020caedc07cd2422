//! `naplespu-verify rules`: proves the lowering rules.

use clap::Parser;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable as _, Flags};
use cranelift_naplespu::Isa;
use cranelift_naplespu::explain::RULES;
use naplespu_filetests::runner;
use naplespu_reader::ClifFile;
use naplespu_verify::answer::{Answer, Verdict};
use naplespu_verify::prove::Options;
use naplespu_verify::rules::instances::Family;
use naplespu_verify::rules::known::Known;
use naplespu_verify::rules::routines::prove_routines;
use naplespu_verify::rules::table::State;
use naplespu_verify::rules::{Counts, Prover, Scope};
use naplespu_verify::solver;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Proofs of the compiler
#[derive(Parser)]
#[command(name = "naplespu-verify", version)]
enum Command {
    /// Prove each lowering rule for each type to which it applies
    ///
    /// The exit status is 1 if a rule is wrong or the compiler fails on a function, and 3 if a rule
    /// is not proved.
    Rules(Args),
}

#[derive(clap::Args)]
struct Args {
    /// Families of functions, instead of all: plain, constants, users, pairs, masked, memory,
    /// vectors, control, atomics, intrinsics, frames, long, rewrites
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = family)]
    family: Vec<Family>,

    /// Optimization levels
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', default_value = "none,speed")]
    level: Vec<String>,

    /// Files of CLIF or folders, for short functions and for rules that no family applies
    #[arg(long, value_name = "PATH", default_value = "filetests")]
    files: Vec<PathBuf>,

    /// Seconds for each function
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// The solver: a program that accepts SMT-LIB and the options of Z3
    #[arg(long, value_name = "PROGRAM", default_value = solver::PROGRAM)]
    solver: String,

    /// A file of answers by function and code: known ones are not computed again, and new ones are
    /// added
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,

    /// Stop after the first stage with a failure
    #[arg(long)]
    fail_fast: bool,

    /// Maximum number of failures to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    failures: usize,

    /// Print one JSON array with an object for each rule
    #[arg(long)]
    json: bool,
}

/// Parses the name of a family.
fn family(name: &str) -> Result<Family, String> {
    let mut all = Family::ALL.into_iter();
    all.find(|family| family.name() == name)
        .ok_or_else(|| "not a family of functions".to_owned())
}

/// The exit status if a rule is not proved.
const UNPROVED: u8 = 3;

/// Settings other than the default by which more rules apply.
const VARIANTS: [&str; 6] = [
    "strict_float=true",
    "has_fpu=false",
    "erratum_scratchpad_empty_mask=false,erratum_indirect_call_link=false,\
     erratum_lost_result_before_taken_branch=false",
    "erratum_shift_amount_not_modulo=false,erratum_packed_vector_loads=false,\
     erratum_vector_compare_upper_half=false,erratum_main_memory_vector_store_unmasked=false",
    "atomics=single_thread",
    "atomics=machine",
];

fn main() -> ExitCode {
    let Command::Rules(args) = Command::parse();
    match rules(&args) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the target with these settings.
fn isa(level: &str, variant: &str) -> Result<Arc<Isa>, Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", level)?;
    let mut target = cranelift_naplespu::isa::lookup_by_name("naplespu")?;
    for setting in variant.split(',').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').ok_or("a setting has the form NAME=VALUE")?;
        target.set(name, value)?;
    }
    Ok(target.finish(Flags::new(flags))?)
}

fn rules(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if !solver::is_installed(&args.solver) {
        return Err(format!(
            "the solver `{}` cannot be run: install Z3 (Debian: apt-get install z3) or name another one with --solver",
            args.solver
        )
        .into());
    }
    // Terms are walked recursively, and those of code with memory accesses are deep.
    rayon::ThreadPoolBuilder::new()
        .stack_size(runner::STACK_SIZE)
        .build_global()?;
    let mut prover = Prover::new(Options {
        timeout: Duration::from_secs(args.timeout),
        solver: args.solver.clone(),
        ..Options::default()
    });
    if let Some(path) = &args.known {
        prover.known = Known::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let start = Instant::now();
    let report = |what: &str, counts: Counts, failures: usize| {
        if counts.compared == 0 {
            return;
        }
        let Counts {
            compiled,
            refused,
            compared,
            compiling,
            proving,
            solving,
        } = counts;
        let seconds = start.elapsed().as_secs();
        let [compiling, proving, solving] = [compiling, proving, solving].map(|time| time.as_secs());
        eprintln!(
            "{seconds:5} s  {what}: {compiled} functions compiled in {compiling} s, {refused} refused, {compared} compared \
             (on all threads {proving} s, solver {solving} s); {failures} failures so far"
        );
    };
    let ends = |prover: &Prover| args.fail_fast && !prover.table.is_sound();
    for stage in stages(args) {
        if ends(&prover) {
            break;
        }
        let isa = isa(stage.level, stage.variant)?;
        let settings = format!("{} {}", stage.level, stage.variant);
        let counts = prover.family(stage.family, &isa, settings.trim_end(), stage.scope);
        let what = format!("{} {}", settings.trim_end(), stage.family.name());
        report(&what, counts, prover.table.failures.len());
    }
    let routines = prove_routines(&*isa("speed", "")?, prover.options())?;
    let wrong = routines
        .iter()
        .filter(|answer| answer.verdict != Verdict::Proved)
        .count();
    let functions = functions(&args.files)?;
    for level in &args.level {
        for variant in VARIANTS.into_iter().chain([""]).rev() {
            if ends(&prover) {
                break;
            }
            let settings = format!("{level} {variant}");
            let is_optimized = variant.is_empty() && level != "none";
            let scope = if is_optimized {
                Scope::Rewritten
            } else {
                Scope::NewRules
            };
            let counts = prover.functions(functions.clone(), &isa(level, variant)?, &settings, scope);
            report(&format!("{settings} files"), counts, prover.table.failures.len());
        }
    }
    if !ends(&prover) {
        let counts = prover.second_attempts();
        report("second attempts", counts, prover.table.failures.len());
    }
    if let Some(path) = &args.known {
        prover
            .known
            .write(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if !ends(&prover) {
        prover.table.run_unproved(&args.files)?;
    }
    let table = &prover.table;
    if args.json {
        println!("{}", table.to_json());
    } else {
        let mut text = String::new();
        table.write_failures(&mut text, args.failures)?;
        for answer in &routines {
            let _ = writeln!(text, "routine {answer}");
        }
        print!("{text}{table}");
    }
    let unproved = RULES.len() - table.in_state(State::Proved).count();
    let is_sound = table.is_sound() && !routines.iter().any(Answer::is_failure);
    Ok(match (is_sound, unproved + wrong) {
        (false, _) => ExitCode::FAILURE,
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::from(UNPROVED),
    })
}

/// A family with the settings of the compiler.
struct Stage<'a> {
    level: &'a str,
    variant: &'static str,
    family: Family,
    scope: Scope,
}

/// Returns the stages of the families, in their order.
fn stages(args: &Args) -> Vec<Stage<'_>> {
    let families = match args.family.as_slice() {
        [] => &Family::ALL[..],
        some => some,
    };
    let mut all = Vec::new();
    for level in &args.level {
        for &family in families {
            // Without the optimizer, the rules of a pair do not depend on each other.
            let scope = match (family, level.as_str()) {
                (Family::Pairs, "none") => Scope::Types,
                (Family::Pairs, _) => Scope::Rewrites,
                // Branch relaxation does not depend on the level.
                (Family::Long, level) if level != "none" => continue,
                (Family::Rewrites, "none") => continue,
                (Family::Rewrites, _) => Scope::Rewritten,
                _ => Scope::All,
            };
            all.push(Stage {
                level,
                variant: "",
                family,
                scope,
            });
        }
    }
    for variant in VARIANTS {
        for level in &args.level {
            let some = families
                .iter()
                .filter(|family| !matches!(family, Family::Pairs | Family::Long | Family::Rewrites));
            for &family in some {
                let scope = match family {
                    Family::Atomics if variant.starts_with("atomics") => Scope::All,
                    Family::Intrinsics if variant.starts_with("erratum") => Scope::All,
                    // Code for floats and conditions that does not use the float unit.
                    Family::Plain | Family::Users if matches!(variant, "strict_float=true" | "has_fpu=false") => {
                        Scope::Types
                    }
                    _ => Scope::NewRules,
                };
                all.push(Stage {
                    level,
                    variant,
                    family,
                    scope,
                });
            }
        }
    }
    all
}

/// Returns the functions of all files. Files with faults are left out: their tests report them.
fn functions(paths: &[PathBuf]) -> Result<Vec<Function>, Box<dyn Error>> {
    let files = runner::find(paths).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let mut functions = Vec::new();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = ClifFile::parse(&path.display().to_string(), &bytes);
        functions.extend(file.functions.into_iter().map(|case| case.func));
    }
    Ok(functions)
}
