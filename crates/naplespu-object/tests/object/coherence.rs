//! Atomic operations of several cores with the coherence protocol of the hardware, in random orders.

use crate::common::{address, assembled, compiled, image, isa, linked_for, words};
use npu_link::{LinkOptions, Program};
use npu_sim::coherence::Coherence;
use npu_sim::{Config, Halt, Machine};

const STEPS: u64 = 20_000_000;

/// The number of additions of each thread.
const ADDITIONS: u32 = 3;

const ATOMIC: &str = "v4 = atomic_rmw.i32 add v0, v2";
const PLAIN: &str = "v4 = load.i32 v0\n v6 = iadd v4, v2\n store v6, v0";

/// Returns a function that performs an addition of `v2` to the word at `v0` as often as `v1` says.
fn count(addition: &str) -> String {
    format!(
        "function %count(i32, i32) -> i32 {{
        block0(v0: i32, v1: i32):
            v2 = iconst.i32 1
            jump block1(v1)
        block1(v3: i32):
            {addition}
            v5 = isub v3, v2
            brif v5, block1(v5), block2
        block2:
            return v5
        }}"
    )
}

/// Each thread adds to one counter.
fn program(addition: &str, threads: u32) -> Program {
    let main = format!(
        "
        .globl main
main:   addi sp, sp, -64
        store32 ra, 60(sp)
        lea s0, counter
        movei s1, {ADDITIONS}
        jmpsr count
        load32 ra, 60(sp)
        addi sp, sp, 64
        jret
        .bss
        .balign 64
        .globl counter
counter: .zero 64
"
    );
    let isa = isa(&["atomics=machine"]);
    let files = [compiled("count.clif", &count(addition), &isa, false), assembled(&main)];
    let options = LinkOptions {
        threads,
        ..LinkOptions::default()
    };
    linked_for(&isa, &files, &mut [], &options).unwrap()
}

/// Returns the reason of the end and the counter.
fn run(program: &Program, cores: usize, threads: u32, seed: u64) -> (Halt, u32) {
    let image = image(program);
    let mut machine = Machine::new(Config {
        cores,
        ..Config::default()
    });
    machine.load(&image).unwrap();
    for core in 0..cores {
        machine.enable(core, (1 << threads) - 1);
        for thread in 0..threads as usize {
            machine.boot(npu_sim::THREADS * core + thread, image.entry.unwrap());
        }
    }
    let mut coherence = Coherence::new(&machine, seed);
    let halt = machine.run_coherence(&mut coherence, STEPS);
    assert!(address(program, "counter").is_multiple_of(64));
    (halt, words(&machine, program, "counter", 1)[0])
}

#[test]
fn machine_atomics_count_in_all_orders() {
    for (cores, threads, seeds) in [(2, 1, 12), (2, 3, 4), (3, 1, 4)] {
        let program = program(ATOMIC, cores as u32 * threads);
        for seed in 0..seeds {
            let (halt, counter) = run(&program, cores, threads, seed);
            assert_eq!(halt, Halt::Ended, "{cores} cores, {threads} threads, seed {seed}");
            let expected = cores as u32 * threads * ADDITIONS;
            assert_eq!(counter, expected, "{cores} cores, {threads} threads, seed {seed}");
        }
    }
}

/// Without the lock, an addition is lost in some order.
#[test]
fn plain_additions_lose_counts() {
    let program = program(PLAIN, 2);
    let runs = (0..12).map(|seed| run(&program, 2, 1, seed));
    let wrong = runs.filter(|(halt, counter)| *halt != Halt::Ended || *counter != 2 * ADDITIONS);
    assert!(wrong.count() > 0);
}
