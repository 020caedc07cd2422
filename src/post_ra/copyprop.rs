//! Copy propagation: removes moves that register allocation emitted.
//!
//! regalloc2 splits live ranges where constraints conflict and connects the parts by moves. Many of
//! these moves are redundant within a block: a use of the copy can read the original, and an
//! instruction whose result is only moved can write the destination of the move. The pass computes
//! liveness across blocks first, so it removes only dead moves.
//!
//! It handles scalars only.

use super::edit::{Editor, Role};
use super::effects::{Conventions, RegSet};
use super::func::{MachFunction, McInst};
use npu_mc::{Opcode, Operand, Reg, SReg};
use std::ops::Range;

/// Removes redundant moves.
pub fn run(func: &mut MachFunction, conventions: &Conventions) {
    if !func.insts().iter().any(|inst| as_move(inst, conventions).is_some()) {
        return;
    }
    // The changes preserve liveness between blocks: an original that is read later was already read
    // by its move, and a copy is written before it is read.
    let mut edit = Editor::with_liveness(func, conventions);
    for block in 0..edit.func().block_count() {
        order_rows(&mut edit, block, conventions);
    }
    for block in 0..edit.func().block_count() {
        let range = edit.func().block_range(block);
        let mut insts = edit.insts()[range.clone()].iter();
        if !insts.any(|inst| as_move(inst, conventions).is_some()) {
            continue;
        }
        let live_out = edit.live_out(block);
        read_originals(&mut edit, range.clone(), conventions);
        compute_in_place(&mut edit, range.clone(), live_out, conventions);
        drop_dead(&mut edit, range, live_out, conventions);
    }
    edit.finish();
}

/// Returns destination and source if the instruction is a plain move between scalars.
pub(super) fn as_move(inst: &McInst, conventions: &Conventions) -> Option<(SReg, SReg)> {
    if inst.inst.opcode != Opcode::MOVE_SS_32 || inst.glued {
        return None;
    }
    match inst.inst.operands.as_ref() {
        &[Operand::S(to), Operand::S(from)] if !conventions.is_special(to) && !reads_differently(from) => {
            Some((to, from))
        }
        _ => None,
    }
}

/// Returns whether reads of the register at different instructions may differ: `pc` changes at
/// every instruction, and `rm` has a special role.
fn reads_differently(reg: SReg) -> bool {
    reg == SReg::PC || reg == SReg::RM
}

/// Reorders the moves of each sequence of moves in a block.
fn order_rows(edit: &mut Editor<'_>, block: usize, conventions: &Conventions) {
    let range = edit.func().block_range(block);
    let mut start = range.start;
    while start < range.end {
        let moved = |index: &usize| as_move(&edit.insts()[*index], conventions).filter(|_| !edit.is_fixed(*index));
        let row: Vec<(SReg, SReg)> = (start..range.end).map_while(|index| moved(&index)).collect();
        let end = start + row.len();
        if let Some(order) = order_of_moves(&row) {
            edit.reorder(start..end, &order);
        }
        start = end + 1;
    }
}

/// Returns the order of the moves that needs the fewest copies.
///
/// A register is written after the moves whose values it holds at the start of the sequence, even
/// if they read a copy of it. Returns `None` if no move reads a copy made by the sequence.
///
/// Moves are pairs of destination and source. Reads and writes of one register keep their order.
fn order_of_moves(row: &[(SReg, SReg)]) -> Option<Vec<usize>> {
    let mut originals: Vec<SReg> = Vec::with_capacity(row.len());
    let mut has_copies = false;
    for (index, &(_, from)) in row.iter().enumerate() {
        let copy = row[..index].iter().rposition(|&(to, _)| to == from);
        has_copies |= copy.is_some();
        originals.push(copy.map_or(from, |copy| originals[copy]));
    }
    if !has_copies {
        return None;
    }
    let mut left: Vec<usize> = (0..row.len()).collect();
    let mut order = Vec::with_capacity(row.len());
    while !left.is_empty() {
        let is_ready = |&position: &usize| {
            let (to, from) = row[left[position]];
            let mut before = left[..position].iter().map(|&index| row[index]);
            before.all(|(other_to, other_from)| other_to != to && other_to != from && other_from != to)
        };
        let destroys = |&position: &usize| {
            let (to, _) = row[left[position]];
            let mut others = left.iter().filter(|&&index| index != left[position]);
            others.any(|&index| originals[index] == to)
        };
        let ready: Vec<usize> = (0..left.len()).filter(is_ready).collect();
        let next = ready.iter().copied().find(|position| !destroys(position));
        // The first remaining move is always ready.
        order.push(left.remove(next.unwrap_or(0)));
    }
    Some(order)
}

