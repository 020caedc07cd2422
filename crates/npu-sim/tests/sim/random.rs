//! Random words: nothing panics or runs endlessly, and the fast interpreter, the definition and
//! single steps agree, with one thread and with many, with and without data caches.
//!
//! Seeds are fixed, and failures print them.

use super::common::{Random, sreg, vreg};
use npu_mc::machine::ControlRegister;
use npu_mc::raw::RawInst;
use npu_sim::{
    Config, Halt, Issue, Lanes, Machine, NoSink, Progress, Report, Schedule, Sink, Stop, THREADS, Timing, TimingConfig,
};

/// The number of words of a random program.
const WORDS: u32 = 256;
const BASE: u32 = 0x1000;
const DATA: u32 = 0x10_0000;

/// Returns a random word that decodes more often than a uniform one and shares operands with
/// others.
fn word(random: &mut Random, tame: bool) -> u32 {
    let any = random.word();
    if !tame {
        return any;
    }
    // Few registers, so that results are used; occasionally the special ones.
    let register = |r: &mut Random| match r.below(24) {
        0 => 59,
        1 => 63,
        2 => 62,
        n => n % 12,
    };
    let (d, a, b) = (register(random), register(random), register(random));
    let v = random.below(8) & random.below(8);
    let fields = d << 18 | a << 12;
    match random.below(16) {
        0..=3 => {
            let op = [random.below(26), 32 + random.below(14), 48, 49, 50];
            op[random.below(5) as usize] << 24 | fields | b << 6 | v << 1 | (any & 1)
        }
        4..=6 => 0x4000_0000 | random.below(26) << 24 | fields | (any & 0xff8) | (v << 1 & 6),
        7 | 8 => 0x6000_0000 | random.below(3) << 24 | d << 18 | (any & 0x3_ffff & !2) | (v << 1 & 2),
        9..=12 => {
            let op = [0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 32, 33, 34, 36, 37, 38][random.below(16) as usize];
            // Bases 10 and 11 point into the data; most offsets are aligned.
            let base = 10 + random.below(2);
            let offset = any & if random.below(8) == 0 { 0x1f } else { 0x1c0 };
            let scratchpad = u32::from(random.below(6) == 0);
            0x8000_0000 | op << 24 | d << 18 | base << 12 | offset << 3 | scratchpad << 1
        }
        13 => {
            let distance = 4 * (random.below(24) + 1);
            0x7500_0000 | random.below(2) << 24 | d << 18 | distance
        }
        14 => 0x7800_0000 | random.below(2) << 24 | (4 * (random.below(12) + 1)),
        _ => any,
    }
}

fn prepared(seed: u64, tame: bool) -> Machine {
    let mut random = Random(seed);
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 24,
        ..Config::default()
    });
    for k in 0..WORDS {
        let word = word(&mut random, tame);
        machine.memory_mut().write_u32(BASE + 4 * k, word).unwrap();
    }
    for k in 0..256 {
        let word = random.word();
        machine.memory_mut().write_u32(DATA + 4 * k, word).unwrap();
    }
    let thread = machine.thread_mut(0);
    for register in 0..64 {
        thread.set_scalar(sreg(register), random.word());
        let lanes = std::array::from_fn(|_| random.word());
        thread.set_vector(vreg(register), Lanes(lanes));
    }
    if tame {
        // Occasionally the data addresses point into the code.
        let code = random.below(16) == 0;
        thread.set_scalar(sreg(10), if code { BASE } else { DATA });
        thread.set_scalar(sreg(11), DATA + 0x200);
    }
    thread.set_pc(BASE);
    machine
}

/// Returns a word for one of several threads: like [`word`], plus the C format and every access
/// that does not hang.
fn shared_word(random: &mut Random) -> u32 {
    let few = random.below(12) << 18;
    let data = 10 + random.below(2);
    match random.below(24) {
        // Barriers with the id in s12 and the count in s13.
        0 => 0x6800_0000 | 12 << 18 | 13 << 12,
        // Flushes and invalidations; an unaligned address traps.
        1 => (0x6a + 3 * random.below(2)) << 24 | data << 18,
        // Control registers, with the id in s14.
        2 => 0x6b00_0000 | few | 14 << 12,
        3 => 0x6c00_0000 | few | 14 << 12,
        // Control operations without an effect.
        4 => [0x69, 0x6e, 0x6f][random.below(3) as usize] << 24 | few,
        5..=7 => {
            let op = [
                3, 6, 7, 8, 10, 11, 12, 13, 14, 16, 18, 35, 36, 37, 39, 40, 41, 42, 43, 63,
            ];
            let op = op[random.below(op.len() as u32) as usize];
            let offset = [0, 4, 64, 128, 2][random.below(5) as usize];
            0x8000_0000 | op << 24 | few | data << 12 | offset << 3
        }
        _ => word(random, true),
    }
}

