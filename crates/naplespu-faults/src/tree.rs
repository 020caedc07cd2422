//! Writes a copy of the workspace with faults.

use crate::edit::{self, SWITCH};
use crate::list::{Fault, Kind};
use crate::{Error, Result, read, write};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of the workspace that are not copied.
const LEFT_OUT: &[&str] = &[".git", "target"];

/// The files that declare and implement the fault switch for rules of lowering.
const PRELUDE: &str = "isle/prelude.isle";
const PRELUDE_SWITCH: &str = "\n(decl pure partial fault (u32) Unit)\n(extern constructor fault fault)\n";
const CONTEXT: &str = "src/lower/isle.rs";
const CONTEXT_START: &str = "impl generated::Context for Lower<'_> {\n";
const CONTEXT_SWITCH: &str = "    fn fault(&mut self, number: u32) -> Option<Unit> {\n        crate::fault_switch::on(number).then_some(())\n    }\n\n";

/// Returns the root of the workspace that this program was built in.
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Returns the texts of all changed files with all faults except those of [`Kind::Rebuild`]. The
/// number of a fault is its position in the list, from 1.
///
/// # Errors
///
/// Returns an error if a fault does not match the sources.
pub fn edited(root: &Path, faults: &[Fault]) -> Result<BTreeMap<String, String>> {
    let mut by_file: BTreeMap<&str, Vec<(u32, &Fault)>> = BTreeMap::new();
    for (number, fault) in (1..).zip(faults) {
        let list = by_file.entry(&fault.file).or_default();
        if fault.kind != Kind::Rebuild {
            list.push((number, fault));
        } else {
            edit::place(fault, &read(&root.join(&fault.file))?)?;
        }
    }
    let mut texts = BTreeMap::new();
    let mut libraries: BTreeSet<String> = BTreeSet::new();
    let mut has_rules = false;
    for (file, list) in by_file {
        if list.is_empty() {
            continue;
        }
        texts.insert(file.to_owned(), edit::apply(&read(&root.join(file))?, &list)?);
        has_rules |= list.iter().any(|(_, fault)| fault.kind == Kind::Isle);
        libraries.insert(
            library(root, file).ok_or_else(|| list[0].1.error(format!("{file} does not belong to a library")))?,
        );
    }
    let text_of = |texts: &BTreeMap<String, String>, file: &str| match texts.get(file) {
        Some(text) => Ok(text.clone()),
        None => read(&root.join(file)),
    };
    for library in libraries {
        let text = text_of(&texts, &library)? + SWITCH;
        texts.insert(library, text);
    }
    if has_rules {
        let text = text_of(&texts, PRELUDE)? + PRELUDE_SWITCH;
        texts.insert(PRELUDE.to_owned(), text);
        let text = text_of(&texts, CONTEXT)?;
        let with_switch = text.replacen(CONTEXT_START, &format!("{CONTEXT_START}{CONTEXT_SWITCH}"), 1);
        if with_switch == text {
            return Err(Error::Command(format!(
                "{CONTEXT} has no `{}`",
                CONTEXT_START.trim_end()
            )));
        }
        texts.insert(CONTEXT.to_owned(), with_switch);
    }
    Ok(texts)
}

/// Returns the `src/lib.rs` of the package that contains a file.
fn library(root: &Path, file: &str) -> Option<String> {
    let mut folders = Path::new(file).ancestors().skip(1);
    let folder = folders.find(|folder| root.join(folder).join("Cargo.toml").is_file())?;
    let library = folder.join("src/lib.rs");
    root.join(&library)
        .is_file()
        .then(|| library.to_string_lossy().into_owned())
}

/// Writes the copy. Files with the right contents keep their modification times.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written.
pub fn write_copy(root: &Path, copy: &Path, texts: &BTreeMap<String, String>) -> Result<()> {
    let mut files = BTreeSet::new();
    collect(root, Path::new(""), &mut files)?;
    let mut old = BTreeSet::new();
    if copy.is_dir() {
        collect(copy, Path::new(""), &mut old)?;
    }
    for file in old.difference(&files) {
        remove(&copy.join(file))?;
    }
    for file in &files {
        let from = root.join(file);
        match texts.get(&*file.to_string_lossy()) {
            Some(text) => write(&copy.join(file), text.as_bytes())?,
            None => {
                let contents = std::fs::read(&from).map_err(|error| Error::File { path: from, error })?;
                write(&copy.join(file), &contents)?;
            }
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })
}

/// Collects all files below a folder, as paths relative to the root.
fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let path = root.join(folder);
    let fault = |error| Error::File {
        path: path.clone(),
        error,
    };
    for entry in std::fs::read_dir(&path).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let own = folder.join(entry.file_name());
        // In a git worktree, `.git` is a file.
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type().map_err(fault)?.is_dir() {
            collect(root, &own, files)?;
        } else {
            files.insert(own);
        }
    }
    Ok(())
}
