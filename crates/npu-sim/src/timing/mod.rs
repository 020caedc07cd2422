//! Cycles: a model of the pipeline of each core, driven by execution (`docs/machine/memory.md`, `docs/machine/pipeline.md`).
//!
//! [`Machine::run_timed`] runs the enabled threads in the order in which the pipelines of their cores issue them, and a
//! [`Timing`] keeps the state of the pipelines and counts. What the threads compute is what the functional machine computes
//! for that order. Latencies, cache geometry and the numbers of the pipeline are those of td.
//!
//! # What is modelled
//!
//! Fetch with its turns, its pauses and the wrong path after taken branches; the instruction cache; instruction buffers; issue
//! with its turns, register dependences, float slots, the queues of memory and scratchpad, and the limit of the write-back
//! queues; the one write port; the data cache, and the controller that does one memory transaction at a time; barriers; the jumps of
//! ended threads to themselves. With several cores the mesh with its links, the directory with its second-level cache, and the memory
//! that they share.
//!
//! # What is not
//!
//! - Of several cores, what nothing gives a number or a rule for: `network` says what is read, and what is assumed besides. None of it is
//!   measured.
//! - I/O takes the time of a memory write.
//! - Scalars that a store to code changes are executed as they are at issue, and timed as they were at fetch.

mod barrier;
mod cache;
mod chrome;
mod coherence;
mod config;
mod core;
mod decode;
mod directory;
mod fetch;
mod issue;
mod kanata;
mod load_store;
mod memory;
mod memory_op;
mod mesh;
mod network;
mod queues;
mod replay;
mod report;
mod resource;
mod second_level;
mod sink;
mod snapshot;
mod trip;
mod waits;

pub use chrome::ChromeTrace;
pub use config::TimingConfig;
pub use kanata::KanataTrace;
pub use network::NetworkCounters;
pub use report::{FunctionCounters, Report, STALLS, Stall, ThreadCounters};
pub use sink::{Both, Issue, NoSink, Sink};
pub use trip::{Leg, PLACES, Place};
pub use waits::{Awaited, Wait, Waits, WaitsReport};

use self::core::Core;
use crate::machine::{Machine, Stop, THREADS};
use crate::schedule::Halt;
use barrier::SyncMasters;
use network::Network;
use npu_mc::machine::ControlRegister;
use report::Functions;
use std::cmp::Ordering;

/// The pipelines of a machine.
pub struct Timing {
    config: TimingConfig,
    cores: Vec<Core>,
    sync: SyncMasters,
    network: Network,
    symbols: Vec<(u32, String)>,
    /// When the last run stopped.
    end: u64,
    /// The most cycles from the first issue on.
    limit: Option<u64>,
    /// Nothing is passed over.
    every_cycle: bool,
}

