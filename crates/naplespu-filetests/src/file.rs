//! Runs all subtests of one file.

use super::checks;
use super::expect;
use super::interpret;
use super::lines::{CallError, RunLines};
use super::outcome::{FileOutcome, Finding, FunctionOutcome, Verdict, add_failure, add_panic};
use super::subtest::Subtest;
use super::verify;
use cranelift_codegen::Context;
use cranelift_codegen::cfg_printer::CFGPrinter;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::{DataValue, DisplayDataValues};
use cranelift_codegen::ir::Function;
use cranelift_codegen::verifier::VerifierErrors;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_naplespu::internals::{Recorder, optimize};
use cranelift_naplespu::{CodeCache, CompileError, CompiledCode, Isa, Stage, inlining, verify_function};
use naplespu_jit::{DefineError, Program, RunError, function_name};
use naplespu_reader::config::{Config, FileConfigs, ForcedTarget, SettingError};
use naplespu_reader::diagnostic::Diagnostic;
use naplespu_reader::function_text;
use naplespu_reader::panics::{Panic, PanicIn, caught};
use naplespu_reader::parse::{ClifFile, FunctionCase};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Options of testing.
#[derive(Clone)]
pub struct Options {
    /// Replaces the `target` lines.
    pub forced: Option<ForcedTarget>,
    /// Settings `name=value` that override those of the files.
    pub settings: Vec<String>,
    /// Rewrite `precise-output` expectations instead of comparing.
    pub bless: bool,
    /// The limit of instructions for one run line, simulated or interpreted.
    pub max_steps: u64,
    /// The seed for the initial contents of memory, scratchpad and registers in `test run`.
    pub fill_seed: u64,
    /// The cache of compiled functions.
    pub cache: Option<Arc<dyn CodeCache>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            forced: None,
            settings: Vec::new(),
            bless: false,
            max_steps: 200_000_000,
            fill_seed: 1,
            cache: None,
        }
    }
}

/// Tests a file, given by its name and contents.
pub fn test(name: &str, bytes: &[u8], options: &Options) -> FileOutcome {
    let mut file = ClifFile::parse(name, bytes);
    let mut faults = std::mem::take(&mut file.faults);
    let configs = FileConfigs::read(&file.header, options.forced.as_ref(), &options.settings, &mut faults);
    let lenient = options.forced.is_some() || configs.foreign;
    let subtests = Subtest::read(&file.header, lenient, &mut faults);
    if file.header.tests.is_empty() && faults.is_empty() {
        faults.push(
            Diagnostic::whole_file("the file has no `test` line")
                .note("the first lines of a filetest say what to do, for example `test run`"),
        );
    }
    let precise = subtests.iter().filter(|s| s.is_precise()).count();
    if precise > 1 || (precise == 1 && configs.list.len() > 1 && !configs.foreign) {
        faults.push(
            Diagnostic::whole_file("more than one output for the `precise-output` expectation")
                .note("a file can hold the expectation of only one subtest with one configuration"),
        );
    }
    for word in &file.header.announced.refused {
        // After a parse error the function may exist but was not read.
        if faults.is_empty() && file.function(&word.text).is_none() {
            faults.push(Diagnostic::new(
                format!("the file has no function {}", word.text),
                word.span.clone(),
                "announced here",
            ));
        }
    }
    let lines = RunLines::collect(&file, options.forced.is_some(), &mut faults);
    if !lenient {
        faults.extend(checks::faults(&file));
    }
    if !faults.is_empty() {
        faults.sort_by_key(|d| d.span.as_ref().map_or(0, |s| s.start));
        return FileOutcome::failed(file.source, faults);
    }
    let mut test = FileTest {
        findings: vec![Finding::default(); file.functions.len()],
        file: &file,
        options,
        configs,
        invalid: None,
        lines,
        failures: Vec::new(),
        unchecked: false,
        outputs: Vec::new(),
    };
    if lenient && !file.header.features.is_empty() && options.forced.is_none() {
        test.skip_all();
    } else {
        for subtest in &subtests {
            test.run(*subtest);
        }
    }
    if !lenient {
        test.hold_to_checks(&subtests);
    }
    test.finish()
}

