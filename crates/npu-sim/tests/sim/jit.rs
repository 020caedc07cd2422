//! Translated loops against interpreted ones: everything is the same, whatever the loop, the limit and the schedule.

use super::common::{Random, sreg, vreg};
use super::loops::{ADD, SUB, branch, jump, mem, ri, rr, vector_word, word};
use super::random::compare;
use npu_sim::{Config, Lanes, Machine, Schedule, Stop, THREADS};

const BASE: u32 = 0x1000;
const DATA: u32 = 0x10_0000;

const LINK: u32 = 62;
const RETURN: u32 = 0x73 << 24;

/// A loop of random words in another one, and a leaf behind them that is called directly and through s22.
fn program(random: &mut Random, vectors: bool) -> (Vec<u32>, u32) {
    let length = 3 + random.below(24);
    let word = if vectors { vector_word } else { word };
    let mut words = vec![0x6200_0000 | 21 << 18 | (4 * (5 + random.below(60)))];
    let mut calls = Vec::new();
    for k in 0..length {
        match random.below(12) {
            0 => {
                calls.push(words.len());
                words.push(0);
            }
            // The link and a jump to the leaf.
            1 => words.extend([ri(ADD, LINK, 63, 8), 0x70 << 24 | 22 << 18]),
            _ => words.push(word(random, length - k)),
        }
    }
    if vectors && random.below(4) != 0 {
        words.push(0x6200_0000 | 59 << 18 | 0xffff << 2);
    }
    words.push(ri(SUB, 21, 21, 1));
    words.push(branch(true, 21, -(words.len() as i32 - 1)));
    words.push(ri(SUB, 20, 20, 1));
    words.push(branch(true, 20, -(words.len() as i32)));
    // The end.
    words.push(jump(false, 0));
    let leaf = words.len();
    for at in calls {
        words[at] = jump(true, (leaf - at) as i32);
    }
    words.extend((0..random.below(4)).map(|_| rr(ADD, random.below(10), random.below(10), random.below(10))));
    words.push(RETURN);
    (words, BASE + 4 * leaf as u32)
}

fn load(words: &[u32], after: Option<u32>) -> Machine {
    let mut machine = Machine::new(Config {
        memory_limit: 1 << 24,
        translate_after: after,
        ..Config::default()
    });
    for (word, address) in words.iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    machine.memory_mut().write_u32(DATA, 1).unwrap();
    machine
}

fn prepared(seed: u64, vectors: bool, after: Option<u32>) -> Machine {
    let mut random = Random(seed);
    let (words, leaf) = program(&mut random, vectors);
    let mut machine = load(&words, after);
    for k in 0..64 {
        let word = random.word();
        machine.memory_mut().write_u32(DATA + 4 * k, word).unwrap();
    }
    // Now and then code is data.
    let code = random.below(12) == 0;
    for number in 0..machine.threads() {
        let thread = machine.thread_mut(number);
        for register in 0..59 {
            thread.set_scalar(sreg(register), random.word());
        }
        for register in 0..8 {
            thread.set_vector(vreg(register), Lanes([(); 16].map(|()| random.word())));
        }
        thread.set_scalar(sreg(59), 0xffff);
        thread.set_scalar(sreg(12), if code { BASE } else { DATA });
        thread.set_scalar(sreg(13), DATA + 0x80);
        thread.set_scalar(sreg(20), 40);
        thread.set_scalar(sreg(22), leaf);
        // What the first return goes to.
        thread.set_scalar(sreg(LINK), BASE);
        thread.set_pc(BASE);
    }
    machine
}

/// Runs programs both ways and gives entries, instructions, and those that were translated.
fn run_both(seeds: std::ops::Range<u64>, vectors: bool) -> (u64, u64, u64) {
    let (mut entered, mut executed, mut inside) = (0, 0, 0);
    for seed in seeds {
        let mut translated = prepared(seed, vectors, Some(2));
        let mut interpreted = prepared(seed, vectors, None);
        // Ends of the budget wherever they fall.
        let mut random = Random(seed);
        for _ in 0..12 {
            let limit = u64::from(1 + random.below(900));
            let a = translated.run(0, limit);
            let b = interpreted.run(0, limit);
            assert_eq!(a, b, "stop, seed {seed}");
            compare(seed, &translated, &interpreted);
            assert_eq!(
                translated.thread(0).last_branch(),
                interpreted.thread(0).last_branch(),
                "last branch, seed {seed}"
            );
        }
        entered += translated.translations_entered();
        executed += translated.thread(0).instructions();
        inside += translated.translated_instructions();
        assert_eq!(interpreted.translations_entered(), 0);
    }
    println!("{entered} entries, {inside} of {executed} instructions");
    (entered, executed, inside)
}

#[test]
fn translated_loops_do_what_interpreted_ones_do() {
    let (entered, executed, inside) = run_both(0..300, false);
    assert!(
        entered > 1000 && inside > executed / 4,
        "the programs are not translated"
    );
}

