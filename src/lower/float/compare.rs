//! Compares of floats, by integer compares of their bits.

use crate::inst::Cond;
use crate::lower::context::Lower;
use crate::lower::wide::compare::Outcome;
use crate::lower::wide::divide::routine;
use crate::lower::words::{Word, Words};
use crate::runtime::Routine;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Type, types};
use npu_mc::Opcode as Op;

/// What a compare needs to know about a format that fits a word, its number sign-extended.
struct Format {
    /// Bits above the magnitude.
    above: u32,
    /// The bits of infinity.
    infinity: u32,
}

impl Format {
    fn of(ty: Type) -> Self {
        if ty == types::F16 {
            Self {
                above: 17,
                infinity: 0x7c00,
            }
        } else {
            Self {
                above: 1,
                infinity: 0x7f80_0000,
            }
        }
    }

    /// The number as an integer with its sign in bit 31.
    fn extended(&self, ctx: &mut Lower<'_>, x: Word) -> Word {
        match x {
            _ if self.above == 1 => x,
            Word::Const(c) => Word::Const(crate::lower::context::sign_extend(c.into(), 16)),
            Word::Reg(_) => ctx.unary(Op::SEXT16_32SS, x),
        }
    }

    /// The magnitude at the top of a word.
    fn magnitude(&self, ctx: &mut Lower<'_>, x: Word) -> Word {
        ctx.binary(Op::SLLSSS_32, x, Word::Const(self.above))
    }

    /// An integer in the order of the numbers, the same for both zeros. NaNs lie beyond the infinities.
    fn key(&self, ctx: &mut Lower<'_>, x: Word) -> Word {
        let sign = ctx.binary(Op::SRASSS_32, x, Word::Const(31));
        let flips = ctx.binary(Op::SRLSSS_32, sign, Word::Const(self.above));
        let flipped = ctx.binary(Op::XORSSS_32, x, flips);
        ctx.binary(Op::SUBSSS_32, flipped, sign)
    }

    /// 1 if `x` is below `y` (or equal, as the instruction says) and neither is a NaN.
    ///
    /// A NaN has a key above infinity or below minus infinity. If the keys are in order, `x` can only be one of the low
    /// ones and `y` only one of the high ones, unless both are of the same kind.
    fn ordered(&self, ctx: &mut Lower<'_>, op: Op, x: Word, y: Word) -> Word {
        let (a, b) = (self.key(ctx, x), self.key(ctx, y));
        let less = ctx.binary(op, a, b);
        let number = ctx.binary(Op::SLESISSS_32, b, Word::Const(self.infinity));
        let less = both(ctx, less, number);
        let number = ctx.binary(Op::SGESISSS_32, a, Word::Const(self.infinity.wrapping_neg()));
        both(ctx, less, number)
    }

    /// 1 if `x` is a NaN.
    fn nan(&self, ctx: &mut Lower<'_>, x: Word) -> Word {
        let magnitude = self.magnitude(ctx, x);
        ctx.binary(Op::SGTUISSS_32, magnitude, Word::Const(self.infinity << self.above))
    }

    /// 1 if one of them is a NaN.
    fn unordered(&self, ctx: &mut Lower<'_>, x: Word, y: Word) -> Word {
        let a = self.nan(ctx, x);
        if x == y {
            return a;
        }
        let b = self.nan(ctx, y);
        ctx.binary(Op::ORSSS_32, a, b)
    }

    /// 1 if both are equal numbers: the same bits and no NaN, or two zeros.
    fn equal(&self, ctx: &mut Lower<'_>, x: Word, y: Word) -> Word {
        let (x, y) = if matches!(x, Word::Const(_)) { (y, x) } else { (x, y) };
        if let Word::Const(c) = y {
            let magnitude = c << self.above;
            return match magnitude {
                0 => {
                    let magnitude = self.magnitude(ctx, x);
                    ctx.binary(Op::SEQSISSS_32, magnitude, Word::ZERO)
                }
                _ if magnitude > self.infinity << self.above => Word::ZERO,
                _ => ctx.binary(Op::SEQSISSS_32, x, y),
            };
        }
        let same = ctx.binary(Op::SEQSISSS_32, x, y);
        let magnitude = self.magnitude(ctx, x);
        let number = ctx.binary(Op::SLEUISSS_32, magnitude, Word::Const(self.infinity << self.above));
        let same = both(ctx, same, number);
        let either = ctx.binary(Op::ORSSS_32, x, y);
        let either = self.magnitude(ctx, either);
        let zeros = ctx.binary(Op::SEQSISSS_32, either, Word::ZERO);
        ctx.binary(Op::ORSSS_32, same, zeros)
    }
}

