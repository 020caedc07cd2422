//! Removes loop-carried copies: register moves between iterations of a loop.
//!
//! In a loop that contains calls, register allocation may keep a loop-carried value in a
//! callee-saved register within an iteration, but expect it in another register at the start of an
//! iteration. Every iteration then ends with a move between the two registers. If the callee-saved
//! register is free at the start of an iteration, the value stays there: one move before the loop
//! replaces the moves in the latches, and the header reads the callee-saved register.

use super::cfg::{Liveness, successors};
use super::copyprop::as_move;
use super::edit::{Editor, Role};
use super::effects::{Conventions, RegSet};
use super::func::{CallKind, FrameStep, MachFunction, McInst};
use super::value_locations;
use crate::code::LabelLoc;
use crate::provenance::Producer;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The maximum number of loops changed per function, because each change recomputes liveness.
const MAX_LOOPS: usize = 64;

/// Removes loop-carried copies where that is possible.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    let headers: Vec<Header> = headers(func);
    if headers.is_empty() {
        return;
    }
    func.find_effects();
    let mut liveness = Liveness::new(func, conventions);
    let mut changed = 0;
    for header in &headers {
        let copies = find_copies(func, header, &liveness, conventions);
        if copies.is_empty() {
            continue;
        }
        apply(func, header, &copies, &liveness, conventions);
        changed += 1;
        if changed == MAX_LOOPS {
            return;
        }
        func.find_effects();
        liveness = Liveness::new(func, conventions);
    }
}

/// A loop header.
struct Header {
    block: usize,
    /// The predecessors outside the loop.
    entries: SmallVec<[usize; 2]>,
    /// The latches.
    latches: SmallVec<[usize; 2]>,
}

/// Returns the headers of loops with a move in a latch.
fn headers(func: &MachFunction) -> Vec<Header> {
    let mut found: Vec<Header> = Vec::new();
    let mut index_of: FxHashMap<usize, usize> = FxHashMap::default();
    for latch in 0..func.block_count() {
        if !func.insts()[func.block_range(latch)].iter().any(is_scalar_move) {
            continue;
        }
        for block in successors(func, latch) {
            if block <= latch && !index_of.contains_key(&block) {
                index_of.insert(block, found.len());
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
                if let Some(header) = index_of.get(&succ).and_then(|&index| found.get_mut(index)) {
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

/// A loop-carried value whose copy is removed.
#[derive(Clone, Copy)]
struct LoopCopy {
    /// The register that keeps the value.
    kept: SReg,
    /// The register in which the header expects the value.
    moved: SReg,
    /// The index after the last instruction of the header that reads `moved`.
    end: usize,
}

fn find_copies(func: &MachFunction, header: &Header, liveness: &Liveness, conventions: &Conventions) -> Vec<LoopCopy> {
    let Some((&first, others)) = header.latches.split_first() else {
        return Vec::new();
    };
    let at_start = liveness.live_in(header.block);
    let mut found: Vec<LoopCopy> = Vec::new();
    for (moved, kept) in copies_at_end(func, first, conventions) {
        let pair = RegSet::one(Reg::S(kept)).or(RegSet::one(Reg::S(moved)));
        let is_taken = |other: &LoopCopy| pair.contains(Reg::S(other.kept)) || pair.contains(Reg::S(other.moved));
        if conventions.is_special(kept)
            || at_start.contains(Reg::S(kept))
            || !at_start.contains(Reg::S(moved))
            || found.iter().any(is_taken)
            || !others
                .iter()
                .all(|&latch| copies_at_end(func, latch, conventions).contains(&(moved, kept)))
            || !header
                .entries
                .iter()
                .all(|&entry| insertion_point(func, header, liveness, entry, (kept, moved)).is_some())
        {
            continue;
        }
        if let Some(end) = last_read(func, header, liveness, conventions, (kept, moved)) {
            found.push(LoopCopy { kept, moved, end });
        }
    }
    found
}

/// Returns the moves that are still in effect at the end of the block, as pairs of destination and
/// source.
///
/// Returns none for a block that ends with a call, because the callee may change either register.
fn copies_at_end(func: &MachFunction, block: usize, conventions: &Conventions) -> SmallVec<[(SReg, SReg); 4]> {
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

/// Returns the index before which a block that enters the loop can move the value: its last
/// instruction.
///
/// Returns `None` if another successor needs the register that keeps the value, or if the
/// instruction is tied to its position.
fn insertion_point(
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

/// Returns the index after the last read of `moved` in the header.
///
/// Returns `None` if the value is live after the header, or if a read cannot use `kept` instead.
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
            // An implicit read and a partial write need the register itself.
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
    copies: &[LoopCopy],
    liveness: &Liveness,
    conventions: &Conventions,
) {
    let range = func.block_range(header.block);
    value_locations::remove(func, |index, _, loc| {
        let is_it = |value: &LoopCopy| loc == LabelLoc::Reg(Reg::S(value.moved));
        range.contains(&index) && copies.iter().any(is_it)
    });
    let mut entries = header.entries.clone();
    entries.sort_unstable();
    entries.dedup();
    let mut edit = Editor::new(func);
    for &LoopCopy { kept, moved, end } in copies {
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
        let origin = edit.insts()[last].origin.with_producer(Producer::LoopCopies);
        for value in copies {
            let operands = [Operand::from(value.kept), value.moved.into()];
            edit.insert(last, McInst::plain(Inst::new(Opcode::MOVE_SS_32, operands), origin));
        }
    }
    edit.finish();
}
