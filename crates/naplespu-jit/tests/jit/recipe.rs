//! Follows the recipes of docs/td.md for an instruction and its pattern. The test inserts the
//! blocks of the document into a copy of the sources, builds the copy, and checks that the
//! instruction encodes, assembles, disassembles, is selected and runs.
//!
//! Building the compiler takes minutes, so the test is ignored by default; `.ci/run` runs it:
//!
//!     cargo test -p naplespu-jit --test jit recipe:: -- --ignored --nocapture

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The contents of the copy: all crates of the workspace, and what their manifests name.
const COPIED: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "build",
    "build.rs",
    "src",
    "isle",
    "td",
    "runtime",
    "crates",
];

/// The test that runs in the copy; it contains the instruction of the document.
const QUESTIONS: &str = include_str!("recipe/questions.rs");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// Returns the blocks of a section, each with the last file name in the paragraph before it.
fn blocks(document: &str, section: &str) -> Vec<(String, String)> {
    let (_, rest) = document.split_once(&format!("\n## {section}\n")).unwrap();
    let text = rest.split_once("\n## ").map_or(rest, |(text, _)| text);
    let mut found = Vec::new();
    let mut parts = text.split("```");
    while let (Some(before), Some(block)) = (parts.next(), parts.next()) {
        let (language, code) = block.split_once('\n').unwrap();
        assert!(["tablegen", "rust"].contains(&language), "{language}");
        let named = before.split('`').skip(1).step_by(2);
        let file = named
            .filter(|name| name.ends_with(".td") || name.ends_with(".rs"))
            .last();
        let file = file.expect("a paragraph before a block names the file");
        let path = if file.ends_with(".td") {
            format!("td/{file}")
        } else {
            file.to_owned()
        };
        found.push((path, code.trim().to_owned()));
    }
    found
}

/// Inserts a block into its file: at the end of a description, or as the first arm of a source's
/// only table.
fn put(folder: &Path, path: &str, block: &str) {
    let path = folder.join(path);
    let text = fs::read_to_string(&path).unwrap();
    let text = if path.extension().is_some_and(|extension| extension == "td") {
        format!("{text}\n{block}\n")
    } else {
        let table = "\n    match op {\n";
        assert_eq!(text.matches(table).count(), 1, "{} has one table", path.display());
        text.replace(table, &format!("{table}{block}\n"))
    };
    fs::write(path, text).unwrap();
}

/// Removes from the manifest of the root package the targets whose files are not copied.
fn trim_manifest(folder: &Path) {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in text.lines() {
        if line.starts_with('[') {
            skipping = matches!(line, "[[bench]]" | "[[test]]" | "[[example]]");
        }
        if !skipping {
            lines.push(line);
        }
    }
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
#[ignore = "rebuilds the compiler, which takes minutes; .ci/run runs it"]
fn an_instruction_and_its_pattern_are_added_by_the_document() {
    let start = Instant::now();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    for path in COPIED {
        copy(&root().join(path), &folder.join(path));
    }
    trim_manifest(&folder);
    let document = fs::read_to_string(root().join("docs/td.md")).unwrap();
    let mut count = 0;
    for section in ["How to add an instruction", "How to add a pattern"] {
        for (path, block) in blocks(&document, section) {
            println!("{path}: {block}");
            put(&folder, &path, &block);
            count += 1;
        }
    }
    assert_eq!(count, 5);
    let tests = folder.join("crates/naplespu-jit/tests");
    fs::remove_dir_all(&tests).unwrap();
    fs::create_dir_all(&tests).unwrap();
    fs::write(tests.join("questions.rs"), QUESTIONS).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "-p", "naplespu-jit", "--test", "questions"])
        .current_dir(&folder)
        // A separate target directory: Cargo names build outputs by package positions in the
        // workspace, so the copy would overwrite the outputs of this workspace.
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe-target"),
        )
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    println!("built and run in {:.0} s", start.elapsed().as_secs_f64());
}
