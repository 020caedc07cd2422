//! In-order list scheduling of straight-line code.
//!
//! The core issues one instruction of a thread each cycle and waits where an operand is not ready, so independent
//! instructions belong between a long operation and its user. Latencies come from td. Nothing moves across a label, a
//! branch or an instruction with effects of its own; branches keep their places.

use super::labels::{self, Reordered};
use super::masks::obeys_mask;
use super::{Item, Items};
use crate::inst::reg::Reg as Operand;
use npu_mc::{Inst, Reg};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Longest stretch that is scheduled at once: the search for memory conflicts is quadratic.
const MAX_REGION: usize = 256;

/// Reorders every region of the function.
pub fn run(items: &mut Items) {
    let mut is_boundary = vec![false; items.list.len() + 1];
    for &position in &items.labels {
        if let Some(flag) = is_boundary.get_mut(position) {
            *flag = true;
        }
    }
    let mut reordered = Vec::new();
    let mut start = 0;
    while start < items.list.len() {
        let mut end = start;
        while end < items.list.len()
            && end - start < MAX_REGION
            && (end == start || !is_boundary[end])
            && !is_fixed(&items.list, end)
        {
            end += 1;
        }
        // A branch behind the region reads registers that should be ready in time.
        let branch = items.list.get(end).filter(|_| !is_boundary[end]).map(|item| item.inst);
        if end - start > 1 {
            let order = schedule(&mut items.list[start..end], branch.as_ref());
            if !items.places.is_empty() {
                reordered.push(Reordered { start, order });
            }
        }
        start = end.max(start + 1);
    }
    labels::reorder(items, &reordered);
}

/// Whether an instruction keeps its place, and so does everything on its two sides.
pub(super) fn is_fixed(list: &[Item], index: usize) -> bool {
    let item = &list[index];
    let flags = item.inst.desc().flags;
    flags.is_branch()
        || flags.has_side_effects()
        || item.glued
        || index > 0 && list[index - 1].glued
        || item.trap.is_some()
        // Nothing lives below the stack pointer, so no access may change sides with it.
        || item.inst.defs().any(|def| Some(def) == Operand::SP.as_real())
}

/// An instruction and what has to wait for it.
#[derive(Default)]
struct Node {
    /// Later instructions with the least distance in cycles.
    succs: Vec<(usize, u32)>,
    /// Earlier instructions that have not been placed.
    waiting_for: usize,
    /// Cycles from the issue of this one to the end of the longest chain behind it.
    height: u32,
    /// Earliest cycle.
    ready: u32,
}

/// A load or store: base register, the version of it, offset and size. Stores conflict with what may overlap.
struct Access {
    node: usize,
    is_store: bool,
    base: Option<(Reg, usize)>,
    offset: i32,
    bytes: i32,
}

/// The largest access: a vector.
const MAX_ACCESS: i32 = 64;

fn latency(inst: &Inst) -> u32 {
    u32::from(inst.desc().latency).max(1)
}

/// Gives the order in which the instructions now stand, in terms of the old one.
fn schedule(region: &mut [Item], branch: Option<&Inst>) -> Vec<usize> {
    let mut nodes = dependencies(region);
    // Heights, last first; what the branch reads is as urgent as its latency.
    for index in (0..region.len()).rev() {
        let through = nodes[index]
            .succs
            .iter()
            .map(|&(succ, distance)| nodes[succ].height + distance)
            .max()
            .unwrap_or(0);
        let read_by_branch = branch.is_some_and(|b| region[index].inst.defs().any(|def| b.uses().any(|u| u == def)));
        let own = if read_by_branch {
            latency(&region[index].inst)
        } else {
            1
        };
        nodes[index].height = through.max(own);
    }
    let mut order = Vec::with_capacity(region.len());
    // Ready now by height, and ready later by cycle. The original order breaks ties.
    let mut now: BinaryHeap<(u32, std::cmp::Reverse<usize>)> = BinaryHeap::new();
    let mut later: BinaryHeap<std::cmp::Reverse<(u32, usize)>> = BinaryHeap::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.waiting_for == 0 {
            now.push((node.height, std::cmp::Reverse(index)));
        }
    }
    let mut cycle = 0;
    while order.len() < region.len() {
        while let Some(&std::cmp::Reverse((ready, index))) = later.peek() {
            if ready > cycle {
                break;
            }
            later.pop();
            now.push((nodes[index].height, std::cmp::Reverse(index)));
        }
        let Some((_, std::cmp::Reverse(index))) = now.pop() else {
            match later.peek() {
                Some(&std::cmp::Reverse((ready, _))) => cycle = ready,
                // Unreachable for a graph without cycles; the order stays what it was.
                None => return Vec::new(),
            }
            continue;
        };
        order.push(index);
        for (succ, distance) in std::mem::take(&mut nodes[index].succs) {
            let node = &mut nodes[succ];
            node.ready = node.ready.max(cycle + distance);
            node.waiting_for -= 1;
            if node.waiting_for == 0 {
                later.push(std::cmp::Reverse((node.ready, succ)));
            }
        }
        cycle += 1;
    }
    let mut old: Vec<Option<Item>> = region.iter().cloned().map(Some).collect();
    for (place, &index) in region.iter_mut().zip(&order) {
        if let Some(item) = old[index].take() {
            *place = item;
        }
    }
    order
}