/// Creates threads with separate programs and shared memory.
fn prepared_threads(seed: u64) -> Machine {
    let mut random = Random(seed);
    let cores = 1 + random.below(2) as usize;
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 24,
        cores,
        coherent: random.below(2) == 0,
        ..Config::default()
    });
    for k in 0..0x1000 {
        let word = shared_word(&mut random);
        machine.memory_mut().write_u32(BASE + 4 * k, word).unwrap();
    }
    for k in 0..0x1000 {
        let word = random.word();
        machine.memory_mut().write_u32(DATA + 4 * k, word).unwrap();
    }
    let id = random.below(64);
    for number in 0..machine.threads() {
        let thread = machine.thread_mut(number);
        for register in 0..64 {
            thread.set_scalar(sreg(register), random.word());
            let lanes = std::array::from_fn(|_| random.word());
            thread.set_vector(vreg(register), Lanes(lanes));
        }
        // Lines of one set, so that evictions occur; some lines are shared.
        thread.set_scalar(sreg(10), DATA + 0x800 * random.below(6));
        thread.set_scalar(sreg(11), DATA + 0x40 * random.below(8));
        thread.set_scalar(sreg(12), id);
        thread.set_scalar(sreg(13), random.below(3));
        let registers = ControlRegister::ALL;
        let register = registers[random.below(registers.len() as u32) as usize];
        thread.set_scalar(sreg(14), register.number().into());
        machine.boot(number, BASE + 4 * random.below(0xf00));
    }
    for core in 0..cores {
        machine.enable(core, random.below(256));
    }
    machine
}

/// Compares all state in which two runs must agree.
pub fn compare(seed: u64, a: &Machine, b: &Machine) {
    for core in 0..a.cores() {
        let cycles = |machine: &Machine| machine.control_register(core * THREADS, ControlRegister::CyclesLow);
        assert_eq!(cycles(a), cycles(b), "clock, seed {seed}");
    }
    compare_state(seed, a, b);
}

/// Compares all state except the clock.
pub fn compare_state(seed: u64, a: &Machine, b: &Machine) {
    for number in 0..a.threads() {
        compare_thread(seed, a, b, number);
    }
    let mut memory = [[0; 0x4000]; 2];
    for start in [BASE, DATA, DATA - 0x1000, BASE - 0x1000] {
        a.memory().read(start, &mut memory[0]);
        b.memory().read(start, &mut memory[1]);
        assert!(memory[0] == memory[1], "memory {start:08x}, seed {seed}");
    }
    for core in 0..a.cores() {
        a.read_as_core(core, DATA, &mut memory[0]);
        b.read_as_core(core, DATA, &mut memory[1]);
        assert!(memory[0] == memory[1], "memory as core {core} sees it, seed {seed}");
        assert!(
            a.core_scratchpad(core) == b.core_scratchpad(core),
            "scratchpad, seed {seed}"
        );
    }
    assert_eq!(a.console_output(), b.console_output(), "console, seed {seed}");
    assert_eq!(a.findings(), b.findings(), "findings, seed {seed}");
}

fn compare_thread(seed: u64, a: &Machine, b: &Machine, number: usize) {
    assert_eq!(a.waiting(number), b.waiting(number), "barrier, seed {seed}");
    let (x, y) = (a.thread(number), b.thread(number));
    assert_eq!(x.pc(), y.pc(), "pc, seed {seed}");
    assert_eq!(x.mask(), y.mask(), "mask, seed {seed}");
    assert_eq!(x.status(), y.status(), "status, seed {seed}");
    assert_eq!(x.trap_reason(), y.trap_reason(), "trap, seed {seed}");
    assert_eq!(x.instructions(), y.instructions(), "count, seed {seed}");
    for register in 0..63 {
        let (p, q) = (x.scalar(sreg(register)), y.scalar(sreg(register)));
        assert_eq!(p, q, "s{register}, seed {seed}");
        let (p, q) = (x.vector(vreg(register)), y.vector(vreg(register)));
        assert_eq!(p, q, "v{register}, seed {seed}");
    }
}

