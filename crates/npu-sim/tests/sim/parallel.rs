//! Tests several cores on several host threads: all results equal those of turns, whatever the
//! cores share.

use super::common::{Random, sreg, vreg};
use super::loops::{vector_word, word};
use super::random::compare;
use super::words::{ctl, mem, mvi, ri, rr};
use npu_mc::machine::{CONSOLE_DATA, ControlRegister};
use npu_sim::{Config, Halt, Lanes, Machine, Schedule, Status, Stop, THREADS};

/// The distance of the code and the data of core `k + 1` from those of core `k`, if they are
/// separate.
const STRIDE: u32 = 0x1000;
const CODE: u32 = 0x1000;
const DATA: u32 = 0x10_0000;
/// The maximum number of words of an inner loop.
const BODY: u32 = 16;

/// Registers with fixed uses: counters, addresses, barrier and status.
const OUTER: u32 = 20;
const INNER: u32 = 21;
const ID: u32 = 23;
const OTHERS: u32 = 24;
const END: u32 = 25;
const STATUS: u32 = 26;
const OUTPUT: u32 = 27;
const START: u32 = 28;

fn branch_back(register: u32, words: usize) -> u32 {
    0x76 << 24 | register << 18 | (-4 * words as i32) as u32 & 0x3_ffff
}

/// Returns a random inner loop in an outer loop, with barriers and stores to [`OUTPUT`] as
/// configured, and the end of the thread.
fn program(random: &mut Random, sharing: Sharing) -> Vec<u32> {
    let mut words = vec![mvi(2, INNER, 10 + random.below(50), 0)];
    if sharing.barrier {
        words.push(ctl(0, ID, OTHERS));
    }
    if sharing.console {
        words.push(mem(34, random.below(10), OUTPUT, 0));
    }
    let length = 2 + random.below(BODY - 2);
    let vectors = random.below(3) == 0;
    let first = words.len();
    for k in 0..length {
        words.push(if vectors {
            vector_word(random, length - k)
        } else {
            word(random, length - k)
        });
    }
    words.push(ri(5, INNER, INNER, 1));
    words.push(branch_back(INNER, words.len() - first));
    words.push(ri(5, OUTER, OUTER, 1));
    words.push(branch_back(OUTER, words.len()));
    words.extend([0x6c00_0000 | END << 18 | STATUS << 12, 0x7800_0000]);
    words
}

/// The sharing between the cores of a random machine.
#[derive(Clone, Copy, Debug)]
struct Sharing {
    /// One in how many cores uses the data of another core; 0 for none.
    data: u32,
    barrier: bool,
    /// Whether some threads store to the console.
    console: bool,
    /// Whether some threads write their own code.
    code: bool,
    breakpoint: bool,
}

