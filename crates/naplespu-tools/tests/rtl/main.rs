//! Compares programs on the hardware description and on the model: memory and cycles.
//!
//! The variable `NPUSIM` names a program that runs the hardware description of one core. Without it
//! the tests are reported as ignored. Compiled functions get a `main` that loads the arguments of a
//! run line, calls the function, and stores the results for the comparison. The linker's start-up
//! code runs before it. The hardware starts twice: with zeros and with random values in its
//! registers, memories and undriven nets. `NPUMESH` names a program that runs the hardware
//! description of several cores.

mod atomics;
mod line_misses;
mod lines;
mod lost_results;
mod several_cores;

use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The address of the results, and the size of each thread's results in bytes.
const RESULTS: u32 = 0x0070_0000;
const RESULT_BYTES: u32 = 64;
/// The limit of cycles on the hardware.
const MAX_CYCLES: u32 = 700_000;
/// The largest error of cycles in percent for a program, and for the mean of all compiled kernels,
/// as in docs/timing.md.
const WORST: f64 = 2.0;
const MEAN: f64 = 0.3;

/// A kernel of the corpus and the argument of one of its run lines, small enough for the hardware
/// description.
const KERNELS: [(&str, i32); 29] = [
    ("base64", 7),
    ("bitcount", 7),
    ("bytecode_vm", 1),
    ("conv2d_i32", 7),
    ("crc32_bitwise", 7),
    ("crc32_table", 7),
    ("dct8x8_i32", 7),
    ("div64", 7),
    ("dot_v16", 7),
    ("fib_rec", 10),
    ("fir_i32", 7),
    ("fnv1a64", 7),
    ("funcptr", 7),
    ("life", 7),
    ("lu_f32", 7),
    ("lu_fixed", 7),
    ("matmul_f32", 7),
    ("matmul_i32", 7),
    ("matmul_v16", 7),
    ("modpow", 7),
    ("nbody_f32", 7),
    ("newton_f64", 7),
    ("nqueens", 4),
    ("quicksort", 7),
    ("saxpy_v16", 7),
    ("sieve", 100),
    ("strsearch", 7),
    ("transpose", 7),
    ("xtea", 7),
];

/// Filetests with functions on words: file, function, arguments.
const FILETESTS: [(&str, &str, &[i32]); 5] = [
    ("call/tail_deep", "deep", &[1000]),
    ("call/recursion", "fact", &[12]),
    ("call/recursion", "fib", &[9]),
    ("call/indirect", "call_0_near", &[-1]),
    ("call/hundred_arguments", "call_near", &[1]),
];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A test of a simulator at a path.
type Test = fn(&Path) -> Outcome<()>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let simulator = std::env::var_os("NPUSIM").map(PathBuf::from);
    let missing = simulator.is_none();
    let simulator = simulator.unwrap_or_default();
    let mut trials = Vec::new();
    let mut add = |name: &str, test: Test| {
        let simulator = simulator.clone();
        trials.push(
            Trial::test(name, move || test(&simulator).map_err(|e| Failed::from(e.to_string())))
                .with_ignored_flag(missing),
        );
    };
    add("facts", facts);
    add("corpus_one_thread", |s| corpus(s, 1));
    add("corpus_two_threads", |s| corpus(s, 2));
    add("corpus_eight_threads", |s| corpus(s, 8));
    add("calls", calls);
    add("random_programs", random_programs);
    add("run_lines", |simulator| lines::filetests(Some(simulator)));
    add("lost_results_on_the_hardware", lost_results::on_the_hardware);
    add("line_misses_on_the_hardware", line_misses::on_the_hardware);
    let mesh = std::env::var_os("NPUMESH").map(PathBuf::from);
    let no_mesh = mesh.is_none();
    let mesh = mesh.unwrap_or_default();
    let on_the_mesh: [(&str, Test); 3] = [
        ("histogram_of_several_cores_on_the_hardware", atomics::histogram),
        ("several_cores_on_the_hardware", several_cores::on_the_hardware),
        ("kernels_of_several_cores_on_the_hardware", several_cores::kernels),
    ];
    for (name, test) in on_the_mesh {
        let mesh = mesh.clone();
        let test = move || test(&mesh).map_err(|e| Failed::from(e.to_string()));
        trials.push(Trial::test(name, test).with_ignored_flag(no_mesh));
    }
    trials.push(Trial::test("line_misses_on_the_simulator", || {
        line_misses::on_the_simulator().map_err(|e| Failed::from(e.to_string()))
    }));
    let on_the_model = || lines::filetests(None).map_err(|e| Failed::from(e.to_string()));
    trials.push(Trial::test("run_lines_on_the_model", on_the_model).with_ignored_flag(true));
    trials.push(Trial::test("lost_results_on_the_simulator", || {
        lost_results::on_the_simulator().map_err(|e| Failed::from(e.to_string()))
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command and returns its output. If it fails, the error contains the output.
fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?}: {}\n{text}{errors}", output.status).into())
    }
}

