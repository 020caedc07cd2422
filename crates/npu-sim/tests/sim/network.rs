//! Several cores and the memory that they share.

use super::common::Golden;
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_sim::{Config, Halt, Machine, NoSink, Report, Stall, Timing, TimingConfig, Waits};

/// Instructions after which a program is given up.
const LIMIT: u64 = 1_000_000;

/// Cores, the tile of the first, how many of them run, the delay of memory and that of a hop.
#[derive(Clone, Copy)]
struct System {
    cores: usize,
    tile: u32,
    running: usize,
    memory_delay: u32,
    hop_delay: u32,
}

const ALONE: System = System {
    cores: 1,
    tile: 0,
    running: 1,
    memory_delay: 0,
    hop_delay: 0,
};

/// Four loads, each of a line of its own, that the thread waits for, and the end. Cores load from different lines.
const LOADS: &str = "
        movei   s0, 0
        read_cr s1, s0
        shli    s1, s1, 12
        addi    s1, s1, 255
        addi    s1, s1, 1
        shli    s1, s1, 4
        load32  s2, (s1)
        add_i32 s3, s2, s2
        load32  s2, 64(s1)
        add_i32 s3, s2, s2
        load32  s2, 128(s1)
        add_i32 s3, s2, s2
        load32  s2, 192(s1)
        add_i32 s3, s2, s2
        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp .
";

fn run(system: System) -> (Report, Waits) {
    let object = assemble(LOADS, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
    let image = link(&object, &Placement::default()).expect("it links").image;
    let mut machine = Machine::new(Config {
        cores: system.cores,
        tile: system.tile,
        ..Config::default()
    });
    machine.load(&image).expect("room");
    for core in 0..system.running {
        machine.enable(core, 1);
    }
    let mut timing = Timing::new(TimingConfig {
        memory_delay: system.memory_delay,
    });
    timing.set_hop_delay(system.hop_delay);
    let mut waits = Waits::new();
    assert_eq!(machine.run_timed(&mut timing, LIMIT, &mut waits), Halt::Ended);
    (timing.report(), waits)
}

/// The cycles that thread 0 waits for its last load, when all instructions are there.
fn last_load(system: System) -> u64 {
    let waits = run(system).1.report().waits;
    let wait = waits
        .iter()
        .find(|wait| wait.thread == 0 && wait.cause == Stall::Load && wait.pc == 52);
    wait.expect("it waits").cycles
}

#[test]
fn one_core_takes_the_cycles_of_the_hardware_whatever_a_hop_takes() {
    for golden in Golden::folder("golden-timing").into_iter().step_by(7) {
        let mut machine = Machine::new(Config::default());
        golden.start(&mut machine);
        let mut timing = Timing::new(TimingConfig {
            memory_delay: golden.memory_delay,
        });
        timing.set_hop_delay(1000);
        machine.run_timed(&mut timing, LIMIT, &mut NoSink);
        assert_eq!(timing.report().cycles, golden.cycles, "{}", golden.name);
    }
}

/// A load that misses is used 18 cycles later, so that 17 are waited, and the delay of memory; the way there and back comes to that.
#[test]
fn a_miss_takes_the_way_there_and_back() {
    let system = System { cores: 2, ..ALONE };
    for (tile, hops) in [(0, 6), (5, 4), (14, 1)] {
        for (memory_delay, hop_delay) in [(0, 0), (20, 0), (0, 5), (20, 5)] {
            let system = System {
                tile,
                memory_delay,
                hop_delay,
                ..system
            };
            let each = 17 + u64::from(memory_delay) + 2 * hops * u64::from(hop_delay);
            assert_eq!(last_load(system), each, "tile {tile}, {memory_delay}, {hop_delay}");
        }
    }
}

#[test]
fn more_cores_make_nothing_cheaper() {
    let mut last = run(ALONE).0.cycles;
    let idle = System { cores: 16, ..ALONE };
    assert_eq!(run(idle).0.cycles, last, "cores that do nothing are in nobody's way");
    for cores in [2, 4, 8, 16] {
        let system = System {
            cores,
            running: cores,
            ..ALONE
        };
        let cycles = run(system).0.cycles;
        assert!(cycles >= last, "{cores} cores take {cycles} cycles, fewer take {last}");
        last = cycles;
    }
}

/// With a slow memory its transactions are all that counts, one after the other.
#[test]
fn memory_does_one_thing_at_a_time() {
    let system = System {
        cores: 8,
        running: 8,
        memory_delay: 100,
        ..ALONE
    };
    let (report, _) = run(system);
    // 4 loads of each core, and 2 lines of instructions of which the first one comes before the clock starts.
    let reads = 8 * (4 + 2);
    assert_eq!(report.memory_reads, reads);
    let busy = 102 * (reads - 8);
    assert!(
        report.cycles >= busy && report.cycles < busy + 8 * 102 + 100,
        "{} cycles, memory is taken for {busy}",
        report.cycles
    );
    let alone = run(System {
        memory_delay: 100,
        ..ALONE
    });
    assert!(report.cycles > 5 * alone.0.cycles);
}
