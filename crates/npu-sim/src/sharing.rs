//! Detection of faults that involve several cores (`docs/machine/several-cores.md`).
//!
//! A [`Sharing`] follows every access of every core to main memory, in the order of the run. It
//! keeps the state of each line in each core (absent, shared, modified), the lines in each set of
//! the data caches, and which accesses barriers order.
//!
//! The faults are races of the hardware, so the order of one run proves little. The rules are
//! therefore conservative:
//!
//! - Two accesses of different cores are *concurrent* unless a barrier is between them, whatever
//!   their order in this run. Flags and locks in coherent memory order nothing. A load of a line in
//!   a non-coherent region is an acquire: accesses that precede another core's store to the line
//!   also precede the accesses after the load. So the lock of `atomics=machine` orders the accesses
//!   under it.
//! - A line counts as evicted if pseudo-LRU evicts it, or if the core has accessed three other lines
//!   of its set since its last access to the line and a line of the set is filled.
//! - An eviction of a coherent line is on its way until a barrier, until the core accesses the line
//!   again as a coherent one, or until a later store of the thread that certainly misses at the same
//!   home.
//!
//! Invariant: a line is modified in at most one core, and is then shared by no other core.

mod clocks;
mod sets;

use crate::findings::Hazard;
use crate::topology::Topology;
use clocks::{Clocks, Stamp};
use npu_mc::machine;
use rustc_hash::FxHashMap;
use sets::Sets;

/// A fault that an access can meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub hazard: Hazard,
    pub detail: String,
}

/// The kinds of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Load,
    Store,
    Flush,
    Invalidate,
}

/// An access of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    pub address: u32,
    pub kind: Use,
    /// Whether the directory keeps the line coherent.
    pub coherent: bool,
}

/// The state of a line in a core, in the order of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Absent,
    /// Readable. In a non-coherent region: unmodified.
    Shared,
    Modified,
}

/// The times of the last accesses of one kind by the threads of a core; 0 is never.
type Times = [u32; THREADS];

/// A store to a word after an earlier store to the same word has invalidated copies.
#[derive(Clone, Copy, Debug)]
struct Upgrade {
    now: Stamp,
    /// The smallest positive number of copies that an earlier store invalidated.
    before: usize,
    /// The other cores that may share the line, one bit each.
    readers: u16,
}

impl Upgrade {
    /// Returns whether an acknowledgment can come too late: two or more other cores share the line,
    /// and the store invalidates more copies than an earlier one. The core can have a copy as well.
    ///
    /// This needs more than three cores in total (`cores`), because cores without a copy delay the
    /// line. On three cores, 224 such stores had no fault on the hardware, with up to eight threads
    /// on each core.
    fn is_dangerous(&self, cores: usize) -> bool {
        let readers = self.readers.count_ones() as usize;
        readers >= 2 && cores > 3 && readers + 1 > self.before
    }
}

const _: () = assert!(
    machine::BARRIER_IDS / machine::BARRIER_COUNTERS <= u16::BITS,
    "a bit for each tile"
);

/// An eviction on its way to the home of the line.
#[derive(Clone, Copy, Debug)]
struct Departure {
    now: Stamp,
    /// The number of accesses of all cores before it.
    order: u64,
}

