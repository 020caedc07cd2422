//! Compares of several words, and what rests on them.

use crate::inst::Cond;
use crate::lower::context::Lower;
use crate::lower::words::{Word, Words};
use cranelift_codegen::ir::condcodes::IntCC;
use npu_mc::Opcode as Op;

/// Zero if the numbers are equal.
fn difference(ctx: &mut Lower<'_>, x: Words, y: Words) -> Word {
    let differ = ctx.map2(Op::XORSSS_32, x, y);
    ctx.reduce(Op::ORSSS_32, differ)
}

/// 1 if `x` is below `y`, else 0.
fn below(ctx: &mut Lower<'_>, x: Words, y: Words, signed: bool) -> Word {
    let mut lower = Word::ZERO;
    for i in 0..x.len() {
        let (a, b) = (x.get(i), y.get(i));
        let top = i + 1 == x.len();
        let op = if top && signed {
            Op::SLTSISSS_32
        } else {
            Op::SLTUISSS_32
        };
        let here = ctx.binary(op, a, b);
        lower = if lower == Word::ZERO {
            here
        } else {
            let equal = ctx.binary(Op::SEQSISSS_32, a, b);
            let still = ctx.binary(Op::ANDSSS_32, equal, lower);
            ctx.binary(Op::ORSSS_32, here, still)
        };
    }
    lower
}

/// How a compare came out: a word that tells by being zero or not.
pub struct Outcome {
    /// The word.
    pub word: Word,
    /// Whether the condition holds when the word is zero, or when it is not.
    pub holds_if_zero: bool,
    /// Whether the word is 0 or 1 and nothing else.
    pub boolean: bool,
}

impl Outcome {
    /// 1 if the condition holds, else 0.
    pub fn value(&self, ctx: &mut Lower<'_>) -> Word {
        match (self.boolean, self.holds_if_zero) {
            (true, false) => self.word,
            (true, true) => ctx.not_bool(self.word),
            (false, false) => ctx.binary(Op::SNESISSS_32, self.word, Word::ZERO),
            (false, true) => ctx.binary(Op::SEQSISSS_32, self.word, Word::ZERO),
        }
    }

    /// The condition.
    pub fn cond(&self, ctx: &mut Lower<'_>) -> Cond {
        let cond = ctx.nonzero_word(self.word);
        if self.holds_if_zero { cond.inverted() } else { cond }
    }
}

fn outcome(ctx: &mut Lower<'_>, cc: IntCC, x: Words, y: Words) -> Outcome {
    let ordering = |word, holds_if_zero| Outcome {
        word,
        holds_if_zero,
        boolean: true,
    };
    match cc {
        IntCC::Equal | IntCC::NotEqual => Outcome {
            word: difference(ctx, x, y),
            holds_if_zero: cc == IntCC::Equal,
            boolean: false,
        },
        IntCC::SignedLessThan => ordering(below(ctx, x, y, true), false),
        IntCC::SignedGreaterThanOrEqual => ordering(below(ctx, x, y, true), true),
        IntCC::SignedGreaterThan => ordering(below(ctx, y, x, true), false),
        IntCC::SignedLessThanOrEqual => ordering(below(ctx, y, x, true), true),
        IntCC::UnsignedLessThan => ordering(below(ctx, x, y, false), false),
        IntCC::UnsignedGreaterThanOrEqual => ordering(below(ctx, x, y, false), true),
        IntCC::UnsignedGreaterThan => ordering(below(ctx, y, x, false), false),
        IntCC::UnsignedLessThanOrEqual => ordering(below(ctx, y, x, false), true),
    }
}

/// 1 if the condition holds, else 0.
pub fn icmp(ctx: &mut Lower<'_>, cc: &IntCC, x: Words, y: Words) -> Word {
    outcome(ctx, *cc, x, y).value(ctx)
}

/// The compare as a condition.
pub fn icmp_cond(ctx: &mut Lower<'_>, cc: &IntCC, x: Words, y: Words) -> Cond {
    outcome(ctx, *cc, x, y).cond(ctx)
}

/// The condition that the number is not zero.
pub fn nonzero(ctx: &mut Lower<'_>, x: Words) -> Cond {
    let any = ctx.reduce(Op::ORSSS_32, x);
    ctx.nonzero_word(any)
}

/// 1 if the number is not zero, else 0.
pub fn truth(ctx: &mut Lower<'_>, x: Words) -> Word {
    let any = ctx.reduce(Op::ORSSS_32, x);
    ctx.binary(Op::SNESISSS_32, any, Word::ZERO)
}

/// The condition that the number is negative.
pub fn negative(ctx: &mut Lower<'_>, x: Words) -> Cond {
    let word = ctx.binary(Op::SLTSISSS_32, x.top(), Word::ZERO);
    ctx.nonzero_word(word)
}

/// `x` if the condition holds between it and `y`, else `y`: minimum and maximum.
pub fn choose(ctx: &mut Lower<'_>, cc: &IntCC, x: Words, y: Words) -> Words {
    let cond = icmp_cond(ctx, cc, x, y);
    ctx.select_words(cond, x, y)
}

/// All ones in every word if the number is not zero, else zero.
pub fn mask(ctx: &mut Lower<'_>, truth: Word, len: usize) -> Words {
    let word = ctx.binary(Op::SUBSSS_32, Word::ZERO, truth);
    Words::new(std::iter::repeat_n(word, len))
}
