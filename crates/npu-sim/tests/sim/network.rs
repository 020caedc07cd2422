//! Several cores with shared memory.

use super::common::Golden;
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_sim::{
    Config, Halt, Machine, NetworkCounters, NoSink, Place, Report, Stall, Timing, TimingConfig, Wait, Waits,
};

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1_000_000;

/// The number of cores, the tile of the first core, the number of running cores, and the delays of
/// memory and of a hop.
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

/// Four loads of separate lines, each with a wait for its result, and the end. Cores load different
/// lines.
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
    let (report, waits, _) = run_program(LOADS, system, |_| false);
    (report, waits)
}

/// Runs thread 0 of each running core, with the configuration that `set` changes; also returns the
/// machine.
fn run_program(source: &str, system: System, set: impl FnOnce(&mut TimingConfig) -> bool) -> (Report, Waits, Machine) {
    let object = assemble(source, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
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
    let mut config = TimingConfig {
        memory_delay: system.memory_delay,
        hop_delay: system.hop_delay,
        ..TimingConfig::default()
    };
    let every_cycle = set(&mut config);
    let mut timing = Timing::new(config);
    timing.set_every_cycle(every_cycle);
    let mut waits = Waits::new();
    assert_eq!(machine.run_timed(&mut timing, LIMIT, &mut waits), Halt::Ended);
    (timing.report(), waits, machine)
}

/// Returns the wait of the instruction at `pc` of thread 0 of a core, for one cause.
fn wait(waits: &Waits, core: usize, cause: Stall, pc: u32) -> Wait {
    let report = waits.report();
    let found: Vec<&Wait> = report
        .waits
        .iter()
        .filter(|wait| wait.thread == 8 * core && wait.cause == cause && wait.pc == pc)
        .collect();
    match found[..] {
        [wait] => wait.clone(),
        ref others => panic!("{cause} at {pc:#x}: {others:#?}"),
    }
}

/// Returns a program whose cores meet at a barrier before each part, for `rounds` iterations. `s4`
/// is the address of a line, a different one in each iteration.
fn in_turn(parts: &[&str], rounds: u32) -> String {
    let mut source = format!(
        "movei s0, 0\n read_cr s1, s0\n movei s2, 5\n movei s3, 1\n movei s4, 0x3000\n movei s7, {rounds}\n round:"
    );
    for part in parts {
        source += &format!("barrier s2, s3\n {part}\n");
    }
    source += "addi s4, s4, 192\n subi s7, s7, 1\n bnez s7, round\n";
    source + "movei s40, 2\n movei s41, 11\n write_cr s40, s41\n jmp .\n"
}

/// Returns the cycles that thread 0 waits for its last load, when all instructions are cached.
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
            hop_delay: 1000,
            link_cycles: 1000,
            second_level_delay: 1000,
        });
        machine.run_timed(&mut timing, LIMIT, &mut NoSink);
        assert_eq!(timing.report().cycles, golden.cycles, "{}", golden.name);
        assert_eq!(timing.report().network, None);
    }
}

/// A load that misses can be used 18 cycles later, so that 17 cycles plus the delay of memory are
/// stalls; the path there and back adds to them.
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
    assert_eq!(run(idle).0.cycles, last, "idle cores delay no other core");
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

/// With a slow memory its transactions alone determine the time, one after the other.
#[test]
fn memory_does_one_thing_at_a_time() {
    let system = System {
        cores: 8,
        running: 8,
        memory_delay: 100,
        ..ALONE
    };
    let (report, _) = run(system);
    // 4 loads of each core, and 2 lines of instructions, the first of which arrives before the
    // clock starts.
    let reads = 8 * (4 + 2);
    assert_eq!(report.memory_reads, reads);
    let busy = 102 * (reads - 8);
    assert!(
        report.cycles >= busy && report.cycles < busy + 8 * 102 + 100,
        "{} cycles, memory is busy for {busy}",
        report.cycles
    );
    let alone = run(System {
        memory_delay: 100,
        ..ALONE
    });
    assert!(report.cycles > 5 * alone.0.cycles);
}

