//! Bitwise operations and selections.

use super::{Bits, Op, Pool, Term, WORD};
use smallvec::SmallVec;

/// The maximum number of runs of bits in a mask that is split.
const MOST_RUNS: usize = 3;

impl Pool {
    /// Returns the bitwise complement.
    pub fn not(&mut self, a: Term) -> Term {
        let node = self.node(a);
        let width = node.width;
        match node.op {
            Op::Const(bits) => self.constant(width, bits.not(width)),
            Op::Not => node.args[0],
            Op::Concat => {
                let pieces = node.args.clone();
                let pieces: SmallVec<[Term; 4]> = pieces.iter().map(|&piece| self.not(piece)).collect();
                self.concat(&pieces)
            }
            Op::Sext => {
                let inner = node.args[0];
                let inner = self.not(inner);
                self.sext(inner, width)
            }
            Op::Sum(..) => {
                let (terms, constant) = self.linear(a);
                let minus = terms.iter().map(|&(term, by)| (term, by.wrapping_neg())).collect();
                self.of_linear(width, minus, constant.wrapping_neg().wrapping_sub(1))
            }
            _ => self.raw1(Op::Not, width, a),
        }
    }

    /// Returns the bitwise or.
    pub fn or(&mut self, a: Term, b: Term) -> Term {
        let (x, y) = (self.not(a), self.not(b));
        let both = self.and(x, y);
        self.not(both)
    }

    /// Returns the operand, if the term is a complement.
    fn as_not(&self, a: Term) -> Option<Term> {
        matches!(self.node(a).op, Op::Not).then(|| self.args(a)[0])
    }

    /// Returns whether one term is the complement of the other.
    pub fn are_opposite(&self, a: Term, b: Term) -> bool {
        self.as_not(a) == Some(b) || self.as_not(b) == Some(a)
    }

    /// Returns whether `a & b` is certainly 0: `b` is the complement of `a`, or a conjunction with
    /// that complement.
    fn excludes(&self, a: Term, b: Term) -> bool {
        self.are_opposite(a, b)
            || matches!(self.node(b).op, Op::And) && self.args(b).iter().any(|&part| self.are_opposite(a, part))
    }

