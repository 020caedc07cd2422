//! Translation of instruction words to compact operations for the fast interpreter, in groups of
//! neighboring words on first execution.
//!
//! An operation has 8 bytes and represents exactly one word, so that a store to code only requires
//! decoding the stored words again. Uncommon words are [`Kind::Slow`], and [`crate::exec`] executes
//! them.

use crate::alu::{self, Operation};
use crate::late;
use crate::mem_op::{Extension, Load, Move, Store, access_size, moved, moves};
use crate::memory::{CodeWrites, Memory, MemoryFull, PAGE_SIZE};
use crate::registers::{LANES, PC, RA, RM};
use npu_mc::for_each_alu_op;
use npu_mc::raw::{AluOp, JbaOp, JraOp, Mem, MemOp, MviOp, RawInst, Ri, Rr};
use npu_mc::{Reg, SReg};
use std::collections::BTreeSet;

/// The number of words in a page.
pub(crate) const PAGE_WORDS: usize = (PAGE_SIZE / 4) as usize;

/// The number of words that are predecoded together.
const GROUP: usize = 16;

macro_rules! kinds {
    ($($name:ident $(, $immediate:ident)?;)*) => {
        /// The effect of an operation. `d`, `a`, `b`, `imm` are the fields of [`Op`]; S is a scalar
        /// register, V a vector register.
        ///
        /// Each operation of the R format has a kind Sd = Sa op Sb, and each operation of the I
        /// format a kind Sd = Sa op imm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind {
            /// An operation for the definition.
            Slow,
            /// An undecoded word.
            Nop,
            /// A stop address.
            Break,
            /// A word that is not predecoded yet.
            NotYet,
            /// The end marker after the last word of a page.
            PageEnd,
            $($name, $($immediate,)?)*
            /// Sd = PC + imm
            AddPc,
            /// Sd = imm
            Movei,
            /// Low half of Sd = imm
            Moveil,
            /// High half of Sd = imm
            Moveih,
            /// `rm` and the lane mask = Sa
            MoveMask,
            /// `rm` and the lane mask = imm
            MoveiMask,
            // Main memory at Sa + imm.
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
            // Scratchpad at Sa + imm.
            LoadScratchpad,
            StoreScratchpad,
            // Branches by imm words.
            Jump,
            /// A jump that sets `ra`.
            Call,
            /// A branch on Sa.
            Beqz,
            /// A branch on Sa.
            Bnez,
            /// A jump to Sa.
            JumpRegister,
            /// Vd = Va op Vb, `imm` is the opcode.
            VectorVector,
            /// Vd = Va op Sb, `imm` is the opcode.
            VectorScalar,
            /// Vd = Sa op Vb, `imm` is the opcode.
            ScalarVector,
            /// Vd = Va op imm, `b` is the opcode.
            VectorImmediate,
            /// Sd = the lanes in which Va op Vb holds, `imm` is the opcode.
            CompareVectors,
            /// Sd = the lanes in which Va op Sb holds, `imm` is the opcode.
            CompareVectorScalar,
            /// Sd = the lanes in which Va op imm holds, `b` is the opcode.
            CompareVectorImmediate,
            /// Vd = Sa in every lane.
            Splat,
            /// Vd = imm in every lane.
            SplatImmediate,
            /// Low halves of the lanes of Vd = imm
            MoveilVector,
            /// High halves of the lanes of Vd = imm
            MoveihVector,
            /// Vd = the lanes of Va with the numbers in Vb
            ShuffleVectors,
            /// Sd = the lane of Va with the number in Sb
            GetLaneOf,
            /// Sd = lane imm of Va
            GetLaneImmediate,
            /// Sd = bit 0 of each lane of Va, as a bit set.
            MakeMask,
            /// Vd = extended low bytes of the words of the line at Sa + imm; `b` is the opcode.
            LoadNarrow,
            /// The line at Sa + imm = low bytes of the lanes of Vd; `b` is the opcode.
            StoreNarrow,
            // Words of the scratchpad at Sa + imm.
            LoadVectorScratchpad,
            StoreVectorScratchpad,
        }

        impl Kind {
            /// Sd = Sa op Sb
            const fn of_registers(op: AluOp) -> Kind {
                match op {
                    $(AluOp::$name => Kind::$name,)*
                }
            }

            /// Sd = Sa op imm, if the I format has the operation.
            fn of_immediate(op: AluOp) -> Option<Kind> {
                $($(
                    if op == AluOp::$name {
                        return Some(Kind::$immediate);
                    }
                )?)*
                None
            }
        }
    };
}
for_each_alu_op!(kinds);

