//! The faults of several cores: `faults/` has programs with each, and programs that avoid it.
//!
//! The lines at the start of a program have the number of its cores and the expected fault, with the
//! instruction at which the simulator reports it and the address that it names. The test `rtl` of the
//! command-line tool compares the same programs with the hardware description.

use super::mesh;
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_sim::coherence::Coherence;
use npu_sim::{
    Config, Finding, Halt, HangReason, Hazard, Machine, NoSink, Schedule, Stop, THREADS, Timing, TimingConfig,
};
use std::path::PathBuf;

const LIMIT: u64 = 1_000_000;
const ENTRY: u32 = 0x400;

/// The way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Coherent,
    /// With data caches, in turns of this many instructions.
    Caches(u32),
    Timed,
}

const WAYS: [Way; 4] = [Way::Coherent, Way::Caches(128), Way::Caches(1), Way::Timed];

fn machine(source: &str, cores: usize, threads: u32, strict: bool, way: Way) -> Machine {
    let object = assemble(source, &Options::default()).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let placement = Placement {
        base: ENTRY,
        ..Placement::default()
    };
    let image = link(&object, &placement).expect("it links").image;
    let mut machine = Machine::new(Config {
        strict,
        cores,
        coherent: way == Way::Coherent,
        host_threads: 2,
        ..Config::default()
    });
    machine.load(&image).expect("room");
    for core in 0..cores {
        (0..THREADS).for_each(|thread| machine.boot(THREADS * core + thread, ENTRY));
        machine.enable(core, (1 << threads) - 1);
    }
    machine
}

fn run(machine: &mut Machine, way: Way) -> Halt {
    match way {
        Way::Coherent => machine.run_threads(&mut Schedule::default(), LIMIT),
        Way::Caches(quantum) => machine.run_threads(&mut Schedule::round_robin(quantum), LIMIT),
        Way::Timed => {
            let mut timing = Timing::new(TimingConfig::default());
            machine.run_timed(&mut timing, LIMIT, &mut NoSink)
        }
    }
}

/// Runs the threads of all cores in a strict machine; returns the fault that stops them.
fn found(source: &str, cores: usize, threads: u32, way: Way) -> Option<(Finding, String)> {
    let mut machine = machine(source, cores, threads, true, way);
    match run(&mut machine, way) {
        Halt::Ended => None,
        Halt::Thread {
            stop: Stop::Erratum(finding),
            ..
        } => {
            let word = machine.memory().read_u32(finding.pc);
            let text = npu_mc::decode(word).map_or_else(|_| String::new(), |inst| inst.to_string());
            Some((finding, text))
        }
        halt => panic!("{way:?}: {halt}\n{source}"),
    }
}

/// Returns the value of a line `// NAME: VALUE`.
fn value<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("// {name}: ");
    source.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// Returns the names and the texts of all programs.
fn programs() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sim/faults");
    let entries = std::fs::read_dir(folder).expect("the folder of programs");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a program"))
    };
    entries.map(read).collect()
}

