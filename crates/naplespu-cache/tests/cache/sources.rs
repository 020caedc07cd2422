//! The fingerprint of the compiler covers every package of the workspace that it is built from.

#[path = "../../build/sources.rs"]
mod build;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the packages of this workspace that a package is built from, according to Cargo, with
/// the root files of their libraries and build scripts.
///
/// Only the manifests of the workspace are read: the registry may lack packages of other platforms.
fn built_from(package: &str) -> BTreeMap<String, Vec<PathBuf>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let packages = list(&metadata["packages"]);
    let mut open = vec![package.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(name) = open.pop() {
        let package = packages.iter().find(|package| package["name"] == *name).unwrap();
        let targets = list(&package["targets"]);
        let begins = targets.iter().filter(|target| {
            let kinds = list(&target["kind"]);
            kinds.iter().any(|kind| kind == "lib" || kind == "custom-build")
        });
        let begins = begins.map(|target| PathBuf::from(text(&target["src_path"])));
        if found.insert(name, begins.collect()).is_some() {
            continue;
        }
        for dependency in list(&package["dependencies"]) {
            let built = dependency["kind"].is_null() || dependency["kind"] == "build";
            if built && dependency["path"].is_string() {
                open.push(text(&dependency["name"]));
            }
        }
    }
    found
}

#[test]
fn every_package_of_the_compiler_is_in_the_key() {
    let sources = build::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let wanted = built_from("cranelift-naplespu");
    for name in ["cranelift-naplespu", "npu-mc", "npu-td", "tablegen", "tdgen"] {
        assert!(wanted.contains_key(name), "{name}");
    }
    let files: BTreeSet<PathBuf> = sources
        .files
        .iter()
        .map(|(package, path)| sources.packages[package].join(path))
        .collect();
    for (name, begins) in wanted {
        let folder = sources
            .packages
            .get(&name)
            .unwrap_or_else(|| panic!("{name} is not in the key"));
        for path in begins.into_iter().chain([folder.join("Cargo.toml")]) {
            let path = fs::canonicalize(path).unwrap();
            assert!(files.contains(&path), "{} is not in the key", path.display());
        }
    }
    // Other files that build scripts read.
    for path in [
        "../../isle/prelude.isle",
        "../../td/NaplesPU.td",
        "../../build/rules.rs",
    ] {
        let path = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        assert!(files.contains(&path), "{} is not in the key", path.display());
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn manifests_are_followed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = |name: &str, rest: &str| {
        write(
            &root.join(name).join("Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\n{rest}"),
        );
        write(&root.join(name).join("src/lib.rs"), "");
        write(&root.join(name).join("tests/t.rs"), "");
    };
    write(
        &root.join("Cargo.toml"),
        "[workspace]\n[workspace.dependencies]\nb = { path = \"b\" }\nlog = \"1\"\n",
    );
    package(
        "a",
        "[dependencies]\nb.workspace = true\nlog.workspace = true\n[dev-dependencies]\nf = { path = \"../f\" }\n",
    );
    package("b", "[build-dependencies]\nc = { path = \"../c\" }\n");
    package(
        "c",
        "include = [\"/src\", \"/*.td\"]\n[target.'cfg(unix)'.dependencies]\nd = { path = \"../d\" }\n",
    );
    package("d", "[target.x.build-dependencies]\na = { path = \"../a\" }\n");
    package("f", "");
    write(&root.join("c/x.td"), "");
    write(&root.join("c/x.md"), "");
    write(&root.join("d/data/x"), "");
    write(&root.join("d/.hidden"), "");
    let sources = build::read(&root.join("a")).unwrap();
    let files: Vec<String> = sources
        .files
        .iter()
        .map(|(package, path)| format!("{package}/{}", path.display()))
        .collect();
    assert_eq!(
        files,
        [
            "a/Cargo.toml",
            "a/src/lib.rs",
            "b/Cargo.toml",
            "b/src/lib.rs",
            "c/Cargo.toml",
            "c/src/lib.rs",
            "c/x.td",
            "d/Cargo.toml",
            "d/data/x",
            "d/src/lib.rs"
        ]
    );
    assert_eq!(sources.workspaces, [fs::canonicalize(root.join("Cargo.toml")).unwrap()]);

    package("c", "include = [\"src/**\"]\n");
    assert!(build::read(&root.join("a")).unwrap_err().contains("is not understood"));
    package("b", "[dependencies]\nnone.workspace = true\n");
    assert!(
        build::read(&root.join("a"))
            .unwrap_err()
            .contains("no dependency `none`")
    );
    fs::remove_file(root.join("b/Cargo.toml")).unwrap();
    assert!(build::read(&root.join("a")).is_err());
}
