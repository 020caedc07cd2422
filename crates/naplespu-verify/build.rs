//! Computes a fingerprint of the prover, so that the cache does not return answers of another
//! prover.

use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The inputs of an answer besides the function and its code, relative to the root of the
/// repository: the prover, the semantics of the machine, the calling convention and the routines of
/// the runtime. A directory stands for all its files.
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
    // In a published package, the version replaces the files.
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

/// Adds a file, or all files of a directory in the order of their names.
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
