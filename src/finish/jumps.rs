//! Jumps that every round of a loop would execute, and that it can do without.
//!
//! Allocation leaves moves on the way back to the start of a loop. They stand in a block of their own, which a conditional
//! branch skips and a jump leaves. Where nobody else sees what they write, they go before the branch, whose opposite leads
//! back. A jump to a few instructions that end in a branch, as the test of a loop or a return, becomes a copy of them.

use super::cfg::Liveness;
use super::effects::{Conventions, RegSet};
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use super::places;
use super::relax::invert;
use crate::code::LabelLoc;
use crate::inst::reg::machine;
use crate::reason::Maker;
use npu_mc::{Inst, Opcode, Operand};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The most instructions that the other way out of a loop may execute in vain.
const MAX_BEFORE_EXIT: usize = 4;
/// The same where neither way is known to be the frequent one.
const MAX_BEFORE_EITHER: usize = 1;
/// The most instructions that are copied with the branch that ends them.
const MAX_COPIED: usize = 3;
/// The most instructions that the copies add to a function.
const MAX_GROWTH: usize = 64;

/// Removes the jumps.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    move_ahead(func, conventions);
    copy_tails(func);
}

/// What an unconditional jump of this function goes to.
fn jump_target(inst: &McInst) -> Option<Label> {
    match inst.fixup {
        Fixup::Branch(target) if inst.inst.opcode == Opcode::JMP && inst.call == CallKind::None => Some(target),
        _ => None,
    }
}

/// What a conditional branch goes to. A branch to a trap is none: it says where the trap is.
fn condition_target(inst: &McInst) -> Option<Label> {
    match inst.fixup {
        Fixup::Branch(target) if invert(inst.inst.opcode).is_some() && inst.trap.is_none() => Some(target),
        _ => None,
    }
}

/// How many branches name each block.
fn count_references(func: &MachFunction) -> Vec<usize> {
    let mut counts = vec![0; func.block_count()];
    for inst in func.insts() {
        if let Fixup::Branch(target) | Fixup::TableEntry { target, .. } = inst.fixup
            && let Some(block) = func.block_of(target)
        {
            counts[block] += 1;
        }
    }
    counts
}

/// Instructions that go before the branch that skips them.
struct Ahead {
    /// The branch.
    branch: usize,
    /// What it becomes.
    opposite: Opcode,
    /// The instructions.
    moves: Range<usize>,
    /// Where they lead.
    back: Label,
    /// Where the branch leads, if that does not follow.
    exit: Option<Label>,
}

fn move_ahead(func: &mut MachFunction, conventions: &Conventions) {
    let references = count_references(func);
    let mut shapes: Vec<(usize, Ahead)> = (0..func.block_count())
        .filter(|block| references.get(block + 1) == Some(&0))
        .filter_map(|block| Some((block, ahead(func, block)?)))
        .collect();
    if shapes.is_empty() {
        return;
    }
    func.find_effects();
    let liveness = Liveness::new(func, conventions);
    shapes.retain(|(block, shape)| {
        let written = shape
            .moves
            .clone()
            .fold(RegSet::EMPTY, |set, index| set.or(func.effects[index].writes));
        let needed = func.effects[shape.branch].reads;
        let other = condition_target(&func.insts[shape.branch]).and_then(|target| func.block_of(target));
        let seen = other.map_or(liveness.live_out(*block), |other| liveness.live_in(other));
        shape.moves.clone().all(|index| is_plain(func, index)) && !written.meets(needed.or(seen))
    });
    if shapes.is_empty() {
        return;
    }
    if !func.places().is_empty() {
        // What the instructions write has its old value no more when the branch executes.
        let written: FxHashMap<usize, RegSet> = shapes
            .iter()
            .map(|(_, shape)| {
                let moves = shape.moves.clone();
                let written = moves.fold(RegSet::EMPTY, |set, index| set.or(func.effects[index].writes));
                (shape.branch, written)
            })
            .collect();
        places::forget(func, |index, _, loc| match loc {
            LabelLoc::Reg(reg) => written.get(&index).is_some_and(|written| written.contains(reg)),
            LabelLoc::Stack(_) => false,
        });
    }
    let moved: Vec<Vec<McInst>> = shapes
        .iter()
        .map(|(_, shape)| func.insts()[shape.moves.clone()].to_vec())
        .collect();
    let mut shapes = shapes.into_iter().map(|(_, shape)| shape).zip(moved).peekable();
    let mut skipped: Option<Ahead> = None;
    func.rebuild(|func, index, mut inst| {
        if let Some((shape, moved)) = shapes.next_if(|(shape, _)| shape.branch == index) {
            moved.into_iter().for_each(|inst| func.push(inst));
            inst.inst.opcode = shape.opposite;
            inst.fixup = Fixup::Branch(shape.back);
            func.push(inst);
            skipped = Some(shape);
        } else if let Some(shape) = skipped.as_ref().filter(|shape| index <= shape.moves.end) {
            // The jump after the moves.
            if let Some(exit) = shape.exit.filter(|_| index == shape.moves.end) {
                inst.fixup = Fixup::Branch(exit);
                func.push(inst);
            }
        } else {
            func.push(inst);
        }
    });
}

