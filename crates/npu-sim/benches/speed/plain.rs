//! A plain interpreter for comparison: predecoded instructions, a `match` in a loop, one flat
//! memory, no caches, no hazards, no stop addresses, no self-modifying code. It supports only the
//! operations of the benchmark loops.

use npu_mc::raw::{AluOp, JbaOp, JraOp, MemOp, RawInst, Ri, Rr};
use npu_mc::{Reg, SReg, VReg, split};
use npu_sim::{Lanes, fp};

const MEMORY: usize = 1 << 22;
const RA: usize = SReg::RA.number() as usize;
const RM: usize = SReg::RM.number() as usize;

/// A source of an operation.
#[derive(Clone, Copy)]
enum Source {
    Scalar(u8),
    Vector(u8),
    Immediate(u32),
}

#[derive(Clone, Copy)]
enum Inst {
    Registers(AluOp, u8, u8, u8),
    Immediate(AluOp, u8, u8, u32),
    /// The link of a call: a register and an address relative to the instruction.
    Link(u8, u32),
    Lanes(AluOp, u8, Source, Source),
    Compare(AluOp, u8, Source, Source),
    Load32(u8, u8, u32),
    LoadU8(u8, u8, u32),
    Store32(u8, u8, u32),
    Store8(u8, u8, u32),
    LoadVector(u8, u8, u32),
    StoreVector(u8, u8, u32),
    Jump(i32),
    Call(i32),
    Bnez(u8, i32),
    JumpRegister(u8),
}

/// The state of one thread.
pub struct Plain {
    base: u32,
    code: Vec<Inst>,
    scalars: [u32; 64],
    vectors: [[u32; 16]; 64],
    memory: Vec<u8>,
}

fn is_compare(op: AluOp) -> bool {
    matches!(op, AluOp::Cmpgt | AluOp::Cmplt)
}

/// Returns a result of one lane, or `None` for an operation that no benchmark loop has.
#[inline(always)]
fn alu(op: AluOp, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mull => a.wrapping_mul(b),
        AluOp::Shr => a.checked_shr(b).unwrap_or(0),
        AluOp::Shl => a.checked_shl(b).unwrap_or(0),
        AluOp::Cmpgt => u32::from(a as i32 > b as i32),
        AluOp::Cmplt => u32::from((a as i32) < b as i32),
        AluOp::Move => a,
        AluOp::Fadd => fp::add(a, b),
        AluOp::Fsub => fp::sub(a, b),
        AluOp::Fmul => fp::mul(a, b),
        AluOp::Fdiv => fp::div(a, b),
        AluOp::Cmpfge => {
            if fp::gt(a, b) || fp::eq(a, b) {
                0xffff
            } else {
                0
            }
        }
        _ => return None,
    })
}

