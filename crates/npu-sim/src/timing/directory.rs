//! The directory: it records which cores have which data lines, and determines the cost of a
//! request.
//!
//! The directory of each tile keeps the data caches coherent (`docs/machine/several-cores.md`). A
//! line is *modified* in one core, or *shared* by the cores that read it, or in no data cache. A
//! load requests the line shared. A store requests it exclusively; if the core shares the line, it
//! loses its copy and receives the line again. A line that another core has modified comes from that
//! core; if it is shared then, it also goes to the second level. All copies of a shared line are
//! invalidated, and the store waits for the acknowledgments. An evicted line is returned to the
//! directory.
//!
//! The [`Network`](super::network::Network) has the cycles of these actions.

use rustc_hash::FxHashMap;

/// A set of cores, one bit per core.
pub(super) type Cores = u16;

const _: () = assert!(crate::topology::CORE_LIMIT <= Cores::BITS as usize);

/// The state of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The cores that share the line; empty if a core has modified it.
    sharers: Cores,
    /// The core that has modified the line and may modify it again.
    owner: Option<usize>,
    /// The cycle in which the directory can accept the next request for the line.
    next_at: u64,
    /// The cycle in which all granted copies have arrived, so that they can be invalidated.
    settled_at: u64,
}

/// The response of the directory to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The line comes from the second level or from memory.
    Supply,
    /// The core has the line, and receives it again with write permission.
    Upgrade,
    /// The core with this number has modified the line, and sends it.
    Forward(usize),
}

/// The directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    lines: FxHashMap<u32, Entry>,
}

impl Directory {
    /// Returns the cycle in which the directory can accept a request for a line, and the cycle in
    /// which all copies of the line have arrived.
    pub fn times(&self, line: u32) -> (u64, u64) {
        let entry = self.lines.get(&line).copied().unwrap_or_default();
        (entry.next_at, entry.settled_at)
    }

    /// Returns the response to a request of `core` for a line, and the cores whose copies are
    /// invalidated if the request is exclusive (`own`). A core that shares the line loses its copy
    /// as well, and receives the line again.
    pub fn look(&self, core: usize, line: u32, own: bool) -> (Action, Cores) {
        let entry = self.lines.get(&line).copied().unwrap_or_default();
        let bit = 1 << core;
        let sharers = if own { entry.sharers } else { 0 };
        let action = match entry.owner {
            Some(owner) if owner != core => Action::Forward(owner),
            // A core that has lost the line by an erratum receives it again.
            Some(_) => Action::Supply,
            None if own && entry.sharers & bit != 0 => Action::Upgrade,
            None => Action::Supply,
        };
        (action, sharers)
    }

    /// Grants the line to `core`; returns whether the core may store to it.
    pub fn grant(&mut self, core: usize, line: u32, own: bool, next_at: u64, settled_at: u64) -> bool {
        let entry = self.lines.entry(line).or_default();
        let owns = own || entry.owner == Some(core);
        if owns {
            entry.sharers = 0;
            entry.owner = Some(core);
        } else {
            entry.sharers |= 1 << core;
            if let Some(owner) = entry.owner.take() {
                entry.sharers |= 1 << owner;
            }
        }
        entry.next_at = next_at;
        entry.settled_at = entry.settled_at.max(settled_at);
        owns
    }

    /// Forgets a line that leaves the second level; returns the core that has modified it, or the
    /// cores that share it.
    pub fn evict(&mut self, line: u32) -> (Option<usize>, Cores) {
        let entry = self.lines.remove(&line).unwrap_or_default();
        (entry.owner, entry.sharers)
    }

    /// Makes requests for a line without copies wait until a cycle.
    pub fn block(&mut self, line: u32, next_at: u64) {
        self.lines.entry(line).or_default().next_at = next_at;
    }

    /// Records that `core` returns a line; returns whether it had modified the line. No later
    /// request concerns cycles before `past`.
    pub fn give_back(&mut self, core: usize, line: u32, past: u64) -> bool {
        let Some(entry) = self.lines.get_mut(&line) else {
            return false;
        };
        let modified = entry.owner == Some(core);
        if modified {
            entry.owner = None;
        }
        entry.sharers &= !(1 << core);
        if entry.owner.is_none() && entry.sharers == 0 && entry.next_at.max(entry.settled_at) <= past {
            self.lines.remove(&line);
        }
        modified
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shared_by_readers_and_modified_by_one() {
        let mut directory = Directory::default();
        assert_eq!(directory.look(3, 7, false), (Action::Supply, 0));
        assert!(!directory.grant(3, 7, false, 10, 20));
        assert_eq!(directory.times(7), (10, 20));
        assert_eq!(directory.look(5, 7, false), (Action::Supply, 0));
        assert!(!directory.grant(5, 7, false, 11, 15));
        // The copies of the first grant arrive in cycle 20.
        assert_eq!(directory.times(7), (11, 20));
        // The core that stores loses its own copy, too.
        assert_eq!(directory.look(5, 7, true), (Action::Upgrade, 1 << 3 | 1 << 5));
        assert_eq!(directory.look(1, 7, true), (Action::Supply, 1 << 3 | 1 << 5));
        assert!(directory.grant(1, 7, true, 30, 40));
        assert_eq!(directory.look(3, 7, true), (Action::Forward(1), 0));
        assert_eq!(directory.look(3, 7, false), (Action::Forward(1), 0));
        assert!(!directory.grant(3, 7, false, 50, 60));
        assert_eq!(directory.look(0, 7, true), (Action::Supply, 1 << 1 | 1 << 3));
    }

    #[test]
    fn who_gives_a_line_back_has_it_no_more() {
        let mut directory = Directory::default();
        assert!(!directory.give_back(2, 9, 0));
        directory.grant(2, 9, true, 10, 20);
        // The core lost the line by an erratum: it may still store.
        assert_eq!(directory.look(2, 9, false), (Action::Supply, 0));
        assert!(directory.grant(2, 9, false, 10, 20));
        assert!(!directory.give_back(1, 9, 0), "core 1 does not have the line");
        assert!(directory.give_back(2, 9, 5));
        assert_eq!(directory.look(1, 9, true), (Action::Supply, 0));
        assert_eq!(directory.times(9), (10, 20), "the next request still waits");
        directory.grant(1, 9, false, 30, 40);
        assert!(!directory.give_back(1, 9, 50));
        assert!(directory.lines.is_empty());
    }
}
