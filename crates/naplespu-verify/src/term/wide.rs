//! Arithmetic on more than a word, built from operations on words.

use super::{Op, Pool, Term, WORD};
use smallvec::SmallVec;

impl Pool {
    /// Returns the words of a term, low word first; the last one may be shorter.
    pub fn words(&mut self, a: Term) -> Vec<Term> {
        let width = self.width(a);
        (0..width.div_ceil(WORD))
            .map(|i| self.extract((WORD * (i + 1)).min(width) - 1, WORD * i, a))
            .collect()
    }

    /// Concatenates words, low word first.
    pub fn of_words(&mut self, words: &[Term]) -> Term {
        let pieces: SmallVec<[Term; 8]> = words.iter().rev().copied().collect();
        self.concat(&pieces)
    }

    /// Returns the widths of the words of a value, from the top.
    pub(super) fn word_pieces(width: u32) -> SmallVec<[u32; 8]> {
        let mut pieces: SmallVec<[u32; 8]> = SmallVec::new();
        if !width.is_multiple_of(WORD) {
            pieces.push(width % WORD);
        }
        pieces.extend((0..width / WORD).map(|_| WORD));
        pieces
    }

    /// Zero-extends a bit.
    fn number(&mut self, bit: Term, width: u32) -> Term {
        self.zext(bit, width)
    }

    /// Returns a term plus a bit.
    fn add_bit(&mut self, a: Term, bit: Term) -> Term {
        let number = self.number(bit, self.width(a));
        self.add(a, number)
    }

    /// Returns the sum of words and its carry.
    fn add_carry(&mut self, a: Term, b: Term, carry: Option<Term>) -> (Term, Term) {
        let first = self.add(a, b);
        let out = self.ult(first, a);
        match carry {
            None => (first, out),
            Some(carry) => {
                let sum = self.add_bit(first, carry);
                let more = self.ult(sum, first);
                (sum, self.or(out, more))
            }
        }
    }

    /// Returns the sum of more than a word.
    pub(super) fn add_words(&mut self, a: Term, b: Term) -> Term {
        let (x, y) = (self.words(a), self.words(b));
        let mut carry = None;
        let mut out = Vec::with_capacity(x.len());
        for (&a, &b) in x.iter().zip(&y) {
            let (sum, next) = self.add_carry(a, b, carry);
            out.push(sum);
            carry = Some(next);
        }
        self.of_words(&out)
    }

    /// Returns the difference of more than a word.
    pub(super) fn sub_words(&mut self, a: Term, b: Term) -> Term {
        let (x, y) = (self.words(a), self.words(b));
        let mut borrow: Option<Term> = None;
        let mut out = Vec::with_capacity(x.len());
        for (&a, &b) in x.iter().zip(&y) {
            let first = self.sub(a, b);
            let under = self.ult(a, b);
            match borrow {
                None => {
                    out.push(first);
                    borrow = Some(under);
                }
                Some(taken) => {
                    let number = self.number(taken, self.width(first));
                    let rest = self.sub(first, number);
                    out.push(rest);
                    let more = self.ult(first, number);
                    borrow = Some(self.or(under, more));
                }
            }
        }
        self.of_words(&out)
    }

    /// Returns the low bits of a product of more than a word, by partial products.
    pub(super) fn mul_words(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let round = width.next_multiple_of(WORD);
        if round != width {
            let (x, y) = (self.zext(a, round), self.zext(b, round));
            let product = self.mul_words(x, y);
            return self.extract(width - 1, 0, product);
        }
        let (x, y) = (self.words(a), self.words(b));
        let count = x.len();
        if count == 2 {
            return self.mul_two_words(&x, &y);
        }
        let mut sum = self.int(width, 0);
        for (i, &p) in x.iter().enumerate() {
            for (j, &q) in y.iter().enumerate().take(count - i) {
                let wide = self.mul_wide(p, q);
                let kept = width - WORD * (i + j) as u32;
                let part = match kept < 2 * WORD {
                    true => self.extract(kept - 1, 0, wide),
                    false => wide,
                };
                let part = self.zext(part, kept);
                let below = width - kept;
                let part = match below {
                    0 => part,
                    _ => {
                        let zero = self.int(below, 0);
                        self.concat(&[part, zero])
                    }
                };
                sum = self.add(sum, part);
            }
        }
        sum
    }

