//! The entry for build scripts: reads a target description, reports its faults, writes generated source.

use std::path::{Path, PathBuf};
use tablegen::{Diagnostic, Options, Parsed, SourceMap};

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The tables of `npu-mc`, see [`emit_mc`](crate::emit_mc()).
    MachineCode,
}

/// Runs a back end from a build script: reads `td_root` with its folder as include path and writes `name` into
/// `OUT_DIR`. Cargo is told to run the script again when a file that was read changes.
///
/// Faults of the description are printed with file, line and column; then the process ends with status 1.
pub fn run(td_root: &Path, name: &str, backend: Backend) {
    let out_dir = match std::env::var_os("OUT_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => fail("OUT_DIR is not set; this is meant to run in a build script"),
    };
    println!("cargo:rerun-if-changed={}", td_root.display());
    let parsed = parse(td_root);
    for file in parsed.files() {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    match generate(&parsed, backend) {
        Ok(text) => {
            let path = out_dir.join(name);
            if let Err(error) = std::fs::write(&path, text) {
                fail(&format!("{}: {error}", path.display()));
            }
        }
        Err(faults) => fail(&render_all(&faults, &parsed.sources)),
    }
}

/// Reads a description with its folder as include path.
pub fn parse(td_root: &Path) -> Parsed {
    let mut options = Options::default();
    options
        .include_dirs
        .extend(td_root.parent().map(Path::to_owned));
    tablegen::parse_file(td_root, &options)
}

/// The generated text.
///
/// # Errors
///
/// The parser's errors if there are any, otherwise the loader's.
pub fn generate(parsed: &Parsed, backend: Backend) -> Result<String, Vec<Diagnostic>> {
    if parsed.has_errors() {
        let errors = parsed.diagnostics.iter().filter(|d| d.is_error());
        return Err(errors.cloned().collect());
    }
    match backend {
        Backend::MachineCode => crate::load(parsed).map(|target| crate::emit_mc(&target)),
    }
}

/// All faults as text, with their places.
pub fn render_all(faults: &[Diagnostic], sources: &SourceMap) -> String {
    let texts: Vec<String> = faults
        .iter()
        .map(|d| tablegen::render(d, sources))
        .collect();
    texts.concat()
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1);
}
