//! Measures the cycles of the kernels in `filetests/corpus/` on the timing model, and compares them
//! with those of the LLVM compiler for NaplesPU on the hardware (`benches/data/llvm-cycles.tsv`).
//!
//! `cargo bench --bench cycles` prints a line for each kernel and number of threads, and the
//! geometric means. Every result is compared with that of the kernel's run line, on every thread.
//! The run lines of float kernels assume IEEE 754 floats. These kernels run in that mode too; the
//! measured runs, with the machine's own floats, are compared with unoptimized code. The bench
//! fails, and names the kernel, if a kernel is refused, does not return, or returns another result.
//!
//! - `-- --check` also compares code size, executed instructions and cycles with
//!   `benches/results/corpus.tsv`. It fails if a sum exceeds the file by more than 2 %.
//! - `-- --update` writes that file. The counts do not depend on the host.
//! - `-- --pictures` draws `docs/pictures/`: cycles by cause, and growth from
//!   `benches/results/growth.tsv`.
//! - `-- --without PASS` disables a pass of the compiler, to measure its benefit.
//! - `-- --folder FOLDER` measures the kernels of another directory of the repository, without
//!   LLVM's figures. It cannot be combined with the first three options.
//!
//! # What the two figures contain
//!
//! - LLVM's figures cover the whole program, including about 30 cycles of start-up code and the end
//!   of each thread. Ours cover the kernel from its entry to its return. Both start with cold
//!   caches and without additional memory delay.
//! - LLVM's code was compiled from C by clang 13 at -O3, which unrolls loops. The CLIF comes from
//!   the same C, compiled by clang 19 at -O2 without unrolling. So part of a ratio is due to the
//!   input.
//! - With eight threads, each thread runs the whole kernel on its own stack, in both. Some of
//!   LLVM's figures then vary by up to 4 percent with the placement of code.
//! - LLVM's code uses the machine's own floats, and so do these runs. LLVM's results were compared
//!   with those of IEEE floats; the cycles count even if the results differ. Three kernels have no
//!   figures of LLVM's: `modpow` does not terminate there (integer remainder by the float unit),
//!   and `div64` and `newton_f64` do not compile.

mod kernel;
mod pictures;
mod results;

use kernel::{Kernel, kernel_name};
use npu_sim::Report;
use results::Counts;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;

type Error = Box<dyn std::error::Error>;

/// The argument of kernels without LLVM figures.
const ARGUMENT: i32 = 123_456_789;

/// The numbers of threads.
const THREADS: [usize; 2] = [1, 8];

/// The argument and cycles, by kernel and number of threads.
type Figures = HashMap<(String, usize), (i32, u64)>;

/// Returns LLVM's cycles and their arguments, by kernel and number of threads.
fn llvm() -> Result<Figures, Error> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/llvm-cycles.tsv");
    let table = std::fs::read_to_string(table)?;
    let mut all = HashMap::new();
    for line in table.lines().filter(|l| !l.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[kernel, arg, threads, cycles] = fields.as_slice() else {
            return Err(format!("`{line}` has not four fields").into());
        };
        all.insert((kernel.to_owned(), threads.parse()?), (arg.parse()?, cycles.parse()?));
    }
    Ok(all)
}

/// Returns LLVM's figures of a kernel: the argument, and cycles by number of threads.
fn of_llvm(figures: &mut Figures, kernel: &str) -> Result<(i32, [Option<u64>; 2]), Error> {
    let found = THREADS.map(|threads| figures.remove(&(kernel.to_owned(), threads)));
    match found {
        [Some((one, _)), Some((eight, _))] if one != eight => {
            Err(format!("LLVM's figures of {kernel} are for different arguments").into())
        }
        [one, eight] => {
            let argument = one.or(eight).map_or(ARGUMENT, |(argument, _)| argument);
            Ok((argument, [one, eight].map(|figure| figure.map(|(_, cycles)| cycles))))
        }
    }
}

/// The costs of the kernels that ran.
#[derive(Default)]
struct Measured {
    counts: BTreeMap<String, Counts>,
    /// The reports of single-threaded runs.
    reports: BTreeMap<String, Report>,
}

/// Returns the directory of the command line, if any.
fn folder() -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--folder");
    arguments.nth(1)
}

/// Prints the table. Returns the counts of the kernels that ran, and whether every kernel ran.
fn run() -> Result<(Measured, bool), Error> {
    let mut paths = Vec::new();
    let other = folder();
    let folder = other.as_deref().unwrap_or("filetests/corpus");
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut llvm = if other.is_some() { Figures::new() } else { llvm()? };
    let mut logs = [Vec::new(), Vec::new()];
    let mut all = Measured::default();
    let mut good = true;
    println!(
        "LLVM: the whole program, start-up included, from C at -O3; ours: the call, from CLIF that was not unrolled"
    );
    println!(
        "{:<20} {:>7} {:>10} {:>10} {:>6}",
        "kernel", "threads", "LLVM", "ours", "ratio"
    );
    for path in paths {
        let (argument, theirs) = of_llvm(&mut llvm, &kernel_name(&path))?;
        let kernel = Kernel::read(&path, argument)?;
        let (counts, report) = match kernel.counts() {
            Ok(both) => both,
            Err(error) => {
                good = false;
                println!("{:<20} {}", kernel.name, error.to_string().replace('\n', "; "));
                continue;
            }
        };
        let ours = [counts.cycles_1, counts.cycles_8];
        for (((threads, ours), theirs), logs) in THREADS.iter().zip(ours).zip(theirs).zip(&mut logs) {
            match theirs {
                Some(theirs) => {
                    let ratio = ours as f64 / theirs as f64;
                    println!("{:<20} {threads:>7} {theirs:>10} {ours:>10} {ratio:>6.3}", kernel.name);
                    logs.push(ratio.ln());
                }
                None => println!("{:<20} {threads:>7} {:>10} {ours:>10}", kernel.name, "-"),
            }
        }
        all.reports.insert(kernel.name.clone(), report);
        all.counts.insert(kernel.name, counts);
    }
    if let Some((kernel, threads)) = llvm.keys().next() {
        return Err(format!("there is no kernel {kernel}, of which LLVM has a figure with {threads} threads").into());
    }
    for (threads, logs) in THREADS.iter().zip(logs) {
        println!(
            "{threads} threads: geometric mean of {} ratios {:.3}",
            logs.len(),
            (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
        );
    }
    Ok((all, good))
}

fn main() -> ExitCode {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    // `cargo bench` passes this option, `cargo test` does not.
    if !flag("--bench") {
        return ExitCode::SUCCESS;
    }
    let outcome = run().and_then(|(Measured { counts, reports }, good)| {
        results::print_sums(&counts);
        let corpus = folder().is_none();
        if flag("--update") && good && corpus && kernel::left_out()?.is_none() {
            results::write(&counts)?;
        }
        if flag("--pictures") && corpus {
            pictures::write(&reports)?;
        }
        if flag("--check") && corpus {
            results::check(&counts)?;
        }
        Ok(good)
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
