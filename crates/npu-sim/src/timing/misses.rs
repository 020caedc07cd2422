//! Misses of several cores by home, core, hops, sharing, variable and line.

use super::sink::{LINE_SOURCES, LineRequest, LineSource, Sink};
use crate::topology::CORE_LIMIT;
use npu_mc::machine::CACHE_LINE;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A set of cores, one bit per core.
pub type CoreSet = u16;

const _: () = assert!(CORE_LIMIT <= CoreSet::BITS as usize);

/// The maximum number of variables in the name of a line.
const NAMES: usize = 3;

/// Counters of the requests of cores for cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissCounters {
    /// The requests by the origin of the line, in the order of [`LineSource::ALL`].
    pub sources: [u64; LINE_SOURCES],
    /// The requests for stores.
    pub stores: u64,
    /// The sum of their hops.
    pub hops: u64,
    /// The sum of their cycles. Requests overlap, so the sum may exceed the cycles of the run.
    pub cycles: u64,
    /// The copies of other cores that they invalidated.
    pub invalidated: u64,
}

impl MissCounters {
    /// Returns the number of requests.
    pub fn misses(&self) -> u64 {
        self.sources.iter().sum()
    }

    /// Returns the number of requests whose lines have this origin.
    pub fn from(&self, source: LineSource) -> u64 {
        self.sources[source as usize]
    }

    /// Returns the mean hops of a request, or 0 without requests.
    pub fn mean_hops(&self) -> f64 {
        self.mean(self.hops)
    }

    /// Returns the mean cycles of a request, or 0 without requests.
    pub fn mean_cycles(&self) -> f64 {
        self.mean(self.cycles)
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.misses().max(1) as f64
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &MissCounters) {
        self.sources
            .iter_mut()
            .zip(other.sources)
            .for_each(|(sum, count)| *sum += count);
        self.stores += other.stores;
        self.hops += other.hops;
        self.cycles += other.cycles;
        self.invalidated += other.invalidated;
    }

    fn count(&mut self, request: &LineRequest<'_>) {
        self.sources[request.source as usize] += 1;
        self.stores += u64::from(request.store);
        self.hops += u64::from(request.hops);
        self.cycles += request.cycles();
        self.invalidated += u64::from(request.invalidated);
    }
}

/// How cores share a line, by their misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// One core missed it.
    OneCore,
    /// Several cores read it, and none missed it for a store.
    Readers,
    /// One core missed it for a store, and others read it.
    OneWriter,
    /// Several cores missed it for stores.
    Writers,
}

impl Sharing {
    /// All kinds, in ascending order of traffic.
    pub const ALL: [Sharing; 4] = [Sharing::OneCore, Sharing::Readers, Sharing::OneWriter, Sharing::Writers];

    /// Returns a short name.
    pub const fn name(self) -> &'static str {
        match self {
            Sharing::OneCore => "one core",
            Sharing::Readers => "only read",
            Sharing::OneWriter => "one writer",
            Sharing::Writers => "several writers",
        }
    }

    fn of(readers: CoreSet, writers: CoreSet) -> Sharing {
        match ((readers | writers).count_ones(), writers.count_ones()) {
            (0 | 1, _) => Sharing::OneCore,
            (_, 0) => Sharing::Readers,
            (_, 1) => Sharing::OneWriter,
            _ => Sharing::Writers,
        }
    }
}

/// The misses of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineMisses {
    /// The number of the line: its address divided by the line size.
    pub line: u32,
    /// Whether these are fetches of instructions. Loads and stores of the line are separate.
    pub is_code: bool,
    /// The tile that served the misses.
    pub home: u32,
    /// The cores that missed the line for a load or a fetch.
    pub readers: CoreSet,
    /// The cores that missed the line for a store.
    pub writers: CoreSet,
    /// The counters.
    pub counters: MissCounters,
}

impl LineMisses {
    /// Returns the address of the line.
    pub fn address(&self) -> u32 {
        self.line.wrapping_mul(CACHE_LINE)
    }

