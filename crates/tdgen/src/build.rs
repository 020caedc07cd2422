//! The entry for build scripts: reads the target description once, runs every back end, and reports
//! all faults with their locations.

use std::path::Path;
use tablegen::{Diagnostic, Options, Parsed, SourceMap};

/// The file in the td folder that includes all others.
const ROOT: &str = "NaplesPU.td";

/// The output of the back ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The generated module of `npu-mc`, see [`emit_mc`](crate::emit_mc()).
    pub machine_code: String,
    /// The semantics of instructions, see [`emit_semantics`](crate::emit_semantics()).
    pub semantics: String,
    /// The compiler's settings, see [`emit_settings`](crate::emit_settings()).
    pub settings: String,
    /// The enums and tables that the description declares, see
    /// [`searchable_tables`](crate::searchable_tables()).
    pub tables: String,
    /// The lowering rules made from patterns, see [`emit_isle`](crate::emit_isle()).
    pub isle: String,
    /// The table of legalization, see [`emit_legalize`](crate::emit_legalize()).
    pub legalize: String,
    /// The routines of the runtime, see [`emit_routines`](crate::emit_routines()).
    pub routines: String,
}

/// Reads the description in this folder and runs every back end.
///
/// Prints `cargo::rerun-if-changed` for every file that was read, even if there are faults.
///
/// # Errors
///
/// Returns all faults as text, each with file, line and column.
pub fn all(td: &Path) -> Result<Generated, String> {
    let mut options = Options::default();
    options.include_dirs.push(td.to_owned());
    let root = td.join(ROOT);
    println!("cargo::rerun-if-changed={}", root.display());
    let parsed = tablegen::parse_file(&root, &options);
    for file in parsed.files() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let result = if parsed.has_errors() {
        let errors = parsed.diagnostics.iter().filter(|d| d.is_error());
        Err(errors.cloned().collect())
    } else {
        back_ends(&parsed)
    };
    result.map_err(|faults| render_all(&faults, &parsed.sources))
}

/// Runs every back end. The faults of one do not hide the faults of another.
fn back_ends(parsed: &Parsed) -> Result<Generated, Vec<Diagnostic>> {
    let loaded = crate::load(parsed).map(|target| {
        (
            crate::emit_mc(&target),
            crate::emit_semantics(&target),
            crate::emit_settings(&target),
        )
    });
    let tables = crate::searchable_tables(parsed);
    let rules = crate::emit_isle(parsed);
    let legalize = crate::emit_legalize(parsed);
    let routines = crate::emit_routines(parsed);
    match (loaded, tables, rules, legalize, routines) {
        (Ok((machine_code, semantics, settings)), Ok(tables), Ok(isle), Ok(legalize), Ok(routines)) => Ok(Generated {
            machine_code,
            semantics,
            settings,
            tables,
            isle,
            legalize,
            routines,
        }),
        (loaded, tables, isle, legalize, routines) => {
            let mut faults: Vec<Diagnostic> = Vec::new();
            for fault in [loaded.err(), tables.err(), isle.err(), legalize.err(), routines.err()]
                .into_iter()
                .flatten()
                .flatten()
            {
                // Two back ends may report the same fault.
                if !faults
                    .iter()
                    .any(|one| one.message == fault.message && one.span() == fault.span())
                {
                    faults.push(fault);
                }
            }
            Err(faults)
        }
    }
}

/// Formats faults as text, each with its location.
pub fn render_all(faults: &[Diagnostic], sources: &SourceMap) -> String {
    let texts: Vec<String> = faults.iter().map(|d| tablegen::render(d, sources)).collect();
    texts.concat()
}
