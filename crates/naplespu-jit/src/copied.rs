//! The objects that have copies for the threads of a core, which `copies` makes.

use npu_mc::reloc::Reloc;
use npu_sim::THREADS;
use std::collections::{BTreeMap, HashMap};

/// The copies of objects.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The copy for each original and thread of a core.
    of: BTreeMap<(usize, usize), usize>,
    /// The original and the thread of each copy.
    originals: HashMap<usize, (usize, usize)>,
}

impl Copies {
    /// Returns the original of a copy, and any other object unchanged.
    pub(super) fn original(&self, index: usize) -> usize {
        self.originals.get(&index).map_or(index, |&(original, _)| original)
    }

    /// Returns the object that a reference of `user` to the object `index` gets: branches of a copy
    /// stay within the copies of its thread.
    pub(super) fn target(&self, user: usize, kind: Reloc, index: usize) -> usize {
        let thread = self.originals.get(&user).filter(|_| kind == Reloc::Branch);
        let copy = thread.and_then(|&(_, thread)| self.of.get(&(index, thread)));
        copy.copied().unwrap_or(index)
    }

    /// Returns the copy of an object for a thread of a core.
    pub(super) fn copy(&self, original: usize, thread: usize) -> Option<usize> {
        self.of.get(&(original, thread)).copied()
    }

    /// Returns all copies.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.originals.keys().copied()
    }

    /// Forgets an object that is removed; returns its copies, which have to be removed too.
    pub(super) fn remove(&mut self, index: usize) -> Vec<usize> {
        if let Some(own) = self.originals.remove(&index) {
            self.of.remove(&own);
        }
        self.of
            .range((index, 0)..(index, THREADS))
            .map(|(_, &copy)| copy)
            .collect()
    }

    /// Records the copy of an object for a thread of a core.
    pub(super) fn insert(&mut self, original: usize, thread: usize, copy: usize) {
        self.of.insert((original, thread), copy);
        self.originals.insert(copy, (original, thread));
    }
}
