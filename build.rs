//! Generates the lowering rules: compiles the ISLE that npu-mc's build script generated from td,
//! CLIF's extractors and the hand-written rules to Rust. Includes the settings and the legalization
//! table from npu-mc's build script.

#[path = "build/rules.rs"]
mod rules;
#[path = "build/switches.rs"]
mod switches;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The hand-written ISLE files, in reading order. The prelude comes first; the rules from td come
/// after CLIF's terms.
const PRELUDE: &str = "isle/prelude.isle";
const RULES: &[&str] = &[
    "isle/words.isle",
    "isle/lanes.isle",
    "isle/integer.isle",
    "isle/atomics.isle",
    "isle/calls.isle",
    "isle/wide_values.isle",
    "isle/wide_arithmetic.isle",
    "isle/wide_bits.isle",
    "isle/wide_compare.isle",
    "isle/wide_memory.isle",
    "isle/float.isle",
    "isle/vector.isle",
];

/// The name of the ISLE from td in the generated code.
const TD_ISLE: &str = "<TD>/td.isle";

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);

    // The hash is part of the keys of a code cache. It may change with the version of Rust, which
    // only causes misses.
    let mut generated = DefaultHasher::new();
    let td_isle = made("ISLE")?;
    for (name, file) in [
        ("SETTINGS", "settings.rs"),
        ("LEGALIZE", "legalize.rs"),
        ("ROUTINES", "routines.rs"),
    ] {
        let made = made(name)?;
        std::fs::copy(&made, out.join(file)).map_err(|e| format!("{}: {e}", made.display()))?;
    }
    for name in ["SETTINGS", "LEGALIZE", "ROUTINES", "MC", "TABLES"] {
        let made = made(name)?;
        let text = std::fs::read(&made).map_err(|e| format!("{}: {e}", made.display()))?;
        text.hash(&mut generated);
    }

    let clif = out.join("clif");
    std::fs::create_dir_all(&clif).map_err(|e| e.to_string())?;
    cranelift_codegen_meta::generate_isle(&clif).map_err(|e| format!("{e:?}"))?;

    let mut files: Vec<PathBuf> = vec![root.join(PRELUDE), clif.join("clif_lower.isle"), td_isle.clone()];
    for file in std::iter::once(&PRELUDE).chain(RULES) {
        println!("cargo::rerun-if-changed={file}");
    }
    files.extend(RULES.iter().map(|file| root.join(file)));
    let mut sources = vec![source(&td_isle, TD_ISLE, TD_ISLE)?];
    for file in std::iter::once(&PRELUDE).chain(RULES) {
        sources.push(source(&root.join(file), &format!("/{file}"), file)?);
    }
    // The prefix of the td directory comes first, because it may be below the root.
    let mut prefixes = vec![prefix(&td_isle, TD_ISLE)];
    if std::env::var_os("CARGO_FEATURE_RULE_SWITCHES").is_some() {
        let switched = out.join("switched");
        files = with_switches(
            &switched,
            &sources,
            &clif.join("clif_lower.isle"),
            &out.join("switches.rs"),
        )?;
        prefixes = vec![prefix(&switched.join("<TD>/td.isle"), TD_ISLE), prefix(&switched, "")];
    }
    prefixes.extend([prefix(&root, ""), prefix(&out, "<OUT_DIR>")]);
    let options = cranelift_isle::codegen::CodegenOptions {
        exclude_global_allow_pragmas: true,
        prefixes,
        ..Default::default()
    };
    let mut code = cranelift_isle::compile::from_files(&files, &options).map_err(|errors| errors.to_string())?;
    code.hash(&mut generated);
    println!("cargo::rustc-env=NAPLESPU_GENERATED={:016x}", generated.finish());
    if std::env::var_os("CARGO_FEATURE_EXPLAIN").is_some() {
        let table;
        (code, table) = rules::instrument(&code, &sources)?;
        std::fs::write(out.join("rules.rs"), table).map_err(|e| e.to_string())?;
    }
    std::fs::write(out.join("lower_isle.rs"), code).map_err(|e| e.to_string())
}

/// Writes copies of the sources whose rules can be disabled, and the table of the rules. Returns
/// the files in reading order; `clif` contains CLIF's terms.
fn with_switches(folder: &Path, sources: &[rules::Source], clif: &Path, table: &Path) -> Result<Vec<PathBuf>, String> {
    let mut switches = switches::Switches::default();
    let mut files = Vec::new();
    for source in sources {
        let path = folder.join(source.name.trim_start_matches('/'));
        let mut text = switches.add_to(source)?;
        if source.shown == PRELUDE {
            text.push_str(switches::TERM);
        }
        let write = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(path, &text)
        };
        write(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        files.push(path);
    }
    // The order is: prelude, CLIF's terms, rules from td, other rules.
    files.swap(0, 1);
    files.insert(1, clif.to_owned());
    std::fs::write(table, switches.table()).map_err(|e| e.to_string())?;
    Ok(files)
}

/// Reads a file of rules; `name` is its name in the generated code, and `shown` the name for users.
fn source(path: &Path, name: &str, shown: &str) -> Result<rules::Source, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(rules::Source {
        name: name.to_owned(),
        shown: shown.to_owned(),
        text,
    })
}

/// Returns the path of a file that the build script of npu-mc generated from td.
fn made(what: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os(format!("DEP_NPU_TD_{what}"));
    let path =
        PathBuf::from(path.ok_or_else(|| format!("npu-mc's build script did not report the path of its {what}"))?);
    println!("cargo::rerun-if-changed={}", path.display());
    Ok(path)
}

fn prefix(path: &Path, name: &str) -> cranelift_isle::codegen::Prefix {
    cranelift_isle::codegen::Prefix {
        prefix: path.display().to_string(),
        name: name.to_owned(),
    }
}
