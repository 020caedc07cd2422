//! The parts of documents that are made from the code: in `docs/errata.md`, `docs/settings.md`,
//! `docs/intrinsics.md`, `docs/vectors.md` and `docs/clif-support.md`.
//!
//! A part is between the lines `<!-- made: NAME -->` and `<!-- end -->`. Each test makes the text
//! and compares it with the committed one. With `CRANELIFT_TEST_BLESS=1` it writes the text instead.
//! The last document needs the code of every opcode of CLIF on every type, so its test also checks
//! that valid CLIF is compiled or refused without a panic.

mod forms;
mod limits;
mod support;
mod vectors;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir;
use cranelift_codegen::settings;
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::{Isa, intrinsics, isa};
use npu_mc::errata::Erratum;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Compares parts of a document with the committed file, or writes them.
fn check_document(name: &str, parts: &[(&str, &str)]) {
    let name = format!("docs/{name}");
    let mut text = std::fs::read_to_string(root().join(&name)).unwrap();
    for (part, made) in parts {
        let start = format!("<!-- made: {part} -->\n");
        let (before, rest) = text
            .split_once(&start)
            .unwrap_or_else(|| panic!("{name} has no part `{part}`"));
        let (_, after) = rest
            .split_once("<!-- end -->\n")
            .unwrap_or_else(|| panic!("{name}: `{part}` has no end"));
        let made = wrapped(made);
        text = format!("{before}{start}\n{made}\n<!-- end -->\n{after}");
    }
    check_file(&name, &text);
}

/// The number of columns of prose.
const COLUMNS: usize = 100;

/// Wraps paragraphs and list items. Words between two backticks stay on one line.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.chars().count() <= COLUMNS || line.starts_with(['|', '#', ' ']) {
            lines.push(line.to_owned());
            continue;
        }
        let indent = if line.starts_with("- ") { "  " } else { "" };
        let mut current = String::new();
        let mut is_code = false;
        for word in line.split(' ') {
            let columns = current.chars().count() + 1 + word.chars().count();
            if current.is_empty() {
                current.push_str(word);
            } else if columns > COLUMNS && !is_code {
                lines.push(std::mem::replace(&mut current, format!("{indent}{word}")));
            } else {
                current = format!("{current} {word}");
            }
            is_code ^= word.matches('`').count() % 2 == 1;
        }
        lines.push(current);
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + end
}

/// Compares a file of the repository with the text, or writes it.
fn check_file(name: &str, text: &str) {
    let path = root().join(name);
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = committed.lines().zip(text.lines()).zip(1..);
    let first = lines.find(|((committed, made), _)| committed != made);
    assert!(
        committed == text,
        "{name} is not what the code says; CRANELIFT_TEST_BLESS=1 rewrites it; the first difference \
         (committed and made, line): {first:#?}"
    );
}

/// Returns the functions of the filetests in these folders, in the order of their files.
fn test_functions(folders: &[&str]) -> Vec<ir::Function> {
    let mut all = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root().join("filetests").join(folder)).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            // Cranelift's reader does not support the target in the header, so the header is
            // skipped.
            let text = std::fs::read_to_string(&file).unwrap();
            let functions = text.find("\nfunction ").map(|at| &text[at..]);
            let functions = functions.and_then(|text| cranelift_reader::parse_functions(text).ok());
            all.extend(functions.into_iter().flatten());
        }
    }
    assert!(all.len() > 200, "{} functions", all.len());
    all
}

/// Returns the code of a function, or `None` if it is refused.
fn code(isa: &Isa, func: &ir::Function) -> Option<Vec<u8>> {
    let mut ctx = Context::for_function(func.clone());
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).ok()?;
    Some(code.bytes)
}

