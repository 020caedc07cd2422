//! Reports and traces of timed runs.

use super::common::Golden;
use npu_mc::SReg;
use npu_sim::{
    ChromeTrace, Config, Halt, KanataTrace, Machine, NoSink, Report, Sink, Stall, Stop, Timing, TimingConfig,
};
use std::collections::BTreeMap;

const BASE: u32 = 0x1000;
/// `jmp 0`, an endless jump to itself.
const SELF: u32 = 0x7800_0000;

/// Creates a machine that runs `words` on the threads of the mask.
fn machine(words: &[u32], threads: u32) -> Machine {
    let mut machine = Machine::new(Config::default());
    for (word, address) in words.iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    for number in 0..npu_sim::THREADS {
        machine.thread_mut(number).set_scalar(SReg::RM, 0x00ff);
        machine.thread_mut(number).set_scalar(SReg::S2, 2);
        machine.thread_mut(number).set_scalar(SReg::S11, 11);
        machine.boot(number, BASE);
    }
    machine.enable(0, threads);
    machine
}

/// `write_cr s2, s11`, which sets status 2, and the jump to itself.
const END: [u32; 2] = [0x6c08_b000, SELF];

fn program(name: &str) -> (Golden, Machine) {
    let golden = Golden::folder("golden-timing").into_iter().find(|g| g.name == name);
    let golden = golden.expect("the program");
    let mut machine = Machine::new(Config::default());
    for (address, word) in &golden.image {
        machine.memory_mut().write_u32(*address, *word).unwrap();
    }
    for number in 0..npu_sim::THREADS {
        machine.boot(number, golden.pc);
    }
    machine.enable(0, golden.threads);
    (golden, machine)
}

fn timed(machine: &mut Machine, sink: &mut impl Sink) -> (Halt, Report) {
    let mut timing = Timing::new(TimingConfig::default());
    let halt = machine.run_timed(&mut timing, 1_000_000, sink);
    (halt, timing.report())
}

#[test]
fn every_cycle_of_a_thread_has_a_cause() {
    for name in ["prog-matvec16-1", "prog-crc32-1", "lat-fdiv", "thr-spmmem", "br-mix"] {
        let (_, mut machine) = program(name);
        let (halt, report) = timed(&mut machine, &mut NoSink);
        assert_eq!(halt, Halt::Ended);
        let total = &report.total;
        let stalls: u64 = total.stalls.iter().sum();
        assert_eq!(
            total.instructions + total.killed + stalls,
            report.counted_cycles(),
            "{name}"
        );
        // Both ends of the interval are issues.
        assert_eq!(report.counted_cycles(), report.cycles + 1, "{name}");
    }
}

#[test]
fn causes_are_what_the_programs_wait_for() {
    for (name, cause) in [
        ("lat-fdiv", Stall::Float),
        ("lat-int", Stall::Integer),
        ("lat-miss", Stall::Load),
        ("ic-cold-d10", Stall::InstructionMiss),
        ("br-chain", Stall::Branch),
        ("thr-ld", Stall::MemoryQueue),
        ("thr-spm", Stall::ScratchpadQueue),
        ("mt-dep-8", Stall::Fetch),
    ] {
        let (_, mut machine) = program(name);
        let (_, report) = timed(&mut machine, &mut NoSink);
        let most = Stall::ALL.into_iter().filter(|s| *s != Stall::Integer || *s == cause);
        let worst = most.max_by_key(|&s| report.total.stalled(s));
        assert_eq!(worst, Some(cause), "{name}: {:?}", report.total.stalls);
    }
}

#[test]
fn lanes_and_caches_are_counted() {
    // v1 = v1 + v1 under eight lanes, a load of s3 twice, a use of it.
    let mut words = vec![0x0404_1000 | 1 << 6 | 7 << 1, 0x820c_0000, 0x820c_0000, 0x0410_30c0];
    words.extend(END);
    let mut machine = machine(&words, 1);
    let (halt, report) = timed(&mut machine, &mut NoSink);
    assert_eq!(halt, Halt::Ended);
    assert_eq!(report.total.vector_instructions, 1);
    assert_eq!(report.lane_use(), 0.5);
    assert_eq!((report.total.data_hits, report.total.data_misses), (1, 1));
    assert_eq!(report.total.instructions, 5);
    let text = report.to_string();
    assert!(
        text.contains("vector instructions: 1, 50.0 % of their lanes on"),
        "{text}"
    );
    assert!(text.contains("data cache: 1 hit, 1 miss;"), "{text}");
}

