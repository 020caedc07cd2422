//! The registers that an instruction word of any value reads and writes.

use crate::alu;
use crate::hazard::LOST_WINDOW;
use crate::mem_op::{Move, is_store, moved, moves};
use crate::registers::{PC, RM};
use npu_mc::raw::{AluOp, CtrOp, JbaOp, JraOp, MviOp, RawInst, Ri};
use npu_mc::{Reg, SReg, machine};

/// The registers that an instruction reads and writes, as bit sets by number. The PC (63) is
/// excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operands {
    pub scalar_reads: u64,
    pub scalar_writes: u64,
    pub vector_reads: u64,
    pub vector_writes: u64,
}

impl Operands {
    fn read(&mut self, register: Reg) {
        match register {
            Reg::S(SReg::PC) => {}
            Reg::S(register) => self.scalar_reads |= 1 << register.number(),
            Reg::V(register) => self.vector_reads |= 1 << register.number(),
        }
    }

    fn write(&mut self, register: Reg) {
        match register {
            Reg::S(SReg::PC) => {}
            Reg::S(register) => self.scalar_writes |= 1 << register.number(),
            Reg::V(register) => self.vector_writes |= 1 << register.number(),
        }
    }

    /// Adds a read of the lane mask if an operand is a vector.
    fn masked(&mut self, fields: &[Reg]) {
        if fields.iter().any(|field| field.is_vector()) {
            self.scalar_reads |= 1 << RM;
        }
    }

    /// Returns the operands of an instruction.
    pub fn of(inst: &RawInst) -> Operands {
        let mut o = Operands::default();
        match *inst {
            RawInst::Rr(i) => {
                o.read(i.src0);
                if !alu::is_unary(i.op) {
                    o.read(i.src1);
                }
                o.write(i.dst);
                o.masked(&[i.dst, i.src0, i.src1]);
            }
            RawInst::RrUnassigned(i) => {
                o.read(i.src0);
                o.write(i.dst);
                o.masked(&[i.dst, i.src0, i.src1]);
            }
            RawInst::Ri(Ri { dst, src0, .. }) | RawInst::RiUnassigned(Ri { dst, src0, .. }) => {
                o.read(src0);
                o.write(dst);
                o.masked(&[dst, src0]);
            }
            RawInst::Mvi(i) => {
                match i.op {
                    MviOp::Movei | MviOp::Moveil | MviOp::Moveih => o.write(i.dst),
                }
                o.masked(&[i.dst]);
            }
            RawInst::MviUnassigned(i) => o.masked(&[i.dst]),
            RawInst::Mem(i) => {
                o.read(Reg::S(i.base));
                let reg = moved(i.op, i.reg);
                match moves(i.op) {
                    Move::Load(_) => o.write(reg),
                    Move::Store(_) => o.read(reg),
                }
                o.masked(&[reg]);
            }
            RawInst::MemUnassigned(i) => {
                o.read(Reg::S(i.base));
                let reg = Reg::S(SReg::of_field(i.reg));
                if is_store(i.op) {
                    o.read(reg);
                } else {
                    o.write(reg);
                }
            }
            RawInst::Ctr(i) => match i.op {
                CtrOp::Barrier | CtrOp::WriteCr => {
                    o.read(Reg::S(i.reg0));
                    o.read(Reg::S(i.reg1));
                }
                CtrOp::ReadCr => {
                    o.read(Reg::S(i.reg1));
                    o.write(Reg::S(i.reg0));
                }
                CtrOp::Flush | CtrOp::DcacheInv => o.read(Reg::S(i.reg0)),
                CtrOp::BarrierThread => {}
            },
            RawInst::Jba(i) => match i.op {
                JbaOp::Jret => o.read(Reg::S(SReg::RA)),
                JbaOp::Jmpsr => {
                    o.read(Reg::S(i.reg));
                    o.write(Reg::S(SReg::RA));
                }
                JbaOp::Jmp | JbaOp::Jeret | JbaOp::Beqz | JbaOp::Bnez => o.read(Reg::S(i.reg)),
                JbaOp::Jsys => {}
            },
            RawInst::Jra(i) => match i.op {
                JraOp::Jmpsr => o.write(Reg::S(SReg::RA)),
                JraOp::Jmp | JraOp::Jsys | JraOp::Jret | JraOp::Jeret | JraOp::Beqz | JraOp::Bnez => {}
            },
            RawInst::CtrUnassigned(_) | RawInst::JbaUnassigned(_) | RawInst::JraUnassigned(_) | RawInst::Undefined => {}
        }
        o
    }
}

/// Returns whether the latency of an operation is long enough for a taken branch to lose its
/// result.
pub(crate) const fn is_slow(op: AluOp) -> bool {
    op.latency() as u32 >= machine::LOST_RESULT
}

/// Returns the reach of a result that a taken branch can lose due to its latency
/// (`docs/errata.md`), or `None` if it cannot. The first element is the number of instructions at
/// the branch target that the result can reach: one instruction takes at least one cycle, and float
/// results can add a delay. A load can miss. The second element is whether instructions that read
/// the register get the old value.
pub(crate) fn reach(inst: &RawInst) -> Option<(u32, bool)> {
    let (load, shared) = match *inst {
        RawInst::Rr(i) => {
            let latency = u32::from(i.op.latency());
            let reached = latency.saturating_sub(machine::TAKEN_BRANCH).max(1);
            return (i.dst.number() != PC && is_slow(i.op)).then_some((reached, latency > machine::LOST_RESULT));
        }
        RawInst::Mem(i) => (matches!(moves(i.op), Move::Load(_)), i.shared),
        RawInst::MemUnassigned(i) => (!is_store(i.op), i.shared),
        RawInst::RrUnassigned(_)
        | RawInst::Ri(_)
        | RawInst::RiUnassigned(_)
        | RawInst::Mvi(_)
        | RawInst::MviUnassigned(_)
        | RawInst::Ctr(_)
        | RawInst::CtrUnassigned(_)
        | RawInst::Jba(_)
        | RawInst::JbaUnassigned(_)
        | RawInst::Jra(_)
        | RawInst::JraUnassigned(_)
        | RawInst::Undefined => return None,
    };
    load.then_some(if shared {
        (machine::LOST_RESULT - machine::TAKEN_BRANCH, false)
    } else {
        (LOST_WINDOW, true)
    })
}
