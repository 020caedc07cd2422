//! Detection of errata whose outcome depends on timing or on undriven nets.
//!
//! The simulator tracks three kinds of state. Each costs nothing while it does not occur:
//!
//! - **lost results** (`docs/errata.md`): the result of an instruction with a latency of at least
//!   11 cycles directly before a taken branch. After such a branch the register is watched for at
//!   most [`LOST_WINDOW`] instructions. [`crate::late`] computes the values;
//! - **undriven bits** (`docs/machine/operations.md`): bits 31:16 of an integer compare of vectors.
//!   They are tracked bit by bit through moves, logic, arithmetic, shifts and memory. An
//!   instruction uses an undriven bit if the bit can change a driven bit, an address, a branch or a
//!   vector lane;
//! - **stuck registers**: the destinations of operations that never complete. Their next use hangs
//!   the thread.

use crate::alu::{self, Operation, Spread};
use crate::late::{Candidate, Late};
use crate::mem_op::{Extension, Load, Move, Store, access_size, moves};
use crate::operands::{Operands, reach};
use crate::registers::{LANES, PC, RA, RM};
use npu_mc::raw::{AluOp, JbaOp, Mem, MemOp, MviOp, RawInst, Ri, Rr};
use npu_mc::{Reg, RegFile, SReg, VReg};
use rustc_hash::FxHashMap;

/// The number of instructions after a taken branch in which a lost result can still be missing. It
/// covers a load miss with a slow memory; one instruction takes at least one cycle.
pub const LOST_WINDOW: u32 = 64;

/// A result that may be missing.
#[derive(Clone, Copy, Debug)]
struct Lost {
    scalar: u64,
    vector: u64,
    producer: u32,
    left: u32,
    /// Whether an instruction at the target can read the old value of the register. A result that
    /// arrives late can always overwrite a value that the target writes.
    reads: bool,
}

/// The undriven bits of registers and memory words.
#[derive(Clone, Debug)]
struct Undriven {
    registers: [u32; 64],
    /// Undriven bits by word address.
    memory: FxHashMap<u32, u32>,
    /// A superset of the [`word_bit`]s of the words in `memory`.
    filter: u64,
}

impl Default for Undriven {
    fn default() -> Undriven {
        Undriven {
            registers: [0; 64],
            memory: FxHashMap::default(),
            filter: 0,
        }
    }
}

/// The undriven bits of an integer compare of vectors.
pub(crate) const UPPER_HALF: u32 = 0xffff_0000;

/// The bit of a word address in a set of words modulo 64.
#[inline(always)]
pub(crate) fn word_bit(address: u32) -> u64 {
    1 << (address >> 2 & 63)
}

/// Iterates over the numbers in a set of registers.
#[cfg(feature = "jit")]
fn numbers(mut registers: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let number = (registers != 0).then_some(registers.trailing_zeros() as u8)?;
        registers &= registers - 1;
        Some(number)
    })
}

/// The tracked state of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// The address of the last instruction if it has a long latency, or of the last undecoded word
    /// directly after such an instruction.
    pub last_long: u32,
    stuck_scalars: u64,
    stuck_vectors: u64,
    stuck_store: bool,
    /// Rarely more than one: each entry needs a slow instruction and a taken branch within the
    /// window.
    lost: Vec<Lost>,
    undriven_scalars: u64,
    undriven: Option<Box<Undriven>>,
    /// The last instruction, if a taken branch directly after it would lose its result.
    pub candidate: Option<Box<Candidate>>,
    /// Results in flight after one of them lost its busy bit.
    pub late: Option<Box<Late>>,
    /// The issue cycle of the next instruction, if a timing model provides it.
    pub clock: Option<u64>,
}

/// An address that no aligned instruction has.
const NOWHERE: u32 = u32::MAX;

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            last_long: NOWHERE,
            stuck_scalars: 0,
            stuck_vectors: 0,
            stuck_store: false,
            lost: Vec::new(),
            undriven_scalars: 0,
            undriven: None,
            candidate: None,
            late: None,
            clock: None,
        }
    }
}

impl Watch {
    /// Returns whether anything is tracked.
    #[inline]
    pub fn active(&self) -> bool {
        !self.lost.is_empty() || self.stuck_scalars | self.stuck_vectors != 0 || self.undriven.is_some()
    }

    /// The set of registers, scalar and vector combined, that may lack their last result.
    #[inline]
    pub fn unsettled(&self) -> u64 {
        self.lost
            .iter()
            .fold(self.stuck_scalars | self.stuck_vectors, |set, l| {
                set | l.scalar | l.vector
            })
    }

