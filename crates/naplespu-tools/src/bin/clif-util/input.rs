//! Input files and settings of the command line.

use crate::progress::Progress;
use crate::{Stop, fault};
use cranelift_codegen::ir::Function;
use cranelift_naplespu::isa::{Isa, Triple};
use cranelift_naplespu::{CodeCache, CompileError, inlining};
use naplespu_cache::Cache;
use naplespu_jit::parallel::{self, Worker};
use naplespu_reader::config::{FileConfigs, TARGET};
use naplespu_reader::panics::{Panic, PanicIn, caught};
use naplespu_reader::{ClifFile, Config, Diagnostic, ForcedTarget, FunctionCase};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

/// Settings of the compiler.
#[derive(clap::Args)]
pub struct TargetArgs {
    /// The target.
    #[arg(long, default_value = TARGET, value_name = "TRIPLE", value_parser = parse_triple)]
    target: Triple,

    #[command(flatten)]
    settings: SettingArgs,
}

impl TargetArgs {
    /// Returns the settings of the command line.
    pub fn settings(&self) -> Vec<String> {
        self.settings.list()
    }
}

/// Settings of the compiler for the current target.
#[derive(clap::Args)]
pub struct SettingArgs {
    /// A setting of Cranelift or of the target, for example `opt_level=speed`; overrides `set`
    /// lines of files and defaults of the command. `clif-util isa settings` lists all
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<String>,

    /// Optimization: -O0 is `opt_level=none`, -O1, -O2 and -O3 are `opt_level=speed`, and -Os is
    /// `opt_level=speed_and_size`; --set overrides it
    #[arg(short = 'O', value_name = "LEVEL", value_parser = ["0", "1", "2", "3", "s"], overrides_with = "level")]
    level: Option<String>,
}

impl SettingArgs {
    /// Returns the settings, of which later ones override earlier ones.
    pub fn list(&self) -> Vec<String> {
        let level = self.level.as_deref().map(|level| match level {
            "0" => "opt_level=none",
            "s" => "opt_level=speed_and_size",
            _ => "opt_level=speed",
        });
        level
            .map(str::to_owned)
            .into_iter()
            .chain(self.settings.iter().cloned())
            .collect()
    }
}

/// The cache of compiled functions.
#[derive(clap::Args)]
pub struct CacheArgs {
    /// Cache of compiled functions: a folder, or the address of a shared store
    #[arg(long, value_name = "WHERE")]
    cache: Option<PathBuf>,
}

impl CacheArgs {
    /// Opens the requested cache.
    pub fn open(&self) -> Result<Option<Arc<dyn CodeCache>>, Stop> {
        let Some(place) = &self.cache else {
            return Ok(None);
        };
        let cache = Cache::open(place).map_err(fault)?;
        Ok(Some(Arc::new(cache)))
    }

    /// Returns the target with the requested cache.
    pub fn with_cache(&self, isa: &Isa) -> Result<Isa, Stop> {
        Ok(match self.open()? {
            Some(cache) => isa.with_cache(cache),
            None => isa.clone(),
        })
    }
}

fn parse_triple(text: &str) -> Result<Triple, String> {
    text.parse()
        .map_err(|e: cranelift_naplespu::isa::LookupError| e.to_string())
}

/// Checks a setting, so that a wrong one is an error of the command line.
pub fn parse_setting(text: &str) -> Result<String, String> {
    Config::new()
        .set(text)
        .map_err(|e| format!("{e}; `clif-util isa settings` lists all"))?;
    Ok(text.to_owned())
}

/// Reads a file, or standard input for `-`. Returns its name for messages and its bytes.
pub fn read(path: &Path) -> Result<(String, Vec<u8>), Stop> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|e| Stop::Fault(format!("{STDIN}: {e}")))?;
        return Ok((STDIN.to_owned(), bytes));
    }
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|e| Stop::Fault(format!("{name}: {e}")))?;
    Ok((name, bytes))
}

/// Reads a CLIF file. Reports its errors, and fails if it has any.
pub fn read_clif(path: &Path) -> Result<ClifFile, Stop> {
    let (name, bytes) = read(path)?;
    let file = ClifFile::parse(&name, &bytes);
    report(&file, &file.faults)?;
    Ok(file)
}

/// A valid file with its configuration.
pub struct Loaded {
    /// The file.
    pub file: ClifFile,
    /// Its configuration with the settings of the command line.
    pub config: Config,
    /// The target.
    pub isa: Arc<Isa>,
}