    /// Returns the low two words of a product of two words each.
    fn mul_two_words(&mut self, x: &[Term], y: &[Term]) -> Term {
        let low = self.mul_wide(x[0], y[0]);
        let first = self.mul(x[0], y[1]);
        let second = self.mul(x[1], y[0]);
        let cross = self.add(first, second);
        let (bottom, top) = (self.extract(WORD - 1, 0, low), self.extract(2 * WORD - 1, WORD, low));
        let top = self.add(top, cross);
        self.concat(&[top, bottom])
    }

    /// Returns the upper half of an unsigned product.
    pub fn umulhi(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let wide = match width == WORD {
            true => self.mul_wide(a, b),
            false => {
                let (x, y) = (self.zext(a, 2 * width), self.zext(b, 2 * width));
                self.mul(x, y)
            }
        };
        self.extract(2 * width - 1, width, wide)
    }

    /// Returns the upper half of a signed product.
    pub fn smulhi(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if width < WORD {
            let (x, y) = (self.sext(a, 2 * width), self.sext(b, 2 * width));
            let wide = self.mul(x, y);
            return self.extract(2 * width - 1, width, wide);
        }
        // The unsigned half, minus each factor where the other one is negative.
        let mut high = self.umulhi(a, b);
        let zero = self.int(width, 0);
        for (sign, other) in [(a, b), (b, a)] {
            let negative = self.extract(width - 1, width - 1, sign);
            let less = self.ite(negative, other, zero);
            high = self.sub(high, less);
        }
        high
    }

    /// Counts leading zeros of a word.
    pub fn clz32(&mut self, a: Term) -> Term {
        match self.as_const(a) {
            Some(bits) => self.int(WORD, u64::from(bits.clz(WORD))),
            None => self.raw1(Op::Clz, WORD, a),
        }
    }

    /// Counts trailing zeros of a word.
    pub fn ctz32(&mut self, a: Term) -> Term {
        match self.as_const(a) {
            Some(bits) => self.int(WORD, u64::from(bits.ctz(WORD))),
            None => self.raw1(Op::Ctz, WORD, a),
        }
    }

    /// Counts leading zeros of a value of any width.
    pub fn clz(&mut self, a: Term) -> Term {
        let width = self.width(a);
        if width <= WORD {
            let wide = self.zext(a, WORD);
            let count = self.clz32(wide);
            let above = self.int(WORD, u64::from(WORD - width));
            let count = self.sub(count, above);
            return self.extract(width - 1, 0, count);
        }
        let words = self.words(a);
        let mut count = self.clz32(words[0]);
        for &word in &words[1..] {
            let low = self.int(WORD, u64::from(WORD));
            let below = self.add(count, low);
            let zero = self.int(WORD, 0);
            let is_zero = self.eq(word, zero);
            let own = self.clz32(word);
            count = self.ite(is_zero, below, own);
        }
        self.zext(count, width)
    }

    /// Counts trailing zeros of a value of any width.
    pub fn ctz(&mut self, a: Term) -> Term {
        let width = self.width(a);
        if width <= WORD {
            let wide = match width == WORD {
                true => a,
                false => {
                    let stop = self.int(WORD - width, 1);
                    self.concat(&[stop, a])
                }
            };
            let count = self.ctz32(wide);
            return self.extract(width - 1, 0, count);
        }
        let words = self.words(a);
        let mut words = words.into_iter().rev();
        let Some(top) = words.next() else { return a };
        let mut count = self.ctz32(top);
        for word in words {
            let low = self.int(WORD, u64::from(WORD));
            let above = self.add(count, low);
            let zero = self.int(WORD, 0);
            let is_zero = self.eq(word, zero);
            let own = self.ctz32(word);
            count = self.ite(is_zero, above, own);
        }
        self.zext(count, width)
    }

    /// Returns a shift of any width by an amount of the same width, with the semantics of SMT-LIB.
    /// Shifts below a word are shifts of words.
    fn shift(&mut self, op: Op, a: Term, amount: Term) -> Term {
        let width = self.width(a);
        if let Some(bits) = self.as_const(amount) {
            let by = bits.amount(width);
            return match op {
                Op::Shl => self.shl_const(a, by),
                Op::Lshr => self.lshr_const(a, by),
                _ => self.ashr_const(a, by),
            };
        }
        if self.is_false(a) {
            return a;
        }
        if width < WORD {
            let wide = match op {
                Op::Ashr => self.sext(a, WORD),
                _ => self.zext(a, WORD),
            };
            let amount = self.zext(amount, WORD);
            let shifted = self.shift(op, wide, amount);
            return self.extract(width - 1, 0, shifted);
        }
        if width == 2 * WORD && self.zeros_above(amount) >= width - 6 {
            return self.shift_two_words(&op, a, amount);
        }
        self.raw2(op, width, a, amount)
    }

