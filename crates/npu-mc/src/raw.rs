//! The hardware's view of a word, for simulators.
//!
//! The machine decodes more laxly than the assembler's tables: it ignores the mask bit and unused fields, and
//! does something with many words that are no instruction (`docs/machine/formats.md`, `docs/machine/operations.md`). [`split`] takes a
//! word apart into the fields the hardware reads; the operation enums name what it does with their numbers.

pub use crate::desc::HwOpInfo;
pub use crate::generated::{AluOp, CtrOp, HwStatus, JbaOp, JraOp, MemOp, MviOp, RawInst, split};
