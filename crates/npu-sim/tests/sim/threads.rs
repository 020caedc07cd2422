//! Several threads and cores: barriers, turns, deadlocks, shared state, and stores in the data
//! caches.

use super::common::{sreg, vreg};
use super::words::*;
use npu_mc::machine::{BARRIER_COUNTERS, ControlRegister, DCACHE_SETS, TRAP_VECTOR};
use npu_sim::{
    Config, Control, Deadlock, Halt, HangReason, Hazard, Hung, Lanes, Machine, Progress, Schedule, Status, Stop,
    THREADS, Waiting,
};

const BASE: u32 = 0x1000;
const DATA: u32 = 0x10_0000;
/// Registers that [`start`] sets: the final status, and the id of the status register.
const END: u32 = 50;
const STATUS: u32 = 51;
const LIMIT: u64 = 1_000_000;

/// The end of a program: a write of the status in [`END`], and a jump to itself.
const FINISH: [u32; 2] = [0x6c00_0000 | END << 18 | STATUS << 12, 0x7800_0000];

fn config(cores: usize, coherent: bool) -> Config {
    Config {
        cores,
        coherent,
        ..Config::default()
    }
}

/// Writes `words` and the end of the program to `address`.
fn place(machine: &mut Machine, address: u32, words: &[u32]) {
    for (word, at) in words.iter().chain(&FINISH).zip((address..).step_by(4)) {
        machine.memory_mut().write_u32(at, *word).unwrap();
    }
}

/// Prepares a thread for a run at `address`.
fn start(machine: &mut Machine, number: usize, address: u32) {
    let thread = machine.thread_mut(number);
    for register in 0..63 {
        thread.set_scalar(sreg(register), 0);
    }
    thread.set_scalar(sreg(59), 0xffff);
    thread.set_scalar(sreg(END), Status::ENDED.code());
    thread.set_scalar(sreg(STATUS), ControlRegister::ThreadStatus.number().into());
    machine.boot(number, address);
}

/// Creates a machine that runs `words` in the first `count` threads; every thread has its number in
/// s1.
fn all(config: Config, count: usize, words: &[u32]) -> Machine {
    let mut machine = Machine::new(config);
    place(&mut machine, BASE, words);
    place(&mut machine, TRAP_VECTOR, &[ri(4, END, END, 1)]);
    for number in 0..count {
        start(&mut machine, number, BASE);
        machine.thread_mut(number).set_scalar(sreg(1), number as u32);
    }
    for core in 0..machine.cores() {
        let left = count.saturating_sub(core * THREADS).min(THREADS);
        machine.enable(core, (1 << left) - 1);
    }
    machine
}

fn run(machine: &mut Machine) -> Halt {
    machine.run_threads(&mut Schedule::default(), LIMIT)
}

/// Reads a word as the host sees it, without the dirty bytes of the caches.
fn seen_by_host(machine: &Machine, address: u32) -> u32 {
    machine.memory().read_u32(address)
}

#[test]
fn a_barrier_opens_for_all_cores() {
    // Each thread stores its number, meets the others, and adds all numbers.
    let count = 3 * THREADS;
    let mut words = vec![
        ri(11, 5, 1, 2),
        rr(4, 5, 5, 40, SSS),
        mem(34, 1, 5, 0),
        mvi(2, 6, 42, 0),
        mvi(2, 7, count as u32 - 1, 0),
        ctl(0, 6, 7),
    ];
    for k in 0..count as i32 {
        words.push(mem(2, 8, 40, 4 * k));
        words.push(rr(4, 9, 9, 8, SSS));
    }
    for coherent in [true, false] {
        for seed in 0..20 {
            let mut machine = all(config(3, coherent), count, &words);
            for number in 0..count {
                machine.thread_mut(number).set_scalar(sreg(40), DATA);
            }
            let halt = machine.run_threads(&mut Schedule::random(seed, 1 + seed as u32), LIMIT);
            assert_eq!(halt, Halt::Ended, "seed {seed}");
            for number in 0..count {
                let sum = machine.thread(number).scalar(sreg(9));
                assert_eq!(
                    sum,
                    (0..count as u32).sum::<u32>(),
                    "thread {number}, coherent {coherent}, seed {seed}"
                );
            }
        }
    }
}

