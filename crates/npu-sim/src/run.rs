//! Runs of one thread: the fast interpreter, with the definition as fallback.

use crate::exec::Effect;
use crate::fast::{self, Cached, Exit, Port, Tracked, Watched};
use crate::machine::{Machine, Stop, THREADS};
use crate::memory::MemoryFull;
use crate::predecode::{CodeCache, PageOps};
use crate::rest::Status;
use crate::shared::Shared;
use crate::step::{Progress, Step};
use crate::thread::Thread;
use crate::trace::TraceEvent;

/// A run of the fast interpreter, apart from its thread and its port.
struct Fast<'a> {
    code: &'a CodeCache,
    page: &'a PageOps,
    watching: bool,
    watched: Watched,
    left: &'a mut u64,
}

impl Fast<'_> {
    #[inline(always)]
    fn with<P: Port>(self, thread: &mut Thread, shared: &mut Shared, port: P) -> Exit {
        let Fast {
            code,
            page,
            watching,
            watched,
            left,
        } = self;
        if watching {
            fast::run::<true, _>(code, page, thread, shared, port, watched, left)
        } else {
            fast::run::<false, _>(code, page, thread, shared, port, watched, left)
        }
    }
}

impl Machine {
    /// Runs thread `number` alone for at most `limit` instructions. It stops with
    /// [`HangReason::Barrier`](crate::HangReason::Barrier) at a barrier that does not open, and can
    /// be continued after a run of other threads has opened the barrier.
    ///
    /// A stop address at the PC stops the run before the instruction executes, unless the previous
    /// run stopped at the same address. The state of the thread is complete after every stop.
    pub fn run(&mut self, number: usize, limit: u64) -> Stop {
        if number >= self.threads.len() {
            return Stop::NoSuchThread;
        }
        self.cores[number / THREADS].enabled |= 1 << (number % THREADS);
        self.run_on(number, limit)
    }

    /// Implements [`Machine::run`] for a thread that exists, whether enabled or not.
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

    /// Runs like [`Machine::run`] and calls `trace` after every instruction. This is much slower.
    pub fn run_traced(&mut self, number: usize, limit: u64, trace: &mut dyn FnMut(&TraceEvent<'_>)) -> Stop {
        if number >= self.threads.len() {
            return Stop::NoSuchThread;
        }
        self.cores[number / THREADS].enabled |= 1 << (number % THREADS);
        self.trace_on(number, limit, trace)
    }

    /// Implements [`Machine::run_traced`] for a thread that exists, whether enabled or not.
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

    /// Returns the reason why a run of one thread ends after `step`, if it does.
    fn stop_after(&self, number: usize, step: &Step) -> Option<Stop> {
        match step.progress {
            Progress::Next | Progress::Taken | Progress::Trap(_) | Progress::Opens => None,
            Progress::Waits => Some(self.waits(number)),
            Progress::Ended(status) => Some(Stop::Ended { status }),
            Progress::Hang(reason) => Some(Stop::Hang { pc: step.pc, reason }),
        }
    }

    /// Returns whether the thread is at the stop address that stopped its last run; a new run then
    /// steps over it.
    pub(crate) fn takes_over_stop(&mut self, number: usize) -> bool {
        self.stopped_at[number].take() == Some((self.threads[number].pc, self.threads[number].instructions))
    }

    pub(crate) fn stopped(&mut self, number: usize) -> Stop {
        let thread = &self.threads[number];
        self.stopped_at[number] = Some((thread.pc, thread.instructions));
        Stop::Breakpoint { pc: thread.pc }
    }

    /// Executes one instruction of a thread that exists, if the fast interpreter supports it;
    /// returns whether it was a taken branch. Returns `None` if nothing was executed and the caller
    /// has to use [`Machine::step`]. Ignores stop addresses.
    ///
    /// The predecoded code must match the memory of the machine, as after [`Machine::match_code`].
    /// The predecoded code must match the memory of the machine, as after [`Machine::match_code`].
    #[inline]
    pub(crate) fn step_common(&mut self, number: usize) -> Option<bool> {
        let thread = &mut self.threads[number];
        if thread.waiting.is_some() || thread.rest.is_some() {
            return None;
        }
        // `run_fast` sets it again for a taken branch.
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

    /// Executes at most `count` instructions of a thread that exists, up to the first one that the
    /// fast interpreter does not support; returns their number. It ignores stop addresses like
    /// [`Machine::step_common`], and only the last instruction may store to code.
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

    /// Updates predecoded code after the host changed memory.
    pub(crate) fn match_code(&mut self) {
        self.code.update(&mut self.memory);
    }

    /// Returns a number that changes whenever a predecoded word, or a stop address in a page with
    /// predecoded words, may have changed.
    #[inline]
    pub(crate) fn code_generation(&self) -> u64 {
        self.code.generation()
    }

    /// Runs predecoded operations up to the first one that the fast interpreter does not support.
    fn run_fast(&mut self, number: usize, left: &mut u64) -> Result<Exit, MemoryFull> {
        let thread = &mut self.threads[number];
        let core = number / THREADS;
        let shared = &mut self.cores[core];
        let index = self.code.prepare(thread.pc, &mut self.memory)?;
        let Some(page) = self.code.page(index) else {
            // Unreachable: `prepare` has just created the page.
            return Ok(Exit::Slow);
        };
        let budget = (*left).min(thread.watch.horizon());
        let mut rest = budget;
        let watching = thread.watch.active();
        let watch = &thread.watch;
        if watch.late.is_some() || watch.candidate.is_some() || watching && watch.mask_matters() {
            // A result is in flight or may be delayed next, or masked operations read `rm`
            // implicitly.
            return Ok(Exit::Slow);
        }
        let watched = Watched {
            unsettled: thread.watch.unsettled(),
            undriven: thread.watch.undriven_scalars(),
            memory: thread.watch.memory(),
        };
        let run = Fast {
            code: &self.code,
            page,
            watching,
            watched,
            left: &mut rest,
        };
        let write_through = shared.mode.write_through;
        let exit = match (&mut self.caches, self.sharing.as_deref()) {
            (Some(caches), sharing) => {
                let port = Cached {
                    memory: &mut self.memory,
                    caches,
                    core,
                    write_through,
                };
                match sharing {
                    Some(sharing) => run.with(
                        thread,
                        shared,
                        Tracked {
                            port,
                            sharing,
                            thread: number,
                        },
                    ),
                    None => run.with(thread, shared, port),
                }
            }
            (None, Some(sharing)) => {
                let port = Tracked {
                    port: &mut self.memory,
                    sharing,
                    thread: number,
                };
                run.with(thread, shared, port)
            }
            (None, None) => {
                #[cfg(feature = "jit")]
                let port = crate::jit::Translating {
                    memory: &mut self.memory,
                    jit: &mut self.jit,
                };
                #[cfg(not(feature = "jit"))]
                let port = &mut self.memory;
                run.with(thread, shared, port)
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
