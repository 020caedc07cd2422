//! Loop rotation and tail duplication: fewer jumps per iteration of a loop.
//!
//! Register allocation inserts moves on the back edge of a loop. They form a separate block: a
//! conditional branch skips it, and a jump to the header ends it. If the registers that the moves
//! write are dead at the exit of the loop, the moves are hoisted above the branch, and the inverted
//! branch becomes the back edge.
//!
//! A jump to a few instructions that end with a branch, such as the test of a loop or a return, is
//! replaced by a copy of them.

use super::cfg::Liveness;
use super::effects::{Conventions, RegSet};
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use super::relax::invert;
use super::value_locations;
use crate::code::LabelLoc;
use crate::inst::reg::machine;
use crate::provenance::Producer;
use npu_mc::{Inst, Opcode, Operand};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The maximum number of instructions hoisted above a loop exit, where they are executed
/// needlessly.
const MAX_HOISTED_OVER_EXIT: usize = 4;
/// The same maximum for a branch whose likely direction is unknown.
const MAX_HOISTED_OVER_BRANCH: usize = 1;
/// The maximum number of duplicated instructions, without the branch that ends them.
const MAX_COPIED: usize = 3;
/// The maximum number of instructions that tail duplication adds to a function.
const MAX_GROWTH: usize = 64;

/// Runs loop rotation and tail duplication.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    hoist_moves(func, conventions);
    duplicate_tails(func);
}

/// Returns the target of an unconditional jump within the function.
fn jump_target(inst: &McInst) -> Option<Label> {
    match inst.fixup {
        Fixup::Branch(target) if inst.inst.opcode == Opcode::JMP && inst.call == CallKind::None => Some(target),
        _ => None,
    }
}

/// Returns the target of a conditional branch. Returns `None` for a branch to a trap, because it
/// marks the position of the trap.
fn condition_target(inst: &McInst) -> Option<Label> {
    match inst.fixup {
        Fixup::Branch(target) if invert(inst.inst.opcode).is_some() && inst.trap.is_none() => Some(target),
        _ => None,
    }
}

/// Returns the number of branches to each block.
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

/// Instructions to hoist above the branch that skips them.
struct Hoist {
    /// The index of the branch.
    branch: usize,
    /// The inverted opcode of the branch.
    opposite: Opcode,
    /// The instructions.
    moves: Range<usize>,
    /// The target of the jump after them.
    back: Label,
    /// The target of the branch, unless it is the next block.
    exit: Option<Label>,
}

fn hoist_moves(func: &mut MachFunction, conventions: &Conventions) {
    let references = count_references(func);
    let mut shapes: Vec<(usize, Hoist)> = (0..func.block_count())
        .filter(|block| references.get(block + 1) == Some(&0))
        .filter_map(|block| Some((block, hoistable(func, block)?)))
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
        let live_at_exit = other.map_or(liveness.live_out(*block), |other| liveness.live_in(other));
        shape.moves.clone().all(|index| is_speculatable(func, index)) && !written.meets(needed.or(live_at_exit))
    });
    if shapes.is_empty() {
        return;
    }
    if !func.value_locations().is_empty() {
        // At the branch, the registers that the hoisted instructions write no longer hold their old
        // values.
        let written: FxHashMap<usize, RegSet> = shapes
            .iter()
            .map(|(_, shape)| {
                let moves = shape.moves.clone();
                let written = moves.fold(RegSet::EMPTY, |set, index| set.or(func.effects[index].writes));
                (shape.branch, written)
            })
            .collect();
        value_locations::remove(func, |index, _, loc| match loc {
            LabelLoc::Reg(reg) => written.get(&index).is_some_and(|written| written.contains(reg)),
            LabelLoc::Stack(_) => false,
        });
    }
    let moved: Vec<Vec<McInst>> = shapes
        .iter()
        .map(|(_, shape)| func.insts()[shape.moves.clone()].to_vec())
        .collect();
    let mut shapes = shapes.into_iter().map(|(_, shape)| shape).zip(moved).peekable();
    let mut skipped: Option<Hoist> = None;
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