#[test]
fn functions_share_the_cycles() {
    let (_, mut machine) = program("prog-crc32-1");
    let mut timing = Timing::new(TimingConfig::default());
    let symbols = [(0x400, "start"), (0x440, "rest"), (0x4000, "unused")];
    timing.set_symbols(symbols.map(|(address, name)| (address, name.to_owned())).to_vec());
    machine.run_timed(&mut timing, 1_000_000, &mut NoSink);
    let report = timing.report();
    let names: Vec<&str> = report.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["rest", "start"]);
    let cycles: u64 = report.functions.iter().map(|f| f.cycles).sum();
    assert_eq!(cycles, report.counted_cycles());
    let instructions: u64 = report.functions.iter().map(|f| f.instructions).sum();
    assert_eq!(instructions, report.total.instructions);
    assert!(report.ipc() < 1.0);
    // Killed instructions count as cycles only.
    let (_, mut machine) = program("br-mix");
    let mut timing = Timing::new(TimingConfig::default());
    timing.set_symbols(vec![(0, "all".to_owned())]);
    machine.run_timed(&mut timing, 1_000_000, &mut NoSink);
    let report = timing.report();
    let [all] = report.functions.as_slice() else {
        panic!("{report}");
    };
    assert!(report.total.killed != 0);
    assert_eq!(
        (all.instructions, all.cycles),
        (report.total.instructions, report.counted_cycles())
    );
}

#[test]
fn a_stop_address_stops_and_the_run_goes_on() {
    // Undecoded words before the stop address, and one at it.
    let mut words = vec![0x4404_1008, u32::MAX, u32::MAX, 0x4404_1008, u32::MAX];
    words.extend(END);
    for stop in [BASE, BASE + 8, BASE + 12] {
        let mut machine = machine(&words, 1);
        machine.add_breakpoint(stop);
        let mut timing = Timing::new(TimingConfig::default());
        let halt = machine.run_timed(&mut timing, 1000, &mut NoSink);
        let expected = Stop::Breakpoint { pc: stop };
        assert_eq!(
            halt,
            Halt::Thread {
                thread: 0,
                stop: expected
            }
        );
        assert_eq!(machine.thread(0).pc(), stop);
        assert_eq!(machine.run_timed(&mut timing, 1000, &mut NoSink), Halt::Ended);
        assert_eq!(machine.thread(0).scalar(SReg::S1), 2);
    }
}

#[test]
fn a_deadlock_and_a_limit_end_the_run() {
    // barrier s2, s11: twelve participants.
    let mut words = vec![0x6808_b000];
    words.extend(END);
    let mut deadlock = machine(&words, 3);
    assert!(matches!(timed(&mut deadlock, &mut NoSink).0, Halt::Deadlock(d) if d.waiting.len() == 2));
    let mut endless = machine(&[0x4404_1008, 0x7803_fffc], 0xff);
    let mut timing = Timing::new(TimingConfig::default());
    assert_eq!(endless.run_timed(&mut timing, 5000, &mut NoSink), Halt::StepLimit);
    let executed = timing.report().total.instructions;
    assert!((5000..5010).contains(&executed), "{executed}");
}

#[test]
fn splitting_a_timed_run_changes_nothing() {
    let (_, mut whole) = program("rnd-7-4t");
    let (_, expected) = timed(&mut whole, &mut NoSink);
    let (_, mut split) = program("rnd-7-4t");
    let mut timing = Timing::new(TimingConfig::default());
    let mut runs = 0;
    while split.run_timed(&mut timing, 7, &mut NoSink) == Halt::StepLimit {
        runs += 1;
    }
    assert!(runs > 100);
    assert_eq!(timing.report(), expected);
}

#[test]
fn cores_meet_at_a_barrier() {
    let mut machine = Machine::new(Config {
        cores: 2,
        ..Config::default()
    });
    // A barrier of two participants, one thread of each core.
    let words = [0x6808_1000, END[0], END[1]];
    for (word, address) in words.iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    for number in [0, npu_sim::THREADS] {
        let thread = machine.thread_mut(number);
        thread.set_scalar(SReg::S1, 1);
        thread.set_scalar(SReg::S2, 2);
        thread.set_scalar(SReg::S11, 11);
        machine.boot(number, BASE);
    }
    machine.enable(0, 1);
    machine.enable(1, 1);
    let (halt, report) = timed(&mut machine, &mut NoSink);
    assert_eq!(halt, Halt::Ended);
    assert_eq!(report.threads.len(), 2);
    assert_eq!(report.total.instructions, 4);
}

