//! Several cores with shared memory.

use super::common::Golden;
use super::mesh::END;
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_mc::machine;
use npu_sim::{Config, Halt, Machine, NoSink, Place, Report, Stall, THREADS, Timing, TimingConfig, Topology, Waits};

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1_000_000;

/// The address at which programs begin, as on the recorded runs of the hardware.
const ENTRY: u32 = 0x400;

/// A system and what runs on it.
#[derive(Clone, Copy)]
pub struct System {
    pub cores: usize,
    /// The tile of the first core.
    pub tile: u32,
    /// The number of cores that run, and of threads on each.
    pub running: usize,
    pub threads: u32,
    pub memory_delay: u32,
    pub hop_delay: u32,
    pub mesh: Topology,
}

impl System {
    /// One thread of one core.
    pub fn alone() -> System {
        System {
            cores: 1,
            tile: 0,
            running: 1,
            threads: 1,
            memory_delay: 0,
            hop_delay: machine::HOP_CYCLES,
            mesh: Topology::default(),
        }
    }
}

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

/// Loads a program and boots the threads of each running core.
pub fn machine(source: &str, system: System) -> Machine {
    let object = assemble(source, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
    let placement = Placement {
        base: ENTRY,
        ..Placement::default()
    };
    let image = link(&object, &placement).expect("it links").image;
    let mut machine = Machine::new(Config {
        cores: system.cores,
        tile: system.tile,
        mesh: system.mesh,
        ..Config::default()
    });
    machine.load(&image).expect("room");
    for core in 0..system.running {
        (0..THREADS).for_each(|thread| machine.boot(THREADS * core + thread, ENTRY));
        machine.enable(core, (1 << system.threads) - 1);
    }
    machine
}

/// Runs the threads of each running core, with the configuration that `set` changes; also returns the
/// machine.
pub fn run_program(
    source: &str,
    system: System,
    set: impl FnOnce(&mut TimingConfig) -> bool,
) -> (Report, Waits, Machine) {
    let mut machine = machine(source, system);
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

/// Returns the cycles that thread 0 waits for its last load, when all instructions are cached.
fn last_load(system: System) -> u64 {
    let waits = run(system).1.report().waits;
    let wait = waits
        .iter()
        .find(|wait| wait.thread == 0 && wait.cause == Stall::Load && wait.pc == ENTRY + 52);
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

/// The path of a line from memory, compared with the formula of docs/machine/several-cores.md for a
/// load whose line is nowhere.
#[test]
fn writes_for_which_no_thread_waits_do_not_overflow_a_queue() {
    let console = format!(
        "moveih s3, {}\nmoveil s3, {}\n",
        machine::CONSOLE_DATA >> 16,
        machine::CONSOLE_DATA & 0xffff
    );
    let line = "movei s3, 2047\nstore32 s3, 1(s3)\naddi s3, s3, 1\n".to_owned();
    let writes = [
        console + &"store32 s9, (s3)\n".repeat(40),
        line + &"flush s3\n".repeat(40),
    ];
    for (write, cores) in writes.iter().flat_map(|write| [(write, 1), (write, 2)]) {
        let system = System {
            cores,
            threads: 8,
            memory_delay: 40,
            ..System::alone()
        };
        let (report, ..) = run_program(&format!("{write}{END}"), system, |_| false);
        assert!(
            report.cycles > 40 * 8 * 2,
            "{} cycles, {cores} cores: {write}",
            report.cycles
        );
    }
}

#[test]
fn a_miss_takes_the_way_over_home_and_memory() {
    for (tile, hops) in [(0, 6), (5, 4), (14, 1)] {
        for (memory_delay, hop_delay) in [(0, 2), (20, 2), (0, 5)] {
            let system = System {
                cores: 2,
                tile,
                memory_delay,
                hop_delay,
                ..System::alone()
            };
            // To the home in tile 0, from there to memory, and back.
            let home = u64::from(tile % machine::MESH_WIDTH + tile / machine::MESH_WIDTH);
            let way = u64::from(hop_delay) * (home + 6 + hops);
            // The instruction after the load issues in any case one cycle after it.
            let each = 64 - 1 + u64::from(memory_delay) + way;
            assert_eq!(last_load(system), each, "tile {tile}, {memory_delay}, {hop_delay}");
        }
    }
}

#[test]
fn more_cores_make_nothing_cheaper() {
    let mut last = 0;
    for running in [1, 2, 4, 8, 16] {
        let cores = running.max(2);
        let idle = System {
            cores: 16,
            running,
            ..System::alone()
        };
        let system = System { cores, ..idle };
        let cycles = run(system).0.cycles;
        assert_eq!(run(idle).0.cycles, cycles, "idle cores delay no other core");
        assert!(
            cycles >= last,
            "{running} cores take {cycles} cycles, fewer take {last}"
        );
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
        ..System::alone()
    };
    let (report, _) = run(system);
    // 4 loads of each core, and 2 lines of instructions, the first of which arrives before the
    // clock starts.
    let reads = 8 * (4 + 2);
    assert_eq!(report.memory_reads, reads);
    let each = u64::from(machine::MEMORY_READ) + 100;
    let busy = each * (reads - 8);
    assert!(
        report.cycles >= busy && report.cycles < busy + 8 * each + 200,
        "{} cycles, memory is busy for {busy}",
        report.cycles
    );
    let alone = run(System {
        memory_delay: 100,
        ..System::alone()
    });
    assert!(report.cycles > 5 * alone.0.cycles);
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
        ..System::alone()
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
