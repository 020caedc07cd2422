//! The golden-run programs: those of one thread with the fast interpreter and with the definition alone, all of them step by
//! step.

mod common;

use common::{Golden, Random, sreg, vreg};
use npu_mc::machine::ControlRegister;
use npu_sim::{Config, Hazard, Lanes, Machine, Progress, Status, Stop};

const LIMIT: u64 = 10_000_000;

/// A machine as the host leaves it for `golden`, with `seed` in everything that has no defined content.
fn prepared(golden: &Golden, seed: u64) -> Machine {
    let mut machine = Machine::new(Config::default());
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
    for (address, word) in &golden.image {
        machine.memory_mut().write_u32(*address, *word).unwrap();
    }
    for (register, value) in &golden.control {
        let register = ControlRegister::from_number(*register as u8).expect("a control register");
        machine.set_control_register(register, *value);
    }
    machine.push_console_input(&golden.input);
    machine
}

/// What differs from the expectation.
fn differences(golden: &Golden, machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: String, got: u32, want: u32| {
        if got != want {
            found.push(format!("{what}: got {got:08x}, expected {want:08x}"));
        }
    };
    for expected in &golden.expected {
        let thread = machine.thread(expected.number);
        check("status".into(), thread.status().code(), expected.status);
        check("trap".into(), thread.trap_reason().value(), expected.trap);
        check("mask".into(), thread.mask().into(), expected.mask.into());
        for (&number, &value) in &expected.scalars {
            check(format!("s{number}"), thread.scalar(sreg(number)), value);
        }
        for (&number, lanes) in &expected.vectors {
            for (lane, &value) in lanes.iter().enumerate() {
                let got = thread.vector(vreg(number)).0[lane];
                check(format!("v{number}[{lane}]"), got, value);
            }
        }
    }
    for &(address, word) in &golden.memory {
        let got = machine.memory().read_u32(address);
        check(format!("memory {address:08x}"), got, word);
    }
    for &(address, word) in &golden.scratchpad {
        let at = address as usize;
        let got = u32::from_le_bytes(machine.scratchpad()[at..at + 4].try_into().unwrap());
        check(format!("scratchpad {address:08x}"), got, word);
    }
    if machine.console_output() != golden.console {
        found.push(format!("console: got {:?}", machine.console_output()));
    }
    found
}

#[test]
fn programs_of_one_thread_end_as_recorded() {
    let mut failures = Vec::new();
    let mut passed = 0;
    let mut not_run = Vec::new();
    for golden in Golden::all() {
        if golden.threads.count_ones() != 1 {
            not_run.push(golden.name);
            continue;
        }
        let number = golden.threads.trailing_zeros() as usize;
        for traced in [false, true] {
            let mut machine = prepared(&golden, 1 + u64::from(traced));
            machine.thread_mut(number).set_pc(golden.pc);
            let mut steps = 0;
            let stop = if traced {
                machine.run_traced(number, LIMIT, &mut |_| steps += 1)
            } else {
                machine.run(number, LIMIT)
            };
            let mut found = differences(&golden, &machine);
            if !matches!(stop, Stop::Ended { .. }) {
                found.insert(0, stop.to_string());
            }
            if traced {
                assert_eq!(steps, machine.thread(number).instructions());
            }
            if found.is_empty() {
                passed += 1;
            } else {
                failures.push(format!("{} (traced: {traced}): {found:#?}", golden.name));
            }
        }
    }
    println!("{passed} runs passed");
    println!(
        "{} programs of several threads, not run here: {not_run:?}",
        not_run.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(passed > 0);
}

/// Steps all enabled threads in turn, an instruction each, until each has ended; gives what went wrong.
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

#[test]
fn all_programs_step_to_the_recorded_end() {
    let mut failures = Vec::new();
    let all = Golden::all();
    for golden in &all {
        let mut machine = prepared(golden, 7);
        for number in 0..npu_sim::THREADS {
            machine.boot(number, golden.pc);
        }
        machine.enable(0, golden.threads);
        let wrong = step_all(&mut machine, LIMIT);
        let found = differences(golden, &machine);
        if wrong.is_some() || !found.is_empty() {
            failures.push(format!("{}: {wrong:?} {found:#?}", golden.name));
        }
    }
    println!("{} programs", all.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(!all.is_empty());
}

/// The recorded programs avoid what depends on timing, but for these two; anything else is a false alarm.
#[test]
fn programs_of_one_thread_meet_no_other_errata() {
    for golden in Golden::all().iter().filter(|g| g.threads.count_ones() == 1) {
        let number = golden.threads.trailing_zeros() as usize;
        let mut machine = prepared(golden, 1);
        machine.thread_mut(number).set_pc(golden.pc);
        machine.run(number, LIMIT);
        for finding in machine.findings() {
            let expected = match finding.hazard {
                Hazard::ImpreciseTrap => golden.expected[0].trap != 0,
                Hazard::MaskByV59 => golden.name.starts_with("mask-v59"),
                _ => false,
            };
            assert!(expected, "{}: {finding}", golden.name);
        }
    }
}

#[test]
fn the_trap_handler_leaves_its_status() {
    let golden = Golden::all().into_iter().find(|g| g.name == "trap-load32-odd");
    let Some(golden) = golden else { return };
    let mut machine = prepared(&golden, 3);
    machine.thread_mut(0).set_pc(golden.pc);
    let status = Status::TRAPPED;
    assert_eq!(machine.run(0, LIMIT), Stop::Ended { status });
}
