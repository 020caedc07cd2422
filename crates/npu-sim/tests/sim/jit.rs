//! Compares translated with interpreted loops: all results are equal for every loop, limit and
//! schedule.

use super::common::{Random, sreg};
use super::loops::{ADD, BASE, DATA, SUB, Words, branch, jump, load, mem, prepared, ri, rr};
use super::random::compare;
use npu_mc::raw::AluOp;
use npu_sim::{Machine, Schedule, Stop, THREADS};

/// The address of the code of [`probe`].
const PROBE: u32 = 0x8000;

/// Uses all bits of every scalar register and of the words around the data, so that findings report
/// their undriven bits.
fn probe(machine: &mut Machine, number: usize) {
    let count = |register| rr(12, 60, register, 0);
    let mut words: Vec<u32> = (0..60).map(count).collect();
    for base in [0, 0x100] {
        // movei s12, base + the low half; moveih s12, the high half.
        let address = DATA + base;
        words.push(0x6200_0000 | 12 << 18 | (address & 0xffff) << 2);
        words.push(0x6100_0000 | 12 << 18 | (address >> 16) << 2);
        words.extend((0..64).flat_map(|k| [mem(2, 61, 12, 4 * k), count(61)]));
    }
    for (word, address) in words.iter().zip((PROBE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    machine.thread_mut(number).set_pc(PROBE);
    machine.run(number, words.len() as u64);
}

/// Runs programs with and without translations; returns the numbers of entries, instructions, and
/// translated instructions.
fn run_both(seeds: std::ops::Range<u64>, of: Words) -> (u64, u64, u64) {
    let (mut entered, mut executed, mut inside) = (0, 0, 0);
    for seed in seeds {
        let mut translated = prepared(seed, of, Some(2));
        let mut interpreted = prepared(seed, of, None);
        // Random limits, so that runs end at arbitrary positions.
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
        // The tracked state is equal, too.
        probe(&mut translated, 0);
        probe(&mut interpreted, 0);
        compare(seed, &translated, &interpreted);
        assert_eq!(interpreted.translations_entered(), 0);
    }
    println!("{entered} entries, {inside} of {executed} instructions");
    (entered, executed, inside)
}

#[test]
fn translated_loops_do_what_interpreted_ones_do() {
    let (entered, executed, inside) = run_both(0..300, Words::Scalars);
    assert!(
        entered > 1000 && inside > executed / 4,
        "the programs are not translated"
    );
}

#[test]
fn translated_vectors_do_what_interpreted_ones_do() {
    let (entered, executed, inside) = run_both(5000..5250, Words::Vectors);
    assert!(
        entered > 500 && inside > executed / 4,
        "the programs are not translated"
    );
}

#[test]
fn undriven_halves_are_followed_in_translated_loops() {
    let (entered, executed, inside) = run_both(9000..9400, Words::Compares);
    assert!(
        entered > 500 && inside > executed / 4,
        "the programs are not translated"
    );
}

#[test]
fn threads_take_turns_at_the_same_points() {
    let mut entered = 0;
    for seed in 0..60 {
        let of = [Words::Vectors, Words::Scalars, Words::Compares][seed as usize % 3];
        let mut translated = prepared(seed, of, Some(2));
        let mut interpreted = prepared(seed, of, None);
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

/// Runs a loop that counts s1 down from 500 up to the limit, with and without translations; returns
/// the machines.
fn both(body: &[u32], limit: u64) -> [Machine; 2] {
    let (machines, stop) = ended(body, limit);
    assert_eq!(stop, Stop::StepLimit);
    machines
}

/// Runs like [`both`], to the end of the loop.
fn ended(body: &[u32], limit: u64) -> ([Machine; 2], Stop) {
    let mut words = body.to_vec();
    words.push(ri(SUB, 1, 1, 1));
    words.push(branch(true, 1, -(words.len() as i32)));
    let [(translated, stop), (interpreted, other)] = [Some(2), None].map(|after| {
        let mut machine = load(&words, after);
        let thread = machine.thread_mut(0);
        thread.set_scalar(sreg(59), 0xffff);
        thread.set_scalar(sreg(1), 500);
        thread.set_scalar(sreg(12), DATA);
        thread.set_scalar(sreg(13), BASE);
        thread.set_pc(BASE);
        let stop = machine.run(0, limit);
        (machine, stop)
    });
    assert_eq!(stop, other);
    compare(0, &translated, &interpreted);
    ([translated, interpreted], stop)
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
    // addi s2, s2, imm changes in each iteration: its word is in memory at s13 + 16.
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
    // The address in s12 becomes misaligned in the 50th iteration.
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
    // A load directly before the back edge, from the 50th iteration on: s6 is 0 until then.
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

/// Tests `moveil` and `moveih` of vectors with complementary bits in the old and the new halves.
#[test]
fn halves_of_vectors_are_replaced_in_translations() {
    let half = |high: u32, value: u32| (0x60 + high) << 24 | 3 << 18 | value << 2 | 2;
    for values in [[0xffff, 0], [0x8001, 0x7ffe], [0, 0xffff]] {
        let body = values.iter().flat_map(|&value| {
            let both = [half(0, value), half(1, value), half(0, !value & 0xffff)];
            both.map(|word| [word, rr(ADD, 4, 4, 3) | 7 << 1]).concat()
        });
        let [translated, _] = both(&body.collect::<Vec<_>>(), 3000);
        assert_eq!(translated.translations_entered(), 1);
    }
}

/// Tests each operation before a taken branch, with undecoded words in between, and before an
/// instruction that reads or writes its result: translations lose the same results.
#[test]
fn lost_results_are_the_same_in_translations() {
    let nothing = 0x5f00_0000;
    let mut lost = 0;
    let operations = (0..64).filter_map(AluOp::from_code);
    // Operations that end a thread cannot be in a loop.
    let operations = operations.filter(|op| !matches!(op, AluOp::F32tof64 | AluOp::F64tof32 | AluOp::Crp));
    let by_files = operations.flat_map(|op| {
        let code = op as u32;
        [
            rr(code, 3, 4, 5),
            ri(code, 3, 4, 3),
            rr(code, 3, 1, 5) | 2 << 1,
            ri(code, 3, 1, 3) | 1 << 1,
        ]
    });
    let loads = [0, 1, 2, 4, 5].map(|op| mem(op, 3, 12, 0));
    let scratchpad = [2].map(|op| mem(op, 3, 12, 0) | 1 << 1);
    for producer in by_files.chain(loads).chain(scratchpad) {
        for between in [0, 1, 3] {
            for follower in [rr(ADD, 8, 8, 3), 0x6200_0000 | 3 << 18 | 7 << 2] {
                let mut body = vec![producer];
                body.extend(vec![nothing; between]);
                body.extend([jump(false, 2), nothing, follower, rr(ADD, 9, 9, 3)]);
                let ([_, interpreted], _) = ended(&body, 200);
                lost += usize::from(!interpreted.findings().is_empty());
            }
        }
    }
    assert!(lost > 100, "{lost} programs lose a result");
}

/// s20 = the lanes in which v1 > v2.
const COMPARE: u32 = 16 << 24 | 20 << 18 | 1 << 12 | 2 << 6 | 3 << 1;

#[test]
fn a_loop_on_masks_from_compares_is_one_entry() {
    // rm = s20; v4 += v1
    let body = [COMPARE, rr(32, 59, 20, 0), rr(ADD, 4, 4, 1) | 7 << 1];
    let [translated, _] = both(&body, 2000);
    assert_eq!(translated.translations_entered(), 1);
    assert!(translated.findings().is_empty());
}

/// Runs a loop like [`both`], and then probes everything, so that findings report undriven bits.
fn both_probed(body: &[u32], limit: u64) -> [Machine; 2] {
    let mut machines = both(body, limit);
    machines.iter_mut().for_each(|machine| probe(machine, 0));
    let [translated, interpreted] = &machines;
    compare(0, translated, interpreted);
    machines
}

#[test]
fn a_compare_spilled_within_an_iteration_is_followed() {
    // Each iteration drives the word again at its end, so that every translation starts with driven
    // words.
    let body = [
        COMPARE,
        mem(34, 20, 12, 4),
        mem(2, 3, 12, 4),
        rr(ADD, 6, 6, 1),
        mem(34, 1, 12, 4),
    ];
    let [translated, interpreted] = both_probed(&body, 7 * 300);
    assert!(translated.translated_instructions() > 1000);
    let s3 = interpreted
        .findings()
        .iter()
        .any(|finding| finding.detail.contains("s3"));
    assert!(s3, "{:?}", interpreted.findings());
}

#[test]
fn a_number_of_a_lane_above_the_last_is_found_in_translations() {
    // Lane 15 in the first 49 iterations, then lane 16.
    let body = [
        ri(ADD, 5, 5, 1),
        ri(14, 6, 5, 50),
        ri(ADD, 6, 6, 15),
        rr(AluOp::Getlane as u32, 3, 1, 6) | 2 << 1,
    ];
    let [translated, interpreted] = both(&body, 6 * 200);
    assert!(translated.translated_instructions() > 300);
    assert_eq!(interpreted.findings().len(), 1);
}

#[test]
fn a_number_of_a_shuffle_above_the_last_is_found_in_translations() {
    // All indices are 15 in the first 49 iterations, then 16.
    let body = [
        ri(ADD, 5, 5, 1),
        ri(14, 6, 5, 50),
        ri(ADD, 6, 6, 15),
        rr(AluOp::Move as u32, 2, 6, 0) | 4 << 1,
        rr(AluOp::Shuffle as u32, 3, 1, 2) | 7 << 1,
    ];
    let [translated, interpreted] = both(&body, 7 * 200);
    assert!(translated.translated_instructions() > 300);
    assert_eq!(interpreted.findings().len(), 1);
}

#[test]
fn a_jump_to_itself_ends_a_translated_loop() {
    // The register contains the next address, and in the 50th iteration that of the jump.
    let body = [
        ri(ADD, 5, 5, 1),
        ri(14, 6, 5, 50),
        rr(ADD, 6, 6, 6),
        rr(ADD, 6, 6, 6),
        ri(ADD, 9, 13, 28),
        rr(SUB, 9, 9, 6),
        0x7000_0000 | 9 << 18,
    ];
    let ([translated, _], stop) = ended(&body, 3000);
    assert_ne!(stop, Stop::StepLimit);
    assert_eq!(translated.translations_entered(), 1);
}

#[test]
fn a_vector_stored_over_spilled_compares_drives_their_words() {
    let body = [
        COMPARE,
        mem(34, 20, 12, 4),
        mem(38, 1, 12, 0),
        mem(2, 3, 12, 4),
        rr(12, 4, 3, 0),
    ];
    let [translated, _] = both(&body, 3000);
    assert_eq!(translated.translations_entered(), 1);
    assert!(translated.findings().is_empty());
}

#[test]
fn a_spilled_compare_that_is_used_is_found() {
    let body = [COMPARE, mem(34, 20, 12, 4), mem(2, 3, 12, 4), rr(12, 4, 3, 0)];
    let [translated, interpreted] = both(&body, 3000);
    assert!(translated.translations_entered() > 0);
    assert_eq!(interpreted.findings().len(), 1);
}

#[test]
fn a_compare_that_comes_back_from_memory_stays_in_the_translation() {
    // The translation learns which loads return undriven halves by leaving several times.
    let body = [
        COMPARE,
        mem(34, 20, 12, 4),
        mem(2, 3, 12, 4),
        rr(32, 59, 3, 0),
        rr(ADD, 4, 4, 1) | 7 << 1,
    ];
    let [translated, _] = both(&body, 3400);
    assert!(translated.translations_entered() < 30);
    assert!(translated.translated_instructions() > 3000);
    assert!(translated.findings().is_empty());
}

#[test]
fn loops_on_the_scratchpad_are_translated() {
    let shared = 1 << 1;
    let body = [mem(34, 1, 12, 8) | shared, mem(2, 3, 12, 8) | shared, rr(ADD, 4, 4, 3)];
    let [translated, _] = both(&body, 2000);
    assert_eq!(translated.translations_entered(), 1);
    assert_eq!(
        translated.core_scratchpad(0)[8],
        translated.thread(0).scalar(sreg(3)) as u8
    );
}

#[test]
fn machines_may_go_to_other_threads_of_the_host() {
    fn is_send<T: Send>() {}
    is_send::<Machine>();
}
