//! Runs of one thread: the fast interpreter, which falls back on the definition.

use crate::exec::Effect;
use crate::fast::{self, Cached, Exit, Watched};
use crate::machine::{Machine, Stop, THREADS};
use crate::memory::MemoryFull;
use crate::rest::Status;
use crate::step::{Progress, Step};
use crate::trace::TraceEvent;

impl Machine {
    /// Runs thread `number`, and no other, for at most `limit` instructions. At a barrier that does not open it stops with
    /// [`HangReason::Barrier`](crate::HangReason::Barrier), and can be run on when a run of the others has opened it.
    ///
    /// A stop address under the PC stops the run before anything is executed, except directly after a stop at that same
    /// address: then the run goes on from it. The state of the thread is complete whatever the reason to stop.
    pub fn run(&mut self, number: usize, limit: u64) -> Stop {
        if number >= self.threads.len() {
            return Stop::NoSuchThread;
        }
        self.cores[number / THREADS].enabled |= 1 << (number % THREADS);
        self.run_on(number, limit)
    }

    /// [`Machine::run`] for a thread that exists, whether enabled or not.
    pub(crate) fn run_on(&mut self, number: usize, limit: u64) -> Stop {
        let mut left = limit;
        let mut step_over =
            self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions));
        loop {
            self.code.update(&mut self.memory);
            if left == 0 {
                return Stop::StepLimit;
            }
            if self.threads[number].waiting.is_some() {
                return self.waits(number);
            }
            let exit = if step_over {
                Exit::Slow
            } else {
                match self.run_fast(number, &mut left) {
                    Ok(exit) => exit,
                    Err(full) => {
                        return Stop::MemoryFull {
                            pc: self.threads[number].pc,
                            address: full.address,
                        };
                    }
                }
            };
            step_over = false;
            match exit {
                Exit::Budget | Exit::NotReady => {}
                Exit::Break => return self.stopped(number),
                Exit::Slow => {
                    left -= 1;
                    match self.execute(number) {
                        Ok(step) => {
                            if let Some(stop) = self.stop_after(number, &step) {
                                return stop;
                            }
                        }
                        Err(stop) => return stop,
                    }
                }
            }
        }
    }

    /// Like [`Machine::run`], with a call of `trace` after every instruction. Much slower.
    pub fn run_traced(&mut self, number: usize, limit: u64, trace: &mut dyn FnMut(&TraceEvent<'_>)) -> Stop {
        if number >= self.threads.len() {
            return Stop::NoSuchThread;
        }
        self.cores[number / THREADS].enabled |= 1 << (number % THREADS);
        self.trace_on(number, limit, trace)
    }

    /// [`Machine::run_traced`] for a thread that exists, whether enabled or not.
    pub(crate) fn trace_on(&mut self, number: usize, limit: u64, trace: &mut dyn FnMut(&TraceEvent<'_>)) -> Stop {
        let mut step_over =
            self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions));
        for _ in 0..limit {
            if self.threads[number].waiting.is_some() {
                return self.waits(number);
            }
            let pc = self.threads[number].pc;
            let mut here = self.code.breakpoints().range(pc & !3..=pc | 3);
            if !step_over && here.next().is_some() {
                return self.stopped(number);
            }
            step_over = false;
            let word = self.word_at(pc);
            let (effect, stop) = match self.execute(number) {
                Ok(step) => (step.effect, self.stop_after(number, &step)),
                Err(stop) => (Effect::default(), Some(stop)),
            };
            trace(&TraceEvent {
                thread: number,
                pc,
                word,
                effect,
                state: &self.threads[number],
            });
            if let Some(stop) = stop {
                return stop;
            }
        }
        Stop::StepLimit
    }

    /// Why a run of one thread ends with that step, if it does.
    fn stop_after(&self, number: usize, step: &Step) -> Option<Stop> {
        match step.progress {
            Progress::Next | Progress::Taken | Progress::Trap(_) | Progress::Opens => None,
            Progress::Waits => Some(self.waits(number)),
            Progress::Ended(status) => Some(Stop::Ended { status }),
            Progress::Hang(reason) => Some(Stop::Hang { pc: step.pc, reason }),
        }
    }

    /// Whether the thread stands at the stop address that stopped its last run, which a new run passes over.
    pub(crate) fn takes_over_stop(&mut self, number: usize) -> bool {
        self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions))
    }

    pub(crate) fn stopped(&mut self, number: usize) -> Stop {
        let thread = &self.threads[number];
        self.stopped_at[number] = Some((thread.pc, thread.instructions));
        Stop::Breakpoint { pc: thread.pc }
    }

    /// Executes one instruction of a thread that exists, if it is a common one: gives whether it was a taken branch. `None` when
    /// nothing was done and [`Machine::step`] has to. Stop addresses do not count.
    ///
    /// The predecoded code must belong to the memory of the machine, as after [`Machine::match_code`].
    #[inline]
    pub(crate) fn step_common(&mut self, number: usize) -> Option<bool> {
        let thread = &mut self.threads[number];
        if thread.waiting.is_some() || thread.rest.is_some() {
            return None;
        }
        // A taken branch sets it.
        let before = thread.last_branch.take();
        let mut left = 1;
        let ran = self.run_fast(number, &mut left);
        let thread = &mut self.threads[number];
        let taken = thread.last_branch.is_some();
        if !taken {
            thread.last_branch = before;
        }
        if ran.is_err() || left != 0 {
            return None;
        }
        if self.memory.code_written() {
            self.code.update(&mut self.memory);
        }
        Some(taken)
    }

    /// Executes common instructions of a thread that exists, `count` at most and none behind one that is not common; gives how many. As with
    /// [`Machine::step_common`], stop addresses do not count, and a store to code is to be the last of them.
    #[inline]
    pub(crate) fn run_common(&mut self, number: usize, count: u64) -> u64 {
        let mut left = count;
        while left != 0 {
            let before = left;
            let thread = &self.threads[number];
            if thread.waiting.is_some() || thread.rest.is_some() {
                break;
            }
            if self.run_fast(number, &mut left).is_err() || left == before {
                break;
            }
        }
        if self.memory.code_written() {
            self.code.update(&mut self.memory);
        }
        count - left
    }

    /// Brings predecoded code in line with memory that was changed from outside.
    pub(crate) fn match_code(&mut self) {
        self.code.update(&mut self.memory);
    }

    /// Different whenever a word that is predecoded may have changed, or the stop addresses of a page with such words.
    #[inline]
    pub(crate) fn code_generation(&self) -> u64 {
        self.code.generation()
    }

    /// Runs predecoded operations until one needs something else.
    fn run_fast(&mut self, number: usize, left: &mut u64) -> Result<Exit, MemoryFull> {
        let thread = &mut self.threads[number];
        let core = number / THREADS;
        let shared = &mut self.cores[core];
        let index = self.code.prepare(thread.pc, &mut self.memory)?;
        let Some(page) = self.code.page(index) else {
            // `prepare` has just made it.
            return Ok(Exit::Slow);
        };
        let budget = (*left).min(thread.watch.horizon());
        let mut rest = budget;
        let watching = thread.watch.active();
        let watch = &thread.watch;
        if watch.late.is_some() || watch.candidate.is_some() || watching && watch.mask_matters() {
            // Results are kept back or may be next, or masked operations read `rm` without naming it.
            return Ok(Exit::Slow);
        }
        let watched = Watched {
            unsettled: thread.watch.unsettled(),
            undriven: thread.watch.undriven_scalars(),
            memory: thread.watch.memory(),
        };
        let code = &self.code;
        let exit = if let Some(caches) = &mut self.caches {
            let port = Cached {
                memory: &mut self.memory,
                caches,
                core,
                write_through: shared.mode.write_through,
            };
            if watching {
                fast::run::<true, _>(code, page, thread, shared, port, watched, &mut rest)
            } else {
                fast::run::<false, _>(code, page, thread, shared, port, watched, &mut rest)
            }
        } else {
            #[cfg(feature = "jit")]
            let port = crate::jit::Translating {
                memory: &mut self.memory,
                jit: &mut self.jit,
            };
            #[cfg(not(feature = "jit"))]
            let port = &mut self.memory;
            if watching {
                fast::run::<true, _>(code, page, thread, shared, port, watched, &mut rest)
            } else {
                fast::run::<false, _>(code, page, thread, shared, port, watched, &mut rest)
            }
        };
        let executed = budget - rest;
        *left -= executed;
        self.account(number, executed);
        Ok(exit)
    }

    /// Advances the clocks.
    pub(crate) fn account(&mut self, number: usize, executed: u64) {
        let thread = &mut self.threads[number];
        let core = &mut self.cores[number / THREADS];
        thread.instructions += executed;
        thread.watch.advance(executed);
        core.clock += executed;
        if matches!(thread.status, Status::RUNNING | Status::BARRIER) {
            core.kernel_clock += executed;
        }
    }
}