    /// The set of scalar registers with undriven bits.
    #[inline]
    pub fn undriven_scalars(&self) -> u64 {
        self.undriven_scalars
    }

    /// Returns whether reads of the lane mask have to be tracked. Undriven bits do not count: they
    /// are in the upper half of `rm`, which no lane uses.
    pub fn mask_matters(&self) -> bool {
        self.lost.iter().fold(self.stuck_scalars, |set, l| set | l.scalar) >> RM & 1 != 0
    }

    /// A superset of the [`word_bit`]s of the memory words with undriven bits; loads and stores of
    /// these words have to be tracked.
    pub fn memory(&self) -> u64 {
        self.undriven.as_ref().map_or(0, |u| u.filter)
    }

    /// The number of instructions until a watched register expires.
    pub fn horizon(&self) -> u64 {
        self.lost.iter().map(|l| u64::from(l.left)).min().unwrap_or(u64::MAX)
    }

    /// Counts executed instructions: subtracts them from the remaining number of each watched
    /// register.
    pub fn advance(&mut self, instructions: u64) {
        if self.lost.is_empty() {
            return;
        }
        let instructions = u32::try_from(instructions).unwrap_or(u32::MAX);
        for lost in &mut self.lost {
            lost.left = lost.left.saturating_sub(instructions);
        }
        self.lost.retain(|lost| lost.left != 0);
    }

    /// Resets the tracking of branches after the host set the PC.
    pub fn restart(&mut self) {
        self.last_long = NOWHERE;
        self.lost.clear();
    }

    /// Updates the state after the host set a scalar register.
    pub fn scalar_set(&mut self, number: u8) {
        self.set_undriven(number, 0);
        self.stuck_scalars &= !(1 << number);
    }

    /// Updates the state after the host set a vector register.
    pub fn vector_set(&mut self, number: u8) {
        self.stuck_vectors &= !(1 << number);
    }

    /// Records a taken branch that does not directly follow a long operation.
    #[inline(always)]
    pub fn forget_long(&mut self) {
        self.last_long = NOWHERE;
    }

    /// Records that the word at `pc` was executed.
    #[inline]
    pub fn note_executed(&mut self, pc: u32, inst: &RawInst) {
        if matches!(inst, RawInst::Undefined) {
            if self.last_long.wrapping_add(4) == pc {
                self.last_long = pc;
            }
        } else if reach(inst).is_some() {
            self.last_long = pc;
        }
    }

    /// Records a taken branch at `pc`; `word` reads the program to find the producer before the
    /// branch.
    pub fn note_taken(&mut self, pc: u32, word: impl Fn(u32) -> RawInst) {
        let adjacent = self.last_long.wrapping_add(4) == pc;
        self.last_long = NOWHERE;
        if !adjacent {
            return;
        }
        let mut at = pc.wrapping_sub(4);
        while word(at) == RawInst::Undefined && at != pc {
            at = at.wrapping_sub(4);
        }
        let inst = word(at);
        let Some((left, reads_old)) = reach(&inst) else {
            return;
        };
        let operands = Operands::of(&inst);
        // A branch that reads the result has waited for it.
        let reads = Operands::of(&word(pc));
        if reads.scalar_reads & operands.scalar_writes | reads.vector_reads & operands.vector_writes != 0 {
            return;
        }
        if self.lost.iter().any(|lost| lost.producer == at) {
            // `crate::late` has already recorded it.
            return;
        }
        self.lost.push(Lost {
            scalar: operands.scalar_writes,
            vector: operands.vector_writes,
            producer: at,
            left,
            reads: reads_old,
        });
    }

    /// Records that the result of the instruction at `producer` lost its busy bit. It arrives
    /// `latency` cycles after its issue.
    pub fn expect_lost(&mut self, number: u8, vector: bool, producer: u32, latency: u64) {
        if self.lost.iter().any(|lost| lost.producer == producer) {
            return;
        }
        let latency = u32::try_from(latency).unwrap_or(u32::MAX);
        let bit = 1 << (number & 63);
        self.lost.push(Lost {
            scalar: if vector { 0 } else { bit },
            vector: if vector { bit } else { 0 },
            producer,
            left: latency.saturating_sub(npu_mc::machine::TAKEN_BRANCH).max(1),
            reads: latency > npu_mc::machine::LOST_RESULT,
        });
    }

