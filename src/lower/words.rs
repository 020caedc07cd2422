//! Values of several words: lists of words, each of which can be a constant.
//!
//! This module makes and splits lists, loads them into registers and folds constants.
//! `td/NaplesPUWordNodes.td` defines the operations on one word; `isle/words.isle` and
//! `isle/wide_*.isle` define the operations on values.

use super::context::{Lower, Rules, ValueRegs};
use crate::inst::reg::Reg;
use crate::inst::{Cond, MInst, SelectWord, Srcs};
use cranelift_codegen::ir::{self, InstructionData, Opcode, Value, ValueDef};
use npu_mc::Opcode as Op;
use regalloc2::RegClass;
use smallvec::SmallVec;

/// The rules for words that algorithms in Rust call.
pub trait WordRules {
    /// Returns the bitwise conjunction.
    fn word_and(&mut self, a: Word, b: Word) -> Word;

    /// Returns the sum.
    fn word_add(&mut self, a: Word, b: Word) -> Word;

    /// Returns the word shifted right.
    fn word_srl(&mut self, a: Word, by: u32) -> Word;

    /// Returns the word shifted left by the whole amount, not modulo 32.
    fn word_whole_shl(&mut self, a: Word, by: Word) -> Word;

    /// Returns the word shifted right by the whole amount, not modulo 32.
    fn word_whole_srl(&mut self, a: Word, by: Word) -> Word;
}

/// The maximum number of words of one operation: two operands of 128 bits.
const MAX: usize = 8;

/// The number of extensions and concatenations that are followed.
const MAX_DEPTH: u32 = 4;

/// One word of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// In a register.
    Reg(Reg),
    /// A constant, not yet in a register.
    Const(u32),
    /// A missing word of a value. Each use is an internal error.
    Missing,
}

impl Word {
    /// Zero.
    pub const ZERO: Self = Self::Const(0);

    /// Returns the constant, if the word is one.
    pub fn constant(self) -> Option<u32> {
        match self {
            Self::Const(number) => Some(number),
            Self::Reg(_) | Self::Missing => None,
        }
    }
}

/// The words of a value, low word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    list: [Word; MAX],
    len: u8,
}

impl Words {
    /// Returns a list of the words. If there are more than eight, the last one is missing, so that
    /// its use is an error.
    pub fn new(list: impl IntoIterator<Item = Word>) -> Self {
        let mut words = Self {
            list: [Word::ZERO; MAX],
            len: 0,
        };
        for word in list {
            match words.list.get_mut(usize::from(words.len)) {
                Some(place) => {
                    *place = word;
                    words.len += 1;
                }
                None => words.list[MAX - 1] = Word::Missing,
            }
        }
        words
    }

    /// Returns a value of one word.
    pub fn one(word: Word) -> Self {
        Self::new([word])
    }

    /// Returns the words of a constant.
    pub fn constant(number: u128, len: usize) -> Self {
        Self::new((0..len).map(|i| Word::Const((number >> (32 * i) & u128::from(u32::MAX)) as u32)))
    }

