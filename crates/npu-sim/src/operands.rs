//! Which registers an instruction reads and writes, whatever its word.

use crate::alu;
use crate::mem_op::{is_store, is_vector_access};
use crate::registers::{PC, RA, RM};
use npu_mc::raw::{AluOp, CtrOp, JbaOp, JraOp, MviOp, RawInst};
use npu_mc::{SReg, VReg, machine};

/// Registers an instruction reads and writes, as bit sets by number. The PC (63) is not in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operands {
    pub scalar_reads: u64,
    pub scalar_writes: u64,
    pub vector_reads: u64,
    pub vector_writes: u64,
}

impl Operands {
    fn read(&mut self, number: u8, vector: bool) {
        if vector {
            self.vector_reads |= 1 << number;
        } else if number != PC {
            self.scalar_reads |= 1 << number;
        }
    }

    fn write(&mut self, number: u8, vector: bool) {
        if vector {
            self.vector_writes |= 1 << number;
        } else if number != PC {
            self.scalar_writes |= 1 << number;
        }
    }

    fn masked(&mut self) {
        self.scalar_reads |= 1 << RM;
    }

    /// The operands of an instruction.
    pub fn of(inst: &RawInst) -> Operands {
        let mut o = Operands::default();
        match *inst {
            RawInst::Rr {
                op,
                dst,
                src0,
                src1,
                dst_v,
                src0_v,
                src1_v,
                ..
            } => {
                o.read(src0, src0_v);
                if AluOp::from_code(op).is_some_and(|op| !alu::is_unary(op)) {
                    o.read(src1, src1_v);
                }
                o.write(dst, dst_v);
                if dst_v || src0_v || src1_v {
                    o.masked();
                }
            }
            RawInst::Ri {
                dst,
                src0,
                dst_v,
                src0_v,
                ..
            } => {
                o.read(src0, src0_v);
                o.write(dst, dst_v);
                if dst_v || src0_v {
                    o.masked();
                }
            }
            RawInst::Mvi { op, dst, dst_v, .. } => {
                match MviOp::from_code(op) {
                    Some(MviOp::Movei | MviOp::Moveil | MviOp::Moveih) => o.write(dst, dst_v),
                    None => {}
                }
                if dst_v {
                    o.masked();
                }
            }
            RawInst::Mem { op, reg, base, .. } => {
                o.read(base, false);
                let vector = is_vector_access(op);
                if is_store(op) {
                    o.read(reg, vector);
                } else {
                    o.write(reg, vector);
                }
                if vector {
                    o.masked();
                }
            }
            RawInst::Ctr { op, reg0, reg1 } => match CtrOp::from_code(op) {
                Some(CtrOp::Barrier | CtrOp::WriteCr) => {
                    o.read(reg0, false);
                    o.read(reg1, false);
                }
                Some(CtrOp::ReadCr) => {
                    o.read(reg1, false);
                    o.write(reg0, false);
                }
                Some(CtrOp::Flush | CtrOp::DcacheInv) => o.read(reg0, false),
                Some(CtrOp::BarrierThread) | None => {}
            },
            RawInst::Jba { op, reg, .. } => match JbaOp::from_code(op) {
                Some(JbaOp::Jret) => o.read(RA, false),
                Some(JbaOp::Jmpsr) => {
                    o.read(reg, false);
                    o.write(RA, false);
                }
                Some(JbaOp::Jmp | JbaOp::Jeret | JbaOp::Beqz | JbaOp::Bnez) => o.read(reg, false),
                Some(JbaOp::Jsys) | None => {}
            },
            RawInst::Jra { op, .. } => match JraOp::from_code(op) {
                Some(JraOp::Jmpsr) => o.write(RA, false),
                Some(JraOp::Jmp | JraOp::Jsys | JraOp::Jret | JraOp::Jeret | JraOp::Beqz | JraOp::Bnez) | None => {}
            },
            RawInst::Undefined => {}
        }
        o
    }
}

/// Whether the latency of an operation lets its result be lost before a taken branch.
pub(crate) const fn is_slow(op: AluOp) -> bool {
    op.latency() as u32 >= machine::LOST_RESULT
}

/// Whether the result of an instruction can be lost before a taken branch by its own latency (`docs/errata.md`). A load
/// can miss.
pub(crate) fn has_long_latency(inst: &RawInst) -> bool {
    match *inst {
        RawInst::Rr { op, dst, .. } if dst != PC => AluOp::from_code(op).is_some_and(is_slow),
        RawInst::Mem { op, .. } => !is_store(op),
        RawInst::Rr { .. }
        | RawInst::Ri { .. }
        | RawInst::Mvi { .. }
        | RawInst::Ctr { .. }
        | RawInst::Jba { .. }
        | RawInst::Jra { .. }
        | RawInst::Undefined => false,
    }
}

/// The instructions at a branch target that a lost result can reach, and whether those among them that read the register get its
/// old value. One instruction is at least one cycle; float results can delay a result by some more.
pub(crate) fn reach(inst: &RawInst) -> (u32, bool) {
    match *inst {
        RawInst::Rr { op, .. } => {
            let latency = AluOp::from_code(op).map_or(0, |op| u32::from(op.latency()));
            (
                latency.saturating_sub(machine::TAKEN_BRANCH).max(1),
                latency > machine::LOST_RESULT,
            )
        }
        RawInst::Mem { shared: true, .. } => (machine::LOST_RESULT - machine::TAKEN_BRANCH, false),
        // Loads; the others have no long latency.
        RawInst::Mem { .. }
        | RawInst::Ri { .. }
        | RawInst::Mvi { .. }
        | RawInst::Ctr { .. }
        | RawInst::Jba { .. }
        | RawInst::Jra { .. }
        | RawInst::Undefined => (crate::hazard::LOST_WINDOW, true),
    }
}

/// Name of a register for messages.
pub(crate) fn register_name(number: u8, vector: bool) -> &'static str {
    if vector {
        VReg::of_field(number).name()
    } else {
        SReg::of_field(number).name()
    }
}

/// Name of a scalar register, for messages.
pub(crate) fn scalar_name(number: u8) -> &'static str {
    register_name(number, false)
}
