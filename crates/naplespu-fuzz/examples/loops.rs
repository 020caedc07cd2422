//! Tests random loops for some time: `loops [SECONDS] [FIRST SEED]`.
//!
//! Prints the rate of files per second, the share of them that each pass changes, and each failing
//! seed with its shrunk function. `loops show SEED` prints the case of a seed and the compiler's
//! remarks about it.

use cranelift_naplespu::remarks::LoopOutcome;
use naplespu_fuzz::counted;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The effects of the passes are sampled once per this many files.
const SAMPLE: u64 = 8;

/// Counts of the passes' effects.
#[derive(Default)]
struct Shares {
    files: u32,
    vectorised: u32,
    checked: u32,
    versioned: u32,
    unrolled: u32,
    reasons: BTreeMap<String, u32>,
}

impl Shares {
    fn add(&mut self, seed: u64, compilers: &[counted::Compiler]) -> Result<(), String> {
        let case = counted::case(&counted::bytes(seed));
        let speed = compilers.iter().find(|one| one.name.contains("opt_level=speed"));
        let Some(speed) = speed else { return Ok(()) };
        let reached = counted::reached(&case, &speed.isa)?;
        self.files += 1;
        self.versioned += u32::from(reached.versioned);
        self.unrolled += u32::from(reached.unrolled);
        let (mut vectorised, mut checked) = (false, false);
        for remark in &reached.loops {
            match &remark.outcome {
                LoopOutcome::Vectorised(how) => {
                    vectorised = true;
                    checked |= how.alignment_check || how.overlap_checks > 0;
                }
                LoopOutcome::Scalar(reason) => {
                    let text = reason.to_string();
                    let short: Vec<&str> = text
                        .split_whitespace()
                        .filter(|word| !word.contains(char::is_numeric))
                        .collect();
                    *self.reasons.entry(short.join(" ")).or_default() += 1;
                }
                _ => {}
            }
        }
        self.vectorised += u32::from(vectorised);
        self.checked += u32::from(checked);
        Ok(())
    }

    fn print(&self) {
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(self.files.max(1));
        println!(
            "vectorised {:.1} % of files (with checks {:.1} %), versioned {:.1} %, unrolled {:.1} %",
            share(self.vectorised),
            share(self.checked),
            share(self.versioned),
            share(self.unrolled)
        );
    }
}

fn show(seed: u64) -> Result<(), String> {
    let case = counted::case(&counted::bytes(seed));
    println!("{}", case.text);
    for call in &case.calls {
        println!("; {:?} memory {} at {:#x}", call.args, call.fill, call.base);
    }
    for compiler in counted::compilers()?.iter().take(2) {
        let reached = counted::reached(&case, &compiler.isa)?;
        println!(
            "{}: versioned {}, unrolled {}",
            compiler.name, reached.versioned, reached.unrolled
        );
        for remark in &reached.loops {
            println!("    {remark}");
        }
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        args.get(at).map_or(Ok(default), |arg| {
            arg.parse().map_err(|error| format!("{arg}: {error}"))
        })
    };
    if args.first().is_some_and(|arg| arg == "show") {
        return show(number(1, 0)?);
    }
    let (seconds, first) = (number(0, 60)?, number(1, 1_000_000)?);
    let compilers = counted::compilers()?;
    let start = Instant::now();
    let (mut seed, mut failures) = (first, 0);
    let mut seen = counted::Seen::default();
    let mut shares = Shares::default();
    while start.elapsed() < Duration::from_secs(seconds) {
        match counted::run(&counted::bytes(seed), &compilers, seed) {
            Ok(more) => seen.add(more),
            Err(report) => {
                failures += 1;
                println!("seed {seed} after {:.1?}: {report}\n", start.elapsed());
            }
        }
        if seed.is_multiple_of(SAMPLE) {
            // A failure to compile was reported above.
            let _ = shares.add(seed, &compilers);
        }
        seed += 1;
    }
    let files = seed - first;
    println!(
        "{files} files, {:.1} a second, {failures} failures, {seen:?}",
        files as f64 / start.elapsed().as_secs_f64()
    );
    shares.print();
    let mut reasons: Vec<_> = shares.reasons.into_iter().collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.1));
    for (reason, count) in reasons.iter().take(12) {
        println!("    {count} loops not vectorised: {reason}");
    }
    Ok(())
}
