//! Places of labelled values, followed through the passes behind register allocation.
//!
//! regalloc2 says where a labelled value is between any two instructions of the VCode. Passes that change registers or the
//! order of instructions must not care: code is the same with and without labels. So they report what they did, and the
//! table is corrected here. Where in doubt, a value is nowhere for a while rather than in a wrong place.

use super::Items;
use super::copies::{Block, Set, bit};
use crate::abi::registers::spill_unit;
use crate::code::LabelLoc;
use crate::inst::reg::from_preg;
use crate::vcode::VCode;
use cranelift_codegen::ir::ValueLabel;
use npu_mc::{Inst, Opcode, Reg, SReg};
use regalloc2::{InstPosition, Output, ProgPoint};

/// A labelled value in one place, for a stretch of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The label.
    pub label: ValueLabel,
    /// Index of the first instruction in front of which the value is there.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// The place.
    pub loc: LabelLoc,
}

/// For each instruction of the VCode the index of the first machine instruction made for it, with the moves of register
/// allocation in front of it, and without.
#[derive(Debug, Default)]
pub struct Positions {
    with_moves: Vec<Option<usize>>,
    without: Vec<Option<usize>>,
}

impl Positions {
    /// Nothing known yet. Stays empty if no label asks.
    pub fn new(vcode: &VCode) -> Self {
        let count = if vcode.labels.is_empty() {
            0
        } else {
            vcode.insts.len() + 1
        };
        Self {
            with_moves: vec![None; count],
            without: vec![None; count],
        }
    }

    /// The moves in front of the instruction start here.
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
    pub fn stretches(mut self, output: &Output, spills: u32, end: usize) -> Vec<Stretch> {
        let with_moves = Self::fill(&mut self.with_moves, end);
        let without = Self::fill(&mut self.without, end);
        let at = |list: &[usize], index: usize| list.get(index).copied().unwrap_or(end);
        let start_of = |point: ProgPoint| match point.pos() {
            InstPosition::Before => at(&without, point.inst().index()),
            InstPosition::After => at(&without, point.inst().index() + 1),
        };
        // The last use of a value still finds it, but the instruction may then write over it.
        let end_of = |point: ProgPoint| match point.pos() {
            InstPosition::Before => at(&with_moves, point.inst().index()),
            InstPosition::After => {
                let next = at(&with_moves, point.inst().index() + 1);
                next.min(at(&without, point.inst().index()) + 1)
            }
        };
        let place = |allocation: regalloc2::Allocation| match (allocation.as_reg(), allocation.as_stack()) {
            (Some(reg), _) => from_preg(reg).map(LabelLoc::Reg),
            (None, Some(slot)) => {
                let offset = u32::try_from(slot.index()).unwrap_or(0) * spill_unit();
                Some(LabelLoc::Stack((spills + offset).cast_signed()))
            }
            (None, None) => None,
        };
        output
            .debug_locations
            .iter()
            .filter_map(|&(label, from, to, allocation)| {
                Some(Stretch {
                    label: ValueLabel::from_u32(label),
                    start: start_of(from),
                    end: end_of(to),
                    loc: place(allocation)?,
                })
            })
            .filter(|stretch| stretch.start < stretch.end)
            .collect()
    }
}

/// A stretch of straight-line code whose instructions changed places: what stands at `start + place` stood at
/// `start + order[place]`.
#[derive(Debug)]
pub struct Reordered {
    /// Index of the first one.
    pub start: usize,
    /// Where they came from.
    pub order: Vec<usize>,
}

/// Corrects the table after instructions have changed places. The regions are sorted and do not overlap.
pub fn reorder(items: &mut Items, regions: &[Reordered]) {
    // The region that has the instruction in front of the index.
    let region_before = |index: usize| {
        let number = regions.partition_point(|region| region.start < index).checked_sub(1)?;
        let region = &regions[number];
        (index <= region.start + region.order.len()).then_some(region)
    };
    let list = &items.list;
    for stretch in &mut items.places {
        let old = *stretch;
        // A place inside a region is passed when all that stood in front of it has been executed.
        let passed = |region: &Reordered, index: usize| {
            let last = region.order.iter().rposition(|&from| region.start + from < index);
            region.start + last.map_or(0, |place| place + 1)
        };
        if let Some(region) = region_before(old.start) {
            stretch.start = passed(region, old.start);
        }
        if let Some(region) = region_before(old.end) {
            // What stood behind, or last, may now come earlier and write over the value.
            let ends = region.order.iter().enumerate().position(|(place, &from)| {
                region.start + from + 1 >= old.end && overwrites(&list[region.start + place].inst, old.loc)
            });
            let overwritten = ends.map_or(usize::MAX, |place| region.start + place + 1);
            stretch.end = passed(region, old.end).min(overwritten);
        }
    }
    items.places.retain(|stretch| stretch.start < stretch.end);
}