    /// Returns the bitwise and.
    pub fn and(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let width = self.width(a);
        if a == b {
            return a;
        }
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.constant(width, x.and(y));
        }
        for (x, y) in [(a, b), (b, a)] {
            if let Some(bits) = self.as_const(x) {
                if bits.is_zero() {
                    return x;
                }
                if bits == Bits::ones(width) {
                    return y;
                }
                let runs = Self::runs(bits, width);
                if runs.len() <= MOST_RUNS {
                    let pieces: SmallVec<[u32; 8]> = runs.iter().map(|run| run.1).collect();
                    return self.by_pieces(x, y, &pieces, |pool, x, y| match pool.is_false(x) {
                        true => x,
                        false => y,
                    });
                }
                // Masks of masks.
                if let Op::And = self.node(y).op
                    && let [p, q] = self.args(y)[..]
                    && let Some(inner) = self.as_const(p).or(self.as_const(q))
                {
                    let rest = if self.as_const(p).is_some() { q } else { p };
                    let mask = self.constant(width, inner.and(bits));
                    return self.and(mask, rest);
                }
            }
            if self.excludes(x, y) {
                return self.int(width, 0);
            }
            if matches!(self.node(y).op, Op::And) && self.args(y).contains(&x) {
                return y;
            }
            if let Some(inner) = self.as_not(y)
                && matches!(self.node(inner).op, Op::And)
            {
                let (p, q) = (self.args(inner)[0], self.args(inner)[1]);
                // `x & !(x & q)` is `x & !q`; `x & !(!x & q)` is `x`.
                for (p, q) in [(p, q), (q, p)] {
                    if p == x {
                        let rest = self.not(q);
                        return self.and(x, rest);
                    }
                    if self.are_opposite(p, x) {
                        return x;
                    }
                }
            }
        }
        if let Some(term) = self.resolved(a, b) {
            return term;
        }
        if matches!(self.node(a).op, Op::Concat) || matches!(self.node(b).op, Op::Concat) {
            let pieces = self.common_pieces(a, b);
            return self.by_pieces(a, b, &pieces, Self::and);
        }
        self.raw2(Op::And, width, a, b)
    }

    /// Simplifies `!(p & x) & !(p & !x)` to `!p`.
    fn resolved(&mut self, a: Term, b: Term) -> Option<Term> {
        let (x, y) = (self.as_not(a)?, self.as_not(b)?);
        if !matches!((&self.node(x).op, &self.node(y).op), (Op::And, Op::And)) {
            return None;
        }
        let (p, q) = (self.args(x).to_vec(), self.args(y).to_vec());
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if p[i] == q[j] && self.are_opposite(p[1 - i], q[1 - j]) {
                return Some(self.not(p[i]));
            }
        }
        None
    }

    /// Returns the bitwise exclusive or.
    pub fn xor(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let width = self.width(a);
        if a == b {
            return self.int(width, 0);
        }
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.constant(width, x.xor(y));
        }
        if self.are_opposite(a, b) {
            return self.constant(width, Bits::ones(width));
        }
        for (x, y) in [(a, b), (b, a)] {
            if let Some(inner) = self.as_not(x) {
                let rest = self.xor(inner, y);
                return self.not(rest);
            }
            if matches!(self.node(y).op, Op::Xor) && self.args(y).contains(&x) {
                let args = self.args(y);
                return if args[0] == x { args[1] } else { args[0] };
            }
            if let Some(bits) = self.as_const(x) {
                if bits.is_zero() {
                    return y;
                }
                if bits == Bits::ones(width) {
                    return self.not(y);
                }
                if let Op::Xor = self.node(y).op
                    && let [p, q] = self.args(y)[..]
                    && let Some(inner) = self.as_const(p).or(self.as_const(q))
                {
                    let rest = if self.as_const(p).is_some() { q } else { p };
                    let mask = self.constant(width, inner.xor(bits));
                    return self.xor(mask, rest);
                }
            }
        }
        if matches!(self.node(a).op, Op::Concat) || matches!(self.node(b).op, Op::Concat) {
            let pieces = self.common_pieces(a, b);
            return self.by_pieces(a, b, &pieces, Self::xor);
        }
        self.raw2(Op::Xor, width, a, b)
    }

    /// Returns `then` if the condition is 1, else `other`.
    pub fn ite(&mut self, condition: Term, then: Term, other: Term) -> Term {
        if then == other || self.is_true(condition) {
            return then;
        }
        if self.is_false(condition) {
            return other;
        }
        if let Some(inner) = self.as_not(condition) {
            return self.ite(inner, other, then);
        }
        let width = self.width(then);
        if width == 1 {
            return self.ite_bit(condition, then, other);
        }
        if width > WORD {
            let pieces = Self::word_pieces(width);
            return self.by_pieces(then, other, &pieces, |pool, x, y| pool.ite(condition, x, y));
        }
        // The condition has a known value within the operands.
        for (at, value) in [(1, then), (2, other)] {
            if matches!(self.node(value).op, Op::Ite) && self.args(value)[0] == condition {
                let inner = self.args(value)[at];
                return match at {
                    1 => self.ite(condition, inner, other),
                    _ => self.ite(condition, then, inner),
                };
            }
        }
        let is_concat = |pool: &Self, term| matches!(pool.node(term).op, Op::Concat);
        let is_const = |pool: &Self, term| pool.as_const(term).is_some();
        if is_concat(self, then) || is_concat(self, other) {
            let pieces = self.common_pieces(then, other);
            if pieces.len() > 1 {
                return self.by_pieces(then, other, &pieces, |pool, x, y| pool.ite(condition, x, y));
            }
        }
        if is_const(self, then) && is_const(self, other) {
            return self.ite_constants(condition, then, other);
        }
        if let (Op::Sext, Op::Sext) = (&self.node(then).op, &self.node(other).op) {
            let (x, y) = (self.args(then)[0], self.args(other)[0]);
            if self.width(x) == self.width(y) {
                let inner = self.ite(condition, x, y);
                return self.sext(inner, width);
            }
        }
        self.raw(Op::Ite, width, [condition, then, other].into_iter().collect())
    }

    /// Returns the condition and the operands, if the term is a selection.
    pub fn as_ite(&self, a: Term) -> Option<(Term, Term, Term)> {
        match (&self.node(a).op, self.args(a)) {
            (Op::Ite, &[condition, then, other]) => Some((condition, then, other)),
            _ => None,
        }
    }

    /// Returns a selection of single bits.
    fn ite_bit(&mut self, condition: Term, then: Term, other: Term) -> Term {
        let (a, b) = (self.as_const(then), self.as_const(other));
        match (a.map(|bits| !bits.is_zero()), b.map(|bits| !bits.is_zero())) {
            (Some(true), _) => self.or(condition, other),
            (Some(false), _) => {
                let not = self.not(condition);
                self.and(not, other)
            }
            (_, Some(true)) => {
                let not = self.not(condition);
                self.or(not, then)
            }
            (_, Some(false)) => self.and(condition, then),
            _ if self.are_opposite(then, other) => {
                let same = self.xor(condition, then);
                self.not(same)
            }
            _ if then == condition => self.or(condition, other),
            _ if other == condition => self.and(condition, then),
            _ => self.raw(Op::Ite, 1, [condition, then, other].into_iter().collect()),
        }
    }

    /// Returns a selection of constants: equal bits, and copies of the condition.
    fn ite_constants(&mut self, condition: Term, then: Term, other: Term) -> Term {
        let width = self.width(then);
        let (Some(a), Some(b)) = (self.as_const(then), self.as_const(other)) else {
            return then;
        };
        let kind = |at: u32| (a.get(at), b.get(at));
        let mut pieces: SmallVec<[Term; 8]> = SmallVec::new();
        let mut at = width;
        while at > 0 {
            let of = kind(at - 1);
            let count = (0..at).rev().take_while(|&bit| kind(bit) == of).count() as u32;
            let bit = match of {
                (true, false) => condition,
                (false, true) => self.not(condition),
                (bit, _) => self.bool(bit),
            };
            let piece = self.sext(bit, count);
            pieces.push(piece);
            at -= count;
        }
        self.concat(&pieces)
    }
}
