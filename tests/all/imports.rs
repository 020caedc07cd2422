//! Imports have one direction: no crate has an import cycle of more than four files.
//!
//! An edge leads from a file to each file of its crate that a `use` or a path with `crate::` or
//! `super::` names, up to the last module in the path. Unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of files in a cycle.
const MOST: usize = 4;

/// The path of a module in its crate.
type Module = Vec<String>;

/// Collects the modules of a crate with their files.
fn modules(folder: &Path, module: &Module, found: &mut BTreeMap<Module, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut own = module.clone();
        if path.is_dir() {
            if name != "bin" {
                own.push(name);
                modules(&path, &own, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            if !matches!(name.as_str(), "lib" | "main" | "mod") {
                own.push(name);
            }
            found.insert(own, path);
        }
    }
}

/// Returns the text without comments and unit tests. `super` in a module inside the file becomes
/// `self`.
fn plain(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        inside |= line.starts_with("mod ") && line.ends_with('{');
        inside &= line != "}";
        out += &match inside {
            true => line.replace("super::", "self::"),
            false => line.to_owned(),
        };
        out.push('\n');
    }
    out
}

/// Appends the paths of a `use` tree.
fn expand(tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        return paths.push(tree.to_owned());
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    expand(&format!("{prefix}{part}"), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths in a text.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in text.split(';') {
        let begins = statement.rfind("\nuse ").map(|at| at + 5);
        let begins = begins.or_else(|| statement.rfind(" use ").map(|at| at + 5));
        if let Some(tree) = begins.map(|at| &statement[at..]) {
            expand(tree, &mut found);
        }
    }
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        // A path before a brace is a tree, which was expanded already.
        let is_path = word.starts_with("crate::") || word.starts_with("super::");
        if is_path && !word.ends_with(':') {
            found.push(word.to_owned());
        }
    }
    found
}

/// Returns the module that a path names, seen from a module.
fn target(path: &str, from: &Module, all: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let mut segments = path
        .split("::")
        .map(|segment| segment.split_whitespace().next().unwrap_or_default())
        .peekable();
    let mut module = match segments.peek().copied()? {
        "crate" => Vec::new(),
        _ => from.clone(),
    };
    while let Some(&segment) = segments.peek() {
        match segment {
            "super" => _ = module.pop(),
            "crate" | "self" => {}
            _ => break,
        }
        segments.next();
    }
    let start = module.clone();
    for segment in segments {
        let mut next = module.clone();
        next.push(segment.to_owned());
        if !all.contains_key(&next) {
            break;
        }
        module = next;
    }
    // A path that names neither the crate nor a child module belongs to another crate.
    let named = ["crate", "self", "super"].iter().any(|word| path.starts_with(word));
    (module != *from && (named || module != start)).then_some(module)
}

/// Returns all modules that are reachable from a module.
fn reached(from: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut work = vec![from.clone()];
    while let Some(module) = work.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                work.push(next.clone());
            }
        }
    }
    found
}

#[test]
fn circles_of_imports_are_small() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut edges_in_all = 0;
    for folder in crates.chain([root.clone(), root.join("runtime"), root.join("td")]) {
        let mut all = BTreeMap::new();
        modules(&folder.join("src"), &Vec::new(), &mut all);
        let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, file) in &all {
            let text = plain(&fs::read_to_string(file).unwrap());
            let targets = paths(&text).into_iter().filter_map(|path| target(&path, module, &all));
            let targets: BTreeSet<Module> = targets.filter(|target| all.contains_key(target)).collect();
            edges_in_all += targets.len();
            edges.insert(module.clone(), targets);
        }
        let reach: BTreeMap<&Module, BTreeSet<Module>> =
            all.keys().map(|module| (module, reached(module, &edges))).collect();
        for module in all.keys() {
            let circle: Vec<String> = reach[module]
                .iter()
                .filter(|other| reach.get(other).is_some_and(|back| back.contains(module)))
                .map(|module| module.join("::"))
                .collect();
            let place = folder.display();
            assert!(
                circle.len() <= MOST,
                "{place}: a circle of {}: {}",
                circle.len(),
                circle.join(", ")
            );
        }
    }
    assert!(edges_in_all > 1000, "{edges_in_all} imports are found");
}
