//! The load/store unit: the operations of each thread access the data cache in order; an operation
//! that misses repeats its lookup when its line has arrived.

use super::core::{Arriving, Core, Pipe};
use super::memory::{Request, Transaction, WAKE_UP};
use super::memory_op::{MemoryKind, MemoryOp};
use super::queues::next_in_turn;
use super::sink::Sink;
use crate::machine::THREADS;
use npu_mc::machine;
use npu_mc::raw::MemOp;

/// Cycles from issue to the cache lookup.
pub(super) const QUEUE_LAG: u64 = machine::QUEUE_LAG as u64;
/// Cycles from a lookup that hits to the issue of a dependent instruction.
const LOOK_TO_USE: u64 = MemOp::Load32.latency() as u64 - QUEUE_LAG;
/// Cycles from a lookup that misses to the controller.
const TO_CONTROLLER: u64 = machine::DATA_MISS_TO_CONTROLLER as u64;

/// Cycles from a fill until the controller sees the evicted line.
const EVICTION_TO_CONTROLLER: u64 = machine::EVICTION_TO_CONTROLLER as u64;

impl Pipe {
    /// Records the line that a load or store accesses.
    #[inline]
    pub(super) fn ask(&mut self, line: u32) {
        self.lines[self.asked % self.lines.len()] = line;
        self.asked = self.asked.wrapping_add(1);
    }

    /// Computes the cycle of the next lookup: that of the wake-up if an operation missed, otherwise
    /// that of the front of the queue.
    #[inline]
    pub(super) fn note_next_look(&mut self) {
        let wake = self.wakes.front().map_or(u64::MAX, |&wake| wake);
        let from = match self.queue.front() {
            Some(op) if self.replays.is_empty() => op.from,
            _ => u64::MAX,
        };
        self.look_from = wake.min(from);
    }
}

impl Core {
    /// Performs one cache lookup.
    #[inline]
    pub(super) fn look_at_cache<S: Sink>(&mut self, now: u64, sink: &mut S) -> bool {
        let mut candidates = 0u8;
        let mut queued = self.queued;
        while queued != 0 {
            let thread = queued.trailing_zeros();
            queued &= queued - 1;
            let looks = self.pipes[thread as usize].look_from <= now && !self.waits_for_room(thread as usize, now);
            candidates |= u8::from(looks) << thread;
        }
        if candidates == 0 {
            return false;
        }
        if self.updating == now {
            return true;
        }
        let thread = next_in_turn(candidates, self.memory_turn);
        self.memory_turn = thread;
        let index = usize::from(thread);
        let bit = 1u8 << thread;
        let pipe = &mut self.pipes[index];
        pipe.last_look = now;
        let replay = pipe.wakes.front().is_some_and(|&wake| wake <= now);
        let op = if replay {
            pipe.wakes.pop();
            pipe.replays.pop()
        } else {
            pipe.queue.pop()
        };
        let Some(op) = op else { return false };
        let misses = self.look(&op, replay, now, thread);
        let cached = matches!(op.kind, MemoryKind::Load | MemoryKind::Store);
        if cached && misses {
            self.counters.threads[index].data_misses += 1;
            let global = self.global(index);
            sink.data_miss(now, global, op.line);
            if op.kind == MemoryKind::Load {
                sink.load_missed(global, op.register, op.line);
            }
        } else if cached && !replay {
            self.counters.threads[index].data_hits += 1;
        }
        let pipe = &mut self.pipes[index];
        if misses {
            pipe.replays.push(op);
        } else if pipe.queue.is_empty() && pipe.replays.is_empty() {
            self.queued &= !bit;
        }
        pipe.note_next_look();
        true
    }