#[test]
fn the_fast_interpreter_agrees_with_the_definition() {
    let mut executed = 0;
    for seed in 0..2000 {
        let mut fast = prepared(seed, true);
        let mut defined = prepared(seed, true);
        let a = fast.run(0, 700);
        let b = defined.run_traced(0, 700, &mut |_| {});
        assert_eq!(a, b, "stop, seed {seed}");
        compare(seed, &fast, &defined);
        executed += fast.thread(0).instructions();
    }
    println!("{executed} instructions");
    assert!(executed > 100_000, "{executed}: the programs end too early");
}

/// Returns a word of a program on vectors under masks, some of which come from compares.
fn vector_word(random: &mut Random) -> u32 {
    let (d, a, b) = (random.below(8), random.below(8), random.below(8));
    let registers = d << 18 | a << 12 | b << 6;
    let operations = [0, 1, 3, 4, 6, 9, 11, 13, 32, 33, 34, 35, 36, 43, 44, 45, 48, 49];
    let operation = operations[random.below(operations.len() as u32) as usize] << 24;
    let compare = [14, 16, 20, 22, 37, 38, 39, 41][random.below(8) as usize] << 24;
    match random.below(16) {
        // Two vectors, one vector as the first or as the second operand, and an immediate as the
        // second.
        0..=3 => operation | registers | 7 << 1,
        4 => operation | registers | 6 << 1,
        5 => operation | registers | 5 << 1,
        6 => 0x4000_0000 | operation & 0x1f00_0000 | registers & !0xfc0 | random.below(512) << 3 | 6,
        7..=9 => compare | registers | (2 + random.below(2)) << 1,
        10 => 0x4000_0000 | compare & 0x1f00_0000 | registers & !0xfc0 | random.below(512) << 3 | 2 << 1,
        // `rm` from a register or an immediate; a copy of a compare result.
        11 => 32 << 24 | 59 << 18 | a << 12,
        12 if random.below(2) == 0 => 0x6000_0000 | 59 << 18 | random.below(0x1_0000) << 2,
        // Halves, lanes by number, bits.
        12 => match random.below(6) {
            0 => 0x6000_0002 | random.below(2) << 24 | d << 18 | random.below(0x1_0000) << 2,
            1 => 0x4000_0000 | 2 << 24 | d << 18 | a << 12 | 15 << 3 | 6,
            2 => 24 << 24 | registers | 7 << 1,
            3 => 25 << 24 | registers | 2 << 1,
            4 => 0x4000_0000 | 25 << 24 | d << 18 | a << 12 | random.below(18) << 3 | 2 << 1,
            _ => 50 << 24 | registers | 2 << 1,
        },
        13 => 32 << 24 | d << 18 | a << 12 | b << 6,
        // Vector accesses and spills of compare results.
        14 => {
            let op = [9, 38, 7, 8, 11, 12, 36, 37][random.below(8) as usize];
            0x8000_0000 | op << 24 | d << 18 | 10 << 12 | random.below(16) << 7
        }
        _ => 0x8000_0000 | [2, 34][random.below(2) as usize] << 24 | d << 18 | 10 << 12 | random.below(64) << 5,
    }
}

#[test]
fn masked_vectors_agree_in_the_fast_interpreter_and_the_definition() {
    let run = |seed: u64, fast: bool| {
        let mut machine = prepared(seed, true);
        let mut random = Random(!seed);
        for k in 0..WORDS {
            let word = vector_word(&mut random);
            machine.memory_mut().write_u32(BASE + 4 * k, word).unwrap();
        }
        machine.thread_mut(0).set_scalar(sreg(10), DATA);
        if fast {
            assert_eq!(machine.run(0, WORDS.into()), Stop::StepLimit, "seed {seed}");
        } else {
            (0..WORDS).for_each(|_| assert!(machine.step(0).is_ok(), "seed {seed}"));
        }
        machine
    };
    let mut undriven = 0;
    for seed in 90_000..90_400 {
        let defined = run(seed, false);
        compare(seed, &run(seed, true), &defined);
        undriven += defined.findings().len();
    }
    assert!(
        undriven > 1000,
        "{undriven}: too few uses of what compares leave undriven"
    );
}

/// Returns a schedule that depends on the seed.
fn schedule(seed: u64) -> Schedule {
    let mut random = Random(seed ^ 0x55);
    let quantum = 1 + random.below(40);
    if random.below(2) == 0 {
        Schedule::round_robin(quantum)
    } else {
        Schedule::random(seed, quantum)
    }
}

