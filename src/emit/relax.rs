//! Branches that do not reach.
//!
//! A branch reaches 128 KiB in either direction. One that has to go further becomes a sequence that adds the distance
//! to its own address. A sequence is longer than the branch it replaces and may push others out of reach, so this
//! repeats until nothing changes; it ends because branches only ever grow.

use super::{CallKind, Fixup, Item, Items, Label};
use crate::inst::reg::Reg;
use npu_mc::inst::OperandRange;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Inst, Opcode, Operand, OperandKind};
use std::collections::HashMap;

/// Bytes of one instruction.
const WORD: u32 = INSTRUCTION_SIZE;

/// Distance in bytes from one instruction index to another.
fn distance(from: usize, to: usize) -> i64 {
    (to as i64 - from as i64) * i64::from(WORD)
}

fn reaches(from: usize, to: usize) -> bool {
    match OperandKind::Brtarget18.range() {
        OperandRange::Immediate { min, max, .. } => (i64::from(min)..=i64::from(max)).contains(&distance(from, to)),
        OperandRange::Register(_) => false,
    }
}

/// Replaces every branch that does not reach.
pub fn run(items: &mut Items) {
    // The distance from one end to the other decides at once for all but huge functions.
    while !reaches(0, items.list.len()) {
        let far: Vec<bool> = items
            .list
            .iter()
            .enumerate()
            .map(|(index, item)| match item.fixup {
                Fixup::Branch(target) | Fixup::TableEntry { target, .. } => !reaches(index, items.position(target)),
                _ => false,
            })
            .collect();
        if !far.contains(&true) {
            return;
        }
        replace(items, &far);
    }
}

fn replace(items: &mut Items, far: &[bool]) {
    // Entries of branch tables stay one instruction and go to a detour behind their table.
    let mut detours: HashMap<usize, Vec<(Label, Label)>> = HashMap::new();
    for (index, _) in far.iter().enumerate().filter(|(_, far)| **far) {
        if let Fixup::TableEntry { target, end } = items.list[index].fixup {
            let detour = items.new_label();
            detours.entry(items.position(end)).or_default().push((detour, target));
            items.list[index].fixup = Fixup::TableEntry { target: detour, end };
        }
    }
    let mut bound: Vec<(Label, usize)> = Vec::new();
    let mut skips: Vec<(Label, usize)> = Vec::new();
    let mut next_label = items.labels.len();
    items.rewrite(|list, index, item| {
        match (far[index], &item.fixup) {
            (true, Fixup::Branch(target)) => {
                let target = *target;
                let conditional = invert(item.inst.opcode);
                if let Some(inverse) = conditional {
                    let skip = Label(u32::try_from(next_label).unwrap_or(u32::MAX));
                    next_label += 1;
                    let mut branch = item.clone();
                    branch.inst.opcode = inverse;
                    branch.fixup = Fixup::Branch(skip);
                    branch.trap = None;
                    list.push(branch);
                    push_far_jump(list, target, &item);
                    skips.push((skip, list.len()));
                } else {
                    push_far_jump(list, target, &item);
                }
            }
            _ => list.push(item.clone()),
        }
        // Behind the last entry of a table, so that labels at its end stay behind the detours.
        if let Some(detours) = detours.get(&(index + 1)) {
            push_detours(list, detours, &item, &mut bound);
        }
    });
    items.labels.resize(next_label, usize::MAX);
    for (label, position) in bound.into_iter().chain(skips) {
        items.labels[label.0 as usize] = position;
    }
}

fn push_detours(list: &mut Vec<Item>, detours: &[(Label, Label)], like: &Item, bound: &mut Vec<(Label, usize)>) {
    for &(detour, target) in detours {
        bound.push((detour, list.len()));
        push_far_jump(list, target, like);
    }
}

/// The opposite of a conditional branch; none for an unconditional one.
fn invert(op: Opcode) -> Option<Opcode> {
    match op {
        Opcode::BEQZ => Some(Opcode::BNEZ),
        Opcode::BNEZ => Some(Opcode::BEQZ),
        _ => None,
    }
}

/// A jump to anywhere in the function: the distance is added to the address of the adding instruction.
fn push_far_jump(list: &mut Vec<Item>, target: Label, like: &Item) {
    let reg = |r: Reg| r.as_real().map_or(Operand::Imm(0), Operand::from);
    let (scratch, pc) = (reg(Reg::SCRATCH), reg(Reg::PC));
    let mut push = |inst, fixup, trap| {
        list.push(Item {
            inst,
            fixup,
            origin: like.origin,
            trap,
            glued: false,
            call: CallKind::None,
        });
    };
    let high = Fixup::FarHigh {
        target,
        after: 2 * WORD,
    };
    push(Inst::new(Opcode::MOVEIHSI, [scratch, Operand::Imm(0)]), high, None);
    let low = Fixup::FarLow { target, after: WORD };
    push(Inst::new(Opcode::MOVEILSI, [scratch, Operand::Imm(0)]), low, None);
    push(Inst::new(Opcode::ADDSSS_32, [scratch, pc, scratch]), Fixup::None, None);
    push(Inst::new(Opcode::JUMPREG, [scratch]), Fixup::None, like.trap);
}
