//! Runs random modules on the device and in an interpreter on the host, and compares results,
//! traps, memories and globals.
//!
//! `wasm-smith` generates the modules from the bytes of a seed; `wasmtime` is the reference. A
//! module with a difference is shrunk to fewer bytes and printed as text. `WASM_MODULES=FIRST..END`
//! runs these seeds instead of the default ones:
//!
//!     WASM_MODULES=1000..3000 cargo test -p naplespu-wasm --test all differential::

mod compiled;
mod compiled_c;
mod device;
mod host;
mod loops;
mod smith;

use smith::Random;

/// The outcome of one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    Values(Vec<Seen>),
    /// A trap, by its name in the specification.
    Trap(&'static str),
    /// A stack overflow. The depth and all effects before it depend on the implementation.
    Deep,
}

/// A value in a form that both sides have: floats and vectors as bits, references only by whether
/// they are null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    Word(u32),
    Long(u64),
    Vector(u128),
    Null(bool),
}

/// The observable behavior of a run: the instantiation and each call of an export by name, then
/// globals and memories by name.
#[derive(Debug, Default, PartialEq)]
pub struct Run {
    pub calls: Vec<(String, Came)>,
    pub globals: Vec<(String, Seen)>,
    pub memories: Vec<(String, Vec<u8>)>,
}

/// The kind of an argument. Arguments depend only on the function's name and type.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Word,
    Long,
    Float,
    Double,
    Vector,
    Null,
}

/// The number of calls of each function.
const ITERATIONS: u64 = 3;

pub fn arguments(name: &str, iteration: u64, kinds: &[Kind]) -> Vec<Seen> {
    let seed = name.bytes().fold(iteration + 1, |seed, byte| {
        seed.wrapping_mul(0x100_0193) ^ u64::from(byte)
    });
    let mut random = Random::new(seed);
    let argument = |kind: &Kind| match kind {
        Kind::Word => Seen::Word(random.number() as u32),
        Kind::Long => Seen::Long(random.number()),
        // Never a NaN, because its bits depend on the engine.
        Kind::Float => Seen::Word((random.number() as i32 as f32 / 16.0).to_bits()),
        Kind::Double => Seen::Long((random.number() as i64 as f64 / 16.0).to_bits()),
        Kind::Vector => {
            Seen::Vector(u128::from(random.number() & 0x0fff_ffff) << 64 | u128::from(random.number() & 0x0fff_ffff))
        }
        Kind::Null => Seen::Null(true),
    };
    kinds.iter().map(argument).collect()
}

/// Returns the first difference between two runs, up to the first stack overflow.
fn difference(ours: &Run, theirs: &Run) -> Option<String> {
    for ((name, here), (other, there)) in ours.calls.iter().zip(&theirs.calls) {
        assert_eq!(name, other, "both call in one order");
        if matches!(here, Came::Deep) || matches!(there, Came::Deep) {
            return None;
        }
        if here != there {
            return Some(format!("{name}: {here:?} here, {there:?} there"));
        }
    }
    for ((name, here), (_, there)) in ours.globals.iter().zip(&theirs.globals) {
        if here != there {
            return Some(format!("global {name}: {here:?} here, {there:?} there"));
        }
    }
    for ((name, here), (_, there)) in ours.memories.iter().zip(&theirs.memories) {
        if here.len() != there.len() {
            return Some(format!(
                "memory {name}: {} bytes here, {} there",
                here.len(),
                there.len()
            ));
        }
        if let Some(at) = (0..here.len()).find(|&at| here[at] != there[at]) {
            return Some(format!(
                "memory {name}, {at:#x}: {:#04x} here, {:#04x} there",
                here[at], there[at]
            ));
        }
    }
    let counts = |run: &Run| (run.calls.len(), run.globals.len(), run.memories.len());
    (counts(ours) != counts(theirs)).then(|| format!("{:?} here, {:?} there", counts(ours), counts(theirs)))
}

/// Returns the fault of a module, if any.
fn fault(module: &[u8]) -> Option<String> {
    let theirs = host::run(module);
    for opt_level in ["none", "speed"] {
        let found = match device::run(module, opt_level) {
            Ok(ours) => difference(&ours, &theirs),
            Err(error) => Some(error),
        };
        if let Some(found) = found {
            return Some(format!("{opt_level}: {found}"));
        }
    }
    None
}

/// Returns the seeds to run, by default the first `few`.
fn numbers(few: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("WASM_MODULES") else {
        return 0..few;
    };
    let ends = text
        .split_once("..")
        .and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    let (first, end) = ends.expect("WASM_MODULES is two numbers with two dots between them");
    first..end
}

