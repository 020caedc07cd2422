//! Prints VCode before and after register allocation (`--emit=vcode`, `--emit=regalloc`).

use super::{AMode, CallDest, Cond, LaneMask, MInst, SelectWord};
use crate::code::RelocTarget;
use std::fmt;

impl<R: fmt::Display> fmt::Display for AMode<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reg { base, offset: 0 } => write!(f, "({base})"),
            Self::Reg { base, offset } => write!(f, "{offset}({base})"),
            Self::Slot { slot, offset } => write!(f, "{slot}{offset:+}"),
            Self::Incoming { offset } => write!(f, "incoming{offset:+}"),
            Self::Outgoing { offset } => write!(f, "outgoing{offset:+}"),
            Self::Local { area, offset } => write!(f, "local{area}{offset:+}"),
        }
    }
}

impl<R: fmt::Display> fmt::Display for Cond<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} 0", self.reg, if self.nonzero { "!=" } else { "==" })
    }
}

impl fmt::Display for RelocTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{}", name.display(None)),
            Self::Function => write!(f, "."),
            Self::Runtime(name) => write!(f, "%{name}"),
        }
    }
}

impl fmt::Display for CallDest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(target) => write!(f, " {target}"),
            Self::Far(target) => write!(f, "_far {target}"),
            Self::Reg(reg) => write!(f, " {reg}"),
        }
    }
}

impl fmt::Display for MInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op { op, dst, srcs, imm } => {
                let desc = op.desc();
                write!(f, "{}", desc.mnemonic)?;
                let mut separator = " ";
                for reg in dst.iter().chain(srcs) {
                    write!(f, "{separator}{reg}")?;
                    separator = ", ";
                }
                if desc.operands.len() > usize::from(dst.is_some()) + srcs.len() - usize::from(desc.reads_dst) {
                    write!(f, "{separator}{imm}")?;
                }
                Ok(())
            }
            Self::Load { op, dst, addr } => write!(f, "{} {dst}, {addr}", op.desc().mnemonic),
            Self::Store { op, src, addr } => write!(f, "{} {src}, {addr}", op.desc().mnemonic),
            Self::Move { dst, src } => write!(f, "move {dst}, {src}"),
            Self::Const { dst, value } => write!(f, "const {dst}, {value:#x}"),
            Self::MaskedStore { mask, op, src, addr } => {
                write!(f, "{}", op.desc().mnemonic)?;
                match mask {
                    LaneMask::Reg(reg) => write!(f, " [{reg}]")?,
                    LaneMask::Lanes(lanes) => write!(f, " [{lanes:#06x}]")?,
                }
                write!(f, " {src}, {addr}")
            }
            Self::PoolLoad { dst, index } => write!(f, "pool {dst}, {index}"),
            Self::Masked {
                mask,
                op,
                dst,
                srcs,
                imm,
            } => {
                let desc = op.desc();
                write!(f, "{}", desc.mnemonic)?;
                match mask {
                    LaneMask::Reg(reg) => write!(f, " [{reg}]")?,
                    LaneMask::Lanes(lanes) => write!(f, " [{lanes:#06x}]")?,
                }
                write!(f, " {dst}")?;
                for src in srcs {
                    write!(f, ", {src}")?;
                }
                if desc.operands.len() > srcs.len() {
                    write!(f, ", {imm}")?;
                }
                Ok(())
            }
            Self::SymbolAddr { dst, target, addend: 0 } => write!(f, "symbol {dst}, {target}"),
            Self::SymbolAddr { dst, target, addend } => write!(f, "symbol {dst}, {target}{addend:+}"),
            Self::Address { dst, addr } => write!(f, "address {dst}, {addr}"),
            Self::Select { cond, words } => {
                for (index, word) in words.iter().enumerate() {
                    let SelectWord { dst, if_true, if_false } = word;
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}select {dst}, {cond}, {if_true}, {if_false}")?;
                }
                Ok(())
            }
            Self::TrapIf { cond, code } => write!(f, "trap_if {cond}, {code}"),
            Self::Trap { code } => write!(f, "trap {code}"),
            Self::DebugTrap { .. } => write!(f, "debugtrap"),
            Self::Args { defs } => {
                write!(f, "args")?;
                pairs(f, defs)
            }
            Self::Return { uses } => {
                write!(f, "return")?;
                pairs(f, uses)
            }
            Self::Call(info) => {
                write!(f, "call{}", info.dest)?;
                pairs(f, &info.uses)?;
                write!(f, " ->")?;
                pairs(f, &info.defs)
            }
            Self::TryCall(info) => {
                write!(f, "try_call{}", info.call.dest)?;
                pairs(f, &info.call.uses)?;
                write!(f, " ->")?;
                pairs(f, &info.call.defs)?;
                for handler in &info.handlers {
                    match handler.tag {
                        Some(tag) => write!(f, ", {tag}: {}", handler.succ)?,
                        None => write!(f, ", default: {}", handler.succ)?,
                    }
                    if let Some(area) = handler.context {
                        write!(f, " in area {area}")?;
                    }
                }
                Ok(())
            }
            Self::BlockAddress { dst, block } => write!(f, "block_address {dst}, block{block}"),
            Self::ReturnCall(info) => {
                write!(f, "return_call{}", info.dest)?;
                pairs(f, &info.uses)
            }
            Self::Jump => write!(f, "jump"),
            Self::CondBr { cond } => write!(f, "br_if {cond}"),
            Self::BrTable {
                index,
                tmp,
                base,
                entries,
                bounded,
            } => {
                let bounded = if *bounded { ", bounded" } else { "" };
                write!(f, "br_table {index}, {tmp}, {base}, {entries:?}{bounded}")
            }
            Self::ReturnAddress { dst } => write!(f, "return_address {dst}"),
            Self::Copy { area, src, size, .. } => write!(f, "copy local{area}, ({src}), {size}"),
            Self::Fence => write!(f, "fence"),
            Self::SequencePoint => write!(f, "sequence_point"),
        }
    }
}

fn pairs<R: fmt::Display>(f: &mut fmt::Formatter<'_>, list: &[(R, npu_mc::Reg)]) -> fmt::Result {
    for (i, (reg, at)) in list.iter().enumerate() {
        write!(f, "{} {reg}={}", if i > 0 { "," } else { "" }, at.name())?;
    }
    Ok(())
}
