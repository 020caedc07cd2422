//! Causes of waits: the sums equal the stall counters, and each kind of wait names its producer.

use super::common::Golden;
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_mc::{Reg, SReg};
use npu_sim::{
    Awaited, Config, Halt, Issue, Machine, Report, Sinks, Stall, Timing, TimingConfig, Wait, Waits, WaitsReport,
};

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1_000_000;

/// Checks the sums of each thread, for each cause.
fn check_sums(name: &str, waits: &WaitsReport, report: &Report) {
    for (thread, counters) in &report.threads {
        for cause in Stall::ALL {
            assert_eq!(
                waits.stalled(*thread, cause),
                counters.stalled(cause),
                "{name}: thread {thread}, {cause}"
            );
        }
    }
    let sum: u64 = waits.waits.iter().map(|wait| wait.cycles).sum();
    assert_eq!(sum, report.total.stalls.iter().sum::<u64>(), "{name}");
    let by_instruction: u64 = waits.by_instruction().iter().map(|wait| wait.cycles).sum();
    assert_eq!(sum, by_instruction, "{name}");
}

#[test]
fn sums_are_the_stall_accounts() {
    let (mut all, mut unseen) = (0, 0);
    for golden in Golden::folder("golden-timing") {
        let mut machine = Machine::new(Config::default());
        golden.start(&mut machine);
        let mut timing = Timing::new(TimingConfig {
            memory_delay: golden.memory_delay,
            ..TimingConfig::default()
        });
        let mut waits = Waits::new();
        machine.run_timed(&mut timing, LIMIT, &mut waits);
        let waits = waits.report();
        check_sums(&golden.name, &waits, &timing.report());
        for wait in &waits.waits {
            all += wait.cycles;
            if wait.awaited == Awaited::Unseen {
                unseen += wait.cycles;
            }
        }
    }
    assert!(all > 100_000, "{all} cycles");
    assert_eq!(unseen, 0, "{unseen} of {all} cycles have no known cause");
}

