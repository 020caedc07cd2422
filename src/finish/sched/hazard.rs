//! The erratum "lost result before a taken branch" (`microarch.md` section 10, number 1; td record
//! `ErratumLostResult`).
//!
//! An instruction that issues in the cycle right before a taken branch loses its busy bit, and if its latency exceeds
//! that of the branch, code at the target reads the old register. So no such instruction may stand directly in front
//! of a branch. A branch that itself waits for the result is safe, and so is a distance of two instructions.
//!
//! Where the hazard occurs, the instruction is exchanged with an independent one before it; if there is none, an
//! instruction without effect goes in between. Words that are only fetched and never issued do not help, hence not a
//! `nop`.

use crate::finish::edit::Editor;
use crate::finish::effects::{Effects, may_be_late};
use crate::finish::func::{Fixup, MachFunction, McInst};
use crate::inst::reg::machine;
use crate::reason::Maker;
use npu_mc::{Inst, Opcode, Operand};

/// Makes the order of instructions safe.
pub fn run(func: &mut MachFunction) {
    // The branch is the last of its block, and what stands before it may be in the block before that falls through.
    let mut found: Vec<(usize, bool)> = Vec::new();
    for block in 0..func.block_count() {
        let range = func.block_range(block);
        if let Some(branch) = range.end.checked_sub(1).filter(|&branch| branch >= range.start)
            && is_hazard(func.insts(), branch)
        {
            found.push((branch, branch >= range.start + 2 && can_exchange(func.insts(), branch)));
        }
    }
    if found.is_empty() {
        return;
    }
    let mut edit = Editor::without_effects(func);
    for (branch, exchange) in found {
        if exchange {
            edit.reorder(branch - 2..branch, &[1, 0]);
        } else {
            let separator = separator(&edit.insts()[branch]);
            edit.insert(branch, separator);
        }
    }
    edit.finish();
}

/// Whether the branch at the index can make the result of the instruction before it get lost.
pub fn is_hazard(insts: &[McInst], branch: usize) -> bool {
    let Some(before) = branch.checked_sub(1).and_then(|index| insts.get(index)) else {
        return false;
    };
    let Some(branch) = insts.get(branch).filter(|inst| inst.is_branch()) else {
        return false;
    };
    !before.glued && may_be_late(before.inst.opcode) && is_lost(&Effects::of(&before.inst), &Effects::of(&branch.inst))
}

/// Whether the branch can make the result of an instruction directly before it get lost.
pub fn is_lost(before: &Effects, branch: &Effects) -> bool {
    before.is_late && !before.writes.meets(branch.reads)
}

/// Whether the instruction before the branch can change places with the one before it.
fn can_exchange(insts: &[McInst], branch: usize) -> bool {
    let (first, second) = (&insts[branch - 2], &insts[branch - 1]);
    let glued = first.glued || branch >= 3 && insts[branch - 3].glued;
    let in_place = first.trap.is_some() || second.trap.is_some();
    if glued || in_place || !matches!(first.fixup, Fixup::None) {
        return false;
    }
    let (first, second) = (Effects::of(&first.inst), Effects::of(&second.inst));
    if first.is_branch || first.is_late {
        return false;
    }
    let share_registers =
        first.writes.meets(second.depends_on().or(second.writes)) || first.depends_on().meets(second.writes);
    let share_memory = first.touches_memory() && second.touches_memory();
    let reads_pc = first.reads.or(second.reads).contains(machine::PC);
    !(share_registers || share_memory || reads_pc)
}

/// An instruction that takes an issue slot, waits for nothing and changes nothing that anybody reads.
fn separator(branch: &McInst) -> McInst {
    let inst = Inst::new(Opcode::MOVEISI, [machine::SCRATCH.into(), Operand::Imm(0)]);
    McInst::plain(inst, branch.origin.remade_by(Maker::Hazard))
}
