//! A module in Cranelift's sense whose functions run on the simulator.
//!
//! # Contract
//!
//! [`NpuModule`] implements [`cranelift_module::Module`]: what declares and defines functions and data for `cranelift-jit` or
//! `cranelift-object` does so here too. On top of that it calls functions with typed arguments and results, reads and writes
//! the memory of the device, and says of everything that goes wrong in a call where it was ([`RunError`]).
//!
//! A symbol is, in this order: a definition of the module; an address that the host gave ([`NpuModule::define_symbol`],
//! [`NpuModule::set_symbol_lookup`]); a routine of the runtime; 0, if it is preemptible. Symbols may come in any order and even
//! after calls: linking is incremental, an object does not move and memory keeps what was written. Functions and data can be freed, and
//! functions be defined anew. A call needs only the symbols
//! that its function can reach; [`NpuModule::finalize_definitions`] insists on all of them.
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | `npu_module`, `module` | the module; the trait of Cranelift |
//! | `layout`, `target`, `link` | addresses, names of references, linking by `npu-link` |
//! | `values`, `call`, `threads` | places of arguments and results, calls, calls on several hardware threads |
//! | `timed`, `timing`, `cycles` | the timing model of calls, and what each instruction costs |
//! | `watch`, `observe`, `trace` | every instruction of a call, profiles, back traces |
//! | `host`, `host_functions` | functions of the host that code of the device calls |
//! | `freed`, `unwind` | functions that are freed or replaced, the table for exceptions |
//! | [`parallel`] | compiling by several threads |
//! | `error` | all that can go wrong |
//!
//! [`Program`] is a thin layer on top, for the functions of a CLIF file; [`Device`] is another, for hosts that want an accelerator.

#![deny(missing_docs)]

mod call;
mod cycles;
pub mod device;
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
mod target;
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
pub use npu_module::{NpuModule, SymbolLookup};
pub use program::{Program, function_name};
pub use trace::Frame;
pub use values::host_types;
pub use watch::{CodeMap, Watcher};
