//! Tests `--cache` of the command line: the output is the same with an empty, a full and a damaged
//! folder.

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
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/inputs");
    let module = inputs.join("wasm/small.wat").display().to_string();
    let invoke = ["--invoke", "sum", "1", "2"];
    for (args, file, after) in [
        (&["compile", "-D"][..], &file, &[][..]),
        (&["run", "-v"], &file, &[]),
        (&["test"], &file, &[]),
        (&["wasm"], &module, &invoke),
    ] {
        let plain = clif_util(&[args, &[file], after].concat());
        let cached = || clif_util(&[args, &["--cache", &cache_name, file], after].concat());
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
    // An object file depends on parts of the cached code that the other outputs do not show.
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

/// Tests the address of a store. Its entries equal those of a folder, if this build supports such
/// stores.
#[test]
fn an_address() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("fs://{}", folder.path().display());
    let clif = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/inputs/add.clif");
    let clif = clif.display().to_string();
    let compile = |place: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        command.args(["compile", "--cache", place, &clif]).output().unwrap()
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let output = compile(&address);
    let nowhere = compile("nowhere://secret@host/");
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(!text(&nowhere).contains("secret"), "{}", text(&nowhere));
    if cfg!(feature = "shared-cache") {
        assert_eq!(output, clif_util(&["compile", &clif]));
        assert_eq!(compile(&address), output);
        assert!(!entries(folder.path()).is_empty());
        assert!(
            text(&nowhere).contains("`nowhere://`") && text(&nowhere).contains("`fs`"),
            "{}",
            text(&nowhere)
        );
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output).contains("`fs://`") && text(&output).contains("shared-cache"),
            "{}",
            text(&output)
        );
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