struct FileTest<'a> {
    file: &'a ClifFile,
    options: &'a Options,
    configs: FileConfigs,
    findings: Vec<Finding>,
    /// Whether the verifier rejects each function; set by the first subtest that needs it.
    invalid: Option<Vec<bool>>,
    lines: RunLines,
    failures: Vec<Diagnostic>,
    /// Whether a part of the file outside of functions checks nothing.
    unchecked: bool,
    /// The new expectations, if the options request rewriting: pairs of a function index and its
    /// text.
    outputs: Vec<(usize, String)>,
}

/// The reason why a function cannot be called.
#[derive(Clone)]
enum Unusable {
    Refused(String),
    Failed(String),
}

impl FileTest<'_> {
    fn run(&mut self, subtest: Subtest) {
        let foreign_precise = self.configs.foreign && subtest.is_precise();
        if subtest == Subtest::Foreign || foreign_precise || (subtest.needs_isa() && self.configs.list.is_empty()) {
            self.skip_all();
            return;
        }
        if subtest.needs_verifier() {
            self.verify_all();
        }
        let configs = if self.configs.list.is_empty() {
            // A file without configurations has no subtests that need a target.
            vec![Config::new()]
        } else {
            self.configs.list.clone()
        };
        match subtest {
            Subtest::Cat => self.print(function_text),
            Subtest::PrintCfg => self.print(|func| CFGPrinter::new(func).to_string()),
            Subtest::Interpret => self.interpret(),
            Subtest::Verifier => configs.iter().for_each(|c| self.verifier(c)),
            Subtest::Optimize { stage, precise } => {
                configs.iter().for_each(|c| self.optimize(c, stage, precise));
            }
            Subtest::Compile { .. } | Subtest::Disasm { .. } => {
                configs.iter().for_each(|c| self.compile(c, subtest));
            }
            Subtest::Run { matrix } => {
                for config in configs {
                    for config in variants(&config, matrix) {
                        self.simulate(&config);
                    }
                }
            }
            Subtest::Foreign => {}
        }
    }

    fn skip_all(&mut self) {
        for finding in &mut self.findings {
            finding.add(Verdict::Skipped, "for another machine");
        }
    }

    /// Reports functions and run lines whose outcome contradicts the header: refused or not
    /// executed without an announcement, or announced but accepted or executed.
    fn hold_to_header(&mut self) {
        let announced = &self.file.header.announced;
        for (index, case) in self.file.functions.iter().enumerate() {
            let (message, help) = match (self.findings[index].verdict(), announced.refuses(&case.name)) {
                (Some(Verdict::Refused), false) => (
                    "the function is refused",
                    format!("to expect this, add `expect refused {}` to the header", case.name),
                ),
                (Some(Verdict::Passed), true) => (
                    "the function is not refused",
                    format!("the header has `expect refused {}`", case.name),
                ),
                _ => continue,
            };
            let span = self.file.source.code_span(case.line);
            let failure = Diagnostic::new(message, span, self.findings[index].reason.clone()).note(help);
            self.findings[index].add(Verdict::Failed, message);
            self.failures.push(failure);
        }
        self.lines
            .hold_to_header(self.file, &mut self.findings, &mut self.failures);
    }

    /// Reports `test` lines, functions and directives that check nothing.
    fn hold_to_checks(&mut self, subtests: &[Subtest]) {
        for (function, failure) in checks::unchecked(self.file, subtests, &self.lines) {
            match function {
                Some(index) => self.findings[index].add(Verdict::Failed, failure.message.clone()),
                None => self.unchecked = true,
            }
            self.failures.push(failure);
        }
    }

    fn finish(mut self) -> FileOutcome {
        // The `target` lines declare a file for other machines.
        if self.options.forced.is_none() && !self.configs.foreign {
            self.hold_to_header();
        }
        let functions: Vec<FunctionOutcome> = self
            .file
            .functions
            .iter()
            .zip(&self.findings)
            .map(|(case, finding)| FunctionOutcome {
                name: case.name.clone(),
                verdict: finding.verdict().unwrap_or(Verdict::Passed),
                reason: finding.reason.clone(),
            })
            .collect();
        let mut failures = self.failures;
        failures.sort_by_key(|d| d.span.as_ref().map_or(0, |s| s.start));
        let rewritten = (!self.outputs.is_empty())
            .then(|| expect::rewrite(self.file, &self.outputs))
            .filter(|new| *new != self.file.source.text);
        FileOutcome {
            verdict: if self.unchecked {
                Verdict::Failed
            } else {
                FileOutcome::sum(&functions)
            },
            functions,
            lines: self.lines.outcomes(self.file),
            failures,
            rewritten,
            source: self.file.source.clone(),
        }
    }

    /// Returns the range at which failures of a whole function are shown.
    fn function_span(&self, index: usize) -> Range<usize> {
        let line = self.file.functions.get(index).map_or(1, |f| f.line);
        self.file.source.code_span(line)
    }

    fn fail(&mut self, index: usize, message: &str, reason: &str, setting: &str) {
        let span = self.function_span(index);
        add_failure(&mut self.failures, message, span, reason, setting);
        let first = reason.lines().next().unwrap_or_default();
        self.findings[index].add(Verdict::Failed, format!("{message}: {first}"));
    }

    fn panicked(&mut self, index: usize, message: &str, panic: &Panic, setting: &str) {
        let span = self.function_span(index);
        add_panic(&mut self.failures, message, span, (PanicIn::Target, panic), setting);
        self.findings[index].add(Verdict::Failed, format!("{message}: {panic}"));
    }

    /// Compares the text of a subtest with the expectation of the file.
    fn check(&mut self, index: usize, output: &str, precise: bool, setting: &str) {
        if precise && self.options.bless {
            self.outputs.push((index, output.to_owned()));
            self.findings[index].add(Verdict::Passed, "");
            return;
        }
        let case = &self.file.functions[index];
        let (message, result) = if precise {
            let result = expect::precise(self.file, index, output);
            ("the output differs from the expectation", result)
        } else {
            ("the output does not match", expect::filecheck(self.file, case, output))
        };
        match result {
            Ok(()) => self.findings[index].add(Verdict::Passed, ""),
            Err(why) => self.fail(index, message, &format!("\n{}", why.trim_end()), setting),
        }
    }

    /// Verifies all functions once and records the failures.
    fn verify_all(&mut self) {
        if self.invalid.is_some() {
            return;
        }
        let config = self.configs.list.first().cloned().unwrap_or_default();
        let mut invalid = Vec::new();
        for (index, case) in self.file.functions.iter().enumerate() {
            let errors = match verify(&case.func, &config) {
                Ok(Ok(errors)) => errors,
                Ok(Err(why)) => {
                    self.fail(index, "the verifier gave up", &why, &config.to_string());
                    invalid.push(true);
                    continue;
                }
                Err(panic) => {
                    self.panicked(index, "the verifier panicked", &panic, &config.to_string());
                    invalid.push(true);
                    continue;
                }
            };
            let wrong = case.verifier_diagnostics(&self.file.source, &errors);
            if let Some(first) = wrong.first() {
                self.findings[index].add(Verdict::Failed, first.message.clone());
            }
            invalid.push(!wrong.is_empty());
            self.failures.extend(wrong);
        }
        self.invalid = Some(invalid);
    }

    fn is_invalid(&self, index: usize) -> bool {
        let known = self.invalid.as_ref().and_then(|all| all.get(index));
        known.copied().unwrap_or(false)
    }

    /// Returns the functions that the verifier did not reject, or all if it did not run.
    fn valid(&self) -> Vec<usize> {
        (0..self.file.functions.len())
            .filter(|&index| !self.is_invalid(index))
            .collect()
    }

    fn print(&mut self, text: impl Fn(&Function) -> String) {
        for index in self.valid() {
            match caught(|| text(&self.file.functions[index].func)) {
                Ok(text) => self.check(index, &text, false, "any settings"),
                Err(panic) => self.panicked(index, "printing panicked", &panic, "any settings"),
            }
        }
    }

    fn verifier(&mut self, config: &Config) {
        for (index, case) in self.file.functions.iter().enumerate() {
            match verify(&case.func, config) {
                Ok(Ok(errors)) => {
                    let wrong = verify::compare(&self.file.source, case, &errors);
                    match wrong.first() {
                        None => self.findings[index].add(Verdict::Passed, ""),
                        Some(first) => {
                            self.findings[index].add(Verdict::Failed, first.message.clone());
                        }
                    }
                    for failure in wrong {
                        if !self.failures.contains(&failure) {
                            self.failures.push(failure);
                        }
                    }
                }
                Ok(Err(why)) => self.fail(index, "the verifier gave up", &why, &config.to_string()),
                Err(panic) => self.panicked(index, "the verifier panicked", &panic, &config.to_string()),
            }
        }
    }

    fn optimize(&mut self, config: &Config, stage: Option<Stage>, precise: bool) {
        let setting = config.to_string();
        for index in self.valid() {
            let func = self.file.functions[index].func.clone();
            let result = caught(|| {
                let isa = config.isa().map_err(|e| e.to_string())?;
                let mut ctx = Context::for_function(func);
                let mut stages = Recorder::new(stage.into_iter().collect());
                optimize(&mut ctx, &isa, &mut ControlPlane::default(), &mut stages).map_err(|e| e.to_string())?;
                verify_function(&ctx.func, isa.flags())
                    .map_err(|e| format!("the result is invalid:\n{e}\n{}", ctx.func.display()))?;
                let (last, stages) = (ctx.func.display().to_string(), stages.texts);
                Ok::<_, String>(stages.into_iter().next().map_or(last, |(_, text)| text))
            });
            match result {
                Ok(Ok(text)) => self.check(index, &text, precise, &setting),
                Ok(Err(why)) => self.fail(index, "optimization failed", &why, &setting),
                Err(panic) => self.panicked(index, "the optimizer panicked", &panic, &setting),
            }
        }
    }

    fn compile(&mut self, config: &Config, subtest: Subtest) {
        let setting = config.to_string();
        let isa = match self.isa(config) {
            Ok(isa) => isa,
            Err(why) => return self.fail_all(&why.to_string(), &setting),
        };
        let (precise, expect_fail) = match subtest {
            Subtest::Compile { precise, expect_fail } => (precise, expect_fail),
            _ => (subtest.is_precise(), false),
        };
        let disassemble = matches!(subtest, Subtest::Disasm { .. });
        for index in self.valid() {
            let case = &self.file.functions[index];
            let result = compile(&isa, &case.func, disassemble);
            match result {
                Err(panic) => self.panicked(index, "the compiler panicked", &panic, &setting),
                Ok(Ok(_)) if expect_fail => {
                    let why = "expected to fail, but it compiles";
                    self.fail(index, "no failure", why, &setting);
                }
                // The directives in files for other targets describe the code of other machines.
                Ok(Ok(_)) if self.configs.foreign => self.findings[index].add(Verdict::Passed, ""),
                Ok(Ok(text)) => self.check(index, &text, precise, &setting),
                Ok(Err(error)) if expect_fail => {
                    if self.configs.foreign || !expect::has_directives(self.file, case) {
                        self.findings[index].add(Verdict::Passed, "");
                    } else {
                        self.check(index, &error.to_string(), precise, &setting);
                    }
                }
                Ok(Err(error)) if error.is_refusal() => {
                    self.findings[index].add(Verdict::Refused, refusal(&error));
                }
                Ok(Err(error)) => {
                    let why = error.to_string();
                    self.fail(index, "the function does not compile", &why, &setting);
                }
            }
        }
    }

    /// Returns the target of a configuration. If the options have a cache, the target uses it.
    fn isa(&self, config: &Config) -> Result<Arc<Isa>, SettingError> {
        let isa = config.isa()?;
        Ok(match &self.options.cache {
            Some(cache) => Arc::new(isa.with_cache(cache.clone())),
            None => isa,
        })
    }

    fn fail_all(&mut self, why: &str, setting: &str) {
        for index in 0..self.findings.len() {
            self.fail(index, "no compiler for this configuration", why, setting);
        }
    }

    /// Runs `test run` with one configuration.
    fn simulate(&mut self, config: &Config) {
        let setting = config.to_string();
        let isa = match self.isa(config) {
            Ok(isa) => isa,
            Err(why) => return self.fail_all(&why.to_string(), &setting),
        };
        let mut functions: Vec<Function> = self.file.functions.iter().map(|case| case.func.clone()).collect();
        if let Err(error) = inlining::inline_text(&isa, &mut functions) {
            return self.fail_all(&error.to_string(), &setting);
        }
        let mut program = Program::with_config(isa, npu_sim::Config::testing(self.options.fill_seed));
        program.set_step_limit(self.options.max_steps);
        let mut unusable: HashMap<String, Unusable> = HashMap::new();
        for (index, (case, function)) in self.file.functions.iter().zip(&functions).enumerate() {
            if self.is_invalid(index) {
                let why = Unusable::Failed("it is not valid CLIF".to_owned());
                unusable.insert(case.name.clone(), why);
                continue;
            }
            let result = caught(|| match program.define(function) {
                Ok(()) => None,
                Err(DefineError::Compile(error)) if error.is_refusal() => Some(Unusable::Refused(refusal(&error))),
                Err(error) => Some(Unusable::Failed(error.to_string())),
            });
            let why = match result {
                Ok(None) => continue,
                Ok(Some(Unusable::Refused(why))) => Unusable::Refused(why),
                Ok(Some(Unusable::Failed(why))) => {
                    self.fail(index, "the function does not compile", &why, &setting);
                    Unusable::Failed(why)
                }
                Err(panic) => {
                    self.panicked(index, "the compiler panicked", &panic, &setting);
                    Unusable::Failed(format!("panic: {panic}"))
                }
            };
            unusable.insert(case.name.clone(), why);
        }
        spread(self.file, &mut unusable);
        for (finding, case) in self.findings.iter_mut().zip(&self.file.functions) {
            match unusable.get(&case.name) {
                None => finding.add(Verdict::Passed, ""),
                Some(Unusable::Refused(why)) => finding.add(Verdict::Refused, why.clone()),
                Some(Unusable::Failed(why)) => finding.add(Verdict::Failed, why.clone()),
            }
        }
        let (file, findings, failures) = (self.file, &mut self.findings, &mut self.failures);
        self.lines.execute(file, &setting, findings, failures, |case, args| {
            match unusable.get(&case.name) {
                Some(Unusable::Refused(why)) => return Err(CallError::Refused(why.clone())),
                Some(Unusable::Failed(why)) => return Err(CallError::Told(why.clone())),
                None => {}
            }
            call_simulated(&mut program, case, args)
        });
    }

    fn interpret(&mut self) {
        let mut store = FunctionStore::default();
        for case in &self.file.functions {
            store.add(case.name.clone(), &case.func);
        }
        let valid = self.valid();
        for &index in &valid {
            self.findings[index].add(Verdict::Passed, "");
        }
        let invalid: Vec<&str> = (0..self.file.functions.len())
            .filter(|index| !valid.contains(index))
            .map(|index| self.file.functions[index].name.as_str())
            .collect();
        let (file, findings, failures) = (self.file, &mut self.findings, &mut self.failures);
        let max_steps = self.options.max_steps;
        self.lines
            .execute(file, "the interpreter", findings, failures, |case, args| {
                if invalid.contains(&case.name.as_str()) {
                    return Err(CallError::Told("it is not valid CLIF".to_owned()));
                }
                interpret::call(&store, &case.name, args, max_steps).map_err(CallError::from)
            });
    }
}

