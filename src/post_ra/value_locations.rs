//! Locations of labelled values, updated by the passes after register allocation.
//!
//! regalloc2 returns the location of a labelled value between any two instructions of the VCode.
//! Passes that rename registers or reorder instructions ignore labels, because code must be the
//! same with and without them. They report their changes, and this module updates the table of
//! locations. In doubt, a value has no location for a while, instead of a wrong one.

use super::effects::{Effects, RegSet, index_of};
use super::func::{LiveRange, MachFunction, McInst};
use crate::abi::registers::spill_unit;
use crate::code::LabelLoc;
use crate::error::CompileError;
use crate::inst::reg::from_preg;
use crate::vcode::VCode;
use cranelift_codegen::ir::ValueLabel;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use regalloc2::{InstPosition, Output, ProgPoint};

/// For each VCode instruction, the index of its first machine instruction, with and without the
/// moves of register allocation before it.
#[derive(Debug, Default)]
pub struct Positions {
    with_moves: Vec<Option<usize>>,
    without: Vec<Option<usize>>,
}

impl Positions {
    /// Creates an empty table for this many instructions. It stays empty if no value has a label.
    pub fn new(vcode: &VCode, insts: usize) -> Self {
        let count = if vcode.labels.is_empty() { 0 } else { insts + 1 };
        Self {
            with_moves: vec![None; count],
            without: vec![None; count],
        }
    }

    /// Records the index of the moves before the instruction.
    pub fn moves(&mut self, inst: usize, at: usize) {
        if let Some(position) = self.with_moves.get_mut(inst) {
            position.get_or_insert(at);
        }
    }

    /// Records the index of the instruction itself.
    pub fn inst(&mut self, inst: usize, at: usize) {
        if let Some(position) = self.without.get_mut(inst) {
            *position = Some(at);
        }
    }

    /// Gives removed blocks the position of the next block.
    fn fill(list: &mut [Option<usize>], end: usize) -> Vec<usize> {
        let mut next = end;
        for position in list.iter_mut().rev() {
            next = *position.get_or_insert(next);
        }
        list.iter().map(|position| position.unwrap_or(end)).collect()
    }

