//! The alignment of stack slots.

use cranelift_codegen::ir::StackSlotData;
use npu_mc::env::GPR32;
use npu_mc::machine::STACK_ALIGN;

/// Returns the alignment of a stack slot in bytes: the requested one, but at least a word and at
/// most 2^31.
pub fn slot_alignment(slot: &StackSlotData) -> u32 {
    (1u32 << slot.align_shift.min(31)).max(GPR32.spill_align)
}

/// Returns whether a slot requests more alignment than the stack pointer has. The address of such a
/// slot is rounded up at run time.
pub fn is_over_aligned(slot: &StackSlotData) -> bool {
    slot_alignment(slot) > STACK_ALIGN
}
