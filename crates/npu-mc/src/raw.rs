//! The hardware's view of a word, for simulators.
//!
//! The machine decodes more laxly than the assembler's tables: it ignores the mask bit and unused fields, and
//! does something with many words that are no instruction (`microarch.md` sections 3 and 4). [`split`] takes a
//! word apart into the fields the hardware reads; the operation enums name what it does with their numbers.

use crate::inst::Unit;

pub use crate::generated::{AluOp, CtrOp, HwStatus, JbaOp, JraOp, MemOp, MviOp, RawInst, split};

/// What td's `HwOp` record says about an operation.
#[derive(Debug)]
pub struct HwOpInfo {
    /// The hardware's name.
    pub name: &'static str,
    /// The execution unit; for a memory operation that of main memory.
    pub unit: Unit,
    /// Cycles from issue to the issue of a dependent instruction (`microarch.md` 9.2); 0 without a result.
    pub latency: u8,
    /// Slot of the float unit's write port (`microarch.md` 9.3).
    pub fp_slot: Option<u8>,
    /// How well the hardware does it.
    pub status: HwStatus,
    /// How well it does it in the scratchpad.
    pub scratchpad_status: HwStatus,
    /// [`HwOpInfo::latency`] in the scratchpad.
    pub scratchpad_latency: u8,
    /// Bytes accessed in memory by a scalar, or by each lane of a vector; 0 for no access.
    pub access_bytes: u8,
    /// Alignment that the hardware checks in main memory, in bytes; 0 for no access.
    pub alignment: u8,
}
