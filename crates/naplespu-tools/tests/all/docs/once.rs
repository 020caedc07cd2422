//! The commands of the README build no crate twice.
//!
//! The build script of the runtime runs the compiler, so Cranelift and the compiler are
//! dependencies of a build script and of programs. Cargo builds them once if features and profile
//! are the same for both; the manifest of the runtime ensures that.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Returns Cargo's build plan as JSON.
fn unit_graph(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--unit-graph", "-Z", "unstable-options"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        // Only nightly toolchains print the graph without this variable.
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Returns the libraries that are built more than once, with the difference between the first two
/// units.
fn built_twice(graph: &str) -> Vec<String> {
    let graph: Value = serde_json::from_str(graph).unwrap();
    let units = graph["units"].as_array().unwrap();
    let mut libraries: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for unit in units {
        let kinds = unit["target"]["kind"].as_array().unwrap();
        let library = kinds.iter().any(|kind| kind == "lib" || kind == "proc-macro");
        if library && unit["mode"] == "build" {
            let name = (
                unit["pkg_id"].as_str().unwrap(),
                unit["target"]["name"].as_str().unwrap(),
            );
            libraries.entry(name).or_default().push(unit);
        }
    }
    assert!(libraries.contains_key(&library_of(&libraries, "cranelift_codegen")));
    let twice = libraries.iter().filter(|(_, units)| units.len() > 1);
    twice
        .map(|((package, _), units)| format!("{package}: {}", difference(units[0], units[1])))
        .collect()
}

/// Returns the entry of the library with this name.
fn library_of<'a>(libraries: &BTreeMap<(&'a str, &'a str), Vec<&Value>>, name: &str) -> (&'a str, &'a str) {
    let mut of_name = libraries.keys().filter(|(_, library)| *library == name);
    *of_name.next().unwrap_or_else(|| panic!("{name} is not in the graph"))
}

/// Describes the difference between two units of a library.
fn difference(first: &Value, second: &Value) -> String {
    let features = |unit: &Value| -> BTreeSet<String> {
        let all = unit["features"].as_array().unwrap();
        all.iter().map(|feature| feature.as_str().unwrap().to_owned()).collect()
    };
    let features: Vec<_> = features(first)
        .symmetric_difference(&features(second))
        .cloned()
        .collect();
    if !features.is_empty() {
        return format!("the features {}", features.join(", "));
    }
    if first["profile"] != second["profile"] {
        return format!("the profiles {} and {}", first["profile"], second["profile"]);
    }
    "a dependency".to_owned()
}

#[test]
fn a_crate_is_built_once() {
    for arguments in [
        ["build", "--release", "--bin", "clif-util"].as_slice(),
        &["test", "--no-run"],
        &["clippy", "--workspace", "--all-targets"],
    ] {
        let twice = built_twice(&unit_graph(arguments));
        assert!(
            twice.is_empty(),
            "`cargo {}` builds twice:\n{}",
            arguments.join(" "),
            twice.join("\n")
        );
    }
}
