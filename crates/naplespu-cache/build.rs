//! A fingerprint of the compiler: what is compiled by another one is not found in a cache.
//!
//! In a checkout these are the sources of the compiler, the target description and the lock file, which changes when a dependency does. In a package
//! the version stands for all of them, as a published one does not change.

use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What decides on code, from the root of the repository. A folder stands for all its files.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "src",
    "isle",
    "td",
    "crates/npu-mc",
    "crates/tdgen/src",
];

fn main() -> ExitCode {
    match fingerprint() {
        Ok(text) => {
            println!("cargo::rustc-env=NAPLESPU_COMPILER={text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the sources of the compiler cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fingerprint() -> io::Result<String> {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let root = own.join("../..");
    let mut hash = Sha256::new();
    hash.update(std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    // In a package there is no compiler two folders above.
    if root.join("isle/prelude.isle").is_file() {
        for source in SOURCES {
            let path = root.join(source);
            println!("cargo::rerun-if-changed={}", path.display());
            add(&path, source, &mut hash)?;
        }
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds a file, or all of a folder in the order of the names.
fn add(path: &Path, name: &str, hash: &mut Sha256) -> io::Result<()> {
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            add(&entry.path(), &format!("{name}/{}", entry.file_name().display()), hash)?;
        }
        return Ok(());
    }
    if !path.exists() {
        return Ok(());
    }
    let bytes = fs::read(path)?;
    // Lengths keep the end of one file and the start of the next apart.
    for part in [name.as_bytes(), &bytes] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    Ok(())
}
