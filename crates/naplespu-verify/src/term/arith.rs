//! Sums and products of at most a word.
//!
//! A sum is a linear combination of terms that are not sums. Two forms are special: a multiple by a
//! power of two is a concatenation with zeros below, and the sum `-x - 1` is a complement.

use super::{Bits, Op, Pool, Term, WORD};
use smallvec::{SmallVec, smallvec};

/// Terms with their coefficients, in ascending order of position.
pub(super) type Linear = SmallVec<[(Term, u32); 4]>;

/// The maximum number of terms in a sum that is multiplied out.
const MOST_TERMS: usize = 24;

/// Returns the mask of a width of at most a word.
fn mask(width: u32) -> u32 {
    u32::MAX >> (WORD - width.clamp(1, WORD))
}

impl Pool {
    /// Returns the term as a linear combination and a constant.
    pub(super) fn linear(&self, a: Term) -> (Linear, u32) {
        let mut out = Linear::new();
        let constant = self.add_linear(a, 1, &mut out);
        (normal(out, self.width(a)), constant & mask(self.width(a)))
    }

    /// Appends `by` times the term; returns the constant part.
    fn add_linear(&self, a: Term, by: u32, out: &mut Linear) -> u32 {
        let node = self.node(a);
        match &node.op {
            Op::Const(bits) => by.wrapping_mul(bits.low() as u32),
            Op::Sum(coefficients, constant) => {
                for (&term, &coefficient) in node.args.iter().zip(coefficients) {
                    out.push((term, by.wrapping_mul(coefficient)));
                }
                by.wrapping_mul(*constant)
            }
            Op::Not => {
                let constant = self.add_linear(node.args[0], by.wrapping_neg(), out);
                constant.wrapping_sub(by)
            }
            Op::Sext if self.width(node.args[0]) == 1 => {
                // A sign-extended bit is -1 times its zero extension, if that exists.
                match self.find_zext(node.args[0], node.width) {
                    Some(term) => out.push((term, by.wrapping_neg())),
                    None => out.push((a, by)),
                }
                0
            }
            Op::Concat => match self.multiple_of(a) {
                Some((base, shift)) => self.add_linear(base, by << shift, out),
                None => {
                    out.push((a, by));
                    0
                }
            },
            _ => {
                out.push((a, by));
                0
            }
        }
    }

    /// Returns the zero extension of a term, if it exists already.
    fn find_zext(&self, a: Term, width: u32) -> Option<Term> {
        let zero = self.find(&Op::Const(Bits::ZERO), width - self.width(a), &[])?;
        self.find(&Op::Concat, width, &[zero, a])
    }

    fn find(&self, op: &Op, width: u32, args: &[Term]) -> Option<Term> {
        let node = super::Node {
            op: op.clone(),
            width,
            args: args.iter().copied().collect(),
        };
        self.known.get(&node).copied()
    }

    /// Returns `base` and `shift` if the concatenation is `base << shift`.
    fn multiple_of(&self, a: Term) -> Option<(Term, u32)> {
        let node = self.node(a);
        let [high, zero] = node.args[..] else {
            return None;
        };
        let shift = self.width(zero);
        let kept = self.node(high);
        let is_low = matches!(kept.op, Op::Extract(0)) && self.width(kept.args[0]) == node.width;
        (self.is_false(zero) && is_low && node.width <= WORD).then(|| (kept.args[0], shift))
    }

    /// Returns the term of a linear combination.
    pub(super) fn of_linear(&mut self, width: u32, terms: Linear, constant: u32) -> Term {
        let terms = normal(terms, width);
        let constant = constant & mask(width);
        let minus_one = mask(width);
        match terms[..] {
            [] => return self.int(width, u64::from(constant)),
            [(a, 1)] if constant == 0 => return a,
            [(a, by)] if by == minus_one && constant == minus_one => return self.not(a),
            [(a, by)] if by == minus_one && constant == 0 && self.zeros_above(a) == width - 1 => {
                let bit = self.extract(0, 0, a);
                return self.sext(bit, width);
            }
            [(a, by)] if constant == 0 && by.is_power_of_two() => return self.shl_const(a, by.trailing_zeros()),
            [(a, by)] if width == 1 && by & 1 == 1 => return self.not(a),
            _ => {}
        }
        if width == 1 {
            let mut sum = self.int(1, u64::from(constant & 1));
            for (term, _) in terms {
                sum = self.xor(sum, term);
            }
            return sum;
        }
        let args = terms.iter().map(|term| term.0).collect();
        let coefficients = terms.iter().map(|term| term.1).collect();
        self.raw(Op::Sum(coefficients, constant), width, args)
    }

