//! What the kernels in `filetests/corpus/` cost on the machine: cycles of the timing model, beside those of the LLVM compiler for
//! NaplesPU on the hardware (`benches/data/llvm-cycles.tsv`).
//!
//! `cargo bench --bench cycles` prints a line for each kernel and number of threads, and the geometric means. Every result is
//! compared with that of the kernel's run line, on every thread. The run lines of kernels on floats are those of IEEE 754: these kernels
//! are also run so, and what is measured, on the machine's own floats, has to give what unoptimized code gives. A kernel that is refused, ends otherwise than by returning, or
//! gives another result is named, and the bench fails.
//!
//! `-- --check` also compares code size, executed instructions and cycles with `benches/results/corpus.tsv` and fails if one
//! of them is more than 2 % above it in sum; `-- --update` writes that file. None of these counts depends on the machine that
//! the bench runs on.
//!
//! `-- --pictures` draws `docs/pictures/`: cycles by cause, and growth from `benches/results/growth.tsv`.
//!
//! `-- --without PASS` leaves out a pass of the compiler: what it is worth. `-- --folder FOLDER` measures the kernels of another folder
//! of the repository, of which LLVM has no figures; it goes with none of the three above.
//!
//! # What the two figures contain
//!
//! - LLVM's are of the whole program: about 30 cycles of start-up code are in them, and the end of each thread. Ours go from the
//!   entry of the kernel to its return. Both start with cold caches and no extra memory delay.
//! - LLVM's code was made from C by clang 13 at -O3, which unrolls loops. The CLIF is what clang 19 at -O2, with unrolling off,
//!   made of the same C. So part of a ratio is the input.
//! - With eight threads each runs the whole kernel on a stack of its own, in both. LLVM's figures of some kernels then move by up
//!   to 4 percent with the placement of code.
//! - LLVM's code uses the machine's own floats, and so do these runs; but its results were compared with those of IEEE floats, and
//!   the cycles count also where they differ. `modpow` does not come to an end there (integer remainder by the float unit), `div64`
//!   and `newton_f64` do not compile: these kernels have no figures of LLVM's.

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

/// The argument of kernels of which LLVM has no figure.
const ARGUMENT: i32 = 123_456_789;

/// Numbers of threads.
const THREADS: [usize; 2] = [1, 8];

/// Argument and cycles, by kernel and number of threads.
type Figures = HashMap<(String, usize), (i32, u64)>;

/// LLVM's cycles and the argument that they are for, by kernel and number of threads.
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

/// LLVM's figures of a kernel: the argument, and cycles by number of threads.
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

/// What the kernels that ran took.
#[derive(Default)]
struct Measured {
    counts: BTreeMap<String, Counts>,
    /// With one thread.
    reports: BTreeMap<String, Report>,
}

/// The folder of the command line, if it names one.
fn folder() -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--folder");
    arguments.nth(1)
}

/// Prints the table; gives the counts of the kernels that ran, and whether every kernel did.
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