#[test]
fn translated_vectors_do_what_interpreted_ones_do() {
    let (entered, executed, inside) = run_both(5000..5250, true);
    assert!(
        entered > 500 && inside > executed / 4,
        "the programs are not translated"
    );
}

#[test]
fn threads_take_turns_at_the_same_points() {
    let mut entered = 0;
    for seed in 0..40 {
        let mut translated = prepared(seed, seed % 2 == 0, Some(2));
        let mut interpreted = prepared(seed, seed % 2 == 0, None);
        for machine in [&mut translated, &mut interpreted] {
            machine.enable(0, (1 << THREADS) - 1);
        }
        let (mut one, mut other) = (Schedule::default(), Schedule::default());
        for _ in 0..3 {
            let a = translated.run_threads(&mut one, 9_973);
            let b = interpreted.run_threads(&mut other, 9_973);
            assert_eq!(a, b, "halt, seed {seed}");
            compare(seed, &translated, &interpreted);
        }
        entered += translated.translations_entered();
    }
    assert!(entered > 300, "{entered} entries: the programs are not translated");
}

/// Runs a loop that counts s1 down from 500, both ways, and gives the machines.
fn both(body: &[u32], limit: u64) -> [Machine; 2] {
    let mut words = body.to_vec();
    words.push(ri(SUB, 1, 1, 1));
    words.push(branch(true, 1, -(words.len() as i32)));
    let machines = [Some(2), None].map(|after| {
        let mut machine = load(&words, after);
        let thread = machine.thread_mut(0);
        thread.set_scalar(sreg(59), 0xffff);
        thread.set_scalar(sreg(1), 500);
        thread.set_scalar(sreg(12), DATA);
        thread.set_scalar(sreg(13), BASE);
        thread.set_pc(BASE);
        let stop = machine.run(0, limit);
        assert_eq!(stop, Stop::StepLimit);
        machine
    });
    compare(0, &machines[0], &machines[1]);
    machines
}

#[test]
fn a_counted_loop_is_one_entry() {
    let [translated, _] = both(&[rr(ADD, 2, 2, 1)], 1501);
    assert_eq!(translated.translations_entered(), 1);
    assert_eq!(translated.thread(0).scalar(sreg(2)), 500 * 501 / 2);
    assert_eq!(translated.thread(0).instructions(), 1501);
}

#[test]
fn a_loop_that_changes_itself_is_seen() {
    // addi s2, s2, imm becomes another one each round: its word is in memory at s13 + 16.
    let body = [
        mem(2, 3, 13, 16),
        ri(ADD, 3, 3, 8),
        mem(34, 3, 13, 16),
        ri(ADD, 4, 4, 1),
        ri(ADD, 2, 2, 0),
        ri(ADD, 5, 5, 1),
    ];
    let [translated, _] = both(&body, 8 * 100);
    assert_eq!(translated.thread(0).scalar(sreg(2)), 5050);
}

#[test]
fn code_that_the_host_changes_between_runs_is_seen() {
    let [mut translated, mut interpreted] = both(&[ri(ADD, 2, 2, 1)], 300);
    for machine in [&mut translated, &mut interpreted] {
        machine.memory_mut().write_u32(BASE, ri(ADD, 2, 2, 2)).unwrap();
        assert_eq!(machine.run(0, 300), Stop::StepLimit);
    }
    compare(0, &translated, &interpreted);
    assert_eq!(translated.thread(0).scalar(sreg(2)), 100 + 200);
    for machine in [&mut translated, &mut interpreted] {
        machine.add_breakpoint(BASE);
        assert_eq!(machine.run(0, 300), Stop::Breakpoint { pc: BASE });
    }
    compare(0, &translated, &interpreted);
}

#[test]
fn a_trap_in_a_loop_comes_at_its_instruction() {
    // In the 50th round the address in s12 becomes a misaligned one.
    let body = [
        mem(2, 3, 12, 0),
        rr(ADD, 4, 4, 3),
        ri(ADD, 5, 5, 1),
        ri(14, 6, 5, 50),
        rr(ADD, 12, 12, 6),
    ];
    let [translated, _] = both(&body, 3000);
    assert_eq!(translated.translations_entered(), 1);
    assert_eq!(translated.thread(0).trap_pc(), Some(BASE));
}

#[test]
fn lost_results_are_found_in_translated_loops() {
    // A load directly before the branch back, from the 50th round on: s6 is 0 until then.
    let body = [
        ri(ADD, 5, 5, 1),
        0x6200_0000 | 7 << 18 | (4 * 50),
        rr(22, 6, 7, 5),
        branch(true, 6, 2),
        jump(false, 3),
        mem(2, 3, 12, 0),
        jump(false, 1),
        rr(ADD, 8, 8, 3),
    ];
    let [translated, interpreted] = both(&body, 2500);
    assert!(translated.translations_entered() > 0);
    assert!(!interpreted.findings().is_empty());
}

#[test]
fn machines_may_go_to_other_threads_of_the_host() {
    fn is_send<T: Send>() {}
    is_send::<Machine>();
}
