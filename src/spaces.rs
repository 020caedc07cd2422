//! Address spaces. CLIF has one; this machine has main memory and a scratchpad, whose addresses overlap.
//!
//! An alias region with its `user_id` says that an access goes to the scratchpad. What Cranelift's egraph pass takes a region for: `opt/foreign.rs`.

use cranelift_codegen::ir::{AliasRegion, Function, Inst, InstructionData, MemFlags};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};

/// Where an access goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Space {
    /// Main memory, behind the data cache.
    #[default]
    Main,
    /// The scratchpad of the core.
    Scratchpad,
}

/// The space of an access.
pub fn of_flags(func: &Function, flags: MemFlags) -> Space {
    match func.dfg.mem_flags[flags].alias_region() {
        Some(region) if is_scratchpad(func, region) => Space::Scratchpad,
        _ => Space::Main,
    }
}

/// The space that the instruction accesses, if it accesses one.
pub fn of_inst(func: &Function, inst: Inst) -> Space {
    of_data(func, &func.dfg.insts[inst])
}

/// The same of an instruction that has been looked up.
pub fn of_data(func: &Function, data: &InstructionData) -> Space {
    match data.memflags() {
        Some(flags) => of_flags(func, flags),
        None => Space::Main,
    }
}

/// Whether a region is that of the scratchpad.
pub fn is_scratchpad(func: &Function, region: AliasRegion) -> bool {
    let id = func.dfg.alias_regions[region].user_id;
    id == SCRATCHPAD_SPACE || id == SCRATCHPAD_SPACE_DOC
}
