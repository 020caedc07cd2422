//! What instructions do, as typed graphs: the model, how it is read from td, as Rust tables and as text for people.
//!
//! `td/NaplesPUSemantics.td` declares the language; here is what its operations mean for widths and lanes.

pub mod graph;
mod names;
mod read;
mod statement;
mod text;

pub use graph::{Node, NodeId, NodeKind, Operation, Operations, Output, Semantics, Statement};
pub(crate) use read::{Context, Reader, in_operation};
pub use text::operation_text;