/// A predecoded word. Unused register fields have number 63, which is no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    const NOT_YET: Op = Op::new(Kind::NotYet, NONE, NONE, NONE, 0);

    const fn new(kind: Kind, d: u8, a: u8, b: u8, imm: i32) -> Op {
        Op { kind, d, a, b, imm }
    }

    /// Decodes a word that is not at a stop address.
    pub fn decode(word: u32) -> Op {
        Op::common(&npu_mc::split(word)).unwrap_or(Op::SLOW)
    }

    /// Returns the operation of an instruction that the fast interpreter supports.
    fn common(inst: &RawInst) -> Option<Op> {
        match *inst {
            // Reads of the PC, jumps by destination 63 and 64-bit float forms are rare.
            RawInst::Rr(i) if i.dst.number() == PC || i.long || is_pc(i.src0) => None,
            RawInst::Rr(i) if alu::is_unary(i.op) => unary_operation(i),
            RawInst::Rr(i) if is_pc(i.src1) => None,
            RawInst::Rr(i) => binary_operation(i),
            RawInst::Ri(i) => immediate_operation(i),
            RawInst::Mvi(i) => {
                let kind = match (i.op, i.dst) {
                    (MviOp::Movei, Reg::S(SReg::RM)) => Kind::MoveiMask,
                    _ if i.dst.number() == RM => return None,
                    (MviOp::Movei, Reg::S(_)) => Kind::Movei,
                    (MviOp::Moveil, Reg::S(_)) => Kind::Moveil,
                    (MviOp::Moveih, Reg::S(_)) => Kind::Moveih,
                    (MviOp::Movei, Reg::V(_)) => Kind::SplatImmediate,
                    (MviOp::Moveil, Reg::V(_)) => Kind::MoveilVector,
                    (MviOp::Moveih, Reg::V(_)) => Kind::MoveihVector,
                };
                Some(Op::new(kind, i.dst.number(), NONE, NONE, i.imm as i32))
            }
            RawInst::Mem(i) => access(i),
            RawInst::Jba(i) => {
                let reg = i.reg.number();
                match i.op {
                    JbaOp::Jret => Some(Op::new(Kind::JumpRegister, NONE, RA, NONE, 0)),
                    JbaOp::Jmp | JbaOp::Beqz | JbaOp::Bnez if reg == PC => None,
                    JbaOp::Jmp => Some(Op::new(Kind::JumpRegister, NONE, reg, NONE, 0)),
                    JbaOp::Beqz => Some(Op::new(Kind::Beqz, NONE, reg, NONE, words(i.offset)?)),
                    JbaOp::Bnez => Some(Op::new(Kind::Bnez, NONE, reg, NONE, words(i.offset)?)),
                    JbaOp::Jmpsr | JbaOp::Jsys | JbaOp::Jeret => None,
                }
            }
            RawInst::Jra(i) => match i.op {
                JraOp::Jmp => Some(Op::new(Kind::Jump, NONE, NONE, NONE, words(i.offset)?)),
                JraOp::Jmpsr => Some(Op::new(Kind::Call, RA, NONE, NONE, words(i.offset)?)),
                JraOp::Jsys | JraOp::Jret | JraOp::Jeret | JraOp::Beqz | JraOp::Bnez => None,
            },
            RawInst::Undefined => Some(Op::new(Kind::Nop, NONE, NONE, NONE, 0)),
            RawInst::Ctr(_)
            | RawInst::CtrUnassigned(_)
            | RawInst::RrUnassigned(_)
            | RawInst::RiUnassigned(_)
            | RawInst::MviUnassigned(_)
            | RawInst::MemUnassigned(_)
            | RawInst::JbaUnassigned(_)
            | RawInst::JraUnassigned(_) => None,
        }
    }
}

