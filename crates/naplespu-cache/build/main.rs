//! Computes a fingerprint of the compiler, so that the cache does not return code of another
//! compiler.
//!
//! In a checkout the fingerprint covers the files of all packages that this one is built from
//! (`sources.rs`) and the lock file. A published package has no such directories; the versions in
//! `cranelift_naplespu::cache::COMPILER` replace the files, since a published version does not
//! change.

mod sources;

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match fingerprint() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the sources of the compiler cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fingerprint() -> Result<(), String> {
    let variable = |name: &str| std::env::var_os(name).ok_or_else(|| format!("{name} is not set"));
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let sources = sources::read(&own)?;
    let mut hash = Sha256::new();
    for folder in sources.packages.values() {
        for path in sources::top_level(folder)? {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for (package, path) in &sources.files {
        let name = format!("{package}/{}", path.display());
        add(&name, &sources.packages[package].join(path), &mut hash)?;
    }
    // The lock file of the build: that of a workspace above the target directory, or else the one
    // beside the packages.
    let above = out.ancestors().map(|folder| folder.join("Cargo.lock"));
    let beside = sources
        .workspaces
        .iter()
        .map(|manifest| manifest.with_file_name("Cargo.lock"));
    for manifest in &sources.workspaces {
        println!("cargo::rerun-if-changed={}", manifest.display());
        add("workspace", manifest, &mut hash)?;
    }
    if let Some(lock) = above.chain(beside).find(|path| path.is_file()) {
        println!("cargo::rerun-if-changed={}", lock.display());
        add("lock", &lock, &mut hash)?;
    }
    let text: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=NAPLESPU_SOURCES={text}");
    Ok(())
}

/// Adds a file.
fn add(name: &str, path: &Path, hash: &mut Sha256) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // The lengths separate the end of one file from the start of the next.
    for part in [name.as_bytes(), &bytes] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    Ok(())
}
