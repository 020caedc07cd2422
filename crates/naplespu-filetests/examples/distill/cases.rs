//! Loads the filetests with everything that is known before execution.

use crate::generated::vector_files;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::{CompiledCode, Isa};
use naplespu_filetests::checks::references;
use naplespu_filetests::expect::{has_directives, is_run_line};
use naplespu_filetests::lines::RunLines;
use naplespu_filetests::runner;
use naplespu_filetests::subtest::Subtest;
use naplespu_reader::config::{Config, FileConfigs};
use naplespu_reader::parse::ClifFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folders whose files are not changed: other tests read them, or each file has a specific purpose.
const STAY: [&str; 7] = [
    "corpus/",
    "codegen/",
    "exceptions/",
    "refused/",
    "tools/",
    "vectorize/kernels/",
    GENERATED,
];

/// Functions that other tests call.
const NAMED: [(&str, &str); 5] = [
    ("call/tail_deep.clif", "%deep"),
    ("call/recursion.clif", "%fact"),
    ("call/recursion.clif", "%fib"),
    ("call/indirect.clif", "%call_0_near"),
    ("call/hundred_arguments.clif", "%call_near"),
];

/// The prefix of generated files' names.
pub const GENERATED: &str = "generated/";

/// A target with its settings.
pub struct Target {
    /// The settings.
    pub name: String,
    /// The target.
    pub isa: Arc<Isa>,
    /// The code of each function that was compiled so far.
    code: Mutex<HashMap<usize, CompiledCode>>,
}

/// A file.
pub struct Case {
    /// The path.
    pub path: PathBuf,
    /// The path relative to `filetests`.
    pub name: String,
    /// The parsed file.
    pub file: ClifFile,
    /// The run lines.
    pub lines: RunLines,
    /// The run lines of each function.
    pub lines_of: Vec<Vec<usize>>,
    /// The functions of the file that each function references.
    pub callees: Vec<Vec<usize>>,
    /// The targets of the run lines.
    pub targets: Vec<Target>,
    /// The first target at both levels, even if the file sets the level.
    #[cfg(feature = "rule-switches")]
    pub levels: Vec<Arc<Isa>>,
    /// Whether each function is kept unconditionally.
    pub stays: Vec<bool>,
    /// Whether the whole file is kept, including its run lines.
    pub is_frozen: bool,
}

impl Case {
    fn read(name: String, path: PathBuf, bytes: &[u8]) -> Result<Case, String> {
        let file = ClifFile::parse(&name, bytes);
        let mut faults = Vec::new();
        let lines = RunLines::collect(&file, false, &mut faults);
        let configs = FileConfigs::read(&file.header, None, &[], &mut faults);
        let subtests = Subtest::read(&file.header, false, &mut faults);
        if !faults.is_empty() || !file.faults.is_empty() {
            return Err(format!("{name}: the file has faults"));
        }
        let mut lines_of = vec![Vec::new(); file.functions.len()];
        for (number, line) in lines.list().iter().enumerate() {
            lines_of[line.function].push(number);
        }
        let place = |name: &String| file.functions.iter().position(|case| case.name == *name);
        let callees = file.functions.iter().map(|case| {
            let names = references(case);
            names.iter().filter_map(place).collect()
        });
        let callees = callees.collect();
        let prints = subtests.iter().any(|subtest| !subtest.executes());
        let in_preamble = file.preamble.iter().any(|comment| is_run_line(&comment.text));
        let refuses = !file.header.announced.refused.is_empty();
        let is_frozen = STAY.iter().any(|folder| name.starts_with(folder)) || in_preamble || refuses || prints;
        let stays = (0..file.functions.len()).map(|index| {
            let traps = lines_of[index].iter().any(|&line| lines.list()[line].traps());
            let is_named = NAMED.contains(&(&name, &file.functions[index].name));
            is_frozen || traps || is_named || has_directives(&file, &file.functions[index])
        });
        let stays = stays.collect();
        let targets = targets(&configs.list).map_err(|error| format!("{name}: {error}"))?;
        Ok(Case {
            #[cfg(feature = "rule-switches")]
            levels: levels(&file, &name)?,
            targets,
            callees,
            lines_of,
            stays,
            is_frozen: is_frozen || !file.header.has_test("run"),
            path,
            name,
            lines,
            file,
        })
    }

    /// Returns the code of a function, which is compiled once for each target.
    pub fn compiled(&self, target: &Target, function: usize) -> Result<CompiledCode, String> {
        let known = || target.code.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = known().get(&function) {
            return Ok(code.clone());
        }
        let mut ctx = Context::for_function(self.file.functions[function].func.clone());
        let code = target.isa.compile(&mut ctx, &mut ControlPlane::default());
        let code = code.map_err(|error| error.to_string())?;
        known().insert(function, code.clone());
        Ok(code)
    }

    /// Returns a function with its direct and indirect callees; the function is first.
    pub fn closure(&self, function: usize) -> Vec<usize> {
        let mut all = vec![function];
        let mut at = 0;
        while let Some(&caller) = all.get(at) {
            for &callee in &self.callees[caller] {
                if !all.contains(&callee) {
                    all.push(callee);
                }
            }
            at += 1;
        }
        all
    }
}

/// Returns the targets of a file at both levels, even if it sets the level.
#[cfg(feature = "rule-switches")]
fn levels(file: &ClifFile, name: &str) -> Result<Vec<Arc<Isa>>, String> {
    let mut list = Vec::new();
    for level in ["opt_level=none", "opt_level=speed"] {
        let configs = FileConfigs::read(&file.header, None, &[level.to_owned()], &mut Vec::new());
        for config in configs.list {
            list.push(config.isa().map_err(|error| format!("{name}: {error}"))?);
        }
    }
    Ok(list)
}

/// Returns the configurations of a file at both optimization levels, unless the file sets the
/// level.
fn targets(configs: &[Config]) -> Result<Vec<Target>, String> {
    let mut list: Vec<Target> = Vec::new();
    for config in configs {
        let levels: &[&str] = match config.mentions("opt_level") {
            true => &[""],
            false => &["opt_level=none", "opt_level=speed"],
        };
        for level in levels {
            let mut config = config.clone();
            if !level.is_empty() {
                config.set(level).map_err(|error| error.to_string())?;
            }
            list.push(Target {
                name: config.to_string(),
                isa: config.isa().map_err(|error| error.to_string())?,
                code: Mutex::default(),
            });
        }
    }
    Ok(list)
}

/// Loads all files below a folder, and the generated files.
pub fn load(root: &Path) -> Result<Vec<Case>, String> {
    let files = runner::find(&[root.to_owned()]).map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let files = files.into_iter().map(|path| {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let bytes = std::fs::read(&path).map_err(|error| format!("{name}: {error}"))?;
        Case::read(name, path, &bytes)
    });
    let generated = vector_files()?.into_iter().map(|(name, text)| {
        let name = format!("{GENERATED}{name}");
        Case::read(name, PathBuf::new(), text.as_bytes())
    });
    files.chain(generated).collect()
}
