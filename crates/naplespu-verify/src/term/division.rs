//! Division. Division by a constant becomes a multiplication by the method of Granlund and
//! Montgomery, whose parameters are checked by exact arithmetic. Division below a word is division
//! of words. Division by an unknown stays.

use super::{Bits, MAX_WIDTH, Op, Pool, Term, WORD};

/// The parameters of the division of `width` bits by a constant: `n / d` is `n * factor >> power`.
struct Magic {
    factor: Bits,
    power: u32,
}

/// Returns whether `n * factor >> power` is the quotient of `n` by `divisor`, rounded down, for
/// every `n` up to `most`. If not `strict`, returns whether the product is above the quotient times
/// `2^power` and at most one step above it.
///
/// With `n = q * d + r` and `e = factor * d - 2^power`, the product exceeds `q * 2^power` by less
/// than `2^power` if `n * e < 2^power * (d - r)`. The left side grows with `n`, and the right side
/// is smallest for the largest remainder. Therefore two values are enough: the largest `n` with
/// remainder `d - 1`, and the largest `n` overall, since remainders restart at 0 after the former.
fn holds(factor: Bits, power: u32, divisor: Bits, most: Bits, strict: bool) -> bool {
    let width = MAX_WIDTH;
    let one = Bits::bit(power);
    let product = factor.mul(divisor, width);
    if product.ult(one) || product == one && !strict {
        return false;
    }
    let excess = product.sub(one, width);
    let (_, last) = most.udivrem(divisor, width);
    let back = last.add(Bits::from(1u64), width);
    let (_, back) = back.udivrem(divisor, width);
    let check = |n: Bits| {
        let (_, r) = n.udivrem(divisor, width);
        let left = n.mul(excess, width);
        let right = divisor.sub(r, width).shl(power, width);
        left.ult(right) || !strict && left == right
    };
    let full = match most.ult(back) {
        true => true,
        false => check(most.sub(back, width)),
    };
    full && check(most)
}

/// Returns the smallest parameters of unsigned division.
fn unsigned(divisor: Bits, width: u32) -> Option<Magic> {
    let most = Bits::ones(width);
    (width..=2 * width).find_map(|power| {
        let (quotient, rest) = Bits::bit(power).udivrem(divisor, MAX_WIDTH);
        let factor = quotient.add(Bits::from(u64::from(!rest.is_zero())), MAX_WIDTH);
        holds(factor, power, divisor, most, true).then_some(Magic { factor, power })
    })
}

/// Returns the smallest parameters of signed division by `divisor` or, if `negative`, by
/// `-divisor`.
fn signed(divisor: Bits, width: u32, negative: bool) -> Option<Magic> {
    let least = Bits::bit(width - 1);
    let most = Bits::ones(width - 1);
    // The quotient of operands with the same sign is rounded down, the others up.
    let (same, other) = if negative { (least, most) } else { (most, least) };
    (width..2 * width).find_map(|power| {
        let (quotient, _) = Bits::bit(power).udivrem(divisor, MAX_WIDTH);
        let factor = quotient.add(Bits::from(1u64), MAX_WIDTH);
        let fits = factor.lshr(width).is_zero();
        (fits && holds(factor, power, divisor, same, true) && holds(factor, power, divisor, other, false))
            .then_some(Magic { factor, power })
    })
}

impl Pool {
    /// Returns the unsigned quotient, all ones for a divisor of zero.
    pub fn udiv(&mut self, a: Term, b: Term) -> Term {
        self.divide(Op::Udiv, a, b)
    }

    /// Returns the unsigned remainder, the dividend for a divisor of zero.
    pub fn urem(&mut self, a: Term, b: Term) -> Term {
        self.divide(Op::Urem, a, b)
    }

    /// Returns the signed quotient, rounded towards zero.
    pub fn sdiv(&mut self, a: Term, b: Term) -> Term {
        self.divide(Op::Sdiv, a, b)
    }

    /// Returns the signed remainder, with the sign of the dividend.
    pub fn srem(&mut self, a: Term, b: Term) -> Term {
        self.divide(Op::Srem, a, b)
    }

