//! The order in which the memory tile performs its accesses (`docs/machine/several-cores.md`).

use super::request::{MemoryAccess, Request};
use npu_mc::machine;
use std::collections::VecDeque;

/// Reads and writes that wait for memory. Memory performs one access at a time. If both a read and a
/// write wait, it alternates.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryTile {
    /// The delay of memory.
    delay: u64,
    reads: VecDeque<(MemoryAccess, Request)>,
    writes: VecDeque<(MemoryAccess, Request)>,
    /// The cycle in which memory is free again.
    free_at: u64,
    /// Whether the last access was a read.
    has_read: bool,
    /// The last cycle that [`MemoryTile::wake_at`] has returned.
    woken_at: u64,
}

impl MemoryTile {
    pub fn new(delay: u32) -> MemoryTile {
        MemoryTile {
            delay: delay.into(),
            ..MemoryTile::default()
        }
    }

    /// Returns the delay of memory.
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// Adds a request that has arrived.
    pub fn add(&mut self, access: MemoryAccess, request: Request) {
        let queue = match access {
            MemoryAccess::Write => &mut self.writes,
            MemoryAccess::Data { .. } | MemoryAccess::Instructions => &mut self.reads,
        };
        queue.push_back((access, request));
    }

    /// Returns the access that memory performs from cycle `now` on, if it is free and one waits.
    pub fn next(&mut self, now: u64) -> Option<(MemoryAccess, Request)> {
        if self.free_at > now {
            return None;
        }
        let reads = match (self.reads.is_empty(), self.writes.is_empty()) {
            (false, false) => !self.has_read,
            (no_reads, _) => !no_reads,
        };
        let (queue, cycles) = match reads {
            true => (&mut self.reads, machine::MEMORY_READ),
            false => (&mut self.writes, machine::MEMORY_WRITE),
        };
        let next = queue.pop_front()?;
        self.has_read = reads;
        self.free_at = now + u64::from(cycles) + self.delay;
        Some(next)
    }

    /// Returns the cycle in which memory is free for a request that waits, once for each cycle.
    pub fn wake_at(&mut self) -> Option<u64> {
        let is_idle = self.reads.is_empty() && self.writes.is_empty();
        if is_idle || self.woken_at == self.free_at {
            return None;
        }
        self.woken_at = self.free_at;
        Some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Kind;
    use super::super::trip::Trip;
    use super::*;

    #[test]
    fn reads_and_writes_alternate() {
        let mut memory = MemoryTile::new(20);
        let (read, write) = (MemoryAccess::Data { own: false }, MemoryAccess::Write);
        for (line, access) in [(1, read), (2, read), (3, write), (4, write), (5, read)] {
            let request = Request {
                core: 0,
                line,
                kind: Kind::AtMemory(access),
                trip: Trip::new(0),
            };
            memory.add(access, request);
        }
        let (mut order, mut now) = (Vec::new(), 100);
        while let Some((_, request)) = memory.next(now) {
            order.push((now, request.line));
            assert!(memory.next(now).is_none());
            now = memory.wake_at().unwrap_or(u64::MAX);
            assert_eq!(memory.wake_at(), None);
        }
        assert_eq!(order, [(100, 1), (125, 3), (148, 2), (173, 4), (196, 5)]);
        assert!(memory.next(1000).is_none());
    }
}