fn clif_util() -> Command {
    Command::new(env!("CARGO_BIN_EXE_clif-util"))
}

/// Checks that the hardware description takes the recorded cycles for each fact.
fn facts(simulator: &Path) -> Outcome<()> {
    let folder = root().join("crates/npu-sim/tests/sim/facts");
    let mut command = Command::new(simulator);
    for entry in std::fs::read_dir(folder)? {
        command.arg(entry?.path());
    }
    run(&mut command).map(drop)
}

/// The result of a program.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    cycles: u64,
    /// The words of memory.
    memory: Vec<u32>,
}

/// Returns the number before or after a word of a text.
fn number(text: &str, find: impl Fn(&str) -> Option<&str>) -> Outcome<u64> {
    let found = text
        .lines()
        .find_map(find)
        .ok_or_else(|| format!("no cycles in\n{text}"))?;
    Ok(found.trim().parse()?)
}

/// Returns the words of memory in the output of the hardware description or of `clif-util sim`.
fn memory_of(text: &str) -> Outcome<Vec<u32>> {
    let mut memory = Vec::new();
    if let Some((_, dump)) = text.rsplit_once("mem:") {
        for word in dump.split_whitespace().filter(|word| !word.starts_with('@')) {
            // Counters may follow the last word on the same line.
            memory.push(u32::from_str_radix(word.get(..8).unwrap_or(word), 16)?);
        }
        return Ok(memory);
    }
    let mut bytes = Vec::new();
    for line in text.lines() {
        let Some((address, values)) = line.split_once(": ") else {
            continue;
        };
        if address.len() == 8 && u32::from_str_radix(address, 16).is_ok() {
            for byte in values.split_whitespace() {
                bytes.push(u8::from_str_radix(byte, 16)?);
            }
        }
    }
    let words = bytes.chunks_exact(4);
    memory.extend(words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    Ok(memory)
}

fn on_hardware(simulator: &Path, image: &Path, threads: u32, seed: Option<u32>, bytes: u32) -> Outcome<Run> {
    let mut command = Command::new(simulator);
    command.arg("--image").arg(image).arg("--hex");
    command.arg("--threads").arg(format!("{:#x}", (1u32 << threads) - 1));
    command.arg("--max-cycles").arg(MAX_CYCLES.to_string());
    command.arg("--dump").arg(format!("{RESULTS:#x}:{bytes}"));
    if let Some(seed) = seed {
        command.arg("--seed").arg(seed.to_string());
    }
    let text = run(&mut command)?;
    let cycles = number(&text, |line| line.strip_prefix("cycles: "))?;
    let memory = memory_of(&text)?;
    Ok(Run { cycles, memory })
}

fn on_the_model(image: &Path, threads: u32, bytes: u32) -> Outcome<Run> {
    let mut command = clif_util();
    command.args(["sim", "--timing", "--format", "hex", "--pc", "0x400"]);
    command.arg("--threads").arg(format!("{:#x}", (1u32 << threads) - 1));
    command.arg("--dump").arg(format!("{RESULTS:#x}:{bytes}")).arg(image);
    let text = run(&mut command)?;
    let cycles = number(&text, |line| line.split_once(" cycles, ").map(|(cycles, _)| cycles))?;
    let memory = memory_of(&text)?;
    Ok(Run { cycles, memory })
}

/// Runs an image on both. Returns the error of the model's cycles in percent.
fn compare(simulator: &Path, name: &str, image: &Path, threads: u32) -> Outcome<f64> {
    let bytes = threads * RESULT_BYTES;
    let expected = on_hardware(simulator, image, threads, None, bytes)?;
    let random = on_hardware(simulator, image, threads, Some(threads + 1), bytes)?;
    if expected != random {
        return Err(
            format!("{name}: the hardware's {expected:?} and {random:?} depend on what was in it before").into(),
        );
    }
    let got = on_the_model(image, threads, bytes)?;
    if got.memory != expected.memory {
        return Err(format!("{name} on {threads} threads: {got:x?}, the hardware has {expected:x?}").into());
    }
    let error = 100.0 * (got.cycles as f64 / expected.cycles as f64 - 1.0);
    println!(
        "{name:<28} {threads} {:>8} {:>8} {error:>7.2} %",
        expected.cycles, got.cycles
    );
    if error.abs() > WORST {
        let (cycles, right) = (got.cycles, expected.cycles);
        return Err(format!("{name} on {threads} threads: {cycles} cycles, the hardware takes {right}").into());
    }
    Ok(error)
}

/// Links a function of a CLIF file with a `main` that calls it.
fn link(folder: &Path, file: &Path, function: &str, arguments: &[i32]) -> Outcome<PathBuf> {
    let at = |name: &str| folder.join(name);
    let mut main = String::from("        .globl main\nmain:   addi sp, sp, -64\n        store32 ra, (sp)\n");
    for (number, &argument) in arguments.iter().enumerate() {
        let (high, low) = ((argument as u32) >> 16, argument as u32 & 0xffff);
        writeln!(
            main,
            "        moveih s{number}, {high}\n        moveil s{number}, {low}"
        )?;
    }
    writeln!(main, "        jmpsr \"{function}\"")?;
    // The results of each thread are in a separate cache line.
    writeln!(
        main,
        "        movei s41, 2\n        read_cr s41, s41\n        shli s41, s41, 6"
    )?;
    writeln!(
        main,
        "        moveih s40, {}\n        moveil s40, {}",
        RESULTS >> 16,
        RESULTS & 0xffff
    )?;
    main += "        add_i32 s40, s40, s41\n        store32 s0, (s40)\n        flush s40\n        load32 ra, (sp)\n        addi sp, sp, 64\n        jret\n";
    std::fs::write(at("main.s"), main)?;
    let speed = ["--set", "opt_level=speed"];
    run(clif_util()
        .args(["asm", "--emit=obj", "-o"])
        .arg(at("main.o"))
        .arg(at("main.s")))?;
    run(clif_util()
        .args(["compile", "--emit=obj"])
        .args(speed)
        .arg("-o")
        .arg(at("code.o"))
        .arg(file))?;
    let mut linker = clif_util();
    linker
        .arg("link")
        .arg(at("main.o"))
        .arg(at("code.o"))
        .arg("-o")
        .arg(at("program.elf"));
    run(linker.args(speed))?;
    let image = at("program.hex");
    run(clif_util().arg("objcopy").arg(at("program.elf")).arg(&image))?;
    Ok(image)
}

fn corpus(simulator: &Path, threads: u32) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let mut sum = 0.0;
    let mut count = 0;
    for (kernel, argument) in KERNELS {
        let file = root().join(format!("filetests/corpus/{kernel}.clif"));
        let image = link(folder.path(), &file, kernel, &[argument])?;
        if on_the_model(&image, threads, 4)?.cycles > u64::from(MAX_CYCLES) / 2 {
            // Skips IEEE 754 floats on eight threads, which take too long on the hardware
            // description.
            continue;
        }
        sum += compare(simulator, kernel, &image, threads)?.abs();
        count += 1;
    }
    let mean = sum / f64::from(count);
    println!("{count} kernels on {threads} threads: off by {mean:.3} % on average");
    if count < 24 {
        return Err(format!("only {count} kernels were compared").into());
    }
    if mean > MEAN {
        return Err(format!("off by {mean:.3} % on average").into());
    }
    Ok(())
}

