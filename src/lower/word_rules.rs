//! The methods that the rules for words and for values of several words call: making and taking apart lists, and computing with
//! constants. ISLE makes one trait of all rules, so they are part of its one implementation, in `lower/isle.rs`.

/// The methods, in a block that implements the trait. Names are those of the place where this stands.
macro_rules! word_methods {
    () => {
        // Types.

        fn int_wide(&mut self, ty: Type) -> Option<Type> {
            matches!(ty, types::I64 | types::I128).then_some(ty)
        }

        fn scalar(&mut self, ty: Type) -> Option<Type> {
            (ty.is_int() || ty.is_float()).then_some(ty)
        }

        fn computed_float(&mut self, ty: Type) -> Option<Type> {
            matches!(ty, types::F16 | types::F32 | types::F64 | types::F128).then_some(ty)
        }

        fn two_word_type(&mut self, ty: Type) -> Option<Type> {
            (words::count(ty) == 2).then_some(ty)
        }

        fn four_word_type(&mut self, ty: Type) -> Option<Type> {
            (words::count(ty) == 4).then_some(ty)
        }

        fn sign_bit(&mut self, ty: Type) -> Word {
            Word::Const(words::sign_bit(ty))
        }

        fn magnitude_bits(&mut self, ty: Type) -> Word {
            Word::Const(words::sign_bit(ty) - 1)
        }

        fn smallest(&mut self, ty: Type, signed: bool) -> Word {
            Word::Const(if signed { self.signed_min(ty) } else { 0 })
        }

        fn largest(&mut self, ty: Type, signed: bool) -> Word {
            Word::Const(if signed {
                words::sign_bit(ty) - 1
            } else {
                words::ones(ty)
            })
        }

        fn range(&mut self, ty: Type) -> Word {
            Word::Const(words::ones(ty))
        }

        // Words.

        fn word_gpr(&mut self, word: Word) -> Gpr {
            Gpr(self.reg(word))
        }

        fn gpr_word(&mut self, reg: Gpr) -> Word {
            Word::Reg(reg.0)
        }

        fn value_word(&mut self, value: Value) -> Word {
            self.words(value).low()
        }

        fn output_word(&mut self, word: Word) -> InstOutput {
            smallvec![self.value_regs(Words::one(word))]
        }

        fn const_word(&mut self, number: u32) -> Word {
            Word::Const(number)
        }

        fn word_const(&mut self, word: Word) -> Option<u32> {
            word.constant()
        }

        fn word_simm9(&mut self, word: Word) -> Option<Simm9> {
            simm9(word.constant()?.cast_signed().into())
        }

        fn any_const(&mut self, word: Word) -> Option<Word> {
            matches!(word, Word::Const(_)).then_some(word)
        }

        fn word_amount(&mut self, word: Word) -> Option<Simm9> {
            word.constant().filter(|number| *number < u32::BITS).map(small)
        }

        fn word_log2(&mut self, word: Word) -> Option<Word> {
            let number = word.constant().filter(|number| number.is_power_of_two())?;
            Some(Word::Const(number.ilog2()))
        }

        fn word_log2_back(&mut self, word: Word) -> Option<Word> {
            let number = word.constant().filter(|number| number.is_power_of_two())?;
            Some(Word::Const(u32::BITS - number.ilog2()))
        }

        fn const_sext16(&mut self, word: Word) -> Option<Word> {
            Some(Word::Const(sign_extend(word.constant()?.into(), 16)))
        }

        fn fold_word(&mut self, op: &Op, a: u32, b: u32) -> Option<Word> {
            words::fold(*op, a, b).map(Word::Const)
        }

        fn half_zero_const(&mut self, word: Word) -> Option<Word> {
            (word.constant()? << 17 == 0).then_some(word)
        }

        fn half_nan_const(&mut self, word: Word) -> Option<Word> {
            (word.constant()? << 17 > 0xf800_0000).then_some(word)
        }

        // Lists.

        fn words(&mut self, value: Value) -> Words {
            Lower::words(self, value)
        }

        fn output_words(&mut self, words: Words) -> InstOutput {
            smallvec![self.value_regs(words)]
        }

        fn output_words_2(&mut self, first: Words, second: Words) -> InstOutput {
            smallvec![self.value_regs(first), self.value_regs(second)]
        }

        fn words_cons(&mut self, first: Word, rest: Words) -> Words {
            Words::one(first).then(rest)
        }

        fn words_first(&mut self, words: Words) -> Option<(Word, Words)> {
            words.split_first()
        }

        fn words_1(&mut self, word: Word) -> Words {
            Words::one(word)
        }

        fn only_word(&mut self, words: Words) -> Option<Word> {
            match *words.as_slice() {
                [word] => Some(word),
                _ => None,
            }
        }

        fn words_2(&mut self, a: Word, b: Word) -> Words {
            Words::new([a, b])
        }

        fn two_words(&mut self, words: Words) -> Option<(Word, Word)> {
            match *words.as_slice() {
                [a, b] => Some((a, b)),
                _ => None,
            }
        }

        fn words_4(&mut self, a: Word, b: Word, c: Word, d: Word) -> Words {
            Words::new([a, b, c, d])
        }

        fn four_words(&mut self, words: Words) -> Option<(Word, Word, Word, Word)> {
            match *words.as_slice() {
                [a, b, c, d] => Some((a, b, c, d)),
                _ => None,
            }
        }

        fn words_end(&mut self, x: Words, y: Words) -> Words {
            if x.len() + y.len() > 0 {
                self.set_internal("an operation on words", "operands of equally many words");
            }
            Words::new([])
        }

        fn low_word(&mut self, words: Words) -> Word {
            words.low()
        }

        fn top_word(&mut self, words: Words) -> Word {
            words.top()
        }

        fn with_top(&mut self, words: Words, top: Word) -> Words {
            words.with_top(top)
        }

        fn without_top(&mut self, words: Words) -> Words {
            words.take(words.len().saturating_sub(1))
        }

        fn words_for(&mut self, ty: Type, words: Words) -> Words {
            words.take(words::count(ty))
        }

        fn words_filled(&mut self, ty: Type, words: Words, fill: Word) -> Words {
            words.then(self.repeat_for(ty, fill)).take(words::count(ty))
        }

        fn repeat_for(&mut self, ty: Type, word: Word) -> Words {
            Words::new(std::iter::repeat_n(word, words::count(ty)))
        }

        fn repeat_like(&mut self, words: Words, word: Word) -> Words {
            Words::new(std::iter::repeat_n(word, words.len()))
        }

        fn reversed(&mut self, words: Words) -> Words {
            Words::new(words.as_slice().iter().rev().copied())
        }

        fn concat(&mut self, low: Words, high: Words) -> Words {
            low.then(high)
        }

        fn lower_half(&mut self, words: Words) -> Words {
            words.take(words.len() / 2)
        }

        fn upper_half(&mut self, words: Words) -> Words {
            words.range(words.len() / 2..words.len())
        }

        fn known_nonzero(&mut self, words: Words) -> Option<Unit> {
            let mut constants = words.as_slice().iter().filter_map(|word| word.constant());
            constants.any(|number| number != 0).then_some(())
        }

        fn known_not_ones(&mut self, words: Words) -> Option<Unit> {
            let mut constants = words.as_slice().iter().filter_map(|word| word.constant());
            constants.any(|number| number != u32::MAX).then_some(())
        }

        fn select_words(&mut self, cond: Cond, x: Words, y: Words) -> Words {
            Lower::select_words(self, cond, x, y)
        }

        // Shift amounts.

        fn amount(&mut self, ty: Type, value: Value) -> u32 {
            self.amount_of(ty, value)
        }

        fn amount_back(&mut self, ty: Type, value: Value) -> u32 {
            self.amount_of(ty, value).wrapping_neg() & (ty.bits() - 1)
        }

        fn bits_of_amount(&mut self, amount: u32) -> u32 {
            amount % u32::BITS
        }

        fn bits_back(&mut self, bits: u32) -> u32 {
            u32::BITS - bits
        }

        fn moves_words(&mut self, amount: u32) -> Option<Unit> {
            (amount >= u32::BITS).then_some(())
        }

        fn words_up(&mut self, words: Words, amount: u32) -> Words {
            let moved = words::whole_words(amount);
            Words::new(std::iter::repeat_n(Word::ZERO, moved))
                .then(words)
                .take(words.len())
        }

        fn words_around(&mut self, words: Words, amount: u32) -> Words {
            let kept = words.len().saturating_sub(words::whole_words(amount));
            words.range(kept..words.len()).then(words.take(kept))
        }

        fn words_down(&mut self, words: Words, amount: u32) -> Words {
            words.range(words::whole_words(amount)..words.len())
        }

        // Floats, routines, memory.

        fn library_call(&mut self, inst: Inst) -> Option<Routine> {
            let rule = Legality::new(self.isa.flags(), self.isa.settings()).rule(self.func, inst)?;
            let called = matches!(rule.action, LegalizeAction::LibCall | LegalizeAction::Scalarize);
            if called && !rule.routine.is_empty() {
                Routine::named(rule.routine)
            } else {
                None
            }
        }

        fn operand_words(&mut self, inst: Inst) -> Words {
            let args = self.func.dfg.inst_args(inst);
            args.iter()
                .fold(Words::new([]), |all, &arg| all.then(self.words(arg)))
        }

        fn opposite_cc(&mut self, cc: &FloatCC) -> Option<FloatCC> {
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

        fn call_on_operands(&mut self, routine: &Routine, inst: Inst) -> Words {
            let mut args: SmallVec<[Reg; 8]> = SmallVec::new();
            for &arg in self.func.dfg.inst_args(inst) {
                let words = self.words(arg);
                args.extend(words.as_slice().iter().map(|word| self.reg(*word)));
            }
            Words::new(call::routine(self, *routine, &args).into_iter().map(Word::Reg))
        }

        fn call_words(&mut self, routine: &Routine, args: Words) -> Words {
            let args: SmallVec<[Reg; 8]> = args.as_slice().iter().map(|word| self.reg(*word)).collect();
            Words::new(call::routine(self, *routine, &args).into_iter().map(Word::Reg))
        }

        fn address_for(&mut self, ty: Type, pointer: Value, offset: Offset32) -> AMode {
            self.address(pointer, offset.into(), ty.bytes())
        }
    };
}

pub(crate) use word_methods;
