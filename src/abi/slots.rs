//! How stack slots are aligned.

use cranelift_codegen::ir::StackSlotData;
use npu_mc::env::GPR32;
use npu_mc::machine::STACK_ALIGN;

/// What a stack slot's address is known to be aligned to, in bytes: what it asks for, a word at least and 2^31 at most.
pub fn slot_alignment(slot: &StackSlotData) -> u32 {
    (1u32 << slot.align_shift.min(31)).max(GPR32.spill_align)
}

/// Whether a slot asks for more alignment than the stack pointer has. Its address is then rounded up at run time.
pub fn is_over_aligned(slot: &StackSlotData) -> bool {
    slot_alignment(slot) > STACK_ALIGN
}
