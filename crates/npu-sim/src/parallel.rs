//! Parallel execution of cores on host threads, with the same result as a run in turns.
//!
//! In a round of a round-robin schedule each ready thread has one turn, core by core. The turns of
//! a core in a round depend on that core alone, unless a thread arrives at a barrier. Therefore all
//! cores execute some rounds speculatively in parallel: each on a separate machine with a copy of
//! its threads and a view of memory (`memory/view.rs`), while the original machine does not change.
//! If no core accessed a page that another core wrote, every order of their instructions, including
//! that of the turns, has the same result (Bernstein's conditions). The machine then takes the new
//! states. Otherwise it discards them and executes the turns one by one.
//!
//! A core stops its speculation at every operation with an effect outside of its registers,
//! scratchpad and memory: barriers, I/O, findings, and everything that ends a run. All cores then
//! repeat the speculation up to the round before the operation, and the round of the operation is
//! executed in turns.
//!
//! Conflicts are detected by pages, not lines or bytes, because this adds no cost to the frequent
//! loads and stores: the table of a view has no entry for pages without an access, and no writable
//! entry for pages without a write. Speculation works on copies instead of an undo log, because the
//! state of threads is small and most of memory is never copied.
//!
//! Invariants:
//! - The number of speculative rounds affects the duration of a run, never its result.
//! - Failed attempts become less and less frequent.

use crate::machine::{Config, Machine, Stop, THREADS};
use crate::memory::{self, Memory};
use crate::predecode::CodeCache;
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::thread::Thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The minimum number of rounds for which starting host threads and views is profitable.
const LEAST_ROUNDS: u64 = 8;

/// The number of rounds of the first attempt.
const FIRST_ROUNDS: u64 = 64;

/// The maximum number of rounds of an attempt, which bounds the discarded work.
const MOST_ROUNDS: u64 = 2048;

/// The maximum number of rounds in turns between two attempts.
const LONGEST_WAIT: u64 = 1024;

/// The error of a lost main memory or a failed commit: a broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unjoined;

/// The last turn of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    /// The number of the thread, counted over all cores.
    thread: usize,
    /// The number of instructions left in the turn.
    left: u32,
}

/// A core in speculative execution.
struct Ahead {
    core: usize,
    /// A machine with the speculative state of the core and its threads, and a view of memory.
    machine: Machine,
    last: Option<Turn>,
    executed: u64,
}

/// The state from which speculation starts.
#[derive(Clone, Copy)]
struct Start<'a> {
    threads: &'a [Thread],
    cores: &'a [Shared],
    stopped_at: &'a [Option<(u32, u64)>],
    code: &'a CodeCache,
    memory: &'a Arc<Memory>,
}

/// The state of parallel execution between runs.
pub(crate) struct Parallel {
    host_threads: usize,
    cores: Vec<Ahead>,
    /// The maximum number of rounds of the next attempt.
    rounds: u64,
    /// The number of rounds in turns before the next attempt.
    wait: u64,
    /// The number of rounds in turns after the next failure.
    penalty: u64,
    /// The number of successfully speculated instructions.
    executed: u64,
}

impl Parallel {
    /// Creates the state for a machine with this many cores; returns `None` if one host thread
    /// suffices.
    pub fn new(config: &Config, cores: usize) -> Option<Parallel> {
        if config.host_threads < 2 || cores < 2 || !config.coherent || config.strict {
            return None;
        }
        let ahead = |core| Ahead {
            core,
            machine: Machine::view(config),
            last: None,
            executed: 0,
        };
        Some(Parallel {
            host_threads: config.host_threads.min(cores),
            cores: (0..cores).map(ahead).collect(),
            rounds: FIRST_ROUNDS,
            wait: 0,
            penalty: 1,
            executed: 0,
        })
    }

    fn failed(&mut self, rounds: u64) {
        self.wait = self.penalty;
        self.penalty = (self.penalty * 2).min(LONGEST_WAIT);
        self.rounds = (rounds / 2).max(LEAST_ROUNDS);
    }

    /// Speculates some rounds and takes the new states if they are valid; returns the number of
    /// executed instructions.
    fn run(&mut self, machine: &mut Machine, schedule: &mut Schedule, limit: u64) -> Result<u64, Unjoined> {
        if self.wait > 0 {
            self.wait -= 1;
            return Ok(0);
        }
        let able = (0..machine.threads.len()).filter(|&number| machine.can_go_on(number));
        let (mut threads, mut busy) = (0, vec![false; self.cores.len()]);
        for number in able {
            threads += 1;
            busy[number / THREADS] = true;
        }
        // No waiting thread becomes ready in these rounds.
        let most = limit / (threads.max(1) * u64::from(schedule.quantum()));
        let mut rounds = self.rounds.min(most);
        if rounds < LEAST_ROUNDS || busy.iter().filter(|&&busy| busy).count() < 2 {
            return Ok(0);
        }
        let done = self.ahead(machine, &busy, schedule.quantum(), rounds)?;
        let cut = done < rounds;
        if cut {
            if done < LEAST_ROUNDS {
                self.failed(rounds);
                self.wait = self.wait.max(done + 1);
                return Ok(0);
            }
            rounds = done;
            if self.ahead(machine, &busy, schedule.quantum(), rounds)? < rounds {
                self.failed(rounds);
                return Ok(0);
            }
        }
        let views = || {
            let cores = self.cores.iter().filter(|ahead| busy[ahead.core]);
            cores.map(|ahead| &ahead.machine.memory)
        };
        if !memory::disjoint(views()) || !machine.memory.has_room_for(views()) {
            self.failed(rounds);
            return Ok(0);
        }
        let (mut executed, mut last) = (0, None);
        for ahead in self.cores.iter_mut().filter(|ahead| busy[ahead.core]) {
            ahead.give_back(machine)?;
            executed += ahead.executed;
            last = last.max(ahead.last);
        }
        if let Some(turn) = last {
            schedule.has_come_to(turn.thread, turn.left);
        }
        self.penalty = 1;
        self.wait = u64::from(cut);
        self.rounds = if cut {
            rounds.max(FIRST_ROUNDS)
        } else {
            (rounds * 2).min(MOST_ROUNDS)
        };
        self.executed += executed;
        Ok(executed)
    }