fn is_pc(register: Reg) -> bool {
    register == Reg::S(SReg::PC)
}

/// Returns a branch distance in words. Returns `None` for a branch to itself, where a run may end,
/// and for an unaligned distance.
fn words(offset: i32) -> Option<i32> {
    (offset != 0 && offset % 4 == 0).then_some(offset / 4)
}

/// Decodes an R instruction whose operation ignores its second source.
fn unary_operation(inst: Rr<AluOp>) -> Option<Op> {
    let Rr {
        op, dst, src0, src1, ..
    } = inst;
    let (d, a) = (dst.number(), src0.number());
    match (dst, src0) {
        (Reg::V(_), _) if d == RM => None,
        // A V bit on the unused operand makes the operation one on vectors, which reads `rm`. The
        // result of a float unit is then stale if lane 0 is off.
        (Reg::S(_), Reg::S(_)) if src1.is_vector() && matches!(alu::operation(op), Operation::FloatUnary(_)) => None,
        (Reg::S(_), Reg::S(_)) => scalar_operation(op, d, a, if src1.is_vector() { RM } else { NONE }),
        (Reg::V(_), Reg::V(_)) if is_by_lane(op) => Some(Op::new(Kind::VectorImmediate, d, a, op as u8, 0)),
        (Reg::V(_), Reg::S(_)) if op == AluOp::Move => Some(Op::new(Kind::Splat, d, a, NONE, 0)),
        (Reg::S(_), Reg::V(_)) if op == AluOp::CrtMask => Some(Op::new(Kind::MakeMask, d, a, NONE, 0)),
        (Reg::V(_), _) | (Reg::S(_), Reg::V(_)) => None,
    }
}

/// Decodes an R instruction whose operation uses both sources.
fn binary_operation(inst: Rr<AluOp>) -> Option<Op> {
    let Rr {
        op, dst, src0, src1, ..
    } = inst;
    let (d, a, b) = (dst.number(), src0.number(), src1.number());
    let kind = match (dst, src0, src1) {
        (Reg::S(_), Reg::S(_), Reg::S(_)) => return scalar_operation(op, d, a, b),
        (Reg::V(_), ..) if d == RM => return None,
        (Reg::V(_), Reg::V(_), Reg::V(_)) if op == AluOp::Shuffle => Kind::ShuffleVectors,
        (Reg::V(_), Reg::V(_), Reg::V(_)) if is_by_lane(op) => Kind::VectorVector,
        (Reg::V(_), Reg::V(_), Reg::S(_)) if is_by_lane(op) => Kind::VectorScalar,
        (Reg::V(_), Reg::S(_), Reg::V(_)) if is_by_lane(op) => Kind::ScalarVector,
        (Reg::S(_), Reg::V(_), Reg::V(_)) if is_compare(op) => Kind::CompareVectors,
        (Reg::S(_), Reg::V(_), Reg::S(_)) if is_compare(op) => Kind::CompareVectorScalar,
        (Reg::S(_), Reg::V(_), Reg::S(_)) if op == AluOp::Getlane && d != RM => Kind::GetLaneOf,
        (Reg::V(_), ..) | (Reg::S(_), Reg::V(_), _) | (Reg::S(_), Reg::S(_), Reg::V(_)) => return None,
    };
    Some(Op::new(kind, d, a, b, op as i32))
}

