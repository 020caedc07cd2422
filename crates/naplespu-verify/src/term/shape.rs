//! Extraction, concatenation, extensions, and shifts by constants.

use super::{Bits, Op, Pool, Term, WORD};
use smallvec::{SmallVec, smallvec};

impl Pool {
    /// Returns the bits of a term from `low` to `high`, both included.
    pub fn extract(&mut self, high: u32, low: u32, a: Term) -> Term {
        let (outer, width) = (self.width(a), high + 1 - low);
        if width == outer {
            return a;
        }
        let node = self.node(a).clone();
        let arg = node.args.first().copied().unwrap_or(a);
        match node.op {
            Op::Const(bits) => self.constant(width, bits.extract(high, low)),
            Op::Extract(from) => self.extract(high + from, low + from, arg),
            Op::Concat => {
                let mut pieces: SmallVec<[Term; 4]> = smallvec![];
                let mut top = outer;
                for &piece in &node.args {
                    let bottom = top - self.width(piece);
                    if bottom <= high && low < top {
                        let part = self.extract(high.min(top - 1) - bottom, low.max(bottom) - bottom, piece);
                        pieces.push(part);
                    }
                    top = bottom;
                }
                self.concat(&pieces)
            }
            Op::Sext => {
                let inner = self.width(arg);
                if high < inner {
                    self.extract(high, low, arg)
                } else {
                    let part = self.extract(inner - 1, low.min(inner - 1), arg);
                    self.sext(part, width)
                }
            }
            Op::Not => {
                let part = self.extract(high, low, arg);
                self.not(part)
            }
            Op::And | Op::Xor => {
                let x = self.extract(high, low, node.args[0]);
                let y = self.extract(high, low, node.args[1]);
                match node.op {
                    Op::And => self.and(x, y),
                    _ => self.xor(x, y),
                }
            }
            Op::Ite => {
                let x = self.extract(high, low, node.args[1]);
                let y = self.extract(high, low, node.args[2]);
                self.ite(arg, x, y)
            }
            // Low bits of arithmetic depend only on low bits.
            Op::Sum(coefficients, constant) if high + 1 < outer => {
                let parts: SmallVec<[Term; 4]> = node.args.iter().map(|&x| self.extract(high, 0, x)).collect();
                let narrow = self.sum(high + 1, &parts, &coefficients, constant);
                self.extract(high, low, narrow)
            }
            // Below `low`, only the constant has bits, so nothing carries.
            Op::Sum(coefficients, constant) if node.args.iter().all(|&x| self.zeros_below(x) >= low) => {
                let parts: SmallVec<[Term; 4]> = node.args.iter().map(|&x| self.extract(high, low, x)).collect();
                self.sum(width, &parts, &coefficients, constant >> low)
            }
            Op::Mul if high + 1 < outer => {
                let x = self.extract(high, 0, node.args[0]);
                let y = self.extract(high, 0, node.args[1]);
                let narrow = self.mul(x, y);
                self.extract(high, low, narrow)
            }
            Op::MulWide if high < 32 => {
                let product = self.mul(node.args[0], node.args[1]);
                self.extract(high, low, product)
            }
            Op::Shl if high + 1 < outer => self.extract_shl(high, low, a, node.args[0], node.args[1]),
            // The sign bit does not change.
            Op::Ashr if low + 1 == outer => self.extract(high, low, arg),
            _ => self.raw1(Op::Extract(low), width, a),
        }
    }

    /// Extracts low bits of a left shift, which depend only on the same low bits of the operand.
    fn extract_shl(&mut self, high: u32, low: u32, whole: Term, value: Term, amount: Term) -> Term {
        let outer = self.width(whole);
        let kept = self.extract(high, 0, value);
        let kept = self.zext(kept, outer);
        if kept == value {
            return self.raw1(Op::Extract(low), high + 1 - low, whole);
        }
        let shifted = self.shl(kept, amount);
        self.extract(high, low, shifted)
    }