#[test]
fn a_deadlock_is_reported_by_thread() {
    let words = [mvi(2, 6, 42, 0), mvi(2, 7, 3, 0), ctl(0, 6, 7)];
    let mut machine = all(Config::default(), 3, &words);
    // Two more threads: one hangs in a missing float unit, one ends.
    let other = BASE + 0x100;
    place(&mut machine, other, &[rr(46, 1, 2, 0, SSS)]);
    place(&mut machine, other + 0x100, &[]);
    start(&mut machine, 3, other);
    start(&mut machine, 6, other + 0x100);
    machine.enable(0, 0b100_1111);
    let waiting = |thread| Waiting {
        thread,
        id: 42,
        pc: BASE + 8,
        arrived: 3,
        expected: 4,
    };
    let report = Deadlock {
        waiting: vec![waiting(0), waiting(1), waiting(2)],
        hung: vec![Hung {
            thread: 3,
            pc: other,
            reason: HangReason::MissingUnit { op: 46 },
        }],
        ended: vec![6],
    };
    assert_eq!(run(&mut machine), Halt::Deadlock(report.clone()));
    assert_eq!(
        report.to_string(),
        "no thread can go on\n  \
         threads 0-2 wait at barrier 42 at 0x00001008: 3 of 4 arrived\n  \
         thread 3 hangs at 0x00001100: operation 46 goes to a float unit that does not exist\n  \
         ended: 6"
    );
    // The same report again, and the status register as other threads see it.
    assert_eq!(run(&mut machine), Halt::Deadlock(report));
    let status = |number| machine.control_register(number, ControlRegister::ThreadStatus);
    assert_eq!(status(1), Status::BARRIER.code());
    assert_eq!(status(6), Status::ENDED.code());
    // A fourth arrival, by a thread that the host starts, releases the three.
    start(&mut machine, 6, BASE);
    assert!(
        matches!(run(&mut machine), Halt::Deadlock(report) if report.waiting.is_empty() && report.ended.len() == 4)
    );
}

#[test]
fn ids_with_equal_low_bits_share_a_counter_of_one_core() {
    // Threads 0 and 2 meet at 1, threads 1 and 3 at 1 + 32.
    let words = [
        ri(2, 6, 1, 1),
        ri(11, 6, 6, BARRIER_COUNTERS.trailing_zeros() as i32),
        ri(4, 6, 6, 1),
        mvi(2, 7, 1, 0),
        ctl(0, 6, 7),
    ];
    let mut machine = all(config(1, true), 4, &words);
    // Thread 1 opens the barrier at which thread 0 arrived, thread 3 that of thread 2.
    let halt = machine.run_threads(&mut Schedule::round_robin(1), LIMIT);
    let Halt::Deadlock(report) = halt else { panic!("{halt}") };
    assert_eq!(report.ended, [1, 3]);
    let waiting = |thread| Waiting {
        thread,
        id: 1,
        pc: BASE + 16,
        arrived: 0,
        expected: 0,
    };
    assert_eq!(report.waiting, [waiting(0), waiting(2)]);
    assert!(report.to_string().contains("it opened for others"));
    // With a master in each tile the counters are separate.
    let mut machine = all(config(2, true), 4, &words);
    assert_eq!(machine.run_threads(&mut Schedule::round_robin(1), LIMIT), Halt::Ended);
}