    /// Records the destination of an operation that never completes.
    pub fn stick(&mut self, register: Reg) {
        match register {
            Reg::S(SReg::PC) => {}
            Reg::S(register) => self.stuck_scalars |= 1 << register.number(),
            Reg::V(register) => self.stuck_vectors |= 1 << register.number(),
        }
    }

    /// Returns a stuck register among `operands`, if any; the thread then hangs at issue.
    pub fn stuck_use(&self, operands: &Operands) -> Option<Reg> {
        let scalars = (operands.scalar_reads | operands.scalar_writes) & self.stuck_scalars;
        let vectors = (operands.vector_reads | operands.vector_writes) & self.stuck_vectors;
        if scalars != 0 {
            Reg::new(RegFile::Scalar, scalars.trailing_zeros() as u8)
        } else {
            Reg::new(RegFile::Vector, vectors.trailing_zeros() as u8)
        }
    }

    /// Records a store that never completes.
    pub fn stick_store(&mut self) {
        self.stuck_store = true;
    }

    /// Returns whether an operation of the thread never completes, so that the thread cannot reach
    /// a barrier.
    pub fn anything_stuck(&self) -> bool {
        self.stuck_store || self.stuck_scalars | self.stuck_vectors != 0
    }

    /// Checks the operands of an instruction before its execution; returns a description if one is
    /// a lost result.
    pub fn lost_use(&mut self, operands: &Operands) -> Option<String> {
        let touched = |l: &Lost| {
            (operands.scalar_reads | operands.scalar_writes) & l.scalar
                | (operands.vector_reads | operands.vector_writes) & l.vector
        };
        let place = self.lost.iter().position(|l| touched(l) != 0)?;
        let lost = self.lost.swap_remove(place);
        let reads = (operands.scalar_reads & lost.scalar) | (operands.vector_reads & lost.vector);
        let register = if lost.vector != 0 {
            Reg::V(VReg::of_field(lost.vector.trailing_zeros() as u8))
        } else {
            Reg::S(SReg::of_field(lost.scalar.trailing_zeros() as u8))
        };
        let producer = lost.producer;
        if reads != 0 && !lost.reads {
            None
        } else if reads != 0 {
            Some(format!(
                "{register} may still hold its old value: its producer at {producer:#010x} was issued immediately before a taken branch"
            ))
        } else {
            Some(format!(
                "the result of {producer:#010x}, issued immediately before a taken branch, may arrive in {register} after this write"
            ))
        }
    }

    /// Marks the upper half of a scalar register as undriven.
    pub fn mark_upper_half(&mut self, number: u8) {
        if number != PC {
            self.set_undriven(number, UPPER_HALF);
        }
    }

    /// Returns whether each of these scalar registers has exactly its upper half undriven.
    #[cfg(feature = "jit")]
    pub fn only_upper_halves(&self, registers: u64) -> bool {
        self.undriven.as_ref().map_or(registers == 0, |undriven| {
            numbers(registers).all(|number| undriven.registers[usize::from(number)] == UPPER_HALF)
        })
    }

    /// Sets the state of these scalar registers: the upper halves of those in `undriven` are
    /// undriven, and all other bits are driven.
    #[cfg(feature = "jit")]
    pub fn set_upper_halves(&mut self, registers: u64, undriven: u64) {
        for number in numbers(registers) {
            self.set_undriven(number, if undriven >> number & 1 != 0 { UPPER_HALF } else { 0 });
        }
    }

    /// Records that a scalar register received a result without undriven bits.
    pub fn driven(&mut self, number: u8) {
        self.set_undriven(number, 0);
    }

    /// Records a copy of a scalar register.
    pub fn copied(&mut self, to: u8, from: u8) {
        self.set_undriven(to, self.get_undriven(from));
    }

    /// Records a load or store of a scalar register at an aligned word of main memory.
    pub fn word_moved(&mut self, op: MemOp, register: u8, address: u32) {
        self.follow_memory(op, register, address, false);
    }

    fn get_undriven(&self, number: u8) -> u32 {
        self.undriven
            .as_ref()
            .map_or(0, |u| u.registers[usize::from(number & 63)])
    }

    /// Returns the undriven bits of an aligned word of memory.
    pub fn word(&self, address: u32) -> u32 {
        self.undriven
            .as_ref()
            .and_then(|u| u.memory.get(&address))
            .copied()
            .unwrap_or(0)
    }

