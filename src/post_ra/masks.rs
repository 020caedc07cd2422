//! Merging of adjacent operations under a lane mask.
//!
//! A masked operation sets `rm`, executes, and sets `rm` to all ones again. The restore is
//! necessary because every vector instruction obeys `rm`, masked or not (erratum
//! `mask_always_applied`), including the moves, spills and reloads that register allocation
//! inserts. After allocation, the instructions between two masked operations are known. If none of
//! them depends on `rm`, or if those that do can move before the first operation, `rm` keeps its
//! value. If both operations have the same mask, `rm` is set once.

use super::edit::Editor;
use super::effects::{Effects, RegSet};
use super::func::MachFunction;
use crate::inst::ALL_LANES;
use crate::inst::reg::machine;
use npu_mc::{Inst, Opcode, Operand, Reg};

/// The value to which an instruction sets `rm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    All,
    Lanes(i32),
    Register(Reg),
}

fn setting(inst: &Inst) -> Option<Setting> {
    let (Some(Operand::S(dst)), Some(source)) = (inst.operands.first(), inst.operands.get(1)) else {
        return None;
    };
    if Reg::S(*dst) != machine::MASK {
        return None;
    }
    match (inst.opcode, *source) {
        (Opcode::MOVEISI, Operand::Imm(lanes)) if lanes == i32::from(ALL_LANES) => Some(Setting::All),
        (Opcode::MOVEISI, Operand::Imm(lanes)) => Some(Setting::Lanes(lanes)),
        (Opcode::MOVE_SS_32, source) => source.reg().map(Setting::Register),
        _ => None,
    }
}

/// Merges adjacent masked operations.
pub fn run(func: &mut MachFunction) {
    if !func.insts().iter().any(|inst| setting(&inst.inst).is_some()) {
        return;
    }
    let mut edit = Editor::new(func);
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        let mut start = range.start;
        while start < range.end {
            let region = edit.region(start, range.end);
            start = region.end;
            if !edit.insts()[region.clone()]
                .iter()
                .any(|inst| setting(&inst.inst).is_some())
            {
                continue;
            }
            let mut merge = Merge::new(region.len());
            for (number, index) in region.clone().enumerate() {
                merge.step(number, &edit.effects()[index], setting(&edit.insts()[index].inst));
            }
            merge.close(region.len());
            edit.reorder(region.clone(), &merge.order);
            for (index, &from) in region.zip(&merge.order) {
                if merge.not_needed[from] {
                    edit.remove(index);
                }
            }
        }
    }
    edit.finish();
}

/// The combined effects of several instructions, for an instruction that moves before all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    reads: RegSet,
    writes: RegSet,
    accesses: bool,
    stores: bool,
}

impl Summary {
    fn add(&mut self, effects: &Effects) {
        self.reads = self.reads.or(effects.reads);
        // `rm` is no obstacle: it is all ones at the destination.
        self.writes = self.writes.or(effects.writes.without(RegSet::one(machine::MASK)));
        self.accesses |= effects.access.is_some();
        self.stores |= effects.access.is_some_and(|access| access.is_store);
    }

    /// Returns whether an instruction with these effects can move before the summarized
    /// instructions.
    fn can_be_passed(&self, effects: &Effects) -> bool {
        let mut own = Self::default();
        own.add(effects);
        let in_order = own.accesses && self.accesses && (own.stores || self.stores);
        !own.writes.meets(self.reads.or(self.writes)) && !self.writes.meets(own.reads) && !in_order
    }
}

/// The instructions since `rm` was first set. `rm` need not be all ones between them.
#[derive(Debug)]
struct Open {
    insts: Vec<usize>,
    summary: Summary,
    /// The last value of `rm`.
    last: Setting,
    /// Whether the register from which `rm` was set has changed since.
    is_stale: bool,
}

impl Open {
    fn add(&mut self, number: usize, effects: &Effects) {
        self.insts.push(number);
        self.summary.add(effects);
        if let Setting::Register(reg) = self.last {
            self.is_stale |= effects.writes.contains(reg);
        }
    }
}

/// The state after an instruction that sets `rm` to all ones, while the instruction may still be
/// removed.
#[derive(Debug)]
struct Restored {
    /// The instruction that restores `rm`.
    at: usize,
    /// The number of open instructions before it.
    open: usize,
    /// The instructions that move before the first one that sets `rm`.
    front: Vec<usize>,
}

/// A walk over a region. Its instructions are numbered from 0.
#[derive(Debug)]
struct Merge {
    /// The part of the new order that is final.
    order: Vec<usize>,
    not_needed: Vec<bool>,
    open: Option<Open>,
    restored: Option<Restored>,
}

impl Merge {
    fn new(count: usize) -> Self {
        Self {
            order: Vec::with_capacity(count),
            not_needed: vec![false; count],
            open: None,
            restored: None,
        }
    }

    fn step(&mut self, number: usize, effects: &Effects, setting: Option<Setting>) {
        let Some(open) = &mut self.open else {
            match setting {
                Some(last) if last != Setting::All => {
                    let mut open = Open {
                        insts: Vec::new(),
                        summary: Summary::default(),
                        last,
                        is_stale: false,
                    };
                    open.add(number, effects);
                    self.open = Some(open);
                }
                _ => self.order.push(number),
            }
            return;
        };
        match (setting, &mut self.restored) {
            (Some(Setting::All), None) => {
                self.restored = Some(Restored {
                    at: number,
                    open: open.insts.len(),
                    front: Vec::new(),
                });
                open.add(number, effects);
            }
            // `rm` already has the value.
            (Some(Setting::All), Some(_)) => {
                self.not_needed[number] = true;
                open.add(number, effects);
            }
            (Some(next), restored) => {
                if let Some(restored) = restored.take() {
                    self.not_needed[restored.at] = true;
                    self.order.extend(restored.front);
                    self.not_needed[number] = next == open.last && !open.is_stale;
                }
                open.add(number, effects);
                if !self.not_needed[number] {
                    open.last = next;
                    open.is_stale = false;
                }
            }
            (None, Some(restored)) if effects.obeys_mask => {
                if open.summary.can_be_passed(effects) {
                    restored.front.push(number);
                } else {
                    self.close(number + 1);
                }
            }
            (None, _) => open.add(number, effects),
        }
    }

    /// Leaves the open instructions, and all others up to `end`, in their order.
    fn close(&mut self, end: usize) {
        let Some(open) = self.open.take() else { return };
        match self.restored.take() {
            Some(restored) => {
                self.order.extend(&open.insts[..restored.open]);
                self.order.extend(restored.at..end);
            }
            None => self.order.extend(open.insts),
        }
    }
}
