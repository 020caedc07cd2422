//! The semantics of CLIF's scalar operations.

use super::across::fixed_point_product;
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::Opcode;
use cranelift_codegen::ir::condcodes::IntCC;

/// The results and traps of an operation.
pub struct Outcome {
    /// The results.
    pub results: Vec<Term>,
    /// The conditions of traps, in the order in which they are tested.
    pub traps: Vec<(Term, Trap)>,
}

/// A trap of an arithmetic operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// Division by zero.
    DivisionByZero,
    /// A result out of the range of the type.
    Overflow,
    /// A conversion of a NaN to an integer.
    BadConversion,
}

impl Outcome {
    /// Returns an outcome with one result and without traps.
    pub fn of(result: Term) -> Self {
        Self {
            results: vec![result],
            traps: Vec::new(),
        }
    }

    fn two(first: Term, second: Term) -> Self {
        Self {
            results: vec![first, second],
            traps: Vec::new(),
        }
    }
}

/// Returns whether a number is not zero.
pub fn is_true(pool: &mut Pool, a: Term) -> Term {
    let zero = pool.int(pool.width(a), 0);
    let same = pool.eq(a, zero);
    pool.not(same)
}

/// Returns the sign bit of a number.
fn sign(pool: &mut Pool, a: Term) -> Term {
    let top = pool.width(a) - 1;
    pool.extract(top, top, a)
}

/// Extends a bit to CLIF's `i8`.
pub fn flag(pool: &mut Pool, bit: Term) -> Term {
    pool.zext(bit, 8)
}

/// Compares numbers; the result is one bit.
pub fn compare(pool: &mut Pool, cc: IntCC, a: Term, b: Term) -> Term {
    let (negated, bit) = match cc {
        IntCC::Equal => (false, pool.eq(a, b)),
        IntCC::NotEqual => (true, pool.eq(a, b)),
        IntCC::UnsignedLessThan => (false, pool.ult(a, b)),
        IntCC::UnsignedGreaterThanOrEqual => (true, pool.ult(a, b)),
        IntCC::UnsignedGreaterThan => (false, pool.ult(b, a)),
        IntCC::UnsignedLessThanOrEqual => (true, pool.ult(b, a)),
        IntCC::SignedLessThan => (false, pool.slt(a, b)),
        IntCC::SignedGreaterThanOrEqual => (true, pool.slt(a, b)),
        IntCC::SignedGreaterThan => (false, pool.slt(b, a)),
        IntCC::SignedLessThanOrEqual => (true, pool.slt(b, a)),
    };
    if negated { pool.not(bit) } else { bit }
}

/// Returns the shift amount modulo the width, which is a power of two, with that width.
fn amount(pool: &mut Pool, b: Term, width: u32) -> Term {
    let bits = width.trailing_zeros();
    let low = match pool.width(b) > bits {
        true => pool.extract(bits - 1, 0, b),
        false => b,
    };
    pool.zext(low, width)
}

/// Counts the ones of a word by pairwise sums.
fn ones_of_word(pool: &mut Pool, a: Term) -> Term {
    let constant = |pool: &mut Pool, value: u64| pool.int(WORD, value);
    let masked = |pool: &mut Pool, a, by, mask| {
        let shifted = pool.lshr_const(a, by);
        let mask = pool.int(WORD, mask);
        pool.and(shifted, mask)
    };
    let odd = masked(pool, a, 1, 0x5555_5555);
    let pairs = pool.sub(a, odd);
    let (low, high) = (masked(pool, pairs, 0, 0x3333_3333), masked(pool, pairs, 2, 0x3333_3333));
    let fours = pool.add(low, high);
    let shifted = pool.lshr_const(fours, 4);
    let sum = pool.add(fours, shifted);
    let eights = masked(pool, sum, 0, 0x0f0f_0f0f);
    let factor = constant(pool, 0x0101_0101);
    let product = pool.mul(eights, factor);
    pool.lshr_const(product, 24)
}

/// Counts ones.
fn ones(pool: &mut Pool, a: Term) -> Term {
    let width = pool.width(a);
    if width < WORD {
        let wide = pool.zext(a, WORD);
        let count = ones_of_word(pool, wide);
        return pool.extract(width - 1, 0, count);
    }
    let words = pool.words(a);
    let mut sum = pool.int(WORD, 0);
    for word in words {
        let own = ones_of_word(pool, word);
        sum = pool.add(sum, own);
    }
    pool.zext(sum, width)
}

/// Reverses the order of the pieces of a number.
fn reversed(pool: &mut Pool, a: Term, piece: u32) -> Term {
    let pieces: Vec<Term> = (0..pool.width(a) / piece)
        .map(|at| pool.extract(piece * at + piece - 1, piece * at, a))
        .collect();
    pool.concat(&pieces)
}

