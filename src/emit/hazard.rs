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

use super::labels::{self, Reordered};
use super::masks::obeys_mask;
use super::{CallKind, Fixup, Item, Items};
use crate::inst::reg::Reg;
use npu_mc::machine::LOST_RESULT;
use npu_mc::{Inst, Opcode, Operand};

/// Makes the order of instructions safe.
pub fn run(items: &mut Items) {
    if !(1..items.list.len()).any(|i| is_hazard(&items.list, i)) {
        return;
    }
    let mut is_target = vec![false; items.list.len() + 1];
    for &position in &items.labels {
        if let Some(flag) = is_target.get_mut(position) {
            *flag = true;
        }
    }
    let mut exchanged = Vec::new();
    for branch in 2..items.list.len() {
        if is_hazard(&items.list, branch) && can_exchange(&items.list, &is_target, branch) {
            items.list.swap(branch - 2, branch - 1);
            exchanged.push(Reordered {
                start: branch - 2,
                order: vec![1, 0],
            });
        }
    }
    labels::reorder(items, &exchanged);
    let hazards: Vec<bool> = (0..items.list.len())
        .map(|i| i > 0 && is_hazard(&items.list, i))
        .collect();
    items.rewrite(|list, index, item| {
        if hazards[index] {
            list.push(separator(&item));
        }
        list.push(item);
    });
}

/// Whether the branch at the index can make the result of the instruction in front of it get lost.
pub fn is_hazard(list: &[Item], branch: usize) -> bool {
    let Some(before) = branch.checked_sub(1).and_then(|i| list.get(i)) else {
        return false;
    };
    let Some(branch) = list.get(branch) else { return false };
    branch.inst.desc().flags.is_branch()
        && !before.glued
        && result_is_late(&before.inst)
        && !before.inst.defs().any(|def| branch.inst.uses().any(|used| used == def))
}

/// Whether the result may come later than a branch resolves: long operations, and loads, which may miss.
fn result_is_late(inst: &Inst) -> bool {
    let desc = inst.desc();
    let has_result = inst.defs().next().is_some();
    let misses = desc.flags.may_load() && !desc.scratchpad;
    has_result && (misses || u32::from(desc.latency) > LOST_RESULT)
}

/// Whether the instruction in front of the branch can change places with the one in front of it.
fn can_exchange(list: &[Item], is_target: &[bool], branch: usize) -> bool {
    let (first, second) = (&list[branch - 2], &list[branch - 1]);
    let glued = first.glued || branch >= 3 && list[branch - 3].glued;
    let straight = !is_target[branch] && !is_target[branch - 1];
    if glued || !straight || first.inst.desc().flags.is_branch() || result_is_late(&first.inst) {
        return false;
    }
    if !matches!(first.fixup, Fixup::None) {
        return false;
    }
    let uses = |inst: &Inst| {
        let mask = Reg::MASK.as_real().filter(|_| obeys_mask(inst));
        inst.uses().chain(mask).collect::<Vec<_>>()
    };
    let touches = |a: &Inst, b: &Inst| {
        a.defs()
            .any(|def| uses(b).into_iter().chain(b.defs()).any(|other| other == def))
            || uses(a).into_iter().any(|u| b.defs().any(|d| d == u))
    };
    let memory = |inst: &Inst| {
        let flags = inst.desc().flags;
        flags.may_load() || flags.may_store() || flags.has_side_effects()
    };
    let reads_pc = |inst: &Inst| inst.uses().any(|r| Some(r) == Reg::PC.as_real());
    let ordered = touches(&first.inst, &second.inst) || memory(&first.inst) && memory(&second.inst);
    let in_place = |item: &Item| reads_pc(&item.inst) || item.trap.is_some();
    !ordered && !in_place(first) && !in_place(second)
}

/// An instruction that takes an issue slot, waits for nothing and changes nothing that anybody reads.
fn separator(branch: &Item) -> Item {
    let scratch = Reg::SCRATCH.as_real().map_or(Operand::Imm(0), Operand::from);
    Item {
        inst: Inst::new(Opcode::MOVEISI, [scratch, Operand::Imm(0)]),
        fixup: Fixup::None,
        origin: branch.origin,
        trap: None,
        glued: false,
        call: CallKind::None,
    }
}
