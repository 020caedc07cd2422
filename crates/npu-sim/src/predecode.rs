//! Instruction words turned into compact operations for the fast interpreter, page by page.
//!
//! An operation is 8 bytes and stands for exactly one word, so a store to code is followed by decoding the stored words again
//! and nothing else. Whatever is not common is [`Kind::Slow`] and goes to [`crate::exec`].

use crate::alu::{self, Class};
use crate::memory::{CodeWrites, Memory, MemoryFull, PAGE_SIZE};
use crate::thread::{PC, RA, RM};
use npu_mc::raw::{AluOp, JbaOp, JraOp, MemOp, MviOp, RawInst};
use std::collections::BTreeSet;

/// Words in a page.
pub(crate) const PAGE_WORDS: usize = (PAGE_SIZE / 4) as usize;

/// What the fast interpreter does for an operation. `d`, `a`, `b`, `imm` are the fields of [`Op`]; S is a scalar register,
/// V a vector register. A kind with an `I` at the end takes `imm` as its second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Leave it to the definition.
    Slow,
    /// Undecoded word.
    Nop,
    /// A stop address.
    Break,
    /// Behind the last word of a page.
    PageEnd,
    // Sd = Sa op Sb
    Or,
    And,
    Xor,
    Add,
    Sub,
    Mull,
    Mulhs,
    Mulhu,
    Ashr,
    Shr,
    Shl,
    Cmpeq,
    Cmpne,
    Cmpgt,
    Cmpge,
    Cmplt,
    Cmple,
    Cmpugt,
    Cmpuge,
    Cmpult,
    Cmpule,
    // Sd = Sa op imm
    OrI,
    AndI,
    XorI,
    AddI,
    SubI,
    MullI,
    MulhsI,
    MulhuI,
    AshrI,
    ShrI,
    ShlI,
    CmpeqI,
    CmpneI,
    CmpgtI,
    CmpgeI,
    CmpltI,
    CmpleI,
    CmpugtI,
    CmpugeI,
    CmpultI,
    CmpuleI,
    // Sd = op Sa
    Not,
    Clz,
    Ctz,
    Move,
    Sext8,
    Sext16,
    // Float
    Fadd,
    Fsub,
    Fmul,
    Fdiv,
    Itof,
    Ftoi,
    /// `b` is the second source, `imm` the opcode.
    FloatCompare,
    /// Sd = PC + imm
    AddPc,
    /// Sd = imm
    Movei,
    /// Low half of Sd = imm
    Moveil,
    /// High half of Sd = imm
    Moveih,
    /// `rm` and the mask = Sa
    MoveMask,
    /// `rm` and the mask = imm
    MoveiMask,
    // Main memory at Sa + imm
    LoadS8,
    LoadS16,
    LoadU8,
    LoadU16,
    Load32,
    Store8,
    Store16,
    Store32,
    LoadVector,
    StoreVector,
    // Scratchpad at Sa + imm
    LoadScratchpad,
    StoreScratchpad,
    // Branches by imm words
    Jump,
    /// Like [`Kind::Jump`], with `ra` set.
    Call,
    /// On Sa.
    Beqz,
    /// On Sa.
    Bnez,
    /// To Sa.
    JumpRegister,
    /// Vd = Va op Vb, `imm` is the opcode.
    VectorVector,
    /// Vd = Va op Sb, `imm` is the opcode.
    VectorScalar,
    /// Vd = Sa op Vb, `imm` is the opcode.
    ScalarVector,
    /// Vd = Va op imm, `b` is the opcode.
    VectorImmediate,
    /// Vd = Sa in every lane.
    Splat,
    /// Vd = imm in every lane.
    SplatImmediate,
}

/// A predecoded word. Register fields that a kind does not use hold 63, which names no register.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Op {
    pub kind: Kind,
    pub d: u8,
    pub a: u8,
    pub b: u8,
    pub imm: i32,
}

const NONE: u8 = PC;

impl Op {
    const SLOW: Op = Op::new(Kind::Slow, NONE, NONE, NONE, 0);

    const fn new(kind: Kind, d: u8, a: u8, b: u8, imm: i32) -> Op {
        Op { kind, d, a, b, imm }
    }

    /// The operation of a word that is not at a stop address.
    pub fn decode(word: u32) -> Op {
        Op::common(&npu_mc::split(word)).unwrap_or(Op::SLOW)
    }