/// Returns the result of a unary operation.
pub fn unary(pool: &mut Pool, op: Opcode, a: Term) -> Option<Term> {
    let width = pool.width(a);
    Some(match op {
        Opcode::Ineg => pool.neg(a),
        Opcode::Bnot => pool.not(a),
        Opcode::Iabs => {
            let (negative, minus) = (sign(pool, a), pool.neg(a));
            pool.ite(negative, minus, a)
        }
        Opcode::Clz => pool.clz(a),
        Opcode::Ctz => pool.ctz(a),
        Opcode::Cls => {
            let copies = pool.ashr_const(a, width - 1);
            let differ = pool.xor(a, copies);
            let (count, one) = (pool.clz(differ), pool.int(width, 1));
            pool.sub(count, one)
        }
        Opcode::Popcnt => ones(pool, a),
        Opcode::Bitrev => reversed(pool, a, 1),
        Opcode::Bswap => reversed(pool, a, 8),
        // Float operations on the sign bit.
        Opcode::Fneg => {
            let top = pool.constant(width, crate::term::Bits::bit(width - 1));
            pool.xor(a, top)
        }
        Opcode::Fabs => {
            let rest = pool.extract(width - 2, 0, a);
            pool.zext(rest, width)
        }
        _ => return None,
    })
}

/// Returns a sum of more than two operands, extended to a width that holds it.
fn wide_sum(pool: &mut Pool, signed: bool, plus: &[Term], minus: &[Term]) -> Term {
    let first = plus.first().or(minus.first());
    let width = first.map_or(1, |&term| pool.width(term)) + 2;
    let mut sum = pool.int(width, 0);
    for (&term, is_plus) in plus.iter().map(|t| (t, true)).chain(minus.iter().map(|t| (t, false))) {
        let wide = match signed && pool.width(term) > 1 {
            true => pool.sext(term, width),
            false => pool.zext(term, width),
        };
        sum = match is_plus {
            true => pool.add(sum, wide),
            false => pool.sub(sum, wide),
        };
    }
    sum
}

/// Returns whether a signed sum overflows the width.
fn does_not_fit(pool: &mut Pool, wide: Term, width: u32) -> Term {
    let kept = pool.extract(width - 1, 0, wide);
    let back = pool.sext(kept, pool.width(wide));
    let same = pool.eq(back, wide);
    pool.not(same)
}

/// Returns whether `a + b` overflows the signed type.
fn add_overflows(pool: &mut Pool, a: Term, b: Term, sum: Term) -> Term {
    let (x, y) = (pool.xor(a, sum), pool.xor(b, sum));
    let both = pool.and(x, y);
    sign(pool, both)
}

/// Returns whether `a - b` overflows the signed type.
fn sub_overflows(pool: &mut Pool, a: Term, b: Term, difference: Term) -> Term {
    let (x, y) = (pool.xor(a, b), pool.xor(a, difference));
    let both = pool.and(x, y);
    sign(pool, both)
}

/// Returns the minimum of the signed type for a negative number, otherwise the maximum.
fn limit(pool: &mut Pool, a: Term) -> Term {
    let width = pool.width(a);
    let negative = sign(pool, a);
    let positive = pool.not(negative);
    let rest = pool.sext(positive, width - 1);
    pool.concat(&[negative, rest])
}

/// Returns the outcome of a binary operation; shift amounts have any type.
pub fn binary(pool: &mut Pool, op: Opcode, a: Term, b: Term) -> Option<Outcome> {
    let width = pool.width(a);
    let ones = pool.constant(width, crate::term::Bits::ones(width));
    let zero = pool.int(width, 0);
    Some(Outcome::of(match op {
        Opcode::Iadd => pool.add(a, b),
        Opcode::Isub => pool.sub(a, b),
        Opcode::Imul => pool.mul(a, b),
        Opcode::Umulhi => pool.umulhi(a, b),
        Opcode::Smulhi => pool.smulhi(a, b),
        Opcode::Band => pool.and(a, b),
        Opcode::Bor => pool.or(a, b),
        Opcode::Bxor => pool.xor(a, b),
        Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => {
            let by = amount(pool, b, width);
            match op {
                Opcode::Ishl => pool.shl(a, by),
                Opcode::Ushr => pool.lshr(a, by),
                _ => pool.ashr(a, by),
            }
        }
        Opcode::Rotl | Opcode::Rotr => {
            let by = amount(pool, b, width);
            let by = if op == Opcode::Rotl { by } else { pool.neg(by) };
            pool.rotl(a, by)
        }
        Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => {
            let signed = matches!(op, Opcode::Smin | Opcode::Smax);
            let less = if signed { pool.slt(a, b) } else { pool.ult(a, b) };
            match op {
                Opcode::Smin | Opcode::Umin => pool.ite(less, a, b),
                _ => pool.ite(less, b, a),
            }
        }
        Opcode::AvgRound => {
            let one = pool.bool(true);
            let sum = wide_sum(pool, false, &[a, b, one], &[]);
            pool.extract(width, 1, sum)
        }
        Opcode::UaddSat => {
            let sum = pool.add(a, b);
            let over = pool.ult(sum, a);
            pool.ite(over, ones, sum)
        }
        Opcode::UsubSat => {
            let (rest, under) = (pool.sub(a, b), pool.ult(a, b));
            pool.ite(under, zero, rest)
        }
        Opcode::SaddSat | Opcode::SsubSat => {
            let (value, over) = match op {
                Opcode::SaddSat => {
                    let sum = pool.add(a, b);
                    (sum, add_overflows(pool, a, b, sum))
                }
                _ => {
                    let rest = pool.sub(a, b);
                    (rest, sub_overflows(pool, a, b, rest))
                }
            };
            let most = limit(pool, a);
            pool.ite(over, most, value)
        }
        Opcode::SqmulRoundSat => fixed_point_product(pool, a, b, true),
        Opcode::X86Pmulhrsw => fixed_point_product(pool, a, b, false),
        Opcode::Fcopysign => {
            let (top, rest) = (sign(pool, b), pool.extract(width - 2, 0, a));
            pool.concat(&[top, rest])
        }
        Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => return Some(divide(pool, op, a, b)),
        _ => return overflowing(pool, op, a, b),
    }))
}