#[test]
fn threads_agree_in_the_fast_interpreter_and_the_definition() {
    let mut executed = 0;
    let mut deadlocks = 0;
    for seed in 30_000..32_000 {
        let mut fast = prepared_threads(seed);
        let mut defined = prepared_threads(seed);
        let a = fast.run_threads(&mut schedule(seed), 3000);
        let b = defined.run_threads_traced(&mut schedule(seed), 3000, &mut |_| {});
        assert_eq!(a, b, "halt, seed {seed}");
        compare(seed, &fast, &defined);
        deadlocks += u32::from(matches!(a, Halt::Deadlock(_)));
        executed += (0..fast.threads()).map(|k| fast.thread(k).instructions()).sum::<u64>();
    }
    println!("{executed} instructions, {deadlocks} deadlocks");
    assert!(executed > 500_000, "{executed}: the programs end too early");
}

#[test]
fn threads_agree_in_a_run_and_in_steps() {
    for seed in 40_000..41_000 {
        let mut whole = prepared_threads(seed);
        let mut steps = prepared_threads(seed);
        let iterations = 100;
        // One instruction of each ready thread in turn, like round-robin with quantum 1.
        let mut going: Vec<bool> = (0..steps.threads()).map(|k| steps.is_enabled(k)).collect();
        let mut executed = 0;
        let mut full = false;
        for _ in 0..iterations {
            for (number, going) in going.iter_mut().enumerate() {
                if !*going || steps.thread(number).is_waiting() || full {
                    continue;
                }
                let before = steps.thread(number).instructions();
                match steps.step(number) {
                    Ok(step) => {
                        assert_eq!(step.next_pc, steps.thread(number).pc());
                        *going = !matches!(step.progress, Progress::Ended(_) | Progress::Hang(_));
                    }
                    Err(stop) => {
                        assert!(matches!(stop, Stop::MemoryFull { .. }), "{stop}, seed {seed}");
                        full = true;
                    }
                }
                executed += steps.thread(number).instructions() - before;
            }
        }
        // The last instruction may be followed by turns of threads that only hang and execute
        // nothing.
        let mut schedule = Schedule::round_robin(1);
        if whole.run_threads(&mut schedule, executed) == Halt::StepLimit {
            whole.run_threads(&mut schedule, 0);
        }
        compare(seed, &whole, &steps);
    }
}

#[test]
fn splitting_a_run_of_threads_changes_nothing() {
    for seed in 50_000..50_500 {
        let mut whole = prepared_threads(seed);
        let mut split = prepared_threads(seed);
        let a = whole.run_threads(&mut schedule(seed), 1000);
        let mut random = Random(seed);
        let mut turns = schedule(seed);
        let mut left = 1000;
        let b = loop {
            let part = u64::from(random.below(30) + 1).min(left);
            left -= part;
            let halt = split.run_threads(&mut turns, part);
            if halt != Halt::StepLimit || left == 0 {
                break halt;
            }
        };
        assert_eq!(a, b, "halt, seed {seed}");
        compare(seed, &whole, &split);
    }
}

#[test]
fn splitting_a_run_changes_nothing() {
    for seed in 5000..5500 {
        let mut whole = prepared(seed, true);
        let mut split = prepared(seed, true);
        let a = whole.run(0, 600);
        let mut random = Random(seed);
        let mut left = 600;
        let b = loop {
            let part = u64::from(random.below(7) + 1).min(left);
            left -= part;
            let stop = split.run(0, part);
            if stop != Stop::StepLimit || left == 0 {
                break stop;
            }
        };
        assert_eq!(a, b, "stop, seed {seed}");
        compare(seed, &whole, &split);
    }
}

#[test]
fn any_words_are_executed_without_harm() {
    for seed in 10_000..11_500 {
        let mut machine = prepared(seed, false);
        let stop = machine.run(0, 2000);
        assert_ne!(stop, Stop::NoSuchThread);
        assert!(machine.thread(0).instructions() <= 2000);
    }
}

#[test]
fn every_operation_with_every_flag_is_executed_without_harm() {
    let mut random = Random(7);
    let mut machine = prepared(1, true);
    for top in 0..=255u32 {
        for _ in 0..64 {
            let word = top << 24 | random.word() >> 8;
            machine.memory_mut().write_u32(BASE, word).unwrap();
            let thread = machine.thread_mut(0);
            thread.set_pc(BASE);
            for register in 0..64 {
                thread.set_scalar(sreg(register), random.word());
                thread.set_vector(vreg(register), Lanes::splat(random.word()));
            }
            let before = machine.thread(0).instructions();
            machine.run(0, 1);
            assert!(machine.thread(0).instructions() <= before + 1);
        }
    }
}

