//! The erratum "lost result before a taken branch" (`microarch.md` section 10, number 1; td record
//! `ErratumLostResult`).
//!
//! An instruction that issues in the cycle right before a taken branch loses its busy bit, and if its latency exceeds
//! that of the branch, code at the target reads the old register. So no such instruction may stand directly in front
//! of a branch. A branch that itself waits for the result is safe, and so is a distance of two instructions.
//!
//! Where the hazard occurs, the instruction is exchanged with an independent one in front of it; if there is none, an
//! instruction without effect goes in between. Words that are only fetched and never issued do not help, hence not a
//! `nop`.

use crate::finish::effects::Effects;
use crate::finish::func::{Fixup, MachFunction, McInst};
use crate::finish::places::{self, Reordered};
use crate::inst::reg::machine;
use npu_mc::{Inst, Opcode, Operand};

/// Makes the order of instructions safe.
pub fn run(func: &mut MachFunction) {
    let mut separated = Vec::new();
    let mut exchanged = Vec::new();
    let mut is_target = None;
    for branch in 1..func.insts.len() {
        if !is_hazard(&func.insts, branch) {
            continue;
        }
        let is_target = is_target.get_or_insert_with(|| func.label_positions());
        if branch >= 2 && can_exchange(&func.insts, is_target, branch) {
            func.insts.swap(branch - 2, branch - 1);
            exchanged.push(Reordered {
                start: branch - 2,
                order: vec![1, 0],
            });
        } else {
            separated.push(branch);
        }
    }
    places::reorder(func, &exchanged);
    if separated.is_empty() {
        return;
    }
    let mut next = separated.into_iter().peekable();
    func.rewrite(|list, index, inst| {
        if next.next_if_eq(&index).is_some() {
            list.push(separator(&inst));
        }
        list.push(inst);
    });
}

/// Whether the branch at the index can make the result of the instruction before it get lost.
pub fn is_hazard(insts: &[McInst], branch: usize) -> bool {
    let Some(before) = branch.checked_sub(1).and_then(|index| insts.get(index)) else {
        return false;
    };
    let Some(branch) = insts.get(branch).filter(|inst| inst.inst.desc().flags.is_branch()) else {
        return false;
    };
    let effects = Effects::of(&before.inst);
    !before.glued && effects.is_late && !effects.writes.meets(Effects::of(&branch.inst).reads)
}

/// Whether the instruction before the branch can change places with the one before it.
fn can_exchange(insts: &[McInst], is_target: &[bool], branch: usize) -> bool {
    let (first, second) = (&insts[branch - 2], &insts[branch - 1]);
    let glued = first.glued || branch >= 3 && insts[branch - 3].glued;
    let straight = !is_target[branch] && !is_target[branch - 1];
    let in_place = first.trap.is_some() || second.trap.is_some();
    if glued || !straight || in_place || !matches!(first.fixup, Fixup::None) {
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
    McInst::plain(inst, branch.origin)
}
