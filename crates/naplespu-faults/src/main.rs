//! Inserts the faults of the list into a copy of the sources and runs the tests that must notice
//! them.

#![deny(missing_docs)]

use clap::Parser;
use naplespu_faults::build::{self, Programs};
use naplespu_faults::list::{self, Fault, Kind, Test};
use naplespu_faults::report::{self, Verdict};
use naplespu_faults::run::{self, Limits, Outcome};
use naplespu_faults::{Error, Result, edit, read, tree, write};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Insert faults into a copy of the sources, one at a time, and report those that no test notices.
#[derive(Parser)]
struct Args {
    /// Run only faults whose topic, name or file contains one of these
    patterns: Vec<String>,
    /// Run only part I of N, as `I/N`, from 1
    #[arg(long, value_name = "I/N", value_parser = part)]
    part: Option<(usize, usize)>,
    /// Write the copy of the sources without building or running it
    #[arg(long)]
    write: bool,
    /// Print the faults and their tests without running them
    #[arg(long)]
    list: bool,
    /// Stop at the first fault whose result differs from the list
    #[arg(long)]
    stop: bool,
    /// If the tests of a fault do not notice it, run all built tests without filters
    #[arg(long)]
    wide: bool,
    /// Skip the run without a fault for tests that passed it in an earlier campaign
    #[arg(long)]
    trust: bool,
    /// The time limit for one run of tests in seconds, in addition to eight times the time without
    /// a fault
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    timeout: u64,
    /// Skip tests that take longer than this without a fault, in seconds, for a first run of many
    /// faults
    #[arg(long, value_name = "SECONDS")]
    longest: Option<u64>,
    /// The memory limit for one run of tests, in MiB
    #[arg(long, default_value_t = 8192, value_name = "MIB")]
    memory: u64,
    /// The folder for the copy and its build
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

fn part(text: &str) -> std::result::Result<(usize, usize), String> {
    let numbers = text
        .split_once('/')
        .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((part, of)) if (1..=of).contains(&part) => Ok((part, of)),
        _ => Err("two numbers, as in 1/4, are expected".to_owned()),
    }
}

fn main() -> ExitCode {
    match campaign(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The folders of a campaign.
struct Places {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    logs: PathBuf,
}

/// Runs the campaign. Returns whether all results match the list.
fn campaign(args: &Args) -> Result<bool> {
    let root = tree::workspace();
    let folder = args.folder.clone().unwrap_or_else(|| root.join("target/faults"));
    let places = Places {
        tree: folder.join("tree"),
        target: folder.join("build"),
        logs: folder.join("logs"),
        root,
    };
    let faults = list::load(&places.root.join("crates/naplespu-faults/faults"))?;
    let texts = tree::edited(&places.root, &faults)?;
    let chosen = chosen(args, &faults);
    if args.list {
        for (_, fault) in &chosen {
            println!(
                "{} {} {}: {}",
                fault.topic,
                fault.name,
                fault.file,
                fault.tests.join(", ")
            );
        }
        return Ok(true);
    }
    let mut tests = BTreeSet::new();
    for (_, fault) in chosen.iter().filter(|(_, fault)| fault.kind != Kind::Rebuild) {
        tests.extend(fault.tests()?);
    }
    tree::write_copy(&places.root, &places.tree, &texts)?;
    if args.write {
        return Ok(true);
    }
    std::fs::create_dir_all(&places.logs).map_err(|error| Error::File {
        path: places.logs.clone(),
        error,
    })?;
    let mut campaign = Campaign {
        args,
        places,
        programs: Programs::new(),
        times: BTreeMap::new(),
        verdicts: Vec::new(),
    };
    let total = chosen.len();
    if !tests.is_empty() {
        campaign.programs = build::build(&campaign.places.tree, &campaign.places.target, &tests)?;
        campaign.check_clean(&tests)?;
    }
    // Faults with a separate build run last, because their builds replace the programs.
    let (rebuilt, switched): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|(_, fault)| fault.kind == Kind::Rebuild);
    for (place, (number, fault)) in (1..).zip(switched) {
        if !campaign.one(number, fault, &format!("{place}/{total}"))? && args.stop {
            break;
        }
    }
    for (place, (_, fault)) in (total - rebuilt.len() + 1..).zip(rebuilt) {
        if !campaign.rebuilt(fault, &texts, &format!("{place}/{total}"))? && args.stop {
            break;
        }
    }
    print!("\n{}", report::summary(&campaign.verdicts));
    Ok(campaign.verdicts.iter().all(Verdict::is_right))
}

/// Returns the selected faults with their numbers.
fn chosen<'f>(args: &Args, faults: &'f [Fault]) -> Vec<(u32, &'f Fault)> {
    let is_meant = |fault: &Fault| {
        let has = |text: &String| {
            [&fault.topic, &fault.name, &fault.file]
                .iter()
                .any(|part| part.contains(text))
        };
        args.patterns.is_empty() || args.patterns.iter().any(has)
    };
    let meant = (1..).zip(faults).filter(|(_, fault)| is_meant(fault));
    let in_part = |&(place, _): &(usize, (u32, &Fault))| match args.part {
        Some((part, of)) => place % of == part - 1,
        None => true,
    };
    meant.enumerate().filter(in_part).map(|(_, fault)| fault).collect()
}