/// The state and history of a line in one core.
#[derive(Clone, Debug, Default)]
struct Holder {
    core: usize,
    state: State,
    /// Whether the core has the line from a non-coherent region, so that the directory does not know it.
    is_apart: bool,
    loads: Times,
    stores: Times,
    /// Whether the core may share the line in another order of concurrent accesses or evictions,
    /// although it counts as modified or absent.
    may_share: bool,
    /// Whether the core may not have the line in another order.
    may_lack: bool,
    /// Whether the core may have the line modified in another order.
    may_own: bool,
    /// The last store of another core, if it took the line.
    lost: Option<Stamp>,
    /// The last eviction or `dcache_inv` of the modified line.
    left: Option<Stamp>,
    /// The last eviction or `dcache_inv` of the coherent line, modified or not.
    gone: Option<Stamp>,
    /// The last eviction of the coherent line that the core has not seen acknowledged.
    departure: Option<Departure>,
    /// Whether an eviction removed the line, so that the core may have it in another order.
    may_linger: bool,
    /// The last flush by the core at a time when it may not have had the line. Also the core that
    /// had the line modified at that time, if no other core shared it.
    flushed: Option<(Stamp, Option<usize>)>,
    /// For each word: the smallest positive number of copies that a store by the core invalidated,
    /// including its own copy.
    invalidated: Vec<(u32, usize)>,
    /// The last store, if an earlier one to its word is in [`Holder::invalidated`].
    upgrade: Option<Upgrade>,
    /// In a non-coherent region: whether the last store has not been sent to memory.
    unsent: bool,
    /// In a non-coherent region: the write to memory with the last store.
    sent: Option<Stamp>,
}

/// The state and history of a line in all cores.
#[derive(Clone, Debug, Default)]
struct Line {
    holders: Vec<Holder>,
}

impl Line {
    /// Returns the state and history of the line in `core`.
    fn of(&mut self, core: usize) -> &mut Holder {
        let place = match self.holders.iter().position(|copy| copy.core == core) {
            Some(place) => place,
            None => {
                self.holders.push(Holder {
                    core,
                    ..Holder::default()
                });
                self.holders.len() - 1
            }
        };
        &mut self.holders[place]
    }

    fn others(&self, core: usize) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |copy| copy.core != core)
    }

    fn others_mut(&mut self, core: usize) -> impl Iterator<Item = &mut Holder> {
        self.holders.iter_mut().filter(move |copy| copy.core != core)
    }
}

/// The most recent accesses to a set by its core, whose repetition changes nothing.
#[derive(Clone, Copy, Debug)]
struct Recent {
    line: u32,
    thread: usize,
    time: u32,
    /// Whether one was a load.
    loads: bool,
    /// The word of the last store. The second store to a word is not a repetition of the first one:
    /// see [`Holder::upgrade`].
    stores: Option<u32>,
    /// Whether the last two stores were to that word.
    again: bool,
}

impl Recent {
    const NONE: Recent = Recent {
        line: u32::MAX,
        thread: usize::MAX,
        time: 0,
        loads: false,
        stores: None,
        again: false,
    };
}

/// The hardware threads of a core.
const THREADS: usize = machine::THREADS_PER_CORE as usize;

/// The number of sets of a data cache.
const SETS: usize = machine::DCACHE_SETS as usize;

/// The accesses of all cores.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    clocks: Clocks,
    sets: Vec<Sets>,
    recent: Vec<[Recent; SETS]>,
    lines: FxHashMap<u32, Line>,
    /// The lines that a core has loaded in a non-coherent region, and the accesses before the stores
    /// to them.
    released: FxHashMap<u32, Vec<u32>>,
    /// The number of accesses.
    order: u64,
    /// For each thread and home tile: the order of the last store that missed. It completed after
    /// all earlier evictions of the core to this home.
    fences: Vec<Vec<u64>>,
    topology: Topology,
}

/// Returns the address of a line.
fn address_of(line: u32) -> u32 {
    line * machine::CACHE_LINE
}

impl Sharing {
    /// Creates the state for empty caches.
    pub fn new(cores: usize, topology: Topology) -> Sharing {
        Sharing {
            clocks: Clocks::new(cores * THREADS),
            sets: vec![Sets::new(); cores],
            recent: vec![[Recent::NONE; SETS]; cores],
            lines: FxHashMap::default(),
            released: FxHashMap::default(),
            order: 0,
            fences: vec![vec![0; topology.tiles() as usize]; cores * THREADS],
            topology,
        }
    }

