//! Barriers: the counters of the synchronization masters (`docs/machine/control.md`).
//!
//! The first arrival loads the counter of its id with the number of missing arrivals. Each later
//! arrival decrements the counter, whatever number it requests, and the arrival that makes the
//! counter 0 opens the barrier. A one-core system has one master, in which ids with equal low 5
//! bits share a counter. With several cores the upper bits of the id select the master of a tile.
//! In both cases only threads that wait with the full id of the last arrival are released.

use crate::thread_list::thread_list;
use npu_mc::machine;
use std::fmt;
use std::ops::Range;

/// The mask of a barrier id; the hardware ignores the other bits.
pub(crate) const ID_MASK: u32 = machine::BARRIER_IDS - 1;
/// The mask of the second operand, the number of participants minus one.
pub(crate) const COUNT_MASK: u32 = machine::BARRIER_THREADS - 1;
/// The mask of the counter number in an id.
const COUNTER_MASK: u32 = machine::BARRIER_COUNTERS - 1;

/// A thread that waits at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The barrier id, 9 bits.
    pub id: u32,
    /// The address of the barrier instruction.
    pub pc: u32,
    /// The number of arrivals at the counter of the id since the barrier last opened; other ids can
    /// share the counter. 0 if the counter is idle: the barrier opened for threads with another id
    /// and did not release this one.
    pub arrived: u32,
    /// The number of arrivals that the first one requested; 0 if the counter is idle.
    pub expected: u32,
}

impl Waiting {
    /// The number of missing arrivals.
    pub fn missing(&self) -> u32 {
        self.expected.saturating_sub(self.arrived)
    }
}

impl Waiting {
    /// Writes the wait for all threads with these ascending numbers.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, threads: &[usize]) -> fmt::Result {
        let Waiting {
            id,
            pc,
            arrived,
            expected,
            ..
        } = self;
        let verb = if threads.len() == 1 { "waits" } else { "wait" };
        write!(f, "{} {verb} at barrier {id} at {pc:#010x}: ", thread_list(threads))?;
        if *expected == 0 {
            f.write_str("it opened for others, with another id on the same counter")
        } else {
            write!(f, "{arrived} of {expected} arrived")
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &[self.thread])
    }
}

/// Returns the tile of the sync master of a barrier, in a system of several cores.
fn tile_of(id: u32) -> u32 {
    id / machine::BARRIER_COUNTERS
}

/// A counter.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    arrived: u32,
    expected: u32,
}

/// The counters of all masters.
#[derive(Clone, Debug)]
pub(crate) struct Barriers {
    accounts: Vec<Account>,
    /// The mask of the account number in an id.
    mask: u32,
    /// The tiles with simulated cores; `None` in a one-core system.
    tiles: Option<Range<u32>>,
    /// The number of tiles with a core in the hardware, from tile 0 on.
    core_tiles: u32,
}

impl Barriers {
    /// Creates idle counters. With `tiles`, those of several cores, every tile has its own master.
    pub fn new(tiles: Option<Range<u32>>, core_tiles: u32) -> Barriers {
        let mask = if tiles.is_some() { ID_MASK } else { COUNTER_MASK };
        Barriers {
            accounts: vec![Account::default(); mask as usize + 1],
            mask,
            tiles,
            core_tiles,
        }
    }

    /// Returns whether the hardware has a sync master for `id`: its tile has a core, or the machine
    /// has a single core.
    pub fn has_master(&self, id: u32) -> bool {
        let tile = tile_of(id);
        let simulated = |tiles: &Range<u32>| tile < self.core_tiles || tiles.contains(&tile);
        self.tiles.as_ref().is_none_or(simulated)
    }

    /// Returns the description of a barrier for which no tile has a sync master.
    pub fn without_master(&self, thread: usize, id: u32) -> String {
        let threads = machine::THREADS_PER_CORE as usize;
        let (core, number) = (thread / threads, thread % threads);
        format!(
            "core {core}, thread {number}: tile {} of barrier {id} has no core, so the barrier never opens; use a number below {}",
            tile_of(id),
            self.core_tiles * machine::BARRIER_COUNTERS
        )
    }

    /// Resets all counters to idle.
    pub fn reset(&mut self) {
        self.accounts.fill(Account::default());
    }

    /// Records an arrival at `id` that expects `others` more participants; returns whether the
    /// barrier opens.
    pub fn arrive(&mut self, id: u32, others: u32) -> bool {
        let account = &mut self.accounts[(id & self.mask) as usize];
        if account.expected == 0 {
            account.expected = (others & COUNT_MASK) + 1;
        }
        account.arrived += 1;
        let opens = account.arrived >= account.expected;
        if opens {
            *account = Account::default();
        }
        opens
    }

    /// The number of arrivals and of expected arrivals at `id`; both are 0 if the counter is idle.
    pub fn account(&self, id: u32) -> (u32, u32) {
        let account = self.accounts[(id & self.mask) as usize];
        (account.arrived, account.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_arrival_sets_the_number() {
        let mut barriers = Barriers::new(None, machine::CORE_TILES);
        assert!(!barriers.arrive(42, 2));
        assert!(!barriers.arrive(42, 100));
        assert_eq!(barriers.account(42), (2, 3));
        assert!(barriers.arrive(42, 0));
        assert_eq!(barriers.account(42), (0, 0));
        assert!(barriers.arrive(7, 0));
    }

    #[test]
    fn one_master_has_32_counters_and_many_have_512() {
        let mut one = Barriers::new(None, machine::CORE_TILES);
        assert!(!one.arrive(1, 1));
        assert!(one.arrive(33, 1));
        let mut many = Barriers::new(Some(0..2), machine::CORE_TILES);
        assert!(!many.arrive(1, 1));
        assert!(!many.arrive(33, 1));
    }
}
