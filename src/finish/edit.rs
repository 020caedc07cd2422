//! The one way in which passes change a function: instructions are renamed, moved, removed and inserted through an
//! [`Editor`], which keeps blocks, effects and the places of labelled values right.
//!
//! Indices stay valid until [`Editor::finish`], which takes out and puts in. Branches keep their places: an editor neither
//! removes nor moves one, so blocks, labels and traps stay what they are.

use super::cfg::Liveness;
use super::effects::{Conventions, Effects, RegSet};
use super::func::{MachFunction, McInst};
use super::places::{self, Reordered};
use crate::inst::reg::machine;
use npu_mc::{Inst, Operand, Reg, SReg};
use std::ops::Range;

/// Which operands of an instruction are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Those that it reads.
    Use,
    /// Those that it writes.
    Def,
}

/// A function while a pass changes it.
#[derive(Debug)]
pub struct Editor<'a> {
    func: &'a mut MachFunction,
    /// What is live between blocks, if the pass asked.
    liveness: Option<Liveness>,
    /// The instructions before the first of them was renamed. Empty if no value has a label.
    unrenamed: Vec<Inst>,
    /// Regions that changed their order, if values have labels.
    reordered: Vec<Reordered>,
    /// For each instruction whether it goes; empty if none does.
    removed: Vec<bool>,
    /// What is put in before which instruction, in rising order.
    inserted: Vec<(usize, McInst)>,
    /// Memory for every change of order.
    done: Vec<bool>,
}

/// Puts at each place what stands at `order[place]`. `done` is memory for it.
fn permute<T>(items: &mut [T], order: &[usize], done: &mut Vec<bool>) {
    done.clear();
    done.resize(order.len(), false);
    for start in 0..order.len() {
        let mut at = start;
        // Around the cycle: each place takes from the next one, and the first item comes to the last place.
        while !std::mem::replace(&mut done[at], true) && order[at] != start {
            items.swap(at, order[at]);
            at = order[at];
        }
    }
}

impl<'a> Editor<'a> {
    /// Starts to change a function.
    pub fn new(func: &'a mut MachFunction) -> Self {
        func.find_effects();
        Self::without_effects(func)
    }

