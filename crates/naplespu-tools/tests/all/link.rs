//! Tests `compile`, `asm`, `link` and `sim` in sequence, where their output is not text to compare;
//! `tests/cli/link.trycmd` has the other tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

const KERNEL: &str = include_str!("../cli/link.in/k.clif");
const MAIN: &str = include_str!("../cli/link.in/m.s");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("k.clif"), KERNEL).unwrap();
        fs::write(folder.path("m.s"), MAIN).unwrap();
        folder.good("compile --emit=obj -o k.o k.clif");
        folder.good("asm --emit=obj -o m.o m.s");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command line in the folder. Returns the exit status, standard output and standard
    /// error.
    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        let output = command
            .args(line.split(' '))
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn good(&self, line: &str) -> String {
        let (status, out, faults) = self.run(line);
        assert!(status == Some(0) && faults.is_empty(), "{line}: {faults}");
        out
    }

    fn refused(&self, line: &str) -> String {
        let (status, _, faults) = self.run(line);
        assert_eq!(status, Some(1), "{line}");
        faults
    }
}

#[test]
fn archives_are_listed_by_members() {
    let folder = Folder::new();
    fs::write(folder.path("lib.a"), archive(&folder, &["m.o", "k.o"])).unwrap();
    let symbols = folder.good("nm lib.a");
    assert!(
        symbols.starts_with("\nm.o:\n00000000 T main\n00000000 d out\n         U sum\n\nk.o:\n"),
        "{symbols}"
    );
    let sizes = folder.good("size lib.a");
    assert!(
        sizes.contains("\n     48\t      4\t      0\t     52\t     34\tm.o (ex lib.a)\n"),
        "{sizes}"
    );
    let dump = folder.good("objdump -h lib.a");
    assert!(
        dump.starts_with("In archive lib.a:\n\nm.o:     file format elf32-naplespu\n"),
        "{dump}"
    );
    folder.good("link m.o lib.a -o p.elf");
    fs::write(folder.path("m.o"), b"nothing").unwrap();
    fs::write(folder.path("bad.a"), archive(&folder, &["k.o", "m.o"])).unwrap();
    for tool in ["nm", "size", "objdump -h"] {
        let faults = folder.refused(&format!("{tool} bad.a"));
        assert!(
            faults.starts_with("error: bad.a: offset ") && faults.contains("m.o: "),
            "{faults}"
        );
    }
}

/// A trap in the third call and stores to read-only memory are reported with position and callers.
#[test]
fn traps_and_forbidden_stores_have_a_back_trace() {
    let folder = Folder::new();
    let clif = "function %third(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 100
    v2 = udiv v1, v0
    return v2
}

function %second(i32, i32) -> i32 {
    fn0 = %third(i32) -> i32
block0(v0: i32, v1: i32):
    v2 = isub v0, v1
    v3 = call fn0(v2)
    v4 = iadd v3, v1
    return v4
}

function %first(i32) -> i32 {
    fn0 = %second(i32, i32) -> i32
block0(v0: i32):
    v1 = call fn0(v0, v0)
    v2 = iadd v1, v0
    return v2
}

function %poke(i32) -> i32 {
    gv0 = symbol %third
block0(v0: i32):
    v1 = symbol_value.i32 gv0
    store v0, v1+4
    return v0
}
";
    fs::write(folder.path("t.clif"), clif).unwrap();
    for (name, callee) in [("trap", "first"), ("poke", "poke")] {
        fs::write(folder.path("t.s"), MAIN.replace("sum", callee)).unwrap();
        folder.good("asm --emit=obj -o t.o t.s");
        // An inlined function has no frame.
        for settings in ["", " --set opt_level=speed --disable-pass inline"] {
            folder.good(&format!("compile --emit=obj -o c.o t.clif{settings}"));
            folder.good(&format!("link t.o c.o -o {name}.elf --gc-sections"));
            for options in ["", " --coherent", " --threads 2", " --timing"] {
                let (status, _, faults) = folder.run(&format!("sim {name}.elf{options}"));
                assert_eq!(status, Some(if name == "trap" { 134 } else { 1 }));
                let places: Vec<&str> = faults
                    .lines()
                    .skip(1)
                    .take_while(|line| line.starts_with("  #"))
                    .map(|line| line.split(" in ").nth(1).unwrap())
                    .collect();
                let wanted = match name {
                    "trap" => vec![
                        "third+ at t.clif:4",
                        "second+ at t.clif:12",
                        "first+ at t.clif:20",
                        "main+",
                    ],
                    _ => vec!["poke+ at t.clif:29", "main+"],
                };
                let plain: Vec<String> = places.iter().map(|place| without_distance(place)).collect();
                assert_eq!(plain, wanted, "{faults}");
                let first = faults.lines().next().unwrap();
                match name {
                    "trap" => assert_eq!(first, "error: thread 0 trapped: int_divz"),
                    _ => assert!(
                        first.starts_with("error: thread 0 stores to 0x0000")
                            && first.ends_with(" in `.text`, `third`+0x4, which is read-only"),
                        "{first}"
                    ),
                }
            }
        }
    }
    // The trace contains source positions.
    let (_, trace, _) = folder.run("sim trap.elf --trace");
    assert!(trace.contains("\n# first at t.clif:20\n"), "{trace}");
    // An image has neither symbols nor protected sections.
    folder.good("objcopy poke.elf poke.hex");
    folder.good("sim poke.hex");
    // Damaged tables are skipped with a warning.
    let mut bytes = fs::read(folder.path("trap.elf")).unwrap();
    let at = bytes.windows(3).position(|part| part == b"zR\0").unwrap();
    bytes[at - 9] = 0xff;
    fs::write(folder.path("bad.elf"), bytes).unwrap();
    let (status, _, faults) = folder.run("sim bad.elf");
    assert!(
        status == Some(134) && faults.starts_with("warning: bad.elf: .eh_frame+") && faults.contains("int_divz"),
        "{faults}"
    );
}

