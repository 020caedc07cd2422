//! Serialization of the pipeline state to words that do not depend on the absolute time. A
//! recording is found by these words, and they restore the pipeline to the beginning of a
//! recording.
//!
//! One function for each part both writes and reads, so that both agree. The words exclude state
//! without effect on the future: entries of an abandoned path, and times that nothing reads any
//! more. They also exclude state that is the same in everything that can be recorded, which is the
//! condition of [`Core::is_calm`].

use super::core::{Arriving, Core, Fetched, HORIZON, InFlight, Pipe, Resolving};
use super::decode::{NO_REGISTER, Registers};
use super::memory_op::{MemoryKind, MemoryOp};
use super::queues::Ring;
use super::report::Stall;
use crate::machine::THREADS;

/// The number of cycles after which the last lookup of a thread in the data cache is irrelevant.
const LONG_AGO: u64 = HORIZON;

/// A pass over the state, which either writes it to words or reads it from words.
trait Pass {
    /// Whether the pass replaces the state.
    const READS: bool;

    /// Passes a word; returns the value of the state after the pass.
    fn word(&mut self, word: u64) -> u64;

    /// The cycle from which times are counted.
    fn now(&self) -> u64;

    fn time(&mut self, time: &mut u64) {
        *time = self.word(time.wrapping_sub(self.now())).wrapping_add(self.now());
    }

    fn byte(&mut self, byte: &mut u8) {
        *byte = self.word(u64::from(*byte)) as u8;
    }

    fn stall(&mut self, stall: &mut Stall) {
        let number = self.word(*stall as u64) as usize;
        *stall = Stall::ALL.get(number).copied().unwrap_or(*stall);
    }

    /// Passes a set of cycles modulo [`HORIZON`].
    fn cycles(&mut self, set: &mut u64) {
        let turned = (self.now() % HORIZON) as u32;
        *set = self.word(set.rotate_right(turned)).rotate_left(turned);
    }

    fn ring<T: Copy, const N: usize>(
        &mut self,
        ring: &mut Ring<T, N>,
        filler: T,
        mut entry: impl FnMut(&mut Self, &mut T),
    ) {
        let length = self.word(ring.len() as u64);
        if Self::READS {
            ring.clear();
            for _ in 0..length {
                let mut read = filler;
                entry(self, &mut read);
                ring.push(read);
            }
        } else {
            ring.join(|written| {
                entry(self, written);
                false
            });
        }
    }
}

struct Writer<'a> {
    now: u64,
    words: &'a mut Vec<u64>,
}

impl Pass for Writer<'_> {
    const READS: bool = false;

    #[inline]
    fn word(&mut self, word: u64) -> u64 {
        self.words.push(word);
        word
    }

    fn now(&self) -> u64 {
        self.now
    }
}

struct Reader<'a> {
    now: u64,
    words: std::slice::Iter<'a, u64>,
}

impl Pass for Reader<'_> {
    const READS: bool = true;

    #[inline]
    fn word(&mut self, word: u64) -> u64 {
        self.words.next().copied().unwrap_or(word)
    }

    fn now(&self) -> u64 {
        self.now
    }
}

fn arriving<P: Pass>(pass: &mut P, result: &mut Arriving) {
    let what = pass.word(u64::from(result.thread) << 8 | u64::from(result.register));
    (result.thread, result.register) = ((what >> 8) as u8, what as u8);
    pass.time(&mut result.ready);
}