    fn divide(&mut self, op: Op, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            let value = match op {
                Op::Udiv => x.udivrem(y, width).0,
                Op::Urem => x.udivrem(y, width).1,
                Op::Sdiv => x.sdivrem(y, width).0,
                _ => x.sdivrem(y, width).1,
            };
            return self.constant(width, value);
        }
        let is_signed = matches!(op, Op::Sdiv | Op::Srem);
        if a == b {
            // Division by itself: 1 and 0, except for 0.
            let zero = self.int(width, 0);
            let is_zero = self.eq(a, zero);
            return match op {
                Op::Urem | Op::Srem => zero,
                _ => {
                    let (one, ones) = (self.int(width, 1), self.not(zero));
                    self.ite(is_zero, ones, one)
                }
            };
        }
        // Narrows dividends and divisors that fit in fewer bits: a signed quotient of `n`-bit
        // operands needs `n + 1` bits.
        let round = width.next_multiple_of(WORD);
        if round != width {
            let extend = |pool: &mut Self, term| match is_signed {
                true => pool.sext(term, round),
                false => pool.zext(term, round),
            };
            let (x, y) = (extend(self, a), extend(self, b));
            let wide = self.divide(op, x, y);
            return self.extract(width - 1, 0, wide);
        }
        if let Some(divisor) = self.as_const(b)
            && !divisor.is_zero()
        {
            let quotient = match is_signed {
                true => self.sdiv_const(a, divisor),
                false => self.udiv_const(a, divisor),
            };
            if let Some(quotient) = quotient {
                return match op {
                    Op::Udiv | Op::Sdiv => quotient,
                    _ => {
                        let product = self.mul(quotient, b);
                        self.sub(a, product)
                    }
                };
            }
        }
        self.raw2(op, width, a, b)
    }

    fn udiv_const(&mut self, a: Term, divisor: Bits) -> Option<Term> {
        let width = self.width(a);
        let low = divisor.ctz(width);
        if divisor == Bits::bit(low) {
            return Some(self.lshr_const(a, low));
        }
        let magic = unsigned(divisor, width)?;
        let factor = self.constant(width, magic.factor);
        let high = self.umulhi(a, factor);
        let shift = magic.power - width;
        if magic.factor.lshr(width).is_zero() {
            return Some(self.lshr_const(high, shift));
        }
        // The factor has one bit more than the type.
        let rest = self.sub(a, high);
        let half = self.lshr_const(rest, 1);
        let sum = self.add(half, high);
        Some(self.lshr_const(sum, shift.checked_sub(1)?))
    }

    fn sdiv_const(&mut self, a: Term, divisor: Bits) -> Option<Term> {
        let width = self.width(a);
        let negative = divisor.get(width - 1);
        let magnitude = if negative { divisor.neg(width) } else { divisor };
        let low = magnitude.ctz(width);
        let quotient = if magnitude == Bits::bit(low) {
            if low == width - 1 {
                // Division by the minimum: 1 for itself, otherwise 0.
                let least = self.constant(width, divisor);
                let same = self.eq(a, least);
                return Some(self.zext(same, width));
            }
            if low == 0 {
                a
            } else {
                let sign = self.ashr_const(a, width - 1);
                let bias = self.lshr_const(sign, width - low);
                let sum = self.add(a, bias);
                self.ashr_const(sum, low)
            }
        } else {
            let magic = signed(magnitude, width, negative)?;
            let factor = match negative {
                true => magic.factor.neg(width),
                false => magic.factor,
            };
            let multiplier = self.constant(width, factor);
            let mut high = self.smulhi(a, multiplier);
            // The multiplication treats the factor as signed, so the dividend is added once.
            if !negative && factor.get(width - 1) {
                high = self.add(high, a);
            } else if negative && !factor.get(width - 1) {
                high = self.sub(high, a);
            }
            let shifted = self.ashr_const(high, magic.power - width);
            let sign = self.lshr_const(shifted, width - 1);
            return Some(self.add(shifted, sign));
        };
        Some(if negative { self.neg(quotient) } else { quotient })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Term;
    use super::*;
    use crate::term::eval::Evaluator;

    /// Compares the multiplications with divisions: all 8-bit divisors with all dividends, which
    /// exercises the formulas, and some 32-bit and 64-bit divisors at corner values.
    #[test]
    fn constants() {
        for width in [32, 64] {
            let mut pool = Pool::new();
            let x = pool.var("x", width);
            let mut divisors: Vec<u64> = (1..200).collect();
            divisors.extend([641, 65537, 0x7fff_ffff, 0x8000_0001, 0xffff_fffe, 1_000_000_007]);
            let all: Vec<Bits> = divisors
                .iter()
                .flat_map(|&d| [Bits::from(d), Bits::from(d).neg(width)])
                .map(|d| d.masked(width))
                .collect();
            let mut terms: Vec<(Bits, [Term; 4])> = Vec::new();
            for &d in &all {
                let y = pool.constant(width, d);
                let four = [pool.udiv(x, y), pool.urem(x, y), pool.sdiv(x, y), pool.srem(x, y)];
                assert!(
                    four.iter()
                        .all(|&t| !matches!(pool.node(t).op, Op::Udiv | Op::Sdiv | Op::Urem | Op::Srem)),
                    "{d:?}"
                );
                terms.push((d, four));
            }
            let corners = [
                0u64,
                1,
                2,
                99,
                100,
                0x7fff_ffff,
                0x8000_0000,
                u64::MAX,
                u64::MAX / 2,
                u64::MAX / 2 + 1,
            ];
            let mut dividends: Vec<Bits> = corners.iter().map(|&v| Bits::from(v).masked(width)).collect();
            for &d in all.iter().step_by(7) {
                let (q, _) = Bits::ones(width).udivrem(d, width);
                let top = q.mul(d, width);
                dividends.extend([top, top.sub(Bits::from(1u64), width), d.sub(Bits::from(1u64), width)]);
            }
            for n in dividends {
                let mut values = Evaluator::new(0);
                values.set(&pool, x, n);
                for (d, four) in &terms {
                    let (uq, ur) = n.udivrem(*d, width);
                    let (sq, sr) = n.sdivrem(*d, width);
                    let got = four.map(|t| values.value(&pool, t));
                    assert_eq!(got, [uq, ur, sq, sr], "{n:?} by {d:?} on {width} bits");
                }
            }
        }
    }
}