/// Two cores in tiles 0 and 1, six and five hops from memory: a hop takes 5 cycles, memory 2 plus
/// 100, the second level 3 more.
const PAIR: System = System {
    cores: 2,
    tile: 0,
    running: 2,
    memory_delay: 100,
    hop_delay: 5,
};

/// The counts before and after the third iteration of a program on the pair, when all instructions
/// are cached.
struct Round([(Report, Waits); 2]);

impl Round {
    fn of(parts: &[&str]) -> Round {
        Round([2, 3].map(|rounds| {
            let source = in_turn(parts, rounds);
            let (report, waits, _) = run_program(&source, PAIR, |config| {
                config.second_level_delay = 3;
                false
            });
            (report, waits)
        }))
    }

    /// Returns the cycles that a core waited for a load at `pc`, and the part of them at places
    /// outside of the core.
    fn load(&self, core: usize, pc: u32) -> (u64, Vec<(Place, u64)>) {
        let [before, after] = self.0.each_ref().map(|(_, waits)| wait(waits, core, Stall::Load, pc));
        assert_eq!(after.times, before.times + 1);
        let places = Place::ALL.map(|place| (place, after.at(place) - before.at(place)));
        let places = places.into_iter().filter(|(_, cycles)| *cycles != 0);
        (after.cycles - before.cycles, places.collect())
    }

    fn counted(&self, count: impl Fn(&NetworkCounters) -> u64) -> u64 {
        let [before, after] = self.0.each_ref().map(|(report, _)| report.network.expect("two cores"));
        count(&after) - count(&before)
    }
}

/// A use of a load waits for 17 cycles if memory answers after 2; here the answer takes longer.
#[test]
fn a_line_comes_from_memory_first_and_from_the_second_level_then() {
    // Core 0 skips the load of core 1, and vice versa.
    let round = Round::of(&[
        "beqz s1, one\n load32 s5, (s4)\n add_i32 s6, s5, s5\n one:",
        "bnez s1, two\n load32 s5, (s4)\n add_i32 s6, s5, s5\n two:",
    ]);
    // 25 to memory, 3 in the second level, 102 in memory, 25 back.
    let places = vec![(Place::Network, 50), (Place::SecondLevel, 3), (Place::Memory, 102)];
    assert_eq!(round.load(1, 36), (17 - 2 + 25 + 3 + 102 + 25, places));
    // 30 to memory, 3 plus 2 in the second level, 30 back.
    let places = vec![(Place::Network, 60), (Place::SecondLevel, 5)];
    assert_eq!(round.load(0, 52), (17 - 2 + 30 + 5 + 30, places));
    assert_eq!(round.counted(|network| network.second_level_hits), 1);
    assert_eq!(round.counted(|network| network.second_level_misses), 1);
    assert_eq!(round.counted(|network| network.memory_reads), 1);
}

#[test]
fn a_line_that_another_core_has_stored_to_comes_from_there() {
    // A hardware bug: a barrier directly after a store that misses does not wait for the store.
    let round = Round::of(&[
        "beqz s1, one\n store32 s1, (s4)\n movei s9, 0\n movei s9, 1\n movei s9, 2\n one:",
        "bnez s1, two\n load32 s5, (s4)\n add_i32 s6, s5, s5\n two:",
        // Core 1 shares the line now and needs write permission before it stores again.
        "beqz s1, three\n store32 s1, (s4)\n load32 s5, (s4)\n add_i32 s6, s5, s5\n three:",
    ]);
    // 30 to the directory, 3 there, 25 to tile 1, 2 for the answer, 5 to tile 0.
    let places = vec![(Place::Network, 60), (Place::SecondLevel, 3), (Place::OtherCore, 2)];
    assert_eq!(round.load(0, 60), (17 - 2 + 30 + 3 + 25 + 2 + 5, places));
    assert_eq!(round.counted(|network| network.forwarded), 1);
    assert_eq!(round.counted(|network| network.upgrades), 1);
    assert_eq!(round.counted(|network| network.invalidations), 1);
    // 25 to the directory, 3 there, 30 to tile 0, 2 for the answer, 5 to tile 1; the write
    // permission arrived earlier, after another 2 and 25. The load issues a cycle after the store
    // before it, and then hits: without a network its use waits for 18 cycles.
    let (cycles, places) = round.load(1, 80);
    assert_eq!(cycles, 18 - 2 + 25 + 3 + 30 + 2 + 5 - 1);
    assert_eq!(places.iter().map(|(_, cycles)| cycles).sum::<u64>(), 65);
}

