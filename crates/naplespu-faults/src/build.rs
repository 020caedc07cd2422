//! Builds the tests of the copy.

use crate::edit::VARIABLE;
use crate::list::Test;
use crate::{Error, Result, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test executable: the unit tests of a library, or an integration test.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the executable.
    pub path: PathBuf,
    /// The folder of its package, which is its working directory.
    pub folder: PathBuf,
}

/// Programs by package and target.
pub type Programs = BTreeMap<(String, String), Program>;

/// Returns the command `cargo test --no-run` for the targets of these tests in all packages, so
/// that features are those of `cargo test`.
fn command(tree: &Path, target: &Path, tests: &BTreeSet<Test>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .env_remove(VARIABLE)
        .args(["test", "--no-run", "--message-format=json"]);
    for target in tests.iter().map(|test| test.target.as_str()).collect::<BTreeSet<_>>() {
        match target {
            "lib" => command.arg("--lib"),
            name => command.args(["--test", name]),
        };
    }
    command
}

/// Builds the programs of these tests.
///
/// # Errors
///
/// Returns [`Error::Command`] if the build fails or a program does not exist.
pub fn build(tree: &Path, target: &Path, tests: &BTreeSet<Test>) -> Result<Programs> {
    let mut command = command(tree, target, tests);
    let failed = |what: String| Error::Command(format!("cargo test --no-run in {}: {what}", tree.display()));
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let mut programs = Programs::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let text = |key: &str| message.pointer(key).and_then(serde_json::Value::as_str);
        if text("/message/level") == Some("error") {
            eprintln!("{}", text("/message/rendered").unwrap_or_default());
        }
        let (Some(path), Some(manifest), Some(kind), Some(name)) = (
            text("/executable"),
            text("/manifest_path"),
            text("/target/kind/0"),
            text("/target/name"),
        ) else {
            continue;
        };
        if message.pointer("/profile/test").and_then(serde_json::Value::as_bool) != Some(true) {
            continue;
        }
        let target = match kind {
            "lib" => "lib",
            "test" => name,
            _ => continue,
        };
        let manifest = Path::new(manifest);
        let program = Program {
            path: path.into(),
            folder: manifest.parent().unwrap_or(tree).to_owned(),
        };
        programs.insert((package(manifest)?, target.to_owned()), program);
    }
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    for test in tests {
        if !programs.contains_key(&(test.package.clone(), test.target.clone())) {
            return Err(failed(format!("no tests `{} {}`", test.package, test.target)));
        }
    }
    Ok(programs)
}

/// Returns the name of the package with this manifest.
fn package(manifest: &Path) -> Result<String> {
    let list = |message: String| Error::List {
        path: manifest.to_owned(),
        message,
    };
    let table: toml::Table = read(manifest)?
        .parse()
        .map_err(|error: toml::de::Error| list(error.to_string()))?;
    let name = table.get("package").and_then(|package| package.get("name")?.as_str());
    name.map(str::to_owned).ok_or_else(|| list("no package".to_owned()))
}
