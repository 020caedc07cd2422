//! The results of a timed run.

use super::mesh::LinkUse;
use crate::machine::THREADS;
use crate::registers::LANES;
use crate::topology::Topology;
use std::fmt;

/// The reason why a thread did not issue in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stall {
    /// No instruction was fetched: other threads used the fetch, or the thread starts.
    Fetch,
    /// A taken branch emptied the pipeline.
    Branch,
    /// The instruction line was missing.
    InstructionMiss,
    /// An integer result was not ready.
    Integer,
    /// A float result was not ready.
    Float,
    /// A value from main memory was not ready.
    Load,
    /// A value from the scratchpad was not ready.
    Scratchpad,
    /// The float unit would have produced two results in one cycle.
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

/// The number of causes.
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

    /// Returns a short name of the cause.
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

/// Counters of one thread, or the sums of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Executed instructions until the end of the thread, without undecoded words.
    pub instructions: u64,
    /// Instructions that issued after a taken branch and were killed.
    pub killed: u64,
    /// Turns that an ended thread used for its jump to itself.
    pub spins: u64,
    /// Stall cycles by cause, in the order of [`Stall::ALL`].
    pub stalls: [u64; STALLS],
    /// Loads and stores that hit.
    pub data_hits: u64,
    /// Loads and stores that missed.
    pub data_misses: u64,
    /// Fetches that hit.
    pub instruction_hits: u64,
    /// Fetches that missed.
    pub instruction_misses: u64,
    /// Instructions under the lane mask.
    pub vector_instructions: u64,
    /// The sum of the lanes that were on in these instructions.
    pub lanes: u64,
}

impl ThreadCounters {
    /// Returns the stall cycles for this cause.
    pub fn stalled(&self, cause: Stall) -> u64 {
        self.stalls[cause as usize]
    }

    /// Returns the difference to the earlier counts `before`.
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

    /// Adds `times` times the counts of `other`.
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

/// The cost of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounters {
    /// The name of the function.
    pub name: String,
    /// Executed instructions, without killed ones.
    pub instructions: u64,
    /// Thread cycles in it: those of each instruction, executed or killed, and of the stalls before
    /// it.
    pub cycles: u64,
}

/// Counters of the activities of cores and memory over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Requested data lines that were in the second-level cache.
    pub second_level_hits: u64,
    /// Requested data lines that came from memory.
    pub second_level_misses: u64,
    /// Requested data lines that came from another core, which had modified them.
    pub forwarded: u64,
    /// Requests of a core for write permission to a line that it shared.
    pub upgrades: u64,
    /// Copies that cores lost because of a store of another core.
    pub invalidations: u64,
    /// Lines read from memory, including instruction lines.
    pub memory_reads: u64,
    /// Lines written to memory.
    pub memory_writes: u64,
    /// Messages between tiles.
    pub messages: u64,
    /// Cycles that messages waited for links.
    pub link_waits: u64,
}

/// The results of a timed run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The last cycle minus the first one: from the first issue to the last status of the last
    /// thread, or to the end of the run. The hardware's programs measure this difference.
    /// [`Report::counted_cycles`] is the number of cycles.
    pub cycles: u64,
    /// The sums over all threads.
    pub total: ThreadCounters,
    /// The threads that ran, by number.
    pub threads: Vec<(usize, ThreadCounters)>,
    /// Lines read from memory.
    pub memory_reads: u64,
    /// Lines written to memory, including the empty writes of clean lines.
    pub memory_writes: u64,
    /// The counters of the network between several cores; `None` with one core.
    pub network: Option<NetworkCounters>,
    /// The links of the mesh that messages between several cores used; empty with one core.
    pub links: Vec<LinkUse>,
    /// The mesh of these links.
    pub mesh: Topology,
    /// The functions in which instructions issued, by descending cycles. Code outside of all
    /// symbols is not included.
    pub functions: Vec<FunctionCounters>,
}

