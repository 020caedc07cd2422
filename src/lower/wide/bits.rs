//! Shifts, rotates and bit counting over several words.

use super::arithmetic::sign_word;
use crate::inst::Cond;
use crate::lower::context::Lower;
use crate::lower::words::{Word, Words};
use npu_mc::Opcode as Op;
use npu_mc::errata::Erratum;
use smallvec::SmallVec;

/// Bits of a word.
const BITS: u32 = 32;

/// What comes in at the ends of a shift by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// Zeros.
    Zeros,
    /// Copies of the sign.
    Sign,
    /// What goes out at the other end.
    Rotate,
}

/// `low` and `high` as one number, shifted to the left by less than a word; its high half.
fn funnel(ctx: &mut Lower<'_>, low: Word, high: Word, bits: u32) -> Word {
    if bits == 0 {
        return high;
    }
    let upper = ctx.binary(Op::SLLSSS_32, high, Word::Const(bits));
    let lower = ctx.binary(Op::SRLSSS_32, low, Word::Const(BITS - bits));
    ctx.binary(Op::ORSSS_32, upper, lower)
}

/// Shifted or rotated to the left by a constant, which is below the width.
pub fn shift_left(ctx: &mut Lower<'_>, x: Words, amount: u32, filling: Filling) -> Words {
    let len = x.len();
    let (skip, bits) = ((amount / BITS) as usize, amount % BITS);
    // Word `i` below zero: zeros, or the word from the other end.
    let word = |i: usize, back: usize| -> Word {
        match i.checked_sub(back) {
            Some(i) => x.get(i),
            None if filling == Filling::Rotate => x.get(i + len - back),
            None => Word::ZERO,
        }
    };
    // From the top, so that a word can take the register of the one it comes from.
    let mut words: SmallVec<[Word; 4]> = (0..len)
        .rev()
        .map(|i| {
            let (low, high) = (word(i, skip + 1), word(i, skip));
            funnel(ctx, low, high, bits)
        })
        .collect();
    words.reverse();
    Words::new(words)
}

/// Shifted to the right by a constant, which is below the width.
pub fn shift_right(ctx: &mut Lower<'_>, x: Words, amount: u32, filling: Filling) -> Words {
    let len = x.len();
    let (skip, bits) = ((amount / BITS) as usize, amount % BITS);
    let fill = match filling {
        Filling::Sign if skip > 0 => sign_word(ctx, x),
        _ => Word::ZERO,
    };
    let words: SmallVec<[Word; 4]> = (0..len)
        .map(|i| {
            let at = i + skip;
            if at >= len {
                return fill;
            }
            if at + 1 < len {
                if bits == 0 {
                    return x.get(at);
                }
                return funnel(ctx, x.get(at), x.get(at + 1), BITS - bits);
            }
            let op = if filling == Filling::Sign {
                Op::SRASSS_32
            } else {
                Op::SRLSSS_32
            };
            ctx.binary(op, x.get(at), Word::Const(bits))
        })
        .collect();
    Words::new(words)
}

/// The amount of a variable shift of two words in parts: what to shift by within a word, the same counted from the other
/// end (31 minus it), and whether to move by a whole word first.
struct Amount {
    bits: Word,
    rest: Word,
    whole: Cond,
}

fn amount(ctx: &mut Lower<'_>, n: Word) -> Amount {
    let bits = ctx.binary(Op::ANDSSS_32, n, Word::Const(BITS - 1));
    let rest = ctx.binary(Op::XORSSS_32, bits, Word::Const(BITS - 1));
    let whole = ctx.binary(Op::ANDSSS_32, n, Word::Const(BITS));
    let whole = ctx.nonzero_word(whole);
    Amount { bits, rest, whole }
}

