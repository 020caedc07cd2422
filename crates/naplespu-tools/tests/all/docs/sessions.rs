//! Refusals that do not depend on opcodes and types, and the command lines in the documents.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::{CompileError, Isa};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A construct, the reason for its refusal, and CLIF that contains it.
const LIMITS: &[(&str, &str, &str)] = &[
    (
        "A handler whose context is a vector that no register holds",
        "its parts have no single place in the frame",
        "function %f(i64x2) system_v {\n sig0 = () system_v\n fn0 = %g sig0\nblock0(v0: i64x2):\n try_call fn0(), sig0, block1, [ context v0, default: block1 ]\nblock1:\n return\n}",
    ),
    (
        "A stack limit that is not made at entry from symbols, `vmctx`, sums and loads",
        "nothing else is there at entry",
        "function %f(i32) system_v {\n gv0 = vmctx\n stack_limit = gv0\nblock0(v0: i32):\n return\n}",
    ),
    (
        "A part that a vector of dynamic size does not have",
        "the machine's scale is four",
        "function %f(i32) -> i32x4 system_v {\n gv0 = dyn_scale_target_const.i32x4\n dt0 = i32x4*gv0\nblock0(v0: i32):\n v1 = splat.dt0 v0\n v2 = extract_vector v1, 4\n return v2\n}",
    ),
    (
        "A conversion between types with different numbers of lanes",
        "CLIF's verifier lets it pass and says nothing of its meaning",
        "function %f(f32x16) -> i32 system_v {\nblock0(v0: f32x16):\n v1 = fcvt_to_sint_sat.i32 v0\n return v1\n}",
    ),
    (
        "The address of a symbol as something else than an integer of 32, 64 or 128 bits",
        "it has 32 bits",
        "function %f() -> i16 system_v {\n gv0 = symbol %data\nblock0:\n v1 = symbol_value.i16 gv0\n return v1\n}",
    ),
    (
        "The value of a global value that is not a symbol",
        "only symbols have one when the program is linked",
        "function %f(i32) -> i32 system_v {\n gv0 = symbol %data\n gv1 = iadd_imm.i32 gv0, 4\nblock0(v0: i32):\n v1 = symbol_value.i32 gv1\n return v1\n}",
    ),
    (
        "A name `%__builtin_npu_...` that is not in [intrinsics.md](intrinsics.md), or one that is there but is not just called",
        "it is an instruction and has no code",
        "function %f() system_v {\n sig0 = () system_v\n fn0 = %__builtin_npu_nonsense sig0\nblock0:\n call fn0()\n return\n}",
    ),
    (
        "A frame of more than 2^30 bytes",
        "offsets in it have to fit 32 bits with a sign, whatever is added",
        "function %f() -> i32 system_v {\n ss0 = explicit_slot 1073741825\nblock0:\n v0 = stack_addr.i32 ss0\n return v0\n}",
    ),
];

/// Returns the list of these constructs with their messages.
pub fn limits(isa: &Isa) -> String {
    let mut text = String::new();
    for (name, why, clif) in LIMITS {
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
        let _ = writeln!(text, "- {name}, because {why}: `{}`", message.replace('`', "'"));
    }
    text
}

/// The documents whose command lines are run.
const DOCUMENTS: &[&str] = &[
    "getting-started.md",
    "kernels.md",
    "embedding.md",
    "td.md",
    "abi.md",
    "atomics.md",
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