impl Pipe {
    /// Passes the state of a thread, except the parts in the sets of its core.
    fn pass<P: Pass>(&mut self, pass: &mut P, available: bool, operands: bool, wrong_path: bool, issued: u64) {
        self.fetch_pc = pass.word(self.fetch_pc.into()) as u32;
        if wrong_path {
            self.branch_target = pass.word(self.branch_target.into()) as u32;
        }
        let none = Fetched {
            pc: 0,
            word: 0,
            fetched: 0,
            late: Stall::Fetch,
        };
        pass.ring(&mut self.buffer, none, |pass, entry| {
            let what = pass.word(u64::from(entry.pc) << 32 | u64::from(entry.word));
            (entry.pc, entry.word) = ((what >> 32) as u32, what as u32);
            pass.time(&mut entry.fetched);
            pass.stall(&mut entry.late);
        });
        self.arrived = pass.word(self.arrived.into()) as u32;
        self.busy =
            Registers::from(pass.word(self.busy as u64)) | Registers::from(pass.word((self.busy >> 64) as u64)) << 64;
        self.pass_marks(pass, issued);
        pass.ring(&mut self.queue, MemoryOp::NONE, |pass, op| {
            let store = pass.word(u64::from(op.kind == MemoryKind::Store) << 8 | u64::from(op.register));
            op.kind = if store >> 8 == 0 {
                MemoryKind::Load
            } else {
                MemoryKind::Store
            };
            op.register = store as u8;
            pass.time(&mut op.from);
        });
        pass.time(&mut self.since);
        if available {
            pass.time(&mut self.available);
        }
        if operands {
            pass.time(&mut self.operands);
            if self.operands != self.available {
                pass.stall(&mut self.producer);
                pass.byte(&mut self.awaited);
            }
            pass.stall(&mut self.hindrance);
        }
        pass.stall(&mut self.starved);
        self.last_look = self.last_look.max(pass.now().saturating_sub(LONG_AGO));
        pass.time(&mut self.last_look);
        let ended = pass.word(self.ended.is_some().into()) != 0;
        debug_assert_eq!(ended, self.ended.is_some(), "only a write of a status ends a thread");
        if P::READS {
            // The lines are not serialized: they are the last ones that the thread accessed.
            let length = self.queue.len();
            let (mut place, lines) = (self.asked.wrapping_sub(length), &self.lines);
            self.queue.join(|op| {
                op.line = lines[place % lines.len()];
                place = place.wrapping_add(1);
                false
            });
            self.note_next_look();
        }
    }

    /// Passes the last issues that can still be treated as killed by a branch that issues in cycle
    /// `issued` or later.
    fn pass_marks<P: Pass>(&mut self, pass: &mut P, issued: u64) {
        let mut marks = [(0, NO_REGISTER); 4];
        let mut count = 0;
        if !P::READS {
            for k in 0..self.marked.len() {
                let mark = self.marked[(self.marks + k) % self.marked.len()];
                if mark.1 != NO_REGISTER && mark.0 + 1 >= issued {
                    marks[count] = mark;
                    count += 1;
                }
            }
        }
        count = (pass.word(count as u64) as usize).min(marks.len());
        for (cycle, register) in marks.iter_mut().take(count) {
            pass.time(cycle);
            pass.byte(register);
        }
        (self.marked, self.marks) = (marks, count);
    }
}

