//! Sets of threads of a device.

use npu_sim::THREADS;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// A hardware thread of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// The core, from 0. A kernel reads it as its tile (`__builtin_npu_tile_id`).
    pub core: usize,
    /// The thread in the core, from 0 to 7. A kernel reads it with `__builtin_npu_thread_id`.
    pub thread: usize,
}

impl ThreadId {
    /// Returns the thread with this number over all cores, as in [`RunError`](crate::RunError)s and
    /// in the simulator.
    pub const fn from_number(number: usize) -> Self {
        Self {
            core: number / THREADS,
            thread: number % THREADS,
        }
    }

    /// Returns the number of the thread over all cores.
    pub const fn number(self) -> usize {
        self.core.saturating_mul(THREADS).saturating_add(self.thread)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of core {}", self.thread, self.core)
    }
}

/// A set of hardware threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSet(BTreeSet<ThreadId>);

impl ThreadSet {
    /// Returns the empty set.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Returns the first `count` threads: all of the first core, then all of the second, and so on.
    pub fn first(count: usize) -> Self {
        (0..count).map(ThreadId::from_number).collect()
    }

    /// Returns the first `threads` threads of each of these cores.
    pub fn on_cores(cores: Range<usize>, threads: usize) -> Self {
        let of_core = |core| (0..threads).map(move |thread| ThreadId { core, thread });
        cores.flat_map(of_core).collect()
    }

    /// Returns the threads of a core whose bits are set, as in the hardware's enable mask.
    pub fn from_mask(core: usize, mask: u8) -> Self {
        let threads = (0..THREADS).filter(|thread| mask >> thread & 1 != 0);
        threads.map(|thread| ThreadId { core, thread }).collect()
    }

    /// Adds a thread; returns whether it is new.
    pub fn insert(&mut self, thread: ThreadId) -> bool {
        self.0.insert(thread)
    }

    /// Returns whether the set contains a thread.
    pub fn contains(&self, thread: ThreadId) -> bool {
        self.0.contains(&thread)
    }

    /// Returns the number of threads.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the threads in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = ThreadId> {
        self.0.iter().copied()
    }
}

impl FromIterator<ThreadId> for ThreadSet {
    fn from_iter<I: IntoIterator<Item = ThreadId>>(threads: I) -> Self {
        Self(threads.into_iter().collect())
    }
}

impl Extend<ThreadId> for ThreadSet {
    fn extend<I: IntoIterator<Item = ThreadId>>(&mut self, threads: I) {
        self.0.extend(threads);
    }
}