/// Returns the errors of the verifier with the flags of a configuration, or why the verifier could
/// not run. The outer error is a panic.
fn verify(func: &Function, config: &Config) -> Result<Result<VerifierErrors, String>, Panic> {
    caught(|| {
        let flags = config.flags().map_err(|e| e.to_string())?;
        Ok(match verify_function(func, &flags) {
            Ok(()) => VerifierErrors::new(),
            Err(errors) => errors,
        })
    })
}

/// Returns the text of a compiled function. The outer error is a panic.
fn compile(isa: &Isa, func: &Function, disassemble: bool) -> Result<Result<String, CompileError>, Panic> {
    caught(|| {
        let mut ctx = Context::for_function(func.clone());
        let code: CompiledCode = isa.compile(&mut ctx, &mut ControlPlane::default())?;
        let params = Some(&ctx.func.params);
        Ok(if disassemble {
            code.disassemble(params)
        } else {
            code.asm(params)
        })
    })
}

/// Calls a function of a program. Refusals and failures are different errors.
///
/// # Errors
///
/// See [`CallError`].
pub fn call_simulated(
    program: &mut Program,
    case: &FunctionCase,
    args: &[DataValue],
) -> Result<Vec<DataValue>, CallError> {
    let name = function_name(&case.func.name);
    classified(|| program.call(&name, args))
}

