//! Dead code elimination: machine instructions that nobody needs.
//!
//! A rule makes all words of its result, and often only some of them have users: a product of which the low word is kept,
//! an address that was computed in 64 bits. What is left over goes here, before registers are allocated.

use super::VCode;
use crate::inst::reg::Reg;
use crate::inst::{AMode, MInst, operands::OperandVisitor};
use regalloc2::{OperandConstraint, OperandKind, OperandPos};

/// Takes the operands from the number of uses of each register.
struct Forget<'a>(&'a mut [u32]);

impl OperandVisitor for Forget<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        if let (Reg::Virtual(vreg), OperandKind::Use) = (*reg, kind) {
            self.0[vreg.vreg()] -= 1;
        }
    }
}

/// Removes the instructions that nobody needs; blocks, labels and operands move along. Lowering has counted the uses.
pub fn run(vcode: &mut VCode) {
    let mut uses = std::mem::take(&mut vcode.uses);
    let found = find(&mut vcode.insts, &mut uses);
    if found.changed {
        // They are collected again.
        vcode.operands.clear();
        vcode.operand_ends.clear();
    }
    let dead = found.dead;
    if dead.is_empty() {
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
    remove_operands(vcode, &dead);
}

/// Takes out the operands of the instructions that are gone.
fn remove_operands(vcode: &mut VCode, dead: &[bool]) {
    let (mut start, mut kept, mut insts) = (0, 0, 0);
    for (index, &dead) in dead.iter().enumerate().take(vcode.operand_ends.len()) {
        let end = vcode.operand_ends[index];
        if !dead {
            vcode.operands.copy_within(start as usize..end as usize, kept as usize);
            kept += end - start;
            vcode.operand_ends[insts] = kept;
            insts += 1;
        }
        start = end;
    }
    vcode.operands.truncate(kept as usize);
    vcode.operand_ends.truncate(insts);
}

/// What nobody needs.
struct Found {
    /// For each instruction whether it goes; empty if none does.
    dead: Vec<bool>,
    /// Whether an instruction that stays has lost operands.
    changed: bool,
}

/// Finds the instructions without which everything that shows stays the same. Words of a select that nobody needs are dropped
/// in place.
fn find(insts: &mut [MInst], uses: &mut [u32]) -> Found {
    let mut found = Found {
        dead: Vec::new(),
        changed: false,
    };
    let count = insts.len();
    for (index, inst) in insts.iter_mut().enumerate().rev() {
        let dead = if let MInst::Select { words, .. } = inst {
            // A word is dropped by itself, so what it used is no longer used either.
            let before = words.len();
            words.retain(|word| {
                let kept = is_used(uses, word.dst);
                for used in [word.if_true, word.if_false].into_iter().filter_map(Reg::as_virtual) {
                    uses[used.vreg()] -= u32::from(!kept);
                }
                kept
            });
            found.changed |= words.len() != before;
            words.is_empty()
        } else {
            result(inst).is_some_and(|dst| !is_used(uses, dst))
        };
        if dead {
            inst.visit_operands(&mut Forget(uses));
            found.dead.resize(count, false);
            found.dead[index] = true;
        }
    }
    found
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
        | MInst::BlockAddress { dst, .. }
        // Arguments and results in memory, which are there.
        | MInst::Load { dst, addr: AMode::Incoming { .. } | AMode::Local { .. }, .. } => Some(*dst),
        _ => None,
    }
}
