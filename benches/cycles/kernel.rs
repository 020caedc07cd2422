//! Measures one kernel of the corpus and checks its results.

use crate::Error;
use crate::results::Counts;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{Isa, Pass, inlining, isa};
use cranelift_reader::{Comparison, RunCommand, parse_run_command};
use naplespu_jit::Program;
use naplespu_reader::ClifFile;
use naplespu_reader::header::ConfigLine;
use npu_sim::{Report, TimingConfig};
use std::path::Path;
use std::sync::Arc;

/// A kernel, an argument, and the expected result.
pub struct Kernel {
    pub name: String,
    argument: i32,
    file: ClifFile,
    expected: Vec<DataValue>,
}

impl Kernel {
    pub fn read(path: &Path, argument: i32) -> Result<Kernel, Error> {
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

    /// Returns the costs of the kernel, and the report of one thread.
    pub fn counts(&self) -> Result<(Counts, Report), Error> {
        let one = self.timed(1)?;
        let counts = Counts {
            bytes_none: self.bytes("none")?,
            bytes_speed: self.bytes("speed")?,
            instructions: one.total.instructions,
            cycles_1: one.cycles,
            cycles_8: self.timed(8)?.cycles,
        };
        Ok((counts, one))
    }

    /// Returns the functions with calls between them inlined as the target does.
    fn functions(&self, isa: &Isa) -> Result<Vec<Function>, Error> {
        let mut functions: Vec<Function> = self.file.functions.iter().map(|case| case.func.clone()).collect();
        inlining::inline_text(isa, &mut functions)?;
        Ok(functions)
    }

    /// Returns the code size of all functions in bytes, with the machine's own floats.
    fn bytes(&self, opt_level: &str) -> Result<u64, Error> {
        let isa = target(opt_level, false)?;
        let mut sum = 0;
        for function in self.functions(&isa)? {
            let mut ctx = Context::for_function(function);
            let code = isa.compile(&mut ctx, &mut ControlPlane::default())?;
            sum += code.bytes.len() as u64;
        }
        Ok(sum)
    }

    /// Runs a timed call on `threads` threads and checks the results.
    fn timed(&self, threads: usize) -> Result<Report, Error> {
        let mut expected = self.expected.clone();
        if self.is_strict() {
            let (results, _) = self.run("speed", true, threads, None)?;
            check(&results, &expected)?;
            let (results, _) = self.run("none", false, 1, None)?;
            expected = results.into_iter().next().ok_or("no result")?;
        }
        let (results, report) = self.run("speed", false, threads, Some(TimingConfig::default()))?;
        check(&results, &expected)?;
        Ok(report.ok_or("no report")?)
    }

    /// Returns whether the run lines assume IEEE 754 floats.
    fn is_strict(&self) -> bool {
        let mut options = self.file.header.config.iter().flat_map(|line| match line {
            ConfigLine::Set(words) => words,
            ConfigLine::Target { options, .. } => options,
        });
        options.any(|word| word.text == "strict_float=true")
    }

    /// Returns the results of each thread, and the report if the call was timed.
    fn run(
        &self,
        opt_level: &str,
        strict_float: bool,
        threads: usize,
        timing: Option<TimingConfig>,
    ) -> Result<(Vec<Vec<DataValue>>, Option<Report>), Error> {
        let isa = target(opt_level, strict_float)?;
        let functions = self.functions(&isa)?;
        let mut program = Program::new(isa);
        for function in &functions {
            program.define(function)?;
        }
        program.set_timing(timing);
        let results = program.call_threads(&self.name, &[DataValue::I32(self.argument)], threads)?;
        Ok((results, program.timing_report()))
    }
}

/// Checks that all threads have the expected results.
fn check(results: &[Vec<DataValue>], expected: &[DataValue]) -> Result<(), Error> {
    match results.iter().find(|values| *values != expected) {
        Some(wrong) => Err(format!("gives {wrong:?}, not {expected:?}").into()),
        None => Ok(()),
    }
}

fn target(opt_level: &str, strict_float: bool) -> Result<Arc<Isa>, Error> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level)?;
    let mut builder = isa::lookup_by_name("naplespu")?;
    builder.set("strict_float", if strict_float { "true" } else { "false" })?;
    let isa = builder.finish(Flags::new(flags))?;
    Ok(match left_out()? {
        Some(pass) => Arc::new(isa.without_pass(pass)),
        None => isa,
    })
}

/// Returns the pass after `--without`.
pub fn left_out() -> Result<Option<Pass>, Error> {
    let mut args = std::env::args().skip_while(|argument| argument != "--without").skip(1);
    Ok(args.next().map(|name| name.parse()).transpose()?)
}

/// Returns the name of the kernel in a file.
pub fn kernel_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
