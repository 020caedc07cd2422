//! Barriers: the accounts of the sync masters (`docs/machine/control.md`).
//!
//! The first arrival loads the counter of its id with the number of arrivals that are missing, each later one takes one off
//! whatever number it brings, and the one that makes it 0 opens the barrier. A system of one core has one master, in which
//! ids with equal low 5 bits share a counter; with several cores the upper bits select the master of a tile. Either way the
//! release reaches those threads alone that wait with the full id of the last arrival.

use npu_mc::machine;
use std::fmt;

/// Bits of a barrier id that the hardware takes.
pub(crate) const ID_MASK: u32 = machine::BARRIER_IDS - 1;
/// Bits of the second operand, the number of participants less one.
pub(crate) const COUNT_MASK: u32 = machine::BARRIER_THREADS - 1;
/// Bits of an id that select the counter in a master.
const COUNTER_MASK: u32 = machine::BARRIER_COUNTERS - 1;

/// A thread that stands at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the thread, counted over all cores.
    pub thread: usize,
    /// Barrier id, 9 bits.
    pub id: u32,
    /// Address of the barrier instruction.
    pub pc: u32,
    /// Arrivals that the counter of the id has had since it was last at rest. Another id can share the counter. 0 if it is
    /// at rest: the barrier opened for threads with another id, and passed this one by.
    pub arrived: u32,
    /// Arrivals that the first of them asked for; 0 if the counter is at rest.
    pub expected: u32,
}

impl Waiting {
    /// Arrivals that the barrier waits for.
    pub fn missing(&self) -> u32 {
        self.expected.saturating_sub(self.arrived)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting {
            thread,
            id,
            pc,
            arrived,
            expected,
        } = self;
        write!(f, "thread {thread} waits at barrier {id} at {pc:#010x}: ")?;
        if *expected == 0 {
            f.write_str("it opened for others, with another id on the same counter")
        } else {
            write!(f, "{arrived} of {expected} arrived")
        }
    }
}

/// One counter.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    arrived: u32,
    expected: u32,
}

/// The counters of all masters.
#[derive(Clone, Debug)]
pub(crate) struct Barriers {
    accounts: Vec<Account>,
    /// Bits of an id that name its account.
    mask: u32,
}

impl Barriers {
    /// All counters at rest. `distributed`: every tile has its own master.
    pub fn new(distributed: bool) -> Barriers {
        let mask = if distributed { ID_MASK } else { COUNTER_MASK };
        Barriers {
            accounts: vec![Account::default(); mask as usize + 1],
            mask,
        }
    }

    /// All counters at rest again.
    pub fn reset(&mut self) {
        self.accounts.fill(Account::default());
    }

    /// An arrival at `id`, with `others` participants besides it; gives whether the barrier opens.
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

    /// Arrivals so far and arrivals expected at `id`; both 0 at rest.
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
        let mut barriers = Barriers::new(false);
        assert!(!barriers.arrive(42, 2));
        assert!(!barriers.arrive(42, 100));
        assert_eq!(barriers.account(42), (2, 3));
        assert!(barriers.arrive(42, 0));
        assert_eq!(barriers.account(42), (0, 0));
        assert!(barriers.arrive(7, 0));
    }

    #[test]
    fn one_master_has_32_counters_and_many_have_512() {
        let mut one = Barriers::new(false);
        assert!(!one.arrive(1, 1));
        assert!(one.arrive(33, 1));
        let mut many = Barriers::new(true);
        assert!(!many.arrive(1, 1));
        assert!(!many.arrive(33, 1));
    }
}
