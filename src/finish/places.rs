//! Places of labelled values, followed through the passes after register allocation.
//!
//! regalloc2 says where a labelled value is between any two instructions of the VCode. Passes that change registers or the
//! order of instructions must not care: code is the same with and without labels. So they report what they did, and the
//! table is corrected here. Where in doubt, a value is nowhere for a while rather than in a wrong place.

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

/// For each instruction of the VCode the index of the first machine instruction made for it, with the moves of register
/// allocation before it, and without.
#[derive(Debug, Default)]
pub struct Positions {
    with_moves: Vec<Option<usize>>,
    without: Vec<Option<usize>>,
}

impl Positions {
    /// Nothing known yet of this many instructions. Stays empty if no label asks.
    pub fn new(vcode: &VCode, insts: usize) -> Self {
        let count = if vcode.labels.is_empty() { 0 } else { insts + 1 };
        Self {
            with_moves: vec![None; count],
            without: vec![None; count],
        }
    }

    /// The moves before the instruction start here.
    pub fn moves(&mut self, inst: usize, at: usize) {
        if let Some(place) = self.with_moves.get_mut(inst) {
            place.get_or_insert(at);
        }
    }

    /// The instruction itself starts here.
    pub fn inst(&mut self, inst: usize, at: usize) {
        if let Some(place) = self.without.get_mut(inst) {
            *place = Some(at);
        }
    }

    /// Blocks that were left out stand where the next one does.
    fn fill(list: &mut [Option<usize>], end: usize) -> Vec<usize> {
        let mut next = end;
        for place in list.iter_mut().rev() {
            next = *place.get_or_insert(next);
        }
        list.iter().map(|place| place.unwrap_or(end)).collect()
    }

    /// Where labelled values are, in terms of the list of machine instructions, of which `end` is the length.
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
        // The last use of a value still finds it, but the instruction may then write over it.
        let end_of = |point: ProgPoint| match point.pos() {
            InstPosition::Before => at(&with_moves, point.inst().index()),
            InstPosition::After => {
                let next = at(&with_moves, point.inst().index() + 1)?;
                Ok(next.min(at(&without, point.inst().index())? + 1))
            }
        };
        let place = |allocation: regalloc2::Allocation| {
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
                loc: place(allocation)?,
            };
            if range.start < range.end {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

/// A range of straight-line code whose instructions changed places: what stands at `start + place` stood at
/// `start + order[place]`.
#[derive(Debug)]
pub struct Reordered {
    /// Index of the first one.
    pub start: usize,
    /// Where they came from.
    pub order: Vec<usize>,
}

/// Corrects the table after instructions have changed places. The regions are sorted and do not overlap.
pub fn reorder(func: &mut MachFunction, regions: &[Reordered]) {
    if func.places.is_empty() {
        return;
    }
    // The region that has the instruction before the index.
    let region_before = |index: usize| {
        let number = regions.partition_point(|region| region.start < index).checked_sub(1)?;
        let region = &regions[number];
        (index <= region.start + region.order.len()).then_some(region)
    };
    let insts = &func.insts;
    for range in &mut func.places {
        let old = *range;
        // A place inside a region is passed when all that stood before it has been executed.
        let passed = |region: &Reordered, index: usize| {
            let last = region.order.iter().rposition(|&from| region.start + from < index);
            region.start + last.map_or(0, |place| place + 1)
        };
        if let Some(region) = region_before(old.start) {
            range.start = passed(region, old.start);
        }
        if let Some(region) = region_before(old.end) {
            // What stood after it, or last, may now come earlier and write over the value.
            let ends = region.order.iter().enumerate().position(|(place, &from)| {
                region.start + from + 1 >= old.end && overwrites(&insts[region.start + place].inst, old.loc)
            });
            let overwritten = ends.map_or(usize::MAX, |place| region.start + place + 1);
            range.end = passed(region, old.end).min(overwritten);
        }
    }
    func.places.retain(|range| range.start < range.end);
}

fn overwrites(inst: &Inst, loc: LabelLoc) -> bool {
    match loc {
        LabelLoc::Reg(reg) => inst.defs().any(|def| def == reg),
        LabelLoc::Stack(_) => inst.desc().flags.may_store(),
    }
}

/// For each scalar of the code as it was, the scalars of the code as it is that hold the same.
struct Copies([RegSet; 64]);

impl Copies {
    fn of(&self, reg: SReg) -> RegSet {
        self.0[index_of(Reg::S(reg))]
    }

    /// One instruction is executed: `old` in the code as it was, `new` in the code as it is, if it is still there.
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
                // A renamed result is the only one of its instruction.
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

/// Corrects the table after registers were renamed, and before the instructions that are `removed`, moves all of them, are
/// taken out. `old` is the code as it was. What is live at the start of a block is still in its register.
pub(super) fn renamed(
    func: &mut MachFunction,
    old: &[Inst],
    live_in: impl Fn(usize) -> Option<RegSet>,
    removed: impl Fn(usize) -> bool,
) {
    let mut waiting: Vec<LiveRange> = std::mem::take(&mut func.places);
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
                if let Some(loc) = now_at(range.loc, &copies) {
                    found.push(LiveRange {
                        start: index,
                        end: index + 1,
                        loc,
                        ..*range
                    });
                }
            }
            copies.step(&old[index], Some(&func.insts[index].inst).filter(|_| !removed(index)));
        }
    }
    func.places = joined(found);
}

/// Takes values out of the table where `gone` says so, of the index of an instruction, the instruction and the place.
pub(super) fn forget(func: &mut MachFunction, gone: impl Fn(usize, &McInst, LabelLoc) -> bool) {
    let insts = &func.insts;
    let mut kept = Vec::with_capacity(func.places.len());
    for range in &func.places {
        let mut start = None;
        for index in range.start..range.end + 1 {
            let stays = index < range.end && insts.get(index).is_some_and(|inst| !gone(index, inst, range.loc));
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
    func.places = kept;
}

fn now_at(loc: LabelLoc, copies: &Copies) -> Option<LabelLoc> {
    let LabelLoc::Reg(Reg::S(reg)) = loc else {
        return Some(loc);
    };
    let set = copies.of(reg);
    if set.contains(Reg::S(reg)) {
        return Some(loc);
    }
    Some(LabelLoc::Reg(set.iter().next()?))
}

/// Joins what touches.
fn joined(mut list: Vec<LiveRange>) -> Vec<LiveRange> {
    let place = |loc: LabelLoc| match loc {
        LabelLoc::Reg(Reg::S(reg)) => (0, i32::from(reg.number())),
        LabelLoc::Reg(Reg::V(reg)) => (1, i32::from(reg.number())),
        LabelLoc::Stack(offset) => (2, offset),
    };
    list.sort_by_key(|range| (range.label.as_u32(), place(range.loc), range.start));
    list.dedup_by(|next, last| {
        let touches = next.label == last.label && next.loc == last.loc && next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    list
}
