//! Which threads of a device run a kernel.

use npu_sim::THREADS;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// A hardware thread of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// The core, from 0. A kernel finds it as its tile (`__builtin_npu_tile_id`).
    pub core: usize,
    /// The thread in the core, from 0 to 7. A kernel finds it by `__builtin_npu_thread_id`.
    pub thread: usize,
}

impl ThreadId {
    /// The thread with this number over all cores, as [`RunError`](crate::RunError)s and the simulator count.
    pub const fn from_number(number: usize) -> Self {
        Self {
            core: number / THREADS,
            thread: number % THREADS,
        }
    }

    /// Its number over all cores.
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
    /// No threads.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// So many threads: all of the first core, then all of the second, and so on.
    pub fn first(count: usize) -> Self {
        (0..count).map(ThreadId::from_number).collect()
    }

    /// The first threads of each of these cores.
    pub fn on_cores(cores: Range<usize>, threads: usize) -> Self {
        let of_core = |core| (0..threads).map(move |thread| ThreadId { core, thread });
        cores.flat_map(of_core).collect()
    }

    /// The threads of a core whose bits are set, as the host of the hardware enables them.
    pub fn from_mask(core: usize, mask: u8) -> Self {
        let threads = (0..THREADS).filter(|thread| mask >> thread & 1 != 0);
        threads.map(|thread| ThreadId { core, thread }).collect()
    }

    /// Adds a thread; gives whether it was missing.
    pub fn insert(&mut self, thread: ThreadId) -> bool {
        self.0.insert(thread)
    }

    /// Whether it has a thread.
    pub fn contains(&self, thread: ThreadId) -> bool {
        self.0.contains(&thread)
    }

    /// How many threads it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The threads in the order of their numbers.
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
