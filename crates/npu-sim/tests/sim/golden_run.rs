//! The golden-run programs, run by the fast interpreter, by the definition alone, and in steps;
//! with and without data caches; and with several schedules of the threads. All must end as
//! recorded on the hardware.

use super::common::{Golden, Random, differences, sreg, vreg};
use npu_sim::{Config, Halt, Hazard, Lanes, Machine, NoSink, Progress, Schedule, Status, Stop, Timing, TimingConfig};

const LIMIT: u64 = 10_000_000;

/// Creates a machine in the initial state of `golden`, with `seed` for all undefined contents.
fn prepared(golden: &Golden, seed: u64, coherent: bool) -> Machine {
    let mut machine = Machine::new(Config {
        coherent,
        ..Config::default()
    });
    let mut random = Random(seed);
    for number in 0..npu_sim::THREADS {
        let thread = machine.thread_mut(number);
        for register in 0..64 {
            thread.set_scalar(sreg(register), random.word());
            let lanes = std::array::from_fn(|_| random.word());
            thread.set_vector(vreg(register), Lanes(lanes));
        }
        thread.set_mask(0);
    }
    for byte in machine.scratchpad_mut() {
        *byte = random.word() as u8;
    }
    golden.start(&mut machine);
    machine
}

/// The kind of a run.
#[derive(Clone, Copy, Debug)]
enum Way {
    Fast,
    Traced,
    Steps,
    Timed,
}

/// Returns a description of the differences at the end of a run.
fn failure(golden: &Golden, coherent: bool, way: Way, mut schedule: Schedule, seed: u64) -> Option<String> {
    let mut machine = prepared(golden, seed, coherent);
    let mut traced = 0;
    let mut wrong = match way {
        Way::Fast => Some(machine.run_threads(&mut schedule, LIMIT)),
        Way::Traced => Some(machine.run_threads_traced(&mut schedule, LIMIT, &mut |_| traced += 1)),
        Way::Steps => None,
        Way::Timed => {
            let mut timing = Timing::new(TimingConfig {
                memory_delay: 3 * seed as u32,
                ..TimingConfig::default()
            });
            Some(machine.run_timed(&mut timing, LIMIT, &mut NoSink))
        }
    }
    .filter(|halt| *halt != Halt::Ended)
    .map(|halt| halt.to_string());
    if let Way::Steps = way {
        wrong = step_all(&mut machine, LIMIT);
    }
    if let Way::Traced = way {
        let executed: u64 = (0..machine.threads()).map(|k| machine.thread(k).instructions()).sum();
        assert_eq!(traced, executed);
    }
    // The recording has the memory as a debugger sees it, including unflushed stores.
    machine.write_back_caches().unwrap();
    let found = differences(golden, &machine);
    (wrong.is_some() || !found.is_empty()).then(|| {
        format!(
            "{} ({way:?}, coherent {coherent}, seed {seed}): {wrong:?} {found:#?}",
            golden.name
        )
    })
}

#[test]
fn all_programs_end_as_recorded() {
    let all = Golden::all();
    let mut runs = 0;
    let mut failures = Vec::new();
    for golden in &all {
        for coherent in [true, false] {
            let many = golden.threads.count_ones() > 1;
            let mut ways = vec![
                (Way::Fast, Schedule::default()),
                (Way::Traced, Schedule::default()),
                (Way::Steps, Schedule::default()),
                (Way::Timed, Schedule::default()),
            ];
            if many {
                let turns = [1, 3, 1000].map(Schedule::round_robin);
                ways.extend(turns.map(|turn| (Way::Fast, turn)));
                ways.extend((0..20).map(|seed| (Way::Fast, Schedule::random(seed, 1 + 3 * seed as u32))));
                ways.push((Way::Traced, Schedule::random(4, 9)));
            }
            for (seed, (way, schedule)) in (1..).zip(ways) {
                runs += 1;
                failures.extend(failure(golden, coherent, way, schedule, seed));
            }
        }
    }
    println!("{} programs, {runs} runs", all.len());
    assert!(
        failures.is_empty(),
        "{} of {runs} runs\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(all.len() > 100, "{} programs", all.len());
}

/// The single thread of a program has the same result without a schedule.
#[test]
fn programs_of_one_thread_end_as_recorded_alone() {
    for golden in Golden::all().iter().filter(|g| g.threads.count_ones() == 1) {
        let number = golden.threads.trailing_zeros() as usize;
        let mut machine = prepared(golden, 2, true);
        let stop = machine.run(number, LIMIT);
        assert!(matches!(stop, Stop::Ended { .. }), "{}: {stop}", golden.name);
        assert_eq!(differences(golden, &machine), Vec::<String>::new(), "{}", golden.name);
    }
}

/// Steps all enabled threads in turn, one instruction each, until each has ended; returns a
/// description of an error.
fn step_all(machine: &mut Machine, limit: u64) -> Option<String> {
    let mut going: Vec<usize> = (0..machine.threads()).filter(|&k| machine.is_enabled(k)).collect();
    for _ in 0..limit {
        let mut moved = false;
        let mut still = Vec::new();
        for &number in &going {
            if machine.thread(number).is_waiting() {
                still.push(number);
                continue;
            }
            moved = true;
            match machine.step(number) {
                Ok(step) => match step.progress {
                    Progress::Ended(_) => {}
                    Progress::Hang(reason) => return Some(format!("thread {number} at {:08x}: {reason}", step.pc)),
                    _ => still.push(number),
                },
                Err(stop) => return Some(stop.to_string()),
            }
        }
        going = still;
        if going.is_empty() {
            return None;
        }
        if !moved {
            return going
                .first()
                .and_then(|&k| machine.waiting(k))
                .map(|waiting| waiting.to_string());
        }
    }
    Some("step limit".to_owned())
}

/// The recorded programs avoid dependence on timing, with two exceptions; any other finding is a
/// false alarm.
#[test]
fn programs_meet_no_other_errata() {
    for golden in Golden::all() {
        for coherent in [true, false] {
            let mut machine = prepared(&golden, 1, coherent);
            machine.run_threads(&mut Schedule::default(), LIMIT);
            for finding in machine.findings() {
                let expected = match finding.hazard {
                    Hazard::ImpreciseTrap => golden.expected.iter().any(|thread| thread.trap != 0),
                    Hazard::MaskByV59 => golden.name.starts_with("mask-v59"),
                    // These do not depend on timing.
                    Hazard::IndirectCall | Hazard::HalfMask => true,
                    _ => false,
                };
                assert!(expected, "{}: {finding}", golden.name);
            }
        }
    }
}

#[test]
fn the_trap_handler_leaves_its_status() {
    let golden = Golden::all().into_iter().find(|g| g.name == "trap-load32-odd");
    let Some(golden) = golden else { return };
    let mut machine = prepared(&golden, 3, true);
    let status = Status::TRAPPED;
    assert_eq!(machine.run(0, LIMIT), Stop::Ended { status });
}