/// Decodes an R instruction on scalars.
fn scalar_operation(op: AluOp, d: u8, a: u8, b: u8) -> Option<Op> {
    let kind = match d {
        RM if op == AluOp::Move => Kind::MoveMask,
        RM => return None,
        _ if is_on_scalars(op) => Kind::of_registers(op),
        _ => return None,
    };
    Some(Op::new(kind, d, a, b, 0))
}

/// Decodes an I instruction.
fn immediate_operation(inst: Ri<AluOp>) -> Option<Op> {
    let Ri { op, dst, src0, imm, .. } = inst;
    let (d, a) = (dst.number(), src0.number());
    let new = |kind, a, b| Some(Op::new(kind, d, a, b, imm));
    match (dst, src0) {
        (Reg::S(SReg::RM), Reg::S(_)) => None,
        // The link of an indirect call.
        (Reg::S(_), Reg::S(SReg::PC)) if op == AluOp::Add => new(Kind::AddPc, NONE, NONE),
        (Reg::S(_), Reg::S(src0)) if src0 != SReg::PC && is_on_scalars(op) => new(Kind::of_immediate(op)?, a, NONE),
        (Reg::S(_), Reg::S(_)) => None,
        (Reg::V(_), Reg::V(_)) if d != RM && is_by_lane(op) => new(Kind::VectorImmediate, a, op as u8),
        (Reg::S(SReg::PC), Reg::V(_)) => None,
        (Reg::S(_), Reg::V(_)) if is_compare(op) => new(Kind::CompareVectorImmediate, a, op as u8),
        (Reg::S(_), Reg::V(_)) if d != RM && op == AluOp::Getlane && (0..LANES as i32).contains(&imm) => {
            new(Kind::GetLaneImmediate, a, NONE)
        }
        (Reg::S(_) | Reg::V(_), Reg::V(_)) | (Reg::V(_), Reg::S(_)) => None,
    }
}

/// Decodes a load or store.
fn access(inst: Mem<MemOp>) -> Option<Op> {
    let Mem { op, reg, base, .. } = inst;
    let (kind, narrow) = match (moves(op), access_size(op), inst.shared) {
        // No unit moves 64 bits.
        (_, 8.., _) => return None,
        (Move::Load(Load::Scalar(extension)), _, false) => (load_kind(extension), false),
        (Move::Load(Load::Scalar(Extension::Word)), _, true) => (Kind::LoadScratchpad, false),
        (Move::Load(Load::Vector(Extension::Word)), _, false) => (Kind::LoadVector, false),
        (Move::Load(Load::Vector(Extension::Word)), _, true) => (Kind::LoadVectorScratchpad, false),
        (Move::Load(Load::Vector(_)), _, false) => (Kind::LoadNarrow, true),
        (Move::Store(Store::Scalar), 1, false) => (Kind::Store8, false),
        (Move::Store(Store::Scalar), 2, false) => (Kind::Store16, false),
        (Move::Store(Store::Scalar), _, false) => (Kind::Store32, false),
        (Move::Store(Store::Scalar), 4, true) => (Kind::StoreScratchpad, false),
        (Move::Store(Store::Vector), 4, false) => (Kind::StoreVector, false),
        (Move::Store(Store::Vector), 4, true) => (Kind::StoreVectorScratchpad, false),
        (Move::Store(Store::Vector), _, false) => (Kind::StoreNarrow, true),
        // Narrow scratchpad accesses are rare, and the hardware does not implement the others.
        (Move::Load(Load::Scalar(_) | Load::Vector(_)), _, true)
        | (Move::Load(Load::Gather), ..)
        | (Move::Store(Store::Scalar | Store::Vector), _, true)
        | (Move::Store(Store::Splat), ..) => return None,
    };
    let is_common = match moved(op, reg) {
        Reg::S(register) => register != SReg::PC && register != SReg::RM,
        // A load would set the lane mask.
        Reg::V(_) => reg != RM || matches!(moves(op), Move::Store(_)),
    };
    let b = if narrow { op as u8 } else { NONE };
    (base != SReg::PC && is_common).then(|| Op::new(kind, reg, base.number(), b, inst.offset))
}