#[test]
fn the_kanata_log_has_every_instruction_once_and_time_goes_forward() {
    let (golden, mut machine) = program("bar-4");
    let mut bytes = Vec::new();
    let mut trace = KanataTrace::new(&mut bytes);
    let (_, report) = timed(&mut machine, &mut trace);
    trace.finish().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Kanata\t0004"));
    assert!(lines.next().is_some_and(|l| l.starts_with("C=\t")));
    let mut stages: BTreeMap<u64, String> = BTreeMap::new();
    let (mut retired, mut flushed) = (0, 0);
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |k: usize| fields[k].parse::<u64>().unwrap();
        match fields[0] {
            "C" => assert!(number(1) > 0),
            "I" => {
                assert!(number(3) < 4, "{line}");
                assert_eq!(stages.insert(number(1), String::new()), None, "{line}");
            }
            "L" => assert!(fields[3].contains(": "), "{line}"),
            "S" => stages.get_mut(&number(1)).expect("an instruction").push_str(fields[3]),
            "R" => {
                let seen = stages.remove(&number(1)).expect("an instruction");
                match number(3) {
                    0 => retired += 1,
                    _ => flushed += 1,
                }
                assert!(["FIX", "FQIX", "FI", "FQI"].contains(&seen.as_str()), "{seen}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(stages.is_empty());
    assert!(retired >= golden.instructions);
    assert_eq!(flushed, report.total.killed);
}

#[test]
fn the_chrome_trace_is_json_with_a_track_a_thread() {
    let (golden, mut machine) = program("bar-4");
    let mut bytes = Vec::new();
    let mut trace = ChromeTrace::new(&mut bytes);
    let (_, report) = timed(&mut machine, &mut trace);
    trace.finish().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |key: &str, value: &str| events.iter().filter(|e| e[key] == value).count() as u64;
    assert_eq!(of("ph", "M"), 4);
    assert_eq!(of("cat", "killed"), report.total.killed);
    assert!(of("cat", "instruction") >= golden.instructions);
    let misses = report.total.data_misses + report.total.instruction_misses;
    assert_eq!(of("cat", "miss"), misses);
    for event in events {
        assert!(event["tid"].as_u64().unwrap() < 4);
        assert!(event["ph"] == "M" || event["ts"].is_u64(), "{event}");
    }
    // An empty trace is JSON, too.
    let mut bytes = Vec::new();
    ChromeTrace::new(&mut bytes).finish().unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
}

#[test]
fn a_run_ends_at_its_limit_of_cycles() {
    let (_, mut machine) = program("prog-crc32-1");
    let (halt, whole) = timed(&mut machine, &mut NoSink);
    assert_eq!(halt, Halt::Ended);
    let (_, mut machine) = program("prog-crc32-1");
    let mut timing = Timing::new(TimingConfig::default());
    for limit in [0, 1, 100, whole.cycles / 2] {
        timing.set_cycle_limit(Some(limit));
        assert_eq!(machine.run_timed(&mut timing, u64::MAX, &mut NoSink), Halt::CycleLimit);
        let cycles = timing.report().cycles;
        // A core skips idle cycles.
        assert!((limit..limit + 50).contains(&cycles), "{limit}: {cycles}");
    }
    // The run continues as if it had not stopped.
    timing.set_cycle_limit(None);
    assert_eq!(machine.run_timed(&mut timing, u64::MAX, &mut NoSink), Halt::Ended);
    assert_eq!(timing.report().cycles, whole.cycles);
}

/// Threads that reach a stop address together stop once each, even if another one stops before the
/// thread has continued.
#[test]
fn every_thread_stops_once_at_a_stop_address() {
    let mut words = vec![0x0404_1000; 3];
    words.extend(END);
    let mut machine = machine(&words, 0xff);
    machine.add_breakpoint(BASE + 4);
    let mut timing = Timing::new(TimingConfig::default());
    let mut stopped = Vec::new();
    loop {
        match machine.run_timed(&mut timing, 10_000, &mut NoSink) {
            Halt::Thread {
                thread,
                stop: Stop::Breakpoint { pc },
            } => {
                assert_eq!(pc, BASE + 4);
                stopped.push(thread);
                assert!(stopped.len() <= 8, "{stopped:?}");
            }
            halt => break assert_eq!(halt, Halt::Ended),
        }
    }
    stopped.sort_unstable();
    assert_eq!(stopped, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_word_that_becomes_an_instruction_after_its_fetch_keeps_no_register_waiting() {
    // s20 is the word that replaces an undecoded word at BASE + 24, which is fetched before the
    // replacement; s21 is BASE. Two products delay the store. The load after it is fetched as the
    // next instruction, but then is not the next one to execute.
    let words = [
        0x0600_0000 | 3 << 18 | 2 << 12 | 2 << 6,
        0x0600_0000 | 3 << 18 | 3 << 12 | 2 << 6,
        0x0500_0000 | 4 << 18 | 3 << 12 | 3 << 6,
        // s4 is 0 at this point.
        0x0400_0000 | 22 << 18 | 21 << 12 | 4 << 6,
        0xa200_0000 | 20 << 18 | 22 << 12 | 24 << 3,
        0x0400_0000 | 5 << 18 | 2 << 12 | 2 << 6,
        0xf8e2_7870,
        0x8200_0000 | 6 << 18 | 21 << 12,
        0x0400_0000 | 7 << 18 | 6 << 12 | 2 << 6,
        END[0],
        END[1],
    ];
    let mut machine = machine(&words, 1);
    let s = |number| SReg::new(number).unwrap();
    machine
        .thread_mut(0)
        .set_scalar(s(20), 0x0400_0000 | 8 << 18 | 2 << 12 | 2 << 6);
    machine.thread_mut(0).set_scalar(s(21), BASE);
    let (halt, _) = timed(&mut machine, &mut NoSink);
    assert_eq!(halt, Halt::Ended);
    assert_eq!(machine.thread(0).scalar(s(8)), 4);
    assert_eq!(machine.thread(0).scalar(s(7)), words[0].wrapping_add(2));
}
