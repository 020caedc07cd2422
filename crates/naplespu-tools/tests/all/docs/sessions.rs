//! The command lines in the documents.

use std::path::Path;
use std::process::Command;

/// The documents whose command lines are run.
const DOCUMENTS: &[&str] = &[
    "getting-started.md",
    "cli.md",
    "kernels.md",
    "embedding.md",
    "td.md",
    "abi.md",
    "atomics.md",
    "compute.md",
];

/// Runs every command line in a block of kind `console`. A block of kind `clif NAME` is a file with
/// this name. The block must contain the whole output, where a line `...` stands for any lines.
/// With `CRANELIFT_TEST_BLESS=1`, the test replaces output that differs.
#[test]
fn command_lines_do_what_the_documents_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1");
    let mut ran = 0;
    for document in DOCUMENTS {
        let folder = tempfile::tempdir().unwrap();
        let path = root.join("../../docs").join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut updated = String::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            updated += &format!("{line}\n");
            if let Some(name) = line.strip_prefix("```clif ") {
                let mut file = String::new();
                while let Some(line) = lines.next_if(|line| *line != "```") {
                    file += &format!("{line}\n");
                }
                std::fs::write(folder.path().join(name), &file).unwrap();
                updated += &file;
            } else if line == "```console" {
                while let Some(line) = lines.next_if(|line| *line != "```") {
                    let command = line
                        .strip_prefix("$ ")
                        .unwrap_or_else(|| panic!("{document}: `{line}` is not a command"));
                    let mut shown = String::new();
                    while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                        shown += &format!("{line}\n");
                    }
                    let printed = run(folder.path(), command);
                    ran += 1;
                    let fits = same(&shown, &printed);
                    assert!(
                        fits || bless,
                        "{document}: `{command}` prints\n{printed}\nbut is shown with\n{shown}"
                    );
                    updated += &format!("{line}\n{}", if fits { &shown } else { &printed });
                }
            }
        }
        if updated != text {
            std::fs::write(&path, updated).unwrap();
        }
    }
    assert!(ran > 8, "only {ran} command lines found");
}

/// Returns the output of the command: standard output, then standard error.
fn run(folder: &Path, command: &str) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("clif-util"), "cannot run `{command}`");
    let output = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(words)
        .current_dir(folder)
        .env("CRANELIFT_TEST_BLESS", "0")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .concat();
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Returns whether the texts agree, where a line `...` stands for any lines.
fn same(expected: &str, text: &str) -> bool {
    fn go(expected: &[&str], text: &[&str]) -> bool {
        match expected {
            [] => text.is_empty(),
            ["...", rest @ ..] => (0..=text.len()).any(|skip| go(rest, &text[skip..])),
            [line, rest @ ..] => {
                text.first().is_some_and(|first| first.trim_end() == line.trim_end()) && go(rest, &text[1..])
            }
        }
    }
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let text: Vec<&str> = text.trim_end().lines().collect();
    go(&expected, &text)
}