impl std::fmt::Debug for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timing")
            .field("config", &self.config)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Timing {
    /// Pipelines after reset: empty caches, nothing in flight.
    pub fn new(config: TimingConfig) -> Timing {
        Timing {
            config,
            cores: Vec::new(),
            sync: SyncMasters::default(),
            network: Network::new(config),
            symbols: Vec::new(),
            end: 0,
            limit: None,
            every_cycle: false,
        }
    }

    /// Lets runs end with [`Halt::CycleLimit`] so many cycles after the first issue, or lets them go on. Cycles in which nothing happens are passed
    /// over at once, so it may be some later.
    pub fn set_cycle_limit(&mut self, cycles: Option<u64>) {
        self.limit = cycles;
    }

    /// Lets runs simulate each cycle, or pass over those in which nothing can happen and take stretches that are known from recordings, as
    /// they do at first. Both give the same cycles; each cycle by itself takes longer, and is there to compare with.
    pub fn set_every_cycle(&mut self, on: bool) {
        self.every_cycle = on;
    }

    /// Instructions whose cycles were known from an earlier time in the same state of the pipeline, since reset. The results do not
    /// depend on it, only the time of the host.
    pub fn replayed_instructions(&self) -> u64 {
        self.cores.iter().map(|core| core.recordings.instructions).sum()
    }

    /// Counts by function from now on: `symbols` has the first address and the name of each, and a function reaches to the next
    /// one.
    pub fn set_symbols(&mut self, symbols: Vec<(u32, String)>) {
        for core in &mut self.cores {
            core.counters.functions = Functions::new(&symbols);
        }
        self.symbols = symbols;
    }

    /// Forgets what was counted; the caches stay as they are.
    pub fn reset_counters(&mut self) {
        for core in &mut self.cores {
            core.counters = report::Counters {
                functions: Functions::new(&self.symbols),
                ..report::Counters::default()
            };
            core.controller.reset_counters();
            core.first = None;
        }
        self.network.reset_counters();
    }

    /// The cycle of the first issue, counted from reset.
    pub fn first_issue(&self) -> Option<u64> {
        self.cores.iter().filter_map(|core| core.first).min()
    }

    /// What was counted since reset, or since [`Timing::reset_counters`].
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        let mut last = None;
        for core in &self.cores {
            for (thread, pipe) in core.pipes.iter().enumerate() {
                let counters = core.counters.threads[thread];
                if counters != ThreadCounters::default() {
                    report.threads.push((core.global(thread), counters));
                    report.total.add(&counters);
                    last = last.max(Some(pipe.ended.or(pipe.paused).unwrap_or(self.end)));
                }
            }
            let (reads, writes) = core.controller.transactions();
            report.memory_reads += reads;
            report.memory_writes += writes;
            for function in core.counters.functions.used() {
                match report.functions.iter_mut().find(|f| f.name == function.name) {
                    Some(sum) => {
                        sum.instructions += function.instructions;
                        sum.cycles += function.cycles;
                    }
                    None => report.functions.push(function.clone()),
                }
            }
        }
        if self.network.shared {
            let counters = self.network.counters();
            (report.memory_reads, report.memory_writes) = (counters.memory_reads, counters.memory_writes);
            report.network = Some(counters);
        }
        report.functions.sort_by_key(|f| std::cmp::Reverse(f.cycles));
        if let (Some(first), Some(last)) = (self.first_issue(), last) {
            report.cycles = last.saturating_sub(first);
        }
        report
    }

    fn prepare(&mut self, machine: &mut Machine) {
        self.network.shared = machine.cores() > 1;
        for number in self.cores.len()..machine.cores() {
            let tile = machine.control_register(number * THREADS, ControlRegister::TileId);
            let mut core = Core::new(number, self.config.memory_delay);
            self.network.add_core(tile);
            if self.network.shared {
                core.data.share();
            }
            core.now = self.end;
            core.counters.functions = Functions::new(&self.symbols);
            self.cores.push(core);
        }
        for core in &mut self.cores {
            core.begin();
            core.every_cycle = self.every_cycle;
            for thread in 0..THREADS {
                let number = core.global(thread);
                let goes_on = machine.can_go_on(number) || machine.thread(number).is_waiting();
                if machine.is_enabled(number) && (goes_on || core.spins(thread, machine)) {
                    core.enable(thread, machine);
                }
            }
        }
    }
}

impl Machine {
    /// Runs the enabled threads like [`Machine::run_threads`], in the order in which the pipelines issue them, until none can go
    /// on, for at most `limit` instructions in all (a few more may be executed). The cycle counters show cycles.
    ///
    /// A thread that is where the last run with this `timing` left it goes on with what was in flight; others start with
    /// empty pipelines. Caches stay as they were.
    pub fn run_timed<S: Sink>(&mut self, timing: &mut Timing, limit: u64, sink: &mut S) -> Halt {
        self.match_code();
        timing.prepare(self);
        let halt = timing.run(self, limit, sink);
        for core in &mut timing.cores {
            core.end(self);
            // A core that has passed over cycles which others have not come to goes back to where they are.
            core.now = core.now.min(timing.end);
        }
        match timing.cores.iter().position(Core::overflowed) {
            Some(core) => Halt::Internal { core },
            None => halt,
        }
    }
}