    /// Returns the words as a slice.
    pub fn as_slice(&self) -> &[Word] {
        &self.list[..self.len()]
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns the word at an index; after the end, a missing word.
    pub fn get(&self, index: usize) -> Word {
        self.as_slice().get(index).copied().unwrap_or(Word::Missing)
    }

    /// Returns the word at an index; after the end, zero.
    pub fn extended(&self, index: usize) -> Word {
        self.as_slice().get(index).copied().unwrap_or(Word::ZERO)
    }

    /// Returns the lowest word.
    pub fn low(&self) -> Word {
        self.get(0)
    }

    /// Returns the highest word.
    pub fn top(&self) -> Word {
        self.get(self.len().saturating_sub(1))
    }

    /// Replaces the highest word.
    pub fn with_top(self, top: Word) -> Self {
        let last = self.len().saturating_sub(1);
        Self::new((0..self.len()).map(|i| if i == last { top } else { self.get(i) }))
    }

    /// Returns the first `len` words; after the end, zeros.
    pub fn take(self, len: usize) -> Self {
        Self::new((0..len).map(|i| self.extended(i)))
    }

    /// Returns the words in a range of indices.
    pub fn range(self, indices: std::ops::Range<usize>) -> Self {
        Self::new(indices.map(|i| self.get(i)))
    }

    /// Returns the first word and the others.
    pub fn split_first(self) -> Option<(Word, Self)> {
        let (&first, rest) = self.as_slice().split_first()?;
        let mut others = self;
        others.len -= 1;
        others.list[..rest.len()].copy_from_slice(rest);
        Some((first, others))
    }

    /// Returns these words followed by those of `high`.
    pub fn then(self, high: Self) -> Self {
        Self::new(self.as_slice().iter().chain(high.as_slice()).copied())
    }
}

/// Returns the number of words in a value of the type.
pub fn count(ty: ir::Type) -> usize {
    ty.bits().div_ceil(32) as usize
}

/// Returns the sign bit of the type, in its highest word.
pub fn sign_bit(ty: ir::Type) -> u32 {
    1 << ((ty.bits() - 1) % u32::BITS)
}

/// Returns the largest unsigned number of a type of at most 32 bits.
pub fn ones(ty: ir::Type) -> u32 {
    sign_bit(ty) | (sign_bit(ty) - 1)
}

/// Returns the number of whole words in a shift amount.
pub fn whole_words(amount: u32) -> usize {
    (amount / u32::BITS) as usize
}

impl Lower<'_> {
    /// Returns the value's constant, zero-extended from its type.
    pub fn wide_constant(&self, value: Value) -> Option<u128> {
        self.constant_within(value, MAX_DEPTH)
    }