/// The counts follow from the code: `%scale` is a product and a return.
#[test]
fn profiles_by_function_line_and_instruction() {
    let folder = Folder::new();
    folder.good("link m.o k.o -o p.elf");
    let total = |text: &str| -> u64 {
        let number = text.trim_end().rsplit(", ").next().unwrap();
        number.strip_suffix(" instructions").unwrap().parse().unwrap()
    };
    let folded = |options: &str| {
        let all = total(&folder.good(&format!("sim p.elf --profile p.folded{options}")));
        let text = fs::read_to_string(folder.path("p.folded")).unwrap();
        let counts = text
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(counts.sum::<u64>(), all, "{text}");
        text
    };
    let text = folded("");
    assert!(text.contains("_start;main;sum;scale 2\n"), "{text}");
    assert!(text.contains("\n_start;main;sum;__npu_sdiv32 "), "{text}");
    let text = folded(" --profile-by line");
    assert!(
        text.contains("_start;main;sum (k.clif:5);scale (k.clif:11) 1\n"),
        "{text}"
    );
    let text = folded(" --profile-by instruction");
    assert!(text.contains(";scale+0x4 (k.clif:12) 1\n"), "{text}");
    // The format of speedscope.
    let all = total(&folder.good("sim p.elf --profile p.json --profile-by line"));
    let file: serde_json::Value = serde_json::from_slice(&fs::read(folder.path("p.json")).unwrap()).unwrap();
    let profile = &file["profiles"][0];
    let weights = profile["weights"].as_array().unwrap();
    assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), all);
    assert_eq!(profile["endValue"], all);
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(
        frames
            .iter()
            .any(|frame| frame["file"] == "k.clif" && frame["line"] == 11)
    );
    let samples = profile["samples"].as_array().unwrap();
    let known = |frame: &serde_json::Value| (frame.as_u64().unwrap() as usize) < frames.len();
    assert!(samples.len() == weights.len() && samples.iter().all(|stack| stack.as_array().unwrap().iter().all(known)));
    // Several threads, and an explicit format that overrides the file name's.
    folder.run("sim p.elf --threads 2 --profile q.json --profile-format folded");
    let text = fs::read_to_string(folder.path("q.json")).unwrap();
    assert!(text.contains("thread 1;_start;main;sum;scale 2\n"), "{text}");
    folder.good("objcopy p.elf p.hex");
    assert!(
        folder
            .refused("sim p.hex --profile p.folded")
            .contains("needs the symbols")
    );
}

/// Returns a position without the distance from its symbol.
fn without_distance(place: &str) -> String {
    let (name, rest) = place.split_once("+0x").unwrap();
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    format!("{name}+{rest}")
}

