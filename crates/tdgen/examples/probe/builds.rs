//! Builds the compiler with random changes of the description, and finds what notices each of them.

use crate::changes::{Change, changes, statements};
use crate::{Description, Effect, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The commands that may notice a change, in the order in which they run, with a name for the table.
/// Each cargo command selects all members of the workspace, so that no crate is built with other
/// features.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("the build", BUILD),
    ("code of filetests", &[CODE_HASHES, HASHES]),
    (
        "documents",
        &["cargo", "test", "--workspace", "--test", "all", "docs::"],
    ),
    (
        "unit tests and filetests",
        &["cargo", "test", "--workspace", "--lib", "--test", "filetests"],
    ),
    ("tests", &["cargo", "test", "--workspace"]),
];

const BUILD: &[&str] = &["cargo", "build", "--workspace", "--example", "code_hashes"];

/// The program that prints a hash of each function's code or compares the hashes with a file.
const CODE_HASHES: &str = "target/debug/examples/code_hashes";

/// The file with the hashes of all code without a change, in the clone.
const HASHES: &str = "target/code-hashes";

/// Makes `count` random changes and prints what notices them, and those that nothing notices.
///
/// # Errors
///
/// Returns a message if the clone does not build without a change, or a file cannot be written.
pub fn campaign(description: &Description, tree: &Path, filter: &str, count: usize, seed: u64) -> Result<(), String> {
    let mut all: Vec<(&str, &str, Change)> = Vec::new();
    for (name, text) in &description.files {
        if name.contains(filter) {
            let both = statements(text).into_iter().chain(changes(text));
            all.extend(both.map(|change| (name.as_str(), text.as_str(), change)));
        }
    }
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    all.truncate(count);

    let build = run(tree, BUILD)?;
    if !build.status.success() {
        let output = String::from_utf8_lossy(&build.stderr);
        return Err(format!("{} does not build without a change: {output}", tree.display()));
    }
    let hashes = run(tree, &[CODE_HASHES])?;
    std::fs::write(tree.join(HASHES), hashes.stdout).map_err(|error| format!("{HASHES}: {error}"))?;

    let mut noticed: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, (name, text, change)) in all.iter().enumerate() {
        let by = match description.effect(name, text, change)? {
            Effect::Refused => Some("the back ends"),
            Effect::Changed | Effect::Nothing => {
                let path = tree.join("td").join(name);
                let write = |text: &str| std::fs::write(&path, text).map_err(|error| format!("{name}: {error}"));
                write(&change.apply(text))?;
                let by = first_to_fail(tree);
                write(text)?;
                by?
            }
        };
        let by_name = by.unwrap_or("nothing");
        *noticed.entry(by_name).or_default() += 1;
        eprintln!("{}/{count} {by_name}: {}", number + 1, describe(name, text, change));
    }
    eprintln!("noticed by: {noticed:?}");
    Ok(())
}

/// Returns the name of the first command that fails.
fn first_to_fail(tree: &Path) -> Result<Option<&'static str>, String> {
    for (name, command) in COMMANDS {
        if !run(tree, command)?.status.success() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Runs a command, a program and its arguments, in the clone.
fn run(tree: &Path, command: &[&str]) -> Result<std::process::Output, String> {
    let program = match command[0] {
        "cargo" => env!("CARGO").into(),
        program => tree.join(program),
    };
    Command::new(program)
        .args(&command[1..])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", tree.join("target"))
        .output()
        .map_err(|error| format!("{}: {error}", command[0]))
}
