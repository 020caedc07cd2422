//! A functional simulator of NaplesPU cores.
//!
//! # Contract
//!
//! [`Machine`] holds main memory, the console and the barriers. For each core it holds the hardware
//! threads, the scratchpad and the control registers. It executes instruction by instruction, with
//! the results of the real hardware, errata included: floats round as in the hardware ([`fp`]), the
//! `m` bit has no effect, packed vector loads take the wrong bytes, misaligned accesses trap late,
//! and so on (`docs/machine/`).
//!
//! Every instruction word, valid or not, has the effect that it has on the hardware. An instruction
//! that would block a hardware thread forever stops the run with [`Stop::Hang`] and a
//! [`HangReason`].
//!
//! The machine collects [`Finding`]s: errata whose outcome depends on timing, and uses of results
//! that the hardware leaves undefined. With [`Config::strict`] the first finding stops the run.
//! Otherwise the model takes the outcome of a pipeline without contention: no result is lost, a
//! trap takes effect before the next instruction, undriven bits are 0.
//!
//! ```
//! use npu_mc::SReg;
//! use npu_sim::{Config, Machine, Stop};
//!
//! let mut machine = Machine::new(Config::default());
//! // addi s0, s0, 2; jret
//! machine.memory_mut().write_u32(0x1000, 0x4400_0010)?;
//! machine.memory_mut().write_u32(0x1004, 0x7300_0000)?;
//! machine.add_breakpoint(0x2000);
//! let thread = machine.thread_mut(0);
//! thread.set_pc(0x1000);
//! thread.set_scalar(SReg::RA, 0x2000);
//! thread.set_scalar(SReg::RM, 0xffff);
//! thread.set_scalar(SReg::S0, 40);
//! assert_eq!(machine.run(0, 1000), Stop::Breakpoint { pc: 0x2000 });
//! assert_eq!(machine.thread(0).scalar(SReg::S0), 42);
//! # Ok::<(), npu_sim::MemoryFull>(())
//! ```
//!
//! # Threads and cores
//!
//! The host sets the PC of each thread ([`Machine::boot`]), enables threads by a mask for each core
//! ([`Machine::enable`]) and runs them in turns ([`Machine::run_threads`]) until all have ended or
//! none can continue. A [`Deadlock`] then lists the waiting threads and their locations. Turns
//! depend on nothing but a [`Schedule`], so that runs are repeatable. [`Machine::run`] runs one
//! thread alone.
//!
//! # Caches
//!
//! By default the machine is [coherent](Config::coherent): stores reach main memory immediately.
//! This is fast, and it suits embedders such as a JIT that read memory between runs. Otherwise each
//! core has its own write-back data cache, as on the hardware: stores that the program has not
//! flushed are invisible to the host, and in a non-coherent region also to other cores.
//! [`Machine::run_coherence`] runs all threads with the messages and the faults of the hardware
//! between these caches, in random orders.
//!
//! # Structure
//!
//! - `machine` owns the state; `run` drives both interpreters for one thread, `schedule` for all
//!   threads.
//! - `exec` is the definition of the machine: it executes one instruction of any value.
//! - `fast` is the fast interpreter. It repeats the common cases on 8-byte operations, several at a
//!   time, and leaves everything else to `exec`. `predecode` produces these operations from
//!   instruction words.
//! - `alu` has a table of the operations. `exec`, `predecode`, `hazard`, `operands` and `timing`
//!   match on the instruction that [`npu_mc::split`] decodes. None of these matches has a wildcard
//!   arm, so that a new instruction in td requires a new arm.
//! - `hazard` tracks the state that errata depend on. It costs nothing while it tracks nothing.
//! - `step` is the interface for timing models and debuggers: [`Machine::step`] executes one
//!   instruction of one thread and returns its effect.
//! - `jit/` translates hot loops to host code (feature `jit`, off by default).
//! - `parallel` runs cores in parallel on host threads, each with a view of memory.
//! - `cache` has the data caches, `barrier` the barriers.
//! - [`coherence`] has the coherence protocol of several cores with its faults, and a checker that
//!   goes through all orders of small programs.
//! - `sharing` finds the faults of several cores in strict machines.
//! - `timing` models the pipelines: [`Machine::run_timed`] counts cycles.
//!
//! # Limits
//!
//! - Without [`Machine::run_timed`] the cycle counter of a core counts its instructions, and the
//!   miss counters are 0. [`Machine::set_cycles`] and [`Machine::set_counters`] override both.
//! - Instruction fetch reads main memory, as if no instruction were ever cached.
//! - With several cores the caches choose victims round-robin, as in the one-core system, and the
//!   second-level cache counts as main memory. The last unit of a non-coherent region counts as
//!   part of the region. Each core is a separate tile.
//! - A scratchpad access directly after a misaligned one is not dropped (`docs/machine/memory.md`).
//! - Undriven bits in memory are tracked for each thread separately.
//! - [`Config::memory_limit`] bounds memory. Unwritten memory is zero, or has the contents of
//!   [`Config::fill`].
//!
//! # Invariants
//!
//! - [`Machine::run`] and [`Machine::run_traced`], which uses the definition alone, agree in
//!   everything (tested on random programs). Runs of all threads agree with single steps in the
//!   same order, runs with translations agree with runs without, and runs on one host thread agree
//!   with runs on several.
//! - No input panics, and every run ends after at most the given number of instructions.

#![deny(missing_docs)]
// Every match on an operation or instruction has to consider new ones in td.
#![warn(clippy::wildcard_enum_match_arm)]

mod alu;
mod barrier;
mod cache;
pub mod coherence;
mod exec;
mod fast;
mod fill;
mod findings;
pub mod fp;
mod hazard;
#[cfg(feature = "jit")]
mod jit;
mod late;
mod machine;
mod mem_op;
mod memory;
mod operands;
mod parallel;
mod predecode;
mod registers;
mod replacement;
mod rest;
mod run;
mod schedule;
mod shared;
mod sharing;
mod step;
mod thread;
mod thread_list;
mod timing;
mod topology;
mod trace;

pub use barrier::Waiting;
pub use exec::{Access, Control, Effect, Space};
pub use fill::Fill;
pub use findings::{Finding, Hazard};
pub use hazard::LOST_WINDOW;
pub use machine::{Config, Machine, Stop, THREADS};
pub use memory::{Memory, MemoryFull, PAGE_SIZE};
pub use npu_mc::machine::TrapReason;
pub use registers::{LANES, Lanes};
pub use rest::{HangReason, Status};
pub use schedule::{Deadlock, Halt, Hung, QUANTUM, Schedule, by_thread};
pub use shared::SCRATCHPAD_SIZE;
pub use step::{Progress, Step};
pub use thread::Thread;
pub use thread_list::thread_list;
pub use timing::{
    Awaited, ChromeTrace, CoreMisses, CoreSet, FunctionCounters, Issue, KanataTrace, LINE_SOURCES, Leg, LineMisses,
    LineRequest, LineSource, LinkUse, MissCounters, Misses, MissesReport, Names, NetworkCounters, NoSink, PLACES,
    Place, Report, STALLS, Sharing, Sink, Sinks, Stall, ThreadCounters, Timing, TimingConfig, VariableMisses, Wait,
    Waits, WaitsReport, counted,
};
pub use topology::{CORE_LIMIT, Topology, TopologyError};
pub use trace::TraceEvent;