    /// Returns the names of the variables in the line. `name` returns the name of the variable at an
    /// address.
    pub fn variables(&self, name: &dyn Fn(u32) -> Option<String>) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        for offset in (0..CACHE_LINE).step_by(size_of::<u32>()) {
            match name(self.address().wrapping_add(offset)) {
                Some(name) if names.contains(&name) => {}
                Some(name) => names.push(name),
                None => {}
            }
        }
        let more = names.len() > NAMES;
        names.truncate(NAMES);
        let ending = if more { ", ..." } else { "" };
        (!names.is_empty()).then(|| names.join(", ") + ending)
    }

    /// Returns how the cores share the line.
    pub fn sharing(&self) -> Sharing {
        Sharing::of(self.readers, self.writers)
    }
}

/// The misses of all lines with the same variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableMisses {
    /// The name of the variable, or of all variables that share its lines; `None` for lines without
    /// a name.
    pub name: Option<String>,
    /// The number of lines that missed.
    pub lines: u64,
    /// The tiles that served the misses, one bit per tile.
    pub homes: u16,
    /// The cores that missed a line of it for a load or a fetch.
    pub readers: CoreSet,
    /// The cores that missed a line of it for a store.
    pub writers: CoreSet,
    /// The counters.
    pub counters: MissCounters,
}

/// The misses of the lines that a core requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreMisses {
    /// The number of the core.
    pub core: usize,
    /// Its tile.
    pub tile: u32,
    /// The counters.
    pub counters: MissCounters,
}

/// The misses of several cores. Requests that had not reached their home or memory at the end of
/// the run are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissesReport {
    /// The misses of each line, in descending order of cycles.
    pub lines: Vec<LineMisses>,
    /// The requests that each tile served, by tile. The memory tile serves instruction lines.
    pub homes: [MissCounters; CORE_LIMIT],
    /// The requests of the cores with misses, by number.
    pub cores: Vec<CoreMisses>,
    /// The requests by their hops.
    pub hops: BTreeMap<u32, MissCounters>,
}

impl MissesReport {
    /// Returns the sum of all counters.
    pub fn total(&self) -> MissCounters {
        let mut total = MissCounters::default();
        self.homes.iter().for_each(|home| total.add(home));
        total
    }

    /// Returns the requests for data lines by the sharing of their lines. Instruction lines are not
    /// included.
    pub fn by_sharing(&self) -> BTreeMap<Sharing, MissCounters> {
        let mut sums: BTreeMap<Sharing, MissCounters> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| !line.is_code) {
            sums.entry(line.sharing()).or_default().add(&line.counters);
        }
        sums
    }

    /// Returns the requests by the variables of their lines, in descending order of cycles. `name`
    /// returns the name of the variable at an address.
    pub fn by_variable(&self, name: &dyn Fn(u32) -> Option<String>) -> Vec<VariableMisses> {
        let mut sums: BTreeMap<Option<String>, VariableMisses> = BTreeMap::new();
        for line in &self.lines {
            let name = line.variables(name);
            let sum = sums.entry(name.clone()).or_insert_with(|| VariableMisses {
                name,
                lines: 0,
                homes: 0,
                readers: 0,
                writers: 0,
                counters: MissCounters::default(),
            });
            sum.lines += 1;
            sum.homes |= 1 << (line.home as usize % CORE_LIMIT);
            sum.readers |= line.readers;
            sum.writers |= line.writers;
            sum.counters.add(&line.counters);
        }
        let mut sums: Vec<VariableMisses> = sums.into_values().collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.counters.cycles));
        sums
    }
}

/// A receiver of events that counts the misses of several cores.
#[derive(Debug, Default)]
pub struct Misses {
    lines: FxHashMap<(u32, bool), LineMisses>,
    homes: [MissCounters; CORE_LIMIT],
    cores: BTreeMap<usize, (u32, MissCounters)>,
    hops: BTreeMap<u32, MissCounters>,
}

impl Misses {
    /// Creates a receiver without misses.
    pub fn new() -> Misses {
        Misses::default()
    }

    /// Returns the misses up to now.
    pub fn report(&self) -> MissesReport {
        let mut lines: Vec<LineMisses> = self.lines.values().copied().collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.counters.cycles), line.line, line.is_code));
        let cores = self
            .cores
            .iter()
            .map(|(&core, &(tile, counters))| CoreMisses { core, tile, counters });
        MissesReport {
            lines,
            homes: self.homes,
            cores: cores.collect(),
            hops: self.hops.clone(),
        }
    }
}

