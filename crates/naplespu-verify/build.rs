//! A fingerprint of the prover: answers of another one are not found in a cache.

use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What an answer depends on beside the function and its code, from the root of the repository: the prover, the meaning of the
/// machine, the calling convention and the routines of the runtime. A folder stands for all its files.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "crates/naplespu-verify/src",
    "crates/npu-mc/src",
    "crates/tdgen/src",
    "src/abi",
    "src/runtime.rs",
    "td",
];

fn main() -> ExitCode {
    match fingerprint() {
        Ok(text) => {
            println!("cargo::rustc-env=NAPLESPU_PROVER={text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the sources of the prover cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fingerprint() -> io::Result<String> {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let root = own.join("../..");
    let mut hash = Sha256::new();
    hash.update(std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    // In a package the version stands for all of them.
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
            let file = entry.file_name();
            let name = format!("{name}/{}", file.to_string_lossy());
            add(&entry.path(), &name, hash)?;
        }
        return Ok(());
    }
    let text = fs::read(path)?;
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
    Ok(())
}
