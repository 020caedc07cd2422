//! What is refused beside opcodes and types, and the command lines shown in the documents.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::{CompileError, Isa};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A construct, and CLIF that has it.
const LIMITS: &[(&str, &str)] = &[
    (
        "a handler with a context in an exception table",
        "function %f(i32) system_v {\n sig0 = () system_v\n fn0 = %g sig0\nblock0(v0: i32):\n try_call fn0(), sig0, block1, [ context v0, default: block1 ]\nblock1:\n return\n}",
    ),
    (
        "a stack limit that is not made at entry from symbols, `vmctx`, sums and loads",
        "function %f(i32) system_v {\n gv0 = vmctx\n stack_limit = gv0\nblock0(v0: i32):\n return\n}",
    ),
    (
        "a vector in big-endian order",
        "function %f(i32) -> i32x16 system_v {\nblock0(v0: i32):\n v1 = load.i32x16 aligned big v0\n return v1\n}",
    ),
    (
        "an unknown name `%__builtin_npu_...`",
        "function %f() system_v {\n sig0 = () system_v\n fn0 = %__builtin_npu_nonsense sig0\nblock0:\n call fn0()\n return\n}",
    ),
    (
        "a global value that is not a symbol",
        "function %f(i32) -> i32 system_v {\n gv0 = symbol %data\n gv1 = iadd_imm.i32 gv0, 4\nblock0(v0: i32):\n v1 = symbol_value.i32 gv1\n return v1\n}",
    ),
    (
        "a frame of more than 2^30 bytes",
        "function %f() -> i32 system_v {\n ss0 = explicit_slot 1073741825\nblock0:\n v0 = stack_addr.i32 ss0\n return v0\n}",
    ),
];

/// The list of these constructs with the message for each.
pub fn limits(isa: &Isa) -> String {
    let mut text = String::new();
    for (name, clif) in LIMITS {
        let functions =
            cranelift_reader::parse_functions(clif).unwrap_or_else(|error| panic!("{name}: {error}\n{clif}"));
        let mut ctx = Context::for_function(functions[0].clone());
        let message = match isa.compile(&mut ctx, &mut ControlPlane::default()) {
            Ok(_) => panic!("{name} is compiled:\n{clif}"),
            Err(CompileError::Unsupported(refusals)) => {
                let refusal = &refusals[0];
                let help = refusal.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                format!("{} is not supported on naplespu{help}", refusal.what)
            }
            Err(error @ CompileError::TooLarge(_)) => error.to_string(),
            Err(other) => panic!("{name}: {other}"),
        };
        let _ = writeln!(text, "  - {name}: `{}`", message.replace('`', "'"));
    }
    text
}

/// The documents whose command lines are run.
const DOCUMENTS: &[&str] = &["getting-started.md", "embedding.md", "td.md", "abi.md", "atomics.md"];

/// Runs every command line shown in a block of kind `console`. Files shown in a block of kind `clif NAME` are there under
/// this name. The block has to show the whole output, where a line `...` stands for any lines; with
/// `CRANELIFT_TEST_BLESS=1` output that does not fit is replaced.
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

/// What the command prints: standard error after standard output.
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

/// Whether the texts agree; a line `...` stands for any lines.
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
