//! The tags of the two caches (`docs/machine/memory.md`). Data stays in main memory: timing depends
//! only on presence.

use crate::replacement::{used, victim};
use npu_mc::machine;

/// An invalid line number: line numbers are addresses divided by the line size.
const EMPTY: u32 = u32::MAX;

/// Returns the number of the cache line that contains `address`.
#[inline]
pub(crate) const fn line_of(address: u32) -> u32 {
    address / machine::CACHE_LINE
}

const INSTRUCTION_SETS: usize = machine::ICACHE_SETS as usize;
const INSTRUCTION_WAYS: usize = machine::ICACHE_WAYS as usize;
const DATA_SETS: usize = machine::DCACHE_SETS as usize;
const DATA_WAYS: usize = machine::DCACHE_WAYS as usize;

/// The instruction cache.
pub(crate) struct InstructionCache {
    tags: [[u32; INSTRUCTION_WAYS]; INSTRUCTION_SETS],
    /// The half of the ways that the next fill of a set replaces.
    upper_half: [bool; INSTRUCTION_SETS],
    /// The way within the half: one counter for all sets, which hits and fills toggle.
    odd: bool,
    /// The last hit, which changes the replacement state one cycle later.
    hit: Option<Hit>,
    /// The number of fills.
    fills: u64,
}

/// A hit: the cycle in which it changes the replacement state, its set, and whether it was in the
/// lower half.
#[derive(Clone, Copy, Debug)]
struct Hit {
    at: u64,
    set: usize,
    lower: bool,
}

/// The combined effect of several fetch hits on the replacement state of the instruction cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits {
    /// The half of the last hit in each set, for all hits but the last one.
    before: Box<[(u16, bool)]>,
    /// Whether the number of these hits is odd.
    odd: bool,
    /// The last hit: cycles after the beginning, set and half.
    last: Option<(u64, u16, bool)>,
}

impl Hits {
    /// Combines hits in this order: cycles after the beginning, line, and whether the line was in
    /// the lower half of its set.
    pub fn of(hits: &[(u64, u32, bool)]) -> Hits {
        let set = |line: u32| (line as usize % INSTRUCTION_SETS) as u16;
        let Some((&(after, line, lower), rest)) = hits.split_last() else {
            return Hits::default();
        };
        let mut before: Vec<(u16, bool)> = Vec::new();
        for &(_, line, lower) in rest {
            match before.iter_mut().find(|(known, _)| *known == set(line)) {
                Some((_, half)) => *half = lower,
                None => before.push((set(line), lower)),
            }
        }
        Hits {
            before: before.into(),
            odd: rest.len() % 2 != 0,
            last: Some((after, set(line), lower)),
        }
    }
}

impl InstructionCache {
    pub fn new() -> InstructionCache {
        InstructionCache {
            tags: [[EMPTY; INSTRUCTION_WAYS]; INSTRUCTION_SETS],
            upper_half: [false; INSTRUCTION_SETS],
            odd: false,
            hit: None,
            fills: 0,
        }
    }

    /// Returns the number of fills: between two fills no line changes its position.
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// Returns the half of its set that contains a line, if the cache contains it: `true` for the
    /// lower half.
    pub fn half(&self, line: u32) -> Option<bool> {
        let way = self.tags[line as usize % INSTRUCTION_SETS]
            .iter()
            .position(|&tag| tag == line)?;
        Some(way < INSTRUCTION_WAYS / 2)
    }

    /// Applies the effect of fetch hits, from cycle `from` on.
    #[inline]
    pub fn fetch_all(&mut self, hits: &Hits, from: u64) {
        let Some((after, set, lower)) = hits.last else { return };
        self.settle(from + after);
        for &(set, lower) in &hits.before {
            self.upper_half[usize::from(set)] = lower;
        }
        self.odd ^= hits.odd;
        self.hit = Some(Hit {
            at: from + after + 1,
            set: set.into(),
            lower,
        });
    }

    /// Returns whether the cache contains a line.
    pub fn holds(&self, line: u32) -> bool {
        self.tags[line as usize % INSTRUCTION_SETS].contains(&line)
    }

