//! Basic blocks of a machine function, and which scalars are live between them.

use super::effects::{Conventions, Effects, RegSet};
use super::func::{CallKind, Fixup, MachFunction, McInst};
use npu_mc::Opcode;
use smallvec::SmallVec;

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Index of its first instruction.
    pub start: usize,
    /// One past its last.
    pub end: usize,
    succs: SmallVec<[usize; 2]>,
    /// The scalars that are needed when it starts.
    pub live_in: RegSet,
    /// The scalars that are needed when it ends.
    pub live_out: RegSet,
}

/// The basic blocks, in order; they cover the function.
pub fn blocks(func: &MachFunction, effects: &[Effects]) -> Vec<Block> {
    let count = func.insts.len();
    if count == 0 {
        return Vec::new();
    }
    let mut starts = func.label_positions();
    starts[0] = true;
    for (index, effects) in effects.iter().enumerate() {
        if effects.is_branch {
            starts[index + 1] = true;
        }
    }
    let mut block_of = vec![0; count + 1];
    let mut list: Vec<Block> = Vec::new();
    for index in 0..count {
        if starts[index] {
            list.push(Block {
                start: index,
                end: index,
                succs: SmallVec::new(),
                live_in: RegSet::EMPTY,
                live_out: RegSet::EMPTY,
            });
        }
        let number = list.len() - 1;
        block_of[index] = number;
        list[number].end = index + 1;
    }
    let block_at = |index: usize| (index < count).then(|| block_of[index]);
    for block in &mut list {
        let end = block.end;
        block.succs = successors(&func.insts, end)
            .into_iter()
            .filter_map(|succ| match succ {
                Way::On => block_at(end),
                Way::Label(target) => block_at(func.bound(target)?),
                Way::Entry(index) => block_at(index),
            })
            .collect();
    }
    list
}

enum Way {
    On,
    Label(super::func::Label),
    Entry(usize),
}

fn successors(insts: &[McInst], end: usize) -> SmallVec<[Way; 2]> {
    let mut ways = SmallVec::new();
    let last = &insts[end - 1];
    match last.fixup {
        Fixup::Branch(target) | Fixup::TableEntry { target, .. } => ways.push(Way::Label(target)),
        _ => {}
    }
    if last.call != CallKind::TailCall && !matches!(last.inst.opcode, Opcode::JMP | Opcode::JRET) {
        ways.push(Way::On);
    }
    if last.inst.opcode == Opcode::JUMPREG && last.call == CallKind::None {
        // A branch table: any of the jumps after it.
        let entries = insts[end..]
            .iter()
            .take_while(|inst| matches!(inst.fixup, Fixup::TableEntry { .. }));
        ways.extend((end..end + entries.count()).map(Way::Entry));
    }
    ways
}

/// Finds the scalars that are live at the ends of the blocks.
pub fn liveness(insts: &[McInst], effects: &[Effects], blocks: &mut [Block], conventions: &Conventions) {
    // What each block reads before writing it, and what it writes.
    let summaries: Vec<(RegSet, RegSet)> = blocks
        .iter()
        .map(|block| {
            let mut needed = RegSet::EMPTY;
            let mut written = RegSet::EMPTY;
            for index in (block.start..block.end).rev() {
                let writes = effects[index].writes.scalars();
                needed = needed
                    .without(writes)
                    .or(conventions.needs(&insts[index], &effects[index]));
                written = written.or(writes);
            }
            (needed, written)
        })
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for number in (0..blocks.len()).rev() {
            let live_out = blocks[number]
                .succs
                .iter()
                .fold(RegSet::EMPTY, |set, &succ| set.or(blocks[succ].live_in));
            let (needed, written) = summaries[number];
            let live_in = needed.or(live_out.without(written));
            blocks[number].live_out = live_out;
            if live_in != blocks[number].live_in {
                blocks[number].live_in = live_in;
                changed = true;
            }
        }
    }
}