impl Report {
    /// Returns the number of cycles from the first issue to the last status, both included. For one
    /// thread it is the sum of its issues, executed and killed, and its stall cycles.
    pub fn counted_cycles(&self) -> u64 {
        self.cycles + u64::from(self.total != ThreadCounters::default())
    }

    /// Returns the instructions per cycle.
    pub fn ipc(&self) -> f64 {
        ratio(self.total.instructions, self.counted_cycles())
    }

    /// Returns the fraction of lanes that were on in vector instructions, or 0 without vector
    /// instructions.
    pub fn lane_use(&self) -> f64 {
        ratio(self.total.lanes, self.total.vector_instructions * LANES as u64)
    }
}

/// Returns a count with its noun, as `1 cycle` or `2 cycles`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Report {
    /// Formats a summary of some lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        writeln!(
            f,
            "{}, {}, {:.3} instructions a cycle",
            counted(self.counted_cycles(), "cycle"),
            counted(total.instructions, "instruction"),
            self.ipc()
        )?;
        let hits = |hits: u64, misses: u64| {
            let ending = if misses == 1 { "" } else { "es" };
            format!("{}, {misses} miss{ending}", counted(hits, "hit"))
        };
        writeln!(
            f,
            "instruction cache: {}; data cache: {}; memory: {}, {}",
            hits(total.instruction_hits, total.instruction_misses),
            hits(total.data_hits, total.data_misses),
            counted(self.memory_reads, "read"),
            counted(self.memory_writes, "write")
        )?;
        if let Some(network) = &self.network {
            let copies = match network.invalidations {
                1 => "1 copy".to_owned(),
                count => format!("{count} copies"),
            };
            writeln!(
                f,
                "L2: {}; directory: {} from other cores, {}, {copies} taken away; links: {}, {} waited",
                hits(network.second_level_hits, network.second_level_misses),
                counted(network.forwarded, "line"),
                counted(network.upgrades, "upgrade"),
                counted(network.messages, "message"),
                counted(network.link_waits, "cycle")
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
        if total.killed != 0 {
            writeln!(
                f,
                "cycles of killed instructions after taken branches: {}",
                total.killed
            )?;
        }
        if self.threads.len() > 1 {
            for (number, counters) in &self.threads {
                let waited: u64 = counters.stalls.iter().sum();
                writeln!(
                    f,
                    "thread {number}: {}, {} waited, {} of them for other threads",
                    counted(counters.instructions, "instruction"),
                    counted(waited, "cycle"),
                    counters.stalled(Stall::Turn)
                )?;
            }
        }
        if self.functions.is_empty() {
            return Ok(());
        }
        let of_threads = total.instructions + total.killed + total.stalls.iter().sum::<u64>();
        if self.threads.len() > 1 {
            let threads = self.threads.len();
            writeln!(
                f,
                "cycles of {threads} threads together: {of_threads}, in these functions:"
            )?;
        }
        for function in &self.functions {
            writeln!(
                f,
                "{}: {}, {}",
                function.name,
                counted(function.cycles, "cycle"),
                counted(function.instructions, "instruction")
            )?;
        }
        let known: u64 = self.functions.iter().map(|function| function.cycles).sum();
        if known < of_threads {
            writeln!(f, "other code: {}", counted(of_threads - known, "cycle"))?;
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
    /// The first address and the counters of each function, in the order of addresses; empty if the
    /// run does not count by function.
    list: Vec<(u32, FunctionCounters)>,
    /// The last function of each thread: the range of its addresses and its index.
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

    /// Counts an instruction of `thread` at `pc`, which was `executed` this often and took `cycles`
    /// cycles in total.
    #[inline]
    pub fn issued(&mut self, thread: usize, pc: u32, executed: u64, cycles: u64) {
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
        counters.instructions += executed;
        counters.cycles += cycles;
    }

    /// Iterates over the functions in which instructions issued.
    pub fn used(&self) -> impl Iterator<Item = &FunctionCounters> {
        self.list.iter().map(|(_, c)| c).filter(|c| c.cycles != 0)
    }
}