/// The shape at the end of a block, if it is one that pays.
fn ahead(func: &MachFunction, block: usize) -> Option<Ahead> {
    let branch = func.terminator(block)?;
    let other = condition_target(branch)?;
    let opposite = invert(branch.inst.opcode)?;
    let skipped = func.block_range(block + 1);
    let back = jump_target(func.terminator(block + 1)?)?;
    let moves = skipped.start..skipped.end - 1;
    let follows = func.position(other).ok()? == skipped.end;
    let is_loop = func.block_of(back)? <= block;
    let most = if is_loop {
        MAX_BEFORE_EXIT
    } else if follows {
        MAX_BEFORE_EITHER
    } else {
        return None;
    };
    (moves.len() <= most).then(|| Ahead {
        branch: skipped.start - 1,
        opposite,
        moves,
        back,
        exit: (!follows).then_some(other),
    })
}

/// Whether an instruction only computes scalars from scalars, soon.
fn is_plain(func: &MachFunction, index: usize) -> bool {
    let (inst, effects) = (&func.insts[index], &func.effects[index]);
    let registers = effects.reads.or(effects.writes);
    let special: RegSet = [machine::PC, machine::SP, machine::MASK].into_iter().collect();
    let is_scalar = registers.scalars() == registers && !registers.meets(special);
    is_movable(inst) && is_scalar && !effects.touches_memory() && !effects.is_long
}

/// Whether nothing ties the instruction to its place.
fn is_movable(inst: &McInst) -> bool {
    let reads_pc = inst
        .inst
        .operands
        .iter()
        .any(|operand| operand.reg() == Some(machine::PC));
    inst.fixup == Fixup::None
        && !inst.glued
        && !reads_pc
        && inst.trap.is_none()
        && inst.call == CallKind::None
        && inst.frame == FrameStep::None
}

/// A copy that takes the place of a jump.
struct Copy {
    /// The jump.
    jump: usize,
    insts: Vec<McInst>,
}