/// Builds an archive in the format of `ar`.
fn archive(folder: &Folder, members: &[&str]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for member in members {
        let contents = fs::read(folder.path(member)).unwrap();
        let (name, size) = (format!("{member}/"), contents.len());
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        bytes.extend(contents);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Compares the output of a tool with that of a subcommand, line by line in any order.
fn prints_the_same(tool: &str, lines: [&str; 2]) {
    let folder = Folder::new();
    folder.good("link m.o k.o -o p.elf");
    for line in lines {
        for name in ["m.o", "k.o", "p.elf"] {
            let mut command = Command::new(tool);
            command.args(line.split(' ').skip(1)).arg(name);
            let output = command.current_dir(folder.0.path()).output().unwrap();
            let theirs = String::from_utf8_lossy(&output.stdout).replace("elf32-little", "elf32-naplespu");
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.trim_end().lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let ours = folder.good(&format!("{line} {name}"));
            assert_eq!(sorted(&ours), sorted(&theirs), "{line} {name}");
        }
    }
}

/// GNU objdump reads the file as a 32-bit ELF file of an unknown machine.
#[test]
#[ignore = "wants objdump of GNU binutils"]
fn gnu_objdump_prints_the_same() {
    prints_the_same("objdump", ["objdump -h", "objdump -t"]);
}

#[test]
#[ignore = "wants llvm-nm"]
fn llvm_nm_prints_the_same() {
    prints_the_same("llvm-nm", ["nm -n", "nm"]);
}

/// A WebAssembly module as a program on the device has the same results as on the host: on one
/// thread and on eight, as ELF file and as image.
#[test]
fn a_module_becomes_a_program() {
    let folder = Folder::new();
    let source = "(module (import \"npu\" \"thread_id\" (func $thread (result i32)))
        (memory (export \"memory\") 1 2) (global $sp (mut i32) (i32.const 4096))
        (data (i32.const 16) \"\\2a\")
        (func (export \"f\") (param i32 i64 f64) (result i32 i64 f64)
          (global.set $sp (i32.sub (global.get $sp) (i32.const 16)))
          (i32.store (global.get $sp) (call $thread))
          (i32.add (i32.add (local.get 0) (i32.load (global.get $sp))) (i32.load8_u (i32.const 16)))
          (i64.add (local.get 1) (i64.extend_i32_u (memory.grow (i32.const 1))))
          (f64.mul (local.get 2) (f64.const 0.5))))";
    fs::write(folder.path("f.wat"), source).unwrap();
    for (emit, threads) in [("elf", 1), ("elf", 8), ("hex", 8)] {
        let name = format!("p{threads}.{emit}");
        let seen = folder.good(&format!(
            "wasm f.wat --max-memory 1 --stack-size 4096 --threads {threads} --emit={emit} -o {name} --invoke f -7 4294967296 3.0"
        ));
        assert_eq!(seen, "");
        let elf = format!("p{threads}.elf");
        let names = folder.good(&format!("nm {elf}"));
        let at = names
            .lines()
            .find_map(|line| line.strip_suffix(" B wasm.results"))
            .unwrap();
        let at = u32::from_str_radix(at, 16).unwrap();
        let places: Vec<u32> = (0..threads).map(|thread| at + 64 * thread).collect();
        let dumps: Vec<String> = places.iter().map(|at| format!(" --dump {at:#x}:24")).collect();
        let text = folder.good(&format!("sim {name} --threads {threads}{}", dumps.concat()));
        let bytes = |at: u32| -> Vec<u8> {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{at:08x}: ")));
            let line = line.unwrap_or_default();
            line.split(' ')
                .map(|byte| u8::from_str_radix(byte, 16).unwrap())
                .collect()
        };
        let mut grown = Vec::new();
        for (thread, at) in (0..).zip(places) {
            let (first, second) = (bytes(at), bytes(at + 16));
            assert_eq!(
                first[..4],
                u32::to_le_bytes(35 + thread),
                "{name}, thread {thread}:\n{text}"
            );
            assert_eq!(second[..8], 1.5f64.to_le_bytes(), "{name}, thread {thread}:\n{text}");
            let pages = u64::from_le_bytes(first[8..16].try_into().unwrap()) - (1 << 32);
            grown.push(pages as u32 as i32);
        }
        // `memory.grow` is not atomic, so concurrent calls may return the same page.
        assert!(grown.iter().all(|pages| [1, -1].contains(pages)), "{grown:?}");
        assert!(grown.contains(&1), "{grown:?}");
    }
    for (line, told) in [
        ("wasm f.wat --emit=hex", "--invoke"),
        ("wasm f.wat --emit=obj -o f.o --invoke f 1 2 3", "--emit=elf"),
        (
            "wasm f.wat --emit=elf -o f.elf --threads 9 --invoke f 1 2 3",
            "at most 8",
        ),
    ] {
        let (status, _, faults) = folder.run(line);
        assert_eq!(status, Some(2), "{line}");
        assert!(faults.contains(told), "{line}: {faults}");
    }
}
