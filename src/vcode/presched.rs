//! Scheduling before register allocation: the order of the instructions in a block of a routine of the runtime.
//!
//! Scheduling after allocation cannot move an instruction past another one that happens to have the same register, and
//! with the few registers of a routine that is nearly every one. So routines are ordered here as well, where a register
//! is written only once: what the longest chain waits for comes first. Their source can then say one thing after the
//! other. Other functions keep their order: they have more registers, but also values that live long, which this would
//! make spill.

use super::{Origin, VCode};
use crate::inst::operands::OperandVisitor;
use crate::inst::{MInst, reg::Reg};
use regalloc2::{OperandConstraint, OperandKind, OperandPos};
use rustc_hash::FxHashMap;

/// Cycles from an integer operation to its user, for instructions that have no record of their own.
const INTEGER: u32 = 7;

struct Node {
    defs: Vec<Reg>,
    uses: Vec<Reg>,
    /// Cycles until the result is there.
    latency: u32,
    /// Cycles from its issue to the end of the longest chain behind it.
    height: u32,
    /// Earliest cycle, as far as known.
    ready: u32,
    /// Instructions in front of it that it waits for.
    waiting_for: usize,
    /// Instructions that wait for it.
    users: Vec<usize>,
}

#[derive(Default)]
struct Operands {
    defs: Vec<Reg>,
    uses: Vec<Reg>,
}

impl OperandVisitor for Operands {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        match kind {
            OperandKind::Def => self.defs.push(*reg),
            OperandKind::Use => self.uses.push(*reg),
        }
    }
}

/// Cycles until the result of an instruction that may move is there; none for one that may not.
fn latency(inst: &MInst) -> Option<u32> {
    match inst {
        MInst::Op { op, dst: Some(_), .. } => {
            let desc = op.desc();
            let stays = desc.flags.has_side_effects()
                || desc.flags.may_load()
                || desc.flags.may_store()
                || desc.flags.is_branch()
                || !desc.implicit_defs.is_empty();
            (!stays).then(|| u32::from(desc.latency).max(1))
        }
        // A register with a role of its own may be written more than once.
        MInst::Move { dst, src } => (dst.as_virtual().is_some() && src.as_virtual().is_some()).then_some(INTEGER),
        // A wide constant takes two instructions, one behind the other.
        MInst::Const { value, .. } => Some(if *value >> 16 == 0 { INTEGER } else { 2 * INTEGER }),
        _ => None,
    }
}

/// Orders the instructions of every block.
pub fn run(vcode: &mut VCode) {
    for block in &vcode.blocks {
        let range = block.insts.start as usize..block.insts.end as usize;
        order_block(&mut vcode.insts[range.clone()], &mut vcode.origins[range]);
    }
}

fn order_block(insts: &mut [MInst], origins: &mut [Origin]) {
    let mut start = 0;
    while start < insts.len() {
        let length = insts[start..].iter().take_while(|inst| latency(inst).is_some()).count();
        if length > 1 {
            let end = start + length;
            let order = order(&mut insts[start..end]);
            permute(&mut insts[start..end], &order);
            permute(&mut origins[start..end], &order);
        }
        start += length + 1;
    }
}

fn permute<T: Clone>(list: &mut [T], order: &[usize]) {
    let old = list.to_vec();
    for (place, &from) in list.iter_mut().zip(order) {
        place.clone_from(&old[from]);
    }
}

fn order(insts: &mut [MInst]) -> Vec<usize> {
    let mut nodes: Vec<Node> = insts
        .iter_mut()
        .map(|inst| {
            let mut operands = Operands::default();
            inst.visit_operands(&mut operands);
            let latency = latency(inst).unwrap_or(1);
            Node {
                defs: operands.defs,
                uses: operands.uses,
                latency,
                // Somebody behind the block waits for what nobody in it uses.
                height: latency,
                ready: 0,
                waiting_for: 0,
                users: Vec::new(),
            }
        })
        .collect();
    let mut writer: FxHashMap<Reg, usize> = FxHashMap::default();
    for index in 0..nodes.len() {
        for used in std::mem::take(&mut nodes[index].uses) {
            if let Some(&from) = writer.get(&used) {
                nodes[from].users.push(index);
                nodes[index].waiting_for += 1;
            }
        }
        for def in std::mem::take(&mut nodes[index].defs) {
            writer.insert(def, index);
        }
    }
    for index in (0..nodes.len()).rev() {
        let behind = nodes[index]
            .users
            .iter()
            .map(|&user| nodes[user].height)
            .max()
            .unwrap_or(0);
        nodes[index].height = nodes[index].latency + behind;
    }

    let mut open: Vec<usize> = (0..nodes.len()).filter(|&n| nodes[n].waiting_for == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    let mut cycle = 0;
    while !open.is_empty() {
        // The highest of those that can issue now, else the first that can; the written order breaks ties.
        let key = |n: usize| {
            let wait = nodes[n].ready.saturating_sub(cycle);
            (wait, std::cmp::Reverse(nodes[n].height), n)
        };
        let Some(place) = (0..open.len()).min_by_key(|&place| key(open[place])) else {
            break;
        };
        let index = open.swap_remove(place);
        let at = cycle.max(nodes[index].ready);
        cycle = at + 1;
        order.push(index);
        let done = at + nodes[index].latency;
        for user in std::mem::take(&mut nodes[index].users) {
            nodes[user].ready = nodes[user].ready.max(done);
            nodes[user].waiting_for -= 1;
            if nodes[user].waiting_for == 0 {
                open.push(user);
            }
        }
    }
    order
}