fn copy_tails(func: &mut MachFunction) {
    let mut references = count_references(func);
    // Labels for blocks that were only fallen into, by the index of their first instruction.
    let mut labels: Vec<(usize, Label)> = Vec::new();
    let mut copies: Vec<Copy> = Vec::new();
    let mut growth = 0;
    for block in 0..func.block_count() {
        let Some(target) = func
            .terminator(block)
            .and_then(jump_target)
            .and_then(|to| func.block_of(to))
        else {
            continue;
        };
        let Some(insts) = tail(func, block, target, &mut labels) else {
            continue;
        };
        growth += insts.len() - 1;
        if growth > MAX_GROWTH {
            break;
        }
        references[target] -= 1;
        copies.push(Copy {
            jump: func.block_range(block).end - 1,
            insts,
        });
        for inst in copies.last().map_or(&[][..], |copy| &copy.insts) {
            if let Fixup::Branch(to) = inst.fixup
                && let Some(to) = func.block_of(to)
            {
                references[to] += 1;
            }
        }
    }
    if copies.is_empty() {
        return;
    }
    labels.sort_by_key(|(place, _)| *place);
    let dead = unreached(func, &references);
    // The values of a copy stand in the table where they are in the original only.
    let is_copied = |index: usize| copies.binary_search_by_key(&index, |copy| copy.jump).is_ok();
    places::forget(func, |index, _, _| is_copied(index));
    let mut copies = copies.into_iter().peekable();
    let mut labels = labels.into_iter().peekable();
    func.rebuild(|func, index, inst| {
        while let Some((_, label)) = labels.next_if(|(place, _)| *place == index) {
            func.bind(label);
        }
        let copy = copies.next_if(|copy| copy.jump == index);
        if dead[index] {
            return;
        }
        match copy {
            Some(copy) => copy.insts.into_iter().for_each(|inst| func.push(inst)),
            None => func.push(inst),
        }
    });
}

/// For each instruction whether nothing leads to its block any more.
fn unreached(func: &MachFunction, references: &[usize]) -> Vec<bool> {
    let falls_through = |block: usize| {
        let last = func.terminator(block);
        last.is_none_or(|last| {
            last.inst.opcode != Opcode::JRET && jump_target(last).is_none() && last.call != CallKind::TailCall
        })
    };
    let mut dead = vec![false; func.insts().len()];
    for block in (1..func.block_count()).filter(|&block| references[block] == 0 && !falls_through(block - 1)) {
        dead[func.block_range(block)].fill(true);
    }
    dead
}

/// What may take the place of the jump at the end of a block: a copy of its target, if that is short and saves a jump.
fn tail(func: &mut MachFunction, block: usize, target: usize, labels: &mut Vec<(usize, Label)>) -> Option<Vec<McInst>> {
    let (last, body) = func.insts()[func.block_range(target)].split_last()?;
    if body.len() > MAX_COPIED || target == block || !body.iter().all(is_movable) {
        return None;
    }
    let mut copy = body.to_vec();
    if last.inst.opcode == Opcode::JRET {
        copy.push(last.clone());
        return Some(copy);
    }
    if let Some(to) = jump_target(last).and_then(|to| func.block_of(to)) {
        let last = last.clone();
        // One jump instead of two.
        return (body.len() < 2 && to != target).then(|| {
            copy.push(last);
            copy
        });
    }
    let taken = condition_target(last)?;
    // The branch leads back, and the jump stands between the two; or the jump leads back to it.
    let (loops, is_test) = (func.block_of(taken)? <= block.min(target), target <= block);
    if !loops && !is_test {
        return None;
    }
    let mut last = last.clone();
    let mut jump = McInst::plain(
        Inst::new(Opcode::JMP, [Operand::Imm(0)]),
        last.origin.remade_by(Maker::Jumps),
    );
    let next = label_of(func, target + 1, labels)?;
    (last.fixup, jump.fixup) = if loops {
        (Fixup::Branch(taken), Fixup::Branch(next))
    } else {
        last.inst.opcode = invert(last.inst.opcode)?;
        (Fixup::Branch(next), Fixup::Branch(taken))
    };
    let goes_on = func.block_range(block).end;
    let is_next = |fixup: &Fixup| matches!(fixup, Fixup::Branch(to) if func.position(*to).ok() == Some(goes_on));
    copy.push(last);
    copy.extend(Some(jump).filter(|jump| !is_next(&jump.fixup)));
    Some(copy)
}

/// A label for the block, with which it starts when the function is built anew.
fn label_of(func: &mut MachFunction, block: usize, labels: &mut Vec<(usize, Label)>) -> Option<Label> {
    if let Some(label) = func.label(block) {
        return Some(label);
    }
    let range = func.block_range(block);
    if range.is_empty() {
        return None;
    }
    if let Some((_, label)) = labels.iter().find(|(place, _)| *place == range.start) {
        return Some(*label);
    }
    let label = func.new_label();
    labels.push((range.start, label));
    Some(label)
}
