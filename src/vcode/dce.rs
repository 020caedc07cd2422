//! Dead code elimination: machine instructions that nobody needs.
//!
//! A rule makes all words of its result, and often only some of them have users: a product of which the low word is kept,
//! an address that was computed in 64 bits. What is left over goes here, before registers are allocated.

use super::VCode;
use crate::inst::reg::Reg;
use crate::inst::{AMode, MInst, operands::OperandVisitor};
use regalloc2::{OperandConstraint, OperandKind, OperandPos, VReg};

/// Adds to or takes from the number of uses of each register.
struct Count<'a> {
    uses: &'a mut [u32],
    remove: bool,
}

impl OperandVisitor for Count<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        let (Reg::Virtual(vreg), OperandKind::Use) = (*reg, kind) else {
            return;
        };
        let uses = &mut self.uses[vreg.vreg()];
        *uses = if self.remove { *uses - 1 } else { *uses + 1 };
    }
}

/// Removes the instructions that nobody needs; blocks and labels move along.
pub fn run(vcode: &mut VCode) {
    let passed = vcode
        .blocks
        .iter()
        .flat_map(|block| &block.branch_args)
        .flatten()
        .copied();
    let dead = find(&mut vcode.insts, passed, vcode.num_vregs);
    if !dead.contains(&true) {
        return;
    }
    // Places move up by the instructions that are gone before them.
    let mut place = Vec::with_capacity(dead.len() + 1);
    let mut kept = 0;
    for &dead in &dead {
        place.push(kept);
        kept += u32::from(!dead);
    }
    place.push(kept);
    for block in &mut vcode.blocks {
        block.insts = place[block.insts.start as usize]..place[block.insts.end as usize];
    }
    for label in &mut vcode.labels {
        label.start = place[label.start as usize];
        label.end = place[label.end as usize];
    }
    vcode.labels.retain(|label| label.start < label.end);
    vcode.labels.dedup();
    let mut marks = dead.iter();
    vcode.insts.retain(|_| marks.next() == Some(&false));
    let mut marks = dead.iter();
    vcode.origins.retain(|_| marks.next() == Some(&false));
}

/// Finds the instructions, in forward order, without which everything that shows stays the same. Registers among
/// `passed` are arguments of branches. Words of a select that nobody needs are dropped in place.
fn find(insts: &mut [MInst], passed: impl Iterator<Item = VReg>, num_vregs: usize) -> Vec<bool> {
    let mut uses = vec![0u32; num_vregs];
    for vreg in passed {
        uses[vreg.vreg()] += 1;
    }
    for inst in insts.iter_mut() {
        inst.visit_operands(&mut Count {
            uses: &mut uses,
            remove: false,
        });
    }
    let mut dead = vec![false; insts.len()];
    for (inst, dead) in insts.iter_mut().zip(&mut dead).rev() {
        let mut remove = Count {
            uses: &mut uses,
            remove: true,
        };
        if let MInst::Select { words, .. } = inst {
            // A word is dropped by itself, so what it used is no longer used either.
            words.retain(|word| {
                let kept = is_used(remove.uses, word.dst);
                for used in [word.if_true, word.if_false].into_iter().filter_map(Reg::as_virtual) {
                    remove.uses[used.vreg()] -= u32::from(!kept);
                }
                kept
            });
            if words.is_empty() {
                *dead = true;
                inst.visit_operands(&mut remove);
            }
        } else if result(inst).is_some_and(|dst| !is_used(remove.uses, dst)) {
            *dead = true;
            inst.visit_operands(&mut remove);
        }
    }
    dead
}

fn is_used(uses: &[u32], reg: Reg) -> bool {
    reg.as_virtual().is_none_or(|vreg| uses[vreg.vreg()] > 0)
}

/// The only thing that an instruction does: writing this register.
fn result(inst: &MInst) -> Option<Reg> {
    match inst {
        MInst::Op { op, dst, .. } => {
            let desc = op.desc();
            let pure = !desc.flags.has_side_effects() && !desc.flags.may_store() && desc.implicit_defs.is_empty();
            dst.filter(|_| pure)
        }
        MInst::Const { dst, .. }
        | MInst::Move { dst, .. }
        | MInst::SymbolAddr { dst, .. }
        | MInst::Address { dst, .. }
        | MInst::PoolLoad { dst, .. }
        | MInst::Masked { dst, .. }
        | MInst::ReturnAddress { dst }
        // Arguments and results in memory, which are there.
        | MInst::Load { dst, addr: AMode::Incoming { .. } | AMode::Local { .. }, .. } => Some(*dst),
        _ => None,
    }
}
