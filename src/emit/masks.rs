//! Neighbouring operations under a lane mask.
//!
//! A masked operation sets `rm`, works and sets `rm` to all ones again, since every vector instruction obeys `rm`, whether it
//! says so or not (erratum `mask_always_applied`): moves, spills and reloads that register allocation puts between two
//! operations act on all lanes. Behind allocation it is known what stands between. If that is nothing that `rm` has an effect
//! on, or can move in front of the first operation, `rm` keeps its value; and if both have the same mask, it is set once.

use super::labels::{self, Reordered};
use super::schedule::is_fixed;
use super::{Item, Items};
use crate::inst::ALL_LANES;
use crate::inst::reg::Reg as Place;
use npu_mc::{Inst, Opcode, Operand, Reg, RegFile};

/// Whether what the instruction does depends on `rm`: it writes a vector register, or a vector to the scratchpad.
pub fn obeys_mask(inst: &Inst) -> bool {
    let desc = inst.desc();
    desc.operands.iter().any(|operand| {
        let vector = operand.kind.register_file() == Some(RegFile::Vector);
        vector && (operand.is_def || desc.scratchpad && desc.flags.may_store())
    })
}

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
    if Some(Reg::S(*dst)) != Place::MASK.as_real() {
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
pub fn run(items: &mut Items) {
    if !items.list.iter().any(|item| setting(&item.inst).is_some()) {
        return;
    }
    let mut is_boundary = vec![false; items.list.len() + 1];
    for &position in &items.labels {
        if let Some(flag) = is_boundary.get_mut(position) {
            *flag = true;
        }
    }
    let mut dead = vec![false; items.list.len()];
    let mut reordered = Vec::new();
    let mut start = 0;
    while start < items.list.len() {
        let mut end = start;
        while end < items.list.len() && (end == start || !is_boundary[end]) && !is_fixed(&items.list, end) {
            end += 1;
        }
        if end - start > 1 {
            let (order, gone) = merge(&items.list[start..end]);
            let old = items.list[start..end].to_vec();
            for (place, &from) in order.iter().enumerate() {
                items.list[start + place].clone_from(&old[from]);
                dead[start + place] = gone[from];
            }
            if !items.places.is_empty() {
                reordered.push(Reordered { start, order });
            }
        }
        start = end.max(start + 1);
    }
    labels::reorder(items, &reordered);
    items.rewrite(|list, index, item| {
        if !dead[index] {
            list.push(item);
        }
    });
}

/// The order of the instructions of a straight stretch, in terms of the old one, and for each in the old order whether it is
/// not needed.
fn merge(list: &[Item]) -> (Vec<usize>, Vec<bool>) {
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
        let Some(moved) = clear_way(list, &order, start, place, next) else {
            continue;
        };
        order[start..next].copy_from_slice(&moved);
        gone[index] = true;
        open = Some((first, last));
        let kept = match setting(&list[last].inst) {
            Some(Setting::Register(reg)) => {
                let behind = moved.iter().skip_while(|&&index| index != last);
                !behind.into_iter().any(|&i| list[i].inst.defs().any(|def| def == reg))
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
fn clear_way(list: &[Item], order: &[usize], set: usize, restore: usize, next: usize) -> Option<Vec<usize>> {
    let mut front: Vec<usize> = Vec::new();
    let mut rest: Vec<usize> = order[set..=restore].to_vec();
    for &index in &order[restore + 1..next] {
        let inst = &list[index].inst;
        if !obeys_mask(inst) {
            rest.push(index);
        } else if rest.iter().all(|&other| may_pass(inst, &list[other].inst)) {
            front.push(index);
        } else {
            return None;
        }
    }
    front.extend(rest);
    Some(front)
}

/// Whether the instruction can move in front of another one. `rm` is no obstacle: it is all ones in front.
fn may_pass(inst: &Inst, other: &Inst) -> bool {
    let mask = Place::MASK.as_real();
    let touches = |a: &Inst, b: &Inst| {
        a.defs()
            .filter(|def| Some(*def) != mask)
            .any(|def| b.uses().chain(b.defs()).any(|used| used == def))
    };
    let memory = |inst: &Inst| inst.desc().flags.may_load() || inst.desc().flags.may_store();
    let stores = |inst: &Inst| inst.desc().flags.may_store();
    let in_order = memory(inst) && memory(other) && (stores(inst) || stores(other));
    !touches(inst, other) && !touches(other, inst) && !in_order
}