    /// Sets the undriven bits of an aligned word of memory.
    pub fn set_word(&mut self, address: u32, bits: u32) {
        let undriven = if bits == 0 {
            let Some(undriven) = &mut self.undriven else {
                return;
            };
            undriven.memory.remove(&address);
            undriven
        } else {
            let undriven = self.undriven.get_or_insert_default();
            undriven.memory.insert(address, bits);
            undriven.filter |= word_bit(address);
            undriven
        };
        if undriven.memory.is_empty() {
            undriven.filter = 0;
            if self.undriven_scalars == 0 {
                self.undriven = None;
            }
        }
    }

    /// Records that no word of an aligned line of memory has undriven bits.
    pub fn line_driven(&mut self, address: u32) {
        for lane in 0..LANES as u32 {
            self.set_word(address.wrapping_add(4 * lane), 0);
        }
    }

    fn set_undriven(&mut self, number: u8, bits: u32) {
        if bits == 0 && self.undriven.is_none() {
            return;
        }
        let undriven = self.undriven.get_or_insert_default();
        undriven.registers[usize::from(number & 63)] = bits;
        let bit = 1 << (number & 63);
        if bits == 0 {
            self.undriven_scalars &= !bit;
            if self.undriven_scalars == 0 && undriven.memory.is_empty() {
                self.undriven = None;
            }
        } else {
            self.undriven_scalars |= bit;
        }
    }

    /// Propagates undriven bits through the instruction, before it executes: `value` returns the
    /// values of its source registers. Returns the register whose undriven bits the instruction
    /// uses, if any.
    pub fn follow_undriven(&mut self, inst: &RawInst, value: impl Fn(SReg) -> u32) -> Option<Reg> {
        self.undriven.as_ref()?;
        match *inst {
            RawInst::Rr(Rr {
                op, dst, src0, src1, ..
            }) => {
                let a = self.bits_of(src0);
                let b = if alu::is_unary(op) { 0 } else { self.bits_of(src1) };
                let is_use = match [dst, src0, src1] {
                    [Reg::S(dst), Reg::S(src0), Reg::S(src1)] => {
                        self.follow_scalars(op, dst, [value(src0), value(src1)], [a, b])
                    }
                    [dst, ..] => self.follow_lanes(dst, a | b),
                };
                is_use.then_some(if a != 0 { src0 } else { src1 })
            }
            RawInst::Ri(Ri { op, dst, src0, imm, .. }) => {
                let a = self.bits_of(src0);
                let is_use = match [dst, src0] {
                    [Reg::S(dst), Reg::S(src0)] => self.follow_scalars(op, dst, [value(src0), imm as u32], [a, 0]),
                    [dst, _] => self.follow_lanes(dst, a),
                };
                is_use.then_some(src0)
            }
            RawInst::RiUnassigned(i) => {
                let a = self.bits_of(i.src0);
                let is_use = (i.dst.is_vector() || i.src0.is_vector()) && self.follow_lanes(i.dst, a);
                is_use.then_some(i.src0)
            }
            RawInst::Mvi(i) => {
                let kept = match i.op {
                    MviOp::Moveil => 0xffff_0000,
                    MviOp::Moveih => 0x0000_ffff,
                    MviOp::Movei => 0,
                };
                if let Reg::S(dst) = i.dst {
                    self.set_undriven(dst.number(), self.get_undriven(dst.number()) & kept);
                }
                None
            }
            RawInst::Mem(Mem { base, .. }) | RawInst::MemUnassigned(Mem { base, .. }) if self.used(base).is_some() => {
                self.follow_results(inst);
                self.used(base)
            }
            RawInst::Mem(i) => {
                let address = value(i.base).wrapping_add(i.offset as u32);
                self.follow_memory(i.op, i.reg, address, i.shared);
                None
            }
            RawInst::Jba(i) => {
                let undriven = self.get_undriven(i.reg.number());
                let decided = value(i.reg) & !undriven != 0;
                match i.op {
                    JbaOp::Beqz | JbaOp::Bnez => (undriven != 0 && !decided).then_some(Reg::S(i.reg)),
                    JbaOp::Jmp | JbaOp::Jeret => self.used(i.reg),
                    JbaOp::Jmpsr => {
                        let found = self.used(i.reg);
                        self.set_undriven(RA, 0);
                        found
                    }
                    JbaOp::Jret => self.used(SReg::RA),
                    JbaOp::Jsys => None,
                }
            }
            RawInst::Ctr(_) | RawInst::Jra(_) => {
                let reads = Operands::of(inst).scalar_reads & self.undriven_scalars;
                self.follow_results(inst);
                (reads != 0).then(|| Reg::S(SReg::of_field(reads.trailing_zeros() as u8)))
            }
            RawInst::MemUnassigned(_)
            | RawInst::RrUnassigned(_)
            | RawInst::MviUnassigned(_)
            | RawInst::CtrUnassigned(_)
            | RawInst::JbaUnassigned(_)
            | RawInst::JraUnassigned(_)
            | RawInst::Undefined => None,
        }
    }

