//! Moves that register allocation left behind.
//!
//! regalloc2 splits the range of a value where constraints conflict and connects the pieces by moves. Within a block many
//! of them go away: a use of the copy can often read the original, and a result that is only moved elsewhere can be
//! computed there. What is live across blocks is found first, so a move is dropped only if nobody reads its result.
//!
//! Scalars only.

use super::labels::Before;
use super::{CallKind, Fixup, Item, Items};
use crate::abi::registers::{RegisterSet, clobbered};
use crate::abi::sig::argument_registers;
use crate::inst::reg::from_preg;
use npu_mc::{Opcode, Operands, Reg, SReg, cc};

/// A set of scalar registers, a bit each.
pub(super) type Set = u64;

pub(super) fn bit(reg: Reg) -> Set {
    match reg {
        Reg::S(reg) => 1 << (reg.number() & 63),
        Reg::V(_) => 0,
    }
}

pub(super) fn union(regs: impl Iterator<Item = Reg>) -> Set {
    regs.fold(0, |set, reg| set | bit(reg))
}

/// A basic block of the list.
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    succs: Vec<usize>,
    pub(super) live_in: Set,
    pub(super) live_out: Set,
}

/// Removes what it can.
pub fn run(items: &mut Items, registers: RegisterSet, pinned: Option<SReg>) {
    let conventions = Conventions::new(registers, pinned);
    let before = Before::new(items);
    let mut blocks = blocks(items);
    liveness(&items.list, &mut blocks, &conventions);
    for block in &blocks {
        read_originals(&mut items.list[block.start..block.end], &conventions);
    }
    liveness(&items.list, &mut blocks, &conventions);
    let mut dead = vec![false; items.list.len()];
    for block in &blocks {
        compute_in_place(items, block, &mut dead, &conventions);
    }
    for block in &blocks {
        drop_dead(&items.list, block, &mut dead, &conventions);
    }
    before.renamed(items, &blocks, |index| dead[index]);
    items.rewrite(|list, index, item| {
        if !dead[index] {
            list.push(item);
        }
    });
}

/// What calls and returns read, which no operand says.
pub(super) struct Conventions {
    arguments: Set,
    at_return: Set,
    /// Registers with a meaning of their own, which a move is there to set: everybody may read them.
    special: Set,
}

impl Conventions {
    pub(super) fn new(registers: RegisterSet, pinned: Option<SReg>) -> Self {
        let changed = clobbered(registers).into_iter().filter_map(from_preg);
        let mut results = cc::State::new();
        let mut places = Vec::new();
        while results.assign(&cc::RETURNS, cc::ValueType::I32, &mut places).is_ok() {}
        let reserved = npu_mc::env::GPR32
            .reserved
            .iter()
            .filter_map(|&number| SReg::new(number));
        let in_registers = |places: &[cc::Place]| {
            union(places.iter().filter_map(|place| match place.loc {
                cc::Loc::Reg(reg) => Some(reg),
                cc::Loc::Stack { .. } => None,
            }))
        };
        Self {
            arguments: union(argument_registers().iter().copied()),
            // Whatever the caller may count on, and the results.
            special: union(reserved.chain(pinned).map(Reg::S)),
            at_return: !union(changed) | in_registers(&places),
        }
    }

    pub(super) fn is_special(&self, reg: SReg) -> bool {
        self.special & bit(Reg::S(reg)) != 0
    }

    pub(super) fn uses(&self, item: &Item) -> Set {
        let named = union(item.inst.uses());
        match item.inst.opcode {
            Opcode::JRET => named | self.at_return,
            _ if item.call == CallKind::TailCall => named | self.arguments | self.at_return,
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG | Opcode::JUMPREG => named | self.arguments,
            _ => named,
        }
    }
}

/// Whether control leaves the straight line at the item.
fn ends_block(item: &Item) -> bool {
    item.inst.desc().flags.is_branch()
}

pub(super) fn blocks(items: &Items) -> Vec<Block> {
    let count = items.list.len();
    let mut starts = vec![false; count + 1];
    starts[0] = true;
    for &position in &items.labels {
        if let Some(flag) = starts.get_mut(position) {
            *flag = true;
        }
    }
    for (index, item) in items.list.iter().enumerate() {
        if ends_block(item) {
            starts[index + 1] = true;
        }
    }
    let heads: Vec<usize> = (0..count).filter(|&i| starts[i]).collect();
    let mut block_of = vec![0; count + 1];
    for (number, &head) in heads.iter().enumerate() {
        let end = heads.get(number + 1).copied().unwrap_or(count);
        block_of[head..end].fill(number);
    }
    let place = |index: usize| (index < count).then(|| block_of[index]);
    heads
        .iter()
        .enumerate()
        .map(|(number, &start)| {
            let end = heads.get(number + 1).copied().unwrap_or(count);
            let last = &items.list[end - 1];
            let mut succs = Vec::new();
            match last.fixup {
                Fixup::Branch(target) | Fixup::TableEntry { target, .. } => succs.extend(place(items.position(target))),
                _ => {}
            }
            let falls_through =
                last.call != CallKind::TailCall && !matches!(last.inst.opcode, Opcode::JMP | Opcode::JRET);
            if falls_through {
                succs.extend(place(end));
            }
            if last.inst.opcode == Opcode::JUMPREG && last.call == CallKind::None {
                // A branch table: any of the jumps behind it.
                let entries = items.list[end..]
                    .iter()
                    .take_while(|i| matches!(i.fixup, Fixup::TableEntry { .. }));
                succs.extend((end..end + entries.count()).filter_map(place));
            }
            Block {
                start,
                end,
                succs,
                live_in: 0,
                live_out: 0,
            }
        })
        .collect()
}