    /// Empties the caches.
    pub fn clear(&mut self) {
        *self = Sharing::new(self.sets.len(), self.topology);
    }

    /// Returns the home tile of a line.
    fn home(&self, line: u32) -> usize {
        self.topology.home(address_of(line)) as usize
    }

    /// Records that the host starts a thread after everything that has happened.
    pub fn boot(&mut self, thread: usize) {
        self.clocks.follow_all(thread);
    }

    /// Records that a barrier opened for these threads.
    pub fn meet(&mut self, threads: &[usize]) {
        self.clocks.meet(threads);
    }

    /// Returns whether an access repeats the last one to its set, so that it changes nothing and
    /// meets no fault.
    #[inline]
    pub fn repeats(&self, thread: usize, address: u32, store: bool) -> bool {
        let line = address / machine::CACHE_LINE;
        let recent = &self.recent[thread / THREADS][line as usize % SETS];
        let done = if store {
            recent.again && recent.stores == Some(address & !3)
        } else {
            recent.loads
        };
        done && recent.line == line && recent.thread == thread && recent.time == self.clocks.time(thread)
    }

    /// Records an access; returns the first fault that it can meet.
    pub fn touch(&mut self, touch: Touch) -> Option<Fault> {
        self.order += 1;
        let line = touch.address / machine::CACHE_LINE;
        let core = touch.thread / THREADS;
        if touch.kind == Use::Load && !touch.coherent {
            let released = self.released.entry(line).or_default();
            self.clocks.acquire(touch.thread, released);
        }
        let now = self.clocks.stamp(touch.thread);
        // Simulated memory may have a value before the hardware's has it, so the store releases.
        if touch.kind != Use::Load
            && let Some(released) = self.released.get_mut(&line)
        {
            let seen = self.clocks.release(touch.thread);
            released.resize(seen.len(), 0);
            clocks::take_later(released, &seen);
        }
        let replaces = (touch.kind == Use::Store && !touch.coherent && self.may_replace(core, line))
            .then(|| non_coherent_store_miss(line));
        let evicts = match touch.kind {
            Use::Load | Use::Store => self.fill(core, line, touch, now),
            Use::Flush | Use::Invalidate => None,
        };
        let meets = match (touch.kind, touch.coherent) {
            (Use::Load, true) => self.load(core, line, now),
            (Use::Store, true) => self.store(core, touch.address & !3, now),
            (Use::Flush, true) => self.flush(core, line, now),
            (Use::Invalidate, true) => self.invalidate(core, line, now),
            (kind, false) => self.non_coherent(core, line, kind, now),
        };
        replaces.or(evicts).or(meets)
    }

    /// Returns whether an access may miss and replace another line.
    fn may_replace(&mut self, core: usize, line: u32) -> bool {
        let copy = self.lines.entry(line).or_default().of(core);
        (copy.state == State::Absent || copy.may_lack) && self.sets[core].has_others(line)
    }

    /// Forgets the recent accesses to a line, so that a repetition of them is checked again.
    fn forget(&mut self, line: u32) {
        for recent in &mut self.recent {
            let recent = &mut recent[line as usize % SETS];
            if recent.line == line {
                *recent = Recent::NONE;
            }
        }
    }

    /// Brings a line into the data cache of a core, or uses it there.
    fn fill(&mut self, core: usize, line: u32, touch: Touch, now: Stamp) -> Option<Fault> {
        let state = self.lines.entry(line).or_default().of(core).state;
        let store = touch.kind == Use::Store;
        let evicted = match state {
            State::Modified => self.sets[core].hit(line),
            // A store that gets write permission gets the line again, in another way.
            State::Shared if store && touch.coherent => self.sets[core].fill(line),
            State::Shared => self.sets[core].hit(line),
            State::Absent => self.sets[core].fill(line),
        };
        let mut fault = None;
        for (other, leaves) in evicted {
            let found = self.leave(core, other, leaves, now);
            fault = fault.or(found);
        }
        let before = self.recent[core][line as usize % SETS];
        let goes_on = before.line == line && before.thread == touch.thread && before.time == now.time;
        self.forget(line);
        let word = touch.address & !3;
        if touch.coherent {
            self.recent[core][line as usize % SETS] = Recent {
                line,
                thread: touch.thread,
                time: now.time,
                loads: !store || goes_on && before.loads,
                stores: if store {
                    Some(word)
                } else {
                    before.stores.filter(|_| goes_on)
                },
                again: goes_on
                    && if store {
                        before.stores == Some(word)
                    } else {
                        before.again
                    },
            };
        }
        fault
    }