#[test]
fn threads_run_alone_meet_as_well() {
    let words = [mvi(2, 6, 9, 0), mvi(2, 7, 1, 0), ctl(0, 6, 7)];
    let mut machine = all(Config::default(), 2, &words);
    let reason = HangReason::Barrier { id: 9, missing: 1 };
    let hang = Stop::Hang { pc: BASE + 8, reason };
    assert_eq!(machine.run(0, 100), hang);
    assert_eq!(machine.run_traced(0, 100, &mut |_| {}), hang);
    assert_eq!(machine.step(0), Err(hang));
    assert!(machine.thread(0).is_waiting());
    for number in [1, 0] {
        let status = Status::ENDED;
        assert_eq!(machine.run(number, 100), Stop::Ended { status });
    }
}

#[test]
fn a_step_says_what_happened() {
    let words = [
        mem(34, 1, 40, 8),
        mvi(2, 6, 9, 0),
        mvi(2, 7, 1, 0),
        ctl(0, 6, 7),
        jba(5, 0, 8),
        0,
        ctl(2, 40, 0),
        mem(2, 2, 40, 1),
    ];
    let mut machine = all(Config::default(), 2, &words);
    for number in 0..2 {
        machine.thread_mut(number).set_scalar(sreg(40), DATA);
    }
    let (pc, inst) = machine.next_instruction(0);
    let step = machine.step(0).unwrap();
    assert_eq!((step.pc, step.next_pc, step.inst), (pc, BASE + 4, inst));
    assert_eq!(step.progress, Progress::Next);
    let access = step.effect.access.unwrap();
    assert_eq!((access.address, access.size, access.store), (DATA + 8, 4, true));
    machine.step(0).unwrap();
    machine.step(0).unwrap();
    let step = machine.step(0).unwrap();
    assert_eq!(step.progress, Progress::Waits);
    let barrier = Control::Barrier { id: 9, participants: 2 };
    assert_eq!(step.effect.control, Some(barrier));
    assert!(machine.thread(0).is_waiting());
    for _ in 0..3 {
        machine.step(1).unwrap();
    }
    assert_eq!(machine.step(1).unwrap().progress, Progress::Opens);
    assert!(!machine.thread(0).is_waiting());
    let step = machine.step(0).unwrap();
    assert_eq!(
        (step.progress, step.next_pc, step.taken()),
        (Progress::Taken, BASE + 24, true)
    );
    let step = machine.step(0).unwrap();
    assert_eq!(step.effect.control, Some(Control::Flush { address: DATA }));
    let step = machine.step(0).unwrap();
    assert!(matches!(step.progress, Progress::Trap(_)));
    assert_eq!(step.next_pc, TRAP_VECTOR);
    machine.step(0).unwrap();
    let step = machine.step(0).unwrap();
    let register = ControlRegister::ThreadStatus.number();
    assert_eq!(step.effect.control, Some(Control::Write { register, value: 3 }));
    assert_eq!(machine.step(0).unwrap().progress, Progress::Ended(Status::TRAPPED));
    assert_eq!(machine.step(16), Err(Stop::NoSuchThread));
}

#[test]
fn a_trap_of_one_thread_leaves_the_others() {
    // Thread 2 performs a misaligned load.
    let words = [ri(2, 5, 1, 2), rr(4, 5, 5, 40, SSS), mem(2, 6, 5, 0), ri(4, 9, 9, 5)];
    let mut machine = all(Config::default(), 4, &words);
    assert_eq!(run(&mut machine), Halt::Ended);
    let statuses: Vec<_> = (0..4).map(|k| machine.thread(k).status()).collect();
    let (ended, trapped) = (Status::ENDED, Status::TRAPPED);
    assert_eq!(statuses, [ended, ended, trapped, trapped]);
    assert_eq!(machine.thread(2).trap_pc(), Some(BASE + 8));
    assert_eq!(machine.thread(1).scalar(sreg(9)), 5);
}

