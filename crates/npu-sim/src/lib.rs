//! A functional simulator of NaplesPU cores.
//!
//! # Contract
//!
//! [`Machine`] holds main memory, the console, barriers, and of each core the hardware threads, the scratchpad and the control
//! registers. It runs threads instruction by instruction with the results of the real hardware, faults included: floats round as the
//! hardware rounds ([`fp`]), the `m` bit means nothing, packed vector loads take the wrong bytes, misaligned accesses trap
//! late, and so on (`docs/machine/`).
//!
//! An instruction word of any value does what the hardware does with it. Whatever would stop a hardware thread for ever stops
//! the run with [`Stop::Hang`] and a [`HangReason`].
//!
//! Errata whose outcome depends on timing, and results that the hardware leaves undefined, are collected as [`Finding`]s; with
//! [`Config::strict`] the first one stops the run. In their place the model takes the outcome that an unhurried pipeline
//! gives: no result is lost, a trap takes effect before the next instruction, undriven bits are 0.
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
//! The host puts a PC into each thread ([`Machine::boot`]), enables threads by a mask for each core ([`Machine::enable`]) and runs
//! them in turns ([`Machine::run_threads`]) until all have ended or none can go on; then a [`Deadlock`] says who waits where.
//! Turns follow a [`Schedule`] and nothing else, so that a run repeats. [`Machine::run`] runs one thread alone.
//!
//! # Caches
//!
//! By default the machine is [coherent](Config::coherent): stores are in main memory at once, which is fast and right for
//! everything that looks at memory from outside between runs, as a JIT does. Without it each core has its data cache,
//! write-back as on the hardware: what a program forgot to flush is not there for the host, nor for another core in a
//! non-coherent region.
//!
//! # Structure
//!
//! `exec` is the definition: one instruction, whatever its word. `fast` repeats the common cases on words that `predecode`
//! has turned into 8-byte operations, some words at a time, and hands over to `exec` for everything else. `exec`, `predecode`,
//! `hazard`, `operands` and `timing` match on the instruction that [`npu_mc::split`] decodes, and `alu` has a table of the
//! operations: none of them has an arm for all others, so that an instruction that td gets needs its own. `hazard` follows what errata
//! need followed, and costs nothing while there is nothing to follow. `machine` owns the state, `run` drives the two for one
//! thread, `schedule` for all. `step` is the way in for a timing model or a debugger: [`Machine::step`] executes one instruction
//! of one thread and returns what it did. With the feature `jit`, which is off by default, `jit/` turns hot loops into code of
//! the host. `parallel` runs cores at the same time in threads of the host, on views of memory. `cache` and `barrier` are what
//! their names say. `timing` has the pipelines: for cycles, run with [`Machine::run_timed`].
//!
//! # Limits
//!
//! - Without [`Machine::run_timed`] the cycle counter of a core counts its instructions, and the counters of misses are 0, unless
//!   somebody sets them ([`Machine::set_cycles`], [`Machine::set_counters`]).
//! - Instruction fetch reads main memory, as if no instruction were ever cached.
//! - With several cores the caches have the round-robin victims of the one-core system, the second-level cache counts as main
//!   memory, and the last unit of a non-coherent region is taken to be inside it. Each core is a tile of its own.
//! - A scratchpad access directly after a misaligned one is not dropped (`docs/machine/memory.md`).
//! - Undriven bits are followed through memory for each thread by itself.
//! - Memory is bounded by [`Config::memory_limit`]; what nobody wrote is zero, or what [`Config::fill`] says.
//!
//! # Invariants
//!
//! - [`Machine::run`] and [`Machine::run_traced`], which uses the definition alone, agree in everything (tested on random
//!   programs); so do the runs of all threads and single steps in the same order, runs with and without translations, and
//!   by one thread of the host or several.
//! - No input panics, and every run ends after at most the given number of instructions.

#![deny(missing_docs)]
// An operation or instruction that td gets anew has to be considered wherever they are distinguished.
#![warn(clippy::wildcard_enum_match_arm)]

mod alu;
mod barrier;
mod cache;
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
mod rest;
mod run;
mod schedule;
mod shared;
mod step;
mod thread;
mod timing;
mod trace;

pub use barrier::Waiting;
pub use exec::{Access, Control, Effect, Space};
pub use fill::Fill;
pub use findings::{Finding, Hazard};
pub use hazard::LOST_WINDOW;
pub use machine::{CORE_LIMIT, Config, Machine, Stop, THREADS};
pub use memory::{Memory, MemoryFull, PAGE_SIZE};
pub use npu_mc::machine::TrapReason;
pub use registers::{LANES, Lanes};
pub use rest::{HangReason, Status};
pub use schedule::{Deadlock, Halt, Hung, QUANTUM, Schedule};
pub use shared::SCRATCHPAD_SIZE;
pub use step::{Progress, Step};
pub use thread::Thread;
pub use timing::{
    Awaited, Both, ChromeTrace, FunctionCounters, Issue, KanataTrace, Leg, NetworkCounters, NoSink, PLACES, Place,
    Report, STALLS, Sink, Stall, ThreadCounters, Timing, TimingConfig, Wait, Waits, WaitsReport,
};
pub use trace::TraceEvent;
