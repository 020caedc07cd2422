//! Builds the compiler with random changes of the description, and finds what notices each of them.

use crate::changes::{Change, changes, statements};
use crate::{Description, Effect, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The commands that may notice a change, in the order in which they run, with a name for the table.
/// Each one selects all members of the workspace, so that no crate is built with other features.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("the build", &["build", "--workspace", "--example", "code_hashes"]),
    ("code of filetests", &["run", "--example", "code_hashes", "--", HASHES]),
    (
        "unit tests and filetests",
        &["test", "--workspace", "--lib", "--test", "filetests"],
    ),
    ("tests", &["test", "--workspace"]),
];

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

    let hashes = cargo(tree, &["run", "--example", "code_hashes"])?;
    if !hashes.status.success() {
        let output = String::from_utf8_lossy(&hashes.stderr);
        return Err(format!("{} does not build without a change: {output}", tree.display()));
    }
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
    for (name, arguments) in COMMANDS {
        if !cargo(tree, arguments)?.status.success() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn cargo(tree: &Path, arguments: &[&str]) -> Result<std::process::Output, String> {
    Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", tree.join("target"))
        .output()
        .map_err(|error| format!("cargo: {error}"))
}
