//! Finds the packages that a package is built from, and their files, by the manifests.
//!
//! # Contract
//!
//! [`read`] follows path dependencies and path build dependencies of a manifest, including
//! `workspace = true`, transitively. The files of a package are those that Cargo would pack: the
//! entries of `include`, or everything except tests, benches, examples and hidden files. A manifest
//! with unknown syntax is an error, so that nothing is omitted silently.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The sources of a package.
#[derive(Debug, Default)]
pub struct Sources {
    /// The directories of the packages, by name.
    pub packages: BTreeMap<String, PathBuf>,
    /// All files, ordered by package and path in the package.
    pub files: Vec<(String, PathBuf)>,
    /// The manifests of workspaces that the packages inherit from.
    pub workspaces: Vec<PathBuf>,
}

/// Top-level entries of a package without `include` that do not contribute to its library and build
/// script.
const NOT_BUILT: [&str; 4] = ["benches", "examples", "target", "tests"];

/// Reads the manifest in a directory and those of its dependencies.
pub fn read(folder: &Path) -> Result<Sources, String> {
    let mut sources = Sources::default();
    let mut open = vec![canonical(folder)?];
    while let Some(folder) = open.pop() {
        let manifest = table(&folder.join("Cargo.toml"))?;
        let name = manifest.get("package").and_then(|package| package.get("name"));
        let name = name.and_then(Value::as_str);
        let name = name.ok_or_else(|| format!("{}: no name of a package", folder.display()))?;
        if sources.packages.insert(name.to_owned(), folder.clone()).is_some() {
            continue;
        }
        let (root, workspace) = workspace(&folder, &manifest)?;
        if let Some(root) = &root
            && !sources.workspaces.contains(root)
        {
            sources.workspaces.push(root.clone());
        }
        for dependencies in dependency_tables(&manifest) {
            for (key, dependency) in dependencies {
                let inherited = dependency.get("workspace").and_then(Value::as_bool) == Some(true);
                let (base, dependency) = match (inherited, &root) {
                    (false, _) => (folder.as_path(), Some(dependency)),
                    (true, Some(root)) => (root.parent().unwrap_or(&folder), workspace.get(key)),
                    (true, None) => return Err(format!("{name}: `{key}` is of a workspace that does not exist")),
                };
                let dependency =
                    dependency.ok_or_else(|| format!("{name}: the workspace has no dependency `{key}`"))?;
                if let Some(path) = dependency.get("path").and_then(Value::as_str) {
                    open.push(canonical(&base.join(path))?);
                }
            }
        }
    }
    for (name, folder) in sources.packages.clone() {
        for top in top_level(&folder)? {
            add(&name, &folder, &top, &mut sources.files)?;
        }
    }
    sources.files.sort();
    sources.files.dedup();
    Ok(sources)
}

/// Returns the manifest of the workspace of a package, if any, and its dependencies.
fn workspace(folder: &Path, manifest: &Table) -> Result<(Option<PathBuf>, Table), String> {
    let of = |manifest: &Table| {
        let workspace = manifest.get("workspace")?;
        let dependencies = workspace.get("dependencies").and_then(Value::as_table);
        Some(dependencies.cloned().unwrap_or_default())
    };
    if let Some(dependencies) = of(manifest) {
        return Ok((Some(folder.join("Cargo.toml")), dependencies));
    }
    for above in folder.ancestors().skip(1) {
        let path = above.join("Cargo.toml");
        if path.is_file()
            && let Some(dependencies) = of(&table(&path)?)
        {
            return Ok((Some(path), dependencies));
        }
    }
    Ok((None, Table::new()))
}

/// Returns the dependency tables for a library and its build script.
fn dependency_tables(manifest: &Table) -> Vec<&Table> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets
        .into_iter()
        .flat_map(|targets| targets.values().filter_map(Value::as_table));
    let owners = std::iter::once(manifest).chain(targets);
    let named = owners.flat_map(|owner| ["dependencies", "build-dependencies"].map(|name| owner.get(name)));
    named.flatten().filter_map(Value::as_table).collect()
}

/// Returns the entries of a package's directory that it is built from.
pub fn top_level(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let manifest = table(&folder.join("Cargo.toml"))?;
    let include = manifest.get("package").and_then(|package| package.get("include"));
    let mut list = vec![folder.join("Cargo.toml")];
    for path in entries(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let taken = match include.and_then(Value::as_array) {
            Some(patterns) => {
                let mut taken = false;
                for pattern in patterns {
                    taken |= matches(pattern, &name).ok_or_else(|| {
                        format!(
                            "{}: the pattern {pattern:?} of `include` is not understood",
                            folder.display()
                        )
                    })?;
                }
                taken
            }
            None => !name.starts_with('.') && !NOT_BUILT.contains(&name.as_str()),
        };
        if taken {
            list.push(path);
        }
    }
    Ok(list)
}

/// Returns whether a pattern `/name` or `/*.extension` matches a name; `None` for other patterns.
fn matches(pattern: &Value, name: &str) -> Option<bool> {
    let pattern = pattern.as_str()?.strip_prefix('/')?;
    match pattern.strip_prefix('*') {
        Some(ending) if !ending.contains(['*', '/', '?', '[']) => Some(name.ends_with(ending)),
        None if !pattern.contains(['*', '/', '?', '[']) => Some(name == pattern),
        _ => None,
    }
}

fn add(package: &str, folder: &Path, path: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<(), String> {
    if path.is_dir() {
        for entry in entries(path)? {
            add(package, folder, &entry, files)?;
        }
    } else {
        files.push((package.to_owned(), path.strip_prefix(folder).unwrap_or(path).to_owned()));
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let entries = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
    entries.collect()
}

fn canonical(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn table(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}