    /// Concatenates terms, the highest one first.
    pub fn concat(&mut self, pieces: &[Term]) -> Term {
        let mut flat: SmallVec<[Term; 8]> = smallvec![];
        for &piece in pieces {
            match self.node(piece).op {
                Op::Concat => flat.extend(self.node(piece).args.iter().copied()),
                _ => flat.push(piece),
            }
        }
        let mut out: SmallVec<[Term; 3]> = smallvec![];
        for piece in flat {
            let joined = out.last().and_then(|&before| self.joined(before, piece));
            match joined {
                Some(term) => {
                    out.pop();
                    out.push(term);
                }
                None => out.push(piece),
            }
        }
        // A value with copies of its sign above is a sign extension.
        if let [first, second, ..] = out[..]
            && let Some(term) = self.sign_above(first, second)
        {
            out.remove(0);
            out[0] = term;
        }
        match out[..] {
            [one] => one,
            [sum, zero] if self.is_false(zero) && self.width(sum) + self.width(zero) <= WORD => {
                self.shifted_sum(sum, zero)
            }
            _ => {
                let width = out.iter().map(|&piece| self.width(piece)).sum();
                self.raw(Op::Concat, width, out)
            }
        }
    }

    /// Returns the number of low bits that are zeros because of a concatenation.
    fn zeros_below(&self, a: Term) -> u32 {
        match self.node(a).op {
            Op::Concat => match self.args(a) {
                [.., zero] if self.is_false(*zero) => self.width(*zero),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Returns the concatenation of a term and zeros. A short sum becomes a sum of shifted terms.
    fn shifted_sum(&mut self, sum: Term, zero: Term) -> Term {
        let (width, shift) = (self.width(sum) + self.width(zero), self.width(zero));
        let node = self.node(sum).clone();
        match node.op {
            Op::Sum(coefficients, constant) if self.is_short(sum) => {
                let parts: SmallVec<[Term; 4]> = node.args.iter().map(|&x| self.concat(&[x, zero])).collect();
                self.sum(width, &parts, &coefficients, constant << shift)
            }
            _ => self.raw(Op::Concat, width, smallvec![sum, zero]),
        }
    }

    /// Joins two adjacent terms, if they are constants or parts of one term.
    fn joined(&mut self, high: Term, low: Term) -> Option<Term> {
        let (h, l) = (self.node(high), self.node(low));
        let width = h.width + l.width;
        match (&h.op, &l.op) {
            (Op::Const(a), Op::Const(b)) => {
                let value = a.shl(l.width, width).or(*b);
                Some(self.constant(width, value))
            }
            (Op::Extract(at), Op::Extract(from)) if h.args == l.args && *at == from + l.width => {
                let (base, from) = (h.args[0], *from);
                Some(self.extract(from + width - 1, from, base))
            }
            _ => None,
        }
    }

    /// Returns the sign extension of `value`, if `sign` consists of copies of its highest bit.
    fn sign_above(&mut self, sign: Term, value: Term) -> Option<Term> {
        let count = self.width(sign);
        let bit = match self.node(sign).op {
            Op::Sext if self.width(self.args(sign)[0]) == 1 => self.args(sign)[0],
            _ if count == 1 => sign,
            _ => return None,
        };
        if self.as_const(bit).is_some() || self.as_const(value).is_some() {
            return None;
        }
        let width = self.width(value);
        // The sign of a one-bit term is the term itself.
        let top = match width {
            1 => value,
            _ => self.extract(width - 1, width - 1, value),
        };
        (top == bit).then(|| self.sext(value, width + count))
    }

    /// Zero-extends to a width that is not smaller.
    pub fn zext(&mut self, a: Term, width: u32) -> Term {
        let inner = self.width(a);
        if inner == width {
            return a;
        }
        let zero = self.int(width - inner, 0);
        self.concat(&[zero, a])
    }

    /// Sign-extends to a width that is not smaller.
    pub fn sext(&mut self, a: Term, width: u32) -> Term {
        let inner = self.width(a);
        if inner == width {
            return a;
        }
        let node = self.node(a).clone();
        match node.op {
            Op::Const(bits) => self.constant(width, bits.sext(inner, width)),
            Op::Sext => self.sext(node.args[0], width),
            Op::Concat => {
                let mut pieces = node.args;
                let first = self.width(pieces[0]);
                pieces[0] = self.sext(pieces[0], first + width - inner);
                self.concat(&pieces)
            }
            _ => self.raw1(Op::Sext, width, a),
        }
    }

    /// Shifts left by a constant.
    pub fn shl_const(&mut self, a: Term, by: u32) -> Term {
        let width = self.width(a);
        if by == 0 {
            return a;
        }
        if by >= width {
            return self.int(width, 0);
        }
        let kept = self.extract(width - 1 - by, 0, a);
        let zero = self.int(by, 0);
        self.concat(&[kept, zero])
    }

    /// Shifts right logically by a constant.
    pub fn lshr_const(&mut self, a: Term, by: u32) -> Term {
        let width = self.width(a);
        if by >= width {
            return self.int(width, 0);
        }
        let kept = self.extract(width - 1, by, a);
        self.zext(kept, width)
    }

    /// Shifts right arithmetically by a constant.
    pub fn ashr_const(&mut self, a: Term, by: u32) -> Term {
        let width = self.width(a);
        let kept = self.extract(width - 1, by.min(width - 1), a);
        self.sext(kept, width)
    }

    /// Returns the number of top bits that are known to be zero.
    pub fn zeros_above(&self, a: Term) -> u32 {
        let node = self.node(a);
        match &node.op {
            Op::Const(bits) => bits.clz(node.width),
            Op::Concat => {
                let first = self.node(node.args[0]);
                match first.op {
                    Op::Const(bits) if bits.is_zero() => {
                        first.width + node.args.get(1).map_or(0, |&next| self.zeros_above(next))
                    }
                    _ => self.zeros_above(node.args[0]),
                }
            }
            _ => 0,
        }
    }

    /// Returns the runs of equal bits of a constant, from the top: the bit and the length of the
    /// run.
    pub(super) fn runs(bits: Bits, width: u32) -> SmallVec<[(bool, u32); 8]> {
        let mut runs: SmallVec<[(bool, u32); 8]> = smallvec![];
        for at in (0..width).rev() {
            let bit = bits.get(at);
            match runs.last_mut() {
                Some((last, count)) if *last == bit => *count += 1,
                _ => runs.push((bit, 1)),
            }
        }
        runs
    }

    /// Returns the widths of the pieces that align with the concatenations of both terms, from the
    /// top.
    pub(super) fn common_pieces(&self, a: Term, b: Term) -> SmallVec<[u32; 8]> {
        let width = self.width(a);
        let mut ends: SmallVec<[u32; 8]> = smallvec![width];
        for term in [a, b] {
            let mut at = 0;
            if matches!(self.node(term).op, Op::Concat) {
                for &piece in self.args(term) {
                    at += self.width(piece);
                    ends.push(at);
                }
            }
        }
        ends.sort_unstable();
        ends.dedup();
        let mut from = 0;
        ends.iter()
            .map(|&end| {
                let piece = end - from;
                from = end;
                piece
            })
            .collect()
    }

    /// Applies a function of two terms to each pair of pieces, and concatenates the results.
    pub(super) fn by_pieces(
        &mut self,
        a: Term,
        b: Term,
        pieces: &[u32],
        mut f: impl FnMut(&mut Self, Term, Term) -> Term,
    ) -> Term {
        let mut top = self.width(a);
        let mut out: SmallVec<[Term; 8]> = smallvec![];
        for &piece in pieces {
            let (high, low) = (top - 1, top - piece);
            let x = self.extract(high, low, a);
            let y = self.extract(high, low, b);
            out.push(f(self, x, y));
            top = low;
        }
        self.concat(&out)
    }
}
