//! Register renaming: registers for values that live in one block only, so that none is written again soon after it was used.
//!
//! regalloc2 takes the first register that is free, or one that saves a move. The scheduler then finds independent
//! computations tied to each other by the register they share. Here such values go round all registers that the function may
//! change, as far as nobody needs what is in them: first those that no caller counts on, then those that the prologue saves.
//!
//! A block is walked twice. Backwards, to find the values and where each is read last; forwards, to give them their registers.
//! Every value has its old register reserved until its turn comes, so none is ever without.

use super::edit::{Editor, Role};
use super::effects::{Conventions, RegSet, SCALARS, index_of};
use super::func::MachFunction;
use crate::abi::registers::{RegisterSet, clobbered};
use crate::inst::reg::from_preg;
use npu_mc::env::GPR32;
use npu_mc::{Reg, SReg};
use std::ops::Range;

/// The registers that a function may change: those that its convention lets it, and those that it saves.
pub fn free(registers: RegisterSet, saved: impl IntoIterator<Item = Reg>) -> RegSet {
    let changed: RegSet = clobbered(registers).into_iter().filter_map(from_preg).collect();
    changed.or(saved.into_iter().collect())
}

/// Gives values other registers where that unties them. `free` are the registers that the function may change.
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
        // The sequence of a trap shall leave the registers to those who look at them, and has nothing to gain.
        if range.len() > 1 && !edit.effects()[range.clone()].iter().any(|effects| effects.is_barrier) {
            let live_out = edit.live_out(block);
            renamer.find_values(&edit, range.clone(), live_out, conventions);
            renamer.assign(&mut edit, range);
        }
    }
    edit.finish();
}

/// After this many instructions nobody waits any more for what read or wrote a register.
const LONG_AGO: u32 = 24;

/// No value.
const NONE: u32 = u32::MAX;

/// What a register holds from one instruction to another. Instructions are numbered from 1 within their block; 0 is before
/// the first.
#[derive(Clone, Copy)]
struct Value {
    /// The instruction that writes it.
    start: u32,
    /// The last that reads it.
    end: u32,
    /// Whether it may have another register.
    is_free: bool,
    /// The next value in the same register.
    next: u32,
}

struct Renamer {
    /// The registers for values, in the order in which they take turns.
    order: Vec<SReg>,
    /// The same as a set.
    own: RegSet,
    /// Whose turn it is.
    cursor: usize,
    /// The values of the block.
    values: Vec<Value>,
    /// The registers whose first value was there before the block.
    live_in: RegSet,
    /// For each register its next value in the code as it was.
    next: [u32; SCALARS],
    /// For each register the last instruction that reads what it holds now.
    taken_until: [u32; SCALARS],
    /// For each register the last instruction that names it.
    named: [u32; SCALARS],
    /// For each register the one that holds its value now, if that is another one.
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

    /// Walks the block backwards.
    fn find_values(&mut self, edit: &Editor<'_>, block: Range<usize>, live_out: RegSet, conventions: &Conventions) {
        self.values.clear();
        self.next = [NONE; SCALARS];
        let mut last_read = [0; SCALARS];
        let mut live = live_out;
        // What is not there as an operand alone keeps its register.
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
                    // The value goes on.
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

    /// Walks the block forwards.
    fn assign(&mut self, edit: &mut Editor<'_>, block: Range<usize>) {
        self.taken_until = [0; SCALARS];
        self.named = [0; SCALARS];
        self.name = std::array::from_fn(|_| None);
        // What is there at the start.
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
            // A result that goes on from the old value has the name of that.
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

    /// The next register in turn that nobody needs while the value lives and that was not named lately, or the one that was left
    /// alone longest; none if that is its own.
    fn choose(&mut self, own: usize, value: Value) -> Option<SReg> {
        let mut oldest = (self.named[own], None);
        for _ in 0..self.order.len() {
            let reg = self.order[self.cursor];
            self.cursor = (self.cursor + 1) % self.order.len();
            let place = index_of(Reg::S(reg));
            let reserved = self
                .values
                .get(self.next[place] as usize)
                .map_or(NONE, |next| next.start);
            if self.taken_until[place] > value.start || reserved < value.end {
                continue;
            }
            let named = self.named[place];
            if named == 0 || value.start - named > LONG_AGO {
                return (place != own).then_some(reg);
            }
            if named < oldest.0 {
                oldest = (named, Some(reg));
            }
        }
        oldest.1
    }
}