#[test]
fn waiting_in_a_loop_ends_when_another_thread_stores() {
    // Thread 0 reads until it finds a nonzero value; thread 1 counts, then stores.
    let reader = [mem(2, 2, 40, 0), jba(5, 2, -4)];
    let writer = [ri(4, 3, 3, 1), ri(16, 4, 3, 200), jba(5, 4, -8), mem(34, 3, 40, 0)];
    for coherent in [true, false] {
        for schedule in [Schedule::default(), Schedule::round_robin(1), Schedule::random(3, 5)] {
            for cores in [1, 2] {
                let mut machine = Machine::new(config(cores, coherent));
                let other = if cores == 1 { 1 } else { THREADS };
                place(&mut machine, BASE, &reader);
                place(&mut machine, BASE + 0x100, &writer);
                start(&mut machine, 0, BASE);
                start(&mut machine, other, BASE + 0x100);
                for number in [0, other] {
                    machine.thread_mut(number).set_scalar(sreg(40), DATA);
                }
                machine.enable(0, if cores == 1 { 3 } else { 1 });
                machine.enable(1, if cores == 1 { 3 } else { 1 });
                assert_eq!(machine.run_threads(&mut schedule.clone(), LIMIT), Halt::Ended);
                assert_eq!(machine.thread(0).scalar(sreg(2)), 201);
            }
        }
    }
    // Alone it waits forever.
    let mut machine = all(Config::default(), 1, &reader);
    assert_eq!(machine.run_threads(&mut Schedule::default(), 1000), Halt::StepLimit);
    assert_eq!(machine.thread(0).instructions(), 1000);
}

#[test]
fn every_core_has_its_own_registers_and_scratchpad() {
    let mut words = Vec::new();
    for (k, register) in [
        ControlRegister::TileId,
        ControlRegister::CoreId,
        ControlRegister::ThreadId,
        ControlRegister::GlobalId,
        ControlRegister::Argc,
        ControlRegister::ThreadEnable,
    ]
    .into_iter()
    .enumerate()
    {
        words.push(mvi(2, 2, register.number().into(), 0));
        words.push(ctl(3, 10 + k as u32, 2));
    }
    // The first thread of each core writes its number to a debug register and to the scratchpad.
    words.extend([
        mvi(2, 2, ControlRegister::Debug0.number().into(), 0),
        jba(6, 12, 12),
        ctl(4, 1, 2),
        spm(34, 1, 0, 0),
    ]);
    let mut machine = all(
        Config {
            tile: 3,
            ..config(2, true)
        },
        THREADS + 3,
        &words,
    );
    machine.set_control_register(ControlRegister::Argc, 77);
    assert_eq!(run(&mut machine), Halt::Ended);
    let number = THREADS as u32 + 2;
    let read = |register: u8| machine.thread(THREADS + 2).scalar(sreg(register));
    assert_eq!(
        [10, 11, 12, 13, 14, 15].map(read),
        [4, 0, 2, 2, 77, 7],
        "thread {number}"
    );
    for core in 0..2 {
        let first = (core * THREADS) as u32;
        let debug = machine.control_register(core * THREADS + 1, ControlRegister::Debug0);
        assert_eq!(debug, first);
        assert_eq!(machine.core_scratchpad(core)[..4], first.to_le_bytes());
    }
}

#[test]
fn the_host_sees_what_was_flushed() {
    // Each thread stores two words, in separate lines, and flushes the first.
    let words = [
        ri(11, 5, 1, 7),
        rr(4, 5, 5, 40, SSS),
        ri(4, 6, 1, 100),
        mem(34, 6, 5, 0),
        mem(34, 6, 5, 64),
        ctl(2, 5, 0),
    ];
    for coherent in [true, false] {
        for cores in [1, 2] {
            let count = cores * THREADS;
            let mut machine = all(config(cores, coherent), count, &words);
            for number in 0..count {
                machine.thread_mut(number).set_scalar(sreg(40), DATA);
            }
            assert_eq!(run(&mut machine), Halt::Ended);
            for number in 0..count as u32 {
                let at = DATA + 128 * number;
                assert_eq!(seen_by_host(&machine, at), 100 + number);
                let unflushed = if coherent { 100 + number } else { 0 };
                assert_eq!(seen_by_host(&machine, at + 64), unflushed);
                let mut bytes = [0; 4];
                machine.read_as_core(number as usize / THREADS, at + 64, &mut bytes);
                assert_eq!(u32::from_le_bytes(bytes), 100 + number);
            }
            machine.write_back_caches().unwrap();
            assert_eq!(seen_by_host(&machine, DATA + 64), 100);
        }
    }
}