/// A setting that never changes code would only be documentation.
#[test]
fn every_setting_of_an_erratum_changes_code() {
    let functions = test_functions(&["codegen", "intrinsics", "vector", "scratchpad"]);
    let target = |setting: Option<&str>| {
        let mut builder = isa::lookup_by_name("naplespu").unwrap();
        if let Some(name) = setting {
            builder.set(name, "false").unwrap();
        }
        builder.finish(settings::Flags::new(settings::builder())).unwrap()
    };
    let faulty = target(None);
    for erratum in Erratum::ALL {
        let name = format!("erratum_{}", erratum.name());
        let info = erratum.info();
        if !info.is_setting {
            assert!(
                isa::lookup_by_name("naplespu").unwrap().set(&name, "false").is_err(),
                "{name}"
            );
            assert!(faulty.has_erratum(*erratum), "{name}");
            continue;
        }
        let mended = target(Some(&name));
        assert!(faulty.has_erratum(*erratum) && !mended.has_erratum(*erratum));
        let differs = |func: &ir::Function| code(&faulty, func) != code(&mended, func);
        assert!(functions.iter().any(differs), "`{name}` changes no code");
    }
}

#[test]
fn short_vectors() {
    check_document("vectors.md", &[("costs", &vectors::costs())]);
}

#[test]
fn all_intrinsics() {
    let mut text = String::from("| name | arguments | result | meaning |\n|---|---|---|---|\n");
    for info in intrinsics::all() {
        let short = info.name.trim_start_matches(intrinsics::PREFIX);
        let list = info.params.replace(' ', ", ");
        let _ = writeln!(text, "| `{short}` | {list} | {} | {} |", info.result, info.summary);
    }
    check_document("intrinsics.md", &[("intrinsics", &text)]);
}

/// Returns the table of the erratum of lost results.
fn lost_results() -> String {
    let mut text = String::from(
        "| program | before the branch | branch | at the target | hardware | right |\n|---|---|---|---|---|---|\n",
    );
    let rows = include_str!("../../../crates/naplespu-tools/tests/rtl/lost_results.tsv").lines();
    for row in rows.filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        if let [name, before, branch, target, machine, right] = columns[..] {
            let mark = if machine == right { "" } else { "**" };
            let quote = if before.is_empty() { "" } else { "`" };
            let _ = writeln!(
                text,
                "| {name} | {quote}{before}{quote} | `{branch}` | `{target}` | {mark}{machine}{mark} | {right} |"
            );
        }
    }
    text
}

#[test]
fn errata() {
    let mut list = String::from("| erratum | work-around |\n|---|---|\n");
    let mut details = String::new();
    for erratum in Erratum::ALL {
        let info = erratum.info();
        let how = match info.is_setting {
            true => "setting",
            false if info.workaround.starts_with("In part:") => "in part",
            false if info.workaround.starts_with("None") => "none",
            false => "built in",
        };
        let _ = writeln!(list, "| [{0}](#{0}) | {how} |", info.name);
        let _ = write!(details, "## {}\n\n{}\n\n", info.name, info.summary);
        if info.is_setting {
            let _ = writeln!(details, "- Setting: `erratum_{}`, `true` unless set", info.name);
        }
        let _ = write!(
            details,
            "- Effect: {}\n- What the compiler does: {}\n",
            info.effect, info.workaround
        );
        if !info.instructions.is_empty() {
            let names: BTreeSet<String> = info
                .instructions
                .iter()
                .map(|op| format!("`{}`", op.desc().mnemonic))
                .collect();
            let names: Vec<String> = names.into_iter().collect();
            let _ = writeln!(details, "- Instructions: {}", names.join(", "));
        }
        let _ = writeln!(details, "- Reference: {}\n", info.reference);
    }
    let details = details.trim_end().to_owned() + "\n";
    check_document(
        "errata.md",
        &[
            ("errata", &list),
            ("details", &details),
            ("lost results", &lost_results()),
        ],
    );
}

#[test]
fn target_settings() {
    let mut text = String::from("| setting | values | unless set | effect |\n|---|---|---|---|\n");
    for setting in Setting::ALL {
        let info = setting.info();
        let values = format!("`{}`", info.values.replace(", ", "`, `").replace(" to ", "` to `"));
        let _ = writeln!(
            text,
            "| `{}` | {values} | `{}` | {} |",
            info.name, info.default, info.description
        );
    }
    check_document("settings.md", &[("settings", &text)]);
}