impl Sink for Misses {
    fn line_requested(&mut self, request: &LineRequest<'_>) {
        let is_code = request.is_code();
        let line = self.lines.entry((request.line, is_code)).or_insert(LineMisses {
            line: request.line,
            is_code,
            home: request.home,
            readers: 0,
            writers: 0,
            counters: MissCounters::default(),
        });
        let core = 1 << (request.core % CORE_LIMIT);
        if request.store {
            line.writers |= core;
        } else {
            line.readers |= core;
        }
        line.counters.count(request);
        self.homes[request.home as usize % CORE_LIMIT].count(request);
        let of_core = self.cores.entry(request.core).or_default();
        of_core.0 = request.tile;
        of_core.1.count(request);
        self.hops.entry(request.hops).or_default().count(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::trip::{Leg, Place};

    fn request(core: usize, line: u32, source: LineSource, store: bool, legs: &[Leg]) -> LineRequest<'_> {
        LineRequest {
            core,
            tile: core as u32,
            line,
            home: line >> 22,
            source,
            store,
            hops: 2 * core as u32,
            invalidated: u32::from(source == LineSource::OtherCore),
            legs,
        }
    }

    #[test]
    fn misses_are_counted_by_every_property() {
        let leg = |from, to| Leg {
            place: Place::Network,
            from,
            to,
        };
        let legs = [leg(10, 20), leg(30, 70)];
        let mut misses = Misses::new();
        misses.line_requested(&request(0, 5, LineSource::Memory, true, &legs));
        misses.line_requested(&request(1, 5, LineSource::OtherCore, true, &legs));
        misses.line_requested(&request(1, 6, LineSource::Memory, false, &legs[..1]));
        misses.line_requested(&request(2, 6, LineSource::SecondLevel, false, &[]));
        misses.line_requested(&request(2, 3 << 22, LineSource::Instructions, false, &legs));
        let report = misses.report();
        let total = report.total();
        assert_eq!((total.misses(), total.stores, total.invalidated), (5, 2, 1));
        assert_eq!((total.cycles, total.hops), (60 + 60 + 10 + 60, 2 + 2 + 4 + 4));
        assert_eq!(report.homes[0].misses(), 4);
        assert_eq!(report.homes[3].from(LineSource::Instructions), 1);
        assert_eq!(
            report.lines.iter().map(|line| line.line).collect::<Vec<_>>(),
            [5, 3 << 22, 6]
        );
        let sharing = report.by_sharing();
        assert_eq!(sharing[&Sharing::Writers].misses(), 2);
        assert_eq!(sharing[&Sharing::Readers].misses(), 2);
        let cores: Vec<(usize, u64)> = report
            .cores
            .iter()
            .map(|core| (core.core, core.counters.misses()))
            .collect();
        assert_eq!(cores, [(0, 1), (1, 2), (2, 2)]);
        assert_eq!(report.hops[&4].misses(), 2);
        // The first line belongs to two variables.
        let name = |address: u32| match address / 4 {
            80 => Some("a".to_owned()),
            81..96 => Some("b".to_owned()),
            96..112 => Some("c".to_owned()),
            _ => None,
        };
        let variables = report.by_variable(&name);
        let names: Vec<Option<&str>> = variables.iter().map(|variable| variable.name.as_deref()).collect();
        assert_eq!(names, [Some("a, b"), None, Some("c")]);
        assert_eq!(
            (variables[0].writers, variables[2].readers, variables[1].homes),
            (3, 6, 8)
        );
    }

    #[test]
    fn sharing_follows_readers_and_writers() {
        for (readers, writers, sharing) in [
            (1, 0, Sharing::OneCore),
            (2, 2, Sharing::OneCore),
            (3, 0, Sharing::Readers),
            (3, 1, Sharing::OneWriter),
            (0, 3, Sharing::Writers),
        ] {
            assert_eq!(Sharing::of(readers, writers), sharing);
        }
        assert!(Sharing::ALL.is_sorted());
    }
}
