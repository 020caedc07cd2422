//! Address spaces. CLIF has one; this machine has main memory and a scratchpad, whose addresses
//! overlap.
//!
//! The `user_id` of an alias region selects the scratchpad for an access. `opt/foreign.rs`
//! describes how Cranelift's egraph pass interprets regions.

use cranelift_codegen::ir::{AliasRegion, Function, Inst, InstructionData, MemFlags};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};

/// The address space of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Space {
    /// Main memory, accessed through the data cache.
    #[default]
    Main,
    /// The scratchpad of the core.
    Scratchpad,
}

/// Returns the space of an access with these flags.
pub fn of_flags(func: &Function, flags: MemFlags) -> Space {
    match func.dfg.mem_flags[flags].alias_region() {
        Some(region) if is_scratchpad(func, region) => Space::Scratchpad,
        _ => Space::Main,
    }
}

/// Returns the space that the instruction accesses, or main memory if it accesses none.
pub fn of_inst(func: &Function, inst: Inst) -> Space {
    of_data(func, &func.dfg.insts[inst])
}

/// Returns the space that an instruction with this data accesses, or main memory if it accesses
/// none.
pub fn of_data(func: &Function, data: &InstructionData) -> Space {
    match data.memflags() {
        Some(flags) => of_flags(func, flags),
        None => Space::Main,
    }
}

/// Returns whether a region is the scratchpad.
pub fn is_scratchpad(func: &Function, region: AliasRegion) -> bool {
    let id = func.dfg.alias_regions[region].user_id;
    id == SCRATCHPAD_SPACE || id == SCRATCHPAD_SPACE_DOC
}