fn prepared(seed: u64, sharing: Sharing, host_threads: usize) -> Machine {
    let mut random = Random(seed);
    let cores = 2 + random.below(3) as usize;
    let mut machine = Machine::new(Config {
        cores,
        host_threads,
        memory_limit: 1 << 24,
        translate_after: Some(2 + random.below(60)),
        ..Config::default()
    });
    let one_code = !sharing.code && random.below(2) == 0;
    for core in 0..cores as u32 {
        let words = program(&mut random, sharing);
        for (word, address) in words.iter().zip((CODE + core * STRIDE..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
    }
    for address in (DATA..DATA + 4 * STRIDE).step_by(4) {
        let word = random.word();
        machine.memory_mut().write_u32(address, word).unwrap();
    }
    let masks: Vec<u32> = (0..cores).map(|_| 1 + random.below(255)).collect();
    let enabled: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
    for number in 0..machine.threads() {
        let core = (number / THREADS) as u32;
        let code = CODE + STRIDE * if one_code { 0 } else { core };
        let owner = match sharing.data {
            0 => core,
            often if random.below(often) == 0 => random.below(cores as u32),
            _ => core,
        };
        let data = DATA + STRIDE * owner;
        let thread = machine.thread_mut(number);
        for register in 0..59 {
            thread.set_scalar(sreg(register), random.word());
        }
        for register in 0..8 {
            thread.set_vector(vreg(register), Lanes([(); 16].map(|()| random.word())));
        }
        let first = if sharing.code && random.below(8) == 0 {
            code
        } else {
            data
        };
        let output = if random.below(8) == 0 { CONSOLE_DATA } else { data };
        let values = [
            (59, 0xffff),
            (12, first),
            (13, data + 0x80),
            (OUTER, 30 + random.below(60)),
            (22, code),
            (62, code),
            (ID, 5),
            (OTHERS, enabled - 1),
            (OUTPUT, output),
            (START, code),
            (END, Status::ENDED.code()),
            (STATUS, ControlRegister::ThreadStatus.number().into()),
        ];
        for (register, value) in values {
            thread.set_scalar(sreg(register), value);
        }
        machine.boot(number, code);
    }
    if sharing.breakpoint {
        let core = random.below(cores as u32);
        machine.add_breakpoint(CODE + core * STRIDE + 4 * random.below(20));
    }
    for (core, mask) in masks.into_iter().enumerate() {
        machine.enable(core, mask);
    }
    machine
}

/// Runs random machines on 1, 2 and 4 host threads; returns the numbers of instructions and of
/// parallel instructions.
fn agree(seeds: std::ops::Range<u64>, sharing: Sharing) -> (u64, u64) {
    let (mut executed, mut beside) = (0, 0);
    for seed in seeds {
        let mut random = Random(seed);
        let quantum = [128, 128, 40, 1 + random.below(60)][random.below(4) as usize];
        let limits: Vec<u64> = (0..8).map(|_| u64::from(1000 + random.below(200_000))).collect();
        let mut machines = [1, 2, 4].map(|threads| (prepared(seed, sharing, threads), Schedule::round_robin(quantum)));
        for (iteration, limit) in limits.into_iter().enumerate() {
            if iteration == 6 {
                // Interrupted turns continue with their remaining instructions.
                for (machine, _) in &mut machines {
                    for number in 0..machine.threads() {
                        machine.thread_mut(number).set_scalar(sreg(OUTER), 9);
                        let start = machine.thread(number).scalar(sreg(START));
                        machine.boot(number, start);
                    }
                }
            }
            let [one, two, four] = machines
                .each_mut()
                .map(|(machine, schedule)| machine.run_threads(schedule, limit));
            assert_eq!((&one, &one), (&two, &four), "halt, seed {seed}");
            let [(one, _), (two, _), (four, _)] = &machines;
            for other in [two, four] {
                compare(seed, one, other);
                assert_eq!(
                    one.memory().resident_bytes(),
                    other.memory().resident_bytes(),
                    "size of memory, seed {seed}"
                );
                for number in 0..one.threads() {
                    let [last, trap] =
                        [one, other].map(|m| (m.thread(number).last_branch(), m.thread(number).trap_pc()));
                    assert_eq!(last, trap, "last branch and trap, seed {seed}");
                }
            }
        }
        let [(one, _), (two, _), (four, _)] = &machines;
        executed += (0..one.threads()).map(|k| one.thread(k).instructions()).sum::<u64>();
        assert_eq!(one.instructions_side_by_side(), 0);
        assert_eq!(
            two.instructions_side_by_side(),
            four.instructions_side_by_side(),
            "seed {seed}"
        );
        beside += two.instructions_side_by_side();
    }
    println!("{beside} of {executed} instructions side by side");
    (executed, beside)
}

const NOTHING: Sharing = Sharing {
    data: 0,
    barrier: false,
    console: false,
    code: false,
    breakpoint: false,
};

#[test]
fn cores_with_data_of_their_own_run_side_by_side() {
    let (executed, beside) = agree(0..40, NOTHING);
    assert!(beside > executed / 3, "{beside} of {executed}");
}

#[test]
fn cores_that_race_do_so_as_in_turns() {
    let (executed, beside) = agree(1000..1040, Sharing { data: 24, ..NOTHING });
    assert!(beside > executed / 50, "{beside} of {executed}");
}

#[test]
fn barriers_open_for_cores_that_run_side_by_side() {
    let sharing = Sharing {
        barrier: true,
        ..NOTHING
    };
    agree(2000..2030, sharing);
}

#[test]
fn output_comes_in_the_order_of_turns() {
    let sharing = Sharing {
        console: true,
        ..NOTHING
    };
    agree(3000..3030, sharing);
}

#[test]
fn code_that_changes_itself_is_seen() {
    let (executed, beside) = agree(4000..4030, Sharing { code: true, ..NOTHING });
    assert!(beside > executed / 10, "{beside} of {executed}");
}

#[test]
fn stop_addresses_stop_at_the_same_instruction() {
    let sharing = Sharing {
        breakpoint: true,
        ..NOTHING
    };
    agree(5000..5030, sharing);
}

#[test]
fn a_barrier_lets_the_rounds_before_it_run_side_by_side() {
    // Each core counts for a while, stores the count, meets the others and reads all counts.
    let cores = 4;
    let mut words = vec![mvi(2, 1, 20_000, 0), ri(4, 2, 2, 1), ri(5, 1, 1, 1)];
    words.push(branch_back(1, 2));
    words.extend([mem(34, 2, 12, 0), ctl(0, ID, OTHERS)]);
    for _ in 0..cores {
        words.extend([mem(2, 3, 13, 0), rr(4, 4, 4, 3, 0), rr(4, 13, 13, 14, 0)]);
    }
    words.extend([0x6c00_0000 | END << 18 | STATUS << 12, 0x7800_0000]);
    let mut machine = Machine::new(Config {
        cores,
        host_threads: 2,
        ..Config::default()
    });
    for (word, address) in words.iter().zip((CODE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    for core in 0..cores {
        let thread = machine.thread_mut(core * THREADS);
        let values = [
            (1, 0),
            (2, core as u32),
            (4, 0),
            (12, DATA + STRIDE * core as u32),
            (13, DATA),
            (14, STRIDE),
            (ID, 5),
            (OTHERS, cores as u32 - 1),
            (END, Status::ENDED.code()),
            (STATUS, ControlRegister::ThreadStatus.number().into()),
        ];
        for (register, value) in values {
            thread.set_scalar(sreg(register), value);
        }
        thread.set_pc(CODE);
        machine.enable(core, 1);
    }
    assert_eq!(machine.run_threads(&mut Schedule::default(), 10_000_000), Halt::Ended);
    for core in 0..cores {
        let sum = machine.thread(core * THREADS).scalar(sreg(4));
        assert_eq!(sum, 4 * 20_000 + (1 + 2 + 3), "core {core}");
    }
    let executed = cores as u64 * machine.thread(0).instructions();
    let beside = machine.instructions_side_by_side();
    assert!(beside > executed * 9 / 10, "{beside} of {executed}");
}

#[test]
fn a_full_memory_stops_the_same_thread() {
    // Each core stores to a new page in each iteration of its loop.
    let words = [
        mem(34, 1, 12, 0),
        rr(4, 12, 12, 13, 0),
        ri(4, 1, 1, 1),
        branch_back(1, 3),
    ];
    let stops = [1, 2, 4].map(|host_threads| {
        let mut machine = Machine::new(Config {
            cores: 3,
            host_threads,
            memory_limit: 2 << 20,
            ..Config::default()
        });
        for (word, address) in words.iter().zip((CODE..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
        for core in 0..3 {
            let thread = machine.thread_mut(core * THREADS);
            for (register, value) in [(1, 1), (12, DATA + (core as u32) * (64 << 20)), (13, STRIDE / 64)] {
                thread.set_scalar(sreg(register), value);
            }
            thread.set_pc(CODE);
            machine.enable(core, 1);
        }
        let halt = machine.run_threads(&mut Schedule::default(), 10_000_000);
        assert!(
            matches!(
                halt,
                Halt::Thread {
                    stop: Stop::MemoryFull { .. },
                    ..
                }
            ),
            "{halt}"
        );
        assert_eq!(host_threads > 1, machine.instructions_side_by_side() > 0);
        (
            halt,
            machine.memory().resident_bytes(),
            machine.thread(0).instructions(),
        )
    });
    assert_eq!(stops[0], stops[1]);
    assert_eq!(stops[0], stops[2]);
}

#[test]
fn data_caches_and_random_turns_run_in_sequence() {
    for coherent in [false, true] {
        let mut machine = Machine::new(Config {
            cores: 2,
            host_threads: 4,
            coherent,
            ..Config::default()
        });
        // An endless counting loop.
        for (word, address) in [ri(4, 1, 1, 1), 0x7800_0000 | 0x3_fffc].iter().zip((CODE..).step_by(4)) {
            machine.memory_mut().write_u32(address, *word).unwrap();
        }
        for number in [0, THREADS] {
            machine.boot(number, CODE);
        }
        machine.enable(0, 1);
        machine.enable(1, 1);
        let mut schedule = if coherent {
            Schedule::random(1, 128)
        } else {
            Schedule::default()
        };
        assert_eq!(machine.run_threads(&mut schedule, 100_000), Halt::StepLimit);
        assert_eq!(machine.instructions_side_by_side(), 0);
    }
}
