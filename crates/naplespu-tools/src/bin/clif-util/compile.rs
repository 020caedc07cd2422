//! `clif-util compile`: compiles CLIF to machine code and to every form in between.

use crate::{Outcome, Stop, explain, html, input, output};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::explain::Explanation;
use cranelift_naplespu::{CompileError, Isa, Pass, Stage, StageRequest, timing};
use naplespu_jit::parallel::Worker;
use naplespu_object::{CompileOrModule, NpuObjectModule, ObjectError};
use naplespu_reader::panics::caught;
use naplespu_reader::{ClifFile, Diagnostic, FunctionCase, function_text};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// Compile CLIF files
#[derive(clap::Args)]
pub struct Args {
    /// A CLIF file; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    target: input::TargetArgs,

    #[command(flatten)]
    cache: input::CacheArgs,

    /// Disassemble with offsets, bytes, relocations and traps
    #[arg(short = 'D', long)]
    disassemble: bool,

    /// Forms to print; assembly if neither this nor -D is given
    #[arg(long, value_name = "FORM", value_delimiter = ',')]
    emit: Vec<Form>,

    /// Report whether each innermost loop was vectorized, or why not, and the rule that made each
    /// instruction; or only one of both
    #[arg(long, value_name = "WHAT", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "loops,rules")]
    explain: Vec<Matter>,

    /// A pass to leave out
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    disable_pass: Vec<Left>,

    /// Print the time of each stage of the compiler, at the end
    #[arg(short = 'T', long)]
    time_passes: bool,

    /// Put each function of an object file into its own section, so that `link --gc-sections` can
    /// remove it
    #[arg(long)]
    function_sections: bool,

    /// Output file instead of standard output; `--emit=bytes` alone writes raw bytes to it
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// The kinds of explanations.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Matter {
    /// Whether and how each innermost loop was vectorized, or why not
    Loops,
    /// The rule that made each instruction, with its line in td or ISLE, or another origin
    Rules,
}

/// A printable form of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// The input CLIF.
    Clif,
    /// A stage of the compiler.
    Stage(Stage),
    /// Assembly.
    Asm,
    /// Machine code: hexadecimal words, or raw bytes with `-o`.
    Bytes,
    /// A relocatable object file of all functions.
    Obj,
    /// An HTML page with all functions in all forms.
    Html,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Clif => "clif",
            Form::Stage(stage) => stage.name(),
            Form::Asm => "asm",
            Form::Bytes => "bytes",
            Form::Obj => "obj",
            Form::Html => "html",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Form::Clif => "The input CLIF",
            Form::Stage(stage) => stage.about(),
            Form::Asm => "Assembly",
            Form::Bytes => "Machine code: hexadecimal words, or raw bytes with -o",
            Form::Obj => "A relocatable object file of all functions, alone and with -o",
            Form::Html => "An HTML page, alone: all forms side by side, with provenance and cost of each instruction",
        }
    }

    /// Returns the stage of the compiler that produces this form.
    fn stage(self) -> Option<Stage> {
        match self {
            Form::Stage(stage) => Some(stage),
            Form::Clif | Form::Asm | Form::Bytes | Form::Obj | Form::Html => None,
        }
    }
}

impl ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Self] {
        // The list comes from the compiler's stages, so a new stage needs no change here.
        static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
            let stages = Stage::ALL.iter().copied().map(Form::Stage);
            [Form::Clif]
                .into_iter()
                .chain(stages)
                .chain([Form::Asm, Form::Bytes, Form::Obj, Form::Html])
                .collect()
        });
        &FORMS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.about()))
    }
}

/// A pass that can be left out.
#[derive(Clone, Copy)]
pub struct Left(pub Pass);

