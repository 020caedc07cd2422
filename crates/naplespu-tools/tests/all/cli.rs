//! Tests the command line, and the filetest runner on hostile input.
//!
//! Each file under `tests/cli/` is a session with its expected output; `TRYCMD=overwrite` rewrites
//! them.

use cranelift_naplespu::Stage;
use naplespu_filetests::{Options, Verdict, file, runner};
use naplespu_reader::panics::PanicIn;
use std::fs;
use std::path::{Path, PathBuf};
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

/// A refused or unexecuted function is a failure unless the header announces it. An announced
/// refusal must occur.
#[test]
fn nothing_is_left_out_unannounced() {
    let functions = "\nfunction %f(f32) -> i32 {\nblock0(v0: f32):\n    v1 = get_pinned_reg.i32\n    return v1\n}\n; run: %f(0x1.0) == 1\n\n\
                     function %g() {\nblock0:\n    return\n}\n; run: %g() == []\n";
    let verdict = |header: &str| {
        let outcome = file::test("t", format!("{header}\n{functions}").as_bytes(), &Options::default());
        assert_eq!(outcome.verdict == Verdict::Failed, !outcome.failures.is_empty());
        (
            outcome.verdict,
            outcome.lines.iter().map(|line| line.verdict).collect::<Vec<_>>(),
        )
    };
    use Verdict::{Failed, Passed, Refused, Skipped};
    assert_eq!(verdict("test run"), (Failed, vec![Failed, Passed]));
    assert_eq!(verdict("test run\nexpect refused %f"), (Passed, vec![Refused, Passed]));
    assert_eq!(
        verdict("test run\nexpect refused %f %g"),
        (Failed, vec![Refused, Passed])
    );
    assert_eq!(verdict("test run\nexpect refused %f %h").0, Failed);
    assert_eq!(verdict("test cat"), (Failed, vec![Failed, Failed]));
    assert_eq!(
        verdict("test cat\nexpect skipped\n; check: function"),
        (Passed, vec![Skipped, Skipped])
    );
    assert_eq!(verdict("test run\ntarget x86_64"), (Skipped, vec![Skipped, Skipped]));
}

/// The interpreter does not implement `umulhi` of i128 and panics.
#[test]
fn a_panic_is_a_flag() {
    let text = "test interpret\n\nfunction %f(i128) -> i128 {\nblock0(v0: i128):\n    v1 = FUNC v0, v0\n    return v1\n}\n; run: %f(1) == 1\n";
    let [bad, good] = ["umulhi", "isub"].map(|opcode| text.replace("FUNC", opcode));
    let outcome = file::test("t", bad.as_bytes(), &Options::default());
    assert_eq!(
        outcome.panics().collect::<Vec<_>>(),
        [PanicIn::Interpreter],
        "{}",
        outcome.render()
    );
    assert_eq!(outcome.verdict, Verdict::Failed);
    // The file fails without a panic.
    let outcome = file::test("t", good.as_bytes(), &Options::default());
    assert_eq!((outcome.panics().count(), outcome.verdict), (0, Verdict::Failed));
    let folder = tempfile::tempdir().unwrap();
    for (text, status) in [(bad, 101), (good, 1)] {
        let path = folder.path().join("t.clif");
        fs::write(&path, text).unwrap();
        for command in ["interpret", "test"] {
            let output = clif_util(&[command, path.to_str().unwrap()], false);
            assert_eq!(output.status.code(), Some(status), "{command}: {output:?}");
        }
    }
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
    let corpus = root().join("../../filetests/corpus");
    let arguments = [
        "test",
        corpus.to_str().unwrap(),
        "--report",
        report.to_str().unwrap(),
        "-j",
        "2",
    ];
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
    let again = clif_util(&["test", corpus.to_str().unwrap(), "-j", "1"], false);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), output);
}

/// The generator xorshift64*, which is the same on all hosts.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Changes a text at random.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(20) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(..at)),
        2 => {
            let junk: Vec<u8> = (0..random.below(20)).map(|_| random.below(256) as u8).collect();
            bytes.splice(at..at, junk);
        }
        3 => {
            let end = (at + random.below(40)).min(bytes.len());
            bytes.drain(at..end);
        }
        4 => {
            let end = (at + random.below(200)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => drop(replace_word(bytes, at, random.pick(&WORDS))),
        _ => replace_alike(bytes, random),
    }
}

