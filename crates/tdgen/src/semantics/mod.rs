//! The semantics of instructions as typed graphs: the model, reading from td, Rust tables, and
//! text.
//!
//! `td/NaplesPUSemantics.td` declares the language; this module defines widths and lanes of its
//! operations.

pub mod graph;
mod names;
mod read;
mod statement;
mod text;

pub use graph::{Node, NodeId, NodeKind, Operation, Operations, Output, Semantics, Statement};
pub(crate) use read::{Context, Reader, in_operation};
pub use text::operation_text;
