//! Translated loops against interpreted ones: everything is the same, whatever the loop, the limit and the schedule.

use super::common::{Random, sreg};
use super::loops::{ADD, BASE, DATA, SUB, branch, jump, load, mem, prepared, ri, rr};
use super::random::compare;
use npu_sim::{Machine, Schedule, Stop, THREADS};

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