/// The word above `low` after a shift to the left: two shifts, since the amount may be 0, and one by 32 is none that
/// every machine can do.
fn funnel_left(ctx: &mut Lower<'_>, low: Word, high: Word, n: &Amount) -> Word {
    let upper = ctx.binary(Op::SLLSSS_32, high, n.bits);
    let half = ctx.binary(Op::SRLSSS_32, low, Word::Const(1));
    let lower = ctx.binary(Op::SRLSSS_32, half, n.rest);
    ctx.binary(Op::ORSSS_32, upper, lower)
}

fn funnel_right(ctx: &mut Lower<'_>, low: Word, high: Word, n: &Amount) -> Word {
    let lower = ctx.binary(Op::SRLSSS_32, low, n.bits);
    let twice = ctx.binary(Op::SLLSSS_32, high, Word::Const(1));
    let upper = ctx.binary(Op::SLLSSS_32, twice, n.rest);
    ctx.binary(Op::ORSSS_32, lower, upper)
}

/// Two words, shifted to the left by a variable amount modulo 64.
pub fn shl64(ctx: &mut Lower<'_>, x: Words, n: Word) -> Words {
    if ctx.isa.has_erratum(Erratum::ShiftAmountNotModulo) {
        // This machine gives 0 for an amount of 32 or more, negative ones included, so that of the three parts of the high
        // word those that do not count are 0.
        let n = ctx.binary(Op::ANDSSS_32, n, Word::Const(2 * BITS - 1));
        let back = ctx.binary(Op::SUBSSS_32, Word::Const(BITS), n);
        let over = ctx.binary(Op::ADDSSS_32, n, Word::Const(BITS.wrapping_neg()));
        let high = ctx.binary(Op::SLLSSS_32, x.get(1), n);
        let carried = ctx.binary(Op::SRLSSS_32, x.get(0), back);
        let moved = ctx.binary(Op::SLLSSS_32, x.get(0), over);
        let high = ctx.binary(Op::ORSSS_32, high, carried);
        let high = ctx.binary(Op::ORSSS_32, high, moved);
        let low = ctx.binary(Op::SLLSSS_32, x.get(0), n);
        return Words::new([low, high]);
    }
    let n = amount(ctx, n);
    let low = ctx.binary(Op::SLLSSS_32, x.get(0), n.bits);
    let high = funnel_left(ctx, x.get(0), x.get(1), &n);
    ctx.select_words(n.whole, Words::new([Word::ZERO, low]), Words::new([low, high]))
}

/// Two words, shifted to the right by a variable amount modulo 64, zeros coming in.
pub fn ushr64(ctx: &mut Lower<'_>, x: Words, n: Word) -> Words {
    if ctx.isa.has_erratum(Erratum::ShiftAmountNotModulo) {
        let n = ctx.binary(Op::ANDSSS_32, n, Word::Const(2 * BITS - 1));
        let back = ctx.binary(Op::SUBSSS_32, Word::Const(BITS), n);
        let over = ctx.binary(Op::ADDSSS_32, n, Word::Const(BITS.wrapping_neg()));
        let low = ctx.binary(Op::SRLSSS_32, x.get(0), n);
        let carried = ctx.binary(Op::SLLSSS_32, x.get(1), back);
        let moved = ctx.binary(Op::SRLSSS_32, x.get(1), over);
        let low = ctx.binary(Op::ORSSS_32, low, carried);
        let low = ctx.binary(Op::ORSSS_32, low, moved);
        let high = ctx.binary(Op::SRLSSS_32, x.get(1), n);
        return Words::new([low, high]);
    }
    let n = amount(ctx, n);
    let high = ctx.binary(Op::SRLSSS_32, x.get(1), n.bits);
    let low = funnel_right(ctx, x.get(0), x.get(1), &n);
    ctx.select_words(n.whole, Words::new([high, Word::ZERO]), Words::new([low, high]))
}

/// Two words, shifted to the right by a variable amount modulo 64, the sign coming in.
pub fn sshr64(ctx: &mut Lower<'_>, x: Words, n: Word) -> Words {
    let n = amount(ctx, n);
    let high = ctx.binary(Op::SRASSS_32, x.get(1), n.bits);
    let low = funnel_right(ctx, x.get(0), x.get(1), &n);
    let sign = sign_word(ctx, x);
    ctx.select_words(n.whole, Words::new([high, sign]), Words::new([low, high]))
}

