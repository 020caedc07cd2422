//! The timing model: the pipeline of each core, driven by execution (`docs/machine/memory.md`,
//! `docs/machine/pipeline.md`).
//!
//! [`Machine::run_timed`] runs the enabled threads in the order in which the pipelines of their
//! cores issue them. A [`Timing`] keeps the state of the pipelines and the counters. The functional
//! machine computes the results of the threads for this order. Latencies, cache geometry and the
//! parameters of the pipeline come from td.
//!
//! # What is modeled
//!
//! - Fetch with its turns, its pauses and the wrong path after taken branches; the instruction
//!   cache; instruction buffers.
//! - Issue with its turns, register dependences, float slots, the queues of memory and scratchpad,
//!   and the limit of the write-back queues; the single write port.
//! - The data cache, and the controller that performs one memory transaction at a time; barriers;
//!   the jumps of ended threads to themselves.
//! - With several cores: the messages of the mesh, the directory and the second-level cache of each
//!   tile, the memory tile and the start of the cores by the host.
//!
//! # What is not modeled
//!
//! - I/O has the cost of a memory write.
//! - If a store changes code, scalar instructions there execute as they are at issue, but have the
//!   timing of the code at fetch.

mod barrier;
mod cache;
mod chrome;
mod coherence;
mod config;
mod core;
mod decode;
mod directory;
mod fetch;
mod heat_map;
mod issue;
mod kanata;
mod load_store;
mod memory;
mod memory_op;
mod memory_tile;
mod mesh;
mod misses;
mod misses_text;
mod network;
mod queues;
mod replay;
mod report;
mod request;
mod resource;
mod second_level;
mod service;
mod sink;
mod snapshot;
mod trip;
mod waits;

pub use chrome::ChromeTrace;
pub use config::TimingConfig;
pub use kanata::KanataTrace;
pub use mesh::LinkUse;
pub use misses::{CoreMisses, CoreSet, LineMisses, MissCounters, Misses, MissesReport, Sharing, VariableMisses};
pub use misses_text::Names;
pub use report::{FunctionCounters, NetworkCounters, Report, STALLS, Stall, ThreadCounters, counted};
pub use sink::{Issue, LINE_SOURCES, LineRequest, LineSource, NoSink, Sink, Sinks};
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
    /// The cycle in which the last run stopped.
    end: u64,
    /// The maximum number of cycles from the first issue on.
    limit: Option<u64>,
    /// Whether to simulate every cycle, without skipping idle ones.
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
    /// Creates pipelines in the state after reset: empty caches, nothing in flight.
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

    /// Sets the number of cycles after the first issue at which runs end with [`Halt::CycleLimit`],
    /// or removes the limit. A run may end some cycles later, since idle cycles are skipped at
    /// once.
    pub fn set_cycle_limit(&mut self, cycles: Option<u64>) {
        self.limit = cycles;
    }

    /// Makes runs simulate every cycle. By default they skip idle cycles and replay known stretches
    /// from recordings. Both modes count the same cycles; the slower one exists for comparison.
    pub fn set_every_cycle(&mut self, on: bool) {
        self.every_cycle = on;
    }

    /// Returns the number of instructions since reset whose cycles were known from an earlier time
    /// in the same pipeline state. It affects the duration of the simulation, not its results.
    pub fn replayed_instructions(&self) -> u64 {
        self.cores.iter().map(|core| core.recordings.instructions).sum()
    }

    /// Enables counters by function: `symbols` has the first address and the name of each function,
    /// and a function extends to the next one.
    pub fn set_symbols(&mut self, symbols: Vec<(u32, String)>) {
        for core in &mut self.cores {
            core.counters.functions = Functions::new(&symbols);
        }
        self.symbols = symbols;
    }

    /// Resets the counters; the caches do not change.
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

    /// Returns the counts since reset or since [`Timing::reset_counters`].
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
            report.links = self.network.links();
            report.mesh = *self.network.topology();
        }
        report.functions.sort_by_key(|f| std::cmp::Reverse(f.cycles));
        if let (Some(first), Some(last)) = (self.first_issue(), last) {
            report.cycles = last.saturating_sub(first);
        }
        report
    }

    fn prepare(&mut self, machine: &mut Machine) {
        self.network.shared = machine.cores() > 1;
        self.network.set_topology(machine.topology());
        for number in self.cores.len()..machine.cores() {
            let tile = machine.control_register(number * THREADS, ControlRegister::TileId);
            let mut core = Core::new(number, self.config.memory_delay);
            let start = self.network.add_core(tile);
            core.now = self.end;
            if self.network.shared {
                core.data.share();
                core.controller.share();
                core.now += start;
            }
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
    /// Runs the enabled threads like [`Machine::run_threads`], in the order in which the pipelines
    /// issue them, until none can continue, for at most `limit` instructions in total (slightly
    /// more may be executed). The cycle counters return cycles.
    ///
    /// A thread that is where the last run with this `timing` left it continues with its
    /// instructions in flight; others start with empty pipelines. Caches do not change between
    /// runs.
    pub fn run_timed<S: Sink>(&mut self, timing: &mut Timing, limit: u64, sink: &mut S) -> Halt {
        self.match_code();
        timing.prepare(self);
        let halt = timing.run(self, limit, sink);
        for core in &mut timing.cores {
            core.end(self);
            // A core that skipped cycles which the others have not reached returns to their cycle.
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
            // The core with the earliest cycle is next; of equally early cores the first one.
            let Some(number) = (0..self.cores.len()).min_by_key(|&number| self.cores[number].now) else {
                return Halt::Ended;
            };
            let from = self.cores[number].now;
            if let Some(answer) = self.network.step(from) {
                let core = &mut self.cores[answer.core];
                if sink.listens() {
                    sink.line_requested(&self.network.request_of(&answer));
                }
                core.controller.receive(&answer);
                // The core may have skipped past the fill.
                core.now = core.now.min(answer.fill);
                continue;
            }
            if self.network.next_arrival() <= from {
                continue;
            }
            let last = self.last_cycle();
            if from >= last {
                self.end = self.end.max(from);
                return Halt::CycleLimit;
            }
            // The limit counts from the first issue, which may happen in any cycle.
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
                // No core has another event.
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

    /// Returns the cycle in which another core precedes core number `number`.
    fn turn_of_others(&self, number: usize) -> u64 {
        let turn = |(other, core): (usize, &Core)| match other.cmp(&number) {
            Ordering::Less => core.now,
            Ordering::Equal => u64::MAX,
            Ordering::Greater => core.now.saturating_add(1),
        };
        self.cores.iter().enumerate().map(turn).min().unwrap_or(u64::MAX)
    }

    /// Returns the cycle before which runs end, counted from reset.
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
