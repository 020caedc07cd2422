//! Barriers (`docs/machine/control.md`): when the arrival of a thread counts, and when released
//! threads issue again.
//!
//! A barrier instruction issues like any other, and its thread stops. The arrival goes to the
//! synchronization master when no operation of the thread is pending; the core checks this from
//! some cycles after issue on. The master accepts one arrival at a time. With several cores each
//! tile has a master, which the upper bits of an id select, and arrivals and releases are messages
//! of the network (`docs/machine/several-cores.md`).

use super::Timing;
use super::core::{Core, Pipe};
use super::network::Network;
use super::report::Stall;
use super::resource::Resource;
use super::sink::Sink;
use crate::barrier::ID_MASK;
use crate::machine::{Machine, THREADS};
use npu_mc::machine;
use npu_mc::raw::{CtrOp, RawInst};

/// Cycles from the issue of a barrier to the first cycle in which its thread can be found at rest.
const TO_ARRIVAL: u64 = machine::BARRIER_TO_ARRIVAL as u64;
/// Cycles from an accepted arrival to the next one.
const ARRIVAL_BUSY: u64 = machine::BARRIER_ARRIVAL_BUSY as u64;
/// Cycles from the last arrival to the issue of the next instruction.
const RELEASE: u64 = machine::BARRIER_RELEASE as u64;
/// Cycles from the last arrival to the first release that a master sends to a tile.
const TO_RELEASE: u64 = machine::SYNC_TO_RELEASE as u64;
/// Cycles after the cache lookup of an operation during which its thread counts as having no
/// pending operation.
const LOOK_TO_REST: u64 = machine::LOOK_TO_REST as u64;

/// The number of tiles that can have a synchronization master.
const MASTERS: usize = (machine::BARRIER_IDS / machine::BARRIER_COUNTERS) as usize;

/// The synchronization masters: one, or one in each tile.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncMasters {
    masters: [Resource; MASTERS],
    /// The number of the last barrier that opened.
    opened: u32,
}

impl SyncMasters {
    /// Sends an arrival of `core` in cycle `now` to the master of `tile`; returns the cycle in
    /// which it counts.
    fn take(&mut self, core: usize, tile: u32, now: u64, network: &mut Network) -> u64 {
        let sent = if network.shared {
            network.arrival(core, tile, now)
        } else {
            now
        };
        self.masters[tile as usize % MASTERS].take(sent, ARRIVAL_BUSY, now)
    }
}

/// Returns the tile of the master for the barrier at which a thread waits or which has released it.
/// A one-core system has one master.
fn master_of(machine: &Machine, number: usize) -> u32 {
    if machine.cores() == 1 {
        return 0;
    }
    let thread = machine.thread(number);
    let id = match thread.waiting {
        Some((id, _)) => id,
        // The thread is directly after the barrier, and has executed nothing since.
        None => {
            let before = machine.word_at(thread.pc().wrapping_sub(machine::INSTRUCTION_SIZE));
            if let RawInst::Ctr(inst) = npu_mc::split(before)
                && inst.op == CtrOp::Barrier
            {
                thread.scalar(inst.reg0)
            } else {
                // A store has changed the code since, and any master is acceptable.
                0
            }
        }
    };
    (id & ID_MASK) / machine::BARRIER_COUNTERS
}

impl Pipe {
    /// Returns whether no operation of a thread at a barrier is pending in cycle `now`. An
    /// operation that misses is in no queue for one cycle, before its thread waits for the line.
    fn is_at_rest(&self, now: u64) -> bool {
        let looked = self.last_look + LOOK_TO_REST;
        let waits = !self.replays.is_empty() && now != looked;
        self.busy == 0 && self.queue.is_empty() && !waits && now >= self.arrival_from.max(looked)
    }
}

impl Core {
    /// Records that a thread issued a barrier.
    pub(super) fn come_to_barrier(&mut self, thread: usize, now: u64) {
        self.at_barrier |= 1 << thread;
        self.arriving |= 1 << thread;
        let pipe = &mut self.pipes[thread];
        pipe.arrival_from = now + TO_ARRIVAL;
        pipe.arrival = u64::MAX;
    }

    /// Sends the arrivals of threads that are at a barrier without pending operations.
    pub(super) fn send_arrivals(&mut self, now: u64) {
        let mut threads = self.arriving;
        while threads != 0 {
            let thread = threads.trailing_zeros() as usize;
            threads &= threads - 1;
            if self.pipes[thread].is_at_rest(now) {
                self.arriving &= !(1 << thread);
                self.sent |= 1 << thread;
            }
        }
    }