impl ValueEnum for Left {
    fn value_variants<'a>() -> &'a [Self] {
        static PASSES: LazyLock<Vec<Left>> = LazyLock::new(|| Pass::ALL.iter().copied().map(Left).collect());
        &PASSES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Outcome {
    let mut forms = args.emit.clone();
    forms.sort();
    forms.dedup();
    let others = args.disassemble || !args.explain.is_empty();
    if forms.is_empty() && !others {
        forms.push(Form::Asm);
    }
    let shown = Shown {
        raw: args.output.is_some() && forms == [Form::Bytes] && !others,
        disassembly: args.disassemble,
        loops: args.explain.contains(&Matter::Loops),
        rules: args.explain.contains(&Matter::Rules),
        forms,
    };
    let input::Loaded { file, config, isa } = input::load(&args.file, &args.target.settings())?;
    let isa = args
        .disable_pass
        .iter()
        .fold(args.cache.with_cache(&isa)?, |isa, &Left(pass)| isa.without_pass(pass));
    let alone = shown.forms.iter().find(|form| matches!(form, Form::Obj | Form::Html));
    if let Some(form) = alone {
        if shown.forms.len() > 1 || others {
            let name = form.name();
            return Err(Stop::Usage(format!(
                "--emit={name} writes a separate file and excludes all other output"
            )));
        }
        return match form {
            Form::Html => html::write(&file, &config, isa, args.output.as_deref()),
            _ => object(args, &file, isa),
        };
    }
    let mut out = Vec::new();
    timing::set_enabled(args.time_passes);
    let functions = input::inlined(&file, &isa, |case| case.func.clone())?;
    let compiled = input::compile_all(&file, &functions, |worker, _, func| compile(&isa, worker, func, &shown))?;
    if args.explain == [Matter::Loops] {
        if !isa.runs(Pass::Vectorize) {
            output::report("note: no loop is reported: the pass `vectorize` does not run; it needs opt_level=speed\n");
        } else if !shown.has_others() && compiled.iter().all(|(text, _)| text.is_empty()) {
            output::report("note: no function has a loop\n");
        }
    }
    for (case, (bytes, unresolved)) in file.functions.iter().zip(compiled) {
        if unresolved > 0 && shown.forms.contains(&Form::Bytes) {
            output::report(&format!(
                "warning: the bytes of {} have {unresolved} references that are not resolved; -D shows them\n",
                case.name
            ));
        }
        if !shown.raw && file.functions.len() > 1 {
            let gap = if out.is_empty() { "" } else { "\n" };
            out.extend_from_slice(format!("{gap};; function {}\n", case.name).as_bytes());
        }
        out.extend_from_slice(&bytes);
    }
    output::write(args.output.as_deref(), &out)?;
    if args.time_passes {
        output::print(timing::take().to_string().as_bytes())?;
    }
    Ok(())
}

/// Compiles all functions to one object file.
fn object(args: &Args, file: &ClifFile, isa: Isa) -> Outcome {
    let fault = |error: ObjectError| Stop::Fault(error.to_string());
    let functions = input::inlined(file, &isa, FunctionCase::with_debug_info)?;
    let mut module = NpuObjectModule::new(Arc::new(isa)).map_err(fault)?;
    module.set_function_sections(args.function_sections);
    module.set_source_file(&file.source.name);
    let mut faults = Vec::new();
    for (case, function) in file.functions.iter().zip(&functions) {
        let line = u32::try_from(case.line).ok();
        match caught(|| module.define_clif_at(function, line)) {
            Ok(Ok(())) => {}
            Ok(Err(CompileOrModule::Compile(error))) => faults.extend(self::faults(file, case, &error)),
            Ok(Err(CompileOrModule::Module(error))) => {
                faults.push(input::at_function(
                    file,
                    case,
                    "the function is not in the object",
                    error.to_string(),
                ));
            }
            Err(panic) => faults.push(input::panicked(file, case, "the compiler panicked", &panic)),
        }
    }
    input::report(file, &faults)?;
    output::write_file(args.output.as_deref(), &module.emit().map_err(fault)?)
}

/// The parts to print of each function.
struct Shown {
    forms: Vec<Form>,
    disassembly: bool,
    /// Explanations of loops.
    loops: bool,
    /// Explanations of instructions.
    rules: bool,
    /// Raw bytes, and nothing else.
    raw: bool,
}

impl Shown {
    /// Returns whether anything is shown besides the loops.
    fn has_others(&self) -> bool {
        self.disassembly || self.rules || !self.forms.is_empty()
    }
}

/// Returns one function in the requested forms, in pipeline order, and the number of unresolved
/// references in its bytes.
fn compile(isa: &Isa, worker: &mut Worker, func: &Function, shown: &Shown) -> Result<(Vec<u8>, usize), CompileError> {
    let request: StageRequest = shown.forms.iter().filter_map(|form| form.stage()).collect();
    let Worker { compiler, ctx } = worker;
    ctx.clear();
    ctx.func = func.clone();
    let ctrl = &mut ControlPlane::default();
    let (code, explanation) = if shown.rules {
        compiler.compile_explained(isa, ctx, ctrl, request)?
    } else {
        let code = compiler.compile_with_stages(isa, ctx, ctrl, request)?;
        (code, Explanation::default())
    };
    let unresolved = code.relocs.len();
    if shown.raw {
        return Ok((code.bytes, unresolved));
    }
    let params = Some(&ctx.func.params);
    let mut text = String::new();
    // With rules, a function without loops has no report on loops.
    let loops = shown.loops && !(shown.rules && code.loops.is_empty());
    let others = [shown.disassembly, loops, shown.rules];
    let several = shown.forms.len() + others.iter().filter(|&&is_shown| is_shown).count() > 1;
    if loops {
        let lines: String = code.loops.iter().map(|remark| format!("{remark}\n")).collect();
        section(&mut text, several, "loops", &lines);
    }
    if shown.rules {
        section(
            &mut text,
            several,
            "rules",
            &explain::rules(&code, &explanation, &ctx.func),
        );
    }
    for &form in &shown.forms {
        let part = match (form, form.stage()) {
            (Form::Clif, _) => function_text(func),
            (Form::Bytes, _) => hex_words(&code.bytes),
            (_, Some(stage)) => code
                .stages
                .iter()
                .filter(|(kept, _)| *kept == stage)
                .map(|(_, text)| text.as_str())
                .collect(),
            (Form::Obj | Form::Html, None) => String::new(),
            (_, None) => code.asm(params),
        };
        section(&mut text, several, form.name(), &part);
    }
    if shown.disassembly {
        section(&mut text, several, "disassembly", &code.disassemble(params));
    }
    Ok((text.into_bytes(), unresolved))
}

fn section(text: &mut String, titled: bool, title: &str, part: &str) {
    if titled {
        // Writing to a string does not fail.
        let _ = writeln!(text, ";; {title}");
    }
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}

/// Returns little-endian words, one on a line, as `disasm` and `sim` read them.
fn hex_words(bytes: &[u8]) -> String {
    let mut text = String::new();
    for word in bytes.chunks(4) {
        let value = word
            .iter()
            .rev()
            .fold(0u32, |value, &byte| value << 8 | u32::from(byte));
        let _ = writeln!(text, "{value:08x}");
    }
    text
}

/// Returns the reasons why a function was not compiled, with their lines in the file.
pub fn faults(file: &ClifFile, case: &FunctionCase, error: &CompileError) -> Vec<Diagnostic> {
    match error {
        CompileError::Verifier(errors) => case.verifier_diagnostics(&file.source, errors),
        CompileError::Unsupported(refusals) => refusals
            .iter()
            .map(|refusal| {
                let line = match &refusal.inst {
                    Some((inst, _)) => case.line_of((*inst).into()),
                    None => case.line,
                };
                let mut fault = Diagnostic::new(
                    format!("{} is not supported on naplespu", refusal.what),
                    file.source.code_span(line),
                    format!("in {}", case.name),
                );
                if let Some(help) = &refusal.help {
                    fault = fault.note(help.clone());
                }
                fault
            })
            .collect(),
        error => vec![input::at_function(
            file,
            case,
            "the function does not compile",
            error.to_string(),
        )],
    }
}
