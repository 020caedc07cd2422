//! Values of several words: lists of words, each of which can be a constant.
//!
//! Here lists are made, taken apart and put into registers, and constants are computed with. What becomes of an operation on one word
//! stands in `td/NaplesPUWordNodes.td`, and what operations on values are made of in `isle/words.isle` and `isle/wide_*.isle`.

use super::context::{Lower, Rules, ValueRegs};
use crate::inst::reg::Reg;
use crate::inst::{Cond, MInst, SelectWord, Srcs};
use cranelift_codegen::ir::{self, InstructionData, Opcode, Value, ValueDef};
use npu_mc::Opcode as Op;
use regalloc2::RegClass;
use smallvec::SmallVec;

/// What algorithms in Rust ask the rules for words for.
pub trait WordRules {
    /// Both words, bit by bit.
    fn word_and(&mut self, a: Word, b: Word) -> Word;

    /// The sum.
    fn word_add(&mut self, a: Word, b: Word) -> Word;

    /// The word shifted to the right.
    fn word_srl(&mut self, a: Word, by: u32) -> Word;

    /// The word shifted to the left by the whole amount, not by the amount modulo 32.
    fn word_whole_shl(&mut self, a: Word, by: Word) -> Word;

    /// The same to the right.
    fn word_whole_srl(&mut self, a: Word, by: Word) -> Word;
}

/// Words that one operation handles at most: two operands of 128 bits.
const MAX: usize = 8;

/// How many extensions and concatenations are looked through.
const MAX_DEPTH: u32 = 4;

/// One word of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// In a register.
    Reg(Reg),
    /// A constant, not yet in a register.
    Const(u32),
    /// A word that a value does not have. Each use is an internal error.
    Missing,
}

impl Word {
    /// Zero.
    pub const ZERO: Self = Self::Const(0);

    /// The constant that it is.
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
    /// The words given. If there are more than eight, the last one is missing, so that its use is an error.
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

    /// A value of one word.
    pub fn one(word: Word) -> Self {
        Self::new([word])
    }

    /// The words of a constant.
    pub fn constant(number: u128, len: usize) -> Self {
        Self::new((0..len).map(|i| Word::Const((number >> (32 * i) & u128::from(u32::MAX)) as u32)))
    }

    /// The words as a slice.
    pub fn as_slice(&self) -> &[Word] {
        &self.list[..self.len()]
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The word; beyond the end, a missing one.
    pub fn get(&self, index: usize) -> Word {
        self.as_slice().get(index).copied().unwrap_or(Word::Missing)
    }

    /// The word of the value that these words are zero-extended to.
    pub fn extended(&self, index: usize) -> Word {
        self.as_slice().get(index).copied().unwrap_or(Word::ZERO)
    }

    /// The lowest word.
    pub fn low(&self) -> Word {
        self.get(0)
    }

    /// The highest word.
    pub fn top(&self) -> Word {
        self.get(self.len().saturating_sub(1))
    }

    /// The same words with another highest one.
    pub fn with_top(self, top: Word) -> Self {
        let last = self.len().saturating_sub(1);
        Self::new((0..self.len()).map(|i| if i == last { top } else { self.get(i) }))
    }

    /// The lowest words of the value that these are zero-extended to.
    pub fn take(self, len: usize) -> Self {
        Self::new((0..len).map(|i| self.extended(i)))
    }

    /// Those words that the indices name.
    pub fn range(self, indices: std::ops::Range<usize>) -> Self {
        Self::new(indices.map(|i| self.get(i)))
    }

    /// The first word and the others.
    pub fn split_first(self) -> Option<(Word, Self)> {
        let (&first, rest) = self.as_slice().split_first()?;
        let mut others = self;
        others.len -= 1;
        others.list[..rest.len()].copy_from_slice(rest);
        Some((first, others))
    }

    /// These words, then those of `high`.
    pub fn then(self, high: Self) -> Self {
        Self::new(self.as_slice().iter().chain(high.as_slice()).copied())
    }
}

/// How many words a value of the type has.
pub fn count(ty: ir::Type) -> usize {
    ty.bits().div_ceil(32) as usize
}

/// The sign of a number of the type, in the word that has it.
pub fn sign_bit(ty: ir::Type) -> u32 {
    1 << ((ty.bits() - 1) % u32::BITS)
}

/// The largest unsigned number of a type of at most 32 bits.
pub fn ones(ty: ir::Type) -> u32 {
    sign_bit(ty) | (sign_bit(ty) - 1)
}

/// By how many whole words a shift amount moves a value.
pub fn whole_words(amount: u32) -> usize {
    (amount / u32::BITS) as usize
}

impl Lower<'_> {
    /// The constant that the value is, zero-extended from its type.
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

    /// The words of a value, which is thereby used. Upper bits of narrow integers are undefined, as everywhere.
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
                // Words that only move, such as the upper half in `(high << 32) | low`.
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

    /// The words of a value, narrow ones zero-extended to a word.
    fn extended_words(&mut self, value: Value, depth: u32) -> Words {
        if self.func.dfg.value_type(value).bits() >= 32 {
            return self.words_within(value, depth);
        }
        let extension = ir::ArgumentExtension::Uext;
        Words::one(Word::Reg(self.extended(value, extension)))
    }

    /// The words as registers of a result.
    pub fn value_regs(&mut self, words: Words) -> ValueRegs {
        let mut regs = [Reg::SCRATCH; MAX];
        for (reg, word) in regs.iter_mut().zip(words.as_slice()) {
            *reg = self.reg(*word);
        }
        self.result_regs(regs.into_iter().take(words.len()))
    }

    /// The word in a register.
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

    /// One of two values of several words, by one branch.
    pub fn select_words(&mut self, cond: Cond, x: Words, y: Words) -> Words {
        let mut words: SmallVec<[SelectWord; 1]> = SmallVec::new();
        let mut result: SmallVec<[Word; MAX]> = SmallVec::new();
        if x.len() != y.len() {
            self.set_internal("select", "values of equally many words");
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

    /// One machine instruction with a result in a new register.
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

/// What the operation gives for constants; `None` for operations that are not folded.
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

    /// What an operation gives, on numbers wide enough for every result.
    type Wide = fn(i128, i128) -> i128;

    /// The operations on signed and on unsigned numbers; a result is taken modulo 2^32.
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
