//! Control flow between basic blocks, and liveness of scalars.

use super::effects::{Conventions, RegSet};
use super::func::{CallKind, Fixup, MachFunction};
use npu_mc::Opcode;
use smallvec::SmallVec;

/// Returns the possible successors of a block.
pub(super) fn successors(func: &MachFunction, block: usize) -> SmallVec<[usize; 2]> {
    let mut list = SmallVec::new();
    let next = (block + 1 < func.block_count()).then_some(block + 1);
    let Some(last) = func.terminator(block) else {
        list.extend(next);
        return list;
    };
    if let Fixup::Branch(target) | Fixup::TableEntry { target, .. } = last.fixup {
        list.extend(func.block_of(target));
    }
    if last.call != CallKind::TailCall && !matches!(last.inst.opcode, Opcode::JMP | Opcode::JRET) {
        list.extend(next);
    }
    if last.inst.opcode == Opcode::JUMPREG && last.call == CallKind::None {
        // A branch table: the successors are the jumps after it. Each of them is a block.
        let is_entry = |&block: &usize| {
            let entry = func.terminator(block);
            entry.is_some_and(|inst| matches!(inst.fixup, Fixup::TableEntry { .. }))
        };
        list.extend((block + 1..func.block_count()).take_while(is_entry));
    }
    list
}

/// The scalars that are live at the start and end of each block.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: Vec<RegSet>,
    live_out: Vec<RegSet>,
}

impl Liveness {
    /// Computes the liveness of a function whose effects are known.
    pub fn new(func: &MachFunction, conventions: &Conventions) -> Self {
        let count = func.block_count();
        // For each block, the upward-exposed reads and the written registers.
        let summaries: Vec<(RegSet, RegSet)> = (0..count)
            .map(|block| {
                let mut needed = RegSet::EMPTY;
                let mut written = RegSet::EMPTY;
                for index in func.block_range(block).rev() {
                    let effects = &func.effects[index];
                    let writes = effects.writes.scalars();
                    needed = needed
                        .without(writes)
                        .or(conventions.needs(&func.insts[index], effects));
                    written = written.or(writes);
                }
                (needed, written)
            })
            .collect();
        let succs: Vec<SmallVec<[usize; 2]>> = (0..count).map(|block| successors(func, block)).collect();
        let mut live_in = vec![RegSet::EMPTY; count];
        let mut live_out = vec![RegSet::EMPTY; count];
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..count).rev() {
                let out = succs[block]
                    .iter()
                    .fold(RegSet::EMPTY, |set, &succ| set.or(live_in[succ]));
                let (needed, written) = summaries[block];
                let live = needed.or(out.without(written));
                live_out[block] = out;
                if live != live_in[block] {
                    live_in[block] = live;
                    changed = true;
                }
            }
        }
        Self { live_in, live_out }
    }

    /// Returns the scalars that are live at the start of the block.
    pub fn live_in(&self, block: usize) -> RegSet {
        self.live_in[block]
    }

    /// Returns the scalars that are live at the end of the block.
    pub fn live_out(&self, block: usize) -> RegSet {
        self.live_out[block]
    }
}
