//! The Rust part of the rules for words and values of several words: converts lists of words, and
//! folds constants. ISLE generates one trait for all rules; its implementation in `lower/isle.rs`
//! has a line for each method here. The declarations in `isle/` document the methods.

use super::call;
use super::context::{InstOutput, Lower, sign_extend};
use super::isle::{Simm9, Unit, simm9, small};
use super::words::{self, Word, Words};
use crate::inst::AMode;
use crate::inst::reg::{Gpr, Reg};
use crate::legalize::{Legality, LegalizeAction};
use crate::runtime::Routine;
use crate::shape::{is_long, register_type};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Inst, Type, Value, types};
use npu_mc::Opcode as Op;
use smallvec::{SmallVec, smallvec};

impl Lower<'_> {
    // Types.

    pub(super) fn int_wide(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, types::I64 | types::I128).then_some(ty)
    }

    pub(super) fn scalar(&mut self, ty: Type) -> Option<Type> {
        (ty.is_int() || ty.is_float()).then_some(ty)
    }

    pub(super) fn computed_float(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, types::F16 | types::F32 | types::F64 | types::F128).then_some(ty)
    }

    pub(super) fn two_word_type(&mut self, ty: Type) -> Option<Type> {
        (words::count(ty) == 2).then_some(ty)
    }

    pub(super) fn four_word_type(&mut self, ty: Type) -> Option<Type> {
        (words::count(ty) == 4).then_some(ty)
    }

    pub(super) fn sign_bit(&mut self, ty: Type) -> Word {
        Word::Const(words::sign_bit(ty))
    }

    pub(super) fn magnitude_bits(&mut self, ty: Type) -> Word {
        Word::Const(words::sign_bit(ty) - 1)
    }

    pub(super) fn smallest(&mut self, ty: Type, signed: bool) -> Word {
        let least = sign_extend(1 << (ty.bits() - 1), ty.bits());
        Word::Const(if signed { least } else { 0 })
    }

    pub(super) fn largest(&mut self, ty: Type, signed: bool) -> Word {
        Word::Const(if signed {
            words::sign_bit(ty) - 1
        } else {
            words::ones(ty)
        })
    }

    pub(super) fn range(&mut self, ty: Type) -> Word {
        Word::Const(words::ones(ty))
    }

    // Words.

    pub(super) fn word_gpr(&mut self, word: Word) -> Gpr {
        Gpr(self.reg(word))
    }

    pub(super) fn gpr_word(&mut self, reg: Gpr) -> Word {
        Word::Reg(reg.0)
    }

    pub(super) fn value_word(&mut self, value: Value) -> Word {
        self.words(value).low()
    }

    pub(super) fn output_word(&mut self, word: Word) -> InstOutput {
        smallvec![self.value_regs(Words::one(word))]
    }

    pub(super) fn const_word(&mut self, number: u32) -> Word {
        Word::Const(number)
    }

    pub(super) fn word_const(&mut self, word: Word) -> Option<u32> {
        word.constant()
    }

    pub(super) fn word_simm9(&mut self, word: Word) -> Option<Simm9> {
        simm9(word.constant()?.cast_signed().into())
    }

    pub(super) fn any_const(&mut self, word: Word) -> Option<Word> {
        matches!(word, Word::Const(_)).then_some(word)
    }

    pub(super) fn word_amount(&mut self, word: Word) -> Option<Simm9> {
        word.constant().filter(|number| *number < u32::BITS).map(small)
    }

    pub(super) fn word_log2(&mut self, word: Word) -> Option<Word> {
        let number = word.constant().filter(|number| number.is_power_of_two())?;
        Some(Word::Const(number.ilog2()))
    }

    pub(super) fn word_log2_back(&mut self, word: Word) -> Option<Word> {
        let number = word.constant().filter(|number| number.is_power_of_two())?;
        Some(Word::Const(u32::BITS - number.ilog2()))
    }

    pub(super) fn const_sext16(&mut self, word: Word) -> Option<Word> {
        Some(Word::Const(sign_extend(word.constant()?.into(), 16)))
    }

    pub(super) fn fold_word(&mut self, op: &Op, a: u32, b: u32) -> Option<Word> {
        words::fold(*op, a, b).map(Word::Const)
    }

    pub(super) fn half_zero_const(&mut self, word: Word) -> Option<Word> {
        (word.constant()? << 17 == 0).then_some(word)
    }

    pub(super) fn half_nan_const(&mut self, word: Word) -> Option<Word> {
        (word.constant()? << 17 > 0xf800_0000).then_some(word)
    }

    // Lists.

    pub(super) fn output_words(&mut self, words: Words) -> InstOutput {
        smallvec![self.value_regs(words)]
    }

    pub(super) fn output_words_2(&mut self, first: Words, second: Words) -> InstOutput {
        smallvec![self.value_regs(first), self.value_regs(second)]
    }

    pub(super) fn words_cons(&mut self, first: Word, rest: Words) -> Words {
        Words::one(first).then(rest)
    }

    pub(super) fn words_first(&mut self, words: Words) -> Option<(Word, Words)> {
        words.split_first()
    }

    pub(super) fn words_1(&mut self, word: Word) -> Words {
        Words::one(word)
    }

    pub(super) fn only_word(&mut self, words: Words) -> Option<Word> {
        match *words.as_slice() {
            [word] => Some(word),
            _ => None,
        }
    }

    pub(super) fn words_2(&mut self, a: Word, b: Word) -> Words {
        Words::new([a, b])
    }

    pub(super) fn two_words(&mut self, words: Words) -> Option<(Word, Word)> {
        match *words.as_slice() {
            [a, b] => Some((a, b)),
            _ => None,
        }
    }

    pub(super) fn words_4(&mut self, a: Word, b: Word, c: Word, d: Word) -> Words {
        Words::new([a, b, c, d])
    }

    pub(super) fn four_words(&mut self, words: Words) -> Option<(Word, Word, Word, Word)> {
        match *words.as_slice() {
            [a, b, c, d] => Some((a, b, c, d)),
            _ => None,
        }
    }

    pub(super) fn words_end(&mut self, x: Words, y: Words) -> Words {
        if x.len() + y.len() > 0 {
            self.set_internal("an operation on words", "operands with the same number of words");
        }
        Words::new([])
    }

    pub(super) fn low_word(&mut self, words: Words) -> Word {
        words.low()
    }

    pub(super) fn top_word(&mut self, words: Words) -> Word {
        words.top()
    }

    pub(super) fn with_top(&mut self, words: Words, top: Word) -> Words {
        words.with_top(top)
    }

    pub(super) fn without_top(&mut self, words: Words) -> Words {
        words.take(words.len().saturating_sub(1))
    }

    pub(super) fn words_for(&mut self, ty: Type, words: Words) -> Words {
        words.take(words::count(ty))
    }

    pub(super) fn words_filled(&mut self, ty: Type, words: Words, fill: Word) -> Words {
        words.then(self.repeat_for(ty, fill)).take(words::count(ty))
    }

    pub(super) fn repeat_for(&mut self, ty: Type, word: Word) -> Words {
        Words::new(std::iter::repeat_n(word, words::count(ty)))
    }

    pub(super) fn repeat_like(&mut self, words: Words, word: Word) -> Words {
        Words::new(std::iter::repeat_n(word, words.len()))
    }

    pub(super) fn reversed(&mut self, words: Words) -> Words {
        Words::new(words.as_slice().iter().rev().copied())
    }

    pub(super) fn concat(&mut self, low: Words, high: Words) -> Words {
        low.then(high)
    }

    pub(super) fn lower_half(&mut self, words: Words) -> Words {
        words.take(words.len() / 2)
    }

    pub(super) fn upper_half(&mut self, words: Words) -> Words {
        words.range(words.len() / 2..words.len())
    }

    pub(super) fn known_nonzero(&mut self, words: Words) -> Option<Unit> {
        let mut constants = words.as_slice().iter().filter_map(|word| word.constant());
        constants.any(|number| number != 0).then_some(())
    }

    pub(super) fn known_not_ones(&mut self, words: Words) -> Option<Unit> {
        let mut constants = words.as_slice().iter().filter_map(|word| word.constant());
        constants.any(|number| number != u32::MAX).then_some(())
    }

    // Shift amounts.

    pub(super) fn amount(&mut self, ty: Type, value: Value) -> u32 {
        self.amount_of(ty, value)
    }

    pub(super) fn amount_back(&mut self, ty: Type, value: Value) -> u32 {
        self.amount_of(ty, value).wrapping_neg() & (ty.bits() - 1)
    }

    pub(super) fn bits_of_amount(&mut self, amount: u32) -> u32 {
        amount % u32::BITS
    }

    pub(super) fn bits_back(&mut self, bits: u32) -> u32 {
        u32::BITS - bits
    }

    pub(super) fn moves_words(&mut self, amount: u32) -> Option<Unit> {
        (amount >= u32::BITS).then_some(())
    }

    pub(super) fn words_up(&mut self, words: Words, amount: u32) -> Words {
        let moved = words::whole_words(amount);
        Words::new(std::iter::repeat_n(Word::ZERO, moved))
            .then(words)
            .take(words.len())
    }

    pub(super) fn words_around(&mut self, words: Words, amount: u32) -> Words {
        let kept = words.len().saturating_sub(words::whole_words(amount));
        words.range(kept..words.len()).then(words.take(kept))
    }

    pub(super) fn words_down(&mut self, words: Words, amount: u32) -> Words {
        words.range(words::whole_words(amount)..words.len())
    }

    // Floats, routines, memory.

    pub(super) fn library_call(&mut self, inst: Inst) -> Option<Routine> {
        let legality = Legality::new(self.isa.flags(), self.isa.settings());
        let ty = self.func.dfg.ctrl_typevar(inst);
        let rule = match is_long(ty) {
            // The operation of each register.
            true => legality.rule_on(self.func.dfg.insts[inst].opcode(), register_type(ty)?)?,
            false => legality.rule(self.func, inst)?,
        };
        let called = matches!(rule.action, LegalizeAction::LibCall | LegalizeAction::Scalarize);
        rule.routine.filter(|_| called)
    }

    pub(super) fn operand_words(&mut self, inst: Inst) -> Words {
        let args = self.func.dfg.inst_args(inst);
        args.iter().fold(Words::new([]), |all, &arg| all.then(self.words(arg)))
    }

    pub(super) fn opposite_cc(&mut self, cc: &FloatCC) -> Option<FloatCC> {
        use FloatCC::{
            NotEqual, Ordered, OrderedNotEqual, UnorderedOrGreaterThan, UnorderedOrGreaterThanOrEqual,
            UnorderedOrLessThan, UnorderedOrLessThanOrEqual,
        };
        use cranelift_codegen::ir::condcodes::CondCode;
        match cc {
            Ordered
            | NotEqual
            | OrderedNotEqual
            | UnorderedOrGreaterThan
            | UnorderedOrGreaterThanOrEqual
            | UnorderedOrLessThan
            | UnorderedOrLessThanOrEqual => Some(cc.complement()),
            _ => None,
        }
    }

    pub(super) fn call_on_operands(&mut self, routine: &Routine, inst: Inst) -> Words {
        let mut args: SmallVec<[Reg; 8]> = SmallVec::new();
        for &arg in self.func.dfg.inst_args(inst) {
            let words = self.words(arg);
            args.extend(words.as_slice().iter().map(|word| self.reg(*word)));
        }
        Words::new(call::routine(self, *routine, &args).into_iter().map(Word::Reg))
    }

    pub(super) fn call_words(&mut self, routine: &Routine, args: Words) -> Words {
        let args: SmallVec<[Reg; 8]> = args.as_slice().iter().map(|word| self.reg(*word)).collect();
        Words::new(call::routine(self, *routine, &args).into_iter().map(Word::Reg))
    }

    pub(super) fn address_for(&mut self, ty: Type, pointer: Value, offset: Offset32) -> AMode {
        self.address(pointer, offset.into(), ty.bytes())
    }
}