fn overwrites(inst: &Inst, loc: LabelLoc) -> bool {
    match loc {
        LabelLoc::Reg(reg) => inst.defs().any(|def| def == reg),
        LabelLoc::Stack(_) => inst.desc().flags.may_store(),
    }
}

/// For each register of the code as it was, the registers of the code as it is that hold the same.
struct Copies([Set; 64]);

impl Copies {
    fn of(&self, reg: SReg) -> Set {
        self.0[usize::from(reg.number() & 63)]
    }

    /// One instruction is executed: `old` in the code as it was, `new` in the code as it is, if it is still there.
    fn step(&mut self, old: &Inst, new: Option<&Inst>) {
        let defs = |inst: &Inst| inst.defs().fold(0, |set, reg| set | bit(reg));
        let new_defs = new.map_or(0, defs);
        let mut moved = as_move(old).map(|(to, from)| (to, self.of(from)));
        let copied = new.and_then(as_move);
        let update = |set: &mut Set| {
            let holds = copied.is_some_and(|(_, from)| *set & bit(Reg::S(from)) != 0);
            *set &= !new_defs;
            if let (true, Some((to, _))) = (holds, copied) {
                *set |= bit(Reg::S(to));
            }
        };
        self.0.iter_mut().for_each(update);
        if let Some((_, set)) = &mut moved {
            update(set);
        }
        match moved {
            Some((to, set)) => self.0[usize::from(to.number() & 63)] = set,
            None => {
                let old_defs = defs(old);
                // A renamed result is the only one of its instruction.
                let renamed = old_defs != new_defs && old_defs.count_ones() == 1;
                for number in (0..64).filter(|number| old_defs >> number & 1 != 0) {
                    self.0[number] = if renamed { new_defs } else { new_defs & 1 << number };
                }
            }
        }
    }
}

fn as_move(inst: &Inst) -> Option<(SReg, SReg)> {
    match (inst.opcode, inst.operands.as_ref()) {
        (Opcode::MOVE_SS_32, [to, from]) => match (to.reg()?, from.reg()?) {
            (Reg::S(to), Reg::S(from)) => Some((to, from)),
            _ => None,
        },
        _ => None,
    }
}

/// The code in front of a pass that renames registers. Holds nothing if no value has a label.
#[derive(Debug)]
pub(super) struct Before(Vec<Inst>);

impl Before {
    /// Notes how the code is.
    pub fn new(items: &Items) -> Self {
        let list = items.list.iter().filter(|_| !items.places.is_empty());
        Self(list.map(|item| item.inst).collect())
    }

    /// Corrects the table after registers were renamed, and before the moves that are `dead` are taken out. The blocks cover the list;
    /// what is live at the start of one is still in its register.
    pub(super) fn renamed(self, items: &mut Items, blocks: &[Block], dead: impl Fn(usize) -> bool) {
        if self.0.is_empty() {
            return;
        }
        let mut waiting: Vec<Stretch> = std::mem::take(&mut items.places);
        waiting.sort_by_key(|stretch| std::cmp::Reverse(stretch.start));
        let mut active: Vec<Stretch> = Vec::new();
        let mut found: Vec<Stretch> = Vec::new();
        for block in blocks {
            let mut copies = Copies(std::array::from_fn(|number| block.live_in & 1 << number));
            for index in block.start..block.end {
                while let Some(stretch) = waiting.pop_if(|stretch| stretch.start <= index) {
                    active.push(stretch);
                }
                active.retain(|stretch| stretch.end > index);
                for stretch in &active {
                    if let Some(loc) = now_at(stretch.loc, &copies) {
                        found.push(Stretch {
                            start: index,
                            end: index + 1,
                            loc,
                            ..*stretch
                        });
                    }
                }
                copies.step(&self.0[index], Some(&items.list[index].inst).filter(|_| !dead(index)));
            }
        }
        items.places = joined(found);
    }
}

fn now_at(loc: LabelLoc, copies: &Copies) -> Option<LabelLoc> {
    let LabelLoc::Reg(Reg::S(reg)) = loc else {
        return Some(loc);
    };
    let set = copies.of(reg);
    if set & bit(Reg::S(reg)) != 0 {
        return Some(loc);
    }
    let number = u8::try_from(set.trailing_zeros()).ok().and_then(SReg::new)?;
    Some(LabelLoc::Reg(Reg::S(number)))
}

/// Joins what touches.
fn joined(mut list: Vec<Stretch>) -> Vec<Stretch> {
    let place = |loc: LabelLoc| match loc {
        LabelLoc::Reg(Reg::S(reg)) => (0, i32::from(reg.number())),
        LabelLoc::Reg(Reg::V(reg)) => (1, i32::from(reg.number())),
        LabelLoc::Stack(offset) => (2, offset),
    };
    list.sort_by_key(|stretch| (stretch.label.as_u32(), place(stretch.loc), stretch.start));
    list.dedup_by(|next, last| {
        let touches = next.label == last.label && next.loc == last.loc && next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    list
}