/// Reads a CLIF file for its target. Reports its errors, and fails if it has any.
pub fn load(path: &Path, settings: &[String]) -> Result<Loaded, Stop> {
    let file = read_clif(path)?;
    let config = config_of(&file, settings)?;
    let isa = config.isa().map_err(fault)?;
    report(&file, &verify(&file, &config))?;
    Ok(Loaded { file, config, isa })
}

/// Returns the functions of a file in the form `of`, with calls between them inlined if the target
/// does so.
pub fn inlined(file: &ClifFile, isa: &Isa, of: impl Fn(&FunctionCase) -> Function) -> Result<Vec<Function>, Stop> {
    let mut functions: Vec<Function> = file.functions.iter().map(of).collect();
    inlining::inline_text(isa, &mut functions).map_err(fault)?;
    Ok(functions)
}

/// Compiles functions of a file on several threads, by `work`. Reports the errors of all functions,
/// and fails if there are any.
pub fn compile_all<T: Send>(
    file: &ClifFile,
    functions: &[Function],
    work: impl Fn(&mut Worker, &FunctionCase, &Function) -> Result<T, CompileError> + Sync + Send,
) -> Result<Vec<T>, Stop> {
    let progress = Progress::bar(file.functions.len(), "functions");
    let results = parallel::map(
        file.functions.iter().zip(functions).collect(),
        |(_, function)| function.dfg.num_insts(),
        |worker, (case, function)| {
            let result = caught(|| work(worker, case, function));
            progress.step();
            result
        },
    );
    drop(progress);
    let mut faults = Vec::new();
    let mut compiled = Vec::new();
    for (case, result) in file.functions.iter().zip(results) {
        match result {
            Ok(Ok(result)) => compiled.push(result),
            Ok(Err(error)) => faults.extend(crate::compile::faults(file, case, &error)),
            Err(panic) => faults.push(panicked(file, case, "the compiler panicked", &panic)),
        }
    }
    report(file, &faults)?;
    Ok(compiled)
}

/// Returns the configuration for a file: its first `target` line for this target with the `set`
/// lines before it, if it has one, and the command line.
pub fn config_of(file: &ClifFile, settings: &[String]) -> Result<Config, Stop> {
    let mut faults = Vec::new();
    let configs = FileConfigs::read(&file.header, None, settings, &mut faults);
    if configs.foreign {
        // The command line selects this target, whatever the target of the file is.
        faults.clear();
        let forced = ForcedTarget::default();
        let configs = FileConfigs::read(&file.header, Some(&forced), settings, &mut faults);
        report(file, &faults)?;
        return Ok(configs.list.into_iter().next().unwrap_or_default());
    }
    report(file, &faults)?;
    Ok(configs.list.into_iter().next().unwrap_or_default())
}

/// Reports errors of a file on standard error. Fails if there are any.
pub fn report(file: &ClifFile, faults: &[Diagnostic]) -> Result<(), Stop> {
    if faults.is_empty() {
        return Ok(());
    }
    crate::output::report(&file.source.render(faults));
    Err(match faults.iter().any(|fault| fault.panic.is_some()) {
        true => Stop::Panicked,
        false => Stop::Reported,
    })
}

/// Verifies all functions. Returns the errors with their lines in the file.
pub fn verify(file: &ClifFile, config: &Config) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for case in &file.functions {
        let result = caught(|| {
            let flags = config.flags().map_err(|e| e.to_string())?;
            Ok::<_, String>(cranelift_naplespu::verify_function(&case.func, &flags).err())
        });
        match result {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(errors))) => faults.extend(case.verifier_diagnostics(&file.source, &errors)),
            Ok(Err(why)) => faults.push(at_function(file, case, "the verifier gave up", why)),
            Err(panic) => faults.push(panicked(file, case, "the verifier panicked", &panic)),
        }
    }
    faults
}

/// Returns the diagnostic for a panic while a function was processed.
pub fn panicked(file: &ClifFile, case: &FunctionCase, message: &str, panic: &Panic) -> Diagnostic {
    let span = file.source.code_span(case.line);
    Diagnostic::new(message, span, format!("in {}", case.name)).panicked(PanicIn::Target, panic)
}

/// Returns a diagnostic for a whole function.
pub fn at_function(file: &ClifFile, case: &FunctionCase, message: &str, why: String) -> Diagnostic {
    let span = file.source.code_span(case.line);
    Diagnostic::new(message, span, format!("in {}", case.name)).note(why)
}