    /// Speculates at most `rounds` rounds on the busy cores, and returns the number of rounds that
    /// all of them completed.
    fn ahead(&mut self, machine: &mut Machine, busy: &[bool], quantum: u32, rounds: u64) -> Result<u64, Unjoined> {
        let base = Arc::new(std::mem::replace(&mut machine.memory, Memory::nothing()));
        let end = AtomicU64::new(rounds);
        {
            let cores = Mutex::new(self.cores.iter_mut().filter(|ahead| busy[ahead.core]));
            let start = Start {
                threads: &machine.threads,
                cores: &machine.cores,
                stopped_at: &machine.stopped_at,
                code: &machine.code,
                memory: &base,
            };
            let work = || {
                // The lock is held while taking a core, not while running it.
                while let Some(ahead) = {
                    let mut cores = cores.lock().unwrap_or_else(PoisonError::into_inner);
                    cores.next()
                } {
                    ahead.begin(start);
                    ahead.run(quantum, &end);
                    ahead.machine.memory.end();
                }
            };
            std::thread::scope(|scope| {
                for _ in 1..self.host_threads {
                    // If the host cannot start a thread, this one does all the work.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, work);
                }
                work();
            });
        }
        machine.memory = Arc::into_inner(base).ok_or(Unjoined)?;
        Ok(end.into_inner())
    }
}

impl Ahead {
    fn threads(&self) -> std::ops::Range<usize> {
        self.core * THREADS..(self.core + 1) * THREADS
    }

    /// Copies the state of the core.
    fn begin(&mut self, start: Start<'_>) {
        let threads = self.threads();
        let own = &mut self.machine;
        own.threads.clone_from_slice(&start.threads[threads.clone()]);
        own.stopped_at.clone_from_slice(&start.stopped_at[threads]);
        own.cores[0].clone_from(&start.cores[self.core]);
        own.met_others = false;
        own.findings.clear();
        #[cfg(feature = "jit")]
        own.jit.take_counts();
        own.memory.begin(Arc::clone(start.memory));
        own.code.update(&mut own.memory);
        own.code.match_breakpoints(start.code, &own.memory);
        self.last = None;
        self.executed = 0;
    }

    /// Runs rounds up to `end`. If a round cannot be speculated, lowers `end` to it.
    fn run(&mut self, quantum: u32, end: &AtomicU64) {
        let mut round = 0;
        while round < end.load(Ordering::Relaxed) {
            let mut rests = true;
            for number in 0..THREADS {
                if !self.machine.can_go_on(number) {
                    continue;
                }
                rests = false;
                let before = self.machine.threads[number].instructions;
                let stop = self.machine.run_on(number, quantum.into());
                let executed = self.machine.threads[number].instructions - before;
                let on = matches!(stop, Stop::StepLimit | Stop::Ended { .. } | Stop::Hang { .. });
                if !on || self.machine.met_others || self.machine.findings.total != 0 {
                    end.fetch_min(round, Ordering::Relaxed);
                    return;
                }
                self.executed += executed;
                self.last = Some(Turn {
                    round,
                    thread: self.core * THREADS + number,
                    left: quantum.saturating_sub(u32::try_from(executed).unwrap_or(u32::MAX)),
                });
            }
            if rests {
                return;
            }
            round += 1;
        }
    }

    /// Moves the speculative state to the machine.
    fn give_back(&mut self, machine: &mut Machine) -> Result<(), Unjoined> {
        let threads = self.threads();
        let own = &mut self.machine;
        machine.threads[threads.clone()].swap_with_slice(&mut own.threads);
        machine.stopped_at[threads].swap_with_slice(&mut own.stopped_at);
        std::mem::swap(&mut machine.cores[self.core], &mut own.cores[0]);
        #[cfg(feature = "jit")]
        machine.jit.add_counts(own.jit.take_counts());
        machine.memory.commit(&own.memory).map_err(|_| Unjoined)
    }
}

impl Machine {
    /// The number of instructions that ran in parallel with other cores ([`Config::host_threads`]).
    pub fn instructions_side_by_side(&self) -> u64 {
        self.parallel.as_ref().map_or(0, |parallel| parallel.executed)
    }

    /// Runs several cores in parallel if a round begins and the result is valid; returns the number
    /// of executed instructions, at most `limit`.
    pub(crate) fn run_ahead(&mut self, schedule: &mut Schedule, limit: u64) -> Result<u64, Unjoined> {
        if self.parallel.is_none() || !schedule.begins_round(self.threads.len(), |number| self.can_go_on(number)) {
            return Ok(0);
        }
        let Some(mut parallel) = self.parallel.take() else {
            return Ok(0);
        };
        let ran = parallel.run(self, schedule, limit);
        self.parallel = Some(parallel);
        ran
    }
}
