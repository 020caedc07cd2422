//! The same instruction on registers of another type.

use super::{AMode, CallDest, CallInfo, Cond, LaneMask, MachInst, SelectWord};
use smallvec::SmallVec;

impl<R> AMode<R> {
    /// The address with its register replaced.
    ///
    /// # Errors
    ///
    /// The first one of `reg`.
    pub fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<AMode<S>, E> {
        Ok(match self {
            Self::Reg { base, offset } => AMode::Reg {
                base: reg(base)?,
                offset,
            },
            Self::Slot { slot, offset } => AMode::Slot { slot, offset },
            Self::Incoming { offset } => AMode::Incoming { offset },
            Self::Outgoing { offset } => AMode::Outgoing { offset },
            Self::Local { area, offset } => AMode::Local { area, offset },
        })
    }
}

impl<R> LaneMask<R> {
    fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<LaneMask<S>, E> {
        Ok(match self {
            Self::Reg(mask) => LaneMask::Reg(reg(mask)?),
            Self::Lanes(lanes) => LaneMask::Lanes(lanes),
        })
    }
}

impl<R> Cond<R> {
    fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<Cond<S>, E> {
        Ok(Cond {
            reg: reg(self.reg)?,
            nonzero: self.nonzero,
        })
    }
}

impl<R> CallInfo<R> {
    fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<Box<CallInfo<S>>, E> {
        Ok(Box::new(CallInfo {
            dest: match self.dest {
                CallDest::Near(target) => CallDest::Near(target),
                CallDest::Far(target) => CallDest::Far(target),
                CallDest::Reg(callee) => CallDest::Reg(reg(callee)?),
            },
            uses: pairs(self.uses, reg)?,
            defs: pairs(self.defs, reg)?,
            clobbers: self.clobbers,
            popped: self.popped,
        }))
    }
}

type Pairs<R> = Vec<(R, npu_mc::Reg)>;

fn pairs<R, S, E>(list: Pairs<R>, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<Pairs<S>, E> {
    list.into_iter().map(|(given, at)| Ok((reg(given)?, at))).collect()
}

impl<R> MachInst<R> {
    /// The instruction with every register replaced.
    ///
    /// # Errors
    ///
    /// The first one of `reg`.
    pub fn map<S, E>(self, reg: &mut impl FnMut(R) -> Result<S, E>) -> Result<MachInst<S>, E> {
        Ok(match self {
            Self::Op { op, dst, srcs, imm } => MachInst::Op {
                op,
                srcs: srcs.into_iter().map(&mut *reg).collect::<Result<_, E>>()?,
                dst: dst.map(&mut *reg).transpose()?,
                imm,
            },
            Self::Load { op, dst, addr } => MachInst::Load {
                op,
                dst: reg(dst)?,
                addr: addr.map(reg)?,
            },
            Self::Store { op, src, addr } => MachInst::Store {
                op,
                src: reg(src)?,
                addr: addr.map(reg)?,
            },
            Self::Move { dst, src } => MachInst::Move {
                dst: reg(dst)?,
                src: reg(src)?,
            },
            Self::Const { dst, value } => MachInst::Const { dst: reg(dst)?, value },
            Self::PoolLoad { dst, index } => MachInst::PoolLoad { dst: reg(dst)?, index },
            Self::Masked {
                mask,
                op,
                dst,
                srcs,
                imm,
            } => MachInst::Masked {
                mask: mask.map(reg)?,
                op,
                dst: reg(dst)?,
                srcs: srcs.into_iter().map(&mut *reg).collect::<Result<_, E>>()?,
                imm,
            },
            Self::MaskedStore { mask, op, src, addr } => MachInst::MaskedStore {
                mask: mask.map(reg)?,
                op,
                src: reg(src)?,
                addr: addr.map(reg)?,
            },
            Self::SymbolAddr { dst, target, addend } => MachInst::SymbolAddr {
                dst: reg(dst)?,
                target,
                addend,
            },
            Self::Address { dst, addr } => MachInst::Address {
                dst: reg(dst)?,
                addr: addr.map(reg)?,
            },
            Self::Select { cond, words } => MachInst::Select {
                cond: cond.map(reg)?,
                words: words
                    .into_iter()
                    .map(|word| {
                        Ok(SelectWord {
                            dst: reg(word.dst)?,
                            if_true: reg(word.if_true)?,
                            if_false: reg(word.if_false)?,
                        })
                    })
                    .collect::<Result<SmallVec<_>, E>>()?,
            },
            Self::TrapIf { cond, code } => MachInst::TrapIf {
                cond: cond.map(reg)?,
                code,
            },
            Self::Trap { code } => MachInst::Trap { code },
            Self::Args { defs } => MachInst::Args {
                defs: pairs(defs, reg)?,
            },
            Self::Return { uses } => MachInst::Return {
                uses: pairs(uses, reg)?,
            },
            Self::Call(info) => MachInst::Call(info.map(reg)?),
            Self::ReturnCall(info) => MachInst::ReturnCall(info.map(reg)?),
            Self::Jump => MachInst::Jump,
            Self::CondBr { cond } => MachInst::CondBr { cond: cond.map(reg)? },
            Self::BrTable {
                index,
                tmp,
                base,
                entries,
                bounded,
            } => MachInst::BrTable {
                index: reg(index)?,
                tmp: reg(tmp)?,
                base: reg(base)?,
                entries,
                bounded,
            },
            Self::ReturnAddress { dst } => MachInst::ReturnAddress { dst: reg(dst)? },
            Self::Copy {
                area,
                src,
                size,
                aligned,
                tmps: [a, b, c, d],
            } => MachInst::Copy {
                area,
                src: reg(src)?,
                size,
                aligned,
                tmps: [reg(a)?, reg(b)?, reg(c)?, reg(d)?],
            },
            Self::Fence => MachInst::Fence,
            Self::SequencePoint => MachInst::SequencePoint,
            Self::Nop => MachInst::Nop,
        })
    }
}