    fn constant_within(&self, value: Value, depth: u32) -> Option<u128> {
        if !self.may_be_constant[value] {
            return None;
        }
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let ty = self.func.dfg.value_type(value);
        let inner = |v| {
            if depth > 0 {
                self.constant_within(v, depth - 1)
            } else {
                None
            }
        };
        let bits_of = |v| self.func.dfg.value_type(v).bits();
        match self.func.dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst, ..
            } => self.as_constant(value).map(u128::from),
            InstructionData::UnaryIeee16 { imm, .. } => Some(imm.bits().into()),
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().into()),
            InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits().into()),
            InstructionData::UnaryConst {
                opcode: Opcode::F128const,
                constant_handle,
            } => {
                let mut bytes = [0; 16];
                let data = self.func.dfg.constants.get(constant_handle).as_slice();
                bytes.get_mut(..data.len())?.copy_from_slice(data);
                Some(u128::from_le_bytes(bytes))
            }
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => inner(arg),
            InstructionData::Unary {
                opcode: Opcode::Sextend,
                arg,
            } => {
                let shift = 128 - bits_of(arg);
                let number = (inner(arg)? << shift).cast_signed() >> shift;
                Some(number.cast_unsigned() & (u128::MAX >> (128 - ty.bits())))
            }
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args,
            } => Some(inner(args[1])? << bits_of(args[0]) | inner(args[0])?),
            _ => None,
        }
    }

    /// Returns the words of a value, and counts a use. The upper bits of narrow integers are
    /// undefined.
    pub fn words(&mut self, value: Value) -> Words {
        self.words_within(value, MAX_DEPTH)
    }

    fn words_within(&mut self, value: Value, depth: u32) -> Words {
        let ty = self.func.dfg.value_type(value);
        if let Some(number) = self.wide_constant(value) {
            return Words::constant(number, count(ty));
        }
        if let (ValueDef::Result(inst, 0), true) = (self.func.dfg.value_def(value), depth > 0) {
            match self.func.dfg.insts[inst] {
                InstructionData::Unary {
                    opcode: Opcode::Uextend,
                    arg,
                } if ty.bits() > 32 => return self.extended_words(arg, depth - 1).take(count(ty)),
                InstructionData::Binary {
                    opcode: Opcode::Iconcat,
                    args,
                } if ty.bits() > 32 => {
                    let low = self.words_within(args[0], depth - 1);
                    let high = self.words_within(args[1], depth - 1);
                    return low.then(high);
                }
                // Shifts by whole words, such as the upper half in `(high << 32) | low`.
                InstructionData::Binary {
                    opcode: opcode @ (Opcode::Ishl | Opcode::Ushr),
                    args,
                } if ty.bits() > 32 => {
                    let amount = self.wide_constant(args[1]).map(|n| n as u32 & (ty.bits() - 1));
                    if let Some(amount) = amount.filter(|n| n.is_multiple_of(32)) {
                        let (len, moved) = (count(ty), (amount / 32) as usize);
                        let from = self.words_within(args[0], depth - 1);
                        return Words::new((0..len).map(|i| match opcode {
                            Opcode::Ishl => i.checked_sub(moved).map_or(Word::ZERO, |i| from.get(i)),
                            _ => from.extended(i + moved),
                        }));
                    }
                }
                _ => {}
            }
        }
        let regs = self.put_in_regs(value);
        let words = Words::new(regs.as_slice().iter().map(|reg| Word::Reg(Reg::Virtual(*reg))));
        if words.len() != count(ty) {
            self.set_internal(value, "as many registers as the type has words");
        }
        words.take(count(ty))
    }

    /// Returns the words of a value, with narrow values zero-extended to a word.
    fn extended_words(&mut self, value: Value, depth: u32) -> Words {
        if self.func.dfg.value_type(value).bits() >= 32 {
            return self.words_within(value, depth);
        }
        let extension = ir::ArgumentExtension::Uext;
        Words::one(Word::Reg(self.extended(value, extension)))
    }

    /// Returns the words as registers of a result.
    pub fn value_regs(&mut self, words: Words) -> ValueRegs {
        let mut regs = [Reg::SCRATCH; MAX];
        for (reg, word) in regs.iter_mut().zip(words.as_slice()) {
            *reg = self.reg(*word);
        }
        self.result_regs(regs.into_iter().take(words.len()))
    }

    /// Returns the word in a register.
    pub fn reg(&mut self, word: Word) -> Reg {
        match word {
            Word::Reg(reg) => reg,
            Word::Const(number) => Reg::Virtual(self.constant(number)),
            Word::Missing => {
                self.set_internal("a word of a value", "a word that the value has");
                Reg::Virtual(self.new_vreg(RegClass::Int))
            }
        }
    }

    /// Selects one of two values of several words with one branch.
    pub fn select_words(&mut self, cond: Cond, x: Words, y: Words) -> Words {
        let mut words: SmallVec<[SelectWord; 1]> = SmallVec::new();
        let mut result: SmallVec<[Word; MAX]> = SmallVec::new();
        if x.len() != y.len() {
            self.set_internal("select", "values with the same number of words");
        }
        for (&if_true, &if_false) in x.as_slice().iter().zip(y.as_slice()) {
            if if_true == if_false {
                result.push(if_true);
                continue;
            }
            let dst = Reg::Virtual(self.new_vreg(RegClass::Int));
            let (if_true, if_false) = (self.reg(if_true), self.reg(if_false));
            words.push(SelectWord { dst, if_true, if_false });
            result.push(Word::Reg(dst));
        }
        if !words.is_empty() {
            self.emit(MInst::Select { cond, words });
        }
        Words::new(result)
    }

    /// Emits one machine instruction with a result in a new register.
    pub fn emit_op(&mut self, op: Op, srcs: &[Reg], imm: i32, class: RegClass) -> Reg {
        let dst = Reg::Virtual(self.new_vreg(class));
        self.emit(MInst::Op {
            op,
            dst: Some(dst),
            srcs: Srcs::from_slice(srcs),
            imm,
        });
        dst
    }
}