    /// The operation, if there is a fast one.
    fn common(inst: &RawInst) -> Option<Op> {
        match *inst {
            RawInst::Undefined => Some(Op::new(Kind::Nop, NONE, NONE, NONE, 0)),
            RawInst::Rr {
                op,
                dst,
                src0,
                src1,
                long,
                dst_v,
                src0_v,
                src1_v,
                ..
            } => {
                let op = AluOp::from_code(op)?;
                // Reads of the PC, jumps by destination 63 and 64-bit float forms are rare.
                let unary = alu::is_unary(op);
                if dst == PC || long || (src0 == PC && !src0_v) || (src1 == PC && !src1_v && !unary) {
                    return None;
                }
                let src1 = if unary { NONE } else { src1 };
                match (dst_v, src0_v, src1_v && !unary) {
                    (false, false, false) => scalar(op, dst, src0, src1, src1_v),
                    (true, s0, s1) if dst != RM => {
                        if !matches!(alu::class(op), Class::Lanes | Class::Float) {
                            return None;
                        }
                        let kind = match (s0, s1) {
                            (true, true) => Kind::VectorVector,
                            (true, false) if unary => {
                                return Some(Op::new(Kind::VectorImmediate, dst, src0, op as u8, 0));
                            }
                            (true, false) => Kind::VectorScalar,
                            (false, true) => Kind::ScalarVector,
                            (false, false) if op == AluOp::Move => {
                                return Some(Op::new(Kind::Splat, dst, src0, NONE, 0));
                            }
                            (false, false) => return None,
                        };
                        Some(Op::new(kind, dst, src0, src1, op as i32))
                    }
                    _ => None,
                }
            }
            RawInst::Ri {
                op,
                dst,
                src0,
                imm,
                dst_v,
                src0_v,
                ..
            } => {
                let op = AluOp::from_code(op)?;
                match (dst_v, src0_v) {
                    // The link of an indirect call.
                    (false, false) if dst != RM && src0 == PC && op == AluOp::Add => {
                        Some(Op::new(Kind::AddPc, dst, NONE, NONE, imm))
                    }
                    (false, false) if dst != RM && src0 != PC => {
                        let kind = immediate_kind(op)?;
                        Some(Op::new(kind, dst, src0, NONE, imm))
                    }
                    (true, true) if dst != RM && alu::class(op) == Class::Lanes => {
                        Some(Op::new(Kind::VectorImmediate, dst, src0, op as u8, imm))
                    }
                    _ => None,
                }
            }
            RawInst::Mvi {
                op, dst, imm, dst_v, ..
            } => {
                let kind = match (MviOp::from_code(op)?, dst_v) {
                    (MviOp::Movei, true) if dst != RM => Kind::SplatImmediate,
                    (MviOp::Movei, false) if dst == RM => Kind::MoveiMask,
                    (_, true) => return None,
                    (_, false) if dst == RM => return None,
                    (MviOp::Movei, false) => Kind::Movei,
                    (MviOp::Moveil, false) => Kind::Moveil,
                    (MviOp::Moveih, false) => Kind::Moveih,
                };
                Some(Op::new(kind, dst, NONE, NONE, imm as i32))
            }
            RawInst::Mem {
                op,
                reg,
                base,
                offset,
                shared,
                ..
            } => {
                let op = MemOp::from_code(op)?;
                let vector = matches!(op, MemOp::LoadV16i32 | MemOp::StoreV16i32);
                if base == PC || (reg == PC && !vector) || (reg == RM && op != MemOp::StoreV16i32) {
                    return None;
                }
                let kind = if shared {
                    match op {
                        MemOp::Load32 => Kind::LoadScratchpad,
                        MemOp::Store32 => Kind::StoreScratchpad,
                        _ => return None,
                    }
                } else {
                    match op {
                        MemOp::Load32S8 => Kind::LoadS8,
                        MemOp::Load32S16 => Kind::LoadS16,
                        MemOp::Load32U8 => Kind::LoadU8,
                        MemOp::Load32U16 => Kind::LoadU16,
                        MemOp::Load32 => Kind::Load32,
                        MemOp::Store328 => Kind::Store8,
                        MemOp::Store3216 => Kind::Store16,
                        MemOp::Store32 => Kind::Store32,
                        MemOp::LoadV16i32 => Kind::LoadVector,
                        MemOp::StoreV16i32 => Kind::StoreVector,
                        _ => return None,
                    }
                };
                Some(Op::new(kind, reg, base, NONE, offset))
            }
            RawInst::Jba { op, reg, offset } => match JbaOp::from_code(op)? {
                JbaOp::Jmp if reg != PC => Some(Op::new(Kind::JumpRegister, NONE, reg, NONE, 0)),
                JbaOp::Jret => Some(Op::new(Kind::JumpRegister, NONE, RA, NONE, 0)),
                JbaOp::Beqz if reg != PC => Some(Op::new(Kind::Beqz, NONE, reg, NONE, words(offset)?)),
                JbaOp::Bnez if reg != PC => Some(Op::new(Kind::Bnez, NONE, reg, NONE, words(offset)?)),
                _ => None,
            },
            RawInst::Jra { op, offset } => match JraOp::from_code(op)? {
                JraOp::Jmp => Some(Op::new(Kind::Jump, NONE, NONE, NONE, words(offset)?)),
                JraOp::Jmpsr => Some(Op::new(Kind::Call, RA, NONE, NONE, words(offset)?)),
                _ => None,
            },
            RawInst::Ctr { .. } => None,
        }
    }
}