impl Core {
    fn pass<P: Pass>(&mut self, pass: &mut P) {
        for set in [
            &mut self.enabled,
            &mut self.available,
            &mut self.operands,
            &mut self.wrong_path,
            &mut self.full,
            &mut self.queued,
            &mut self.issue_turn,
            &mut self.fetch_turn,
            &mut self.memory_turn,
        ] {
            pass.byte(set);
        }
        for results in [&mut self.integer, &mut self.scratchpad, &mut self.memory] {
            pass.ring(results, Arriving::NONE, arriving);
        }
        pass.cycles(&mut self.float_slots);
        pass.cycles(&mut self.scratchpad_busy);
        pass.cycles(&mut self.float_pending);
        // Results in the order of their arrival.
        let mut pending = self.float_pending.rotate_right((pass.now() % HORIZON) as u32);
        while pending != 0 {
            let at = (pass.now() + u64::from(pending.trailing_zeros())) % HORIZON;
            arriving(pass, &mut self.float[at as usize]);
            pending &= pending - 1;
        }
        if !P::READS {
            // Instructions that were fetched on an abandoned path have no effect.
            let pipes = &self.pipes;
            self.decoding
                .remove(|fetched| pipes[usize::from(fetched.thread)].path != fetched.path);
        }
        let none = InFlight {
            arrival: 0,
            thread: 0,
            path: 0,
        };
        let pipes = &self.pipes;
        pass.ring(&mut self.decoding, none, |pass, fetched| {
            pass.byte(&mut fetched.thread);
            pass.time(&mut fetched.arrival);
            fetched.path = pipes[usize::from(fetched.thread) % THREADS].path;
        });
        let none = Resolving {
            at: 0,
            thread: 0,
            issued: 0,
        };
        pass.ring(&mut self.branches, none, |pass, branch| {
            pass.byte(&mut branch.thread);
            pass.time(&mut branch.at);
            pass.time(&mut branch.issued);
        });
        for thread in 0..THREADS {
            let has = |set: u8| set >> thread & 1 != 0;
            if !has(self.enabled) {
                continue;
            }
            let mut issued = pass.now();
            self.branches.join(|branch| {
                let found = usize::from(branch.thread) == thread;
                if found {
                    issued = branch.issued;
                }
                found
            });
            let [available, operands, wrong_path] = [self.available, self.operands, self.wrong_path].map(has);
            self.pipes[thread].pass(pass, available, operands, wrong_path, issued);
            if P::READS
                && available
                && let Some(front) = self.pipes[thread].buffer.front()
            {
                self.pipes[thread].front = *self.decoder.get(front.pc, front.word);
            }
        }
    }

    /// Writes the state at the beginning of cycle [`Core::now`]. The pipeline has to be calm.
    pub(super) fn write_state(&mut self, words: &mut Vec<u64>) {
        words.clear();
        self.pass(&mut Writer { now: self.now, words });
    }

    /// Restores a state that was written, at the beginning of cycle [`Core::now`]. The pipeline has
    /// to be calm, with the same threads enabled.
    pub(super) fn read_state(&mut self, words: &[u64]) {
        let now = self.now;
        self.pass(&mut Reader {
            now,
            words: words.iter(),
        });
    }

    /// Returns whether the serialized state determines the future: no pending miss, no barrier, no
    /// I/O.
    pub(super) fn is_calm(&self) -> bool {
        let others = self.at_barrier | self.held | self.arriving | self.sent | self.let_go | self.leaving;
        if others | self.noticing | self.missing != 0 || self.first.is_none() || !self.controller.is_idle() {
            return false;
        }
        let served =
            |op: &MemoryOp| matches!(op.kind, MemoryKind::Load | MemoryKind::Store) && self.data.holds(op.line);
        let calm = |pipe: &Pipe| {
            let queue = (0..pipe.queue.len()).filter_map(|k| pipe.queue.get(k));
            pipe.replays.is_empty() && pipe.wakes.is_empty() && !pipe.step_over && queue.into_iter().all(served)
        };
        let enabled = |thread: usize| self.enabled >> thread & 1 != 0;
        // Threads that do not run can have results in flight.
        let own = |ring: &Ring<Arriving, 64>| {
            (0..ring.len())
                .filter_map(|k| ring.get(k))
                .all(|r| enabled(r.thread.into()))
        };
        (0..THREADS).all(|thread| !enabled(thread) || calm(&self.pipes[thread]))
            && self.available & !self.enabled == 0
            && self.queued & !self.enabled == 0
            && self.wrong_path & !self.enabled == 0
            && self.float_is_own()
            && [&self.integer, &self.scratchpad, &self.memory].into_iter().all(own)
    }

    /// Returns whether all float results in flight belong to threads that run.
    fn float_is_own(&self) -> bool {
        let results = self.float.iter().enumerate();
        results
            .filter(|(at, _)| self.float_pending >> at & 1 != 0)
            .all(|(_, result)| self.enabled >> result.thread & 1 != 0)
    }
}