pub(super) fn liveness(list: &[Item], blocks: &mut [Block], conventions: &Conventions) {
    // What each block reads before writing it, and what it writes.
    let effects: Vec<(Set, Set)> = blocks
        .iter()
        .map(|block| {
            list[block.start..block.end]
                .iter()
                .rev()
                .fold((0, 0), |(uses, defs), item| {
                    let def = union(item.inst.defs());
                    ((uses & !def) | conventions.uses(item), defs | def)
                })
        })
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for number in (0..blocks.len()).rev() {
            let live_out = blocks[number]
                .succs
                .iter()
                .fold(0, |set, &succ| set | blocks[succ].live_in);
            let (uses, defs) = effects[number];
            let new = uses | (live_out & !defs);
            blocks[number].live_out = live_out;
            if new != blocks[number].live_in {
                blocks[number].live_in = new;
                changed = true;
            }
        }
    }
}

/// Destination and source of a plain move between scalars.
pub(super) fn as_move(item: &Item, conventions: &Conventions) -> Option<(SReg, SReg)> {
    if item.inst.opcode != Opcode::MOVE_SS_32 || item.glued {
        return None;
    }
    match (item.inst.operands[0].reg(), item.inst.operands[1].reg()) {
        (Some(Reg::S(to)), Some(Reg::S(from))) if !conventions.is_special(to) && !reads_differently(from) => {
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
pub(super) fn rename(item: &mut Item, from: SReg, to: SReg, defs: bool) {
    let desc = item.inst.desc();
    let mut operands = item.inst.operands.to_vec();
    for (operand, described) in operands.iter_mut().zip(desc.operands) {
        if described.is_def == defs && operand.reg() == Some(Reg::S(from)) {
            *operand = to.into();
        }
    }
    if let Some(operands) = Operands::from_slice(&operands) {
        item.inst.operands = operands;
    }
}

/// Lets instructions behind a move read its source while both registers keep their values.
fn read_originals(block: &mut [Item], conventions: &Conventions) {
    let mut copies: Vec<(SReg, SReg)> = Vec::new();
    for item in block {
        for &(copy, original) in &copies {
            rename(item, copy, original, false);
        }
        let defs = union(item.inst.defs());
        copies.retain(|&(copy, original)| (bit(Reg::S(copy)) | bit(Reg::S(original))) & defs == 0);
        if let Some((to, from)) = as_move(item, conventions)
            && to != from
        {
            copies.push((to, from));
        }
    }
}

/// Lets an instruction whose result is only moved elsewhere compute it there.
fn compute_in_place(items: &mut Items, block: &Block, dead: &mut [bool], conventions: &Conventions) {
    let mut live = block.live_out;
    for index in (block.start..block.end).rev() {
        let item = &items.list[index];
        let live_after = live;
        live = (live & !union(item.inst.defs())) | conventions.uses(item);
        let Some((to, from)) =
            as_move(item, conventions).filter(|(to, from)| to != from && !conventions.is_special(*from))
        else {
            continue;
        };
        if live_after & bit(Reg::S(from)) != 0 {
            continue;
        }
        let Some(maker) = maker(&items.list, block.start, index, to, from, conventions) else {
            continue;
        };
        rename(&mut items.list[maker], from, to, true);
        for between in &mut items.list[maker + 1..index] {
            rename(between, from, to, false);
        }
        dead[index] = true;
        // In front of the dropped move the value is where it was wanted.
        live = (live & !bit(Reg::S(from))) | bit(Reg::S(to));
    }
}

/// The instruction in front of the move that makes its source, if nothing on the way needs either register otherwise.
fn maker(list: &[Item], start: usize, at: usize, to: SReg, from: SReg, conventions: &Conventions) -> Option<usize> {
    let (to, from) = (bit(Reg::S(to)), bit(Reg::S(from)));
    for index in (start..at).rev() {
        let item = &list[index];
        let defs = union(item.inst.defs());
        if defs & from != 0 {
            // Both halves of a constant, or an old value that stays in part, are not one definition.
            return (!item.inst.desc().reads_dst && defs == from).then_some(index);
        }
        if (defs | conventions.uses(item)) & to != 0 || ends_block(item) {
            return None;
        }
    }
    None
}

/// Finds the moves whose result nobody reads.
fn drop_dead(list: &[Item], block: &Block, dead: &mut [bool], conventions: &Conventions) {
    let mut live = block.live_out;
    for index in (block.start..block.end).rev() {
        let item = &list[index];
        if dead[index] {
            continue;
        }
        if let Some((to, from)) = as_move(item, conventions)
            && (to == from || live & bit(Reg::S(to)) == 0)
        {
            dead[index] = true;
            continue;
        }
        live = (live & !union(item.inst.defs())) | conventions.uses(item);
    }
}
