//! Misses of several cores by origin, home, hops and sharing.

use super::mesh::{END, LOAD, MEET, PROLOGUE, STORE, crowd, only, set};
use super::network::{System, machine};
use npu_mc::machine::{CACHE_LINE, MEMORY_TILE};
use npu_sim::{Halt, LineSource, Misses, MissesReport, NoSink, Report, Sharing, Timing, TimingConfig};

/// A line of tile 0, and one of tile 2.
const FIRST: u32 = 0x2_0000;
const SECOND: u32 = 0x2002_0040;

/// Steps with a barrier after each one: core, address, code.
const STEPS: [(u32, u32, &str); 6] = [
    (0, FIRST, STORE),
    (1, FIRST, LOAD),
    (1, FIRST, STORE),
    (0, FIRST, LOAD),
    (0, SECOND, LOAD),
    (1, SECOND, LOAD),
];

/// Runs the steps on two cores.
fn run() -> (MissesReport, Report) {
    let mut source = format!("{PROLOGUE}{}", crowd(2, 1));
    for (number, (core, address, code)) in STEPS.into_iter().enumerate() {
        source += &only(core, number, &format!("{}{code}", set("s3", address)));
        source += MEET;
    }
    source += END;
    let mut timing = Timing::new(TimingConfig::default());
    let mut misses = Misses::new();
    let system = System {
        cores: 2,
        running: 2,
        ..System::alone()
    };
    let halt = machine(&source, system).run_timed(&mut timing, 100_000, &mut misses);
    assert_eq!(halt, Halt::Ended);
    let mut without = Timing::new(TimingConfig::default());
    machine(&source, system).run_timed(&mut without, 100_000, &mut NoSink);
    assert_eq!(timing.report(), without.report(), "observation changes nothing");
    (misses.report(), timing.report())
}

#[test]
fn each_miss_has_its_origin_home_and_hops() {
    let (misses, report) = run();
    let network = report.network.expect("there are two cores");
    let total = misses.total();
    let data = [
        (LineSource::Memory, 2, network.second_level_misses),
        (LineSource::SecondLevel, 1, network.second_level_hits),
        (LineSource::OtherCore, 2, network.forwarded),
        (LineSource::Upgrade, 1, network.upgrades),
    ];
    for (source, expected, counted) in data {
        assert_eq!((total.from(source), counted), (expected, expected), "{source}");
    }
    assert_eq!(total.misses() - 6, total.from(LineSource::Instructions));
    // The upgrade takes the copy of core 0.
    assert_eq!((total.stores, total.invalidated), (2, 1));
    let line = |address: u32| {
        let line = misses
            .lines
            .iter()
            .find(|line| line.address() == address && !line.is_code);
        *line.expect("it missed")
    };
    let (first, second) = (line(FIRST), line(SECOND));
    assert_eq!(
        (first.home, first.counters.misses(), first.sharing()),
        (0, 4, Sharing::Writers)
    );
    assert_eq!(
        (second.home, second.counters.misses(), second.sharing()),
        (2, 2, Sharing::Readers)
    );
    // To the home, from there to memory or the other core, and back.
    assert_eq!(first.counters.hops, (6 + 6) + (1 + 1) + (1 + 1) + (1 + 1));
    assert_eq!(second.counters.hops, (2 + 4 + 6) + (1 + 1));
    let home = |tile: u32| misses.homes[tile as usize];
    assert_eq!((home(0).misses(), home(2).misses()), (4, 2));
    let code = home(MEMORY_TILE);
    assert_eq!(code.misses(), code.from(LineSource::Instructions));
    let by_core: u64 = misses.cores.iter().map(|core| core.counters.misses()).sum();
    let by_hops: u64 = misses.hops.values().map(|counters| counters.misses()).sum();
    assert_eq!((by_core, by_hops), (total.misses(), total.misses()));
    // docs/machine/several-cores.md: a load of a line that is nowhere takes 64 cycles and the hops
    // from its issue to the use of its value, 18 of them in the core.
    let cold = misses
        .lines
        .iter()
        .find(|line| line.address() == SECOND)
        .expect("it missed");
    assert!(cold.counters.cycles > 64, "{cold:?}");
}

#[test]
fn links_carry_the_flits_of_lines() {
    let (misses, report) = run();
    let flits = |from, to| {
        let link = report.links.iter().find(|link| (link.from, link.to) == (from, to));
        link.map_or(0, |link| link.flits)
    };
    // Two lines of data come from memory for core 0, along row 3 and column 0; all instruction lines
    // take that way to their core, too.
    let code = misses.total().from(LineSource::Instructions);
    assert!(flits(15, 14) >= 10 * (2 + code), "{:?}", report.links);
    // Messages to memory go along their row first.
    assert_eq!(flits(12, 13), 0);
    let page = misses.heat_map(&report.mesh, &report.links);
    assert!(page.starts_with("<svg") && page.ends_with("</svg>\n"));
    let name = |address: u32| (address / CACHE_LINE == FIRST / CACHE_LINE).then(|| "flag".to_owned());
    assert!(misses.text(&name, 3).contains("flag: 1 line, cores 0-1, homes 0"));
}
