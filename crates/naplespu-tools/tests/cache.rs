//! `--cache` of the command line: the same output with an empty folder, a full one and a damaged one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn clif_util(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    let output = command.args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = folders
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

#[test]
fn output_is_the_same() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/corpus/crc32_table.clif");
    let file = file.display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let cache_name = cache.display().to_string();
    for args in [&["compile", "-D"][..], &["run", "-v"]] {
        let plain = clif_util(&[args, &[&file]].concat());
        let cached = || clif_util(&[args, &["--cache", &cache_name, &file]].concat());
        assert_eq!(cached(), plain);
        let whole = entries(&cache);
        assert!(!whole.is_empty());
        assert_eq!(cached(), plain);
        assert_eq!(entries(&cache), whole);
        for entry in &whole {
            let bytes = std::fs::read(entry).unwrap();
            std::fs::write(entry, &bytes[..bytes.len() - 1]).unwrap();
        }
        assert_eq!(cached(), plain);
    }
    // An object has more of the code than either of these shows.
    let object = folder.path().join("k.o").display().to_string();
    clif_util(&["compile", "--emit=obj", "-o", &object, "--cache", &cache_name, &file]);
    let fresh = folder.path().join("fresh.o").display().to_string();
    clif_util(&["compile", "--emit=obj", "-o", &fresh, &file]);
    assert_eq!(std::fs::read(object).unwrap(), std::fs::read(fresh).unwrap());
}

#[test]
fn a_folder_that_cannot_be_made() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    let clif = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/inputs/add.clif");
    let output = command
        .args(["compile", "--cache"])
        .arg(file.path())
        .arg(clif)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&file.path().display().to_string()), "{text}");
}
