//! A Cranelift module whose functions run on the simulator.
//!
//! # Contract
//!
//! [`NpuModule`] implements [`cranelift_module::Module`]: front ends declare and define functions
//! and data as for `cranelift-jit` or `cranelift-object`. In addition, it calls functions with
//! typed arguments and results, reads and writes the memory of the device, and reports every error
//! of a call with its location ([`RunError`]).
//!
//! A symbol resolves to the first of these that exists:
//!
//! 1. a definition of the module,
//! 2. an address from the host ([`NpuModule::define_symbol`], [`NpuModule::set_symbol_lookup`]),
//! 3. a routine of the runtime,
//! 4. 0, if the symbol is preemptible.
//!
//! Symbols may be defined in any order, even after calls. Linking is incremental: objects do not
//! move, and memory keeps its contents. Functions and data can be freed, and functions can be
//! redefined. A call needs only the symbols that its function can reach;
//! [`NpuModule::finalize_definitions`] requires all of them.
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | `npu_module`, `module` | the module; its implementation of Cranelift's trait |
//! | `layout`, `link` | addresses, linking with `npu-link` |
//! | `values`, `call`, `threads` | locations of arguments and results, calls, calls on several hardware threads |
//! | `timed`, `timing`, `cycles` | the timing model of calls, and the cost of each instruction |
//! | `watch`, `observe`, `trace` | watchers of instructions, profiles, back traces |
//! | `host`, `host_functions` | host functions, which code of the device calls |
//! | `freed`, `unwind` | freed and redefined functions, the unwind table of exceptions |
//! | [`parallel`] | compilation on several threads |
//! | `error` | errors |
//!
//! [`Program`] is a thin layer on top for the functions of a CLIF file. [`Device`] is another one,
//! for hosts that use the machine as an accelerator, and [`dispatch`] executes kernels that are
//! written for one work-item.

#![deny(missing_docs)]

mod call;
mod copied;
mod copies;
mod cycles;
pub mod device;
pub mod dispatch;
mod error;
mod freed;
mod host;
mod host_functions;
mod layout;
mod link;
mod module;
mod npu_module;
mod observe;
pub mod parallel;
mod program;
mod threads;
mod timed;
mod timing;
mod trace;
mod unwind;
mod values;
mod watch;

pub use cycles::InstCycles;
pub use device::Device;
pub use error::{DefineError, LinkError, Location, RunError, SourceLine, StuckThread, TrapReport};
pub use host::{HostCall, HostFunction, HostStop};
pub use layout::stack_top;
pub use naplespu_object::front::function_name;
pub use npu_module::{NpuModule, SymbolLookup};
pub use program::Program;
pub use trace::Frame;
pub use values::host_types;
pub use watch::{CodeMap, TimedRun, Watcher};