    /// Records that a line may leave the data cache of a core, or leaves it in the order of the run.
    fn leave(&mut self, core: usize, line: u32, leaves: bool, now: Stamp) -> Option<Fault> {
        self.forget(line);
        let entry = self.lines.get_mut(&line)?;
        let copy = entry.of(core);
        let lost = copy.lost.map(|lost| self.clocks.ordered(lost, now));
        // In another order it may leave only now.
        let late = |earlier: Option<Stamp>| copy.state == State::Absent && earlier.is_some() && lost != Some(true);
        let has_modified = copy.state == State::Modified || copy.may_own || late(copy.left);
        let has = has_modified
            || copy.state == State::Shared
            || may_share(&self.clocks, copy, now)
            || late(copy.gone)
            || lost == Some(false);
        copy.may_lack = true;
        if leaves {
            copy.may_share |= copy.state == State::Shared;
            copy.may_linger |= copy.state != State::Absent;
            copy.state = State::Absent;
        }
        let mut during = None;
        if has && !copy.is_apart {
            copy.gone = Some(now);
            copy.departure = Some(Departure { now, order: self.order });
            let storer = concurrent_store(&self.clocks, entry, core, now);
            during = storer.map(|storer| during_store(line, core, storer));
        }
        if !has_modified {
            return during;
        }
        let copy = entry.of(core);
        if copy.unsent {
            copy.sent = Some(now);
            copy.unsent = !leaves;
        }
        copy.left = Some(now);
        let loader = concurrent_load(&self.clocks, entry, core, now);
        loader
            .map(|loader| during_load(line, core, loader, "may evict it"))
            .or(during)
    }

    fn load(&mut self, core: usize, line: u32, now: Stamp) -> Option<Fault> {
        let cores = self.sets.len();
        let entry = self.lines.entry(line).or_default();
        let clocks = &self.clocks;
        let concurrent = |stamp: Option<Stamp>| stamp.filter(|&stamp| !clocks.ordered(stamp, now));
        let left = entry.others(core).find(|other| concurrent(other.left).is_some());
        let left = left.map(|other| during_load(line, other.core, core, "lets it leave its data cache"));
        let flushed = entry.others(core).find(|other| {
            let flush = other.flushed.filter(|&(_, owner)| owner != Some(core));
            concurrent(flush.map(|(stamp, _)| stamp)).is_some()
        });
        let flushed = flushed.map(|other| flush_of_shared(line, other.core, core));
        let mut late = None;
        for other in entry.others_mut(core) {
            if let Some(upgrade) = &mut other.upgrade
                && !clocks.ordered(upgrade.now, now)
                && upgrade.readers >> core & 1 == 0
            {
                upgrade.readers |= 1 << core;
                if upgrade.is_dangerous(cores) {
                    late = Some(late_acknowledgment(line, other.core, upgrade));
                }
            }
        }
        let mut races = false;
        for other in entry.others_mut(core) {
            // The store may be later than this load.
            let later = clocks.any_concurrent(other.core, &other.stores, now);
            races |= later;
            if other.state == State::Modified {
                other.state = State::Shared;
                other.may_own = later;
            }
            other.may_own &= later;
        }
        let copy = entry.of(core);
        copy.is_apart = false;
        copy.loads[now.thread % THREADS] = now.time;
        (copy.departure, copy.may_linger) = (None, false);
        copy.may_share |= copy.may_lack;
        copy.may_lack = races;
        if copy.state == State::Absent {
            copy.state = State::Shared;
        }
        left.or(flushed).or(late)
    }

