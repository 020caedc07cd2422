//! The hardware's view of a word, for simulators.
//!
//! The machine decodes more laxly than the assembler's tables: it ignores the mask bit and unused fields, and
//! does something with many words that are no instruction (`docs/machine/formats.md`, `docs/machine/operations.md`). [`split`] decodes
//! a word into its format, the operation, and the fields the hardware reads. td makes all of it: whatever matches on [`RawInst`] and
//! on the operations without a catch-all considers each instruction, and no longer builds when td gets one.

pub use crate::desc::HwOpInfo;
pub use crate::generated::{
    AluOp, Ctr, CtrOp, HwStatus, Jba, JbaOp, Jra, JraOp, Mem, MemOp, Mvi, MviOp, RawInst, Ri, Rr, split,
};