/// Calls a function of a program on several threads, which must all return the same results.
///
/// # Errors
///
/// See [`CallError`].
pub fn call_simulated_threads(
    program: &mut Program,
    case: &FunctionCase,
    args: &[DataValue],
    threads: &[usize],
) -> Result<Vec<DataValue>, CallError> {
    let name = function_name(&case.func.name);
    let all = classified(|| program.call_on(&name, args, threads)).map_err(|error| match error {
        CallError::Trap { code, message } => CallError::Trap {
            code,
            message: message + &calls_of(program, threads),
        },
        CallError::Failed(message) => CallError::Failed(message + &calls_of(program, threads)),
        error => error,
    })?;
    let Some(first) = all.first() else {
        return Ok(Vec::new());
    };
    for (number, values) in threads.iter().zip(&all) {
        if !values.iter().zip(first).all(|(a, b)| a.bitwise_eq(b)) {
            let [other, first] = [values, first].map(|list| DisplayDataValues(list));
            return Err(CallError::Failed(format!(
                "thread {number} returned {other}, but thread {} returned {first}",
                threads[0]
            )));
        }
    }
    Ok(first.clone())
}

/// Returns the back traces of threads that did not return, without those that contain only the
/// host's call.
fn calls_of(program: &Program, threads: &[usize]) -> String {
    let mut text = String::new();
    for &thread in threads {
        let frames = program.back_trace(thread);
        if frames.len() < 2 {
            continue;
        }
        if threads.len() > 1 {
            text += &format!("\nthread {thread}:");
        }
        for (number, frame) in frames.iter().take(MOST_FRAMES).enumerate() {
            text += &format!("\n#{number} {frame}");
        }
        if frames.len() > MOST_FRAMES {
            text += "\n... and more";
        }
    }
    text
}