fn divide(pool: &mut Pool, op: Opcode, a: Term, b: Term) -> Outcome {
    let width = pool.width(a);
    let zero = pool.int(width, 0);
    let mut traps = vec![(pool.eq(b, zero), Trap::DivisionByZero)];
    let result = match op {
        Opcode::Udiv => pool.udiv(a, b),
        Opcode::Urem => pool.urem(a, b),
        Opcode::Srem => pool.srem(a, b),
        _ => {
            let ones = pool.not(zero);
            let least = pool.constant(width, crate::term::Bits::bit(width - 1));
            let (x, y) = (pool.eq(a, least), pool.eq(b, ones));
            traps.push((pool.and(x, y), Trap::Overflow));
            pool.sdiv(a, b)
        }
    };
    Outcome {
        results: vec![result],
        traps,
    }
}

/// Returns the outcome of an operation whose second result is the overflow flag.
fn overflowing(pool: &mut Pool, op: Opcode, a: Term, b: Term) -> Option<Outcome> {
    let width = pool.width(a);
    let (value, over) = match op {
        Opcode::UaddOverflow => {
            let sum = pool.add(a, b);
            (sum, pool.ult(sum, a))
        }
        Opcode::SaddOverflow => {
            let sum = pool.add(a, b);
            (sum, add_overflows(pool, a, b, sum))
        }
        Opcode::UsubOverflow => (pool.sub(a, b), pool.ult(a, b)),
        Opcode::SsubOverflow => {
            let rest = pool.sub(a, b);
            (rest, sub_overflows(pool, a, b, rest))
        }
        Opcode::UmulOverflow => {
            let (low, high) = (pool.mul(a, b), pool.umulhi(a, b));
            (low, is_true(pool, high))
        }
        Opcode::SmulOverflow => {
            let (low, high) = (pool.mul(a, b), pool.smulhi(a, b));
            let copies = pool.ashr_const(low, width - 1);
            let same = pool.eq(high, copies);
            (low, pool.not(same))
        }
        _ => return None,
    };
    Some(Outcome::two(value, flag(pool, over)))
}

/// Returns the outcome of a ternary operation.
pub fn ternary(pool: &mut Pool, op: Opcode, a: Term, b: Term, c: Term) -> Option<Outcome> {
    let width = pool.width(b);
    Some(match op {
        Opcode::Select | Opcode::SelectSpectreGuard => {
            let condition = is_true(pool, a);
            Outcome::of(pool.ite(condition, b, c))
        }
        Opcode::Blendv => {
            let condition = sign(pool, a);
            Outcome::of(pool.ite(condition, b, c))
        }
        Opcode::Bitselect => {
            let (not, x) = (pool.not(a), pool.and(a, b));
            let y = pool.and(not, c);
            Outcome::of(pool.or(x, y))
        }
        Opcode::UaddOverflowCin | Opcode::UsubOverflowBin | Opcode::SaddOverflowCin | Opcode::SsubOverflowBin => {
            let carry = is_true(pool, c);
            let signed = matches!(op, Opcode::SaddOverflowCin | Opcode::SsubOverflowBin);
            let wide = match op {
                Opcode::UaddOverflowCin | Opcode::SaddOverflowCin => wide_sum(pool, signed, &[a, b, carry], &[]),
                _ => wide_sum(pool, signed, &[a], &[b, carry]),
            };
            let value = pool.extract(width - 1, 0, wide);
            let over = match signed {
                true => does_not_fit(pool, wide, width),
                false => pool.extract(width, width, wide),
            };
            Outcome::two(value, flag(pool, over))
        }
        _ => return None,
    })
}

/// Returns an unsigned sum and its carry, for the operation that traps on overflow.
pub fn carries(pool: &mut Pool, a: Term, b: Term) -> (Term, Term) {
    let sum = pool.add(a, b);
    (sum, pool.ult(sum, a))
}