/// Tile 0 has the master, one hop from tile 1.
#[test]
fn arrivals_and_releases_of_barriers_cross_the_network() {
    let last = |hop_delay: u32, id: u32| {
        let [before, after] = [2, 3].map(|rounds| {
            let source = in_turn(&[""], rounds).replace("movei s2, 5", &format!("movei s2, {id}"));
            let (_, waits, _) = run_program(&source, System { hop_delay, ..PAIR }, |_| false);
            [0, 1].map(|core| waits.report().stalled(8 * core, Stall::Barrier))
        });
        [0, 1].map(|core| after[core] - before[core])
    };
    // Both arrive at once, and the master accepts the second one three cycles after the first; the
    // release follows six cycles later.
    let [first, second] = last(0, 5);
    assert_eq!(first, second);
    // Core 1 leaves the previous barrier 50 cycles later, and its arrival takes another 50: core 0
    // waits for 100 cycles instead of 3. Core 1 also waits for 100, for both directions.
    assert_eq!(last(50, 5), [first - 3 + 100; 2]);
    // With the master in tile 1 the roles are reversed. From tile 4 core 0 is one hop away, and
    // core 1 two.
    assert_eq!(last(50, 1 << 5 | 5), [first - 3 + 100; 2]);
    assert_eq!(last(50, 4 << 5 | 5), [first - 3 + 200; 2]);
}

/// Sixteen cores store to shared lines, with and without skipped cycles, and with full links.
const SHARING: &str = "
        movei   s0, 0
        read_cr s1, s0
        shli    s3, s1, 2
        movei   s4, 0x3000
        add_i32 s3, s3, s4
        movei   s2, 40
loop:   load32  s5, (s3)
        add_i32 s5, s5, s2
        store32 s5, (s3)
        load32  s6, 128(s4)
        store32 s2, 192(s4)
        flush   s3
        subi    s2, s2, 1
        bnez    s2, loop
        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp .
";

#[test]
fn cores_that_share_lines_take_the_same_cycles_however_they_are_simulated() {
    let system = System {
        cores: 16,
        running: 16,
        memory_delay: 10,
        hop_delay: 1,
        ..ALONE
    };
    let run = |every_cycle: bool, link_cycles: u32| {
        let (report, waits, machine) = run_program(SHARING, system, |config| {
            config.link_cycles = link_cycles;
            every_cycle
        });
        for core in 0..16 {
            // 40 + 39 + … + 1, in a separate word of a shared line.
            assert_eq!(machine.memory().read_u32(0x3000 + 4 * core), 820);
        }
        (report, waits.report())
    };
    let narrow = run(false, 4);
    assert_eq!(narrow, run(true, 4));
    let network = narrow.0.network.expect("there are 16 cores");
    assert!(network.link_waits > 0 && network.upgrades > 0 && network.forwarded > 0 && network.invalidations > 0);
    let full: u64 = narrow.1.waits.iter().map(|wait| wait.at(Place::Link)).sum();
    assert!(full > 0);
    // With unlimited links the results are equal, and no message waits.
    let wide = run(false, 0);
    assert_eq!(wide.0.network.expect("there are 16 cores").link_waits, 0);
    assert!(wide.0.cycles < narrow.0.cycles);
    for wait in &narrow.1.waits {
        assert!(wait.places.iter().sum::<u64>() <= wait.cycles, "{wait:?}");
    }
}
