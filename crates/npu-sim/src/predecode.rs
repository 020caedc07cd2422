//! Instruction words turned into compact operations for the fast interpreter: some neighbouring words at a time, when one of them is
//! executed.
//!
//! An operation is 8 bytes and stands for exactly one word, so a store to code is followed by decoding the stored words again
//! and nothing else. Whatever is not common is [`Kind::Slow`] and goes to [`crate::exec`].

use crate::alu::{self, Operation, operations};
use crate::late;
use crate::mem_op::{Extension, Load, Move, Store, access_size, is_double, moves};
use crate::memory::{CodeWrites, Memory, MemoryFull, PAGE_SIZE};
use crate::registers::{LANES, PC, RA, RM};
use npu_mc::raw::{AluOp, JbaOp, JraOp, MemOp, MviOp, RawInst};
use std::collections::BTreeSet;

/// Words in a page.
pub(crate) const PAGE_WORDS: usize = (PAGE_SIZE / 4) as usize;

/// Words that are predecoded together.
const GROUP: usize = 16;

macro_rules! kinds {
    ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
        /// What the fast interpreter does for an operation. `d`, `a`, `b`, `imm` are the fields of [`Op`]; S is a scalar register,
        /// V a vector register.
        ///
        /// Each operation of the R format has two of its own: Sd = Sa op Sb, and with an `I` at the end Sd = Sa op imm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind {
            /// Leave it to the definition.
            Slow,
            /// Undecoded word.
            Nop,
            /// A stop address.
            Break,
            /// Not predecoded.
            NotYet,
            /// After the last word of a page.
            PageEnd,
            $($name, $immediate,)*
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
            /// Vd = low bytes of the words of the line at Sa + imm, extended; `b` is the opcode.
            LoadNarrow,
            /// Low bytes of the lanes of Vd to Sa + imm; `b` is the opcode.
            StoreNarrow,
            // Words of the scratchpad at Sa + imm
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

            /// Sd = Sa op imm
            const fn of_immediate(op: AluOp) -> Kind {
                match op {
                    $(AluOp::$name => Kind::$immediate,)*
                }
            }
        }
    };
}
operations!(kinds);