    /// Looks up a line for a fetch in cycle `now`, which updates the replacement state; returns
    /// whether it hits.
    #[inline]
    pub fn fetch(&mut self, line: u32, now: u64) -> bool {
        let set = line as usize % INSTRUCTION_SETS;
        let found = self.tags[set].iter().position(|&tag| tag == line);
        if let Some(way) = found {
            self.settle(now);
            let lower = way < INSTRUCTION_WAYS / 2;
            self.hit = Some(Hit {
                at: now + 1,
                set,
                lower,
            });
        }
        found.is_some()
    }

    /// Inserts a line in cycle `now`. If a hit takes effect in the same cycle, only the hit updates
    /// the replacement state.
    pub fn fill(&mut self, line: u32, now: u64) {
        self.fills += 1;
        let hit = self.hit.take_if(|hit| hit.at == now);
        self.settle(now);
        let set = line as usize % INSTRUCTION_SETS;
        let half = if self.upper_half[set] { INSTRUCTION_WAYS / 2 } else { 0 };
        self.tags[set][half + usize::from(self.odd)] = line;
        match hit {
            Some(hit) => self.turn(hit.set, hit.lower),
            None => self.turn(set, !self.upper_half[set]),
        }
    }

    /// Selects the half of a set for the next fill, and toggles the way within each half.
    fn turn(&mut self, set: usize, upper_half: bool) {
        self.upper_half[set] = upper_half;
        self.odd = !self.odd;
    }

    /// Applies a hit whose cycle has come.
    fn settle(&mut self, now: u64) {
        if let Some(hit) = self.hit
            && hit.at <= now
        {
            self.turn(hit.set, hit.lower);
            self.hit = None;
        }
    }
}

/// The data cache.
pub(crate) struct DataCache {
    tags: [[u32; DATA_WAYS]; DATA_SETS],
    /// The way that the next fill of a set replaces.
    victim: [u8; DATA_SETS],
    /// The way in which the controller last found a line, or from which it last evicted one.
    found: u8,
    /// Additional state in a system of several cores.
    coherence: Option<Box<Coherence>>,
}

/// A line that a fill has evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// The way in which it was.
    pub way: u8,
    pub line: u32,
    /// Whether the core could write it.
    pub owned: bool,
}

/// The state of a data cache in a system of several cores (`docs/machine/several-cores.md`): the
/// states are those of MSI, and victims are chosen by pseudo-LRU, even if a way is empty.
#[derive(Default)]
struct Coherence {
    /// The ways with lines that the core may read but not write, one bit each.
    read_only: [u8; DATA_SETS],
    /// The trees of pseudo-LRU.
    trees: [u8; DATA_SETS],
}

impl DataCache {
    pub fn new() -> DataCache {
        DataCache {
            tags: [[EMPTY; DATA_WAYS]; DATA_SETS],
            victim: [0; DATA_SETS],
            found: 0,
            coherence: None,
        }
    }

    /// Makes the cache one of several that a directory keeps coherent.
    pub fn share(&mut self) {
        self.coherence = Some(Box::default());
    }

    /// Returns whether the lookup of a load or store succeeds. With several cores, an operation
    /// that has `missed` before succeeds even if another core has taken the line since: otherwise
    /// cores that store to one line could take it from each other forever.
    #[inline]
    pub fn serves(&mut self, line: u32, store: bool, missed: bool) -> bool {
        if self.coherence.is_none() {
            return self.holds(line);
        }
        self.serves_coherently(line, store, missed)
    }

    fn serves_coherently(&mut self, line: u32, store: bool, missed: bool) -> bool {
        let Some((set, way)) = self.place(line) else {
            return missed;
        };
        let Some(coherence) = &mut self.coherence else {
            return true;
        };
        // A store that has to wait for write permission is no use.
        let serves = missed || !store || coherence.read_only[set] >> way & 1 == 0;
        if serves {
            coherence.trees[set] = used(coherence.trees[set], DATA_WAYS, way);
        }
        serves
    }

