//! Comparisons. Wide comparisons are built from comparisons of words; a constant is the right
//! operand.

use super::{Bits, Op, Pool, Term, WORD};

impl Pool {
    /// Returns equality.
    pub fn eq(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        if a == b {
            return self.bool(true);
        }
        let width = self.width(a);
        let (a, b) = if self.as_const(a).is_some() { (b, a) } else { (a, b) };
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.bool(x == y);
        }
        if width == 1 {
            let differ = self.xor(a, b);
            return self.not(differ);
        }
        if self.are_opposite(a, b) {
            return self.bool(false);
        }
        let pieces = match width > WORD {
            true => Self::word_pieces(width),
            false => self.common_pieces(a, b),
        };
        if pieces.len() > 1 {
            return self.eq_by_pieces(a, b, &pieces);
        }
        if let Some(value) = self.as_const(b)
            && let Some(term) = self.eq_const(a, b, value)
        {
            return term;
        }
        if let (Op::Sext, Op::Sext) = (&self.node(a).op, &self.node(b).op) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            if self.width(x) == self.width(y) {
                return self.eq(x, y);
            }
        }
        if matches!(self.node(a).op, Op::Not) && matches!(self.node(b).op, Op::Not) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            return self.eq(x, y);
        }
        let is_sum = |pool: &Self, term| matches!(pool.node(term).op, Op::Sum(..));
        if width <= WORD && (is_sum(self, a) || is_sum(self, b)) && self.is_short(a) && self.is_short(b) {
            return self.eq_sums(a, b);
        }
        self.raw2(Op::Eq, 1, a, b)
    }

    fn eq_by_pieces(&mut self, a: Term, b: Term, pieces: &[u32]) -> Term {
        let mut top = self.width(a);
        let mut all = self.bool(true);
        for &piece in pieces {
            let (high, low) = (top - 1, top - piece);
            let x = self.extract(high, low, a);
            let y = self.extract(high, low, b);
            let same = self.eq(x, y);
            all = self.and(all, same);
            top = low;
        }
        all
    }

    /// Simplifies equality with a constant, if the operation allows it.
    fn eq_const(&mut self, a: Term, b: Term, value: Bits) -> Option<Term> {
        let width = self.width(a);
        let node = self.node(a).clone();
        match node.op {
            Op::Not => {
                let other = self.not(b);
                Some(self.eq(node.args[0], other))
            }
            Op::And if value == Bits::ones(width) => {
                let x = self.eq(node.args[0], b);
                let y = self.eq(node.args[1], b);
                Some(self.and(x, y))
            }
            Op::Xor => {
                // A constant operand moves to the other side; equality with zero is equality of the
                // operands.
                let (x, y) = (node.args[0], node.args[1]);
                if value.is_zero() {
                    return Some(self.eq(x, y));
                }
                for (x, y) in [(x, y), (y, x)] {
                    if self.as_const(x).is_some() {
                        let moved = self.xor(x, b);
                        return Some(self.eq(y, moved));
                    }
                }
                None
            }
            Op::Sext => {
                let inner = self.width(node.args[0]);
                if value.masked(inner).sext(inner, width) != value {
                    return Some(self.bool(false));
                }
                let narrow = self.constant(inner, value);
                Some(self.eq(node.args[0], narrow))
            }
            Op::Ite => {
                let (x, y) = (node.args[1], node.args[2]);
                if self.as_const(x).is_none() && self.as_const(y).is_none() {
                    return None;
                }
                let x = self.eq(x, b);
                let y = self.eq(y, b);
                Some(self.ite(node.args[0], x, y))
            }
            _ => None,
        }
    }

    /// Compares sums: the difference is on the left, with a positive leading coefficient, and a
    /// constant on the right.
    fn eq_sums(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let (mut terms, x) = self.linear(a);
        let (minus, y) = self.linear(b);
        terms.extend(minus.iter().map(|&(term, by)| (term, by.wrapping_neg())));
        let left = self.of_linear(width, terms, 0);
        let (terms, _) = self.linear(left);
        let constant = y.wrapping_sub(x);
        let Some(&(first, by)) = terms.first() else {
            return self.bool(u64::from(constant) & Bits::ones(width).low() == 0);
        };
        // An odd factor has an inverse.
        if terms.len() == 1 && by % 2 == 1 {
            let value = constant.wrapping_mul(inverse(by));
            let value = self.int(width, u64::from(value));
            return match first == a {
                true => self.raw2(Op::Eq, 1, a, value),
                false => self.eq(first, value),
            };
        }
        let negative = by >> (width - 1) & 1 != 0;
        let (terms, constant) = match negative {
            true => (
                terms.iter().map(|&(term, by)| (term, by.wrapping_neg())).collect(),
                constant.wrapping_neg(),
            ),
            false => (terms, constant),
        };
        let ones = Bits::ones(width).low() as u32;
        if let [(p, 1), (q, by)] = terms[..]
            && by & ones == ones
        {
            // `p - q == c`
            let value = self.int(width, u64::from(constant));
            if constant & ones == 0 {
                return self.raw2(Op::Eq, 1, p, q);
            }
            let left = self.of_linear(width, terms, 0);
            return self.raw2(Op::Eq, 1, left, value);
        }
        let left = self.of_linear(width, terms, 0);
        let value = self.int(width, u64::from(constant));
        match matches!(self.node(left).op, Op::Sum(..)) {
            true => self.raw2(Op::Eq, 1, left, value),
            false => self.eq(left, value),
        }
    }

    /// Returns unsigned less-than.
    pub fn ult(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if a == b {
            return self.bool(false);
        }
        let (x, y) = (self.as_const(a), self.as_const(b));
        if let (Some(x), Some(y)) = (x, y) {
            return self.bool(x.ult(y));
        }
        if width == 1 {
            let not = self.not(a);
            return self.and(not, b);
        }
        // Common zeros at the top do not matter.
        let above = self.zeros_above(a).min(self.zeros_above(b));
        if above > 0 && above < width {
            let (x, y) = (
                self.extract(width - 1 - above, 0, a),
                self.extract(width - 1 - above, 0, b),
            );
            return self.ult(x, y);
        }
        if let Some(value) = x {
            if value == Bits::ones(width) {
                return self.bool(false);
            }
            let next = self.constant(width, value.add(Bits::from(1u64), width));
            let below = self.ult(b, next);
            return self.not(below);
        }
        if let Some(value) = y {
            return self.ult_const(a, b, value);
        }
        if width > WORD {
            return self.ult_words(a, b);
        }
        if let (Op::Sext, Op::Sext) = (&self.node(a).op, &self.node(b).op) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            if self.width(x) == self.width(y) {
                return self.ult(x, y);
            }
        }
        if let (Op::Not, Op::Not) = (&self.node(a).op, &self.node(b).op) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            return self.ult(y, x);
        }
        // With both signs inverted, it is a signed comparison.
        if let (Some(x), Some(y)) = (self.with_sign_inverted(a), self.with_sign_inverted(b)) {
            return self.slt(x, y);
        }
        if let Some(term) = self.carry(a, b) {
            return term;
        }
        self.raw2(Op::Ult, 1, a, b)
    }

    /// Returns `x` if the term is `x` with the highest bit inverted.
    fn with_sign_inverted(&self, a: Term) -> Option<Term> {
        let (Op::Xor, &[x, y]) = (&self.node(a).op, self.args(a)) else {
            return None;
        };
        let sign = Bits::bit(self.width(a) - 1);
        match (self.as_const(x), self.as_const(y)) {
            (Some(bits), _) if bits == sign => Some(y),
            (_, Some(bits)) if bits == sign => Some(x),
            _ => None,
        }
    }

    /// Returns unsigned less-than with a constant.
    fn ult_const(&mut self, a: Term, b: Term, value: Bits) -> Term {
        let width = self.width(a);
        if value.is_zero() {
            return self.bool(false);
        }
        if Bits::ones(width).lshr(self.zeros_above(a)).ult(value) {
            return self.bool(true);
        }
        if value == Bits::ones(width) {
            let same = self.eq(a, b);
            return self.not(same);
        }
        if let Some(term) = self.carry(a, b) {
            return term;
        }
        // A value is below a power of two if all bits from there on are zero.
        let low = value.ctz(width);
        if value == Bits::bit(low) {
            let top = self.extract(width - 1, low, a);
            let zero = self.int(width - low, 0);
            return self.eq(top, zero);
        }
        // Bits below the lowest set bit of the constant do not matter.
        if low > 0 {
            let top = self.extract(width - 1, low, a);
            let bound = self.constant(width - low, value.lshr(low));
            return self.ult(top, bound);
        }
        if width > WORD {
            return self.ult_words(a, b);
        }
        self.raw2(Op::Ult, 1, a, b)
    }

    /// Normalizes the carry of a sum: `x + y < x` and `x + y < y` are the same, and a comparison
    /// with a constant if one operand is a constant. This holds for any two terms whose sum is
    /// `sum`.
    fn carry(&mut self, sum: Term, part: Term) -> Option<Term> {
        let is_sum = matches!(self.node(sum).op, Op::Sum(..));
        let apart = self.difference(sum, part);
        if apart.is_none() && !is_sum || !self.is_short(sum) || !self.is_short(part) {
            return None;
        }
        let (_, added) = self.linear(sum);
        // A constant must be the whole constant of the sum.
        if let Some(constant) = self.as_u64(part)
            && (constant != u64::from(added) || added == 0)
        {
            return None;
        }
        let rest = self.sub(sum, part);
        for (x, y) in [(part, rest), (rest, part)] {
            if self.as_const(x).is_some() {
                // `y + c` carries if `y >= -c`.
                let bound = self.neg(x);
                if self.is_false(bound) {
                    return Some(self.bool(false));
                }
                let below = self.ult(y, bound);
                return Some(self.not(below));
            }
        }
        let other = part.min(rest);
        Some(self.raw2(Op::Ult, 1, sum, other))
    }

    /// Returns unsigned less-than of more than a word.
    fn ult_words(&mut self, a: Term, b: Term) -> Term {
        let (x, y) = (self.words(a), self.words(b));
        let mut below = self.bool(false);
        for (&p, &q) in x.iter().zip(&y) {
            let less = self.ult(p, q);
            let same = self.eq(p, q);
            let through = self.and(same, below);
            below = self.or(less, through);
        }
        below
    }

    /// Returns signed less-than.
    pub fn slt(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if a == b {
            return self.bool(false);
        }
        let (x, y) = (self.as_const(a), self.as_const(b));
        if let (Some(x), Some(y)) = (x, y) {
            return self.bool(x.slt(y, width));
        }
        if width == 1 {
            let not = self.not(b);
            return self.and(a, not);
        }
        let sign = Bits::bit(width - 1);
        if let Some(value) = x {
            let next = value.add(Bits::from(1u64), width);
            if next == sign {
                return self.bool(false);
            }
            let next = self.constant(width, next);
            let below = self.slt(b, next);
            return self.not(below);
        }
        let top = |pool: &mut Self, term| pool.extract(width - 1, width - 1, term);
        let (p, q) = (top(self, a), top(self, b));
        // Equal signs.
        if p == q && self.as_const(p).is_some() {
            return self.ult(a, b);
        }
        match (self.as_u64(p), self.as_u64(q)) {
            (Some(0), Some(1)) => return self.bool(false),
            (Some(1), Some(0)) => return self.bool(true),
            _ => {}
        }
        if let Some(value) = y {
            if value.is_zero() {
                return p;
            }
            if value == sign {
                return self.bool(false);
            }
            if let Op::Sext = self.node(a).op {
                let inner = self.args(a)[0];
                let narrow = self.width(inner);
                let least = Bits::bit(narrow - 1).sext(narrow, width);
                let most = Bits::ones(narrow - 1);
                if !least.slt(value, width) {
                    return self.bool(false);
                }
                if most.slt(value, width) {
                    return self.bool(true);
                }
                let value = self.constant(narrow, value);
                return self.slt(inner, value);
            }
        }
        if let (Op::Sext, Op::Sext) = (&self.node(a).op, &self.node(b).op) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            if self.width(x) == self.width(y) {
                return self.slt(x, y);
            }
        }
        if let (Op::Not, Op::Not) = (&self.node(a).op, &self.node(b).op) {
            let (x, y) = (self.args(a)[0], self.args(b)[0]);
            return self.slt(y, x);
        }
        if width > WORD {
            return self.slt_words(a, b);
        }
        self.raw2(Op::Slt, 1, a, b)
    }

    /// Returns signed less-than of more than a word: the top words decide unless they are equal.
    fn slt_words(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let low = (width - 1) / WORD * WORD;
        let (x, y) = (self.extract(width - 1, low, a), self.extract(width - 1, low, b));
        let (p, q) = (self.extract(low - 1, 0, a), self.extract(low - 1, 0, b));
        let less = self.slt(x, y);
        let same = self.eq(x, y);
        let below = self.ult(p, q);
        let through = self.and(same, below);
        self.or(less, through)
    }
}

/// Returns the inverse of an odd number modulo 2^32.
fn inverse(odd: u32) -> u32 {
    // Each step doubles the number of correct bits, starting from three.
    (0..4).fold(odd, |x, _| x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x))))
}