/// Returns the instructions at the end of a block to hoist, if that is profitable.
fn hoistable(func: &MachFunction, block: usize) -> Option<Hoist> {
    let branch = func.terminator(block)?;
    let other = condition_target(branch)?;
    let opposite = invert(branch.inst.opcode)?;
    let skipped = func.block_range(block + 1);
    let back = jump_target(func.terminator(block + 1)?)?;
    let moves = skipped.start..skipped.end - 1;
    let follows = func.position(other).ok()? == skipped.end;
    let is_loop = func.block_of(back)? <= block;
    let most = if is_loop {
        MAX_HOISTED_OVER_EXIT
    } else if follows {
        MAX_HOISTED_OVER_BRANCH
    } else {
        return None;
    };
    (moves.len() <= most).then(|| Hoist {
        branch: skipped.start - 1,
        opposite,
        moves,
        back,
        exit: (!follows).then_some(other),
    })
}

/// Returns whether an instruction only computes scalars from scalars, with a short latency.
fn is_speculatable(func: &MachFunction, index: usize) -> bool {
    let (inst, effects) = (&func.insts[index], &func.effects[index]);
    let registers = effects.reads.or(effects.writes);
    let special: RegSet = [machine::PC, machine::SP, machine::MASK].into_iter().collect();
    let is_scalar = registers.scalars() == registers && !registers.meets(special);
    is_movable(inst) && is_scalar && !effects.touches_memory() && !effects.is_long
}

/// Returns whether the instruction can move.
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

/// A copy of a tail that replaces a jump.
struct TailCopy {
    /// The index of the jump.
    jump: usize,
    insts: Vec<McInst>,
}

fn duplicate_tails(func: &mut MachFunction) {
    let mut references = count_references(func);
    // New labels for blocks without a label, with the index of the first instruction of the block.
    let mut labels: Vec<(usize, Label)> = Vec::new();
    let mut copies: Vec<TailCopy> = Vec::new();
    let mut growth = 0;
    for block in 0..func.block_count() {
        let Some(target) = func
            .terminator(block)
            .and_then(jump_target)
            .and_then(|to| func.block_of(to))
        else {
            continue;
        };
        let Some(insts) = duplicated_tail(func, block, target, &mut labels) else {
            continue;
        };
        growth += insts.len() - 1;
        if growth > MAX_GROWTH {
            break;
        }
        references[target] -= 1;
        copies.push(TailCopy {
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
    labels.sort_by_key(|(start, _)| *start);
    let dead = unreachable_insts(func, &references);
    // The table of value locations covers only the original of a copied value.
    let is_copied = |index: usize| copies.binary_search_by_key(&index, |copy| copy.jump).is_ok();
    value_locations::remove(func, |index, _, _| is_copied(index));
    let mut copies = copies.into_iter().peekable();
    let mut labels = labels.into_iter().peekable();
    func.rebuild(|func, index, inst| {
        while let Some((_, label)) = labels.next_if(|(start, _)| *start == index) {
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

/// Returns for each instruction whether its block became unreachable.
fn unreachable_insts(func: &MachFunction, references: &[usize]) -> Vec<bool> {
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

/// Returns the replacement of the jump at the end of a block: a copy of the target, if the target
/// is short and the copy saves a jump.
fn duplicated_tail(
    func: &mut MachFunction,
    block: usize,
    target: usize,
    labels: &mut Vec<(usize, Label)>,
) -> Option<Vec<McInst>> {
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
        // One jump replaces two.
        return (body.len() < 2 && to != target).then(|| {
            copy.push(last);
            copy
        });
    }
    let taken = condition_target(last)?;
    // Either the branch is a back edge and the jump is between its block and the header, or the
    // jump is a back edge to the branch.
    let (loops, is_test) = (func.block_of(taken)? <= block.min(target), target <= block);
    if !loops && !is_test {
        return None;
    }
    let mut last = last.clone();
    let mut jump = McInst::plain(
        Inst::new(Opcode::JMP, [Operand::Imm(0)]),
        last.origin.with_producer(Producer::Rotation),
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

/// Returns the label of the block. A new label is bound when the function is rebuilt. Returns
/// `None` for an empty block without a label.
fn label_of(func: &mut MachFunction, block: usize, labels: &mut Vec<(usize, Label)>) -> Option<Label> {
    if let Some(label) = func.label(block) {
        return Some(label);
    }
    let range = func.block_range(block);
    if range.is_empty() {
        return None;
    }
    if let Some((_, label)) = labels.iter().find(|(start, _)| *start == range.start) {
        return Some(*label);
    }
    let label = func.new_label();
    labels.push((range.start, label));
    Some(label)
}
