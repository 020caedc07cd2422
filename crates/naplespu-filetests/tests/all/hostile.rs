//! Damaged filetests and random bytes: each file gets a verdict, without a panic of the compiler.

use cranelift_codegen::ir::Opcode;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use fastrand::Rng;
use naplespu_filetests::{Options, Verdict, file, runner};
use naplespu_reader::panics::{self, PanicIn};
use std::fs;
use std::path::Path;

/// Names of types, calling conventions and numbers; a name can replace another one of its group.
const GROUPS: [&[&str]; 3] = [
    &["i8", "i16", "i32", "i64", "i128", "f32", "f64", "i8x16", "i32x4", "dt0"],
    &[
        "system_v",
        "fast",
        "tail",
        "preserve_all",
        "windows_fastcall",
        "winch",
        "probestack",
        "apple_aarch64",
    ],
    &[
        "0",
        "1",
        "-1",
        "7",
        "31",
        "32",
        "255",
        "256",
        "65535",
        "2147483647",
        "-2147483648",
        "4294967295",
        "1048576",
        "99999999999999999999999999999999999999999",
    ],
];

/// Text with a meaning in some context.
const WORDS: [&str; 36] = [
    "v4294967295",
    "block4294967295",
    "explicit_slot",
    "notrap",
    "user1",
    "fn0",
    "sig0",
    "ss0",
    "gv0",
    "vmctx",
    "function",
    "{",
    "(",
    "->",
    ";",
    "%f",
    "0x1.0p3",
    "NaN",
    "é",
    "\u{0}",
    "}",
    ")",
    "u0:0",
    "\"",
    "i32x16",
    "dt0",
    "select",
    "load",
    "ireduce",
    "bitselect",
    "stack_addr",
    "brif",
    "trapnz",
    "call_indirect",
    "try_call",
    "sret",
];

/// Returns the words that can replace a word; the result is often valid CLIF.
fn alike(word: &str) -> Vec<String> {
    if let Ok(opcode) = word.parse::<Opcode>() {
        let all = Opcode::all().iter().filter(|other| other.format() == opcode.format());
        return all.map(Opcode::to_string).collect();
    }
    if word.parse::<IntCC>().is_ok() {
        return IntCC::all().iter().map(IntCC::to_string).collect();
    }
    if word.parse::<FloatCC>().is_ok() {
        return FloatCC::all().iter().map(FloatCC::to_string).collect();
    }
    for (prefix, count) in [("v", 60), ("block", 8)] {
        if word
            .strip_prefix(prefix)
            .is_some_and(|number| number.parse::<u32>().is_ok())
        {
            return (0..count).map(|number| format!("{prefix}{number}")).collect();
        }
    }
    let group = match word.parse::<u64>() {
        Ok(_) => GROUPS.last(),
        Err(_) => GROUPS.iter().find(|group| group.contains(&word)),
    };
    group
        .into_iter()
        .copied()
        .flatten()
        .map(|word| (*word).to_owned())
        .collect()
}

/// Returns the range of the word around a position.
fn word_around(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let start = bytes[..at].iter().rposition(|b| !is_word(b)).map_or(0, |p| p + 1);
    let length = bytes[at..].iter().position(|b| !is_word(b));
    start..length.map_or(bytes.len(), |length| at + length)
}

/// Changes a text at random.
fn damage(bytes: &mut Vec<u8>, random: &mut Rng) {
    let at = random.usize(..=bytes.len());
    match random.u8(..20) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(..at)),
        2 => {
            let junk: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
            bytes.splice(at..at, junk);
        }
        3 => drop(bytes.drain(at..(at + random.usize(..40)).min(bytes.len()))),
        4 => {
            let copy = bytes[at..(at + random.usize(..200)).min(bytes.len())].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let word = WORDS[random.usize(..WORDS.len())];
            bytes.splice(word_around(bytes, at), word.bytes());
        }
        _ => {
            for _ in 0..100 {
                let range = word_around(bytes, random.usize(..=bytes.len()));
                let words = alike(&String::from_utf8_lossy(&bytes[range.clone()]));
                if let Some(word) = random.choice(&words) {
                    bytes.splice(range, word.bytes());
                    return;
                }
            }
        }
    }
}

/// Tests a file. Panics of Cranelift's reader and interpreter are permitted.
fn check(name: &str, bytes: &[u8]) {
    let options = Options {
        max_steps: 20_000,
        ..Options::default()
    };
    let outcome = file::test("hostile", bytes, &options);
    let text = String::from_utf8_lossy(bytes);
    assert!(
        outcome.panics().all(|code| code != PanicIn::Target),
        "{name}:\n{}\n{text}",
        outcome.render()
    );
    assert_eq!(
        outcome.verdict == Verdict::Failed,
        !outcome.failures.is_empty(),
        "{name}:\n{text}"
    );
}

/// `NAPLESPU_HOSTILE=n` sets the number of cases; a failing case prints its seed.
#[test]
fn damaged_files_end_in_a_verdict() {
    let cases = std::env::var("NAPLESPU_HOSTILE").ok().and_then(|n| n.parse().ok());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = runner::find(&[
        root.join("../../filetests"),
        root.join("../naplespu-tools/tests/cli/inputs"),
    ]);
    let texts: Vec<Vec<u8>> = files.unwrap().iter().map(|file| fs::read(file).unwrap()).collect();
    let subtests = [
        "cat",
        "print-cfg",
        "verifier",
        "optimize",
        "compile",
        "disasm",
        "interpret",
        "run",
    ];
    panics::silence_caught();
    runner::with_large_stack(|| {
        for seed in 1..=cases.unwrap_or(600) {
            let mut random = Rng::with_seed(seed);
            let mut bytes = texts[random.usize(..texts.len())].clone();
            for _ in 0..=random.u8(..3) {
                damage(&mut bytes, &mut random);
            }
            let extra = format!("test {}\n", subtests[random.usize(..subtests.len())]);
            bytes.splice(0..0, extra.bytes());
            check(&format!("seed {seed}"), &bytes);
        }
    })
    .unwrap();
}

#[test]
fn long_and_deep_files_end_in_a_verdict() {
    panics::silence_caught();
    runner::with_large_stack(|| {
        for text in [
            "function %f() {".repeat(5_000),
            "(".repeat(100_000),
            format!("function %f({}) {{\nblock0:\n return\n}}", "i32, ".repeat(50_000)),
            format!(
                "test run\nfunction %{}() {{\nblock0:\n return\n}}",
                "f".repeat(1_000_000)
            ),
            format!(
                "test run\nfunction %f() {{\nblock0:\n{}    return\n}}\n; run: %f() == []",
                "    jump block1\nblock1:\n".repeat(2)
            ),
            format!("test compile\n{}", "; check: $(a=\n".repeat(100)),
            "test compile\n; regex: X=(((\nfunction %f() {\nblock0:\n return\n}".to_owned(),
        ] {
            check("a long file", text.as_bytes());
        }
    })
    .unwrap();
}