/// 1 if both truth values are.
fn both(ctx: &mut Lower<'_>, a: Word, b: Word) -> Word {
    match (a, b) {
        (Word::Const(1), other) | (other, Word::Const(1)) => other,
        _ => ctx.binary(Op::ANDSSS_32, a, b),
    }
}

/// What `__npu_f64_compare` gives.
const LESS: u32 = 1;
const EQUAL: u32 = 2;
const GREATER: u32 = 4;
const UNORDERED: u32 = 8;

/// The outcomes of a compare for which the condition holds.
fn outcomes(cc: FloatCC) -> u32 {
    match cc {
        FloatCC::Ordered => LESS | EQUAL | GREATER,
        FloatCC::Unordered => UNORDERED,
        FloatCC::Equal => EQUAL,
        FloatCC::NotEqual => LESS | GREATER | UNORDERED,
        FloatCC::OrderedNotEqual => LESS | GREATER,
        FloatCC::UnorderedOrEqual => UNORDERED | EQUAL,
        FloatCC::LessThan => LESS,
        FloatCC::LessThanOrEqual => LESS | EQUAL,
        FloatCC::GreaterThan => GREATER,
        FloatCC::GreaterThanOrEqual => GREATER | EQUAL,
        FloatCC::UnorderedOrLessThan => UNORDERED | LESS,
        FloatCC::UnorderedOrLessThanOrEqual => UNORDERED | LESS | EQUAL,
        FloatCC::UnorderedOrGreaterThan => UNORDERED | GREATER,
        FloatCC::UnorderedOrGreaterThanOrEqual => UNORDERED | GREATER | EQUAL,
    }
}

fn outcome(ctx: &mut Lower<'_>, cc: FloatCC, ty: Type, x: Words, y: Words) -> Outcome {
    if ty == types::F64 {
        let found = routine(ctx, Routine::F64Compare, x.then(y)).low();
        let word = ctx.binary(Op::ANDSSS_32, found, Word::Const(outcomes(cc)));
        return Outcome {
            word,
            holds_if_zero: false,
            boolean: false,
        };
    }
    let format = Format::of(ty);
    let x = format.extended(ctx, x.low());
    let y = format.extended(ctx, y.low());
    let (less, not_above) = (Op::SLTSISSS_32, Op::SLESISSS_32);
    let (word, holds_if_zero) = match cc {
        FloatCC::Ordered => (format.unordered(ctx, x, y), true),
        FloatCC::Unordered => (format.unordered(ctx, x, y), false),
        FloatCC::Equal => (format.equal(ctx, x, y), false),
        FloatCC::NotEqual => (format.equal(ctx, x, y), true),
        FloatCC::OrderedNotEqual | FloatCC::UnorderedOrEqual => {
            let unordered = format.unordered(ctx, x, y);
            let equal = format.equal(ctx, x, y);
            let either = ctx.binary(Op::ORSSS_32, unordered, equal);
            (either, cc == FloatCC::OrderedNotEqual)
        }
        FloatCC::LessThan => (format.ordered(ctx, less, x, y), false),
        FloatCC::LessThanOrEqual => (format.ordered(ctx, not_above, x, y), false),
        FloatCC::GreaterThan => (format.ordered(ctx, less, y, x), false),
        FloatCC::GreaterThanOrEqual => (format.ordered(ctx, not_above, y, x), false),
        // Not ordered the other way.
        FloatCC::UnorderedOrLessThan => (format.ordered(ctx, not_above, y, x), true),
        FloatCC::UnorderedOrLessThanOrEqual => (format.ordered(ctx, less, y, x), true),
        FloatCC::UnorderedOrGreaterThan => (format.ordered(ctx, not_above, x, y), true),
        FloatCC::UnorderedOrGreaterThanOrEqual => (format.ordered(ctx, less, x, y), true),
    };
    Outcome {
        word,
        holds_if_zero,
        boolean: true,
    }
}

/// 1 if the condition holds, else 0.
pub fn fcmp(ctx: &mut Lower<'_>, cc: &FloatCC, ty: Type, x: Words, y: Words) -> Word {
    outcome(ctx, *cc, ty, x, y).value(ctx)
}

/// The compare as a condition.
pub fn fcmp_cond(ctx: &mut Lower<'_>, cc: &FloatCC, ty: Type, x: Words, y: Words) -> Cond {
    outcome(ctx, *cc, ty, x, y).cond(ctx)
}