impl Timing {
    fn run<S: Sink>(&mut self, machine: &mut Machine, limit: u64, sink: &mut S) -> Halt {
        let mut executed = 0;
        loop {
            // The core with the earliest cycle goes next, and the first of those that are equally early.
            let Some(number) = (0..self.cores.len()).min_by_key(|&number| self.cores[number].now) else {
                return Halt::Ended;
            };
            let from = self.cores[number].now;
            let last = self.last_cycle();
            if from >= last {
                self.end = self.end.max(from);
                return Halt::CycleLimit;
            }
            // The limit counts from the first issue, which may come in any cycle.
            let limit_is_open = self.limit.is_some() && last == u64::MAX;
            let until = if limit_is_open {
                from + 1
            } else {
                last.min(self.turn_of_others(number))
            };
            let core = &mut self.cores[number];
            let before = core.executed;
            let now = core.run(
                machine,
                &mut self.network,
                sink,
                until,
                before.saturating_add(limit - executed),
            );
            executed += core.executed - before;
            self.end = self.end.max(now + 1);
            if let Some((thread, stop)) = core.stop.take() {
                return if stop == Stop::StepLimit {
                    Halt::StepLimit
                } else {
                    Halt::Thread { thread, stop }
                };
            }
            let check = std::mem::take(&mut core.check) || core.opened;
            if core.opened || core.sent != 0 {
                self.follow_barriers(number, now, machine, sink);
            }
            if check && !(0..machine.threads()).any(|number| machine.can_go_on(number)) {
                return machine.all_at_rest();
            }
            if now == u64::MAX - 1 {
                // Nothing happens in any core any more.
                return if (0..machine.threads()).any(|number| machine.can_go_on(number)) {
                    Halt::Internal { core: number }
                } else {
                    machine.all_at_rest()
                };
            }
            if executed >= limit {
                return Halt::StepLimit;
            }
        }
    }

    /// The cycle in which another core goes before core number `number`.
    fn turn_of_others(&self, number: usize) -> u64 {
        let turn = |(other, core): (usize, &Core)| match other.cmp(&number) {
            Ordering::Less => core.now,
            Ordering::Equal => u64::MAX,
            Ordering::Greater => core.now.saturating_add(1),
        };
        self.cores.iter().enumerate().map(turn).min().unwrap_or(u64::MAX)
    }

    /// The cycle that runs end before, counted from reset.
    fn last_cycle(&self) -> u64 {
        let first = self.first_issue();
        let limit = first.zip(self.limit);
        limit.map_or(u64::MAX, |(first, limit)| first.saturating_add(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Config;

    #[test]
    fn a_queue_that_lost_an_entry_ends_every_run_as_an_internal_error() {
        let mut machine = Machine::new(Config::default());
        let mut timing = Timing::new(TimingConfig::default());
        let halt = machine.run_timed(&mut timing, 10, &mut NoSink);
        assert!(!matches!(halt, Halt::Internal { .. }), "{halt}");
        (0..9).for_each(|wake| timing.cores[0].pipes[3].wakes.push(wake));
        let halt = machine.run_timed(&mut timing, 10, &mut NoSink);
        assert_eq!(halt, Halt::Internal { core: 0 });
    }

    #[test]
    fn a_thread_that_waits_for_what_never_comes_ends_every_run_as_an_internal_error() {
        let mut machine = Machine::new(Config::default());
        // or s1, s2, s3
        let word = 1 << 24 | 1 << 18 | 2 << 12 | 3 << 6;
        assert_eq!(machine.memory_mut().write_u32(0x1000, word), Ok(()));
        machine.boot(0, 0x1000);
        machine.enable(0, 1);
        let mut timing = Timing::new(TimingConfig::default());
        timing.prepare(&mut machine);
        timing.cores[0].pipes[0].busy = u128::MAX;
        assert_eq!(timing.run(&mut machine, 10, &mut NoSink), Halt::Internal { core: 0 });
    }
}
