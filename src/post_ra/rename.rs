//! Register renaming: spreads the values of a block over more registers, so that a register is not
//! rewritten soon after its use.
//!
//! regalloc2 selects the first free register, or one that saves a move. The scheduler then finds
//! false dependences between independent computations that share a register. This pass assigns the
//! values that live within one block to all registers that the function may change, in rotation:
//! first the caller-saved ones, then those that the prologue saves. It skips registers that hold a
//! live value.
//!
//! The pass walks each block twice: backwards to find the values and their last reads, and forwards
//! to assign registers. The old register of each value is reserved until the value is assigned, so
//! every value gets a register.

use super::edit::{Editor, Role};
use super::effects::{Conventions, RegSet, SCALARS, index_of};
use super::func::MachFunction;
use crate::abi::registers::{RegisterSet, clobbered};
use crate::inst::reg::from_preg;
use npu_mc::env::GPR32;
use npu_mc::{Reg, SReg};
use std::ops::Range;

/// Returns the registers that a function may change: those that its calling convention permits, and
/// those that it saves.
pub fn free(registers: RegisterSet, saved: impl IntoIterator<Item = Reg>) -> RegSet {
    let changed: RegSet = clobbered(registers).into_iter().filter_map(from_preg).collect();
    changed.or(saved.into_iter().collect())
}

/// Renames values to remove false dependences. `free` are the registers that the function may
/// change.
pub fn run(func: &mut MachFunction, free: RegSet, conventions: &Conventions) {
    let numbers = GPR32.preferred.iter().chain(GPR32.non_preferred);
    let allocatable = numbers.filter_map(|&number| SReg::new(number));
    let order: Vec<SReg> = allocatable
        .filter(|&reg| free.contains(Reg::S(reg)) && !conventions.is_special(reg))
        .collect();
    if order.is_empty() {
        return;
    }
    let mut edit = Editor::with_liveness(func, conventions);
    let mut renamer = Renamer {
        own: order.iter().copied().map(Reg::S).collect(),
        order,
        cursor: 0,
        values: Vec::new(),
        live_in: RegSet::EMPTY,
        next: [NONE; SCALARS],
        taken_until: [0; SCALARS],
        named: [0; SCALARS],
        name: std::array::from_fn(|_| None),
    };
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        // A trap sequence must preserve registers for a debugger, and gains nothing from renaming.
        if range.len() > 1 && !edit.effects()[range.clone()].iter().any(|effects| effects.is_barrier) {
            let live_out = edit.live_out(block);
            renamer.find_values(&edit, range.clone(), live_out, conventions);
            renamer.assign(&mut edit, range);
        }
    }
    edit.finish();
}

/// After this many instructions, a read or write of a register causes no wait.
const LONG_AGO: u32 = 24;

/// No value.
const NONE: u32 = u32::MAX;

/// The contents of a register between two instructions. Instructions are numbered from 1 within
/// their block; 0 is the position before the first.
#[derive(Clone, Copy)]
struct Value {
    /// The instruction that writes it.
    start: u32,
    /// The last instruction that reads it.
    end: u32,
    /// Whether it may be renamed.
    is_free: bool,
    /// The next value in the same register.
    next: u32,
}

struct Renamer {
    /// The registers for values, in rotation order.
    order: Vec<SReg>,
    /// The same registers as a set.
    own: RegSet,
    /// The next position in the rotation.
    cursor: usize,
    /// The values of the block.
    values: Vec<Value>,
    /// The registers that are live at the start of the block.
    live_in: RegSet,
    /// For each register its next value in the old code.
    next: [u32; SCALARS],
    /// For each register the last instruction that reads its current value.
    taken_until: [u32; SCALARS],
    /// For each register the last instruction that uses or defines it.
    named: [u32; SCALARS],
    /// For each register the register that now holds its value, if they differ.
    name: [Option<SReg>; SCALARS],
}

impl Renamer {
    fn value(&mut self, register: usize, start: u32, end: u32, is_free: bool) {
        let next = self.next[register];
        self.next[register] = self.values.len() as u32;
        self.values.push(Value {
            start,
            end,
            is_free,
            next,
        });
    }