    /// Returns the undriven bits of a source.
    fn bits_of(&self, register: Reg) -> u32 {
        match register {
            Reg::S(SReg::PC) | Reg::V(_) => 0,
            Reg::S(register) => self.get_undriven(register.number()),
        }
    }

    /// Returns the register if it has undriven bits.
    fn used(&self, register: SReg) -> Option<Reg> {
        Some(Reg::S(register)).filter(|&register| self.bits_of(register) != 0)
    }

    /// Propagates undriven bits through an operation on scalars; returns whether the operation uses
    /// them.
    fn follow_scalars(&mut self, op: AluOp, dst: SReg, [a, b]: [u32; 2], [a_bits, b_bits]: [u32; 2]) -> bool {
        let (result, is_use) = through(op, a, a_bits, b, b_bits);
        self.set_undriven(dst.number(), result);
        is_use
    }

    /// Propagates undriven bits through an operation on vectors, which uses all bits of its
    /// sources.
    fn follow_lanes(&mut self, dst: Reg, bits: u32) -> bool {
        if let Reg::S(dst) = dst {
            self.set_undriven(dst.number(), 0);
        }
        bits != 0
    }

    /// Marks the results of an instruction as driven.
    fn follow_results(&mut self, inst: &RawInst) {
        let written = Operands::of(inst).scalar_writes;
        if written != 0 {
            self.set_undriven(written.trailing_zeros() as u8, 0);
        }
    }

    fn follow_memory(&mut self, op: MemOp, reg: u8, address: u32, shared: bool) {
        let word = address & !3;
        let shift = 8 * (address & 3);
        let size = match (access_size(op), moves(op)) {
            (1, Move::Load(Load::Scalar(_)) | Move::Store(Store::Scalar)) => 0xff,
            (2, Move::Load(Load::Scalar(_)) | Move::Store(Store::Scalar)) => 0xffff,
            // Longer accesses, and those of more than a scalar.
            _ => u32::MAX,
        };
        match moves(op) {
            // Undriven bits are not tracked through the scratchpad.
            Move::Store(_) if self.undriven.is_none() || shared => {}
            Move::Store(Store::Vector) => self.line_driven(word),
            Move::Store(Store::Scalar | Store::Splat) => {
                let bits = self.get_undriven(reg);
                self.set_word(word, (self.word(word) & !(size << shift)) | ((bits & size) << shift));
            }
            Move::Load(Load::Vector(_)) => {}
            Move::Load(load @ (Load::Scalar(_) | Load::Gather)) => {
                let mut bits = if shared { 0 } else { (self.word(word) >> shift) & size };
                let sign = size ^ (size >> 1);
                if let Load::Scalar(Extension::Signed8 | Extension::Signed16) = load
                    && bits & sign != 0
                {
                    bits |= !size;
                }
                self.set_undriven(reg, bits);
            }
        }
    }
}

/// Returns the undriven bits of a scalar result, and whether the operation uses an undriven bit.
fn through(op: AluOp, a: u32, a_bits: u32, b: u32, b_bits: u32) -> (u32, bool) {
    let any = a_bits | b_bits;
    if any == 0 {
        return (0, false);
    }
    let bits = match (alu::spread(op), alu::operation(op)) {
        (Spread::Copied, _) => a_bits,
        (Spread::And, _) => (a_bits & (b | b_bits)) | (b_bits & (a | a_bits)),
        (Spread::Or, _) => (a_bits & (!b | b_bits)) | (b_bits & (!a | a_bits)),
        (Spread::Xor, _) => any,
        (Spread::Carried, _) => any | any.wrapping_neg(),
        (Spread::Moved, Operation::Unary(f)) => f(a_bits),
        (Spread::Moved, Operation::Binary(f)) if b_bits == 0 => f(a_bits, b),
        (Spread::Decided, _) if (a & !a_bits).trailing_zeros() < a_bits.trailing_zeros() => 0,
        (Spread::Unwritten, _) => 0,
        (Spread::Moved | Spread::Decided | Spread::Used, _) => return (0, true),
    };
    (bits, false)
}
