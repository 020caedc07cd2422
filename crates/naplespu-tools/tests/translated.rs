#![cfg(feature = "jit")]
//! Kernels of the corpus with hot loops translated to code of the host and without: results, counts, registers and memory are the same.

use cranelift_codegen::data_value::DataValue;
use naplespu_jit::Program;
use naplespu_reader::{ClifFile, Config};
use npu_mc::{SReg, VReg};
use npu_sim::Machine;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Bytes of memory that are compared, from address 0 on.
const MEMORY: usize = 1 << 22;

/// What a kernel left behind.
struct Ran {
    results: Vec<(Vec<DataValue>, u64)>,
    program: Program,
}

fn ran(file: &ClifFile, name: &str, threads: usize, translate_after: Option<u32>) -> Result<Ran, Box<dyn Error>> {
    let mut config = Config::new();
    config.set("opt_level=speed")?;
    let device = npu_sim::Config {
        translate_after,
        ..npu_sim::Config::default()
    };
    let mut program = Program::with_config(config.isa()?, device);
    for case in &file.functions {
        program.define(&case.func)?;
    }
    let mut results = Vec::new();
    for argument in [7, 3] {
        for values in program.call_threads(name, &[DataValue::I32(argument)], threads)? {
            results.push((values, program.steps()));
        }
    }
    Ok(Ran { results, program })
}

fn kernels() -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/corpus");
    let mut kernels = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) {
            kernels.push((name.to_owned(), path));
        }
    }
    kernels.sort();
    Ok(kernels)
}

fn compare(name: &str, a: &Machine, b: &Machine) {
    assert_eq!(a.findings(), b.findings(), "{name}");
    for number in 0..a.threads() {
        let (x, y) = (a.thread(number), b.thread(number));
        let state =
            |thread: &npu_sim::Thread| (thread.pc(), thread.instructions(), thread.mask(), thread.last_branch());
        assert_eq!(state(x), state(y), "{name}, thread {number}");
        for register in (0..63).filter_map(SReg::new) {
            assert_eq!(
                x.scalar(register),
                y.scalar(register),
                "{name}, thread {number}, {}",
                register.name()
            );
        }
        for register in (0..63).filter_map(VReg::new) {
            assert_eq!(
                x.vector(register),
                y.vector(register),
                "{name}, thread {number}, {}",
                register.name()
            );
        }
    }
    let [mut one, mut other] = [(); 2].map(|()| vec![0; MEMORY]);
    a.memory().read(0, &mut one);
    b.memory().read(0, &mut other);
    assert!(one == other, "{name}: memory");
    assert_eq!(a.memory().resident_bytes(), b.memory().resident_bytes(), "{name}");
}

/// Runs all kernels in so many threads, and gives instructions and those of them that were translated.
fn all(threads: usize) -> Result<(u64, u64), Box<dyn Error>> {
    let (mut all, mut translated) = (0, 0);
    for (name, path) in kernels()? {
        let file = ClifFile::parse(&name, &std::fs::read(path)?);
        let mut one = ran(&file, &name, threads, Some(10))?;
        let mut other = ran(&file, &name, threads, None)?;
        assert_eq!(one.results, other.results, "{name}");
        let (one, other) = (one.program.module()?.machine(), other.program.module()?.machine());
        compare(&name, one, other);
        assert_eq!(other.translated_instructions(), 0, "{name}");
        let executed: u64 = (0..one.threads()).map(|number| one.thread(number).instructions()).sum();
        let share = 100.0 * one.translated_instructions() as f64 / executed as f64;
        println!(
            "{name:<16} {executed:>10} instructions, {share:5.1} % translated, {} entries",
            one.translations_entered()
        );
        all += executed;
        translated += one.translated_instructions();
    }
    println!("{threads} threads: {all} instructions, {translated} translated");
    Ok((all, translated))
}

#[test]
fn kernels_do_what_they_do_interpreted() -> Result<(), Box<dyn Error>> {
    let (all, translated) = all(1)?;
    assert!(
        translated > all / 2,
        "{translated} of {all} instructions are translated"
    );
    Ok(())
}

#[test]
fn kernels_of_several_threads_do_what_they_do_interpreted() -> Result<(), Box<dyn Error>> {
    let (all, translated) = all(3)?;
    assert!(
        translated > all / 3,
        "{translated} of {all} instructions are translated"
    );
    Ok(())
}
