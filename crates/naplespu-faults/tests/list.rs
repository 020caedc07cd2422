//! Checks that the list of faults matches the sources: each text occurs once, each test exists, and
//! each topic has enough faults.

use naplespu_faults::list::{self, Fault, Kind, Test};
use naplespu_faults::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn faults() -> Vec<Fault> {
    list::load(&tree::workspace().join("crates/naplespu-faults/faults")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the folder of a package.
fn package(root: &Path, name: &str) -> Option<PathBuf> {
    let places = [
        root.to_owned(),
        root.join("crates").join(name),
        root.join("runtime"),
        root.join("td"),
    ];
    let named = format!("name = \"{name}\"");
    places
        .into_iter()
        .find(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains(&named)))
}

#[test]
fn every_fault_can_be_put_in() {
    let texts = tree::edited(&tree::workspace(), &faults()).unwrap_or_else(|error| panic!("{error}"));
    assert!(texts.len() > 50, "{} files", texts.len());
    // The rule of a fault is inserted after the original text, so that text must contain whole
    // rules.
    let depth = |text: &str| text.matches('(').count().abs_diff(text.matches(')').count());
    let rules = faults().into_iter().filter(|fault| fault.kind == Kind::Isle);
    let open: Vec<String> = rules
        .filter(|fault| depth(&fault.from) != 0)
        .map(|fault| fault.name)
        .collect();
    assert!(open.is_empty(), "parts of rules: {}", open.join(", "));
}

#[test]
fn every_test_exists() {
    let root = tree::workspace();
    let mut tests = BTreeSet::new();
    for fault in faults() {
        let own = fault.tests().unwrap_or_else(|error| panic!("{error}"));
        assert!(!own.is_empty(), "{}: no tests", fault.name);
        tests.extend(own);
    }
    let exists = |test: &Test| {
        let Some(folder) = package(&root, &test.package) else {
            return false;
        };
        let named = folder.join("tests").join(&test.target);
        match test.target.as_str() {
            "lib" => folder.join("src/lib.rs").is_file(),
            _ => named.with_extension("rs").is_file() || named.join("main.rs").is_file(),
        }
    };
    let missing: Vec<String> = tests.iter().filter(|test| !exists(test)).map(Test::to_string).collect();
    assert!(missing.is_empty(), "no such tests: {}", missing.join(", "));
}

#[test]
fn all_topics_have_faults() {
    let mut topics: BTreeMap<String, usize> = BTreeMap::new();
    let faults = faults();
    for fault in &faults {
        *topics.entry(fault.topic.clone()).or_default() += 1;
    }
    assert!(faults.len() >= 200, "{} faults", faults.len());
    let few: Vec<_> = topics.iter().filter(|(_, count)| **count < 5).collect();
    assert!(few.is_empty(), "few faults: {few:?}");
}