/// A branch distance in words. None for a branch to itself, where a run may end, and for one that leaves the word grid.
fn words(offset: i32) -> Option<i32> {
    (offset != 0 && offset % 4 == 0).then_some(offset / 4)
}

/// RR on scalars.
fn scalar(op: AluOp, dst: u8, src0: u8, src1: u8, masked: bool) -> Option<Op> {
    if dst == RM {
        return (op == AluOp::Move).then(|| Op::new(Kind::MoveMask, dst, src0, NONE, 0));
    }
    let kind = match op {
        AluOp::Or => Kind::Or,
        AluOp::And => Kind::And,
        AluOp::Xor => Kind::Xor,
        AluOp::Add => Kind::Add,
        AluOp::Sub => Kind::Sub,
        AluOp::Mull => Kind::Mull,
        AluOp::Mulhs => Kind::Mulhs,
        AluOp::Mulhu => Kind::Mulhu,
        AluOp::Ashr => Kind::Ashr,
        AluOp::Shr => Kind::Shr,
        AluOp::Shl => Kind::Shl,
        AluOp::Cmpeq => Kind::Cmpeq,
        AluOp::Cmpne => Kind::Cmpne,
        AluOp::Cmpgt => Kind::Cmpgt,
        AluOp::Cmpge => Kind::Cmpge,
        AluOp::Cmplt => Kind::Cmplt,
        AluOp::Cmple => Kind::Cmple,
        AluOp::Cmpugt => Kind::Cmpugt,
        AluOp::Cmpuge => Kind::Cmpuge,
        AluOp::Cmpult => Kind::Cmpult,
        AluOp::Cmpule => Kind::Cmpule,
        AluOp::Not => Kind::Not,
        AluOp::Clz => Kind::Clz,
        AluOp::Ctz => Kind::Ctz,
        AluOp::Move | AluOp::Sext32 => Kind::Move,
        AluOp::Sext8 => Kind::Sext8,
        AluOp::Sext16 => Kind::Sext16,
        // A V bit on the unused operand of `itof` makes the operation masked, and its result stale under lane 0 off.
        _ if masked => return None,
        AluOp::Fadd => Kind::Fadd,
        AluOp::Fsub => Kind::Fsub,
        AluOp::Fmul => Kind::Fmul,
        AluOp::Fdiv => Kind::Fdiv,
        AluOp::Itof => Kind::Itof,
        AluOp::Ftoi => Kind::Ftoi,
        AluOp::Cmpfeq | AluOp::Cmpfne | AluOp::Cmpfgt | AluOp::Cmpfge | AluOp::Cmpflt | AluOp::Cmpfle => {
            return Some(Op::new(Kind::FloatCompare, dst, src0, src1, op as i32));
        }
        _ => return None,
    };
    Some(Op::new(kind, dst, src0, src1, 0))
}

