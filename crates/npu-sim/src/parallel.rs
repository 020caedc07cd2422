//! Several cores at the same time, in threads of the host, with the result of a run in turns.
//!
//! Round-robin turns go in rounds: each thread that can go on has one, core by core. Which turns a core has in a round depends on
//! that core alone as long as none arrives at a barrier. So some rounds are run ahead by all cores at once, each on a machine of
//! its own with a copy of the threads and a view of memory (`memory/view.rs`), while the machine itself stays as it is. If then
//! no core looked at a page that another one wrote, any order of their instructions gives what they did (Bernstein's conditions), the order of the
//! turns too, and the machine takes their states over. Otherwise they are thrown away and the turns are taken one by one.
//!
//! A core stops ahead of others at what is not in its own registers, scratchpad and memory: barriers, I/O, findings, everything that
//! ends a run. The rounds before that one are then run again up to there, and the round itself in turns.
//!
//! Pages, not lines or bytes, because that costs nothing in the loads and stores that are executed most: a view
//! has no entry in its table for what nobody looked at, and none to write to for what nobody wrote. Copies instead of a log to undo, because
//! the states of the threads are small and most of memory is never copied.
//!
//! Invariants:
//! - The number of rounds run ahead changes how long a run takes, never what it does.
//! - Without success it is tried less and less often.

use crate::machine::{Config, Machine, Stop, THREADS};
use crate::memory::{self, Memory};
use crate::predecode::CodeCache;
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::thread::Thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds that are worth running ahead: threads of the host and views have to be made ready for them.
const LEAST_ROUNDS: u64 = 8;

/// Rounds first tried.
const FIRST_ROUNDS: u64 = 64;

/// Most rounds at a time. What is thrown away should not take long.
const MOST_ROUNDS: u64 = 2048;

/// Most rounds in turns between two tries.
const LONGEST_WAIT: u64 = 1024;

/// Main memory did not get what the cores wrote: a broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unjoined;

/// The last turn that a core had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    /// Number of the thread, counted over all cores.
    thread: usize,
    /// Instructions that it had left.
    left: u32,
}

/// A core that runs ahead.
struct Ahead {
    core: usize,
    /// It has the threads and the core as they are then, and a view of memory.
    machine: Machine,
    last: Option<Turn>,
    executed: u64,
}

/// What cores that run ahead begin with.
#[derive(Clone, Copy)]
struct Start<'a> {
    threads: &'a [Thread],
    cores: &'a [Shared],
    stopped_at: &'a [Option<(u32, u64)>],
    code: &'a CodeCache,
    memory: &'a Arc<Memory>,
}

/// What is kept between runs.
pub(crate) struct Parallel {
    host_threads: usize,
    cores: Vec<Ahead>,
    /// Rounds that the next try goes ahead at most.
    rounds: u64,
    /// Rounds in turns before the next try.
    wait: u64,
    /// Those after the next failure.
    penalty: u64,
    /// Instructions that were run ahead and taken over.
    executed: u64,
}

impl Parallel {
    /// For a machine with that many cores; `None` if one thread of the host is enough.
    pub fn new(config: &Config, cores: usize) -> Option<Parallel> {
        if config.host_threads < 2 || cores < 2 || !config.coherent {
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

    /// Runs rounds ahead and takes them over if that is right; gives the instructions executed.
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
        // No thread becomes able to go on in these rounds.
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

    /// Runs the busy cores at most that many rounds ahead, and gives how many they all could do.
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
                // The lock is held to take a core, not to run it.
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
                    // Without another thread this one does it all.
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

    /// Takes over the state of the core.
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

    /// Runs up to round `end`, and makes that the round that it cannot do.
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

    /// Makes its state that of the core.
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
    /// Instructions that cores executed at the same time as other cores ([`Config::host_threads`]).
    pub fn instructions_side_by_side(&self) -> u64 {
        self.parallel.as_ref().map_or(0, |parallel| parallel.executed)
    }

    /// Runs several cores at the same time if a round of turns begins and that is right; gives the instructions executed, of at most `limit`.
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
