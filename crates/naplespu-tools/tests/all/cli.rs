//! Tests the command line.
//!
//! Each file under `tests/cli/` is a session with its expected output; `TRYCMD=overwrite` rewrites
//! them.

use cranelift_naplespu::Stage;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn command_line() {
    trycmd::TestCases::new()
        .default_bin_name("clif-util")
        .case("tests/cli/*.trycmd")
        .case("tests/cli/*.toml");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn clif_util(arguments: &[&str], bless: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    command
        .args(arguments)
        .env("CRANELIFT_TEST_BLESS", if bless { "1" } else { "0" });
    command.output().unwrap()
}

#[test]
fn blessing_makes_a_precise_test_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.clif");
    let name = path.to_str().unwrap();
    let head = "test compile precise-output\ntarget naplespu\nexpect skipped\n\n";
    let function = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    v1 = iadd v0, v0\n    return v1\n}\n";
    fs::write(&path, format!("{head}{function}; run: %f(1) == 2\n; stale\n")).unwrap();
    let before = clif_util(&["test", name], false);
    assert_eq!(before.status.code(), Some(1));
    let blessed = clif_util(&["test", name], true);
    assert!(blessed.status.success());
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with(&format!("{head}{function}; run: %f(1) == 2\n\n; ")),
        "{text}"
    );
    assert!(!text.contains("stale") && text.contains("add_i32"), "{text}");
    assert!(clif_util(&["test", name], false).status.success());
    // A second run has nothing to rewrite.
    clif_util(&["test", name], true);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// Each stage has a line, and the shares are fractions of the total.
#[test]
fn time_by_stage() {
    let kernel = root().join("../../filetests/corpus/crc32_table.clif");
    let kernel = kernel.to_str().unwrap();
    for arguments in [
        ["compile", "-T", "--set", "opt_level=speed", kernel],
        ["test", "--time-passes", "-j", "2", kernel],
    ] {
        let output = clif_util(&arguments, false);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().filter_map(|line| {
            let [time, share, name] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
            Some((name, time.parse::<f64>().ok()?, share.parse::<f64>().ok()?))
        });
        let rows: Vec<(&str, f64, f64)> = rows.collect();
        let stages = Stage::ALL.iter().map(|stage| stage.name());
        let found = rows
            .iter()
            .map(|row| row.0)
            .filter(|name| stages.clone().any(|stage| stage == *name));
        assert!(found.eq(stages.clone()), "{text}");
        let (last, others) = rows.split_last().unwrap();
        let sum: f64 = others.iter().map(|row| row.1).sum();
        assert!(last.0 == "all" && last.1 > 0.0 && (sum - last.1).abs() < 1e-4, "{text}");
        assert!((last.2 - 100.0).abs() < 0.1, "{text}");
    }
}

#[test]
fn raw_bytes_go_to_the_output_file_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("code.bin");
    let kernel = root().join("../../filetests/corpus/crc32_table.clif");
    let [kernel, out] = [kernel.to_str().unwrap(), out.to_str().unwrap()];
    assert!(
        clif_util(&["compile", "--emit=bytes", "-o", out, kernel], false)
            .status
            .success()
    );
    let bytes = fs::read(out).unwrap();
    assert!(bytes.len() > 100 && bytes.len() % 4 == 0);
    let words = clif_util(&["compile", "--emit=bytes", kernel], false).stdout;
    let words: Vec<u32> = String::from_utf8(words)
        .unwrap()
        .lines()
        .map(|l| u32::from_str_radix(l, 16).unwrap())
        .collect();
    assert_eq!(bytes.len(), 4 * words.len());
    assert!(bytes.chunks(4).zip(&words).all(|(b, w)| b == w.to_le_bytes()));
    let listing = clif_util(&["disasm", out], false).stdout;
    let listing = String::from_utf8(listing).unwrap();
    assert_eq!(listing.lines().filter(|l| !l.ends_with(':')).count(), words.len());
    // The assembly gives the same bytes again.
    let source = clif_util(&["disasm", "--plain", out], false).stdout;
    let [assembly, again] = ["code.s", "again.bin"].map(|name| folder.path().join(name));
    fs::write(&assembly, source).unwrap();
    let [assembly, again] = [assembly.to_str().unwrap(), again.to_str().unwrap()];
    let done = clif_util(&["asm", "--format", "flat", "-o", again, assembly], false);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read(again).unwrap(), bytes);
}

#[test]
fn reports_have_a_line_for_each_function() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.tsv");
    let folders = ["call", "refused"].map(|folder| root().join("../../filetests").join(folder));
    let [one, other] = folders.each_ref().map(|folder| folder.to_str().unwrap());
    let arguments = ["test", one, other, "--report", report.to_str().unwrap(), "-j", "2"];
    let first = clif_util(&arguments, false);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stdout));
    let text = fs::read_to_string(&report).unwrap();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 4, "{line}");
        assert!(
            fields[1].starts_with('%') && ["passed", "refused"].contains(&fields[2]),
            "{line}"
        );
        assert_eq!(fields[3].is_empty(), fields[2] == "passed", "{line}");
    }
    let output = String::from_utf8(first.stdout).unwrap();
    let last: Vec<&str> = output.lines().rev().take(2).collect();
    assert!(
        last[1].starts_with("run lines: ") && last[0].ends_with(" skipped"),
        "{output}"
    );
    // The output does not depend on the threads.
    let again = clif_util(&["test", one, other, "-j", "1"], false);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), output);
}

/// A program reads, writes and lists files of a folder, and no others. A function without an
/// implementation is named.
#[test]
fn files_of_wasi_programs() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("host");
    fs::create_dir(&work).unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    fs::write(work.join("text.txt"), "some text").unwrap();
    let program = root().join("tests/cli/inputs/wasm/files.wasm");
    let dir = format!("{}::work", work.display());
    let output = clif_util(&["wasm", "--dir", &dir, program.to_str().unwrap()], false);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "create a folder: done\nwrite: done\nwrite at 2: done\nappend: done\nsize: done\n13 bytes, at 11\n\
                    work/./\nwork/../\nwork/out/\nwork/text.txt\nwork/out/./\nwork/out/../\nwork/out/upper.txt\n\
                    create again: File exists\nrename: done\nremove a folder: done\n\
                    remove it again: No such file or directory\nleave the folder: Permission denied\n\
                    another folder: Capabilities insufficient\nwrite to a folder: Is a directory\n\
                    link: Function not implemented\n";
    assert_eq!(text, expected);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("called `path_symlink` of WASI"), "{errors}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(fs::read_to_string(work.join("moved.txt")).unwrap(), "SO** TEXTend\n");
}

#[test]
fn completions_and_manual_pages() {
    let script = clif_util(&["completions", "bash"], false).stdout;
    let script = String::from_utf8(script).unwrap();
    assert!(script.contains("--profile-by") && script.contains("complete -F _clif__util"));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("pages");
    assert!(clif_util(&["man", pages.to_str().unwrap()], false).status.success());
    let page = fs::read_to_string(pages.join("clif-util-compile.1")).unwrap();
    assert!(page.contains("opt_level=none"), "{page}");
}
