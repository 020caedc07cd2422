//! Scheduling before register allocation, for routines of the runtime.
//!
//! After allocation, the scheduler cannot move an instruction past another one that uses the same
//! register by chance. With the few registers of a routine, that is nearly every instruction. So
//! this pass schedules routines before allocation, where each register is written only once, and
//! the source of a routine need not be in scheduled order. Other functions keep their order: they
//! have more registers, but also long live ranges, which the pass would make spill.

use super::VCode;
use crate::inst::operands::OperandVisitor;
use crate::inst::{MInst, reg::Reg};
use crate::list_sched::ListScheduler;
use regalloc2::{OperandConstraint, OperandKind, OperandPos};

/// Cycles from an integer operation to its user, for instructions without a record.
const INTEGER: u32 = 7;

/// Returns the latency of an instruction in cycles. Returns `None` for an instruction that may not
/// move.
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
        // A register with a special role may be written more than once.
        MInst::Move { dst, src } => (dst.as_virtual().is_some() && src.as_virtual().is_some()).then_some(INTEGER),
        // A wide constant takes two dependent instructions.
        MInst::Const { value, .. } => Some(if *value >> 16 == 0 { INTEGER } else { 2 * INTEGER }),
        _ => None,
    }
}

/// Schedules the instructions of every block.
pub fn run(vcode: &mut VCode) {
    // The operands are collected again later, in the new order.
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

/// The dependence graph of consecutive instructions.
struct Dependences {
    scheduler: ListScheduler,
    /// The latency of each instruction in cycles.
    latencies: Vec<u32>,
    /// For each virtual register the instruction of the sequence that writes it.
    writers: Vec<Option<u32>>,
}

impl Dependences {
    fn order(&mut self, insts: &mut [MInst]) -> &[usize] {
        self.scheduler.clear();
        for (index, inst) in (0..).zip(insts.iter_mut()) {
            // A result without a user in the sequence has a user after it.
            self.scheduler.add(self.latencies[index as usize], false);
            inst.visit_operands(&mut Uses {
                dependences: self,
                index,
            });
        }
        for inst in insts {
            inst.visit_operands(&mut ClearWriters(&mut self.writers));
        }
        self.scheduler.run(|_| true)
    }
}

/// Adds a dependence on each instruction that writes an operand. No register is written twice.
struct Uses<'a> {
    dependences: &'a mut Dependences,
    index: u32,
}

impl OperandVisitor for Uses<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        let Some(vreg) = reg.as_virtual() else { return };
        let writer = &mut self.dependences.writers[vreg.vreg()];
        match (kind, *writer) {
            (OperandKind::Def, _) => *writer = Some(self.index),
            (OperandKind::Use, Some(from)) => {
                let latency = self.dependences.latencies[from as usize];
                self.dependences.scheduler.depend(from, self.index, latency);
            }
            (OperandKind::Use, None) => {}
        }
    }
}

/// Clears the table for the next sequence.
struct ClearWriters<'a>(&'a mut [Option<u32>]);

impl OperandVisitor for ClearWriters<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        if let (OperandKind::Def, Some(vreg)) = (kind, reg.as_virtual()) {
            self.0[vreg.vreg()] = None;
        }
    }
}