    /// Returns the locations of labelled values, as ranges of machine instructions. `end` is the
    /// number of machine instructions.
    pub fn live_ranges(mut self, output: &Output, spills: u32, end: usize) -> Result<Vec<LiveRange>, CompileError> {
        let with_moves = Self::fill(&mut self.with_moves, end);
        let without = Self::fill(&mut self.without, end);
        let at = |list: &[usize], index: usize| {
            let position = list.get(index).copied();
            position.ok_or_else(|| CompileError::internal("expand", index, "the number of an instruction of the VCode"))
        };
        let start_of = |point: ProgPoint| match point.pos() {
            InstPosition::Before => at(&without, point.inst().index()),
            InstPosition::After => at(&without, point.inst().index() + 1),
        };
        // The last use still reads the value, but the same instruction may overwrite it.
        let end_of = |point: ProgPoint| match point.pos() {
            InstPosition::Before => at(&with_moves, point.inst().index()),
            InstPosition::After => {
                let next = at(&with_moves, point.inst().index() + 1)?;
                Ok(next.min(at(&without, point.inst().index())? + 1))
            }
        };
        let location = |allocation: regalloc2::Allocation| {
            let reg = allocation.as_reg().and_then(from_preg).map(LabelLoc::Reg);
            let slot = || {
                let slot = u32::try_from(allocation.as_stack()?.index()).ok()?;
                let offset = spills.checked_add(slot.checked_mul(spill_unit())?)?;
                Some(LabelLoc::Stack(i32::try_from(offset).ok()?))
            };
            reg.or_else(slot)
                .ok_or_else(|| CompileError::internal("expand", allocation, "a register or a spill slot"))
        };
        let mut ranges = Vec::with_capacity(output.debug_locations.len());
        for &(label, from, to, allocation) in &output.debug_locations {
            let range = LiveRange {
                label: ValueLabel::from_u32(label),
                start: start_of(from)?,
                end: end_of(to)?,
                loc: location(allocation)?,
            };
            if range.start < range.end {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

/// A range of straight-line code after a reorder: the instruction at `start + order[i]` moved to
/// `start + i`.
#[derive(Debug)]
pub struct Reordered {
    /// Index of the first instruction.
    pub start: usize,
    /// The old positions, relative to `start`.
    pub order: Vec<usize>,
}

/// Updates the table after instructions were reordered. The regions are sorted and disjoint.
pub fn update_reordered(func: &mut MachFunction, regions: &[Reordered]) {
    if func.value_locations.is_empty() {
        return;
    }
    // The region that contains the instruction before the index.
    let region_before = |index: usize| {
        let number = regions.partition_point(|region| region.start < index).checked_sub(1)?;
        let region = &regions[number];
        (index <= region.start + region.order.len()).then_some(region)
    };
    let insts = &func.insts;
    for range in &mut func.value_locations {
        let old = *range;
        // A position inside a region is passed when all instructions before it in the old order
        // have executed.
        let passed = |region: &Reordered, index: usize| {
            let last = region.order.iter().rposition(|&from| region.start + from < index);
            region.start + last.map_or(0, |position| position + 1)
        };
        if let Some(region) = region_before(old.start) {
            range.start = passed(region, old.start);
        }
        if let Some(region) = region_before(old.end) {
            // An instruction that was last, or after the range, may now execute earlier and
            // overwrite the value.
            let ends = region.order.iter().enumerate().position(|(position, &from)| {
                region.start + from + 1 >= old.end && overwrites(&insts[region.start + position].inst, old.loc)
            });
            let overwritten = ends.map_or(usize::MAX, |position| region.start + position + 1);
            range.end = passed(region, old.end).min(overwritten);
        }
    }
    func.value_locations.retain(|range| range.start < range.end);
}

fn overwrites(inst: &Inst, loc: LabelLoc) -> bool {
    match loc {
        LabelLoc::Reg(reg) => inst.defs().any(|def| def == reg),
        LabelLoc::Stack(_) => inst.desc().flags.may_store(),
    }
}

/// For each scalar of the old code, the scalars of the new code that hold the same value.
struct Copies([RegSet; 64]);

impl Copies {
    fn of(&self, reg: SReg) -> RegSet {
        self.0[index_of(Reg::S(reg))]
    }

    /// Executes one instruction: `old` in the old code, `new` in the new code unless it was
    /// removed.
    fn step(&mut self, old: &Inst, new: Option<&Inst>) {
        let writes = |inst: &Inst| Effects::of(inst).writes.scalars();
        let new_writes = new.map_or(RegSet::EMPTY, writes);
        let mut moved = as_move(old).map(|(to, from)| (to, self.of(from)));
        let copied = new.and_then(as_move);
        let update = |set: &mut RegSet| {
            let holds = copied.is_some_and(|(_, from)| set.contains(Reg::S(from)));
            *set = set.without(new_writes);
            if let (true, Some((to, _))) = (holds, copied) {
                *set = set.or(RegSet::one(Reg::S(to)));
            }
        };
        self.0.iter_mut().for_each(update);
        if let Some((_, set)) = &mut moved {
            update(set);
        }
        match moved {
            Some((to, set)) => self.0[index_of(Reg::S(to))] = set,
            None => {
                let old_writes = writes(old);
                // A renamed result is the only result of its instruction.
                let renamed = old_writes != new_writes && old_writes.len() == 1;
                for reg in old_writes.iter() {
                    let same = new_writes.and(RegSet::one(reg));
                    self.0[index_of(reg)] = if renamed { new_writes } else { same };
                }
            }
        }
    }
}

fn as_move(inst: &Inst) -> Option<(SReg, SReg)> {
    match (inst.opcode, inst.operands.as_ref()) {
        (Opcode::MOVE_SS_32, &[Operand::S(to), Operand::S(from)]) => Some((to, from)),
        _ => None,
    }
}

/// Updates the table after registers were renamed, before the moves selected by `is_removed` are
/// removed.
///
/// `old` is the code before the renames. Values that are live at the start of a block are still in
/// their registers.
pub(super) fn update_renamed(
    func: &mut MachFunction,
    old: &[Inst],
    live_in: impl Fn(usize) -> Option<RegSet>,
    is_removed: impl Fn(usize) -> bool,
) {
    let mut waiting: Vec<LiveRange> = std::mem::take(&mut func.value_locations);
    waiting.sort_by_key(|range| std::cmp::Reverse(range.start));
    let mut active: Vec<LiveRange> = Vec::new();
    let mut found: Vec<LiveRange> = Vec::new();
    for block in 0..func.block_count() {
        let mut copies = Copies(std::array::from_fn(|_| RegSet::EMPTY));
        for reg in live_in(block).unwrap_or(RegSet::EMPTY).scalars().iter() {
            copies.0[index_of(reg)] = RegSet::one(reg);
        }
        for index in func.block_range(block) {
            while let Some(range) = waiting.pop_if(|range| range.start <= index) {
                active.push(range);
            }
            active.retain(|range| range.end > index);
            for range in &active {
                if let Some(loc) = current_location(range.loc, &copies) {
                    found.push(LiveRange {
                        start: index,
                        end: index + 1,
                        loc,
                        ..*range
                    });
                }
            }
            copies.step(
                &old[index],
                Some(&func.insts[index].inst).filter(|_| !is_removed(index)),
            );
        }
    }
    func.value_locations = merge_adjacent(found);
}

/// Removes locations from the table. `is_removed` receives the index of an instruction, the
/// instruction and the location.
pub(super) fn remove(func: &mut MachFunction, is_removed: impl Fn(usize, &McInst, LabelLoc) -> bool) {
    let insts = &func.insts;
    let mut kept = Vec::with_capacity(func.value_locations.len());
    for range in &func.value_locations {
        let mut start = None;
        for index in range.start..range.end + 1 {
            let stays = index < range.end && insts.get(index).is_some_and(|inst| !is_removed(index, inst, range.loc));
            match (stays, start) {
                (true, None) => start = Some(index),
                (false, Some(first)) => {
                    kept.push(LiveRange {
                        start: first,
                        end: index,
                        ..*range
                    });
                    start = None;
                }
                _ => {}
            }
        }
    }
    func.value_locations = kept;
}

fn current_location(loc: LabelLoc, copies: &Copies) -> Option<LabelLoc> {
    let LabelLoc::Reg(Reg::S(reg)) = loc else {
        return Some(loc);
    };
    let set = copies.of(reg);
    if set.contains(Reg::S(reg)) {
        return Some(loc);
    }
    Some(LabelLoc::Reg(set.iter().next()?))
}

/// Merges ranges that are adjacent or overlap.
fn merge_adjacent(mut list: Vec<LiveRange>) -> Vec<LiveRange> {
    let sort_key = |loc: LabelLoc| match loc {
        LabelLoc::Reg(Reg::S(reg)) => (0, i32::from(reg.number())),
        LabelLoc::Reg(Reg::V(reg)) => (1, i32::from(reg.number())),
        LabelLoc::Stack(offset) => (2, offset),
    };
    list.sort_by_key(|range| (range.label.as_u32(), sort_key(range.loc), range.start));
    list.dedup_by(|next, last| {
        let touches = next.label == last.label && next.loc == last.loc && next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    list
}
