//! Scheduling before register allocation: the order of the instructions in a block of a routine of the runtime.
//!
//! Scheduling after allocation cannot move an instruction past another one that happens to have the same register, and
//! with the few registers of a routine that is nearly every one. So routines are ordered here as well, where a register
//! is written only once: what the longest chain waits for comes first. Their source can then say one thing after the
//! other. Other functions keep their order: they have more registers, but also values that live long, which this would
//! make spill.

use super::VCode;
use crate::inst::operands::OperandVisitor;
use crate::inst::{MInst, reg::Reg};
use crate::list_sched::ListScheduler;
use regalloc2::{OperandConstraint, OperandKind, OperandPos};

/// Cycles from an integer operation to its user, for instructions that have no record of their own.
const INTEGER: u32 = 7;

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
        // A wide constant takes two instructions, one after the other.
        MInst::Const { value, .. } => Some(if *value >> 16 == 0 { INTEGER } else { 2 * INTEGER }),
        _ => None,
    }
}

/// Orders the instructions of every block.
pub fn run(vcode: &mut VCode) {
    // They are collected again, in the new order.
    vcode.operands.clear();
    vcode.operand_ends.clear();
    let mut dependences = Dependences {
        scheduler: ListScheduler::default(),
        latencies: Vec::new(),
        writers: vec![None; vcode.num_vregs],
    };
    for block in &vcode.blocks {
        let range = block.insts.start as usize..block.insts.end as usize;
        let insts = &mut vcode.insts[range.clone()];
        let origins = &mut vcode.origins[range];
        let mut start = 0;
        while start < insts.len() {
            dependences.latencies.clear();
            dependences.latencies.extend(insts[start..].iter().map_while(latency));
            let end = start + dependences.latencies.len();
            if end - start > 1 {
                let order = dependences.order(&mut insts[start..end]);
                permute(&mut insts[start..end], order);
                permute(&mut origins[start..end], order);
            }
            start = end + 1;
        }
    }
}

fn permute<T: Clone>(list: &mut [T], order: &[usize]) {
    let old = list.to_vec();
    for (place, &from) in list.iter_mut().zip(order) {
        place.clone_from(&old[from]);
    }
}

/// What waits for what in a row of instructions.
struct Dependences {
    scheduler: ListScheduler,
    /// Cycles until the result of each instruction is there.
    latencies: Vec<u32>,
    /// For each virtual register the instruction of the row that writes it.
    writers: Vec<Option<u32>>,
}

impl Dependences {
    fn order(&mut self, insts: &mut [MInst]) -> &[usize] {
        self.scheduler.clear();
        for (index, inst) in (0..).zip(insts.iter_mut()) {
            // Somebody after the row waits for what nobody in it uses.
            self.scheduler.add(self.latencies[index as usize], false);
            inst.visit_operands(&mut Uses { of: self, index });
        }
        for inst in insts {
            inst.visit_operands(&mut Forget(&mut self.writers));
        }
        self.scheduler.run(|_| true)
    }
}

/// Makes an instruction wait for those that write what it reads. Nothing is written twice.
struct Uses<'a> {
    of: &'a mut Dependences,
    index: u32,
}

impl OperandVisitor for Uses<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        let Some(vreg) = reg.as_virtual() else { return };
        let writer = &mut self.of.writers[vreg.vreg()];
        match (kind, *writer) {
            (OperandKind::Def, _) => *writer = Some(self.index),
            (OperandKind::Use, Some(from)) => {
                let latency = self.of.latencies[from as usize];
                self.of.scheduler.depend(from, self.index, latency);
            }
            (OperandKind::Use, None) => {}
        }
    }
}

/// Empties the table for the next row.
struct Forget<'a>(&'a mut [Option<u32>]);

impl OperandVisitor for Forget<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        if let (OperandKind::Def, Some(vreg)) = (kind, reg.as_virtual()) {
            self.0[vreg.vreg()] = None;
        }
    }
}
