//! Prints hashes of the code of all filetests, generated files and routines of the runtime.
//!
//! The hashes show whether a change of the compiler changes code. Both optimization levels are
//! used.
//!
//!     cargo run --release -p naplespu-filetests --example code_hashes > before
//!     cargo run --release -p naplespu-filetests --example code_hashes -- before   # functions with different code
//!
//! With the feature `rule-switches` the example disables each rule of lowering in turn, and prints
//! the rules that do not change any code:
//!
//!     cargo run --release -p naplespu-filetests --example code_hashes --features rule-switches -- --rules
//!
//! A line has file, function, level, number of the configuration, number of bytes and hash. If the
//! function does not compile, the error replaces the last two.

#![deny(missing_docs)]

#[path = "generated/mod.rs"]
mod generated;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::Isa;
use generated::vector_files;
use naplespu_filetests::runner;
use naplespu_reader::config::FileConfigs;
use naplespu_reader::panics::caught;
use naplespu_reader::parse::ClifFile;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The optimization levels.
const LEVELS: [&str; 2] = ["none", "speed"];

/// A function with a configuration.
struct Case {
    /// File, function, level, number of the configuration.
    key: String,
    isa: Arc<Isa>,
    func: Function,
}

/// The result of compiling a case.
#[derive(Clone, PartialEq, Eq)]
enum Code {
    /// The number of bytes, and the hash of the code and its metadata.
    Some(usize, u64),
    /// The error.
    None(String),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Some(bytes, hash) => write!(f, "{bytes} {hash:016x}"),
            Self::None(error) => f.write_str(error),
        }
    }
}

impl Case {
    fn compile(&self) -> Code {
        let compiled = caught(|| {
            let mut ctx = Context::for_function(self.func.clone());
            self.isa.compile(&mut ctx, &mut ControlPlane::default())
        });
        match compiled {
            Ok(Ok(code)) => {
                let mut hasher = DefaultHasher::new();
                hasher.write(&code.to_bytes());
                Code::Some(code.bytes.len(), hasher.finish())
            }
            Ok(Err(error)) => Code::None(error.to_string().lines().next().unwrap_or_default().to_owned()),
            Err(panic) => Code::None(panic.to_string().lines().next().unwrap_or_default().to_owned()),
        }
    }
}

/// Adds all functions of a file at both levels, with each configuration of the file.
fn cases(name: &str, bytes: &[u8], cases: &mut Vec<Case>) -> Result<(), String> {
    let file = ClifFile::parse(name, bytes);
    for level in LEVELS {
        let pins = [format!("opt_level={level}")];
        let config = FileConfigs::read(&file.header, None, &pins, &mut Vec::new());
        for (number, config) in config.list.iter().enumerate() {
            let isa = config.isa().map_err(|error| format!("{name}: {error}"))?;
            let isa = match name.starts_with("runtime") {
                true => Arc::new(isa.for_runtime()),
                false => isa,
            };
            cases.extend(file.functions.iter().map(|case| Case {
                key: format!("{name} {} {level} {number}", case.name),
                isa: isa.clone(),
                func: case.func.clone(),
            }));
        }
    }
    Ok(())
}

/// Prints the functions whose code differs from the file. Returns whether all are equal.
fn compare(before: &Path, lines: &[(String, Code)]) -> Result<bool, String> {
    let text = std::fs::read_to_string(before).map_err(|error| format!("{}: {error}", before.display()))?;
    let keyed = text.lines().filter_map(|line| line.split_once('\t'));
    let mut before: HashMap<&str, &str> = keyed.collect();
    let mut differ = 0;
    for (key, code) in lines {
        let code = code.to_string();
        match before.remove(key.as_str()) {
            Some(old) if old == code => {}
            old => {
                differ += 1;
                println!("{key}\t{} -> {code}", old.unwrap_or("new"));
            }
        }
    }
    for (key, code) in &before {
        println!("{key}\t{code} -> gone");
    }
    eprintln!(
        "{} functions, the code of {differ} differs, {} no longer exist",
        lines.len(),
        before.len()
    );
    Ok(differ == 0 && before.is_empty())
}

/// Prints the rules whose removal does not change any code.
#[cfg(feature = "rule-switches")]
fn rules(cases: &[Case]) -> Result<bool, String> {
    use cranelift_naplespu::rule_switches::{RULES, take_matched, turn_off};
    let compiled = runner::in_parallel(cases.len(), |at| {
        turn_off(None);
        let code = cases[at].compile();
        (code, take_matched())
    })
    .map_err(|error| error.to_string())?;
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); RULES.len()];
    for (case, (_, matched)) in compiled.iter().enumerate() {
        for &rule in matched {
            users[rule].push(case);
        }
    }
    let decides = runner::in_parallel(RULES.len(), |rule| {
        turn_off(Some(rule));
        users[rule]
            .iter()
            .any(|&case| cases[case].compile() != compiled[case].0)
    })
    .map_err(|error| error.to_string())?;
    let mut nothing = 0;
    for (rule, (place, text)) in RULES.iter().enumerate() {
        if !decides[rule] {
            nothing += 1;
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            println!("{place}: matched in {}: {text}", users[rule].len());
        }
    }
    eprintln!("{} rules, {nothing} of them do not affect any code", RULES.len());
    Ok(nothing == 0)
}

#[cfg(not(feature = "rule-switches"))]
fn rules(_: &[Case]) -> Result<bool, String> {
    Err("`--rules` needs the feature `rule-switches`".to_owned())
}

fn run() -> Result<bool, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["filetests", "runtime"].map(|folder| root.join(folder));
    let files: Vec<PathBuf> = runner::find(&folders).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let mut all = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let bytes = std::fs::read(&path).map_err(|error| format!("{name}: {error}"))?;
        cases(&name, &bytes, &mut all)?;
    }
    for (name, text) in vector_files()? {
        cases(&format!("generated/{name}"), text.as_bytes(), &mut all)?;
    }
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("--rules") {
        return rules(&all);
    }
    let codes = runner::in_parallel(all.len(), |at| all[at].compile()).map_err(|error| error.to_string())?;
    let lines: Vec<(String, Code)> = all.into_iter().map(|case| case.key).zip(codes).collect();
    match argument {
        Some(before) => compare(Path::new(&before), &lines),
        None => {
            for (key, code) in &lines {
                println!("{key}\t{code}");
            }
            Ok(true)
        }
    }
}

fn main() -> ExitCode {
    // Panics are results here, so they print nothing.
    std::panic::set_hook(Box::new(|_| {}));
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