fn decode(word: u32) -> Option<Inst> {
    let source = |register: Reg| match register {
        Reg::S(register) => Source::Scalar(register.number()),
        Reg::V(register) => Source::Vector(register.number()),
    };
    match split(word) {
        RawInst::Rr(Rr {
            op, dst, src0, src1, ..
        }) => {
            alu(op, 0, 0)?;
            let d = dst.number();
            match (dst, src0, src1) {
                (Reg::V(_), ..) => Some(Inst::Lanes(op, d, source(src0), source(src1))),
                (Reg::S(_), Reg::V(_), _) if is_compare(op) => Some(Inst::Compare(op, d, source(src0), source(src1))),
                (Reg::S(_), Reg::S(a), Reg::S(b)) => Some(Inst::Registers(op, d, a.number(), b.number())),
                (Reg::S(_), ..) => None,
            }
        }
        RawInst::Ri(Ri { op, dst, src0, imm, .. }) => {
            alu(op, 0, 0)?;
            let (d, imm) = (dst.number(), imm as u32);
            match (dst, src0) {
                (Reg::S(_), Reg::S(SReg::PC)) => Some(Inst::Link(d, imm)),
                (Reg::S(_), Reg::S(a)) => Some(Inst::Immediate(op, d, a.number(), imm)),
                (Reg::V(_), Reg::V(_)) => Some(Inst::Lanes(op, d, source(src0), Source::Immediate(imm))),
                (Reg::S(_), Reg::V(_)) | (Reg::V(_), Reg::S(_)) => None,
            }
        }
        RawInst::Mem(i) => {
            let (reg, base, offset) = (i.reg, i.base.number(), i.offset as u32);
            Some(match i.op {
                MemOp::Load32 => Inst::Load32(reg, base, offset),
                MemOp::Load32U8 => Inst::LoadU8(reg, base, offset),
                MemOp::Store32 => Inst::Store32(reg, base, offset),
                MemOp::Store328 => Inst::Store8(reg, base, offset),
                MemOp::LoadV16i32 => Inst::LoadVector(reg, base, offset),
                MemOp::StoreV16i32 => Inst::StoreVector(reg, base, offset),
                _ => return None,
            })
        }
        RawInst::Jba(i) => match i.op {
            JbaOp::Bnez => Some(Inst::Bnez(i.reg.number(), i.offset / 4)),
            JbaOp::Jmp => Some(Inst::JumpRegister(i.reg.number())),
            JbaOp::Jret => Some(Inst::JumpRegister(RA as u8)),
            JbaOp::Jmpsr | JbaOp::Jsys | JbaOp::Jeret | JbaOp::Beqz => None,
        },
        RawInst::Jra(i) => match i.op {
            JraOp::Jmp => Some(Inst::Jump(i.offset / 4)),
            JraOp::Jmpsr => Some(Inst::Call(i.offset / 4)),
            JraOp::Jsys | JraOp::Jret | JraOp::Jeret | JraOp::Beqz | JraOp::Bnez => None,
        },
        RawInst::Mvi(_)
        | RawInst::Ctr(_)
        | RawInst::RrUnassigned(_)
        | RawInst::RiUnassigned(_)
        | RawInst::MviUnassigned(_)
        | RawInst::MemUnassigned(_)
        | RawInst::CtrUnassigned(_)
        | RawInst::JbaUnassigned(_)
        | RawInst::JraUnassigned(_)
        | RawInst::Undefined => None,
    }
}

impl Plain {
    /// Creates a thread at the start of the code `words` at address `base`; returns `None` if an
    /// instruction is not supported.
    pub fn new(base: u32, words: &[u32], scalars: &[(SReg, u32)], vectors: &[(VReg, Lanes)]) -> Option<Plain> {
        let mut plain = Plain {
            base,
            code: words.iter().map(|&word| decode(word)).collect::<Option<_>>()?,
            scalars: [0; 64],
            vectors: [[0; 16]; 64],
            memory: vec![0; MEMORY],
        };
        for &(register, value) in scalars {
            plain.scalars[usize::from(register.number())] = value;
        }
        for &(register, value) in vectors {
            plain.vectors[usize::from(register.number())] = value.0;
        }
        Some(plain)
    }

    /// Returns a scalar register by number.
    pub fn scalar(&self, number: u8) -> u32 {
        self.scalars[usize::from(number & 63)]
    }

    /// Returns a vector register by number.
    pub fn vector(&self, number: u8) -> [u32; 16] {
        self.vectors[usize::from(number & 63)]
    }

    fn lanes(&self, source: Source) -> [u32; 16] {
        match source {
            Source::Scalar(number) => [self.scalars[usize::from(number & 63)]; 16],
            Source::Vector(number) => self.vectors[usize::from(number & 63)],
            Source::Immediate(value) => [value; 16],
        }
    }

    fn set_lanes(&mut self, register: u8, lanes: [u32; 16]) {
        let mask = self.scalars[RM];
        for (k, (old, new)) in self.vectors[usize::from(register & 63)]
            .iter_mut()
            .zip(lanes)
            .enumerate()
        {
            if mask >> k & 1 != 0 {
                *old = new;
            }
        }
    }

