//! Dead code elimination on VCode.
//!
//! A rule emits all words of its result, but often only some of them have users: only the low word
//! of a product, or of an address that is computed in 64 bits. This pass removes the dead
//! instructions before register allocation.

use super::VCode;
use crate::inst::reg::Reg;
use crate::inst::{AMode, MInst, operands::OperandVisitor};
use regalloc2::{OperandConstraint, OperandKind, OperandPos};

/// Subtracts the operands of an instruction from the use counts of registers.
struct DecrementUses<'a>(&'a mut [u32]);

impl OperandVisitor for DecrementUses<'_> {
    fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, kind: OperandKind, _: OperandPos) {
        if let (Reg::Virtual(vreg), OperandKind::Use) = (*reg, kind) {
            self.0[vreg.vreg()] -= 1;
        }
    }
}

/// Removes dead instructions and updates blocks, labels and operands. Lowering has counted the
/// uses.
pub fn run(vcode: &mut VCode) {
    let mut uses = std::mem::take(&mut vcode.uses);
    let found = find(&mut vcode.insts, &mut uses);
    if found.changed {
        // The operands are collected again later.
        vcode.operands.clear();
        vcode.operand_ends.clear();
    }
    let dead = found.dead;
    if dead.is_empty() {
        return;
    }
    // Indices decrease by the number of removed instructions before them.
    let mut new_index = Vec::with_capacity(dead.len() + 1);
    let mut kept = 0;
    for &dead in &dead {
        new_index.push(kept);
        kept += u32::from(!dead);
    }
    new_index.push(kept);
    for block in &mut vcode.blocks {
        block.insts = new_index[block.insts.start as usize]..new_index[block.insts.end as usize];
    }
    for label in &mut vcode.labels {
        label.start = new_index[label.start as usize];
        label.end = new_index[label.end as usize];
    }
    vcode.labels.retain(|label| label.start < label.end);
    vcode.labels.dedup();
    let mut marks = dead.iter();
    vcode.insts.retain(|_| marks.next() == Some(&false));
    let mut marks = dead.iter();
    vcode.origins.retain(|_| marks.next() == Some(&false));
    remove_operands(vcode, &dead);
}

/// Removes the operands of the removed instructions.
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

/// The dead code of a function.
struct Found {
    /// For each instruction whether it is dead. Empty if none is.
    dead: Vec<bool>,
    /// Whether a live instruction has lost operands.
    changed: bool,
}

/// Finds the dead instructions. Removes dead words of a select in place.
fn find(insts: &mut [MInst], uses: &mut [u32]) -> Found {
    let mut found = Found {
        dead: Vec::new(),
        changed: false,
    };
    let count = insts.len();
    for (index, inst) in insts.iter_mut().enumerate().rev() {
        let dead = if let MInst::Select { words, .. } = inst {
            // A dead word no longer uses its sources.
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
            inst.visit_operands(&mut DecrementUses(uses));
            found.dead.resize(count, false);
            found.dead[index] = true;
        }
    }
    found
}

fn is_used(uses: &[u32], reg: Reg) -> bool {
    reg.as_virtual().is_none_or(|vreg| uses[vreg.vreg()] > 0)
}

/// Returns the result of an instruction without other effects.
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
        // Arguments and results in memory, which are always accessible.
        | MInst::Load { dst, addr: AMode::Incoming { .. } | AMode::Local { .. }, .. } => Some(*dst),
        _ => None,
    }
}
