//! Registers for values that live in one block only, so that none is written again soon after it was used.
//!
//! A routine of the runtime may change few registers, and regalloc2 takes the first that is free. The scheduler then finds
//! independent computations tied to each other by the register they share. Here such values are spread over all registers
//! that the routine may change, the one that was left alone longest first.

use super::copies::{Block, Conventions, Set, as_move, bit, blocks, liveness, rename, union};
use super::labels::Before;
use super::{CallKind, Item, Items};
use crate::abi::registers::{RegisterSet, clobbered};
use crate::inst::reg::from_preg;
use npu_mc::{Opcode, Reg, SReg};

/// Values that live longer, counted in instructions, keep their registers.
const LOOK_AHEAD: usize = 128;

/// Gives values other registers where that unties them.
pub fn run(items: &mut Items, registers: RegisterSet, pinned: Option<SReg>) {
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
    let before = Before::new(items);
    let conventions = Conventions::new(registers, pinned);
    let mut blocks = blocks(items);
    liveness(&items.list, &mut blocks, &conventions);
    for block in &blocks {
        let list = &mut items.list[block.start..block.end];
        if !list.iter().any(calls) {
            spread(list, block, &free, &conventions);
        }
    }
    before.renamed(items, &blocks, |_| false);
}

/// Calls read and change what no operand says.
fn calls(item: &Item) -> bool {
    item.call != CallKind::None
        || matches!(
            item.inst.opcode,
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG | Opcode::JUMPREG
        )
}

fn spread(list: &mut [Item], block: &Block, free: &[SReg], conventions: &Conventions) {
    // What is live behind each instruction.
    let mut live_after: Vec<Set> = vec![0; list.len()];
    let mut live = block.live_out;
    for (index, item) in list.iter().enumerate().rev() {
        live_after[index] = live;
        live = (live & !union(item.inst.defs())) | conventions.uses(item);
    }
    let live_in = live;
    // Behind which instruction each register was last named.
    let mut named = [0usize; 64];
    let at = |reg: SReg| usize::from(reg.number() & 63);
    for index in 0..list.len() {
        if let Some((reg, end)) = local_value(list, index, &live_after, conventions) {
            let before = if index == 0 { live_in } else { live_after[index - 1] };
            let held = live_after[index..end].iter().fold(before, |set, live| set | live);
            let written = list[index + 1..=end].iter().map(|item| union(item.inst.defs()));
            let taken = written.fold(held | conventions.uses(&list[index]), |set, defs| set | defs);
            let best = free
                .iter()
                .filter(|other| bit(Reg::S(**other)) & taken == 0)
                .min_by_key(|other| named[at(**other)]);
            if let Some(&other) = best
                && named[at(other)] < named[at(reg)]
            {
                rename(&mut list[index], reg, other, true);
                for item in &mut list[index + 1..=end] {
                    rename(item, reg, other, false);
                    if item.inst.desc().reads_dst {
                        rename(item, reg, other, true);
                    }
                }
                for live in &mut live_after[index..end] {
                    *live = (*live & !bit(Reg::S(reg))) | bit(Reg::S(other));
                }
            }
        }
        for reg in list[index].inst.uses().chain(list[index].inst.defs()) {
            if let Reg::S(reg) = reg {
                named[at(reg)] = index + 1;
            }
        }
    }
}

/// The register that the instruction writes and the index of the last instruction that reads it, if the value is not needed
/// behind that, nobody reads it but as an operand, and it is not there for its register.
fn local_value(list: &[Item], index: usize, live_after: &[Set], conventions: &Conventions) -> Option<(SReg, usize)> {
    let item = &list[index];
    let mut defs = item.inst.defs();
    let (Some(Reg::S(reg)), None) = (defs.next(), defs.next()) else {
        return None;
    };
    if conventions.is_special(reg) || item.glued || item.inst.desc().reads_dst || as_move(item, conventions).is_some() {
        return None;
    }
    let mask = bit(Reg::S(reg));
    if live_after[index] & mask == 0 {
        return None;
    }
    for (end, item) in list.iter().enumerate().skip(index + 1).take(LOOK_AHEAD) {
        let read = union(item.inst.uses()) & mask != 0;
        if item.glued || (!read && conventions.uses(item) & mask != 0) || item.inst.opcode == Opcode::JRET {
            return None;
        }
        let continued = item.inst.desc().reads_dst && union(item.inst.defs()) & mask != 0;
        let over = live_after[end] & mask == 0 || (union(item.inst.defs()) & mask != 0 && !continued);
        if over {
            return read.then_some((reg, end));
        }
    }
    None
}