    /// Finds the values in a backward walk of the block.
    fn find_values(&mut self, edit: &Editor<'_>, block: Range<usize>, live_out: RegSet, conventions: &Conventions) {
        self.values.clear();
        self.next = [NONE; SCALARS];
        let mut last_read = [0; SCALARS];
        let mut live = live_out;
        // A value with an implicit use keeps its register.
        let mut kept = live_out;
        for register in live_out.scalar_indices() {
            last_read[register] = NONE;
        }
        let numbers = 1..1 + block.len() as u32;
        for (number, index) in numbers.zip(block).rev() {
            let (inst, effects) = (&edit.insts()[index], &edit.effects()[index]);
            let desc = inst.inst.desc();
            let writes = effects.writes.scalars();
            for register in writes.scalar_indices() {
                let own = RegSet::at(register);
                if desc.reads_dst && effects.reads.meets(own) {
                    // A partial write continues the old value.
                    continue;
                }
                let is_free = live.meets(own)
                    && self.own.meets(own)
                    && !kept.meets(own)
                    && !inst.glued
                    && writes.len() == 1
                    && desc.implicit_defs.is_empty();
                let end = if live.meets(own) { last_read[register] } else { number };
                self.value(register, number, end, is_free);
                live = live.without(own);
                kept = kept.without(own);
            }
            let needed = conventions.needs(inst, effects);
            for register in needed.without(live).scalar_indices() {
                last_read[register] = number;
            }
            live = live.or(needed);
            kept = kept.or(needed.without(effects.reads));
            if inst.glued {
                kept = kept.or(needed).or(writes);
            }
            kept = kept.or(desc.implicit_uses.iter().copied().collect());
        }
        for register in live.scalar_indices() {
            self.value(register, 0, last_read[register], false);
        }
        self.live_in = live;
    }

    /// Assigns registers in a forward walk of the block.
    fn assign(&mut self, edit: &mut Editor<'_>, block: Range<usize>) {
        self.taken_until = [0; SCALARS];
        self.named = [0; SCALARS];
        self.name = std::array::from_fn(|_| None);
        // Values that are live at the start of the block.
        for register in self.live_in.scalar_indices() {
            if let Some(&value) = self.values.get(self.next[register] as usize) {
                self.taken_until[register] = value.end;
                self.next[register] = value.next;
            }
        }
        let mut renamed = RegSet::EMPTY;
        for (number, index) in (1..).zip(block) {
            let effects = &edit.effects()[index];
            let reads = effects.reads.scalars();
            let writes = effects.writes.scalars();
            let touches = reads.meets(renamed);
            if touches {
                let names = &self.name;
                edit.rename_operands(index, Role::Use, |reg| names[index_of(Reg::S(reg))].unwrap_or(reg));
            }
            let mut changed = false;
            for register in writes.scalar_indices() {
                let Some(&value) = self
                    .values
                    .get(self.next[register] as usize)
                    .filter(|v| v.start == number)
                else {
                    continue;
                };
                self.next[register] = value.next;
                let other = if value.is_free {
                    self.choose(register, value)
                } else {
                    None
                };
                self.name[register] = other;
                let own = RegSet::at(register);
                match other {
                    Some(other) => {
                        changed = true;
                        renamed = renamed.or(own);
                        self.taken_until[index_of(Reg::S(other))] = value.end;
                    }
                    None => {
                        renamed = renamed.without(own);
                        self.taken_until[register] = value.end;
                    }
                }
            }
            // The result of a partial write has the register of the old value.
            if changed || touches && writes.meets(renamed) {
                let names = &self.name;
                edit.rename_operands(index, Role::Def, |reg| names[index_of(Reg::S(reg))].unwrap_or(reg));
            }
            let effects = &edit.effects()[index];
            for register in effects.reads.or(effects.writes).scalar_indices() {
                self.named[register] = number;
            }
        }
    }

    /// Returns the new register of a value.
    ///
    /// Registers that are needed while the value lives are skipped. The first one that was not used
    /// recently is selected, or else the least recently used one. Returns `None` if that is the
    /// value's own register.
    fn choose(&mut self, own: usize, value: Value) -> Option<SReg> {
        let mut oldest = (self.named[own], None);
        for _ in 0..self.order.len() {
            let reg = self.order[self.cursor];
            self.cursor = (self.cursor + 1) % self.order.len();
            let candidate = index_of(Reg::S(reg));
            let reserved = self
                .values
                .get(self.next[candidate] as usize)
                .map_or(NONE, |next| next.start);
            if self.taken_until[candidate] > value.start || reserved < value.end {
                continue;
            }
            let named = self.named[candidate];
            if named == 0 || value.start - named > LONG_AGO {
                return (candidate != own).then_some(reg);
            }
            if named < oldest.0 {
                oldest = (named, Some(reg));
            }
        }
        oldest.1
    }
}