fn dependencies(region: &[Item]) -> Vec<Node> {
    let mut nodes: Vec<Node> = region.iter().map(|_| Node::default()).collect();
    let mut last_def: FxHashMap<Reg, usize> = FxHashMap::default();
    let mut uses_since: FxHashMap<Reg, Vec<usize>> = FxHashMap::default();
    let mut versions: FxHashMap<Reg, usize> = FxHashMap::default();
    let mut accesses: Vec<Access> = Vec::new();
    for (index, item) in region.iter().enumerate() {
        let inst = &item.inst;
        let mask = Operand::MASK.as_real().filter(|_| obeys_mask(inst));
        for used in inst.uses().chain(mask) {
            if let Some(&def) = last_def.get(&used) {
                add_edge(&mut nodes, def, index, latency(&region[def].inst));
            }
            uses_since.entry(used).or_default().push(index);
        }
        let access = access(inst, index, &versions);
        for def in inst.defs() {
            if let Some(&earlier) = last_def.get(&def) {
                // Writing again waits for the first result, like reading it.
                add_edge(&mut nodes, earlier, index, latency(&region[earlier].inst));
            }
            for user in uses_since.remove(&def).unwrap_or_default() {
                if user != index {
                    add_edge(&mut nodes, user, index, 1);
                }
            }
            last_def.insert(def, index);
            *versions.entry(def).or_default() += 1;
        }
        if let Some(access) = access {
            for earlier in &accesses {
                if conflict(earlier, &access) {
                    add_edge(&mut nodes, earlier.node, index, 1);
                }
            }
            accesses.push(access);
        }
    }
    nodes
}

fn add_edge(nodes: &mut [Node], from: usize, to: usize, distance: u32) {
    nodes[from].succs.push((to, distance));
    nodes[to].waiting_for += 1;
}

fn access(inst: &Inst, node: usize, versions: &FxHashMap<Reg, usize>) -> Option<Access> {
    let flags = inst.desc().flags;
    if !flags.may_load() && !flags.may_store() {
        return None;
    }
    // Memory operands stand last: base, then offset.
    let (base, offset) = match inst.operands.as_ref() {
        [.., base, offset] => (base.reg(), offset.imm().unwrap_or(0)),
        _ => (None, 0),
    };
    let base = base.map(|reg| (reg, versions.get(&reg).copied().unwrap_or(0)));
    let vector = inst
        .desc()
        .operands
        .first()
        .is_some_and(|o| o.kind.register_file() == Some(npu_mc::RegFile::Vector));
    Some(Access {
        node,
        is_store: flags.may_store(),
        base,
        offset,
        bytes: if vector {
            MAX_ACCESS
        } else {
            npu_mc::machine::WORD_SLOT.cast_signed()
        },
    })
}

/// Whether two accesses must stay in order: one of them stores, and they may overlap.
fn conflict(a: &Access, b: &Access) -> bool {
    let apart =
        a.base.is_some() && a.base == b.base && (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    (a.is_store || b.is_store) && !apart
}
