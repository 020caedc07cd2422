//! Sums, differences and products of several words.

use crate::lower::context::Lower;
use crate::lower::words::{Word, Words};
use npu_mc::Opcode as Op;
use smallvec::SmallVec;

/// A result and the carry or borrow out of its highest word: 0 or 1.
pub struct WithCarry {
    /// The result.
    pub words: Words,
    /// The carry or borrow.
    pub carry: Word,
}

/// `x` + `y` + `carry`. There is no carry flag: a sum that is below one of its operands has wrapped.
pub fn add_carry(ctx: &mut Lower<'_>, x: Words, y: Words, mut carry: Word) -> WithCarry {
    let mut result: SmallVec<[Word; 4]> = SmallVec::new();
    for (&a, &b) in x.as_slice().iter().zip(y.as_slice()) {
        // The sum is compared with the second operand, so that it can take the register of the first; a constant is
        // second.
        let (a, b) = if matches!(a, Word::Const(_)) { (b, a) } else { (a, b) };
        let first = ctx.binary(Op::ADDSSS_32, a, b);
        let wrapped = ctx.binary(Op::SLTUISSS_32, first, b);
        let sum = ctx.binary(Op::ADDSSS_32, first, carry);
        let again = ctx.binary(Op::SLTUISSS_32, sum, carry);
        carry = ctx.binary(Op::ORSSS_32, wrapped, again);
        result.push(sum);
    }
    WithCarry {
        words: Words::new(result),
        carry,
    }
}

/// `x` - `y` - `borrow`.
pub fn sub_borrow(ctx: &mut Lower<'_>, x: Words, y: Words, mut borrow: Word) -> WithCarry {
    let mut result: SmallVec<[Word; 4]> = SmallVec::new();
    for (&a, &b) in x.as_slice().iter().zip(y.as_slice()) {
        // The borrows come first, so that the differences can take the registers of the operands.
        let wrapped = ctx.binary(Op::SLTUISSS_32, a, b);
        let first = ctx.binary(Op::SUBSSS_32, a, b);
        let again = ctx.binary(Op::SLTUISSS_32, first, borrow);
        let difference = ctx.binary(Op::SUBSSS_32, first, borrow);
        borrow = ctx.binary(Op::ORSSS_32, wrapped, again);
        result.push(difference);
    }
    WithCarry {
        words: Words::new(result),
        carry: borrow,
    }
}

/// `x` + `y`.
pub fn add(ctx: &mut Lower<'_>, x: Words, y: Words) -> Words {
    add_carry(ctx, x, y, Word::ZERO).words
}

/// `x` - `y`.
pub fn sub(ctx: &mut Lower<'_>, x: Words, y: Words) -> Words {
    sub_borrow(ctx, x, y, Word::ZERO).words
}

/// -`x`.
pub fn neg(ctx: &mut Lower<'_>, x: Words) -> Words {
    sub(ctx, Words::constant(0, x.len()), x)
}

/// The absolute value.
pub fn abs(ctx: &mut Lower<'_>, x: Words) -> Words {
    let sign = sign_word(ctx, x);
    let signs = Words::new(std::iter::repeat_n(sign, x.len()));
    let flipped = ctx.map2(Op::XORSSS_32, x, signs);
    sub(ctx, flipped, signs)
}

/// All ones if the number is negative, else zero.
pub fn sign_word(ctx: &mut Lower<'_>, x: Words) -> Word {
    ctx.binary(Op::SRASSS_32, x.top(), Word::Const(31))
}

/// 1 if `x` + `y` (+ a carry) = `sum` overflows as a signed number.
pub fn signed_add_overflow(ctx: &mut Lower<'_>, x: Words, y: Words, sum: Words) -> Word {
    let a = ctx.binary(Op::XORSSS_32, x.top(), sum.top());
    let b = ctx.binary(Op::XORSSS_32, y.top(), sum.top());
    let both = ctx.binary(Op::ANDSSS_32, a, b);
    ctx.binary(Op::SRLSSS_32, both, Word::Const(31))
}

/// 1 if `x` - `y` (- a borrow) = `difference` overflows as a signed number.
pub fn signed_sub_overflow(ctx: &mut Lower<'_>, x: Words, y: Words, difference: Words) -> Word {
    let a = ctx.binary(Op::XORSSS_32, x.top(), y.top());
    let b = ctx.binary(Op::XORSSS_32, x.top(), difference.top());
    let both = ctx.binary(Op::ANDSSS_32, a, b);
    ctx.binary(Op::SRLSSS_32, both, Word::Const(31))
}

/// The product of two numbers of two words, modulo 2^64.
pub fn mul64(ctx: &mut Lower<'_>, x: Words, y: Words) -> Words {
    let a = ctx.binary(Op::MULLSSS_32, x.get(0), y.get(1));
    let b = ctx.binary(Op::MULLSSS_32, x.get(1), y.get(0));
    let cross = ctx.binary(Op::ADDSSS_32, a, b);
    let high = ctx.binary(Op::MULHUSSS_32, x.get(0), y.get(0));
    let high = ctx.binary(Op::ADDSSS_32, high, cross);
    // Last, so that it can take the register of an operand.
    let low = ctx.binary(Op::MULLSSS_32, x.get(0), y.get(0));
    Words::new([low, high])
}

/// The product of two sign-extended words, in two.
pub fn mul_signed(ctx: &mut Lower<'_>, x: Word, y: Word) -> Words {
    let high = ctx.binary(Op::MULHSSS_32, x, y);
    let low = ctx.binary(Op::MULLSSS_32, x, y);
    Words::new([low, high])
}

/// The number, sign-extended to more words.
pub fn sign_extend(ctx: &mut Lower<'_>, x: Words, len: usize) -> Words {
    let sign = sign_word(ctx, x);
    Words::new((0..len).map(|i| if i < x.len() { x.get(i) } else { sign }))
}