#[test]
fn strict_runs_find_each_fault_and_pass_the_programs_without() {
    let mut kinds = Vec::new();
    for (name, source) in programs() {
        let cores = value(&source, "cores").and_then(|text| text.parse().ok());
        let cores = cores.expect("the number of cores");
        let fault = value(&source, "fault").filter(|&fault| fault != "none");
        for way in WAYS {
            let found = found(&source, cores, 1, way);
            let hazard = found.as_ref().map(|(finding, _)| finding.hazard.name());
            assert_eq!(hazard, fault, "{name}, {way:?}: {found:?}");
            let Some((finding, instruction)) = found else { continue };
            let expected = value(&source, "instruction");
            assert!(
                expected.is_none_or(|expected| instruction == expected),
                "{name}: {instruction}"
            );
            let thread = finding.thread as usize;
            let place = format!("core {}, thread {}: ", thread / THREADS, thread % THREADS);
            assert!(finding.detail.starts_with(&place), "{name}: {finding}");
            let line = value(&source, "line").expect("a line");
            assert!(finding.detail.contains(line), "{name}: {finding}");
        }
        kinds.extend(fault.map(str::to_owned));
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
}

/// The most instructions of a program with the protocol; a program that waits for a value that never
/// comes does not end.
const ROUGH_LIMIT: u64 = 8_000;

/// The number of orders of a program.
const SEEDS: u64 = 12;

/// Programs without a fault on the hardware, which rely on the cycles of messages: a barrier takes
/// longer than an eviction or a write to memory, and few acknowledgments overtake a line.
const RELY_ON_CYCLES: [&str; 6] = [
    "evict_before_load",
    "evict_before_store",
    "late_acknowledgment_avoided",
    "region_after_barrier",
    "reload_after_barrier",
    "reload_after_flush",
];

/// Returns the number of orders in which a program does not end with the protocol of the hardware,
/// and the faults that it meets.
fn with_protocol(source: &str, cores: usize) -> (usize, Vec<&'static str>) {
    let (mut hangs, mut faults) = (0, Vec::new());
    for seed in 0..SEEDS {
        let mut machine = machine(source, cores, 1, false, Way::Coherent);
        let mut coherence = Coherence::new(&machine, seed);
        let halt = machine.run_coherence(&mut coherence, ROUGH_LIMIT);
        hangs += usize::from(halt != Halt::Ended);
        faults.extend(machine.findings().iter().map(|finding| finding.hazard.name()));
        if let Halt::Deadlock(deadlock) = halt {
            let hazards = deadlock.hung.iter().filter_map(|hung| match hung.reason {
                HangReason::Line { hazard, .. } => hazard,
                _ => None,
            });
            faults.extend(hazards.map(Hazard::name));
        }
    }
    faults.sort_unstable();
    faults.dedup();
    (hangs, faults)
}

#[test]
fn the_protocol_meets_each_fault_in_some_order() {
    for (name, source) in programs() {
        let cores = value(&source, "cores").and_then(|text| text.parse().ok());
        let (hangs, faults) = with_protocol(&source, cores.expect("the number of cores"));
        println!("{name}: {hangs} of {SEEDS} do not end, {faults:?}");
        match value(&source, "fault").filter(|&fault| fault != "none") {
            Some(fault) => assert!(faults.contains(&fault), "{name}: {faults:?}"),
            None if RELY_ON_CYCLES.contains(&&*name) => assert!(!faults.is_empty(), "{name}"),
            None => assert_eq!((hangs, faults), (0, Vec::new()), "{name}"),
        }
    }
}

#[test]
fn without_strict_only_barriers_are_reported() {
    for (name, source) in programs() {
        let cores = value(&source, "cores").and_then(|text| text.parse().ok());
        for way in WAYS {
            let mut machine = machine(&source, cores.expect("the number of cores"), 1, false, way);
            // A thread that reads an old value does not end, but the simulator has no old values.
            assert_eq!(run(&mut machine, way), Halt::Ended, "{name}, {way:?}");
            let barrier = value(&source, "fault") == Some("barrier_without_master");
            let findings = machine.findings();
            assert_eq!(!findings.is_empty(), barrier, "{name}: {findings:?}");
        }
    }
}

#[test]
fn one_core_has_none_of_the_faults() {
    for (name, source) in programs() {
        if value(&source, "line") != Some("0x00020000") {
            continue;
        }
        // The only core takes the part of core 0, without barriers.
        let source: String = source
            .lines()
            .filter(|line| !line.contains("barrier"))
            .fold(String::new(), |text, line| text + line + "\n");
        for way in WAYS {
            let found = found(&source, 1, 1, way);
            assert!(found.is_none(), "{name}: {found:?}");
        }
    }
}

/// Programs with the condition of a fault that their run on the hardware did not meet: all cores
/// store to and load the lines without barriers.
const REFUSED: [&str; 5] = [
    "increments of eight",
    "random accesses of two times eight",
    "random accesses of four times two",
    "random accesses of eight, with homes",
    "random accesses of eight times two",
];

#[test]
fn programs_that_ran_on_the_hardware_pass() {
    let mut wrong = Vec::new();
    for program in mesh::programs() {
        let source = format!("{}{}{}", mesh::PROLOGUE, program.code, mesh::END);
        let stops = WAYS.map(|way| found(&source, program.cores as usize, program.threads, way));
        let stops: Vec<String> = stops.iter().flatten().map(|(finding, _)| finding.to_string()).collect();
        if stops.is_empty() == REFUSED.contains(&program.name) {
            wrong.push(format!("{}: {stops:?}", program.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