/// Runs a program on the threads of a mask; returns the waits.
fn waits(source: &str, threads: u32, cores: usize) -> WaitsReport {
    let source = format!("{source}\n movei s40, 2\n movei s41, 11\n write_cr s40, s41\n jmp .\n");
    let object = assemble(&source, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
    let image = link(&object, &Placement::default()).expect("it links").image;
    let config = Config {
        cores,
        ..Config::default()
    };
    let mut machine = Machine::new(config);
    machine.load(&image).expect("room");
    for core in 0..cores {
        machine.enable(core, threads);
    }
    let mut timing = Timing::new(TimingConfig::default());
    let (mut waits, mut issues) = (Waits::new(), 0);
    let mut count = |_: &Issue| issues += 1;
    let halt = machine.run_timed(&mut timing, LIMIT, &mut Sinks(vec![&mut waits, &mut count]));
    assert_eq!(halt, Halt::Ended);
    assert!(issues > 0);
    let report = waits.report();
    check_sums(&source, &report, &timing.report());
    report
}

fn find(report: &WaitsReport, cause: Stall, pc: u32) -> Vec<&Wait> {
    report
        .waits
        .iter()
        .filter(|wait| wait.cause == cause && wait.pc == pc)
        .collect()
}

/// Returns the awaited event and the cycles of the only wait of an instruction.
fn only(report: &WaitsReport, cause: Stall, pc: u32) -> (Awaited, u64) {
    match find(report, cause, pc)[..] {
        [wait] => (wait.awaited, wait.cycles),
        ref others => panic!("{cause} at {pc:#x}: {others:#?}"),
    }
}

#[test]
fn results_are_those_of_their_writers() {
    // All in one line of the instruction cache, so that there are no other waits.
    let report = waits(
        "movei s1, 3
         mull_i32 s2, s0, s0
         mull_i32 s3, s0, s0
         add_i32 s4, s2, s3
         fadd_f32 s5, s0, s0
         add_i32 s6, s5, s0
         load32 s7, (s0)
         add_i32 s8, s7, s0",
        1,
        1,
    );
    // Of two products the second one is awaited, issued one cycle earlier; a product takes 7
    // cycles.
    let result = |pc, register| Awaited::Result {
        pc,
        register: Reg::S(register),
    };
    assert_eq!(only(&report, Stall::Integer, 12), (result(8, SReg::S3), 6));
    // A float sum takes 12.
    assert_eq!(only(&report, Stall::Float, 20), (result(16, SReg::S5), 11));
    // A load that misses takes 18, since memory answers immediately.
    let miss = Awaited::Miss {
        pc: 24,
        register: Reg::S(SReg::S7),
    };
    assert_eq!(only(&report, Stall::Load, 28), (miss, 17));
    assert_eq!(
        find(&report, Stall::Load, 28)[0]
            .lines
            .iter()
            .copied()
            .collect::<Vec<_>>(),
        [0]
    );
}

#[test]
fn branches_lines_and_queues_are_named() {
    let report = waits(
        "movei s0, 3
         loop: subi s0, s0, 1
         bnez s0, loop
         itof_i32 s1, s2
         nop
         fadd_f32 s3, s4, s4
         flush s2
         flush s2
         flush s2
         flush s2
         flush s2",
        1,
        1,
    );
    // The branch is taken twice. Its target issues 8 cycles after it, and the first time 13 because
    // of a missing line; one of these cycles is that of the branch, and one that of a killed
    // instruction after it.
    let branch = Awaited::Branch { pc: 8 };
    assert_eq!(only(&report, Stall::Branch, 4), (branch, 6 + 11));
    let queue = find(&report, Stall::MemoryQueue, 40);
    assert_eq!(queue.len(), 1, "{report:#?}");
    assert_eq!(queue[0].awaited, Awaited::Memory { pc: 36 });
    let report = waits(&(0..40).map(|n| format!("movei s{n}, 1\n")).collect::<String>(), 1, 1);
    let lines: Vec<&Wait> = report
        .waits
        .iter()
        .filter(|wait| wait.cause == Stall::InstructionMiss)
        .collect();
    assert!(!lines.is_empty());
    assert!(
        lines
            .iter()
            .all(|wait| wait.awaited == Awaited::InstructionLine { line: wait.pc / 64 })
    );
}

/// A product takes 11 cycles and a sum 12: a product that issues a cycle after a sum would use the
/// port in the same cycle.
#[test]
fn float_results_are_in_the_way_of_others() {
    let report = waits(
        "nop
         nop
         movei s1, 1
         movei s2, 1
         fadd_f32 s3, s1, s1
         fmul_f32 s4, s1, s1",
        1,
        1,
    );
    let awaited = Awaited::FloatResult { thread: 0, pc: 16 };
    assert_eq!(only(&report, Stall::FloatSlot, 20), (awaited, 1));
}

/// The last thread waits only for the release, and the others wait for the last thread.
#[test]
fn barriers_wait_for_the_last() {
    // Thread 1 does more work before the barrier, by its number in control register 2.
    let report = waits(
        "movei s10, 2
         read_cr s11, s10
         movei s1, 1
         movei s2, 5
         beqz s11, there
         fdiv_f32 s3, s11, s11
         fdiv_f32 s3, s3, s11
         there: barrier s2, s1",
        0b11,
        1,
    );
    for thread in 0..2 {
        let of_it: Vec<&Wait> = report
            .waits
            .iter()
            .filter(|wait| wait.cause == Stall::Barrier && wait.thread == thread)
            .collect();
        assert_eq!(of_it.len(), 1, "{report:#?}");
        assert_eq!((of_it[0].pc, of_it[0].awaited), (28, Awaited::Arrival { thread: 1 }));
    }
    assert!(report.stalled(0, Stall::Barrier) > report.stalled(1, Stall::Barrier) + 10);
}

#[test]
fn a_turn_is_that_of_somebody() {
    // The threads are released at once, with full buffers.
    let source = "movei s1, 7\n movei s2, 5\n barrier s2, s1\n add_i32 s4, s2, s3\n add_i32 s5, s2, s3";
    let report = waits(source, 0xff, 1);
    let turns: Vec<&Wait> = report.waits.iter().filter(|wait| wait.cause == Stall::Turn).collect();
    assert!(!turns.is_empty());
    for wait in turns {
        assert!(
            matches!(wait.awaited, Awaited::Turn { thread } if thread != wait.thread && thread < 8),
            "{wait:?}"
        );
    }
    // Threads of another core take no turns of this one.
    let source = source.replace("s1, 7", "s1, 15");
    let report = waits(&source, 0xff, 2);
    for wait in &report.waits {
        if let Awaited::Turn { thread } = wait.awaited {
            assert_eq!(thread / 8, wait.thread / 8, "{wait:?}");
        }
    }
}