fn load_kind(extension: Extension) -> Kind {
    match extension {
        Extension::Signed8 => Kind::LoadS8,
        Extension::Signed16 => Kind::LoadS16,
        Extension::Unsigned8 => Kind::LoadU8,
        Extension::Unsigned16 => Kind::LoadU16,
        Extension::Word => Kind::Load32,
    }
}

/// Returns whether the fast interpreter supports the operation on scalars.
fn is_on_scalars(op: AluOp) -> bool {
    is_by_lane(op) || is_compare(op)
}

/// Returns whether the fast interpreter supports the operation on vectors.
fn is_by_lane(op: AluOp) -> bool {
    use Operation::{Binary, FloatBinary, FloatUnary, Unary};
    matches!(
        alu::operation(op),
        Unary(_) | Binary(_) | FloatUnary(_) | FloatBinary(_)
    )
}

/// Returns whether the operation compares the lanes of vectors into a bit set.
fn is_compare(op: AluOp) -> bool {
    matches!(alu::operation(op), Operation::Compare(_) | Operation::FloatCompare(_))
}

/// A page of operations, terminated by [`Kind::PageEnd`].
pub(crate) type PageOps = [Op; PAGE_WORDS + 1];

/// Predecoded pages by the page index of [`Memory`].
pub(crate) struct CodeCache {
    pages: Vec<Option<Box<PageOps>>>,
    identity: u64,
    breakpoints: BTreeSet<u32>,
    /// A counter of changes to words in predecoded pages.
    generation: u64,
}

impl CodeCache {
    pub fn new() -> CodeCache {
        CodeCache {
            pages: Vec::new(),
            identity: 0,
            breakpoints: BTreeSet::new(),
            generation: 0,
        }
    }

    /// Returns a number that changes whenever a result of [`CodeCache::op`] may have changed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the operation at an address, if any word of its page is predecoded.
    #[cfg(feature = "jit")]
    pub fn op(&self, address: u32, memory: &Memory) -> Option<Op> {
        let index = memory.page_index(address);
        // All unwritten pages share index 0.
        let page = self.page(index).filter(|_| index != 0)?;
        let op = page[(address % PAGE_SIZE / 4) as usize];
        Some(if op.kind == Kind::NotYet {
            self.op_at(address, memory)
        } else {
            op
        })
    }

    pub fn breakpoints(&self) -> &BTreeSet<u32> {
        &self.breakpoints
    }

    /// Adds or removes a stop address; returns whether it was one before.
    pub fn set_breakpoint(&mut self, address: u32, on: bool, memory: &Memory) -> bool {
        let was = if on {
            !self.breakpoints.insert(address)
        } else {
            self.breakpoints.remove(&address)
        };
        self.decode_again(address & !3, memory);
        was
    }

    /// Copies the stop addresses of `other`.
    pub fn match_breakpoints(&mut self, other: &CodeCache, memory: &Memory) {
        if self.breakpoints == other.breakpoints {
            return;
        }
        let changed: Vec<u32> = self
            .breakpoints
            .symmetric_difference(&other.breakpoints)
            .copied()
            .collect();
        self.breakpoints.clone_from(&other.breakpoints);
        for address in changed {
            self.decode_again(address & !3, memory);
        }
    }

    /// Records a change to a word of a predecoded page.
    fn changed(&mut self) {
        self.generation += 1;
    }

    fn clear(&mut self, memory: &mut Memory) {
        self.pages.clear();
        self.changed();
        memory.unmark_all_code();
        self.identity = memory.identity();
    }

    /// Returns the page with this index, if any of its words is predecoded.
    #[inline]
    pub fn page(&self, index: usize) -> Option<&PageOps> {
        self.pages.get(index)?.as_deref()
    }