/// Two words, rotated to the left by a variable amount modulo 64.
pub fn rotl64(ctx: &mut Lower<'_>, x: Words, n: Word) -> Words {
    let n = amount(ctx, n);
    let turned = Words::new([x.get(1), x.get(0)]);
    let x = ctx.select_words(n.whole, turned, x);
    let low = funnel_left(ctx, x.get(1), x.get(0), &n);
    let high = funnel_left(ctx, x.get(0), x.get(1), &n);
    Words::new([low, high])
}

/// Two words, rotated to the right by a variable amount modulo 64.
pub fn rotr64(ctx: &mut Lower<'_>, x: Words, n: Word) -> Words {
    let n = amount(ctx, n);
    let turned = Words::new([x.get(1), x.get(0)]);
    let x = ctx.select_words(n.whole, turned, x);
    let low = funnel_right(ctx, x.get(0), x.get(1), &n);
    let high = funnel_right(ctx, x.get(1), x.get(0), &n);
    Words::new([low, high])
}

/// How many zeros there are before the first one, by the instruction that counts in one word and gives 32 for zero. The
/// words come in the order in which they are looked at.
fn count_zeros(ctx: &mut Lower<'_>, op: Op, words: &[Word]) -> Word {
    let mut behind: Option<Word> = None;
    for &word in words.iter().rev() {
        let here = ctx.unary(op, word);
        behind = Some(match behind {
            None => here,
            Some(count) => {
                let all = ctx.binary(Op::SRLSSS_32, here, Word::Const(5));
                let mask = ctx.binary(Op::SUBSSS_32, Word::ZERO, all);
                let more = ctx.binary(Op::ANDSSS_32, count, mask);
                ctx.binary(Op::ADDSSS_32, here, more)
            }
        });
    }
    behind.unwrap_or(Word::ZERO)
}

fn reversed(x: Words) -> SmallVec<[Word; 4]> {
    x.as_slice().iter().rev().copied().collect()
}

/// Leading zeros.
pub fn clz(ctx: &mut Lower<'_>, x: Words) -> Words {
    let count = count_zeros(ctx, Op::CLZSS_32, &reversed(x));
    Words::one(count).take(x.len())
}

/// Trailing zeros.
pub fn ctz(ctx: &mut Lower<'_>, x: Words) -> Words {
    let count = count_zeros(ctx, Op::CTZSS_32, x.as_slice());
    Words::one(count).take(x.len())
}

/// Leading bits equal to the sign, the sign itself not counted.
pub fn cls(ctx: &mut Lower<'_>, x: Words) -> Words {
    let sign = sign_word(ctx, x);
    let flipped = ctx.map1(Op::XORSSS_32, x, sign);
    let count = count_zeros(ctx, Op::CLZSS_32, &reversed(flipped));
    let count = ctx.binary(Op::ADDSSS_32, count, Word::Const(u32::MAX));
    Words::one(count).take(x.len())
}

/// Every word through a function, and their order reversed.
pub fn reverse_words(ctx: &mut Lower<'_>, x: Words, each: impl Fn(&mut Lower<'_>, Word) -> Word) -> Words {
    let words: SmallVec<[Word; 4]> = x.as_slice().iter().rev().map(|word| each(ctx, *word)).collect();
    Words::new(words)
}

/// The bits of `x` where the mask has ones, else those of `y`.
pub fn bitselect(ctx: &mut Lower<'_>, mask: Words, x: Words, y: Words) -> Words {
    let differ = ctx.map2(Op::XORSSS_32, x, y);
    let chosen = ctx.map2(Op::ANDSSS_32, differ, mask);
    ctx.map2(Op::XORSSS_32, chosen, y)
}
