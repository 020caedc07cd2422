//! Copy propagation: moves that register allocation left.
//!
//! regalloc2 splits the range of a value where constraints conflict and connects the parts by moves. Within a block many
//! of them go away: a use of the copy can often read the original, and a result that is only moved elsewhere can be
//! computed there. What is live across blocks is found first, so a move is dropped only if nobody reads its result.
//!
//! Scalars only.

use super::cfg::{Block, blocks, liveness};
use super::effects::{Conventions, Effects, RegSet};
use super::func::{MachFunction, McInst};
use super::places::Before;
use npu_mc::{Opcode, Operand, Reg, SReg};

/// Removes what it can.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    if !func.insts.iter().any(|inst| as_move(inst, conventions).is_some()) {
        return;
    }
    let before = Before::new(func);
    let mut effects = Effects::of_all(&func.insts);
    let mut blocks = blocks(func, &effects);
    liveness(&func.insts, &effects, &mut blocks, conventions);
    for block in &blocks {
        // An original that is read later was read by its move already, and a copy is written before it is read: what is live
        // between blocks stays the same.
        read_originals(&mut func.insts, &mut effects, block, conventions);
    }
    let mut dead = vec![false; func.insts.len()];
    for block in &blocks {
        compute_in_place(&mut func.insts, &mut effects, block, &mut dead, conventions);
    }
    for block in &blocks {
        drop_dead(&func.insts, &effects, block, &mut dead, conventions);
    }
    before.renamed(func, &blocks, |index| dead[index]);
    func.remove(&dead);
}

/// Destination and source of a plain move between scalars.
pub(super) fn as_move(inst: &McInst, conventions: &Conventions) -> Option<(SReg, SReg)> {
    if inst.inst.opcode != Opcode::MOVE_SS_32 || inst.glued {
        return None;
    }
    match inst.inst.operands.as_ref() {
        &[Operand::S(to), Operand::S(from)] if !conventions.is_special(to) && !reads_differently(from) => {
            Some((to, from))
        }
        _ => None,
    }
}

/// `pc` reads as something else at every instruction.
fn reads_differently(reg: SReg) -> bool {
    reg == SReg::PC || reg == SReg::RM
}

/// Replaces a register among the operands that are read, or written.
pub(super) fn rename(inst: &mut McInst, effects: &mut Effects, from: SReg, to: SReg, defs: bool) {
    let set = if defs { effects.writes } else { effects.reads };
    if !set.contains(Reg::S(from)) {
        return;
    }
    let desc = inst.inst.desc();
    for (index, described) in desc.operands.iter().enumerate() {
        if described.is_def == defs && inst.inst.operands.get(index) == Some(&Operand::S(from)) {
            inst.inst.operands.set(index, to.into());
        }
    }
    *effects = Effects::of(&inst.inst);
}

/// Lets instructions after a move read its source while both registers keep their values.
fn read_originals(insts: &mut [McInst], effects: &mut [Effects], block: &Block, conventions: &Conventions) {
    let mut copies: Vec<(SReg, SReg)> = Vec::new();
    for index in block.start..block.end {
        for &(copy, original) in &copies {
            rename(&mut insts[index], &mut effects[index], copy, original, false);
        }
        let writes = effects[index].writes;
        copies.retain(|&(copy, original)| !writes.contains(Reg::S(copy)) && !writes.contains(Reg::S(original)));
        if let Some((to, from)) = as_move(&insts[index], conventions)
            && to != from
        {
            copies.push((to, from));
        }
    }
}

/// Lets an instruction whose result is only moved elsewhere compute it there.
fn compute_in_place(
    insts: &mut [McInst],
    effects: &mut [Effects],
    block: &Block,
    dead: &mut [bool],
    conventions: &Conventions,
) {
    let mut live = block.live_out;
    for index in (block.start..block.end).rev() {
        let live_after = live;
        live = live
            .without(effects[index].writes)
            .or(conventions.needs(&insts[index], &effects[index]));
        let Some((to, from)) =
            as_move(&insts[index], conventions).filter(|(to, from)| to != from && !conventions.is_special(*from))
        else {
            continue;
        };
        if live_after.contains(Reg::S(from)) {
            continue;
        }
        let Some(source) = definition(insts, effects, block.start, index, to, from, conventions) else {
            continue;
        };
        rename(&mut insts[source], &mut effects[source], from, to, true);
        for between in source + 1..index {
            rename(&mut insts[between], &mut effects[between], from, to, false);
        }
        dead[index] = true;
        // Before the dropped move the value is where it was wanted.
        live = live.without(RegSet::one(Reg::S(from))).or(RegSet::one(Reg::S(to)));
    }
}

/// The instruction before the move that computes its source, if nothing on the way needs either register otherwise.
fn definition(
    insts: &[McInst],
    effects: &[Effects],
    start: usize,
    at: usize,
    to: SReg,
    from: SReg,
    conventions: &Conventions,
) -> Option<usize> {
    let (to, from) = (RegSet::one(Reg::S(to)), RegSet::one(Reg::S(from)));
    for index in (start..at).rev() {
        let writes = effects[index].writes.scalars();
        if writes.meets(from) {
            // Both halves of a constant, or an old value that stays in part, are not one definition.
            return (!insts[index].inst.desc().reads_dst && writes == from).then_some(index);
        }
        let needs = conventions.needs(&insts[index], &effects[index]);
        if writes.or(needs).meets(to) || effects[index].is_branch {
            return None;
        }
    }
    None
}

/// Finds the moves whose result nobody reads.
fn drop_dead(insts: &[McInst], effects: &[Effects], block: &Block, dead: &mut [bool], conventions: &Conventions) {
    let mut live = block.live_out;
    for index in (block.start..block.end).rev() {
        if dead[index] {
            continue;
        }
        if let Some((to, from)) = as_move(&insts[index], conventions)
            && (to == from || !live.contains(Reg::S(to)))
        {
            dead[index] = true;
            continue;
        }
        live = live
            .without(effects[index].writes)
            .or(conventions.needs(&insts[index], &effects[index]));
    }
}