    /// The same for a pass that does not ask for effects and renames nothing.
    pub fn without_effects(func: &'a mut MachFunction) -> Self {
        Self {
            func,
            liveness: None,
            unrenamed: Vec::new(),
            reordered: Vec::new(),
            removed: Vec::new(),
            inserted: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The same, with what is live between the blocks. The edits must leave that true.
    pub fn with_liveness(func: &'a mut MachFunction, conventions: &Conventions) -> Self {
        let mut edit = Self::new(func);
        edit.liveness = Some(Liveness::new(edit.func, conventions));
        edit
    }

    /// The function as it is now, instructions that go still in it.
    pub fn func(&self) -> &MachFunction {
        self.func
    }

    /// The instructions as they are now.
    pub fn insts(&self) -> &[McInst] {
        &self.func.insts
    }

    /// The effects of the instructions as they are now.
    pub fn effects(&self) -> &[Effects] {
        &self.func.effects
    }

    /// The scalars that are needed when the block ends; none if the editor was made without liveness.
    pub fn live_out(&self, block: usize) -> RegSet {
        self.liveness
            .as_ref()
            .map_or(RegSet::EMPTY, |liveness| liveness.live_out(block))
    }

    /// Whether the instruction keeps its place, and so does everything on its two sides.
    pub fn is_fixed(&self, index: usize) -> bool {
        let inst = &self.func.insts[index];
        let effects = &self.func.effects[index];
        effects.is_branch
            || effects.is_barrier
            || inst.glued
            || index > 0 && self.func.insts[index - 1].glued
            || inst.trap.is_some()
            // Nothing lives below the stack pointer, so no access may change sides with it.
            || effects.writes.contains(machine::SP)
    }

    /// The next range of instructions of a block, from `start` on, of which every one may change places with another:
    /// nothing in it is fixed but the first instruction, if that stands alone.
    pub fn region(&self, start: usize, end: usize) -> Range<usize> {
        let mut at = start;
        while at < end && !self.is_fixed(at) {
            at += 1;
        }
        start..at.max(start + 1)
    }

    /// Whether the instruction is to be removed.
    pub fn is_removed(&self, index: usize) -> bool {
        self.removed.get(index).is_some_and(|&removed| removed)
    }

    /// Replaces a scalar among the operands that the instruction reads, or writes.
    pub fn rename(&mut self, index: usize, from: SReg, to: SReg, role: Role) {
        let effects = &self.func.effects[index];
        let set = match role {
            Role::Use => effects.reads,
            Role::Def => effects.writes,
        };
        if set.contains(Reg::S(from)) {
            self.rename_operands(index, role, |reg| if reg == from { to } else { reg });
        }
    }

    /// Gives each scalar operand of the instruction that it reads, or writes, the register that `new` has for it.
    pub fn rename_operands(&mut self, index: usize, role: Role, new: impl Fn(SReg) -> SReg) {
        if self.unrenamed.is_empty() && !self.func.places.is_empty() {
            self.settle_order();
            self.unrenamed = self.func.insts.iter().map(|inst| inst.inst).collect();
        }
        let inst = &mut self.func.insts[index].inst;
        for (place, described) in inst.desc().operands.iter().enumerate() {
            if described.is_def == (role == Role::Def)
                && let Some(&Operand::S(reg)) = inst.operands.get(place)
            {
                inst.operands.set(place, new(reg).into());
            }
        }
        self.func.effects[index].find_registers(inst);
    }

    /// Removes the instruction when the pass is finished.
    pub fn remove(&mut self, index: usize) {
        if self.removed.is_empty() {
            self.removed.resize(self.func.insts.len(), false);
        }
        self.removed[index] = true;
    }

    /// Puts an instruction before the one at the index, and into its block, when the pass is finished. Indices rise from call
    /// to call.
    pub fn insert(&mut self, index: usize, inst: McInst) {
        self.inserted.push((index, inst));
    }

    /// Gives a range inside of one block a new order: what shall stand at `range.start + place` stands at
    /// `range.start + order[place]` now. Ranges rise from call to call.
    pub fn reorder(&mut self, range: Range<usize>, order: &[usize]) {
        if order.is_sorted() {
            return;
        }
        if !self.func.places.is_empty() {
            self.settle_names();
            self.reordered.push(Reordered {
                start: range.start,
                order: order.to_vec(),
            });
        }
        permute(&mut self.func.insts[range.clone()], order, &mut self.done);
        if let Some(effects) = self.func.effects.get_mut(range.clone()) {
            permute(effects, order, &mut self.done);
        }
        if let Some(removed) = self.removed.get_mut(range) {
            permute(removed, order, &mut self.done);
        }
    }

    /// Corrects the places of labelled values after registers were renamed.
    fn settle_names(&mut self) {
        if self.unrenamed.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.unrenamed);
        let live_in = |block: usize| self.liveness.as_ref().map(|liveness| liveness.live_in(block));
        let is_removed = |index: usize| self.removed.get(index).is_some_and(|&removed| removed);
        places::renamed(self.func, &old, live_in, is_removed);
    }

    /// Corrects the places of labelled values after instructions moved.
    fn settle_order(&mut self) {
        places::reorder(self.func, &self.reordered);
        self.reordered.clear();
    }

    /// Takes out what goes and puts in what comes.
    pub fn finish(mut self) {
        self.settle_names();
        self.settle_order();
        let Self {
            func,
            removed,
            inserted,
            ..
        } = self;
        let is_removed = |index: usize| removed.get(index).is_some_and(|&removed| removed);
        if inserted.is_empty() {
            if removed.contains(&true) {
                func.remove(&removed);
            }
            return;
        }
        if removed.is_empty() {
            func.insert(inserted);
            return;
        }
        let mut inserted = inserted.into_iter().peekable();
        func.rebuild(|func, index, inst| {
            while let Some((_, new)) = inserted.next_if(|&(place, _)| place == index) {
                func.push(new);
            }
            if !is_removed(index) {
                func.push(inst);
            }
        });
    }
}
