//! Compares timed runs that replay recordings with runs that simulate every cycle: all results are
//! equal.

use super::common::Random;
use super::loops::{ADD, BASE, Words, prepared, ri};
use super::random::compare_state;
use npu_sim::{Halt, NoSink, Timing, TimingConfig};

/// Runs programs by both methods, in parts of random length; returns the numbers of instructions
/// and of replayed ones.
fn run_both(seeds: std::ops::Range<u64>, of: Words) -> (u64, u64) {
    let (mut executed, mut replayed) = (0, 0);
    for seed in seeds {
        let mut random = Random(seed);
        let threads = [1, 0xff, 1 << random.below(8), random.below(256)][seed as usize % 4];
        let config = TimingConfig {
            memory_delay: random.below(9),
            ..TimingConfig::default()
        };
        let [(mut recorded, mut fast), (mut plain, mut slow)] = [false, true].map(|every_cycle| {
            let mut machine = prepared(seed, of, None);
            // Occasionally a loop walks through memory and misses.
            if seed % 3 == 0 {
                let walk = ri(ADD, 12, 12, if seed % 2 == 0 { 60 } else { 4 });
                machine.memory_mut().write_u32(BASE + 4, walk).unwrap();
            }
            machine.enable(0, threads);
            let mut timing = Timing::new(config);
            timing.set_every_cycle(every_cycle);
            (machine, timing)
        });
        let symbols = vec![(0x1000, "first".to_owned()), (0x1020, "second".to_owned())];
        fast.set_symbols(symbols.clone());
        slow.set_symbols(symbols);
        for _ in 0..8 {
            let limit = u64::from(1 + random.below(6000));
            let a = recorded.run_timed(&mut fast, limit, &mut NoSink);
            let b = plain.run_timed(&mut slow, limit, &mut NoSink);
            assert_eq!(a, b, "seed {seed}");
            assert_eq!(fast.report(), slow.report(), "seed {seed}");
            compare_state(seed, &recorded, &plain);
            if a != Halt::StepLimit {
                break;
            }
        }
        executed += slow.report().total.instructions;
        replayed += fast.replayed_instructions();
        assert_eq!(slow.replayed_instructions(), 0);
    }
    println!("{replayed} of {executed} instructions");
    (executed, replayed)
}

#[test]
fn recorded_stretches_change_no_cycle_and_no_count() {
    let (executed, replayed) = run_both(0..400, Words::Scalars);
    assert!(replayed > executed / 4, "{replayed} of {executed} are from recordings");
}

#[test]
fn recorded_stretches_with_vectors_change_no_cycle_and_no_count() {
    let (executed, replayed) = run_both(1000..1300, Words::Vectors);
    assert!(replayed > executed / 4, "{replayed} of {executed} are from recordings");
}

#[test]
fn recorded_stretches_with_masks_change_no_cycle_and_no_count() {
    let (executed, replayed) = run_both(2000..2200, Words::Compares);
    assert!(replayed > executed / 8, "{replayed} of {executed} are from recordings");
}