    /// Returns whether the next operation of a thread is a flush or a write to I/O for which the
    /// controller has no room.
    fn waits_for_room(&self, thread: usize, now: u64) -> bool {
        let pipe = &self.pipes[thread];
        let wakes = pipe.wakes.front().is_some_and(|&wake| wake <= now);
        let kind = pipe.queue.front().and_then(|op| match op.kind {
            MemoryKind::Flush => Some(Transaction::Flush),
            MemoryKind::IoWrite => Some(Transaction::Io),
            MemoryKind::Load | MemoryKind::Store | MemoryKind::Invalidate | MemoryKind::IoRead => None,
        });
        !wakes && kind.is_some_and(|kind| !self.controller.has_room_for(kind, now))
    }

    /// Performs the cache lookup of an operation; returns whether it has to be repeated.
    fn look(&mut self, op: &MemoryOp, replay: bool, now: u64, thread: u8) -> bool {
        let request = |kind: Transaction| Request::new(kind, op.line, 1 << thread, now + TO_CONTROLLER);
        match op.kind {
            MemoryKind::Load if !self.data.serves(op.line, false, replay) => {
                self.controller.request(request(Transaction::LoadMiss));
                return true;
            }
            MemoryKind::Store if !self.data.serves(op.line, true, replay) => {
                self.controller.request(request(Transaction::StoreMiss));
                return true;
            }
            MemoryKind::IoRead if !replay => {
                self.controller.request(request(Transaction::Io));
                return true;
            }
            MemoryKind::Load | MemoryKind::IoRead => {
                self.memory.push(Arriving {
                    ready: now + LOOK_TO_USE,
                    thread,
                    register: op.register,
                });
            }
            MemoryKind::Store => {}
            // The controller determines whether the line is present.
            MemoryKind::Flush => self.controller.request(request(Transaction::Flush)),
            MemoryKind::Invalidate => {
                if self.data.holds(op.line) {
                    self.controller.request(request(Transaction::Invalidate));
                    return true;
                }
            }
            MemoryKind::IoWrite => {
                let mut request = request(Transaction::Io);
                request.threads = 0;
                self.controller.request(request);
            }
        }
        false
    }

    /// Applies the effects of a completed transaction.
    pub(super) fn transaction_ended(&mut self, request: Request, now: u64) {
        let again = now + WAKE_UP;
        match request.kind {
            Transaction::Replacement | Transaction::Flush => {}
            Transaction::Instruction => self.line_came(request, now),
            Transaction::LoadMiss | Transaction::StoreMiss => {
                if !request.short {
                    self.updating = now;
                    if let Some(evicted) = self.data.fill(request.line, request.owned) {
                        let at = now + EVICTION_TO_CONTROLLER;
                        let mut request = Request::new(Transaction::Replacement, evicted.line, 0, at);
                        (request.way, request.owned) = (evicted.way, evicted.owned);
                        self.controller.request(request);
                    }
                }
                self.wake_up(request.threads, again);
            }
            Transaction::Invalidate => {
                if !request.short {
                    self.data.empty(request.line, request.way);
                    self.updating = now;
                }
                self.go_on(request.threads, now);
            }
            Transaction::Io => self.wake_up(request.threads, again),
        }
    }

    /// Completes operations that need no second lookup.
    fn go_on(&mut self, threads: u8, now: u64) {
        for thread in (0..THREADS).filter(|thread| threads >> thread & 1 != 0) {
            let pipe = &mut self.pipes[thread];
            pipe.replays.pop();
            pipe.last_look = now;
            pipe.note_next_look();
            if pipe.queue.is_empty() && pipe.replays.is_empty() {
                self.queued &= !(1 << thread);
            }
        }
    }

    fn wake_up(&mut self, threads: u8, at: u64) {
        let mut threads = threads;
        while threads != 0 {
            let pipe = &mut self.pipes[threads.trailing_zeros() as usize];
            threads &= threads - 1;
            if pipe.replays.len() > pipe.wakes.len() {
                pipe.wakes.push(at);
                pipe.note_next_look();
            }
        }
    }
}
