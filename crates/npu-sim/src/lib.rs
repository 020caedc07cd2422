//! A functional simulator of NaplesPU cores.
//!
//! # Contract
//!
//! [`Machine`] holds main memory, the console, barriers, and of each core the hardware threads, the scratchpad and the control
//! registers. It runs threads instruction by instruction with the results of the real hardware, faults included: floats round as the
//! hardware rounds ([`fp`]), the `m` bit means nothing, packed vector loads take the wrong bytes, misaligned accesses trap
//! late, and so on (`microarch.md` sections 3 to 7, 10 and 13).
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
//! # Structure
//!
//! `exec` is the definition: one instruction, whatever its word. `fast` repeats the common cases on words that `predecode`
//! has turned into 8-byte operations, page by page, and hands over to `exec` for everything else. `hazard` follows what errata
//! need followed, and costs nothing while there is nothing to follow. `machine` owns the state and drives the two. `step` is the
//! way in for a timing model or a debugger: [`Machine::step`] executes one instruction of one thread and tells what it did.
//!
//! # Limits
//!
//! - No timing: the cycle counter counts instructions, cache counters are 0.
//! - No caches: `flush` and `dcache_inv` only check their alignment, and stores are visible at once.
//! - [`Machine::run`] runs one thread; a barrier that it does not open stops that run.
//! - Memory is zero until written, and bounded by [`Config::memory_limit`].
//!
//! # Invariants
//!
//! - [`Machine::run`] and [`Machine::run_traced`], which uses the definition alone, agree in everything (tested on random
//!   programs).
//! - No input panics, and every run ends after at most the given number of instructions.

#![deny(missing_docs)]

mod alu;
mod barrier;
mod exec;
mod fast;
mod findings;
pub mod fp;
mod hazard;
pub mod image;
mod machine;
mod memory;
mod operands;
mod predecode;
mod shared;
mod step;
mod thread;
mod trace;

pub use barrier::Waiting;
pub use exec::{Access, Control, Effect, HangReason, Space};
pub use findings::{Finding, Hazard};
pub use hazard::LOST_WINDOW;
pub use machine::{CORE_LIMIT, Config, Machine, Stop, THREADS};
pub use memory::{Memory, MemoryFull, PAGE_SIZE};
pub use npu_mc::machine::TrapReason;
pub use shared::SCRATCHPAD_SIZE;
pub use step::{Progress, Step};
pub use thread::{LANES, Lanes, Status, Thread};
pub use trace::TraceEvent;