    /// Synchronizes the cache with memory: drops the pages of another memory, and decodes written
    /// words again.
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

    /// Decodes the word at `address` again, and also nearby words, since a branch may now lose
    /// their results or no longer lose them.
    fn decode_again(&mut self, address: u32, memory: &Memory) {
        let around = 4 * late::NEIGHBOURS;
        let (first, last) = (address.saturating_sub(around), address.saturating_add(around));
        for near in (first..=last).step_by(4) {
            self.decode_word_again(near, memory);
        }
    }

    /// Decodes the word at `address` again if it is predecoded.
    fn decode_word_again(&mut self, address: u32, memory: &Memory) {
        let index = memory.page_index(address);
        // The shared page of unwritten memory has no stop addresses.
        if index == 0 || self.identity != memory.identity() {
            return;
        }
        let Some(page) = self.page(index) else {
            return;
        };
        let at = (address % PAGE_SIZE / 4) as usize;
        let is_decoded = page[at].kind != Kind::NotYet;
        self.changed();
        if !is_decoded {
            return;
        }
        let op = self.op_at(address, memory);
        if let Some(page) = self.pages.get_mut(index).and_then(Option::as_deref_mut) {
            page[at] = op;
        }
    }

    fn op_at(&self, address: u32, memory: &Memory) -> Op {
        let mut here = self.breakpoints.range(address..=address | 3);
        if here.next().is_some() {
            Op::new(Kind::Break, NONE, NONE, NONE, 0)
        } else {
            let op = Op::decode(memory.read_u32(address));
            let word = |address: u32| npu_mc::split(memory.read_u32(address));
            if op.kind != Kind::Slow && op.kind != Kind::Nop && late::may_be_lost(address, &word(address), &word) {
                // The definition models the delayed result.
                return Op::SLOW;
            }
            op
        }
    }

    /// Predecodes the word at `pc` and its neighbors if necessary, and returns the index of its
    /// page.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] if an unwritten page with a stop address cannot be allocated.
    #[inline]
    pub fn prepare(&mut self, pc: u32, memory: &mut Memory) -> Result<usize, MemoryFull> {
        let index = memory.page_index(pc);
        let at = (pc % PAGE_SIZE / 4) as usize;
        // A page with predecoded words is marked as code.
        if index != 0 && self.page(index).is_some_and(|page| page[at].kind != Kind::NotYet) {
            return Ok(index);
        }
        self.predecode(pc, memory)
    }

    /// Implements [`CodeCache::prepare`] for a word that is not predecoded yet or is in an
    /// unwritten page.
    #[cold]
    fn predecode(&mut self, pc: u32, memory: &mut Memory) -> Result<usize, MemoryFull> {
        let first = pc & !(PAGE_SIZE - 1);
        let last = first | (PAGE_SIZE - 1);
        let at = (pc % PAGE_SIZE / 4) as usize;
        // All unwritten addresses share one page, which therefore cannot have stop addresses.
        if self.breakpoints.range(first..=last).next().is_some() && memory.is_unwritten(pc) {
            memory.own_page(pc)?;
        }
        let mut index = memory.page_index(pc);
        if index != 0 || memory.is_view() {
            index = memory.mark_code(pc)?;
        }
        if self.page(index).is_some_and(|page| page[at].kind != Kind::NotYet) {
            return Ok(index);
        }
        let from = at - at % GROUP;
        let group: [Op; GROUP] = std::array::from_fn(|k| self.op_at(first + (from + k) as u32 * 4, memory));
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, || None);
        }
        let page = self.pages[index].get_or_insert_with(|| {
            let mut page = Box::new([Op::NOT_YET; PAGE_WORDS + 1]);
            page[PAGE_WORDS] = Op::new(Kind::PageEnd, NONE, NONE, NONE, 0);
            page
        });
        page[from..from + GROUP].copy_from_slice(&group);
        Ok(index)
    }
}
