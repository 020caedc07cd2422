//! Moves that hand a value from one round of a loop to the next.
//!
//! Where a loop calls, register allocation keeps what its rounds share in a register that calls keep, but may begin each round
//! with it in another: the round ends with a move from one to the other. If the first is free when a round begins, the value
//! stays in it: it is moved there once, before the loop, and what reads the other reads it.

use super::cfg::{Liveness, successors};
use super::copyprop::as_move;
use super::edit::{Editor, Role};
use super::effects::{Conventions, RegSet};
use super::func::{CallKind, FrameStep, MachFunction, McInst};
use super::places;
use crate::code::LabelLoc;
use crate::reason::Maker;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most loops of a function that are changed: after each, what is live is found anew.
const MAX_LOOPS: usize = 64;

/// Removes the moves it can.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    let headers: Vec<Header> = headers(func);
    if headers.is_empty() {
        return;
    }
    func.find_effects();
    let mut liveness = Liveness::new(func, conventions);
    let mut changed = 0;
    for header in &headers {
        let carried = carried(func, header, &liveness, conventions);
        if carried.is_empty() {
            continue;
        }
        apply(func, header, &carried, &liveness, conventions);
        changed += 1;
        if changed == MAX_LOOPS {
            return;
        }
        func.find_effects();
        liveness = Liveness::new(func, conventions);
    }
}

/// The start of a loop.
struct Header {
    block: usize,
    /// The blocks that lead to it from before the loop.
    entries: SmallVec<[usize; 2]>,
    /// The blocks that lead back.
    latches: SmallVec<[usize; 2]>,
}

/// The starts of loops whose rounds end with moves.
fn headers(func: &MachFunction) -> Vec<Header> {
    let mut found: Vec<Header> = Vec::new();
    let mut place_of: FxHashMap<usize, usize> = FxHashMap::default();
    for latch in 0..func.block_count() {
        if !func.insts()[func.block_range(latch)].iter().any(is_scalar_move) {
            continue;
        }
        for block in successors(func, latch) {
            if block <= latch && !place_of.contains_key(&block) {
                place_of.insert(block, found.len());
                found.push(Header {
                    block,
                    entries: SmallVec::new(),
                    latches: SmallVec::new(),
                });
            }
        }
    }
    if !found.is_empty() {
        for pred in 0..func.block_count() {
            for succ in successors(func, pred) {
                if let Some(header) = place_of.get(&succ).and_then(|&place| found.get_mut(place)) {
                    let list = if pred < succ {
                        &mut header.entries
                    } else {
                        &mut header.latches
                    };
                    list.push(pred);
                }
            }
        }
    }
    found
}

fn is_scalar_move(inst: &McInst) -> bool {
    inst.inst.opcode == Opcode::MOVE_SS_32
}

/// A value that the rounds of a loop hand on.
#[derive(Clone, Copy)]
struct Carried {
    /// Where it stays.
    kept: SReg,
    /// Where a round expects it.
    moved: SReg,
    /// The index after the last instruction of the header that reads it there.
    end: usize,
}

fn carried(func: &MachFunction, header: &Header, liveness: &Liveness, conventions: &Conventions) -> Vec<Carried> {
    let Some((&first, others)) = header.latches.split_first() else {
        return Vec::new();
    };
    let at_start = liveness.live_in(header.block);
    let mut found: Vec<Carried> = Vec::new();
    for (moved, kept) in handed_on(func, first, conventions) {
        let pair = RegSet::one(Reg::S(kept)).or(RegSet::one(Reg::S(moved)));
        let is_taken = |other: &Carried| pair.contains(Reg::S(other.kept)) || pair.contains(Reg::S(other.moved));
        if conventions.is_special(kept)
            || at_start.contains(Reg::S(kept))
            || !at_start.contains(Reg::S(moved))
            || found.iter().any(is_taken)
            || !others
                .iter()
                .all(|&latch| handed_on(func, latch, conventions).contains(&(moved, kept)))
            || !header
                .entries
                .iter()
                .all(|&entry| place(func, header, liveness, entry, (kept, moved)).is_some())
        {
            continue;
        }
        if let Some(end) = last_read(func, header, liveness, conventions, (kept, moved)) {
            found.push(Carried { kept, moved, end });
        }
    }
    found
}

