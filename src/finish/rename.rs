//! Register renaming: registers for values that live in one block only, so that none is written again soon after it was used.
//!
//! A routine of the runtime may change few registers, and regalloc2 takes the first that is free. The scheduler then finds
//! independent computations tied to each other by the register they share. Here such values are spread over all registers
//! that the routine may change, the one that was left alone longest first.

use super::copyprop::as_move;
use super::edit::{Editor, Role};
use super::effects::{Conventions, REGISTERS, RegSet, index_of};
use super::func::{CallKind, MachFunction, McInst};
use crate::abi::registers::{RegisterSet, clobbered};
use crate::inst::reg::from_preg;
use npu_mc::{Opcode, Reg, SReg};
use std::ops::Range;

/// Values that live longer, counted in instructions, keep their registers.
const LOOK_AHEAD: usize = 128;

/// Gives values other registers where that unties them.
pub fn run(func: &mut MachFunction, registers: RegisterSet, conventions: &Conventions) {
    if registers != RegisterSet::PreserveAll {
        // There are so many registers that regalloc2 goes round.
        return;
    }
    let free: Vec<SReg> = clobbered(registers)
        .into_iter()
        .filter_map(from_preg)
        .filter_map(|reg| match reg {
            Reg::S(reg) => Some(reg),
            Reg::V(_) => None,
        })
        .collect();
    let mut edit = Editor::with_liveness(func, conventions);
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        if !edit.insts()[range.clone()].iter().any(calls) {
            let live_out = edit.live_out(block);
            rename_block(&mut edit, range, live_out, &free, conventions);
        }
    }
    edit.finish();
}

/// Calls read and change what no operand says.
fn calls(inst: &McInst) -> bool {
    inst.call != CallKind::None
        || matches!(
            inst.inst.opcode,
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG | Opcode::JUMPREG
        )
}

fn rename_block(
    edit: &mut Editor<'_>,
    block: Range<usize>,
    live_out: RegSet,
    free: &[SReg],
    conventions: &Conventions,
) {
    let start = block.start;
    // What is live after each instruction.
    let mut live_after: Vec<RegSet> = vec![RegSet::EMPTY; block.len()];
    let mut live = live_out;
    for index in block.clone().rev() {
        live_after[index - start] = live;
        live = before(edit, index, live, conventions);
    }
    let live_in = live;
    // After which instruction each register was last named.
    let mut named = [0usize; REGISTERS];
    let at = |reg: SReg| index_of(Reg::S(reg));
    for index in block.clone() {
        let number = index - start;
        if let Some((reg, end)) = local_value(edit, index..block.end, &live_after[number..], conventions) {
            let live_before = if number == 0 { live_in } else { live_after[number - 1] };
            let held = live_after[number..end - start]
                .iter()
                .fold(live_before, |set, live| set.or(*live));
            let needed = conventions.needs(&edit.insts()[index], &edit.effects()[index]);
            let taken = edit.effects()[index + 1..=end]
                .iter()
                .fold(held.or(needed), |set, effects| set.or(effects.writes));
            let best = free
                .iter()
                .filter(|other| !taken.contains(Reg::S(**other)))
                .min_by_key(|other| named[at(**other)]);
            if let Some(&other) = best
                && named[at(other)] < named[at(reg)]
            {
                edit.rename(index, reg, other, Role::Def);
                for user in index + 1..=end {
                    edit.rename(user, reg, other, Role::Use);
                    if edit.insts()[user].inst.desc().reads_dst {
                        edit.rename(user, reg, other, Role::Def);
                    }
                }
                for live in &mut live_after[number..end - start] {
                    *live = live.without(RegSet::one(Reg::S(reg))).or(RegSet::one(Reg::S(other)));
                }
            }
        }
        let effects = &edit.effects()[index];
        for place in effects.reads.or(effects.writes).scalars().indices() {
            named[place] = number + 1;
        }
    }
}

/// What is live before an instruction, from what is live after it.
fn before(edit: &Editor<'_>, index: usize, live: RegSet, conventions: &Conventions) -> RegSet {
    let effects = &edit.effects()[index];
    live.without(effects.writes)
        .or(conventions.needs(&edit.insts()[index], effects))
}

/// The register that the first instruction of the range writes and the index of the last instruction that reads it, if the
/// value is not needed after that, nobody reads it but as an operand, and it is not there for its register.
fn local_value(
    edit: &Editor<'_>,
    range: Range<usize>,
    live_after: &[RegSet],
    conventions: &Conventions,
) -> Option<(SReg, usize)> {
    let inst = &edit.insts()[range.start];
    let mut written = edit.effects()[range.start].writes.iter();
    let (Some(Reg::S(reg)), None) = (written.next(), written.next()) else {
        return None;
    };
    if conventions.is_special(reg) || inst.glued || inst.inst.desc().reads_dst || as_move(inst, conventions).is_some() {
        return None;
    }
    let own = RegSet::one(Reg::S(reg));
    let mut live_after = live_after.iter();
    if !live_after.next()?.meets(own) {
        return None;
    }
    for (end, live_after) in (range.start + 1..range.end).zip(live_after).take(LOOK_AHEAD) {
        let (inst, effects) = (&edit.insts()[end], &edit.effects()[end]);
        let read = effects.reads.meets(own);
        let needed = conventions.needs(inst, effects).meets(own);
        if inst.glued || (!read && needed) || inst.inst.opcode == Opcode::JRET {
            return None;
        }
        let written = effects.writes.meets(own);
        let continued = inst.inst.desc().reads_dst && written;
        if !live_after.meets(own) || (written && !continued) {
            return read.then_some((reg, end));
        }
    }
    None
}