    fn place(&self, line: u32) -> Option<(usize, usize)> {
        let set = line as usize % DATA_SETS;
        let way = self.tags[set].iter().position(|&tag| tag == line)?;
        Some((set, way))
    }

    /// Returns whether the cache contains the line without write permission.
    pub fn only_reads(&self, line: u32) -> bool {
        let read_only = |coherence: &Coherence| {
            self.place(line)
                .is_some_and(|(set, way)| coherence.read_only[set] >> way & 1 != 0)
        };
        self.coherence.as_deref().is_some_and(read_only)
    }

    /// Loses a line to another core, or only its write permission if it `shares` the line.
    pub fn lose(&mut self, line: u32, shares: bool) {
        let Some((set, way)) = self.place(line) else { return };
        if !shares {
            self.tags[set][way] = EMPTY;
        }
        if let Some(coherence) = &mut self.coherence {
            coherence.read_only[set] |= 1 << way;
        }
    }

    #[inline]
    pub fn holds(&self, line: u32) -> bool {
        self.tags[line as usize % DATA_SETS].contains(&line)
    }

    /// Inserts a line, with write permission if `owned`; returns an evicted line. With one core, an
    /// eviction costs a write to memory, whether the line is dirty or not.
    pub fn fill(&mut self, line: u32, owned: bool) -> Option<Evicted> {
        let set = line as usize % DATA_SETS;
        if self.coherence.is_some() {
            // The fill may be a write permission for a line that the cache contains.
            let there = self.place(line).map(|(_, way)| way);
            let way = there.unwrap_or(self.next_victim(set));
            let mut was_owned = true;
            if let Some(coherence) = &mut self.coherence {
                let bit = 1 << way;
                was_owned = coherence.read_only[set] & bit == 0;
                coherence.read_only[set] = coherence.read_only[set] & !bit | if owned { 0 } else { bit };
                coherence.trees[set] = used(coherence.trees[set], DATA_WAYS, way);
            }
            let old = std::mem::replace(&mut self.tags[set][way], line);
            return (old != EMPTY && old != line).then_some(Evicted {
                way: way as u8,
                line: old,
                owned: was_owned,
            });
        }
        let way = self.victim[set];
        self.victim[set] = (way + 1) % DATA_WAYS as u8;
        let old = std::mem::replace(&mut self.tags[set][usize::from(way)], line);
        (old != EMPTY).then_some(Evicted {
            way,
            line: old,
            owned: true,
        })
    }

    /// Returns the way that the next fill of a set replaces.
    fn next_victim(&self, set: usize) -> usize {
        match &self.coherence {
            Some(coherence) => victim(coherence.trees[set], DATA_WAYS),
            None => self.victim[set].into(),
        }
    }

    /// Looks up a line for the controller; returns whether the cache contains it.
    pub fn find(&mut self, line: u32) -> bool {
        let way = self.tags[line as usize % DATA_SETS].iter().position(|&tag| tag == line);
        if let Some(way) = way {
            self.found = way as u8;
        }
        way.is_some()
    }

    /// Records that the controller finds a line whose fill is pending.
    pub fn expect(&mut self, line: u32) {
        self.found = self.next_victim(line as usize % DATA_SETS) as u8;
    }

    /// Records that the controller writes a line that was evicted from `way`.
    pub fn leaves(&mut self, way: u8) {
        self.found = way;
    }

    /// Returns the way that the controller empties for a `dcache_inv` of a line that is present or
    /// `comes`. It is the way of the previous transaction, whatever its contents. This was
    /// measured: `invalidate_way` in `tests/sim/facts/` has a program. If the controller `waited`
    /// for memory, it has found the right way by then.
    pub fn way_to_empty(&mut self, line: u32, comes: bool, waited: bool) -> u8 {
        let before = self.found;
        if comes {
            self.expect(line);
        } else {
            self.find(line);
        }
        if waited { self.found } else { before }
    }

    /// Empties a way in the set of a line.
    pub fn empty(&mut self, line: u32, way: u8) {
        self.tags[line as usize % DATA_SETS][usize::from(way)] = EMPTY;
    }

