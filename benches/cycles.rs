//! What the kernels in `filetests/corpus/` cost on the machine: cycles of the timing model, beside those of the LLVM compiler for
//! NaplesPU on the hardware (`benches/data/llvm-cycles.tsv`).
//!
//! `cargo bench --bench cycles` prints a line for each kernel and number of threads, and the geometric means. Every result is
//! compared with that of the kernel's run line, on every thread. The run lines of kernels on floats are those of IEEE 754: these kernels
//! are also run so, and what is measured, on the machine's own floats, has to give what unoptimized code gives. A kernel that is refused, ends otherwise than by returning, or
//! gives another result is named, and the bench fails.
//!
//! # What the two figures contain
//!
//! - LLVM's are of the whole program: about 30 cycles of start-up code are in them, and the end of each thread. Ours go from the
//!   entry of the kernel to its return. Both start with cold caches and no extra memory delay.
//! - LLVM's code was made from C by clang 13 at -O3, which unrolls loops. The CLIF is what clang 19 at -O2, told not to unroll,
//!   made of the same C. So part of a ratio is the input.
//! - With eight threads each runs the whole kernel on a stack of its own, in both. LLVM's figures of some kernels then move by up
//!   to 4 percent with the placement of code.
//! - LLVM's code uses the machine's own floats, and so do these runs; but its results were compared with those of IEEE floats, and
//!   the cycles count also where they differ. `modpow` does not come to an end there (integer remainder by the float unit), `div64`
//!   and `newton_f64` do not compile: these kernels have no figures of LLVM's.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::isa;
use cranelift_reader::{Comparison, RunCommand, parse_run_command};
use naplespu_jit::Program;
use naplespu_reader::ClifFile;
use naplespu_reader::header::ConfigLine;
use npu_sim::{Report, TimingConfig};
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

type Error = Box<dyn std::error::Error>;

/// The argument of kernels of which LLVM has no figure.
const ARGUMENT: i32 = 123_456_789;

/// Numbers of threads.
const THREADS: [usize; 2] = [1, 8];

/// A kernel, an argument, and what it gives for that.
struct Kernel {
    name: String,
    argument: i32,
    file: ClifFile,
    expected: Vec<DataValue>,
}

impl Kernel {
    fn read(path: &Path, argument: i32) -> Result<Kernel, Error> {
        let name = kernel_name(path);
        let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(path)?);
        if !file.faults.is_empty() {
            return Err(file.source.render(&file.faults).into());
        }
        let entry = file
            .function(&format!("%{name}"))
            .ok_or("no function of the file's name")?;
        let comments = file.functions.iter().flat_map(|case| &case.comments);
        for comment in comments.chain(&file.preamble) {
            let run = comment.text.trim_start_matches([';', ' ']);
            if !run.starts_with(&format!("run: %{name}(")) {
                continue;
            }
            if let Some(RunCommand::Run(call, Comparison::Equals, expected)) =
                parse_run_command(run, &entry.func.signature)?
                && call.args == [DataValue::I32(argument)]
            {
                return Ok(Kernel {
                    name,
                    argument,
                    file,
                    expected,
                });
            }
        }
        Err(format!("{name} has no run line for {argument}").into())
    }

    /// Cycles of a call on `threads` threads.
    fn cycles(&self, threads: usize) -> Result<u64, Error> {
        let mut expected = self.expected.clone();
        if self.is_strict() {
            let (results, _) = self.run("speed", true, threads, None)?;
            check(&results, &expected)?;
            let (results, _) = self.run("none", false, 1, None)?;
            expected = results.into_iter().next().ok_or("no result")?;
        }
        let (results, report) = self.run("speed", false, threads, Some(TimingConfig::default()))?;
        check(&results, &expected)?;
        Ok(report.ok_or("no report")?.cycles)
    }

    /// Whether the run lines are for floats of IEEE 754.
    fn is_strict(&self) -> bool {
        let mut options = self.file.header.config.iter().flat_map(|line| match line {
            ConfigLine::Set(words) => words,
            ConfigLine::Target { options, .. } => options,
        });
        options.any(|word| word.text == "strict_float=true")
    }

    /// The results of each thread, and what they took if they were timed.
    fn run(
        &self,
        opt_level: &str,
        strict_float: bool,
        threads: usize,
        timing: Option<TimingConfig>,
    ) -> Result<(Vec<Vec<DataValue>>, Option<Report>), Error> {
        let mut flags = settings::builder();
        flags.set("opt_level", opt_level)?;
        let mut builder = isa::lookup_by_name("naplespu")?;
        builder.set("strict_float", if strict_float { "true" } else { "false" })?;
        let mut program = Program::new(builder.finish(Flags::new(flags))?);
        for case in &self.file.functions {
            program.define(&case.func)?;
        }
        program.set_timing(timing);
        let results = program.call_threads(&self.name, &[DataValue::I32(self.argument)], threads)?;
        Ok((results, program.timing_report()))
    }
}

/// Whether all threads have the same results.
fn check(results: &[Vec<DataValue>], expected: &[DataValue]) -> Result<(), Error> {
    match results.iter().find(|values| *values != expected) {
        Some(wrong) => Err(format!("gives {wrong:?}, not {expected:?}").into()),
        None => Ok(()),
    }
}

/// The name of the kernel in a file.
fn kernel_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

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

/// Prints the table; gives whether every kernel ran.
fn run() -> Result<bool, Error> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/corpus"))? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut llvm = llvm()?;
    let mut logs: HashMap<usize, Vec<f64>> = HashMap::new();
    let mut good = true;
    println!(
        "LLVM: the whole program, start-up included, from C at -O3; ours: the call, from CLIF that was not unrolled"
    );
    println!(
        "{:<20} {:>7} {:>10} {:>10} {:>6}",
        "kernel", "threads", "LLVM", "ours", "ratio"
    );
    for path in paths {
        for threads in THREADS {
            let theirs = llvm.remove(&(kernel_name(&path), threads));
            let (argument, theirs) = match theirs {
                Some((argument, cycles)) => (argument, Some(cycles)),
                None => (ARGUMENT, None),
            };
            let kernel = Kernel::read(&path, argument)?;
            let shown = theirs.map_or_else(|| "-".to_owned(), |cycles| cycles.to_string());
            let line = format!("{:<20} {threads:>7} {shown:>10}", kernel.name);
            match kernel.cycles(threads) {
                Ok(ours) => match theirs {
                    Some(theirs) => {
                        let ratio = ours as f64 / theirs as f64;
                        println!("{line} {ours:>10} {ratio:>6.3}");
                        logs.entry(threads).or_default().push(ratio.ln());
                    }
                    None => println!("{line} {ours:>10}"),
                },
                Err(error) => {
                    good = false;
                    println!("{line} {}", error.to_string().replace('\n', "; "));
                }
            }
        }
    }
    if let Some((kernel, threads)) = llvm.keys().next() {
        return Err(format!("there is no kernel {kernel}, of which LLVM has a figure with {threads} threads").into());
    }
    for threads in THREADS {
        let logs = logs.remove(&threads).unwrap_or_default();
        println!(
            "{threads} threads: geometric mean of {} ratios {:.3}",
            logs.len(),
            (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
        );
    }
    Ok(good)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