/// A predecoded word. Register fields that a kind does not use hold 63, which names no register.
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
                    (true, true, true) if dst != RM && op == AluOp::Shuffle => {
                        Some(Op::new(Kind::ShuffleVectors, dst, src0, src1, 0))
                    }
                    (true, s0, s1) if dst != RM => {
                        if !is_by_lane(op) {
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
                    (false, true, s1) if is_compare(op) => {
                        let kind = if s1 {
                            Kind::CompareVectors
                        } else {
                            Kind::CompareVectorScalar
                        };
                        Some(Op::new(kind, dst, src0, src1, op as i32))
                    }
                    (false, true, false) if dst != RM && op == AluOp::Getlane => {
                        Some(Op::new(Kind::GetLaneOf, dst, src0, src1, 0))
                    }
                    (false, true, false) if op == AluOp::CrtMask => Some(Op::new(Kind::MakeMask, dst, src0, NONE, 0)),
                    (true, _, _) | (false, true, _) | (false, false, true) => None,
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
                    (true, true) if dst != RM && is_by_lane(op) => {
                        Some(Op::new(Kind::VectorImmediate, dst, src0, op as u8, imm))
                    }
                    (false, true)
                        if dst != PC && dst != RM && op == AluOp::Getlane && (0..LANES as i32).contains(&imm) =>
                    {
                        Some(Op::new(Kind::GetLaneImmediate, dst, src0, NONE, imm))
                    }
                    (false, true) if dst != PC && is_compare(op) => {
                        Some(Op::new(Kind::CompareVectorImmediate, dst, src0, op as u8, imm))
                    }
                    (false, false) | (true, true) | (false, true) | (true, false) => None,
                }
            }
            RawInst::Mvi {
                op, dst, imm, dst_v, ..
            } => {
                let kind = match (MviOp::from_code(op)?, dst_v) {
                    (MviOp::Movei, true) if dst != RM => Kind::SplatImmediate,
                    (MviOp::Movei, false) if dst == RM => Kind::MoveiMask,
                    (MviOp::Moveil, true) if dst != RM => Kind::MoveilVector,
                    (MviOp::Moveih, true) if dst != RM => Kind::MoveihVector,
                    (MviOp::Movei | MviOp::Moveil | MviOp::Moveih, true) => return None,
                    (MviOp::Moveil | MviOp::Moveih, false) if dst == RM => return None,
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
                let kind = match (moves(op), shared) {
                    _ if is_double(op) => return None,
                    (Move::Load(Load::Scalar(Extension::Signed8)), false) => Kind::LoadS8,
                    (Move::Load(Load::Scalar(Extension::Signed16)), false) => Kind::LoadS16,
                    (Move::Load(Load::Scalar(Extension::Unsigned8)), false) => Kind::LoadU8,
                    (Move::Load(Load::Scalar(Extension::Unsigned16)), false) => Kind::LoadU16,
                    (Move::Load(Load::Scalar(Extension::Word)), false) => Kind::Load32,
                    (Move::Load(Load::Scalar(Extension::Word)), true) => Kind::LoadScratchpad,
                    (Move::Load(Load::Vector(Extension::Word)), false) => Kind::LoadVector,
                    (Move::Load(Load::Vector(Extension::Word)), true) => Kind::LoadVectorScratchpad,
                    (Move::Load(Load::Vector(_)), false) => Kind::LoadNarrow,
                    (Move::Store(Store::Scalar), shared) => match (access_size(op), shared) {
                        (1, false) => Kind::Store8,
                        (2, false) => Kind::Store16,
                        (4, false) => Kind::Store32,
                        (4, true) => Kind::StoreScratchpad,
                        // Narrow stores to the scratchpad are rare.
                        _ => return None,
                    },
                    (Move::Store(Store::Vector), false) if access_size(op) == 4 => Kind::StoreVector,
                    (Move::Store(Store::Vector), false) => Kind::StoreNarrow,
                    (Move::Store(Store::Vector), true) if access_size(op) == 4 => Kind::StoreVectorScratchpad,
                    // Rare: narrow accesses of the scratchpad, and what the hardware does not do.
                    (Move::Load(Load::Scalar(_)), true)
                    | (Move::Load(Load::Vector(_) | Load::Gather), _)
                    | (Move::Store(Store::Vector | Store::Splat), _) => return None,
                };
                use Kind::{
                    LoadNarrow, LoadVector, LoadVectorScratchpad, StoreNarrow, StoreVector, StoreVectorScratchpad,
                };
                let load = matches!(kind, LoadVector | LoadNarrow | LoadVectorScratchpad);
                let store = matches!(kind, StoreVector | StoreNarrow | StoreVectorScratchpad);
                if base == PC || (reg == PC && !load && !store) || (reg == RM && !store) {
                    return None;
                }
                let narrow = matches!(kind, LoadNarrow | StoreNarrow);
                Some(Op::new(kind, reg, base, if narrow { op as u8 } else { NONE }, offset))
            }
            RawInst::Jba { op, reg, offset } => match JbaOp::from_code(op)? {
                JbaOp::Jmp if reg != PC => Some(Op::new(Kind::JumpRegister, NONE, reg, NONE, 0)),
                JbaOp::Jret => Some(Op::new(Kind::JumpRegister, NONE, RA, NONE, 0)),
                JbaOp::Beqz if reg != PC => Some(Op::new(Kind::Beqz, NONE, reg, NONE, words(offset)?)),
                JbaOp::Bnez if reg != PC => Some(Op::new(Kind::Bnez, NONE, reg, NONE, words(offset)?)),
                JbaOp::Jmp | JbaOp::Beqz | JbaOp::Bnez | JbaOp::Jmpsr | JbaOp::Jsys | JbaOp::Jeret => None,
            },
            RawInst::Jra { op, offset } => match JraOp::from_code(op)? {
                JraOp::Jmp => Some(Op::new(Kind::Jump, NONE, NONE, NONE, words(offset)?)),
                JraOp::Jmpsr => Some(Op::new(Kind::Call, RA, NONE, NONE, words(offset)?)),
                JraOp::Jsys | JraOp::Jret | JraOp::Jeret | JraOp::Beqz | JraOp::Bnez => None,
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
    // A V bit on the operand that an operation does not use makes it one on vectors, which reads `rm`.
    let src1 = if masked { RM } else { src1 };
    if dst == RM {
        return (op == AluOp::Move).then(|| Op::new(Kind::MoveMask, dst, src0, src1, 0));
    }
    match alu::operation(op) {
        // A V bit on the unused operand of `itof` makes the operation masked, and its result stale under lane 0 off.
        Operation::FloatUnary(_) | Operation::FloatBinary(_) | Operation::FloatCompare(_) if masked => None,
        Operation::Unary(_)
        | Operation::Binary(_)
        | Operation::Compare(_)
        | Operation::FloatUnary(_)
        | Operation::FloatBinary(_)
        | Operation::FloatCompare(_) => Some(Op::new(Kind::of_registers(op), dst, src0, src1, 0)),
        Operation::Shuffle | Operation::GetLane | Operation::Mask | Operation::NoUnit | Operation::Hang => None,
    }
}

/// RI on scalars.
fn immediate_kind(op: AluOp) -> Option<Kind> {
    match alu::operation(op) {
        Operation::Unary(_) | Operation::Binary(_) | Operation::Compare(_) => Some(Kind::of_immediate(op)),
        // No number of the float unit fits the format.
        Operation::FloatUnary(_)
        | Operation::FloatBinary(_)
        | Operation::FloatCompare(_)
        | Operation::Shuffle
        | Operation::GetLane
        | Operation::Mask
        | Operation::NoUnit
        | Operation::Hang => None,
    }
}

/// Whether the fast interpreter does the operation on vectors.
const fn is_by_lane(op: AluOp) -> bool {
    match alu::operation(op) {
        Operation::Unary(_) | Operation::Binary(_) | Operation::FloatUnary(_) | Operation::FloatBinary(_) => true,
        Operation::Compare(_)
        | Operation::FloatCompare(_)
        | Operation::Shuffle
        | Operation::GetLane
        | Operation::Mask
        | Operation::NoUnit
        | Operation::Hang => false,
    }
}

/// Whether the operation makes a bit set of the lanes of a vector.
const fn is_compare(op: AluOp) -> bool {
    matches!(alu::operation(op), Operation::Compare(_) | Operation::FloatCompare(_))
}

/// A page of operations, closed by [`Kind::PageEnd`].
pub(crate) type PageOps = [Op; PAGE_WORDS + 1];

/// Predecoded pages by the page index of [`Memory`].
pub(crate) struct CodeCache {
    pages: Vec<Option<Box<PageOps>>>,
    identity: u64,
    breakpoints: BTreeSet<u32>,
    /// Counts changes of words in pages that were predecoded before.
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

    /// Different whenever an operation may have changed that [`CodeCache::op`] gave.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The operation at an address, if some of its page is predecoded.
    #[cfg(feature = "jit")]
    pub fn op(&self, address: u32, memory: &Memory) -> Option<Op> {
        let index = memory.page_index(address);
        // Index 0 is shared by all pages never written.
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

    /// Takes over the stop addresses of `other`.
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

    /// A word of a predecoded page is another one.
    fn changed(&mut self) {
        self.generation += 1;
    }

    fn clear(&mut self, memory: &mut Memory) {
        self.pages.clear();
        self.changed();
        memory.unmark_all_code();
        self.identity = memory.identity();
    }

    /// The page with that index, if any of it is predecoded.
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

    /// Decodes the word at `address` again, and those around it whose results a branch may lose now, or not any more.
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
        // The page of addresses never written stays free of stop addresses.
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
                // The definition keeps the result back.
                return Op::SLOW;
            }
            op
        }
    }

    /// Predecodes the word at `pc` and its neighbours, if it is not, and gives the index of its page.
    ///
    /// # Errors
    ///
    /// [`MemoryFull`] when a stop address lies in a page that was never written and cannot get a place of its own.
    #[inline]
    pub fn prepare(&mut self, pc: u32, memory: &mut Memory) -> Result<usize, MemoryFull> {
        let index = memory.page_index(pc);
        let at = (pc % PAGE_SIZE / 4) as usize;
        // A page that has been predecoded is marked as code.
        if index != 0 && self.page(index).is_some_and(|page| page[at].kind != Kind::NotYet) {
            return Ok(index);
        }
        self.predecode(pc, memory)
    }

    /// The same for a word that is not predecoded yet, or has no page of its own.
    #[cold]
    fn predecode(&mut self, pc: u32, memory: &mut Memory) -> Result<usize, MemoryFull> {
        let first = pc & !(PAGE_SIZE - 1);
        let last = first | (PAGE_SIZE - 1);
        let at = (pc % PAGE_SIZE / 4) as usize;
        // The page of all addresses never written is shared, so it carries no stop addresses.
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
