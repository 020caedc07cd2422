//! Register renaming: registers for values that live in one block only, so that none is written again soon after it was used.
//!
//! A routine of the runtime may change few registers, and regalloc2 takes the first that is free. The scheduler then finds
//! independent computations tied to each other by the register they share. Here such values are spread over all registers
//! that the routine may change, the one that was left alone longest first.

use super::cfg::{Block, blocks, liveness};
use super::copyprop::{as_move, rename};
use super::effects::{Conventions, Effects, REGISTERS, RegSet, index_of};
use super::func::{CallKind, MachFunction, McInst};
use super::places::Before;
use crate::abi::registers::{RegisterSet, clobbered};
use crate::inst::reg::from_preg;
use npu_mc::{Opcode, Reg, SReg};

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
    let before = Before::new(func);
    let mut effects = Effects::of_all(&func.insts);
    let mut blocks = blocks(func, &effects);
    liveness(&func.insts, &effects, &mut blocks, conventions);
    for block in &blocks {
        let range = block.start..block.end;
        let insts = &mut func.insts[range.clone()];
        if !insts.iter().any(calls) {
            rename_block(insts, &mut effects[range], block, &free, conventions);
        }
    }
    before.renamed(func, &blocks, |_| false);
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
    insts: &mut [McInst],
    effects: &mut [Effects],
    block: &Block,
    free: &[SReg],
    conventions: &Conventions,
) {
    // What is live after each instruction.
    let mut live_after: Vec<RegSet> = vec![RegSet::EMPTY; insts.len()];
    let mut live = block.live_out;
    for index in (0..insts.len()).rev() {
        live_after[index] = live;
        live = live
            .without(effects[index].writes)
            .or(conventions.needs(&insts[index], &effects[index]));
    }
    let live_in = live;
    // After which instruction each register was last named.
    let mut named = [0usize; REGISTERS];
    let at = |reg: SReg| index_of(Reg::S(reg));
    for index in 0..insts.len() {
        if let Some((reg, end)) = local_value(insts, effects, index, &live_after, conventions) {
            let before = if index == 0 { live_in } else { live_after[index - 1] };
            let held = live_after[index..end].iter().fold(before, |set, live| set.or(*live));
            let taken = effects[index + 1..=end]
                .iter()
                .fold(held.or(conventions.needs(&insts[index], &effects[index])), |set, e| {
                    set.or(e.writes)
                });
            let best = free
                .iter()
                .filter(|other| !taken.contains(Reg::S(**other)))
                .min_by_key(|other| named[at(**other)]);
            if let Some(&other) = best
                && named[at(other)] < named[at(reg)]
            {
                rename(&mut insts[index], &mut effects[index], reg, other, true);
                for user in index + 1..=end {
                    rename(&mut insts[user], &mut effects[user], reg, other, false);
                    if insts[user].inst.desc().reads_dst {
                        rename(&mut insts[user], &mut effects[user], reg, other, true);
                    }
                }
                for live in &mut live_after[index..end] {
                    *live = live.without(RegSet::one(Reg::S(reg))).or(RegSet::one(Reg::S(other)));
                }
            }
        }
        for place in effects[index].reads.or(effects[index].writes).scalars().indices() {
            named[place] = index + 1;
        }
    }
}

/// The register that the instruction writes and the index of the last instruction that reads it, if the value is not needed
/// after that, nobody reads it but as an operand, and it is not there for its register.
fn local_value(
    insts: &[McInst],
    effects: &[Effects],
    index: usize,
    live_after: &[RegSet],
    conventions: &Conventions,
) -> Option<(SReg, usize)> {
    let inst = &insts[index];
    let mut written = effects[index].writes.iter();
    let (Some(Reg::S(reg)), None) = (written.next(), written.next()) else {
        return None;
    };
    if conventions.is_special(reg) || inst.glued || inst.inst.desc().reads_dst || as_move(inst, conventions).is_some() {
        return None;
    }
    let own = RegSet::one(Reg::S(reg));
    if !live_after[index].meets(own) {
        return None;
    }
    for (end, inst) in insts.iter().enumerate().skip(index + 1).take(LOOK_AHEAD) {
        let effects = &effects[end];
        let read = effects.reads.meets(own);
        let needed = conventions.needs(inst, effects).meets(own);
        if inst.glued || (!read && needed) || inst.inst.opcode == Opcode::JRET {
            return None;
        }
        let written = effects.writes.meets(own);
        let continued = inst.inst.desc().reads_dst && written;
        if !live_after[end].meets(own) || (written && !continued) {
            return read.then_some((reg, end));
        }
    }
    None
}