/// Makes instructions after a move read its source, until either register is overwritten.
fn read_originals(edit: &mut Editor<'_>, block: Range<usize>, conventions: &Conventions) {
    let mut copies: Vec<(SReg, SReg)> = Vec::new();
    for index in block {
        for &(copy, original) in &copies {
            edit.rename(index, copy, original, Role::Use);
        }
        let writes = edit.effects()[index].writes;
        copies.retain(|&(copy, original)| !writes.contains(Reg::S(copy)) && !writes.contains(Reg::S(original)));
        if let Some((to, from)) = as_move(&edit.insts()[index], conventions)
            && to != from
        {
            copies.push((to, from));
        }
    }
}

/// Makes an instruction write the destination of a later move directly if the move is the only use
/// of its result.
fn compute_in_place(edit: &mut Editor<'_>, block: Range<usize>, live_out: RegSet, conventions: &Conventions) {
    let mut live = live_out;
    for index in block.clone().rev() {
        let live_after = live;
        let (inst, effects) = (&edit.insts()[index], &edit.effects()[index]);
        live = live.without(effects.writes).or(conventions.needs(inst, effects));
        let Some((to, from)) =
            as_move(inst, conventions).filter(|(to, from)| to != from && !conventions.is_special(*from))
        else {
            continue;
        };
        if live_after.contains(Reg::S(from)) {
            continue;
        }
        let Some(source) = definition(edit, block.start, index, to, from, conventions) else {
            continue;
        };
        edit.rename(source, from, to, Role::Def);
        for between in source + 1..index {
            edit.rename(between, from, to, Role::Use);
        }
        edit.remove(index);
        // Before the removed move, the value is already in the destination.
        live = live.without(RegSet::one(Reg::S(from))).or(RegSet::one(Reg::S(to)));
    }
}

/// Returns the instruction before the move that computes its source.
///
/// Returns `None` if an instruction between the two uses either register in another way.
fn definition(
    edit: &Editor<'_>,
    start: usize,
    at: usize,
    to: SReg,
    from: SReg,
    conventions: &Conventions,
) -> Option<usize> {
    let (to, from) = (RegSet::one(Reg::S(to)), RegSet::one(Reg::S(from)));
    for index in (start..at).rev() {
        let (inst, effects) = (&edit.insts()[index], &edit.effects()[index]);
        let writes = effects.writes.scalars();
        if writes.meets(from) {
            // Two halves of a constant, and a partial write, are not a single definition.
            return (!inst.inst.desc().reads_dst && writes == from).then_some(index);
        }
        if writes.or(conventions.needs(inst, effects)).meets(to) || effects.is_branch {
            return None;
        }
    }
    None
}

/// Removes dead moves.
fn drop_dead(edit: &mut Editor<'_>, block: Range<usize>, live_out: RegSet, conventions: &Conventions) {
    let mut live = live_out;
    for index in block.rev() {
        if edit.is_removed(index) {
            continue;
        }
        let (inst, effects) = (&edit.insts()[index], &edit.effects()[index]);
        if let Some((to, from)) = as_move(inst, conventions)
            && (to == from || !live.contains(Reg::S(to)))
        {
            edit.remove(index);
            continue;
        }
        live = live.without(effects.writes).or(conventions.needs(inst, effects));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_written_after_its_value_is_moved() {
        let row = |moves: &[(u8, u8)]| -> Vec<(SReg, SReg)> {
            let reg = |number| SReg::new(number).unwrap();
            moves.iter().map(|&(to, from)| (reg(to), reg(from))).collect()
        };
        // s2 and s3 are copied, overwritten and moved from the copies, so s1 is written before s2,
        // and s2 before s3.
        let copies = row(&[(10, 3), (11, 2), (0, 1), (3, 4), (2, 10), (1, 11)]);
        assert_eq!(order_of_moves(&copies), Some(vec![0, 1, 2, 5, 4, 3]));
        // An exchange needs its copy.
        assert_eq!(order_of_moves(&row(&[(9, 0), (0, 1), (1, 9)])), Some(vec![0, 1, 2]));
        assert_eq!(order_of_moves(&row(&[(0, 1), (2, 3)])), None);
    }
}