/// The limit of calls in a back trace, because infinite recursion has too many.
const MOST_FRAMES: usize = 16;

/// Executes a call. Refusals, traps and failures are different errors.
fn classified<T>(call: impl FnOnce() -> Result<T, RunError>) -> Result<T, CallError> {
    match caught(call) {
        Ok(Ok(values)) => Ok(values),
        Ok(Err(error @ (RunError::Refused { .. } | RunError::Undefined { .. }))) => {
            let text = error.to_string();
            Err(CallError::Refused(text.lines().next().unwrap_or_default().to_owned()))
        }
        Ok(Err(error)) => {
            let message = error.to_string();
            let code = match error {
                RunError::Trap(report) => report.code,
                _ => None,
            };
            Err(match code {
                Some(code) => CallError::Trap {
                    code: code.to_string(),
                    message,
                },
                None => CallError::Failed(message),
            })
        }
        Err(panic) => Err(CallError::Panicked(PanicIn::Target, panic)),
    }
}

/// Returns a refusal in one line: its first reason, and the number of reasons.
pub fn refusal(error: &CompileError) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    match error {
        CompileError::Unsupported(all) if all.len() > 1 => format!("{first} (and {} more)", all.len() - 1),
        _ => first.to_owned(),
    }
}

/// Marks the direct and indirect callers of unusable functions as unusable.
fn spread(file: &ClifFile, unusable: &mut HashMap<String, Unusable>) {
    let calls: Vec<(&str, Vec<String>)> = file
        .functions
        .iter()
        .map(|case| {
            let externals = case.func.dfg.ext_funcs.values();
            let names = externals.map(|f| f.name.display(Some(&case.func.params)).to_string());
            (case.name.as_str(), names.collect())
        })
        .collect();
    loop {
        let before = unusable.len();
        for (name, callees) in &calls {
            if unusable.contains_key(*name) {
                continue;
            }
            let bad = callees.iter().find_map(|callee| Some((callee, unusable.get(callee)?)));
            if let Some((callee, why)) = bad {
                let why = match why {
                    Unusable::Refused(why) => Unusable::Refused(format!("calls {callee}: {why}")),
                    Unusable::Failed(why) => Unusable::Failed(format!("calls {callee}: {why}")),
                };
                unusable.insert((*name).to_owned(), why);
            }
        }
        if unusable.len() == before {
            return;
        }
    }
}

/// Returns the configurations of `test run`, with the register allocator's checker on.
///
/// With `matrix`, they cover both optimization levels and both allocators, unless the file sets
/// them.
fn variants(config: &Config, matrix: bool) -> Vec<Config> {
    let choices: [(&str, &[&str]); 3] = [
        ("opt_level", &["none", "speed"]),
        ("regalloc_algorithm", &["backtracking", "single_pass"]),
        ("regalloc_checker", &["true"]),
    ];
    let mut list = vec![config.clone()];
    for (name, values) in choices {
        if config.mentions(name) || (!matrix && values.len() > 1) {
            continue;
        }
        list = list
            .iter()
            .flat_map(|config| {
                values.iter().map(|value| {
                    let mut config = config.clone();
                    // These are settings of Cranelift. If one is removed, the test runs without it.
                    let _ = config.set(&format!("{name}={value}"));
                    config
                })
            })
            .collect();
    }
    list
}