fn calls(simulator: &Path) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    for (name, function, arguments) in FILETESTS {
        let file = root().join(format!("filetests/{name}.clif"));
        let image = link(folder.path(), &file, function, arguments)?;
        for threads in [1, 2] {
            compare(simulator, name, &image, threads)?;
        }
    }
    Ok(())
}

/// A small deterministic generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Returns a random CLIF function `%f(i32) -> i32` with a loop, arithmetic, and loads and stores of
/// its stack.
fn random_function(random: &mut Random) -> Outcome<String> {
    let mut text = String::from(
        "function %f(i32) -> i32 {\n    ss0 = explicit_slot 1024\nblock0(v0: i32):\n    v1 = iconst.i32 0\n    \
         v2 = stack_addr.i32 ss0\n    v3 = iconst.i32 1020\n    v4 = iconst.i32 3\n    v9 = iconst.i32 4\n    jump block4(v1)\nblock4(v5: i32):\n    v6 = iadd v2, v5\n    \
         store v0, v6\n    v7 = iadd v5, v9\n    v8 = icmp ult v7, v3\n    brif v8, block4(v7), block1(v0, v4)\n\
         block1(v10: i32, v11: i32):\n",
    );
    let mut next = 12;
    for _ in 0..20 + random.below(60) {
        let mut value = || 10 + random.below(next - 10);
        let (a, b) = (value(), value());
        let operation = ["iadd", "isub", "imul", "bxor", "band", "bor", "smin", "umax"][random.below(8) as usize];
        match random.below(10) {
            0 | 1 => {
                let address = next;
                writeln!(
                    text,
                    "    v{address} = band v{a}, v3\n    v{} = iadd v2, v{address}",
                    next + 1
                )?;
                writeln!(text, "    v{} = load.i32 v{}", next + 2, next + 1)?;
                next += 3;
            }
            2 | 3 => {
                writeln!(
                    text,
                    "    v{next} = band v{a}, v3\n    v{} = iadd v2, v{next}",
                    next + 1
                )?;
                writeln!(text, "    store v{b}, v{}", next + 1)?;
                next += 2;
            }
            4 | 5 => {
                let shift = ["ishl", "ushr"][random.below(2) as usize];
                writeln!(text, "    v{next} = iconst.i32 {}", random.below(32))?;
                writeln!(text, "    v{} = {shift} v{a}, v{next}", next + 1)?;
                next += 2;
            }
            _ => {
                writeln!(text, "    v{next} = {operation} v{a}, v{b}")?;
                next += 1;
            }
        }
    }
    let last = next - 1;
    writeln!(
        text,
        "    v{next} = iconst.i32 -1\n    v{} = iadd v11, v{next}",
        next + 1
    )?;
    writeln!(text, "    brif v{0}, block1(v{last}, v{0}), block2", next + 1)?;
    writeln!(text, "block2:\n    return v{last}\n}}")?;
    Ok(text)
}

fn random_programs(simulator: &Path) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    for seed in 0..20 {
        let file = folder.path().join("random.clif");
        std::fs::write(&file, random_function(&mut Random(seed))?)?;
        let image = link(folder.path(), &file, "f", &[seed as i32 * 12345])?;
        let threads = [1, 2, 4, 8][seed as usize % 4];
        compare(simulator, &format!("random {seed}"), &image, threads)?;
    }
    Ok(())
}