#[test]
fn vectors_and_bytes_are_flushed_as_well() {
    let words = [
        mem(38, 1, 40, 0),
        mem(32, 7, 40, 66),
        mem(37, 1, 40, 96),
        ctl(5, 40, 0),
        ctl(2, 41, 0),
    ];
    let mut machine = all(config(1, false), 1, &words);
    let thread = machine.thread_mut(0);
    thread.set_scalar(sreg(40), DATA);
    thread.set_scalar(sreg(41), DATA + 64);
    thread.set_scalar(sreg(7), 0xabcd);
    thread.set_vector(vreg(1), Lanes(std::array::from_fn(|k| k as u32 + 1)));
    assert_eq!(run(&mut machine), Halt::Ended);
    assert_eq!(seen_by_host(&machine, DATA + 60), 16);
    assert_eq!(seen_by_host(&machine, DATA + 64), 0xcd_0000);
    assert_eq!(seen_by_host(&machine, DATA + 96), 0x0002_0001);
}

#[test]
fn cores_do_not_see_each_other_in_a_region_without_coherence() {
    // The writer stores to its line and flushes it. The reader reads the line before, meets the
    // writer, and reads again, without and with an invalidation.
    let writer = [
        mvi(2, 6, 5, 0),
        mvi(2, 7, 1, 0),
        ctl(0, 6, 7),
        mem(34, 42, 40, 0),
        ctl(2, 40, 0),
        ctl(0, 6, 7),
    ];
    let reader = [
        mem(2, 2, 40, 0),
        mvi(2, 6, 5, 0),
        mvi(2, 7, 1, 0),
        ctl(0, 6, 7),
        ctl(0, 6, 7),
        mem(2, 3, 40, 0),
        ctl(5, 40, 0),
        mem(2, 4, 40, 0),
    ];
    let non_coherent = ControlRegister::NonCoherent.number().into();
    for (coherent, region, stale) in [(false, true, true), (false, false, false), (true, true, false)] {
        let mut machine = Machine::new(config(2, coherent));
        for (number, address, words) in [(0, BASE, &writer[..]), (THREADS, BASE + 0x100, &reader[..])] {
            // Each core sets the region of 4 MiB that contains the data.
            let mut all = vec![ctl(4, 8, 9)];
            all.extend(words);
            place(&mut machine, address, &all);
            start(&mut machine, number, address);
            let thread = machine.thread_mut(number);
            let unit = DATA >> 22;
            thread.set_scalar(sreg(8), unit << 11 | unit << 1 | u32::from(region));
            thread.set_scalar(sreg(9), non_coherent);
            thread.set_scalar(sreg(40), DATA);
            thread.set_scalar(sreg(42), 9);
            machine.enable(number / THREADS, 1);
        }
        assert_eq!(run(&mut machine), Halt::Ended);
        let reader = machine.thread(THREADS);
        assert_eq!(reader.scalar(sreg(2)), 0);
        assert_eq!(reader.scalar(sreg(3)), if stale { 0 } else { 9 });
        assert_eq!(reader.scalar(sreg(4)), 9);
    }
}