    fn store(&mut self, core: usize, word: u32, now: Stamp) -> Option<Fault> {
        let line = word / machine::CACHE_LINE;
        let home = self.home(line);
        let entry = self.lines.entry(line).or_default();
        let clocks = &self.clocks;
        let readers = entry
            .others(core)
            .filter(|other| may_read(clocks, other, now))
            .fold(0, |set, other| set | 1 << other.core);
        let certain =
            |other: &&Holder| other.state == State::Shared && !clocks.any_concurrent(other.core, &other.loads, now);
        let certain = entry.others(core).filter(certain).count();
        let loads = entry
            .others(core)
            .any(|other| clocks.any_concurrent(other.core, &other.loads, now));
        let stores = entry
            .others(core)
            .any(|other| clocks.any_concurrent(other.core, &other.stores, now));
        let gone = |other: &&Holder| other.gone.is_some_and(|gone| !clocks.ordered(gone, now));
        let gone = entry
            .others(core)
            .find(gone)
            .map(|other| during_store(line, other.core, core));
        let copy = entry.of(core);
        copy.is_apart = false;
        copy.stores[now.thread % THREADS] = now.time;
        let may_have = copy.may_linger || copy.may_share || copy.lost.is_some_and(|lost| !clocks.ordered(lost, now));
        if copy.state == State::Absent && !may_have {
            self.fences[now.thread][home] = self.order;
        }
        (copy.departure, copy.may_linger) = (None, false);
        // In another order, the concurrent accesses of other cores come after this store.
        (copy.may_share, copy.may_lack, copy.may_own) = (loads, stores, false);
        let own = usize::from(copy.state == State::Shared && !stores);
        let may_have = copy.state == State::Shared || loads;
        let known = copy.invalidated.iter_mut().find(|(known, _)| *known == word);
        let before = known.as_ref().map(|(_, least)| *least);
        // With concurrent accesses, it may have been a single copy.
        let count = (certain + own).max(usize::from(readers != 0 || may_have));
        match (known, count) {
            (_, 0) => {}
            (Some((_, least)), count) => *least = count.min(*least),
            (None, count) => copy.invalidated.push((word, count)),
        }
        let last = copy
            .upgrade
            .filter(|last| last.now.thread == now.thread && last.now.time == now.time);
        let upgrade = before.map(|before| Upgrade {
            now,
            before: last.map_or(before, |last| last.before.min(before)),
            readers,
        });
        copy.upgrade = upgrade.or(copy.upgrade);
        copy.state = State::Modified;
        for other in entry.others_mut(core) {
            let state = std::mem::take(&mut other.state);
            let later = |times: &Times| clocks.any_concurrent(other.core, times, now);
            let (loads, stores) = (later(&other.loads), later(&other.stores));
            other.may_own = stores;
            if loads {
                (other.may_share, other.lost) = (true, None);
            } else if other.may_share || state != State::Absent {
                other.may_share |= state == State::Shared;
                other.lost = Some(now);
            }
        }
        let cores = self.sets.len();
        let dangerous = upgrade.filter(|upgrade| upgrade.is_dangerous(cores));
        dangerous
            .map(|upgrade| late_acknowledgment(line, core, &upgrade))
            .or(gone)
    }