/// Words with a meaning in some context.
const WORDS: [&str; 48] = [
    "v4294967295",
    "block4294967295",
    "i128",
    "f64",
    "i32x16",
    "dt0",
    "select",
    "load",
    "ireduce",
    "uextend",
    "bitselect",
    "clz",
    "bswap",
    "stack_addr",
    "explicit_slot",
    "brif",
    "jump",
    "return",
    "trap",
    "trapnz",
    "user1",
    "call",
    "call_indirect",
    "return_call",
    "try_call",
    "fn0",
    "sig0",
    "ss0",
    "gv0",
    "vmctx",
    "sret",
    "tail",
    "fast",
    "notrap",
    "function",
    "{",
    "}",
    "(",
    ")",
    "->",
    ";",
    "%f",
    "u0:0",
    "0x1.0p3",
    "NaN",
    "\"",
    "é",
    "\u{0}",
];

/// Groups of words that can replace one another; the result is often valid CLIF.
const ALIKE: [&[&str]; 7] = [
    &["i8", "i16", "i32", "i64", "i128", "f32", "f64", "i8x16", "i32x4"],
    &[
        "iadd",
        "isub",
        "imul",
        "band",
        "bor",
        "bxor",
        "ishl",
        "ushr",
        "sshr",
        "rotl",
        "rotr",
        "udiv",
        "sdiv",
        "urem",
        "srem",
        "umulhi",
        "smulhi",
        "smin",
        "umax",
        "uadd_sat",
        "fadd",
        "fcopysign",
        "iconcat",
        "band_not",
    ],
    &["eq", "ne", "slt", "sge", "ugt", "ule"],
    &[
        "uextend", "sextend", "ireduce", "bitcast", "clz", "ctz", "cls", "popcnt", "bitrev", "bnot", "ineg", "iabs",
        "bmask", "isplit",
    ],
    &["load", "uload8", "sload8", "uload16", "sload16", "uload32"],
    &["store", "istore8", "istore16", "istore32"],
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
];

const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "7",
    "31",
    "32",
    "255",
    "256",
    "65535",
    "1048576",
    "2147483647",
    "-2147483648",
    "4294967295",
    "99999999999999999999999999999999999999999",
];

/// Replaces the word around `at` and returns the old one.
fn replace_word(bytes: &mut Vec<u8>, at: usize, word: &str) -> Vec<u8> {
    let (start, end) = word_around(bytes, at);
    bytes.splice(start..end, word.bytes()).collect()
}

fn word_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let start = bytes[..at].iter().rposition(|b| !is_word(b)).map_or(0, |p| p + 1);
    let end = bytes[at..]
        .iter()
        .position(|b| !is_word(b))
        .map_or(bytes.len(), |p| at + p);
    (start, end)
}

/// Replaces a word of [`ALIKE`] by another one of its group.
fn replace_alike(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..100 {
        let at = random.below(bytes.len() + 1);
        let (start, end) = word_around(bytes, at);
        let old = String::from_utf8_lossy(&bytes[start..end]).into_owned();
        let new = if let Some(kind) = ALIKE.iter().find(|kind| kind.contains(&old.as_str())) {
            random.pick(kind).to_owned()
        } else if old.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok()) {
            format!("v{}", random.below(60))
        } else if old.strip_prefix("block").is_some_and(|n| n.parse::<u32>().is_ok()) {
            format!("block{}", random.below(8))
        } else if old.parse::<u64>().is_ok() {
            random.pick(&NUMBERS).to_owned()
        } else {
            continue;
        };
        replace_word(bytes, at, &new);
        return;
    }
}

/// Damaged kernels and random bytes give a verdict. `NAPLESPU_HOSTILE=n` sets the number of cases;
/// a failing case prints its seed.
#[test]
fn hostile_files_end_in_a_verdict() {
    let rounds: u64 = std::env::var("NAPLESPU_HOSTILE")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(600);
    let files: Vec<PathBuf> = runner::find(&[root().join("../../filetests"), root().join("tests/cli/inputs")]).unwrap();
    let texts: Vec<Vec<u8>> = files.iter().map(|f| fs::read(f).unwrap()).collect();
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
    super::silence_caught_panics();
    runner::with_large_stack(|| {
        for seed in 1..=rounds {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut bytes = texts[random.below(texts.len())].clone();
            for _ in 0..=random.below(3) {
                damage(&mut bytes, &mut random);
            }
            let extra = format!("test {}\n", random.pick(&subtests));
            bytes.splice(0..0, extra.bytes());
            let options = Options {
                max_steps: 20_000,
                ..Options::default()
            };
            let outcome = file::test("hostile", &bytes, &options);
            let rendered = outcome.render();
            // Panics of Cranelift's reader and interpreter are permitted.
            assert!(
                outcome.panics().all(|code| code != PanicIn::Target),
                "seed {seed}:\n{rendered}\n{}",
                String::from_utf8_lossy(&bytes)
            );
            assert_eq!(
                outcome.verdict == Verdict::Failed,
                !outcome.failures.is_empty(),
                "seed {seed}"
            );
        }
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
            file::test("hostile", text.as_bytes(), &Options::default());
        }
    })
    .unwrap();
}
