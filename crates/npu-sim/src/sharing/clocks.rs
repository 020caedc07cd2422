//! The order that barriers and releases give to the accesses of threads, as vector clocks.

use super::THREADS;

/// An access of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The number of the thread, counted over all cores.
    pub thread: usize,
    /// The number of barriers and releases of the thread before it, plus 1.
    pub time: u32,
    /// The number of barriers alone, plus 1.
    pub barriers: u32,
}

/// The clocks of all threads.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    /// Row *t*, column *u*: accesses of thread *u* up to this time precede the next access of
    /// thread *t*. A thread's own entry is its current time.
    seen: Vec<Vec<u32>>,
    /// The same, but counts only barriers and ignores the order that releases give.
    met: Vec<Vec<u32>>,
}

/// Raises each time to the other time if that is later.
pub(super) fn take_later(times: &mut [u32], others: &[u32]) {
    for (time, &other) in times.iter_mut().zip(others) {
        *time = other.max(*time);
    }
}

impl Clocks {
    pub fn new(threads: usize) -> Clocks {
        let own = |thread| (0..threads).map(|other| u32::from(other == thread)).collect();
        Clocks {
            seen: (0..threads).map(own).collect(),
            met: (0..threads).map(own).collect(),
        }
    }

    /// Returns the current time of a thread.
    #[inline]
    pub fn time(&self, thread: usize) -> u32 {
        self.seen[thread][thread]
    }

    pub fn stamp(&self, thread: usize) -> Stamp {
        Stamp {
            thread,
            time: self.time(thread),
            barriers: self.met[thread][thread],
        }
    }

    /// Returns whether a barrier or a release orders an access before `now`, or both are of the
    /// same core.
    pub fn ordered(&self, access: Stamp, now: Stamp) -> bool {
        access.thread / THREADS == now.thread / THREADS || self.seen[now.thread][access.thread] >= access.time
    }

    /// Returns whether a barrier separates the access from `now`. Both are of the same core.
    pub fn settled(&self, access: Stamp, now: Stamp) -> bool {
        let own = access.thread == now.thread;
        self.met[now.thread][access.thread] >= access.barriers + u32::from(own)
    }

    /// Returns whether one of the last accesses of the threads of `core` is concurrent with `now`,
    /// an access of another core.
    pub fn any_concurrent(&self, core: usize, times: &[u32; THREADS], now: Stamp) -> bool {
        let seen = &self.seen[now.thread][core * THREADS..];
        times.iter().zip(seen).any(|(time, seen)| time > seen)
    }

    /// Records a release by a thread. Returns the times of all accesses that the release orders
    /// before the accesses of an acquiring thread. Later accesses of the releasing thread are not
    /// included.
    pub fn release(&mut self, thread: usize) -> Vec<u32> {
        let seen = self.seen[thread].clone();
        self.seen[thread][thread] += 1;
        seen
    }

    /// Records that released accesses precede those of `thread`.
    pub fn acquire(&mut self, thread: usize, released: &[u32]) {
        take_later(&mut self.seen[thread], released);
    }

    /// Records that all accesses so far precede those of `thread`. Later accesses of other threads are
    /// not included.
    pub fn follow_all(&mut self, thread: usize) {
        for times in [&mut self.seen, &mut self.met] {
            let all: Vec<u32> = (0..times.len()).map(|other| times[other][other]).collect();
            times[thread] = all;
            for (other, row) in times.iter_mut().enumerate() {
                row[other] += 1;
            }
        }
    }

    /// Records that the accesses of these threads so far precede their later ones.
    pub fn meet(&mut self, threads: &[usize]) {
        for times in [&mut self.seen, &mut self.met] {
            let mut latest = vec![0; times.len()];
            for &thread in threads {
                take_later(&mut latest, &times[thread]);
            }
            for &thread in threads {
                times[thread].clone_from(&latest);
                times[thread][thread] += 1;
            }
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
        let first = clocks.stamp(a);
        assert!(!clocks.ordered(first, clocks.stamp(b)));
        assert!(!clocks.settled(first, clocks.stamp(a)));
        clocks.meet(&[a, b]);
        assert!(clocks.ordered(first, clocks.stamp(b)));
        assert!(clocks.settled(first, clocks.stamp(a)));
        assert!(!clocks.ordered(first, clocks.stamp(c)));
        let second = clocks.stamp(a);
        assert!(!clocks.ordered(second, clocks.stamp(b)));
        // The order is transitive.
        clocks.meet(&[b, c]);
        assert!(clocks.ordered(first, clocks.stamp(c)));
        assert!(!clocks.ordered(second, clocks.stamp(c)));
        clocks.follow_all(c);
        assert!(clocks.ordered(second, clocks.stamp(c)));
        assert!(!clocks.ordered(clocks.stamp(a), clocks.stamp(c)));
    }

    #[test]
    fn a_release_orders_the_accesses_before_it() {
        let (a, b) = (0, THREADS);
        let mut clocks = Clocks::new(2 * THREADS);
        let before = clocks.stamp(a);
        let released = clocks.release(a);
        let after = clocks.stamp(a);
        assert!(!clocks.ordered(before, clocks.stamp(b)));
        clocks.acquire(b, &released);
        assert!(clocks.ordered(before, clocks.stamp(b)));
        assert!(!clocks.ordered(after, clocks.stamp(b)));
        // It is no barrier.
        assert!(!clocks.settled(before, clocks.stamp(a)));
    }
}
