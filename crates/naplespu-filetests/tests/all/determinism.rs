//! The same input compiles to the same bytes in another process, on another thread, and after other
//! functions.
//!
//! The test compiles each function of the filetests, the corpus and the runtime on one thread. It
//! starts its own program twice more, with one thread and with many, which compile the functions in
//! other orders.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{CompiledCode, Isa, isa};
use naplespu_filetests::runner;
use naplespu_reader::ClifFile;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The environment variable with the number of threads, for the processes that this test starts.
const THREADS: &str = "NAPLESPU_DETERMINISM_THREADS";

/// Marks the lines to compare in the output of the test harness.
const MARK: &str = "code: ";

const NAME: &str = "determinism::the_same_input_gives_the_same_bytes";

fn functions() -> Vec<(String, Function)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let named = |func: Function| (func.name.to_string(), func);
    let mut all: Vec<_> = naplespu_runtime::functions().unwrap().into_iter().map(named).collect();
    for path in runner::find(&[root]).unwrap() {
        let file = ClifFile::parse(&path.display().to_string(), &std::fs::read(&path).unwrap());
        assert!(file.faults.is_empty(), "{}", file.source.render(&file.faults));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let named = file
            .functions
            .into_iter()
            .map(|case| (format!("{name} {}", case.name), case.func));
        all.extend(named);
    }
    all
}

/// Returns a target for each optimization level; each uses a different register allocator.
fn isas() -> Vec<Arc<Isa>> {
    let isa = |level, algorithm| {
        let mut flags = settings::builder();
        flags.set("opt_level", level).unwrap();
        flags.set("regalloc_algorithm", algorithm).unwrap();
        isa::lookup_by_name("naplespu")
            .unwrap()
            .finish(Flags::new(flags))
            .unwrap()
    };
    vec![isa("speed", "backtracking"), isa("none", "single_pass")]
}

/// Returns as text everything that a loader or a debugger reads from the code.
fn text(code: &CompiledCode) -> String {
    let labels: BTreeMap<u32, String> = code
        .value_labels_ranges
        .iter()
        .map(|(label, ranges)| (label.as_u32(), format!("{ranges:?}")))
        .collect();
    let CompiledCode {
        bytes,
        relocs,
        traps,
        srclocs,
        stack_maps,
        debug_tags,
        frame,
        block_starts,
        ..
    } = code;
    let mut text: String = bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    });
    _ = write!(
        text,
        " {relocs:?} {traps:?} {srclocs:?} {stack_maps:?} {debug_tags:?} {frame:?} {block_starts:?} {labels:?}"
    );
    text
}

/// Returns a line for each function and configuration, in an order that does not depend on the
/// order of compilation.
fn lines(threads: usize) -> Vec<String> {
    let (functions, isas) = (functions(), isas());
    let count = functions.len() * isas.len();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); count]));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    // With several threads the functions are compiled in reverse order.
                    let at = if threads > 1 { count - 1 - number } else { number };
                    let (name, func) = &functions[at / isas.len()];
                    let mut ctx = Context::for_function(func.clone());
                    let result = isas[at % isas.len()].compile(&mut ctx, &mut ControlPlane::default());
                    let result = result.map_or_else(|error| error.to_string().replace('\n', "; "), |code| text(&code));
                    done.lock().unwrap()[at] = format!("{name}: {result}");
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// Returns the lines of another process.
fn of_process(threads: usize) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(THREADS, threads.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // The harness may have written the beginning of the first line.
    text.lines()
        .filter_map(|line| Some(line.split_once(MARK)?.1.to_owned()))
        .collect()
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    if let Ok(threads) = std::env::var(THREADS) {
        for line in lines(threads.parse().unwrap()) {
            println!("{MARK}{line}");
        }
        return;
    }
    let expected = lines(1);
    assert!(expected.len() > 4000, "only {} functions", expected.len());
    for threads in [1, 8] {
        let found = of_process(threads);
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found, "with {threads} threads in another process");
        }
    }
}