#[test]
fn a_strict_machine_stops_where_a_lenient_one_finds_first() {
    for seed in 20_000..20_500 {
        let mut lenient = prepared(seed, true);
        let mut strict = Machine::new(Config {
            strict: true,
            ..Config::default()
        });
        for k in 0..WORDS {
            let word = lenient.memory().read_u32(BASE + 4 * k);
            strict.memory_mut().write_u32(BASE + 4 * k, word).unwrap();
        }
        for k in 0..256 {
            let word = lenient.memory().read_u32(DATA + 4 * k);
            strict.memory_mut().write_u32(DATA + 4 * k, word).unwrap();
        }
        *strict.thread_mut(0) = lenient.thread(0).clone();
        lenient.run(0, 500);
        let stop = strict.run(0, 500);
        match (lenient.findings().first(), stop) {
            (Some(first), Stop::Erratum(finding)) => {
                assert_eq!((first.pc, first.hazard), (finding.pc, finding.hazard), "{seed}");
            }
            (Some(_), stop) => panic!("strict run stopped by {stop}, seed {seed}"),
            (None, Stop::Erratum(finding)) => panic!("{finding}, seed {seed}"),
            (None, _) => {}
        }
    }
}

#[test]
fn damaged_images_are_refused_with_places() {
    use npu_link::{Format, Image};
    let digits = |n: usize| "0123456789abcdef".repeat(n / 16);
    let texts = [
        format!("@400\n{} # end\n0x12, 34\n", "62c8000c ".repeat(9)),
        format!("{}\n{}\n", digits(128), digits(128)),
        format!("0x00000400,0x{}\n", digits(128)),
    ];
    let mut random = Random(3);
    for iteration in 0..6000 {
        let mut bytes = texts[iteration % texts.len()].clone().into_bytes();
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len() as u32) as usize;
            match random.below(3) {
                0 => bytes[place] = random.word() as u8,
                1 => bytes.insert(place, b"\n@#x,\xc3 "[random.below(7) as usize]),
                _ => bytes.truncate(place + 1),
            }
        }
        let detected = Format::detect(&bytes);
        for format in [Format::HexWords, Format::Mem, Format::MemStandalone, detected] {
            match Image::parse(format, &bytes, 0xffff_ffc0) {
                Ok(image) => {
                    let mut machine = Machine::new(Config {
                        memory_limit: 1 << 20,
                        ..Config::default()
                    });
                    machine.load(&image).expect("an image of a few lines");
                }
                Err(errors) => assert!(errors.iter().all(|e| e.line > 0 && e.column > 0) && !errors.is_empty()),
            }
        }
    }
}

/// Makes the counters of a timing model unreadable for the program.
fn without_counters(mut machine: Machine) -> Machine {
    for number in 0..machine.threads() {
        let register = ControlRegister::ThreadStatus.number();
        machine.thread_mut(number).set_scalar(sreg(14), register.into());
    }
    machine
}

#[test]
fn timed_runs_of_a_thread_give_what_plain_ones_give() {
    for seed in 60_000..60_500 {
        let mut timed = prepared(seed, true);
        timed.enable(0, 1);
        let mut timing = Timing::new(TimingConfig {
            memory_delay: seed as u32 % 5,
            ..TimingConfig::default()
        });
        let halt = timed.run_timed(&mut timing, 700, &mut NoSink);
        let mut plain = prepared(seed, true);
        plain.run(0, timed.thread(0).instructions());
        if let Halt::Deadlock(_) = halt {
            // A hanging instruction does not count.
            plain.run(0, 1);
        }
        compare_state(seed, &timed, &plain);
    }
}

