//! The real description with random damage: loading ends without a panic, either in tables or in
//! faults with a location.

use std::path::PathBuf;
use tablegen::{Options, Parsed};

const MUTATIONS: usize = 250;

/// The files that are damaged. The loader does not read selection patterns.
const FILES: &[&str] = &[
    "NaplesPURegisterInfo.td",
    "NaplesPUCallingConv.td",
    "NaplesPUSemantics.td",
    "NaplesPUHwOps.td",
    "NaplesPUInstrFormats.td",
    "NaplesPUHwLayouts.td",
    "NaplesPUOperands.td",
    "NaplesPUInstrInfo.td",
    "NaplesPUInstrMappings.td",
    "NaplesPUErrata.td",
    "NaplesPURelocs.td",
    "SearchableTable.td",
    "NaplesPUSystem.td",
    "NaplesPUPipeline.td",
    "NaplesPUSettings.td",
];

/// The replacements of damaged words.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "17",
    "4294967296",
    "?",
    "\"\"",
    "\"x\"",
    "GPR32",
    "VR512W",
    "S0",
    "[]",
    "dst",
    "$dst",
];

fn td() -> PathBuf {
    npu_td::directory().to_owned()
}

/// A small random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// Makes one change: replaces a word, exchanges two words, or removes or repeats a line.
fn damage(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let code: Vec<usize> = (0..lines.len())
        .filter(|i| !lines[*i].trim_start().starts_with("//") && !lines[*i].trim().is_empty())
        .collect();
    let at = code[random.below(code.len())];
    match random.below(8) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        kind => {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let line = lines[at].clone();
            let words: Vec<&str> = line.split(|c| !is_word(c)).filter(|w| !w.is_empty()).collect();
            if words.is_empty() {
                return lines.join("\n");
            }
            let old = words[random.below(words.len())];
            let new = if kind < 4 {
                words[random.below(words.len())]
            } else {
                WORDS[random.below(WORDS.len())]
            };
            lines[at] = line.replacen(old, new, 1);
        }
    }
    lines.join("\n")
}

fn parse_damaged(file: &str, text: String) -> Parsed {
    let mut options = Options {
        include_dirs: vec![td()],
        step_limit: 10_000_000,
        ..Options::default()
    };
    // The root file includes this file by its name in the folder.
    options.files.insert(td().join(file), text);
    tablegen::parse_file(&td().join("NaplesPU.td"), &options)
}

#[test]
fn damaged_descriptions_never_panic() {
    let mut random = Random(7);
    let (mut syntax, mut faulty, mut good) = (0, 0, 0);
    for i in 0..MUTATIONS {
        let file = FILES[i % FILES.len()];
        let text = std::fs::read_to_string(td().join(file)).unwrap();
        let mut text = damage(&text, &mut random);
        if i % 3 == 0 {
            text = damage(&text, &mut random);
        }
        let parsed = parse_damaged(file, text);
        if parsed.has_errors() {
            syntax += 1;
            continue;
        }
        let _ = tdgen::searchable_tables(&parsed);
        match tdgen::load(&parsed) {
            Ok(target) => {
                good += 1;
                assert!(!tdgen::emit_mc(&target).is_empty());
                assert!(!tdgen::emit_semantics(&target).is_empty());
            }
            Err(faults) => {
                faulty += 1;
                assert!(!faults.is_empty());
                for fault in faults {
                    assert!(fault.span().is_some(), "{fault:?}");
                    assert!(!tablegen::render(&fault, &parsed.sources).is_empty());
                }
            }
        }
    }
    println!("{syntax} with errors of the language, {faulty} with faults, {good} still good");
    assert!(syntax > 0 && faulty > 0 && good > 0);
}

#[test]
fn the_same_records_give_the_same_text() {
    let generate = || tdgen::build::all(&td()).unwrap();
    assert_eq!(generate(), generate());
}
