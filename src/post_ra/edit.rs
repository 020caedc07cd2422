//! The editor through which passes change a function.
//!
//! An [`Editor`] renames, moves, removes and inserts instructions, and keeps blocks, effects and
//! value locations consistent.
//!
//! Indices stay valid until [`Editor::finish`], which applies removals and insertions. An editor
//! neither removes nor moves a branch, so blocks, labels and traps do not change.

use super::cfg::Liveness;
use super::effects::{Conventions, Effects, RegSet};
use super::func::{MachFunction, McInst};
use super::value_locations::{self, Reordered};
use crate::inst::reg::machine;
use npu_mc::{Inst, Operand, Reg, SReg};
use std::ops::Range;

/// The role of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An operand that the instruction reads.
    Use,
    /// An operand that the instruction writes.
    Def,
}

/// A function that a pass is changing.
#[derive(Debug)]
pub struct Editor<'a> {
    func: &'a mut MachFunction,
    /// The liveness between blocks, if the pass requested it.
    liveness: Option<Liveness>,
    /// The instructions before the first rename. Empty if no value has a label.
    insts_before_renames: Vec<Inst>,
    /// The regions with a new order, if values have labels.
    reordered: Vec<Reordered>,
    /// For each instruction whether it is removed. Empty if no instruction is removed.
    removed: Vec<bool>,
    /// The inserted instructions, each with the index of the instruction that it precedes, in
    /// rising order.
    inserted: Vec<(usize, McInst)>,
    /// A buffer that [`permute`] reuses.
    done: Vec<bool>,
}

/// Moves `items[order[i]]` to `items[i]` for each `i`. `done` is a buffer.
fn permute<T>(items: &mut [T], order: &[usize], done: &mut Vec<bool>) {
    done.clear();
    done.resize(order.len(), false);
    for start in 0..order.len() {
        let mut at = start;
        // Follow one cycle of the permutation: each position takes its item from the next one, and
        // the first item ends in the last position.
        while !std::mem::replace(&mut done[at], true) && order[at] != start {
            items.swap(at, order[at]);
            at = order[at];
        }
    }
}

impl<'a> Editor<'a> {
    /// Creates an editor with the effects of all instructions.
    pub fn new(func: &'a mut MachFunction) -> Self {
        func.find_effects();
        Self::without_effects(func)
    }

    /// Creates an editor for a pass that neither reads effects nor renames registers.
    pub fn without_effects(func: &'a mut MachFunction) -> Self {
        Self {
            func,
            liveness: None,
            insts_before_renames: Vec::new(),
            reordered: Vec::new(),
            removed: Vec::new(),
            inserted: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Creates an editor with the liveness between blocks. The edits must preserve this liveness.
    pub fn with_liveness(func: &'a mut MachFunction, conventions: &Conventions) -> Self {
        let mut edit = Self::new(func);
        edit.liveness = Some(Liveness::new(edit.func, conventions));
        edit
    }

    /// Returns the function in its current state, including the instructions to remove.
    pub fn func(&self) -> &MachFunction {
        self.func
    }

    /// Returns the current instructions.
    pub fn insts(&self) -> &[McInst] {
        &self.func.insts
    }

    /// Returns the effects of the current instructions.
    pub fn effects(&self) -> &[Effects] {
        &self.func.effects
    }

    /// Returns the scalars that are live at the end of the block. Empty if the editor has no
    /// liveness.
    pub fn live_out(&self, block: usize) -> RegSet {
        self.liveness
            .as_ref()
            .map_or(RegSet::EMPTY, |liveness| liveness.live_out(block))
    }

    /// Returns whether the instruction keeps its position and no instruction moves across it.
    pub fn is_fixed(&self, index: usize) -> bool {
        let inst = &self.func.insts[index];
        let effects = &self.func.effects[index];
        effects.is_branch
            || effects.is_barrier
            || inst.glued
            || index > 0 && self.func.insts[index - 1].glued
            || inst.trap.is_some()
            // Memory below the stack pointer is not preserved, so no access may move across a
            // change of it.
            || effects.writes.contains(machine::SP)
    }

    /// Returns the next range of instructions from `start` that can be reordered.
    ///
    /// The range contains no fixed instruction, except for a range of a single instruction.
    pub fn region(&self, start: usize, end: usize) -> Range<usize> {
        let mut at = start;
        while at < end && !self.is_fixed(at) {
            at += 1;
        }
        start..at.max(start + 1)
    }

    /// Returns whether the instruction is to be removed.
    pub fn is_removed(&self, index: usize) -> bool {
        self.removed.get(index).is_some_and(|&removed| removed)
    }

    /// Replaces a scalar register in the operands with the given role.
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

    /// Replaces each scalar register in the operands with the given role by the result of `new`.
    pub fn rename_operands(&mut self, index: usize, role: Role, new: impl Fn(SReg) -> SReg) {
        if self.insts_before_renames.is_empty() && !self.func.value_locations.is_empty() {
            self.update_reordered_locations();
            self.insts_before_renames = self.func.insts.iter().map(|inst| inst.inst).collect();
        }
        let inst = &mut self.func.insts[index].inst;
        for (operand, described) in inst.desc().operands.iter().enumerate() {
            if described.is_def == (role == Role::Def)
                && let Some(&Operand::S(reg)) = inst.operands.get(operand)
            {
                inst.operands.set(operand, new(reg).into());
            }
        }
        self.func.effects[index].find_registers(inst);
    }

    /// Removes the instruction when the editor finishes.
    pub fn remove(&mut self, index: usize) {
        if self.removed.is_empty() {
            self.removed.resize(self.func.insts.len(), false);
        }
        self.removed[index] = true;
    }

    /// Inserts an instruction before `index`, into the same block, when the editor finishes.
    /// Indices must rise from call to call.
    pub fn insert(&mut self, index: usize, inst: McInst) {
        self.inserted.push((index, inst));
    }

    /// Reorders a range within one block: the instruction at `range.start + order[i]` moves to
    /// `range.start + i`. Ranges must rise from call to call.
    pub fn reorder(&mut self, range: Range<usize>, order: &[usize]) {
        if order.is_sorted() {
            return;
        }
        if !self.func.value_locations.is_empty() {
            self.update_renamed_locations();
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

    /// Updates value locations after register renames.
    fn update_renamed_locations(&mut self) {
        if self.insts_before_renames.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.insts_before_renames);
        let live_in = |block: usize| self.liveness.as_ref().map(|liveness| liveness.live_in(block));
        let is_removed = |index: usize| self.removed.get(index).is_some_and(|&removed| removed);
        value_locations::update_renamed(self.func, &old, live_in, is_removed);
    }

    /// Updates value locations after instructions moved.
    fn update_reordered_locations(&mut self) {
        value_locations::update_reordered(self.func, &self.reordered);
        self.reordered.clear();
    }

    /// Applies removals and insertions.
    pub fn finish(mut self) {
        self.update_renamed_locations();
        self.update_reordered_locations();
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
            while let Some((_, new)) = inserted.next_if(|&(before, _)| before == index) {
                func.push(new);
            }
            if !is_removed(index) {
                func.push(inst);
            }
        });
    }
}
