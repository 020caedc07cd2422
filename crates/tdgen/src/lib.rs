//! Back ends over TableGen records, for build scripts.
//!
//! [`tablegen`] reads the target description in `td/` and is independent of targets. This crate
//! defines the meaning of the records: [`load`](load()) checks them and resolves them into the
//! typed tables of [`model`], and the back ends generate source text from these:
//!
//! * [`emit_mc`](emit_mc()): the tables of `npu-mc` (registers, opcodes, encodings, decoder,
//!   calling convention, relations, hardware decoding, relocations, errata);
//! * [`emit_semantics`]: the tables of `npu-mc` with the semantics of instructions;
//! * [`emit_settings`](emit_settings()): the settings of the compiler, including those of the
//!   errata;
//! * [`emit_isle`](emit_isle()): the compiler's instruction constructors, and lowering rules from
//!   td's patterns;
//! * [`emit_legalize`](emit_legalize()): the legalization of CLIF instructions by opcode and type;
//! * [`emit_routines`](emit_routines()): the routines of the runtime.
//!
//! These back ends work for any target:
//!
//! * [`instr_map`](instr_map()) and [`searchable_tables`](searchable_tables()): Rust tables of the
//!   `InstrMapping`, `GenericEnum` and `GenericTable` records of a program.
//!
//! One back end generates a document:
//!
//! * [`isa_manual`](isa_manual()): the instruction set manual, in Markdown.
//!
//! [`build`] has the entry for build scripts: it reads the description once and runs all back ends.
//!
//! # Contract
//!
//! * A missing or contradictory fact is an error with its location in td: two instructions with the
//!   same constant bits, an operand that is encoded twice, in part or not at all, a bit of a word
//!   that nothing defines, an unknown operand class, a text that names an unknown operand, a
//!   relation with two targets. No fact is guessed.
//! * All faults of a description are reported, not only the first.
//! * The same records give the same text.
//!
//! # Limits
//!
//! Instructions are one 32-bit word. A register file has at most 64 registers, numbered without
//! gaps.

#![deny(missing_docs)]

pub mod build;
mod emit;
mod instr_map;
mod isa_manual;
mod isle;
mod legalize;
mod load;
pub mod model;
mod relation;
mod routines;
mod rust_names;
mod searchable_tables;
pub mod semantics;
mod tree;

pub use emit::{emit_mc, emit_semantics, emit_settings};
pub use instr_map::instr_map;
pub use isa_manual::isa_manual;
pub use isle::{Rule, emit_isle, named_instructions, selection_rules};
pub use legalize::emit_legalize;
pub use load::load;
pub use routines::emit_routines;
pub use searchable_tables::searchable_tables;