    fn flush(&mut self, core: usize, line: u32, now: Stamp) -> Option<Fault> {
        let entry = self.lines.entry(line).or_default();
        let clocks = &self.clocks;
        let copy = entry.of(core);
        let absent = copy.state == State::Absent || copy.may_lack;
        let races = |other: &&Holder| clocks.any_concurrent(other.core, &other.stores, now);
        let (taker, another) = {
            let mut takers = entry.others(core).filter(races).map(|other| other.core);
            (takers.next(), takers.next())
        };
        if !absent && taker.is_none() {
            return None;
        }
        // The only core that takes the line has it modified, and does not share it.
        let owner = taker.filter(|_| !absent && another.is_none());
        let shares = |other: &&Holder| Some(other.core) != owner && may_read(clocks, other, now);
        let sharer = entry.others(core).find(shares).map(|other| other.core);
        entry.of(core).flushed = Some((now, owner));
        sharer.map(|sharer| flush_of_shared(line, core, sharer))
    }

    fn invalidate(&mut self, core: usize, line: u32, now: Stamp) -> Option<Fault> {
        self.forget(line);
        self.sets[core].drop(line);
        let entry = self.lines.entry(line).or_default();
        let copy = entry.of(core);
        let state = std::mem::take(&mut copy.state);
        let shares = may_share(&self.clocks, copy, now);
        let owns = state == State::Modified || copy.may_own;
        // It waits for the acknowledgment if the core has the line, and not if an eviction is on its way.
        if state != State::Absent && !copy.may_lack {
            copy.departure = None;
        }
        (copy.may_share, copy.may_lack, copy.may_own, copy.may_linger) = (false, false, false, false);
        if state == State::Shared {
            return Some(invalidation_of_read(line, "has only read"));
        }
        if shares {
            return Some(invalidation_of_read(line, "may have from a load"));
        }
        if !owns {
            return None;
        }
        (copy.left, copy.gone) = (Some(now), Some(now));
        if let Some(loader) = concurrent_load(&self.clocks, entry, core, now) {
            return Some(during_load(line, core, loader, "invalidates it"));
        }
        let storer = concurrent_store(&self.clocks, entry, core, now)?;
        Some(during_store(line, core, storer))
    }

    fn non_coherent(&mut self, core: usize, line: u32, kind: Use, now: Stamp) -> Option<Fault> {
        let home = self.home(line);
        let clocks = &self.clocks;
        let copy = self.lines.entry(line).or_default().of(core);
        copy.is_apart = true;
        let missed = copy.state == State::Absent || copy.may_lack;
        let sends = |copy: &mut Holder| {
            if std::mem::take(&mut copy.unsent) {
                copy.sent = Some(now);
            }
        };
        match kind {
            Use::Flush => sends(copy),
            Use::Invalidate => {
                sends(copy);
                (copy.state, copy.may_lack) = (State::Absent, false);
                self.sets[core].drop(line);
            }
            Use::Load | Use::Store => {
                let overtakes = missed && copy.sent.is_some_and(|sent| !clocks.settled(sent, now));
                let fence = self.fences[now.thread][home];
                let departs = copy
                    .departure
                    .take()
                    .filter(|left| kind == Use::Load && missed && !clocks.settled(left.now, now) && fence < left.order);
                if kind == Use::Store {
                    (copy.state, copy.unsent) = (State::Modified, true);
                } else if copy.state == State::Absent {
                    copy.state = State::Shared;
                }
                copy.may_lack = false;
                if overtakes {
                    return Some(non_coherent_reload(line));
                }
                return departs.map(|_| eviction_before_load(line));
            }
        }
        None
    }
}

/// Returns whether a core that has lost a line may still share it.
fn may_share(clocks: &Clocks, copy: &Holder, now: Stamp) -> bool {
    copy.may_share && !copy.lost.is_some_and(|lost| clocks.ordered(lost, now))
}

/// Returns whether another core may share a line at `now`, in the order of the run or in another one.
fn may_read(clocks: &Clocks, other: &Holder, now: Stamp) -> bool {
    // Its concurrent store may be later, so that it still shares the line by an earlier load.
    let loaded = other.loads.iter().any(|&time| time != 0);
    other.state == State::Shared && !other.is_apart
        || may_share(clocks, other, now)
        || clocks.any_concurrent(other.core, &other.loads, now)
        || loaded && clocks.any_concurrent(other.core, &other.stores, now)
}

