//! Runs kernels of the corpus with and without translation of hot loops to host code: results,
//! counts, registers and memory are the same.

use cranelift_codegen::data_value::DataValue;
use naplespu_jit::Program;
use naplespu_reader::{ClifFile, Config};
use npu_mc::{SReg, VReg};
use npu_sim::Machine;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The final state of a kernel.
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
    assert_eq!(difference(a, b), None, "{name}: memory differs at this address");
    assert!(a.scratchpad() == b.scratchpad(), "{name}: scratchpad");
}

/// Returns the first address at which the memories of two machines differ, among all addresses that
/// either machine has written.
fn difference(a: &Machine, b: &Machine) -> Option<u32> {
    let written = [a, b].map(|machine| machine.memory().written_pages());
    let [one, other] = written.map(|pages| pages.collect::<BTreeMap<u32, &[u8]>>());
    assert!(!one.is_empty() && !other.is_empty());
    let addresses: BTreeSet<u32> = one.keys().chain(other.keys()).copied().collect();
    addresses.into_iter().find_map(|address| {
        let (Some(x), Some(y)) = (one.get(&address), other.get(&address)) else {
            return Some(address);
        };
        let at = x.iter().zip(*y).position(|(x, y)| x != y)?;
        Some(address + u32::try_from(at).unwrap_or(0))
    })
}

#[test]
fn one_byte_makes_a_difference() -> Result<(), Box<dyn Error>> {
    let (name, path) = kernels()?.remove(0);
    let file = ClifFile::parse(&name, &std::fs::read(path)?);
    let [mut one, mut other] = [ran(&file, &name, 1, None)?, ran(&file, &name, 1, None)?];
    let addresses = {
        let [a, b] = [one.program.module()?.machine(), other.program.module()?.machine()];
        assert_eq!(difference(a, b), None);
        let pages: Vec<u32> = a.memory().written_pages().map(|(address, _)| address).collect();
        pages
    };
    // Code, data and stack.
    for address in addresses.iter().flat_map(|page| [*page, page + 4095]) {
        let machine = one.program.module()?.machine();
        let byte = machine.memory().read_u8(address);
        one.program.write_memory(address, &[byte ^ 1])?;
        let [a, b] = [one.program.module()?.machine(), other.program.module()?.machine()];
        assert_eq!(difference(a, b), Some(address));
        one.program.write_memory(address, &[byte])?;
    }
    Ok(())
}

/// Runs all kernels on `threads` threads. Returns the number of instructions, and how many of them
/// were translated.
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