    /// Returns whether `line` is in way `way` of the set of `other`.
    pub fn is_in(&self, line: u32, other: u32, way: u8) -> bool {
        let set = line as usize % DATA_SETS;
        set == other as usize % DATA_SETS && self.tags[set][usize::from(way)] == line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_line_of_a_set_replaces_the_first() {
        let mut cache = DataCache::new();
        let line = |k: u32| 7 + k * machine::DCACHE_SETS;
        for k in 0..machine::DCACHE_WAYS {
            assert_eq!(cache.fill(line(k), true), None);
        }
        let evicted = Evicted {
            way: 0,
            line: line(0),
            owned: true,
        };
        assert_eq!(cache.fill(line(machine::DCACHE_WAYS), true), Some(evicted));
        assert!(!cache.holds(line(0)));
        assert!(cache.holds(line(1)));
    }

    #[test]
    fn an_invalidation_empties_the_way_that_was_found_before() {
        let mut cache = DataCache::new();
        let line = |k: u32| k * machine::DCACHE_SETS;
        (0..3).for_each(|k| assert_eq!(cache.fill(line(k), true), None));
        let way = cache.way_to_empty(line(2), false, false);
        cache.empty(line(2), way);
        assert!(!cache.holds(line(0)) && cache.holds(line(1)) && cache.holds(line(2)));
        let way = cache.way_to_empty(line(1), false, false);
        cache.empty(line(1), way);
        assert!(cache.holds(line(1)) && !cache.holds(line(2)));
    }

    #[test]
    fn several_cores_ask_before_they_store_and_keep_what_they_use() {
        let mut cache = DataCache::new();
        cache.share();
        let line = |k: u32| 7 + k * machine::DCACHE_SETS;
        for k in 0..machine::DCACHE_WAYS {
            assert_eq!(cache.fill(line(k), false), None);
        }
        assert!(cache.serves(line(0), false, false) && !cache.serves(line(0), true, false));
        assert!(cache.only_reads(line(0)));
        // A fill that only adds write permission evicts no line.
        assert_eq!(cache.fill(line(0), true), None);
        assert!(cache.serves(line(0), true, false) && !cache.only_reads(line(0)));
        cache.lose(line(0), true);
        assert!(cache.serves(line(0), false, false) && !cache.serves(line(0), true, false));
        // The lines were inserted into ways 0, 2, 1 and 3. Way 0 was used last, and way 2 is the
        // older one in the other half.
        let evicted = Evicted {
            way: 2,
            line: line(1),
            owned: false,
        };
        assert_eq!(cache.fill(line(4), true), Some(evicted));
        cache.lose(line(4), false);
        assert!(!cache.serves(line(4), false, false));
        assert!(cache.serves(line(4), true, true), "the line had been inserted");
        cache.lose(line(9), false);
    }

    #[test]
    fn a_fill_takes_the_half_that_was_not_hit_last() {
        let mut cache = InstructionCache::new();
        let line = |k: u32| k * machine::ICACHE_SETS;
        let there = |cache: &InstructionCache| (0..6).map(|k| cache.tags[0].contains(&line(k))).collect::<Vec<_>>();
        for k in 0..4 {
            cache.fill(line(k), k.into());
        }
        // Ways 0, 3, 0, 3: the counter toggles with the half.
        assert_eq!(there(&cache), [false, false, true, true, false, false]);
        // A hit updates the state one cycle later, and a fill in that cycle does not.
        assert!(cache.fetch(line(2), 10));
        cache.fill(line(4), 11);
        assert_eq!(there(&cache), [false, false, false, true, true, false]);
        cache.fill(line(5), 12);
        assert_eq!(there(&cache), [false, false, false, false, true, true]);
    }

    #[test]
    fn instruction_lines_stay_until_a_set_is_full() {
        let mut cache = InstructionCache::new();
        cache.fill(3, 0);
        assert!(cache.fetch(3, 1));
        assert!(!cache.fetch(3 + machine::ICACHE_SETS, 2));
        cache.fill(3 + machine::ICACHE_SETS, 3);
        assert!(cache.fetch(3 + machine::ICACHE_SETS, 2));
    }
}
