//! The hardware's view of a word, for simulators.
//!
//! The hardware decodes more words than the assembler's tables: it ignores the mask bit and unused
//! fields, and executes many words that are no instruction (`docs/machine/formats.md`,
//! `docs/machine/operations.md`). [`split`] decodes a word into its format, the operation and the
//! fields that the hardware reads. All types are generated from td. A `match` on [`RawInst`] or on
//! the operations without a catch-all arm covers each instruction, and fails to compile when td
//! adds one.

pub use crate::desc::HwOpInfo;
pub use crate::generated::{
    AluOp, Ctr, CtrOp, HwStatus, Jba, JbaOp, Jra, JraOp, Mem, MemOp, Mvi, MviOp, RawInst, Ri, Rr, split,
};