    /// Returns the sum of terms times coefficients, plus a constant.
    pub(super) fn sum(&mut self, width: u32, args: &[Term], coefficients: &[u32], constant: u32) -> Term {
        let mut out = Linear::new();
        let mut constant = constant;
        for (&term, &by) in args.iter().zip(coefficients) {
            constant = constant.wrapping_add(self.add_linear(term, by, &mut out));
        }
        self.of_linear(width, out, constant)
    }

    /// Returns the sum.
    pub fn add(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if width > WORD {
            return self.add_words(a, b);
        }
        self.sum(width, &[a, b], &[1, 1], 0)
    }

    /// Returns the difference.
    pub fn sub(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if width > WORD {
            return self.sub_words(a, b);
        }
        self.sum(width, &[a, b], &[1, u32::MAX], 0)
    }

    /// Returns the two's complement.
    pub fn neg(&mut self, a: Term) -> Term {
        let zero = self.int(self.width(a), 0);
        self.sub(zero, a)
    }

    /// Returns the low bits of a product.
    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if width > WORD {
            return self.mul_words(a, b);
        }
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        for (x, y) in [(a, b), (b, a)] {
            if let Some(bits) = self.as_const(x) {
                return self.sum(width, &[y], &[bits.low() as u32], 0);
            }
        }
        if width == 1 {
            return self.and(a, b);
        }
        // Constant factors and low zeros move outwards.
        for (x, y) in [(a, b), (b, a)] {
            let (terms, constant) = self.linear(x);
            if let ([(term, by)], 0) = (&terms[..], constant)
                && (*by != 1 || *term != x)
                && *term != x
            {
                let product = self.mul(*term, y);
                return self.sum(width, &[product], &[*by], 0);
            }
            // A product with a bit is a selection.
            if self.zeros_above(x) == width - 1 {
                let bit = self.extract(0, 0, x);
                let zero = self.int(width, 0);
                return self.ite(bit, y, zero);
            }
        }
        self.raw2(Op::Mul, width, a, b)
    }

    /// Returns the two-word product of two words.
    pub fn mul_wide(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let width = 2 * WORD;
        for (x, y) in [(a, b), (b, a)] {
            if let Some(bits) = self.as_const(x) {
                if let Some(other) = self.as_const(y) {
                    return self.constant(width, bits.mul(other, width));
                }
                if bits.is_zero() {
                    return self.int(width, 0);
                }
                if bits.low().is_power_of_two() {
                    let wide = self.zext(y, width);
                    return self.shl_const(wide, bits.low().trailing_zeros());
                }
            }
            if self.zeros_above(x) == WORD - 1 {
                let bit = self.extract(0, 0, x);
                let zero = self.int(width, 0);
                let wide = self.zext(y, width);
                return self.ite(bit, wide, zero);
            }
        }
        // A product of two short factors fits in one word.
        if self.zeros_above(a) + self.zeros_above(b) >= WORD {
            let product = self.mul(a, b);
            return self.zext(product, width);
        }
        self.raw2(Op::MulWide, width, a, b)
    }

    /// Returns the difference of two terms, if it is a constant.
    pub fn difference(&self, a: Term, b: Term) -> Option<u32> {
        let (mut terms, constant) = self.linear(a);
        let (minus, subtracted) = self.linear(b);
        terms.extend(minus.iter().map(|&(term, by)| (term, by.wrapping_neg())));
        let width = self.width(a);
        normal(terms, width)
            .is_empty()
            .then(|| constant.wrapping_sub(subtracted) & mask(width))
    }

    /// Returns a one-word term minus `of`, if it is a sum that contains `of` once.
    pub fn split_address(&mut self, a: Term, of: Term) -> Option<Term> {
        let (terms, constant) = self.linear(a);
        let at = terms.iter().position(|&(term, by)| term == of && by == 1)?;
        let mut rest = terms;
        rest.remove(at);
        Some(self.of_linear(WORD, rest, constant))
    }

    /// Returns the terms of a sum with their coefficients, and the constant.
    pub fn summands(&self, a: Term) -> (Vec<(Term, u32)>, u32) {
        let (terms, constant) = self.linear(a);
        (terms.into_vec(), constant)
    }

    /// Returns whether a sum is small enough to be distributed.
    pub(super) fn is_short(&self, a: Term) -> bool {
        self.args(a).len() <= MOST_TERMS
    }
}

/// Merges equal terms, sorts them by position, and removes terms with coefficient zero.
fn normal(mut terms: Linear, width: u32) -> Linear {
    terms.sort_unstable_by_key(|term| term.0);
    let mut out: Linear = smallvec![];
    for (term, by) in terms {
        match out.last_mut() {
            Some((last, sum)) if *last == term => *sum = sum.wrapping_add(by),
            _ => out.push((term, by)),
        }
    }
    for (_, by) in &mut out {
        *by &= mask(width);
    }
    out.retain(|term| term.1 != 0);
    out
}