#[test]
fn the_host_can_turn_write_through_on() {
    let words = [mem(34, 42, 40, 0), mem(34, 42, 40, 4)];
    for on in [false, true] {
        let mut machine = all(config(1, false), 1, &words);
        let thread = machine.thread_mut(0);
        thread.set_scalar(sreg(40), DATA);
        thread.set_scalar(sreg(42), 9);
        machine.set_control_register(ControlRegister::CpuControl, if on { 1 << 31 } else { 1 });
        assert_eq!(run(&mut machine), Halt::Ended);
        assert_eq!(seen_by_host(&machine, DATA + 4), if on { 9 } else { 0 });
    }
}

#[test]
fn an_invalidation_that_loses_stores_is_a_finding() {
    // Two lines of one set: the second is in way 1.
    let stride = DCACHE_SETS * 64;
    let words = [
        mem(34, 42, 40, 0),
        mem(34, 42, 41, 0),
        ctl(5, 41, 0),
        mem(2, 3, 40, 0),
        ctl(2, 40, 0),
    ];
    let mut machine = all(config(1, false), 1, &words);
    let thread = machine.thread_mut(0);
    thread.set_scalar(sreg(40), DATA);
    thread.set_scalar(sreg(41), DATA + stride);
    thread.set_scalar(sreg(42), 9);
    assert_eq!(run(&mut machine), Halt::Ended);
    assert_eq!(machine.thread(0).scalar(sreg(3)), 9);
    assert_eq!(seen_by_host(&machine, DATA), 0);
    assert_eq!(seen_by_host(&machine, DATA + stride), 9);
    let found: Vec<_> = machine.findings().iter().map(|f| (f.hazard, f.pc)).collect();
    assert_eq!(found, [(Hazard::InvalidateWay0, BASE + 8)]);
}

#[test]
fn stop_addresses_name_the_thread_and_a_run_goes_on() {
    let words = [ri(4, 2, 2, 1), ri(4, 3, 3, 1), ri(4, 4, 4, 1)];
    let mut machine = all(Config::default(), 3, &words);
    machine.add_breakpoint(BASE + 4);
    let mut schedule = Schedule::round_robin(1);
    for thread in 0..3 {
        let halt = machine.run_threads(&mut schedule, LIMIT);
        let stop = Stop::Breakpoint { pc: BASE + 4 };
        assert_eq!(halt, Halt::Thread { thread, stop });
    }
    assert_eq!(machine.run_threads(&mut schedule, LIMIT), Halt::Ended);
    for number in 0..3 {
        assert_eq!([2, 3, 4].map(|r: u8| machine.thread(number).scalar(sreg(r))), [1, 1, 1]);
    }
}

#[test]
fn only_enabled_threads_run() {
    let mut machine = all(Config::default(), 3, &[ri(4, 2, 2, 1)]);
    machine.enable(0, 0b101);
    assert_eq!(run(&mut machine), Halt::Ended);
    assert_eq!([0, 1, 2].map(|k| machine.thread(k).scalar(sreg(2))), [1, 0, 1]);
    machine.enable(0, 0);
    assert_eq!(run(&mut machine), Halt::Ended);
}

#[test]
fn the_host_writes_as_a_core_does() {
    let bytes: Vec<u8> = (0..100).collect();
    for coherent in [true, false] {
        let mut machine = Machine::new(Config {
            cores: 2,
            coherent,
            ..Config::default()
        });
        let mut seen = [0; 100];
        machine.write_as_core(0, 0x103e, &bytes).unwrap();
        machine.read_as_core(0, 0x103e, &mut seen);
        assert_eq!(seen, *bytes);
        machine.memory().read(0x103e, &mut seen);
        assert_eq!(seen == *bytes, coherent);
        // The other core takes the line, including the changes of the first one.
        machine.write_as_core(1, 0x1040, &[200]).unwrap();
        machine.write_back_caches().unwrap();
        machine.memory().read(0x103e, &mut seen);
        assert_eq!((seen[2], &seen[3..]), (200, &bytes[3..]));
    }
}
