//! What a timed run counted, as data.

use super::network::NetworkCounters;
use crate::machine::THREADS;
use crate::registers::LANES;
use std::fmt;

/// Why a thread did not issue in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stall {
    /// Nothing was fetched yet: other threads had the fetch, or the thread starts.
    Fetch,
    /// A taken branch emptied the pipeline.
    Branch,
    /// The instruction line was missing.
    InstructionMiss,
    /// An integer result was not there.
    Integer,
    /// A float result was not there.
    Float,
    /// A value from main memory was not there.
    Load,
    /// A value from the scratchpad was not there.
    Scratchpad,
    /// The float unit would have had two results in one cycle.
    FloatSlot,
    /// The load/store queue of the thread was occupied.
    MemoryQueue,
    /// The scratchpad queue was occupied.
    ScratchpadQueue,
    /// The thread was at a barrier.
    Barrier,
    /// Another thread had its turn, or results waited for the write port.
    Turn,
}

/// Number of causes.
pub const STALLS: usize = 12;

impl Stall {
    /// All causes, in the order of their numbers.
    pub const ALL: [Stall; STALLS] = [
        Stall::Fetch,
        Stall::Branch,
        Stall::InstructionMiss,
        Stall::Integer,
        Stall::Float,
        Stall::Load,
        Stall::Scratchpad,
        Stall::FloatSlot,
        Stall::MemoryQueue,
        Stall::ScratchpadQueue,
        Stall::Barrier,
        Stall::Turn,
    ];

    /// The cause in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Stall::Fetch => "fetch",
            Stall::Branch => "taken branch",
            Stall::InstructionMiss => "instruction miss",
            Stall::Integer => "integer result",
            Stall::Float => "float result",
            Stall::Load => "load",
            Stall::Scratchpad => "scratchpad load",
            Stall::FloatSlot => "float port",
            Stall::MemoryQueue => "memory queue",
            Stall::ScratchpadQueue => "scratchpad queue",
            Stall::Barrier => "barrier",
            Stall::Turn => "other threads",
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of one thread, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Instructions executed until the thread ended; undecoded words do not count.
    pub instructions: u64,
    /// Instructions that issued after a taken branch and were killed.
    pub killed: u64,
    /// Turns taken by the jump to itself of an ended thread.
    pub spins: u64,
    /// Cycles without issue by cause, in the order of [`Stall::ALL`].
    pub stalls: [u64; STALLS],
    /// Loads and stores that found their line.
    pub data_hits: u64,
    /// Loads and stores that did not.
    pub data_misses: u64,
    /// Fetches that found their line.
    pub instruction_hits: u64,
    /// Fetches that did not.
    pub instruction_misses: u64,
    /// Instructions under the lane mask.
    pub vector_instructions: u64,
    /// The lanes that were on in them.
    pub lanes: u64,
}

impl ThreadCounters {
    /// Cycles without issue for this cause.
    pub fn stalled(&self, cause: Stall) -> u64 {
        self.stalls[cause as usize]
    }

    /// The counts since `before`, which were these earlier.
    pub(super) fn since(&self, before: &ThreadCounters) -> ThreadCounters {
        let mut stalls = self.stalls;
        for (count, before) in stalls.iter_mut().zip(before.stalls) {
            *count -= before;
        }
        ThreadCounters {
            instructions: self.instructions - before.instructions,
            killed: self.killed - before.killed,
            spins: self.spins - before.spins,
            stalls,
            data_hits: self.data_hits - before.data_hits,
            data_misses: self.data_misses - before.data_misses,
            instruction_hits: self.instruction_hits - before.instruction_hits,
            instruction_misses: self.instruction_misses - before.instruction_misses,
            vector_instructions: self.vector_instructions - before.vector_instructions,
            lanes: self.lanes - before.lanes,
        }
    }

    /// Adds so many times the counts of another one.
    pub(super) fn add_times(&mut self, other: &ThreadCounters, times: u64) {
        let mut product = *other;
        for count in [
            &mut product.instructions,
            &mut product.killed,
            &mut product.spins,
            &mut product.data_hits,
            &mut product.data_misses,
            &mut product.instruction_hits,
            &mut product.instruction_misses,
            &mut product.vector_instructions,
            &mut product.lanes,
        ]
        .into_iter()
        .chain(&mut product.stalls)
        {
            *count *= times;
        }
        self.add(&product);
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &ThreadCounters) {
        self.instructions += other.instructions;
        self.killed += other.killed;
        self.spins += other.spins;
        for (sum, count) in self.stalls.iter_mut().zip(other.stalls) {
            *sum += count;
        }
        self.data_hits += other.data_hits;
        self.data_misses += other.data_misses;
        self.instruction_hits += other.instruction_hits;
        self.instruction_misses += other.instruction_misses;
        self.vector_instructions += other.vector_instructions;
        self.lanes += other.lanes;
    }
}

/// What a function took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounters {
    /// Its name.
    pub name: String,
    /// Instructions issued in it, killed ones included.
    pub instructions: u64,
    /// Cycles of threads in it: those of each instruction and those that it waited before.
    pub cycles: u64,
}