/// The moves that hold when the block ends: destination and source. A call may change either.
fn handed_on(func: &MachFunction, block: usize, conventions: &Conventions) -> SmallVec<[(SReg, SReg); 4]> {
    let mut found = SmallVec::new();
    if func.terminator(block).is_some_and(|last| last.call != CallKind::None) {
        return found;
    }
    let mut written = RegSet::EMPTY;
    for index in func.block_range(block).rev() {
        if let Some((to, from)) = as_move(&func.insts()[index], conventions)
            && !written.contains(Reg::S(to))
            && !written.contains(Reg::S(from))
            && to != from
        {
            found.push((to, from));
        }
        written = written.or(func.effects[index].writes);
    }
    found
}

/// Where in a block before the loop the value can be moved: before the last instruction.
fn place(
    func: &MachFunction,
    header: &Header,
    liveness: &Liveness,
    entry: usize,
    (kept, moved): (SReg, SReg),
) -> Option<usize> {
    let last = func.block_range(entry).last()?;
    let effects = &func.effects[last];
    let kept = RegSet::one(Reg::S(kept));
    let others = successors(func, entry);
    let mut others = others.iter().filter(|&&succ| succ != header.block);
    let free = !effects.reads.or(effects.writes).meets(kept) && others.all(|&succ| !liveness.live_in(succ).meets(kept));
    let inst = &func.insts()[last];
    let before = last.checked_sub(1).map(|before| &func.insts()[before]);
    let is_tied = inst.call != CallKind::None
        || inst.frame != FrameStep::None
        || inst.glued
        || before.is_some_and(|before| before.glued);
    (free && !is_tied && !effects.writes.contains(Reg::S(moved))).then_some(last)
}

/// The index after the last read of the value in the header, if the value is needed there only and every read can go to where it
/// is kept.
fn last_read(
    func: &MachFunction,
    header: &Header,
    liveness: &Liveness,
    conventions: &Conventions,
    (kept, moved): (SReg, SReg),
) -> Option<usize> {
    let range = func.block_range(header.block);
    let mut end = range.start;
    let mut is_overwritten = false;
    for index in range {
        let (inst, effects) = (&func.insts()[index], &func.effects[index]);
        if conventions.needs(inst, effects).contains(Reg::S(moved)) {
            // What reads it without naming it, or writes part of it, wants it where it is.
            let named = effects.reads.contains(Reg::S(moved)) && !inst.inst.desc().reads_dst && !effects.is_branch;
            if is_overwritten || !named {
                return None;
            }
            end = index + 1;
        }
        if effects.writes.contains(Reg::S(moved)) {
            return Some(end);
        }
        let is_copy = as_move(inst, conventions) == Some((kept, moved));
        is_overwritten |= effects.writes.contains(Reg::S(kept)) && !is_copy;
    }
    (!liveness.live_out(header.block).contains(Reg::S(moved))).then_some(end)
}

fn apply(
    func: &mut MachFunction,
    header: &Header,
    carried: &[Carried],
    liveness: &Liveness,
    conventions: &Conventions,
) {
    let range = func.block_range(header.block);
    places::forget(func, |index, _, loc| {
        let is_it = |value: &Carried| loc == LabelLoc::Reg(Reg::S(value.moved));
        range.contains(&index) && carried.iter().any(is_it)
    });
    let mut entries = header.entries.clone();
    entries.sort_unstable();
    entries.dedup();
    let mut edit = Editor::new(func);
    for &Carried { kept, moved, end } in carried {
        for index in range.start..end {
            edit.rename(index, moved, kept, Role::Use);
        }
        for &latch in &header.latches {
            let others = successors(edit.func(), latch);
            let mut others = others.iter().filter(|&&succ| succ != header.block);
            let mut is_read = others.any(|&succ| liveness.live_in(succ).contains(Reg::S(moved)));
            for index in edit.func().block_range(latch).rev() {
                let (inst, effects) = (&edit.insts()[index], &edit.effects()[index]);
                if as_move(inst, conventions) == Some((moved, kept)) {
                    if !is_read {
                        edit.remove(index);
                    }
                    break;
                }
                is_read |= conventions.needs(inst, effects).contains(Reg::S(moved));
            }
        }
    }
    for index in range {
        let is_itself = as_move(&edit.insts()[index], conventions).is_some_and(|(to, from)| to == from);
        if is_itself {
            edit.remove(index);
        }
    }
    for entry in entries {
        let Some(last) = edit.func().block_range(entry).last() else {
            continue;
        };
        let origin = edit.insts()[last].origin.remade_by(Maker::Carried);
        for value in carried {
            let operands = [Operand::from(value.kept), value.moved.into()];
            edit.insert(last, McInst::plain(Inst::new(Opcode::MOVE_SS_32, operands), origin));
        }
    }
    edit.finish();
}