    /// Returns the next cycle in which a thread at a barrier can be found at rest without another
    /// event.
    pub(super) fn next_arrival(&self, now: u64) -> u64 {
        let mut next = u64::MAX;
        let mut threads = self.arriving;
        while threads != 0 {
            let pipe = &self.pipes[threads.trailing_zeros() as usize];
            threads &= threads - 1;
            let at = pipe.arrival_from.max(pipe.last_look + LOOK_TO_REST);
            if pipe.busy == 0 && pipe.queue.is_empty() && at > now {
                next = next.min(at);
            }
        }
        next
    }

    /// Returns the threads that barrier number `barrier` has released and that have not left it.
    fn let_go_by(&self, barrier: u32) -> u8 {
        let of_it = |&thread: &usize| self.let_go >> thread & 1 != 0 && self.pipes[thread].barrier == barrier;
        (0..THREADS).filter(of_it).fold(0, |set, thread| set | 1 << thread)
    }

    /// Lets threads leave a barrier whose release takes effect in this cycle.
    pub(super) fn leave_barrier<S: Sink>(&mut self, now: u64, sink: &mut S) {
        for thread in 0..THREADS {
            let global = self.global(thread);
            let pipe = &mut self.pipes[thread];
            if pipe.release <= now {
                pipe.release = u64::MAX;
                self.leaving &= !(1 << thread);
                self.at_barrier &= !(1 << thread);
                self.counters.threads[thread].stalls[Stall::Barrier as usize] += now.saturating_sub(pipe.since);
                if now > pipe.since {
                    sink.left_barrier(global, pipe.since, now);
                }
                pipe.since = now.max(pipe.since);
            }
        }
    }
}

impl Timing {
    /// Accepts the arrivals that core number `core` sent in cycle `now`, and records the threads
    /// that a barrier releases.
    pub(super) fn follow_barriers<S: Sink>(&mut self, core: usize, now: u64, machine: &Machine, sink: &mut S) {
        let sent = std::mem::take(&mut self.cores[core].sent);
        for thread in (0..THREADS).filter(|thread| sent >> thread & 1 != 0) {
            let tile = master_of(machine, self.cores[core].global(thread));
            let pipe = &mut self.cores[core].pipes[thread];
            pipe.arrival = self.sync.take(core, tile, now, &mut self.network);
            let barrier = pipe.barrier;
            self.release(barrier, now, machine, sink);
        }
        if std::mem::take(&mut self.cores[core].opened) {
            self.sync.opened += 1;
            let barrier = self.sync.opened;
            for core in &mut self.cores {
                for thread in 0..THREADS {
                    let bit = 1u8 << thread;
                    let stands = core.at_barrier & !core.leaving & !core.let_go & bit != 0;
                    if stands && !machine.thread(core.global(thread)).is_waiting() {
                        core.let_go |= bit;
                        core.pipes[thread].barrier = barrier;
                    }
                }
            }
            self.release(barrier, now, machine, sink);
        }
    }

    /// Sets the release cycle of the threads of barrier number `barrier`, if the arrival cycles of
    /// all of them are known.
    fn release<S: Sink>(&mut self, barrier: u32, now: u64, machine: &Machine, sink: &mut S) {
        let arrivals = |core: &Core| {
            let threads = core.let_go_by(barrier);
            let arrivals = (0..THREADS)
                .filter(|thread| threads >> thread & 1 != 0)
                .map(|thread| (core.pipes[thread].arrival, core.global(thread)));
            arrivals.max()
        };
        let Some((last, last_thread)) = self.cores.iter().filter_map(arrivals).max() else {
            return;
        };
        if last == u64::MAX {
            return;
        }
        let tile = master_of(machine, last_thread);
        for core in &mut self.cores {
            let threads = core.let_go_by(barrier);
            if threads == 0 {
                continue;
            }
            let release = if self.network.shared {
                self.network.reaches(tile, core.number, last + TO_RELEASE, now)
            } else {
                last + RELEASE
            };
            for thread in (0..THREADS).filter(|thread| threads >> thread & 1 != 0) {
                core.pipes[thread].release = release;
                sink.barrier_opens(core.global(thread), last_thread);
            }
            core.let_go &= !threads;
            core.leaving |= threads;
            // The core may have skipped past the release.
            core.now = core.now.min(release).max(now + 1);
        }
    }
}