/// What a timed run counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Cycles from the first issue to the last thread's last status, or to the end of the run.
    pub cycles: u64,
    /// All threads together.
    pub total: ThreadCounters,
    /// The threads that ran, by number.
    pub threads: Vec<(usize, ThreadCounters)>,
    /// Lines read from memory.
    pub memory_reads: u64,
    /// Lines written to memory, the empty writes of clean lines included.
    pub memory_writes: u64,
    /// What several cores did over the network that they share; none of one core.
    pub network: Option<NetworkCounters>,
    /// Functions in which anything issued, by cycles, most first. Code outside of all symbols is not in it.
    pub functions: Vec<FunctionCounters>,
}

impl Report {
    /// Instructions a cycle.
    pub fn ipc(&self) -> f64 {
        ratio(self.total.instructions, self.cycles)
    }

    /// The part of the lanes that was on in vector instructions; 0 without any.
    pub fn lane_use(&self) -> f64 {
        ratio(self.total.lanes, self.total.vector_instructions * LANES as u64)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Report {
    /// Some lines for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        writeln!(
            f,
            "{} cycles, {} instructions, {:.3} instructions a cycle",
            self.cycles,
            total.instructions,
            self.ipc()
        )?;
        let hits = |hits: u64, misses: u64| format!("{hits} hits, {misses} misses");
        writeln!(
            f,
            "instruction cache: {}; data cache: {}; memory: {} reads, {} writes",
            hits(total.instruction_hits, total.instruction_misses),
            hits(total.data_hits, total.data_misses),
            self.memory_reads,
            self.memory_writes
        )?;
        if let Some(network) = &self.network {
            writeln!(
                f,
                "L2: {}; directory: {} lines from other cores, {} upgrades, {} copies taken away; links: {} messages, {} cycles waited",
                hits(network.second_level_hits, network.second_level_misses),
                network.forwarded,
                network.upgrades,
                network.invalidations,
                network.messages,
                network.link_waits
            )?;
        }
        if total.vector_instructions != 0 {
            writeln!(
                f,
                "vector instructions: {}, {:.1} % of their lanes on",
                total.vector_instructions,
                100.0 * self.lane_use()
            )?;
        }
        let mut causes: Vec<Stall> = Stall::ALL.into_iter().filter(|&s| total.stalled(s) != 0).collect();
        causes.sort_by_key(|&s| std::cmp::Reverse(total.stalled(s)));
        let list: Vec<String> = causes.iter().map(|&s| format!("{s} {}", total.stalled(s))).collect();
        writeln!(
            f,
            "cycles waited: {}",
            if list.is_empty() {
                "none".to_owned()
            } else {
                list.join(", ")
            }
        )?;
        if self.threads.len() > 1 {
            for (number, counters) in &self.threads {
                let waited: u64 = counters.stalls.iter().sum();
                writeln!(
                    f,
                    "thread {number}: {} instructions, {waited} cycles waited, {} of them for other threads",
                    counters.instructions,
                    counters.stalled(Stall::Turn)
                )?;
            }
        }
        for function in &self.functions {
            writeln!(
                f,
                "{}: {} cycles, {} instructions",
                function.name, function.cycles, function.instructions
            )?;
        }
        Ok(())
    }
}

/// Counters of a core by thread and function.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub threads: [ThreadCounters; THREADS],
    pub functions: Functions,
}

/// Counters of functions by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// First address and the counters of each function, in order of addresses; none if the run does not count them.
    list: Vec<(u32, FunctionCounters)>,
    /// The last function of each thread: the range of its addresses and its place.
    last: [(u32, u32, usize); THREADS],
}

impl Functions {
    pub fn new(symbols: &[(u32, String)]) -> Functions {
        let mut list: Vec<(u32, FunctionCounters)> = symbols
            .iter()
            .map(|(address, name)| {
                let name = name.clone();
                let counters = FunctionCounters {
                    name,
                    ..FunctionCounters::default()
                };
                (*address, counters)
            })
            .collect();
        list.sort_by_key(|(address, _)| *address);
        Functions {
            list,
            last: [(0, 0, 0); THREADS],
        }
    }

    /// Counts so many times an instruction of `thread` at `pc`, which took `cycles` altogether.
    #[inline]
    pub fn issued(&mut self, thread: usize, pc: u32, times: u64, cycles: u64) {
        if self.list.is_empty() {
            return;
        }
        let (mut from, mut to, mut place) = self.last[thread];
        if pc < from || pc >= to {
            let after = self.list.partition_point(|(address, _)| *address <= pc);
            let Some(at) = after.checked_sub(1) else { return };
            from = self.list[at].0;
            to = self.list.get(after).map_or(u32::MAX, |(address, _)| *address);
            place = at;
            self.last[thread] = (from, to, place);
        }
        let counters = &mut self.list[place].1;
        counters.instructions += times;
        counters.cycles += cycles;
    }

    /// Those with instructions.
    pub fn used(&self) -> impl Iterator<Item = &FunctionCounters> {
        self.list.iter().map(|(_, c)| c).filter(|c| c.instructions != 0)
    }
}