/// Returns another core with a load of the line that is concurrent with `now`.
fn concurrent_load(clocks: &Clocks, line: &Line, core: usize, now: Stamp) -> Option<usize> {
    let races = |other: &&Holder| clocks.any_concurrent(other.core, &other.loads, now);
    line.others(core).find(races).map(|other| other.core)
}

/// Returns another core with a store to the line that is concurrent with `now`.
fn concurrent_store(clocks: &Clocks, line: &Line, core: usize, now: Stamp) -> Option<usize> {
    let races = |other: &&Holder| clocks.any_concurrent(other.core, &other.stores, now);
    line.others(core).find(races).map(|other| other.core)
}

fn invalidation_of_read(line: u32, why: &str) -> Fault {
    Fault {
        hazard: Hazard::InvalidationOfReadLine,
        detail: format!(
            "`dcache_inv` of the line at {:#010x}, which the core {why}, never completes; store to the line first, or leave the `dcache_inv` out",
            address_of(line)
        ),
    }
}

fn flush_of_shared(line: u32, core: usize, sharer: usize) -> Fault {
    Fault {
        hazard: Hazard::FlushOfSharedLine,
        detail: format!(
            "core {core} flushes the line at {:#010x}, which core {sharer} may share and core {core} may not have: the next store to the line hangs; let the core that stored flush the line, and wait at a barrier before other cores access it",
            address_of(line)
        ),
    }
}

fn during_load(line: u32, owner: usize, loader: usize, how: &str) -> Fault {
    Fault {
        hazard: Hazard::EvictionDuringLoad,
        detail: format!(
            "core {owner} has modified the line at {:#010x} and {how}, and core {loader} may load it at the same time; wait at a barrier in between, or keep the line in a set of the data cache of its own",
            address_of(line)
        ),
    }
}

fn during_store(line: u32, holder: usize, storer: usize) -> Fault {
    Fault {
        hazard: Hazard::EvictionDuringStore,
        detail: format!(
            "core {holder} has the line at {:#010x} and may evict it, and core {storer} may store to it at the same time: the store hangs; wait at a barrier in between, or keep the line in a set of the data cache of its own",
            address_of(line)
        ),
    }
}

fn eviction_before_load(line: u32) -> Fault {
    Fault {
        hazard: Hazard::EvictionBeforeNonCoherentLoad,
        detail: format!(
            "the core loads the line at {:#010x} from a non-coherent region, and may have evicted it as a coherent line shortly before: the load hangs; wait at a barrier before the region begins",
            address_of(line)
        ),
    }
}

fn late_acknowledgment(line: u32, core: usize, upgrade: &Upgrade) -> Fault {
    let readers = (0..u16::BITS).filter(|core| upgrade.readers >> core & 1 != 0);
    let list: Vec<String> = readers.map(|core| core.to_string()).collect();
    Fault {
        hazard: Hazard::LateAcknowledgment,
        detail: format!(
            "core {core} stores again to a word of the line at {:#010x}, and more cores than at an earlier store may have copies ({}): they can keep old values; give each reader a line of its own",
            address_of(line),
            list.join(", ")
        ),
    }
}

fn non_coherent_store_miss(line: u32) -> Fault {
    Fault {
        hazard: Hazard::NonCoherentStoreMiss,
        detail: format!(
            "the core may not have the line at {:#010x} of a non-coherent region, so the store may replace another line: later misses of the core hang; load from the line first",
            address_of(line)
        ),
    }
}

fn non_coherent_reload(line: u32) -> Fault {
    Fault {
        hazard: Hazard::NonCoherentReload,
        detail: format!(
            "the core reads the line at {:#010x} of a non-coherent region again before memory has its last store; wait at a barrier after the write to memory",
            address_of(line)
        ),
    }
}
