//! Address spaces. CLIF has one; this machine has main memory and a scratchpad, whose addresses overlap.
//!
//! An alias region named by its `user_id` says that an access goes to the scratchpad. Cranelift takes a region for a hint
//! about one memory: a load in a region may be answered by a store in another one to the same address. So, while the
//! optimizer runs, addresses of the scratchpad have an offset that nobody knows.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AliasRegion, ExternalName, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, InstructionData, MemFlags,
};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};
use smallvec::SmallVec;

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

fn is_scratchpad(func: &Function, region: AliasRegion) -> bool {
    let id = func.dfg.alias_regions[region].user_id;
    id == SCRATCHPAD_SPACE || id == SCRATCHPAD_SPACE_DOC
}

/// The offset of the scratchpad's addresses in a function that is being optimized.
pub struct Separated(Option<GlobalValue>);

/// Adds the offset to every address of the scratchpad.
pub fn separate(func: &mut Function) -> Separated {
    if !func
        .dfg
        .alias_regions
        .iter()
        .any(|(region, _)| is_scratchpad(func, region))
    {
        return Separated(None);
    }
    // A symbol is a number that the optimizer knows nothing about, and the same one everywhere.
    let offset = func.create_global_value(GlobalValueData::Symbol {
        name: ExternalName::testcase("scratchpad"),
        offset: 0.into(),
        colocated: false,
        tls: false,
    });
    for inst in insts(func) {
        if of_inst(func, inst) != Space::Scratchpad {
            continue;
        }
        let Some(pointer) = pointer_argument(&func.dfg.insts[inst]) else {
            continue;
        };
        let old = func.dfg.inst_args(inst)[pointer];
        let ty = func.dfg.value_type(old);
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        let offset = cursor.ins().symbol_value(ty, offset);
        let sum = cursor.ins().iadd(old, offset);
        func.dfg.inst_args_mut(inst)[pointer] = sum;
    }
    Separated(Some(offset))
}

/// Takes the offset out again: it is 0, which lowering drops.
pub fn join(func: &mut Function, separated: &Separated) {
    let Some(offset) = separated.0 else {
        return;
    };
    for inst in insts(func) {
        let InstructionData::UnaryGlobalValue { global_value, .. } = func.dfg.insts[inst] else {
            continue;
        };
        if global_value == offset {
            let ty = func.dfg.ctrl_typevar(inst);
            func.replace(inst).iconst(ty, 0);
        }
    }
}

/// Which argument of an access is its address.
fn pointer_argument(data: &InstructionData) -> Option<usize> {
    Some(match data {
        InstructionData::Load { .. } | InstructionData::LoadNoOffset { .. } => 0,
        InstructionData::AtomicRmw { .. } | InstructionData::AtomicCas { .. } => 0,
        InstructionData::Store { .. } | InstructionData::StoreNoOffset { .. } => 1,
        _ => return None,
    })
}

fn insts(func: &Function) -> SmallVec<[Inst; 64]> {
    func.layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect()
}