#[test]
fn random_modules_do_what_they_do_on_the_host() {
    let mut calls = 0;
    let mut values = 0;
    for number in numbers(300) {
        let bytes = smith::bytes(number);
        let Some(module) = smith::module(&bytes) else {
            continue;
        };
        if let Some(found) = fault(&module) {
            let (module, found) = smith::smaller(&bytes, fault).unwrap_or((module, found));
            let left = concat!(env!("CARGO_TARGET_TMPDIR"), "/different.wasm");
            std::fs::write(left, &module).unwrap();
            panic!(
                "module {number}: {found}; it is in {left}\n{}",
                wasmprinter::print_bytes(&module).unwrap()
            );
        }
        let run = host::run(&module);
        calls += run.calls.len();
        values += run
            .calls
            .iter()
            .filter(|(_, came)| matches!(came, Came::Values(_)))
            .count();
    }
    // Modules that only trap would test nothing.
    println!("{calls} calls, {values} of them with results");
    assert!(
        values * 4 > calls && calls > 0,
        "{values} of {calls} calls gave results"
    );
}

#[test]
fn random_loops_do_what_they_do_on_the_host() {
    let (mut values, mut traps) = (0, 0);
    for number in numbers(150) {
        let text = loops::module(number);
        let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        if let Some(found) = fault(&module) {
            panic!("loops {number}: {found}\n{text}");
        }
        for (_, came) in host::run(&module).calls {
            match came {
                Came::Values(_) => values += 1,
                Came::Trap(_) | Came::Deep => traps += 1,
            }
        }
    }
    println!("{values} calls with results, {traps} traps");
    assert!(
        values > traps && traps * 20 > values,
        "{values} calls gave results, {traps} trapped"
    );
}

/// Loops in the form that clang emits, called with pointers near the ends of the memory.
#[test]
fn compiled_loops_do_what_they_do_on_the_host() {
    let (mut values, mut traps) = (0, 0);
    for number in numbers(25) {
        let text = compiled::Program::new(number).module();
        let module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        if let Some(found) = fault(&module) {
            panic!("compiled loops {number}: {found}\n{text}");
        }
        for (_, came) in host::run(&module).calls {
            match came {
                Came::Values(_) => values += 1,
                Came::Trap(_) | Came::Deep => traps += 1,
            }
        }
    }
    println!("{values} calls with results, {traps} traps");
    assert!(
        values * 4 > traps && traps * 4 > values,
        "{values} calls gave results, {traps} trapped"
    );
}

/// The loops trigger the passes that they test.
#[test]
fn compiled_loops_are_vectorized_and_versioned() {
    let (mut vectorized, mut versioned) = (0, 0);
    let programs = 25;
    for number in 0..programs {
        let module = wat::parse_str(compiled::Program::new(number).module()).unwrap();
        for name in ["wasm.g0", "wasm.g1"] {
            let (vector, version) = device::reached(&module, name);
            vectorized += usize::from(vector);
            versioned += usize::from(version);
        }
    }
    println!(
        "of {} functions: {vectorized} vectorized, {versioned} versioned",
        2 * programs
    );
    assert!(
        vectorized >= 6 && versioned >= 30,
        "of {} functions: {vectorized} vectorized, {versioned} versioned",
        2 * programs
    );
}

/// The same programs as C, compiled by clang. Debian: `apt-get install clang lld`.
#[test]
#[ignore = "needs clang and wasm-ld"]
fn loops_that_clang_compiled_do_what_they_do_on_the_host() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for number in numbers(20) {
        let text = compiled::Program::new(number).c();
        let (source, module) = (folder.join("compiled.c"), folder.join("compiled.wasm"));
        std::fs::write(&source, &text).unwrap();
        for level in ["-O1", "-O2", "-Oz"] {
            let status = std::process::Command::new("clang")
                .args(["--target=wasm32", "-nostdlib", "-fwrapv", "-fno-builtin", "-w", level])
                .args([
                    "-Wl,--no-entry",
                    "-Wl,--initial-memory=65536",
                    "-Wl,--max-memory=196608",
                ])
                .args(["-Wl,-z,stack-size=1024", "-o"])
                .args([&module, &source])
                .status()
                .expect("clang is installed");
            assert!(status.success(), "clang does not take program {number}\n{text}");
            if let Some(found) = fault(&std::fs::read(&module).unwrap()) {
                panic!("program {number} by clang {level}: {found}\n{text}");
            }
        }
    }
}

/// The comparison finds a changed constant.
#[test]
fn a_difference_is_found() {
    let run = |text: &str| host::run(&wat::parse_str(text).unwrap());
    let one =
        run("(module (global (export \"g\") (mut i32) (i32.const 1)) (func (export \"f\") (result i32) i32.const 1))");
    let other =
        run("(module (global (export \"g\") (mut i32) (i32.const 1)) (func (export \"f\") (result i32) i32.const 2))");
    assert!(difference(&one, &one).is_none());
    assert!(difference(&one, &other).unwrap().starts_with("f: "));
    let text = "(module (memory (export \"m\") 1) (data (i32.const 77) \"a\"))";
    let changed = run(&text.replace("77", "78"));
    assert_eq!(
        difference(&run(text), &changed).unwrap(),
        "memory m, 0x4d: 0x61 here, 0x00 there"
    );
}
