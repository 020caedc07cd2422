//! The entries for build scripts: read the target description, report its faults with their places, give the
//! generated text.
//!
//! Each prints `cargo:rerun-if-changed` for every file that was read, also if there are faults.

use std::path::Path;
use tablegen::{Diagnostic, Options, Parsed, SourceMap};

/// The file in the td folder that includes all others.
const ROOT: &str = "NaplesPU.td";

/// The generated module of `npu-mc` from the description in this folder, see [`emit_mc`](crate::emit_mc()).
///
/// # Errors
///
/// All faults as text, each with file, line and column.
pub fn machine_code(td: &Path) -> Result<String, String> {
    generate(td, |parsed| crate::load(parsed).map(|target| crate::emit_mc(&target)))
}

/// The lowering rules made from the patterns of the description in this folder, see
/// [`emit_isle`](crate::emit_isle()).
///
/// # Errors
///
/// All faults as text, each with file, line and column.
pub fn isle(td: &Path) -> Result<String, String> {
    generate(td, crate::emit_isle)
}

fn generate(td: &Path, back_end: impl Fn(&Parsed) -> Result<String, Vec<Diagnostic>>) -> Result<String, String> {
    let mut options = Options::default();
    options.include_dirs.push(td.to_owned());
    let root = td.join(ROOT);
    println!("cargo:rerun-if-changed={}", root.display());
    let parsed = tablegen::parse_file(&root, &options);
    for file in parsed.files() {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let result = if parsed.has_errors() {
        let errors = parsed.diagnostics.iter().filter(|d| d.is_error());
        Err(errors.cloned().collect())
    } else {
        back_end(&parsed)
    };
    result.map_err(|faults| render_all(&faults, &parsed.sources))
}

/// Faults as text, each with its place.
pub fn render_all(faults: &[Diagnostic], sources: &SourceMap) -> String {
    let texts: Vec<String> = faults.iter().map(|d| tablegen::render(d, sources)).collect();
    texts.concat()
}
