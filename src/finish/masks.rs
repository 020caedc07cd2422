//! Neighbouring operations under a lane mask.
//!
//! A masked operation sets `rm`, works and sets `rm` to all ones again, since every vector instruction obeys `rm`, whether it
//! says so or not (erratum `mask_always_applied`): moves, spills and reloads that register allocation puts between two
//! operations act on all lanes. After allocation it is known what stands between. If that is nothing that `rm` has an effect
//! on, or can move before the first operation, `rm` keeps its value; and if both have the same mask, it is set once.

use super::effects::{Effects, RegSet, is_fixed};
use super::func::{MachFunction, McInst};
use super::places::{self, Reordered};
use crate::inst::ALL_LANES;
use crate::inst::reg::machine;
use npu_mc::{Inst, Opcode, Operand, Reg};

/// What an instruction sets `rm` to.
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

/// Merges what it can.
pub fn run(func: &mut MachFunction) {
    if !func.insts.iter().any(|inst| setting(&inst.inst).is_some()) {
        return;
    }
    let is_boundary = func.label_positions();
    let effects = Effects::of_all(&func.insts);
    let mut dead = vec![false; func.insts.len()];
    let mut reordered = Vec::new();
    let mut start = 0;
    while start < func.insts.len() {
        let mut end = start;
        while end < func.insts.len() && (end == start || !is_boundary[end]) && !is_fixed(&func.insts, &effects, end) {
            end += 1;
        }
        if end - start > 1 {
            let (order, gone) = merge(&func.insts[start..end], &effects[start..end]);
            let old = func.insts[start..end].to_vec();
            for (place, &from) in order.iter().enumerate() {
                func.insts[start + place].clone_from(&old[from]);
                dead[start + place] = gone[from];
            }
            if !func.places.is_empty() {
                reordered.push(Reordered { start, order });
            }
        }
        start = end.max(start + 1);
    }
    places::reorder(func, &reordered);
    func.remove(&dead);
}

/// The order of the instructions of a straight stretch, in terms of the old one, and for each in the old order whether it is
/// not needed.
fn merge(list: &[McInst], effects: &[Effects]) -> (Vec<usize>, Vec<bool>) {
    let mut order: Vec<usize> = (0..list.len()).collect();
    let mut gone = vec![false; list.len()];
    let at = |index: usize, gone: &[bool]| setting(&list[index].inst).filter(|_| !gone[index]);
    // The instruction that set `rm` to other than all ones first, and the one that set it to its present value.
    let mut open: Option<(usize, usize)> = None;
    for place in 0..order.len() {
        let index = order[place];
        match at(index, &gone) {
            Some(Setting::All) => {}
            Some(_) => {
                open = Some((open.map_or(index, |(first, _)| first), index));
                continue;
            }
            None => continue,
        }
        let next = (place + 1..order.len()).find(|&p| at(order[p], &gone).is_some_and(|s| s != Setting::All));
        let (Some((first, last)), Some(next)) = (open.take(), next) else {
            continue;
        };
        let start = order.iter().position(|&index| index == first).unwrap_or(place);
        let Some(moved) = clear_way(effects, &order, start, place, next) else {
            continue;
        };
        order[start..next].copy_from_slice(&moved);
        gone[index] = true;
        open = Some((first, last));
        let kept = match setting(&list[last].inst) {
            Some(Setting::Register(reg)) => {
                let behind = moved.iter().skip_while(|&&index| index != last);
                !behind.into_iter().any(|&index| effects[index].writes.contains(reg))
            }
            _ => true,
        };
        if kept && setting(&list[last].inst) == setting(&list[order[next]].inst) {
            gone[order[next]] = true;
        }
    }
    (order, gone)
}

/// The instructions from the first setting up to the next one, with those that obey `rm` behind the restoring one moved to the
/// front, where `rm` is all ones. None if one cannot move.
fn clear_way(effects: &[Effects], order: &[usize], set: usize, restore: usize, next: usize) -> Option<Vec<usize>> {
    let mut front: Vec<usize> = Vec::new();
    let mut rest: Vec<usize> = order[set..=restore].to_vec();
    for &index in &order[restore + 1..next] {
        if !effects[index].obeys_mask {
            rest.push(index);
        } else if rest.iter().all(|&other| may_pass(&effects[index], &effects[other])) {
            front.push(index);
        } else {
            return None;
        }
    }
    front.extend(rest);
    Some(front)
}

/// Whether the instruction can move before another one. `rm` is no obstacle: it is all ones there.
fn may_pass(effects: &Effects, other: &Effects) -> bool {
    let touches = |a: &Effects, b: &Effects| {
        let written = a.writes.without(RegSet::one(machine::MASK));
        written.meets(b.reads.or(b.writes))
    };
    let stores = |effects: &Effects| effects.access.is_some_and(|access| access.is_store);
    let in_order = effects.access.is_some() && other.access.is_some() && (stores(effects) || stores(other));
    !touches(effects, other) && !touches(other, effects) && !in_order
}
