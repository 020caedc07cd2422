//! Runs tests with an active fault.

use crate::build::{Program, Programs};
use crate::edit::VARIABLE;
use crate::list::Test;
use crate::{Error, Result};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How one run of tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All tests passed.
    Passed,
    /// A test failed, or the program crashed.
    Failed,
    /// The program exceeded the time limit.
    TimedOut,
    /// The program exceeded the memory limit.
    TooLarge,
    /// The filter matches no test.
    NoTests,
}

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limit of processor time on Linux, and of elapsed time on other hosts.
    pub time: Duration,
    /// The memory limit in bytes; it is checked only on Linux.
    pub memory: u64,
}

/// The limit of elapsed time is this multiple of the limit of processor time.
const WAITING: u32 = 20;

/// Returns the processor time of a process and of the child processes that it waited for.
fn processor_time(process: u32) -> Option<Duration> {
    const TICKS: u64 = 100;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain spaces; the numbers follow its closing parenthesis.
    let (_, numbers) = text.rsplit_once(") ")?;
    let spent = numbers.split(' ').skip(11).take(4);
    let ticks: u64 = spent.map(|number| number.parse::<u64>().unwrap_or(0)).sum();
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

/// The interval between checks of the limits.
const INTERVAL: Duration = Duration::from_millis(10);

/// Runs tests with the fault of this number; 0 means no fault. Their output goes to `log`.
///
/// # Errors
///
/// Returns an [`Error`] if the program does not start or the log cannot be written.
pub fn run(programs: &Programs, test: &Test, number: u32, limits: Limits, log: &Path) -> Result<(Outcome, Duration)> {
    let missing = || Error::Command(format!("`{test}` was not built"));
    let program = programs
        .get(&(test.package.clone(), test.target.clone()))
        .ok_or_else(missing)?;
    let fault = |error| Error::File {
        path: log.to_owned(),
        error,
    };
    let file = File::create(log).map_err(fault)?;
    let start = Instant::now();
    let mut child = command(program, test, number)
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(fault)?)
        .stderr(file)
        .spawn()
        .map_err(|error| Error::Command(format!("{}: {error}", program.path.display())))?;
    let outcome = wait(&mut child, start, limits).map_err(fault)?;
    let outcome = match outcome {
        Outcome::Passed if !ran_any(log)? => Outcome::NoTests,
        other => other,
    };
    Ok((outcome, start.elapsed()))
}

fn command(program: &Program, test: &Test, number: u32) -> Command {
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env(VARIABLE, number.to_string());
    if !test.filter.is_empty() {
        command.arg(&test.filter);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

fn wait(child: &mut Child, start: Instant, limits: Limits) -> std::io::Result<Outcome> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.success() {
                true => Outcome::Passed,
                false => Outcome::Failed,
            });
        }
        let spent = processor_time(child.id()).unwrap_or_else(|| start.elapsed());
        // A program that only waits spends no processor time.
        let outcome = if spent > limits.time || start.elapsed() > limits.time * WAITING {
            Outcome::TimedOut
        } else if resident(child.id()) > limits.memory {
            Outcome::TooLarge
        } else {
            std::thread::sleep(INTERVAL);
            continue;
        };
        end(child)?;
        return Ok(outcome);
    }
}

/// Kills the program and the processes that it started.
fn end(child: &mut Child) -> std::io::Result<()> {
    #[cfg(unix)]
    Command::new("kill")
        .args(["-KILL", "--", &format!("-{}", child.id())])
        .status()?;
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Returns the resident memory of a process in bytes; 0 if it is unknown.
fn resident(process: u32) -> u64 {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE
}

/// Returns whether any test ran, according to the log.
fn ran_any(log: &Path) -> Result<bool> {
    let text = crate::read(log)?;
    let running = |line: &str| {
        let count = line.strip_prefix("running ")?.split(' ').next()?;
        count.parse::<usize>().ok()
    };
    Ok(text.lines().filter_map(running).any(|count| count > 0))
}