#[test]
fn timed_runs_of_threads_give_what_steps_in_the_same_order_give() {
    let mut issued = 0;
    for seed in 70_000..70_300 {
        let mut timed = without_counters(prepared_threads(seed));
        let mut timing = Timing::new(TimingConfig {
            memory_delay: seed as u32 % 5,
            ..TimingConfig::default()
        });
        let mut order = Vec::new();
        timed.run_timed(&mut timing, 3000, &mut |issue: &Issue| {
            if !issue.killed {
                order.push((issue.thread, issue.pc));
            }
        });
        issued += order.len();
        let mut plain = without_counters(prepared_threads(seed));
        let mut at_rest = vec![false; plain.threads()];
        let mut failed = false;
        for (thread, pc) in order {
            // Undecoded words do not issue; a store may have replaced a fetched instruction; an
            // ended thread takes turns without executing.
            let at = |plain: &Machine| plain.next_instruction(thread);
            while !failed && at(&plain).0 != pc && at(&plain).1 == RawInst::Undefined {
                failed = plain.step(thread).is_err();
            }
            if failed || at_rest[thread] || at(&plain).0 != pc {
                continue;
            }
            match plain.step(thread) {
                Ok(step) => at_rest[thread] = matches!(step.progress, Progress::Ended(_) | Progress::Hang(_)),
                Err(_) => failed = true,
            }
        }
        compare_state(seed, &timed, &plain);
    }
    assert!(issued > 100_000, "{issued}: the programs end too early");
}

/// Runs a machine in parts of at most `part` instructions; returns the end of each part and the
/// counts at that time.
fn timed_parts<S: Sink>(machine: &mut Machine, timing: &mut Timing, part: u64, sink: &mut S) -> Vec<(Halt, Report)> {
    timing.set_cycle_limit(Some(50_000));
    let mut parts = Vec::new();
    for _ in 0..1500 / part {
        let halt = machine.run_timed(timing, part, sink);
        let goes_on = halt == Halt::StepLimit;
        // A run with a cycle limit may end some cycles later.
        if halt != Halt::CycleLimit {
            parts.push((halt, timing.report()));
        }
        if !goes_on {
            break;
        }
    }
    parts
}

fn timing_of(seed: u64) -> Timing {
    Timing::new(TimingConfig {
        memory_delay: seed as u32 % 23,
        ..TimingConfig::default()
    })
}

/// Runs in parts either cycle by cycle or with skipped idle cycles; also returns the issues.
fn timed_in_parts(machine: &mut Machine, seed: u64, every_cycle: bool, part: u64) -> (Vec<(Halt, Report)>, Vec<Issue>) {
    let mut timing = timing_of(seed);
    timing.set_every_cycle(every_cycle);
    let mut issues = Vec::new();
    let parts = timed_parts(machine, &mut timing, part, &mut |issue: &Issue| issues.push(*issue));
    (parts, issues)
}

/// Runs in parts without a listening sink.
fn timed_in_parts_silently(machine: &mut Machine, seed: u64, part: u64) -> Vec<(Halt, Report)> {
    timed_parts(machine, &mut timing_of(seed), part, &mut NoSink)
}

#[test]
fn passing_over_idle_cycles_changes_no_cycle_and_no_count() {
    let mut issued = 0;
    for seed in 90_000..90_400 {
        // Threads that share memory and meet at barriers, on one core or two; and one thread or
        // eight in one program.
        let prepared = || {
            if seed % 2 == 0 {
                return prepared_threads(seed);
            }
            let mut machine = prepared(seed, seed % 8 != 1);
            machine.enable(0, if seed % 4 == 1 { 1 } else { 0xff });
            for thread in 1..THREADS {
                machine.boot(thread, BASE + 4 * thread as u32);
            }
            machine
        };
        let part = [1500, 1500, 40][seed as usize % 3];
        let (mut passing, mut each) = (prepared(), prepared());
        let (parts, issues) = timed_in_parts(&mut passing, seed, false, part);
        let (each_parts, each_issues) = timed_in_parts(&mut each, seed, true, part);
        for (a, b) in issues.iter().zip(&each_issues) {
            assert_eq!(a, b, "seed {seed}");
        }
        assert_eq!(issues.len(), each_issues.len(), "seed {seed}");
        assert_eq!(parts, each_parts, "seed {seed}");
        compare_state(seed, &passing, &each);
        // Without a listening sink known stretches are replayed.
        let mut silent = prepared();
        let silent_parts = timed_in_parts_silently(&mut silent, seed, part);
        assert_eq!(silent_parts, each_parts, "seed {seed}");
        compare_state(seed, &silent, &each);
        issued += issues.len();
    }
    assert!(issued > 100_000, "{issued}: the programs end too early");
}

#[test]
fn any_words_are_timed_without_harm() {
    for seed in 80_000..80_200 {
        let mut machine = prepared(seed, false);
        machine.enable(0, 0xff);
        for thread in 1..THREADS {
            machine.boot(thread, BASE + 4 * thread as u32);
        }
        let mut timing = Timing::new(TimingConfig::default());
        machine.run_timed(&mut timing, 2000, &mut NoSink);
        assert!(timing.report().total.instructions < 10_000);
    }
}
