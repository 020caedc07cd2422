//! The coherence protocol of the hardware with its faults, as a functional model, and a checker that
//! goes through all orders of small programs.
//!
//! The data caches and directories change their states by messages
//! (`docs/machine/several-cores.md`). Messages of one source, destination and virtual network arrive
//! in order; all others can arrive in any order. So the model has more orders than the hardware,
//! whose networks are seldom that unequal. A program that passes in all orders passes on the hardware,
//! as far as the transitions are right and within the limits below. One that fails may need an order
//! that the hardware never has.
//!
//! - `message` has the messages and the network, `controller` the data cache of a core, `home` the
//!   directory and second level of a tile, `system` all of them together with memory.
//! - [`explore`](explore()) is the checker.
//! - `run` runs a machine in random orders ([`Machine::run_coherence`](crate::Machine)); `ports` is
//!   the data cache as its instructions see it.
//!
//! # Limits
//!
//! - The second level has no limit of lines: no line leaves it.
//! - A core has any number of pending transactions; the hardware has 16, and three in a set.
//! - No run of the hardware has shown some transitions. The model drops messages for absent lines,
//!   a `flush` of a line that a core asks for waits, and a `flush` of a line that the core gives back
//!   writes the line unless another core has taken it.

mod controller;
mod explore;
mod home;
mod message;
pub(crate) mod ports;
mod run;
mod system;

pub use controller::{Access, Fault};
pub use explore::{Event, Explored, Failure, Operation, Program, Wrong, explore};
pub use message::{Kind, Node};
pub use run::Coherence;
