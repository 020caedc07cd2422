//! The directory: which cores have which lines of data, and what a core has to wait for until it has one.
//!
//! Read before the mesh could be run (measured since: `docs/machine/several-cores.md`): the states are those of MSI, and the data caches are kept coherent by a directory with the
//! second-level cache. MSI is taken to be that of the textbooks: a line is *modified* in one core, or *shared* by some that read it,
//! or nowhere. A load asks for the line to share it; a store asks for it alone, also if the core shares it already. A line that
//! another core has modified comes from there, and goes to the second level as well if it is shared then; a line that others share is
//! taken from them, and whoever stores waits until they have said so. A line that leaves a cache is given back.
//!
//! What anything here takes is said nowhere: see [`Network`](super::network::Network).

use rustc_hash::FxHashMap;

/// One bit per core.
pub(super) type Cores = u16;

const _: () = assert!(crate::machine::CORE_LIMIT <= Cores::BITS as usize);

/// What is known of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Cores that share it; none if one has modified it.
    sharers: Cores,
    /// The core that has modified it, and may do so again.
    owner: Option<usize>,
    /// When the directory can take the next request for it.
    next_at: u64,
    /// When all copies that were granted are where they belong, so that they can be taken away again.
    settled_at: u64,
}

/// What the directory does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The line comes from the second level or from memory.
    Supply,
    /// The core has the line, and gets the leave to store.
    Upgrade,
    /// The core of this number has modified the line, and sends it.
    Forward(usize),
}

/// The directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    lines: FxHashMap<u32, Entry>,
}

impl Directory {
    /// When it can take a request for a line, and when all copies of that line are in their places.
    pub fn times(&self, line: u32) -> (u64, u64) {
        let entry = self.lines.get(&line).copied().unwrap_or_default();
        (entry.next_at, entry.settled_at)
    }

    /// What `core` has to get for a line: and the other cores that lose it, if it is to be its `own`.
    pub fn look(&self, core: usize, line: u32, own: bool) -> (Action, Cores) {
        let entry = self.lines.get(&line).copied().unwrap_or_default();
        let bit = 1 << core;
        let others = if own { entry.sharers & !bit } else { 0 };
        let action = match entry.owner {
            Some(owner) if owner != core => Action::Forward(owner),
            // A core that has lost the line by an erratum is given it again.
            Some(_) => Action::Supply,
            None if own && entry.sharers & bit != 0 => Action::Upgrade,
            None => Action::Supply,
        };
        (action, others)
    }

    /// Gives the line to `core`; gives whether it may store to it.
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

    /// `core` gives a line back; gives whether it had modified it. `past`: nobody asks for cycles before it.
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
        // The copies of the first are not there before 20.
        assert_eq!(directory.times(7), (11, 20));
        assert_eq!(directory.look(5, 7, true), (Action::Upgrade, 1 << 3));
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
        // Lost by an erratum: it may still store.
        assert_eq!(directory.look(2, 9, false), (Action::Supply, 0));
        assert!(directory.grant(2, 9, false, 10, 20));
        assert!(!directory.give_back(1, 9, 0), "it is not core 1 that has it");
        assert!(directory.give_back(2, 9, 5));
        assert_eq!(directory.look(1, 9, true), (Action::Supply, 0));
        assert_eq!(directory.times(9), (10, 20), "the next request waits all the same");
        directory.grant(1, 9, false, 30, 40);
        assert!(!directory.give_back(1, 9, 50));
        assert!(directory.lines.is_empty());
    }
}