struct Campaign<'a> {
    args: &'a Args,
    places: Places,
    programs: Programs,
    /// The run time of each test when no fault is active.
    times: BTreeMap<Test, Duration>,
    verdicts: Vec<Verdict>,
}

/// The time limit of a run with no active fault.
const CLEAN: Duration = Duration::from_secs(900);

impl Campaign<'_> {
    /// Returns the limits of a run with an active fault. For some tests, the run time without
    /// faults is unknown.
    fn limits(&self, test: &Test) -> Limits {
        let clean = self.times.get(test).copied().unwrap_or(CLEAN / 8);
        Limits {
            time: Duration::from_secs(self.args.timeout) + 8 * clean,
            memory: self.args.memory << 20,
        }
    }

    /// Checks that all tests pass without a fault.
    fn check_clean(&mut self, tests: &BTreeSet<Test>) -> Result<()> {
        let mut wrong = Vec::new();
        let record = self.places.logs.join("times.json");
        let known: BTreeMap<String, f64> = match read(&record) {
            Ok(text) if self.args.trust => serde_json::from_str(&text).unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        for test in tests {
            if let Some(seconds) = known.get(&test.to_string()) {
                self.times.insert(test.clone(), Duration::from_secs_f64(*seconds));
                continue;
            }
            let log = self.places.logs.join(format!("clean-{}.log", std::process::id()));
            let limits = Limits {
                time: CLEAN,
                ..self.limits(test)
            };
            let (outcome, time) = run::run(&self.programs, test, 0, limits, &log)?;
            if outcome == Outcome::Passed {
                self.times.insert(test.clone(), time);
            }
            println!("clean      {test}: {outcome:?} ({:.1} s)", time.as_secs_f64());
            if outcome != Outcome::Passed {
                let kept = self.places.logs.join(format!("clean-{}.txt", wrong.len()));
                write(&kept, read(&log)?.as_bytes())?;
                wrong.push(format!("`{test}`: {outcome:?}, {}", kept.display()));
            }
        }
        let mut times = known;
        times.extend(
            self.times
                .iter()
                .map(|(test, time)| (test.to_string(), time.as_secs_f64())),
        );
        write(&record, serde_json::json!(times).to_string().as_bytes())?;
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Error::Command(format!(
                "tests fail without any fault:\n{}",
                wrong.join("\n")
            ))),
        }
    }

    /// Runs the tests of one fault. Returns whether the result matches the list.
    fn one(&mut self, number: u32, fault: &Fault, place: &str) -> Result<bool> {
        let mut tests = fault.tests()?;
        if self.args.wide {
            let all = self.programs.keys().map(|(package, target)| Test {
                package: package.clone(),
                target: target.clone(),
                filter: String::new(),
            });
            tests.extend(all);
        }
        if let Some(longest) = self.args.longest {
            let is_short = |test: &Test| self.times.get(test).is_none_or(|time| time.as_secs() < longest);
            tests.retain(is_short);
        }
        let log = self.places.logs.join(format!("{}.txt", fault.name));
        let mut verdict = Verdict {
            fault: fault.clone(),
            noticed: None,
            time: Duration::ZERO,
        };
        for test in tests {
            let (outcome, time) = run::run(&self.programs, &test, number, self.limits(&test), &log)?;
            verdict.time += time;
            if !matches!(outcome, Outcome::Passed | Outcome::NoTests) {
                verdict.noticed = Some((test.to_string(), outcome));
                break;
            }
        }
        println!("[{place}] {}", verdict.line());
        let is_right = verdict.is_right();
        self.verdicts.push(verdict);
        Ok(is_right)
    }

    /// Rebuilds the tests with one fault in the text and runs them. Returns whether the result
    /// matches the list.
    fn rebuilt(&mut self, fault: &Fault, texts: &BTreeMap<String, String>, place: &str) -> Result<bool> {
        let path = self.places.tree.join(&fault.file);
        let text = read(Path::new(&self.places.root.join(&fault.file)))?;
        let range = edit::place(fault, &text)?;
        let with = format!("{}{}{}", &text[..range.start], fault.to, &text[range.end..]);
        write(&path, with.as_bytes())?;
        let tests: BTreeSet<Test> = fault.tests()?.into_iter().collect();
        let built = build::build(&self.places.tree, &self.places.target, &tests);
        let result = match built {
            Ok(programs) => {
                self.programs = programs;
                self.one(0, fault, place)
            }
            // A failing build counts as noticing the fault.
            Err(_) => {
                let verdict = Verdict {
                    fault: fault.clone(),
                    noticed: Some(("the build".to_owned(), Outcome::Failed)),
                    time: Duration::ZERO,
                };
                println!("[{place}] {}", verdict.line());
                let is_right = verdict.is_right();
                self.verdicts.push(verdict);
                Ok(is_right)
            }
        };
        let clean = texts.get(&fault.file).unwrap_or(&text);
        write(&path, clean.as_bytes())?;
        result
    }
}