    fn range(&self, base: u8, offset: u32, size: usize) -> std::ops::Range<usize> {
        let address = self.scalars[usize::from(base & 63)].wrapping_add(offset) as usize;
        address..address + size
    }

    fn load<const N: usize>(&self, base: u8, offset: u32) -> Option<[u8; N]> {
        self.memory.get(self.range(base, offset, N))?.try_into().ok()
    }

    fn store(&mut self, base: u8, offset: u32, bytes: &[u8]) -> Option<()> {
        let range = self.range(base, offset, bytes.len());
        self.memory.get_mut(range)?.copy_from_slice(bytes);
        Some(())
    }

    /// Executes `instructions` instructions; returns `None` if the program leaves its code or
    /// memory.
    pub fn run(&mut self, instructions: u64) -> Option<()> {
        let mut at = 0usize;
        for _ in 0..instructions {
            let inst = *self.code.get(at)?;
            at += 1;
            let s = |number: u8| usize::from(number & 63);
            match inst {
                Inst::Registers(op, d, a, b) => {
                    self.scalars[s(d)] = alu(op, self.scalars[s(a)], self.scalars[s(b)])?;
                }
                Inst::Immediate(op, d, a, imm) => self.scalars[s(d)] = alu(op, self.scalars[s(a)], imm)?,
                Inst::Link(d, imm) => self.scalars[s(d)] = self.base + 4 * (at as u32 - 1) + imm,
                Inst::Lanes(op, d, a, b) => {
                    let (a, b) = (self.lanes(a), self.lanes(b));
                    let mut result = [0; 16];
                    for ((result, a), b) in result.iter_mut().zip(a).zip(b) {
                        *result = alu(op, a, b)?;
                    }
                    self.set_lanes(d, result);
                }
                Inst::Compare(op, d, a, b) => {
                    let (a, b) = (self.lanes(a), self.lanes(b));
                    let mut set = 0;
                    for (k, (a, b)) in a.into_iter().zip(b).enumerate() {
                        set |= alu(op, a, b)? << k;
                    }
                    self.scalars[s(d)] = set;
                }
                Inst::Load32(d, base, offset) => self.scalars[s(d)] = u32::from_le_bytes(self.load(base, offset)?),
                Inst::LoadU8(d, base, offset) => self.scalars[s(d)] = u32::from(self.load::<1>(base, offset)?[0]),
                Inst::Store32(d, base, offset) => self.store(base, offset, &self.scalars[s(d)].to_le_bytes())?,
                Inst::Store8(d, base, offset) => self.store(base, offset, &[self.scalars[s(d)] as u8])?,
                Inst::LoadVector(d, base, offset) => {
                    let bytes: [u8; 64] = self.load(base, offset)?;
                    let mut lanes = [0; 16];
                    for (lane, bytes) in lanes.iter_mut().zip(bytes.as_chunks().0) {
                        *lane = u32::from_le_bytes(*bytes);
                    }
                    self.set_lanes(d, lanes);
                }
                Inst::StoreVector(d, base, offset) => {
                    let mut bytes = [0; 64];
                    for (bytes, lane) in bytes.as_chunks_mut().0.iter_mut().zip(self.vectors[s(d)]) {
                        *bytes = lane.to_le_bytes();
                    }
                    self.store(base, offset, &bytes)?;
                }
                Inst::Jump(words) => at = at.wrapping_add_signed(words as isize - 1),
                Inst::Call(words) => {
                    self.scalars[RA] = self.base + 4 * at as u32;
                    at = at.wrapping_add_signed(words as isize - 1);
                }
                Inst::Bnez(a, words) => {
                    if self.scalars[s(a)] != 0 {
                        at = at.wrapping_add_signed(words as isize - 1);
                    }
                }
                Inst::JumpRegister(a) => at = (self.scalars[s(a)].wrapping_sub(self.base) / 4) as usize,
            }
        }
        Some(())
    }
}
