//! The list of faults.

use crate::{Error, Result, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a fault is inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `from` and `to` are Rust expressions of the same type.
    #[default]
    Expression,
    /// `from` and `to` are Rust statements.
    Statements,
    /// `from` is the text of ISLE rules. `to` contains rules that are tried before them while
    /// `(fault FAULT)` holds.
    Isle,
    /// The text is replaced, and the copy is rebuilt for this fault.
    Rebuild,
}

/// One fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The name, unique in the whole list.
    pub name: String,
    /// The source file, relative to the root of the workspace. The topic may set a default.
    #[serde(default)]
    pub file: String,
    /// A text that occurs once in the file. The search for `from` starts after it.
    pub after: Option<String>,
    /// The original text.
    pub from: String,
    /// The faulty text.
    pub to: String,
    /// How the fault is inserted.
    #[serde(default)]
    pub kind: Kind,
    /// The tests that must notice it, the most likely first. If empty: the tests of the topic.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Why no test can notice it, for an equivalent fault.
    pub equivalent: Option<String>,
    /// The topic, which is the name of the list's file.
    #[serde(skip)]
    pub topic: String,
}

/// One file of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// The default source file.
    #[serde(default)]
    file: String,
    /// The default tests.
    #[serde(default)]
    tests: Vec<String>,
    fault: Vec<Fault>,
}

/// A test of the list: `PACKAGE TARGET [FILTER]`, where the target is `lib` or the name of an
/// integration test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Test {
    /// The package.
    pub package: String,
    /// `lib`, or the name of an integration test.
    pub target: String,
    /// A part of the tests' names. If empty: all tests.
    pub filter: String,
}

impl Test {
    /// Parses a test.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] unless the text has two or three words.
    pub fn parse(fault: &str, text: &str) -> Result<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(package), Some(target), filter, None) => Ok(Self {
                package,
                target,
                filter: filter.unwrap_or_default(),
            }),
            _ => Err(Error::Fault {
                name: fault.to_owned(),
                message: format!("`{text}` is not `PACKAGE TARGET [FILTER]`"),
            }),
        }
    }
}

impl std::fmt::Display for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.package, self.target)?;
        if !self.filter.is_empty() {
            write!(f, " {}", self.filter)?;
        }
        Ok(())
    }
}

impl Fault {
    /// Returns the tests that must notice it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] if the syntax of a test is wrong.
    pub fn tests(&self) -> Result<Vec<Test>> {
        self.tests.iter().map(|text| Test::parse(&self.name, text)).collect()
    }

    /// Creates an error about this fault.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::Fault {
            name: self.name.clone(),
            message: message.into(),
        }
    }
}

/// Reads all faults of a folder, ordered by topic.
///
/// # Errors
///
/// Returns an error if a file cannot be read or parsed, or if two faults have the same name.
pub fn load(folder: &Path) -> Result<Vec<Fault>> {
    let listing = std::fs::read_dir(folder).map_err(|error| Error::File {
        path: folder.to_owned(),
        error,
    })?;
    let mut files: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut faults = Vec::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for path in files {
        let topic: Topic = toml::from_str(&read(&path)?).map_err(|error| Error::List {
            path: path.clone(),
            message: error.to_string(),
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for mut fault in topic.fault {
            fault.topic.clone_from(&name);
            if fault.file.is_empty() {
                fault.file.clone_from(&topic.file);
            }
            if fault.tests.is_empty() {
                fault.tests.clone_from(&topic.tests);
            }
            if let Some(other) = names.insert(fault.name.clone(), name.clone()) {
                return Err(fault.error(format!("`{other}` has a fault with the same name")));
            }
            faults.push(fault);
        }
    }
    Ok(faults)
}