    /// Returns a shift of two words by less than 64, by shifts of words. Word shifts by 32 or more
    /// are zero.
    fn shift_two_words(&mut self, op: &Op, a: Term, amount: Term) -> Term {
        let (low, high) = (self.extract(WORD - 1, 0, a), self.extract(2 * WORD - 1, WORD, a));
        let by = self.extract(WORD - 1, 0, amount);
        let word = self.int(WORD, u64::from(WORD));
        let (rest, more) = (self.sub(word, by), self.sub(by, word));
        match op {
            Op::Shl => {
                let (own, from, far) = (self.shl(high, by), self.lshr(low, rest), self.shl(low, more));
                let near = self.or(own, from);
                let (top, bottom) = (self.or(near, far), self.shl(low, by));
                self.concat(&[top, bottom])
            }
            // A sign-extended word, shifted by less than a word.
            Op::Lshr if self.zeros_above(amount) > WORD + WORD - 6 && self.is_sign_of(high, low) => {
                let (top, bottom) = (self.lshr(high, by), self.ashr(low, by));
                self.concat(&[top, bottom])
            }
            Op::Lshr => {
                let (own, from, far) = (self.lshr(low, by), self.shl(high, rest), self.lshr(high, more));
                let near = self.or(own, from);
                let (top, bottom) = (self.lshr(high, by), self.or(near, far));
                self.concat(&[top, bottom])
            }
            _ => {
                let (own, from) = (self.lshr(low, by), self.shl(high, rest));
                let (near, far) = (self.or(own, from), self.ashr(high, more));
                let is_far = self.extract(5, 5, by);
                let bottom = self.ite(is_far, far, near);
                let top = self.ashr(high, by);
                self.concat(&[top, bottom])
            }
        }
    }

    /// Returns whether a word consists of copies of another word's sign.
    fn is_sign_of(&mut self, high: Term, low: Term) -> bool {
        let sign = self.extract(WORD - 1, WORD - 1, low);
        self.sext(sign, WORD) == high
    }

    /// Rotates left by an amount modulo the width, which is a power of two.
    pub fn rotl(&mut self, a: Term, amount: Term) -> Term {
        let width = self.width(a);
        let bits = width.trailing_zeros();
        let low = self.extract(bits - 1, 0, amount);
        if width == 2 * WORD && self.as_const(amount).is_none() {
            // Swaps the words if needed, then moves bits between them.
            let (x, y) = (self.extract(WORD - 1, 0, a), self.extract(2 * WORD - 1, WORD, a));
            let swaps = self.extract(bits - 1, bits - 1, amount);
            let (x, y) = (self.ite(swaps, y, x), self.ite(swaps, x, y));
            let by = self.extract(bits - 2, 0, amount);
            let by = self.zext(by, WORD);
            let word = self.int(WORD, u64::from(WORD));
            let rest = self.sub(word, by);
            let join = |pool: &mut Self, high, low| {
                let (p, q) = (pool.shl(high, by), pool.lshr(low, rest));
                pool.or(p, q)
            };
            let (bottom, top) = (join(self, x, y), join(self, y, x));
            return self.concat(&[top, bottom]);
        }
        let by = self.zext(low, width);
        let minus = self.neg(low);
        let back = self.zext(minus, width);
        let (high, low) = (self.shl(a, by), self.lshr(a, back));
        self.or(high, low)
    }

    /// Shifts left.
    pub fn shl(&mut self, a: Term, amount: Term) -> Term {
        self.shift(Op::Shl, a, amount)
    }

    /// Shifts right logically.
    pub fn lshr(&mut self, a: Term, amount: Term) -> Term {
        self.shift(Op::Lshr, a, amount)
    }

    /// Shifts right arithmetically.
    pub fn ashr(&mut self, a: Term, amount: Term) -> Term {
        self.shift(Op::Ashr, a, amount)
    }
}
