//! The order that barriers give to the accesses of threads, as vector clocks.

use super::THREADS;

/// An access of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The number of barriers that the thread has passed, plus 1.
    pub time: u32,
    pub pc: u32,
}

/// The clocks of all threads.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    /// For each thread, the last time of each thread that precedes its next access. A thread's own
    /// entry is its current time.
    seen: Vec<Vec<u32>>,
}

impl Clocks {
    pub fn new(threads: usize) -> Clocks {
        let own = |thread| (0..threads).map(|other| u32::from(other == thread)).collect();
        Clocks {
            seen: (0..threads).map(own).collect(),
        }
    }

    /// Returns the current time of a thread.
    #[inline]
    pub fn time(&self, thread: usize) -> u32 {
        self.seen[thread][thread]
    }

    pub fn stamp(&self, thread: usize, pc: u32) -> Stamp {
        Stamp {
            thread,
            time: self.time(thread),
            pc,
        }
    }

    /// Returns whether an access precedes `now` by program order or a barrier, or is of the same
    /// core.
    pub fn ordered(&self, access: Stamp, now: Stamp) -> bool {
        access.thread / THREADS == now.thread / THREADS || self.seen[now.thread][access.thread] >= access.time
    }

    /// Returns whether a barrier is between an access of the core of `now`, and `now`.
    pub fn settled(&self, access: Stamp, now: Stamp) -> bool {
        let own = access.thread == now.thread;
        self.seen[now.thread][access.thread] >= access.time + u32::from(own)
    }

    /// Returns whether one of the last accesses of the threads of `core` is concurrent with `now`,
    /// an access of another core.
    pub fn any_concurrent(&self, core: usize, times: &[u32; THREADS], now: Stamp) -> bool {
        let seen = &self.seen[now.thread][core * THREADS..];
        times.iter().zip(seen).any(|(time, seen)| time > seen)
    }

    /// Records that all accesses so far precede those of `thread`.
    pub fn follow_all(&mut self, thread: usize) {
        let times: Vec<u32> = (0..self.seen.len()).map(|other| self.time(other)).collect();
        self.seen[thread] = times;
        self.seen[thread][thread] += 1;
    }

    /// Records that the accesses of these threads so far precede their later ones.
    pub fn meet(&mut self, threads: &[usize]) {
        let mut latest = vec![0; self.seen.len()];
        for &thread in threads {
            for (latest, &seen) in latest.iter_mut().zip(&self.seen[thread]) {
                *latest = seen.max(*latest);
            }
        }
        for &thread in threads {
            self.seen[thread].clone_from(&latest);
            self.seen[thread][thread] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_order_the_accesses_of_their_threads() {
        let (a, b, c) = (0, THREADS, 2 * THREADS);
        let mut clocks = Clocks::new(3 * THREADS);
        let first = clocks.stamp(a, 0);
        assert!(!clocks.ordered(first, clocks.stamp(b, 0)));
        assert!(!clocks.settled(first, clocks.stamp(a, 0)));
        clocks.meet(&[a, b]);
        assert!(clocks.ordered(first, clocks.stamp(b, 0)));
        assert!(clocks.settled(first, clocks.stamp(a, 0)));
        assert!(!clocks.ordered(first, clocks.stamp(c, 0)));
        let second = clocks.stamp(a, 0);
        assert!(!clocks.ordered(second, clocks.stamp(b, 0)));
        // The order is transitive.
        clocks.meet(&[b, c]);
        assert!(clocks.ordered(first, clocks.stamp(c, 0)));
        assert!(!clocks.ordered(second, clocks.stamp(c, 0)));
        clocks.follow_all(c);
        assert!(clocks.ordered(second, clocks.stamp(c, 0)));
    }
}