/// Returns the result of the operation on constants, or `None` if the operation is not folded.
pub fn fold(op: Op, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        Op::ADDSSS_32 => a.wrapping_add(b),
        Op::SUBSSS_32 => a.wrapping_sub(b),
        Op::ANDSSS_32 => a & b,
        Op::ORSSS_32 => a | b,
        Op::XORSSS_32 => a ^ b,
        Op::MULLSSS_32 => a.wrapping_mul(b),
        Op::MULHSSS_32 => ((i64::from(a.cast_signed()) * i64::from(b.cast_signed())) >> 32).cast_unsigned() as u32,
        Op::MULHUSSS_32 => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        Op::SLLSSS_32 => a.checked_shl(b)?,
        Op::SRLSSS_32 => a.checked_shr(b)?,
        Op::SRASSS_32 => a.cast_signed().checked_shr(b)?.cast_unsigned(),
        Op::SEQSISSS_32 => u32::from(a == b),
        Op::SNESISSS_32 => u32::from(a != b),
        Op::SLTUISSS_32 => u32::from(a < b),
        Op::SLTSISSS_32 => u32::from(a.cast_signed() < b.cast_signed()),
        Op::SGESISSS_32 => u32::from(a.cast_signed() >= b.cast_signed()),
        Op::SGTSISSS_32 => u32::from(a.cast_signed() > b.cast_signed()),
        Op::SGEUISSS_32 => u32::from(a >= b),
        Op::SGTUISSS_32 => u32::from(a > b),
        Op::SLEUISSS_32 => u32::from(a <= b),
        Op::SLESISSS_32 => u32::from(a.cast_signed() <= b.cast_signed()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX, Op, Word, Words, fold};

    #[test]
    fn words_that_do_not_exist_are_missing() {
        let two = Words::constant(0x1_0000_0002, 2);
        assert_eq!((two.low(), two.top()), (Word::Const(2), Word::Const(1)));
        assert_eq!(two.get(2), Word::Missing);
        assert_eq!(two.take(3).as_slice(), [Word::Const(2), Word::Const(1), Word::ZERO]);
        assert_eq!(two.range(1..3).as_slice(), [Word::Const(1), Word::Missing]);
        assert_eq!(Words::new([]).low(), Word::Missing);
        let full = Words::new((0..8).map(Word::Const));
        assert!(!full.as_slice().contains(&Word::Missing));
        let over = full.then(Words::one(Word::ZERO));
        assert_eq!((over.len(), over.top()), (MAX, Word::Missing));
    }

    /// The result of an operation, in a type that is wide enough for every result.
    type Wide = fn(i128, i128) -> i128;

    /// The operations on signed and on unsigned numbers. Results are taken modulo 2^32.
    const SIGNED: [(Op, Wide); 10] = [
        (Op::ADDSSS_32, |a, b| a + b),
        (Op::SUBSSS_32, |a, b| a - b),
        (Op::MULLSSS_32, |a, b| a * b),
        (Op::MULHSSS_32, |a, b| (a * b) >> 32),
        (Op::SEQSISSS_32, |a, b| i128::from(a == b)),
        (Op::SNESISSS_32, |a, b| i128::from(a != b)),
        (Op::SLTSISSS_32, |a, b| i128::from(a < b)),
        (Op::SGESISSS_32, |a, b| i128::from(a >= b)),
        (Op::SGTSISSS_32, |a, b| i128::from(a > b)),
        (Op::SLESISSS_32, |a, b| i128::from(a <= b)),
    ];
    const UNSIGNED: [(Op, Wide); 8] = [
        (Op::ANDSSS_32, |a, b| a & b),
        (Op::ORSSS_32, |a, b| a | b),
        (Op::XORSSS_32, |a, b| a ^ b),
        (Op::MULHUSSS_32, |a, b| (a * b) >> 32),
        (Op::SLTUISSS_32, |a, b| i128::from(a < b)),
        (Op::SGEUISSS_32, |a, b| i128::from(a >= b)),
        (Op::SGTUISSS_32, |a, b| i128::from(a > b)),
        (Op::SLEUISSS_32, |a, b| i128::from(a <= b)),
    ];

    #[test]
    fn constants_are_computed_with_as_the_machine_does() {
        let corners = [0u32, 1, 2, 5, 31, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
        for (a, b) in corners.iter().flat_map(|&a| corners.map(|b| (a, b))) {
            let signed = |number: u32| i128::from(number.cast_signed());
            for (op, wide) in SIGNED {
                assert_eq!(
                    fold(op, a, b),
                    Some(wide(signed(a), signed(b)) as u32),
                    "{op:?} of {a:#x} and {b:#x}"
                );
            }
            for (op, wide) in UNSIGNED {
                assert_eq!(
                    fold(op, a, b),
                    Some(wide(a.into(), b.into()) as u32),
                    "{op:?} of {a:#x} and {b:#x}"
                );
            }
            let shifts: [(Op, Wide); 2] = [(Op::SLLSSS_32, |a, b| a << b), (Op::SRLSSS_32, |a, b| a >> b)];
            for (op, wide) in shifts {
                let expected = (b < 32).then(|| wide(a.into(), b.into()) as u32);
                assert_eq!(fold(op, a, b), expected, "{op:?} of {a:#x} and {b:#x}");
            }
            let expected = (b < 32).then(|| (signed(a) >> b) as u32);
            assert_eq!(fold(Op::SRASSS_32, a, b), expected, "{a:#x} and {b:#x}");
        }
    }
}
