//! The registers that an instruction reads and writes, with their constraints.
//!
//! [`MInst::visit_operands`] is the only description of the operands. Register allocation collects
//! the constraints with it, and writes the assigned registers back with it in the same order.

use super::{AMode, CallDest, CallInfo, LaneMask, MInst, reg::Reg};
use crate::abi::sig::free_at_entry;
use regalloc2::{OperandConstraint, OperandKind, OperandPos, PReg};

/// A visitor of the register operands of an instruction, in a fixed order.
pub trait OperandVisitor {
    /// Visits one operand. The visitor may replace the register.
    fn operand(&mut self, reg: &mut Reg, constraint: OperandConstraint, kind: OperandKind, pos: OperandPos);
}

fn use_reg(v: &mut impl OperandVisitor, reg: &mut Reg) {
    v.operand(reg, OperandConstraint::Reg, OperandKind::Use, OperandPos::Early);
}

/// A use that must not share its register with a definition of the same instruction.
fn use_late(v: &mut impl OperandVisitor, reg: &mut Reg) {
    v.operand(reg, OperandConstraint::Reg, OperandKind::Use, OperandPos::Late);
}

fn def_reg(v: &mut impl OperandVisitor, reg: &mut Reg) {
    v.operand(reg, OperandConstraint::Reg, OperandKind::Def, OperandPos::Late);
}

fn def_early(v: &mut impl OperandVisitor, reg: &mut Reg) {
    v.operand(reg, OperandConstraint::Reg, OperandKind::Def, OperandPos::Early);
}

fn fixed(v: &mut impl OperandVisitor, reg: &mut Reg, at: npu_mc::Reg, kind: OperandKind) {
    let preg: PReg = super::reg::to_preg(at);
    let pos = match kind {
        OperandKind::Def => OperandPos::Late,
        OperandKind::Use => OperandPos::Early,
    };
    v.operand(reg, OperandConstraint::FixedReg(preg), kind, pos);
}

fn call(v: &mut impl OperandVisitor, info: &mut CallInfo) {
    for (reg, at) in &mut info.uses {
        fixed(v, reg, *at, OperandKind::Use);
    }
    if let CallDest::Reg(reg) = &mut info.dest {
        use_reg(v, reg);
    }
    for (reg, at) in &mut info.defs {
        fixed(v, reg, *at, OperandKind::Def);
    }
}

fn address(v: &mut impl OperandVisitor, addr: &mut AMode) {
    if let AMode::Reg { base, .. } = addr {
        use_reg(v, base);
    }
}

impl MInst {
    /// Calls the visitor for every register operand.
    pub fn visit_operands(&mut self, v: &mut impl OperandVisitor) {
        match self {
            Self::Op { op, dst, srcs, .. } => {
                let tied = op.desc().reads_dst;
                let last = srcs.len().wrapping_sub(1);
                for src in srcs.iter_mut() {
                    use_reg(v, src);
                }
                if let Some(dst) = dst {
                    if tied {
                        // Reserved registers are not operands of regalloc2, so the position counts
                        // only virtual sources.
                        let index = srcs[..last].iter().filter(|r| is_visited(**r)).count();
                        v.operand(dst, OperandConstraint::Reuse(index), OperandKind::Def, OperandPos::Late);
                    } else {
                        def_reg(v, dst);
                    }
                }
            }
            Self::Load { dst, addr, .. } => {
                address(v, addr);
                def_reg(v, dst);
            }
            Self::Store { src, addr, .. } => {
                use_reg(v, src);
                address(v, addr);
            }
            Self::Move { dst, src } => {
                use_reg(v, src);
                def_reg(v, dst);
            }
            Self::Masked { mask, dst, srcs, .. } => {
                for src in srcs.iter_mut() {
                    use_reg(v, src);
                }
                let last = srcs.len().saturating_sub(1);
                if let LaneMask::Reg(mask) = mask {
                    use_reg(v, mask);
                }
                let index = srcs[..last].iter().filter(|r| is_visited(**r)).count();
                v.operand(dst, OperandConstraint::Reuse(index), OperandKind::Def, OperandPos::Late);
            }
            Self::MaskedStore { mask, src, addr, .. } => {
                use_reg(v, src);
                address(v, addr);
                if let LaneMask::Reg(mask) = mask {
                    use_reg(v, mask);
                }
            }
            Self::PoolLoad { dst, .. } => def_reg(v, dst),
            Self::Const { dst, .. }
            | Self::SymbolAddr { dst, .. }
            | Self::ReturnAddress { dst }
            | Self::BlockAddress { dst, .. } => def_reg(v, dst),
            Self::Address { dst, addr } => {
                address(v, addr);
                def_reg(v, dst);
            }
            Self::Select { cond, words } => {
                let several = words.len() > 1;
                // regalloc2 inserts the moves into the reused registers before the instruction. It
                // keeps the other operands out of the registers of these moves, except the register
                // that the first operand reuses. Late uses keep other operands from sharing it.
                let other = |v: &mut _, reg: &mut Reg| if several { use_late(v, reg) } else { use_reg(v, reg) };
                for word in words.iter_mut() {
                    use_reg(v, &mut word.if_true);
                }
                other(v, &mut cond.reg);
                for word in words.iter_mut() {
                    other(v, &mut word.if_false);
                }
                for (index, word) in words.iter_mut().enumerate() {
                    let reuse = OperandConstraint::Reuse(index);
                    v.operand(&mut word.dst, reuse, OperandKind::Def, OperandPos::Late);
                }
            }
            Self::TrapIf { cond, .. } | Self::CondBr { cond } => use_reg(v, &mut cond.reg),
            Self::Args { defs } => {
                for (reg, at) in defs {
                    fixed(v, reg, *at, OperandKind::Def);
                }
            }
            Self::Return { uses } => {
                for (reg, at) in uses {
                    fixed(v, reg, *at, OperandKind::Use);
                }
            }
            Self::Call(info) => call(v, info),
            Self::TryCall(info) => call(v, &mut info.call),
            Self::ReturnCall(info) => {
                for (reg, at) in &mut info.uses {
                    fixed(v, reg, *at, OperandKind::Use);
                }
                if let CallDest::Reg(reg) = &mut info.dest {
                    // The epilogue runs before the jump and must not restore the register with the
                    // target.
                    match free_at_entry().first() {
                        Some(&at) => fixed(v, reg, npu_mc::Reg::S(at), OperandKind::Use),
                        None => use_reg(v, reg),
                    }
                }
            }
            Self::Copy { src, tmps, .. } => {
                use_late(v, src);
                for tmp in tmps {
                    def_early(v, tmp);
                }
            }
            Self::DebugTrap { tmps } => {
                for tmp in tmps {
                    def_early(v, tmp);
                }
            }
            Self::BrTable { index, tmp, base, .. } => {
                use_late(v, index);
                def_early(v, tmp);
                def_early(v, base);
            }
            Self::Jump | Self::Trap { .. } | Self::Fence | Self::SequencePoint => {}
        }
    }
}

/// Returns whether regalloc2 sees this register.
pub fn is_visited(reg: Reg) -> bool {
    reg.as_virtual().is_some()
}
