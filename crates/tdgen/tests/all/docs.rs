//! `docs/td-coverage.md`: the instructions that td's patterns select.
//!
//! Compares the text with the committed file; with `CRANELIFT_TEST_BLESS=1` writes it instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use tablegen::Options;
use tdgen::{Rule, named_instructions, selection_rules};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the hand-written rules as text without comments.
fn hand_written() -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(root().join("isle"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "isle"))
        .collect();
    files.sort();
    let mut rules = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split(';').next().unwrap_or_default())
            .collect();
        let text = lines.join("\n");
        // Each top-level form begins with a parenthesis at the start of a line.
        rules.extend(
            format!("\n{text}")
                .split("\n(")
                .filter(|form| form.starts_with("rule "))
                .map(str::to_owned),
        );
    }
    rules
}

/// Formats the first locations and the number of the others.
fn places(places: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 2;
    let mut shown: Vec<String> = places.iter().take(SHOWN).map(|place| format!("`{place}`")).collect();
    if places.len() > SHOWN {
        shown.push(format!("{} more", places.len() - SHOWN));
    }
    shown.join(", ")
}

/// Returns the location of a pattern: the last `defm` that made it, which names the instructions.
fn outermost(rule: &Rule) -> &str {
    rule.place.rsplit(" from ").next().unwrap_or_default()
}

#[test]
fn td_coverage() {
    let options = Options {
        include_dirs: vec![npu_td::directory().to_owned()],
        ..Options::default()
    };
    let parsed = tablegen::parse_file(&npu_td::directory().join("NaplesPU.td"), &options);
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let rules = selection_rules(&parsed)
        .unwrap_or_else(|faults| panic!("{}", tdgen::build::render_all(&faults, &parsed.sources)));

    let mut by_instruction: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for rule in &rules {
        for name in &rule.instructions {
            by_instruction.entry(name).or_default().insert(outermost(rule));
        }
    }
    let opcodes: BTreeSet<&str> = rules.iter().filter_map(|rule| rule.opcode.as_deref()).collect();
    let instructions = parsed.records.defs_derived_from("Instruction");
    let names: BTreeSet<&str> = instructions.iter().map(|record| record.name()).collect();
    let by_hand = hand_written();
    let naming = |text: &String| !named_instructions(text, |word| names.contains(word)).is_empty();
    let by_hand_naming = by_hand.iter().filter(|rule| naming(rule)).count();
    let made_naming = rules.iter().filter(|rule| !rule.instructions.is_empty()).count();

    let mut text = String::from(
        "# What td selects\n\n\
         Generated from `td/` and `isle/` by `cargo test --test all docs::`; do not edit.\n\n\
         ## Instructions\n\n\
         The locations of the patterns that select each instruction, or the reason why none does. A pattern in a\n\
         multiclass has the location of the `defm` that names the instruction.\n\n\
         | instruction | patterns |\n|---|---|\n",
    );
    let mut unexplained = Vec::new();
    for record in &instructions {
        let reason = record.string("NoPattern").unwrap();
        let what = match by_instruction.get(record.name()) {
            Some(found) => places(found),
            None => {
                if reason.is_empty() {
                    unexplained.push(record.name());
                }
                format!("none: {reason}")
            }
        };
        let _ = writeln!(text, "| `{}` | {what} |", record.name());
    }
    let list: Vec<String> = opcodes.iter().map(|opcode| format!("`{opcode}`")).collect();
    let _ = write!(
        text,
        "\n## CLIF instructions\n\n{} opcodes have rules from td:\n{}.\n\n\
         ## Rules by origin\n\n\
         | rules | all | with a machine instruction |\n|---|---|---|\n\
         | from td | {} | {made_naming} |\n\
         | hand-written | {} | {by_hand_naming} |\n\n\
         {} of {} instructions have a pattern.\n",
        opcodes.len(),
        list.join(", "),
        rules.len(),
        by_hand.len(),
        by_instruction.len(),
        instructions.len(),
    );
    assert!(
        unexplained.is_empty(),
        "neither pattern nor reason (`NoPattern`): {unexplained:?}"
    );

    let path = root().join("docs/td-coverage.md");
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/td-coverage.md does not match td; CRANELIFT_TEST_BLESS=1 cargo test --test all docs:: rewrites it"
    );
}