/// RI on scalars.
fn immediate_kind(op: AluOp) -> Option<Kind> {
    Some(match op {
        AluOp::Or => Kind::OrI,
        AluOp::And => Kind::AndI,
        AluOp::Xor => Kind::XorI,
        AluOp::Add => Kind::AddI,
        AluOp::Sub => Kind::SubI,
        AluOp::Mull => Kind::MullI,
        AluOp::Mulhs => Kind::MulhsI,
        AluOp::Mulhu => Kind::MulhuI,
        AluOp::Ashr => Kind::AshrI,
        AluOp::Shr => Kind::ShrI,
        AluOp::Shl => Kind::ShlI,
        AluOp::Cmpeq => Kind::CmpeqI,
        AluOp::Cmpne => Kind::CmpneI,
        AluOp::Cmpgt => Kind::CmpgtI,
        AluOp::Cmpge => Kind::CmpgeI,
        AluOp::Cmplt => Kind::CmpltI,
        AluOp::Cmple => Kind::CmpleI,
        AluOp::Cmpugt => Kind::CmpugtI,
        AluOp::Cmpuge => Kind::CmpugeI,
        AluOp::Cmpult => Kind::CmpultI,
        AluOp::Cmpule => Kind::CmpuleI,
        AluOp::Not => Kind::Not,
        AluOp::Clz => Kind::Clz,
        AluOp::Ctz => Kind::Ctz,
        _ => return None,
    })
}

/// A page of operations, closed by [`Kind::PageEnd`].
pub(crate) type PageOps = [Op; PAGE_WORDS + 1];

/// Predecoded pages by the page index of [`Memory`].
pub(crate) struct CodeCache {
    pages: Vec<Option<Box<PageOps>>>,
    identity: u64,
    breakpoints: BTreeSet<u32>,
}

impl CodeCache {
    pub fn new() -> CodeCache {
        CodeCache {
            pages: Vec::new(),
            identity: 0,
            breakpoints: BTreeSet::new(),
        }
    }

    pub fn breakpoints(&self) -> &BTreeSet<u32> {
        &self.breakpoints
    }

    /// Adds or removes a stop address; gives whether it was one.
    pub fn set_breakpoint(&mut self, address: u32, on: bool, memory: &Memory) -> bool {
        let was = if on {
            !self.breakpoints.insert(address)
        } else {
            self.breakpoints.remove(&address)
        };
        self.decode_again(address & !3, memory);
        was
    }

    fn clear(&mut self, memory: &mut Memory) {
        self.pages.clear();
        memory.unmark_all_code();
        self.identity = memory.identity();
    }

    /// The page with that index, if it is predecoded.
    #[inline]
    pub fn page(&self, index: usize) -> Option<&PageOps> {
        self.pages.get(index)?.as_deref()
    }

    /// Brings the cache in line with memory: drops what belongs to another memory, decodes written words again.
    pub fn update(&mut self, memory: &mut Memory) {
        if self.identity != memory.identity() {
            self.clear(memory);
        }
        match memory.take_code_writes() {
            CodeWrites::None => {}
            CodeWrites::All => self.clear(memory),
            CodeWrites::Words(words) => {
                for address in words {
                    self.decode_again(address, memory);
                }
            }
        }
    }

    /// Decodes the word at `address` again if its page is predecoded.
    fn decode_again(&mut self, address: u32, memory: &Memory) {
        let index = memory.page_index(address);
        // The page of addresses never written stays free of stop addresses.
        if index == 0 || self.identity != memory.identity() {
            return;
        }
        let op = self.op_at(address, memory);
        if let Some(page) = self.pages.get_mut(index).and_then(Option::as_deref_mut) {
            page[(address % PAGE_SIZE / 4) as usize] = op;
        }
    }

    fn op_at(&self, address: u32, memory: &Memory) -> Op {
        let mut here = self.breakpoints.range(address..=address | 3);
        if here.next().is_some() {
            Op::new(Kind::Break, NONE, NONE, NONE, 0)
        } else {
            Op::decode(memory.read_u32(address))
        }
    }

    /// Predecodes the page that holds `pc`, if it is not, and gives its index.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when a stop address lies in a page that was never written and cannot get a place of its own.
    pub fn prepare(&mut self, pc: u32, memory: &mut Memory) -> Result<usize, MemoryFull> {
        let first = pc & !(PAGE_SIZE - 1);
        let last = first | (PAGE_SIZE - 1);
        let mut index = memory.page_index(pc);
        // The page of all addresses never written is shared, so it carries no stop addresses.
        if index != 0 || self.breakpoints.range(first..=last).next().is_some() {
            index = memory.mark_code(pc)?;
        }
        if self.page(index).is_some() {
            return Ok(index);
        }
        let mut ops = Box::new([Op::SLOW; PAGE_WORDS + 1]);
        for (op, address) in ops.iter_mut().zip((first..=last).step_by(4)) {
            *op = self.op_at(address, memory);
        }
        ops[PAGE_WORDS] = Op::new(Kind::PageEnd, NONE, NONE, NONE, 0);
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, || None);
        }
        self.pages[index] = Some(ops);
        Ok(index)
    }
}
