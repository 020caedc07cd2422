//! Bit vectors of 1 to 512 bits with concrete values.
//!
//! A value does not carry its width; operations take it as an argument. Bits above the width are
//! zero.

use std::cmp::Ordering;

/// The width of the widest bit vector.
pub const MAX_WIDTH: u32 = 512;
const WORDS: usize = (MAX_WIDTH / 64) as usize;

/// The value of a bit vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Bits([u64; WORDS]);

impl From<u64> for Bits {
    fn from(value: u64) -> Self {
        let mut words = [0; WORDS];
        words[0] = value;
        Self(words)
    }
}

impl From<u128> for Bits {
    fn from(value: u128) -> Self {
        let mut words = [0; WORDS];
        words[0] = value as u64;
        words[1] = (value >> 64) as u64;
        Self(words)
    }
}

/// Returns the number of words for a width.
fn words(width: u32) -> usize {
    (width.div_ceil(64) as usize).min(WORDS)
}

impl Bits {
    /// Zero.
    pub const ZERO: Self = Self([0; WORDS]);

    /// Returns all ones.
    pub fn ones(width: u32) -> Self {
        Self([u64::MAX; WORDS]).masked(width)
    }

    /// Returns a single set bit.
    pub fn bit(at: u32) -> Self {
        Self::from(1u64).shl(at, MAX_WIDTH)
    }

    /// Clears the bits from `width` on.
    pub fn masked(mut self, width: u32) -> Self {
        for (i, word) in self.0.iter_mut().enumerate() {
            let low = i as u32 * 64;
            if low >= width {
                *word = 0;
            } else if width - low < 64 {
                *word &= (1 << (width - low)) - 1;
            }
        }
        self
    }

    /// Returns the low 64 bits.
    pub fn low(self) -> u64 {
        self.0[0]
    }

    /// Returns the low 128 bits.
    pub fn low128(self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    /// Returns whether all bits are zero.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Returns the bit at a position.
    pub fn get(self, at: u32) -> bool {
        self.0
            .get((at / 64) as usize)
            .is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Returns the bitwise complement.
    pub fn not(self, width: u32) -> Self {
        Self(self.0.map(|word| !word)).masked(width)
    }

    /// Combines the words of two values.
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = self;
        for (word, with) in out.0.iter_mut().zip(other.0) {
            *word = f(*word, with);
        }
        out
    }

    /// Returns the bitwise and.
    pub fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Returns the bitwise or.
    pub fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// Returns the bitwise exclusive or.
    pub fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    /// Returns the sum.
    pub fn add(self, other: Self, width: u32) -> Self {
        let mut out = self;
        let mut carry = false;
        for (word, with) in out.0.iter_mut().zip(other.0).take(words(width)) {
            let (sum, first) = word.overflowing_add(with);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = first || second;
        }
        out.masked(width)
    }

    /// Returns the two's complement.
    pub fn neg(self, width: u32) -> Self {
        self.not(width).add(Self::from(1u64), width)
    }

    /// Returns the difference.
    pub fn sub(self, other: Self, width: u32) -> Self {
        self.add(other.neg(width), width)
    }

    /// Returns the product.
    pub fn mul(self, other: Self, width: u32) -> Self {
        if width <= 64 {
            return Self::from(self.low().wrapping_mul(other.low())).masked(width);
        }
        let mut out = [0u64; WORDS];
        let count = words(width);
        for i in 0..count {
            let mut carry = 0u128;
            for j in 0..count - i {
                let at = &mut out[i + j];
                let sum = u128::from(self.0[i]) * u128::from(other.0[j]) + u128::from(*at) + carry;
                *at = sum as u64;
                carry = sum >> 64;
            }
        }
        Self(out).masked(width)
    }

    /// Shifts left.
    pub fn shl(self, by: u32, width: u32) -> Self {
        if by >= width {
            return Self::ZERO;
        }
        let (skip, bits) = ((by / 64) as usize, by % 64);
        let mut out = [0; WORDS];
        for (i, word) in out.iter_mut().enumerate().skip(skip) {
            *word = self.0[i - skip] << bits;
            if bits != 0 && i > skip {
                *word |= self.0[i - skip - 1] >> (64 - bits);
            }
        }
        Self(out).masked(width)
    }

    /// Shifts right logically.
    pub fn lshr(self, by: u32) -> Self {
        if by >= MAX_WIDTH {
            return Self::ZERO;
        }
        let (skip, bits) = ((by / 64) as usize, by % 64);
        let mut out = [0; WORDS];
        for (i, word) in out.iter_mut().enumerate().take(WORDS - skip) {
            *word = self.0[i + skip] >> bits;
            if bits != 0 && i + skip + 1 < WORDS {
                *word |= self.0[i + skip + 1] << (64 - bits);
            }
        }
        Self(out)
    }

    /// Shifts right arithmetically.
    pub fn ashr(self, by: u32, width: u32) -> Self {
        let by = by.min(width);
        let shifted = self.lshr(by);
        match self.get(width - 1) {
            true => shifted.or(Self::ones(width).xor(Self::ones(width - by))),
            false => shifted,
        }
    }

    /// Returns the bits from `low` to `high`, both included.
    pub fn extract(self, high: u32, low: u32) -> Self {
        self.lshr(low).masked(high + 1 - low)
    }

    /// Sign-extends from `from` bits to `to` bits.
    pub fn sext(self, from: u32, to: u32) -> Self {
        match self.get(from - 1) {
            true => self.or(Self::ones(to).xor(Self::ones(from))),
            false => self,
        }
    }

    /// Compares unsigned values.
    pub fn ult(self, other: Self) -> bool {
        self.0.iter().rev().cmp(other.0.iter().rev()) == Ordering::Less
    }

    /// Compares signed values.
    pub fn slt(self, other: Self, width: u32) -> bool {
        let sign = Self::bit(width - 1);
        self.xor(sign).ult(other.xor(sign))
    }

    /// Returns quotient and remainder of unsigned values, with the semantics of SMT-LIB: division
    /// by zero returns all ones and the dividend.
    pub fn udivrem(self, other: Self, width: u32) -> (Self, Self) {
        if other.is_zero() {
            return (Self::ones(width), self);
        }
        if width <= 128 {
            let (a, b) = (self.low128(), other.low128());
            return (Self::from(a / b), Self::from(a % b));
        }
        let (mut quotient, mut rest) = (Self::ZERO, Self::ZERO);
        for at in (0..width).rev() {
            // One more bit than the width, because the top bit of the remainder may be set.
            let overflows = rest.get(width - 1);
            rest = rest.shl(1, width);
            if self.get(at) {
                rest = rest.or(Self::from(1u64));
            }
            if overflows || !rest.ult(other) {
                rest = rest.sub(other, width);
                quotient = quotient.or(Self::bit(at));
            }
        }
        (quotient, rest)
    }

    /// Returns quotient and remainder of signed values, rounded towards zero, with the semantics of
    /// SMT-LIB.
    pub fn sdivrem(self, other: Self, width: u32) -> (Self, Self) {
        let (a, b) = (self.get(width - 1), other.get(width - 1));
        let abs = |value: Self, negative| if negative { value.neg(width) } else { value };
        let (quotient, rest) = abs(self, a).udivrem(abs(other, b), width);
        (abs(quotient, a != b), abs(rest, a))
    }

    /// Counts leading zeros.
    pub fn clz(self, width: u32) -> u32 {
        (0..width).rev().take_while(|&at| !self.get(at)).count() as u32
    }

    /// Counts trailing zeros.
    pub fn ctz(self, width: u32) -> u32 {
        (0..width).take_while(|&at| !self.get(at)).count() as u32
    }

    /// Returns the value as a shift amount, clamped to `width`.
    pub fn amount(self, width: u32) -> u32 {
        match self.0[1..].iter().all(|&word| word == 0) && self.0[0] < u64::from(width) {
            true => self.0[0] as u32,
            false => width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wide operations agree with those of `u128`, and division agrees with multiplication.
    #[test]
    fn wide() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..500 {
            let a = u128::from(next()) << 64 | u128::from(next());
            let b = (u128::from(next()) << 64 | u128::from(next())) >> (next() % 128);
            let by = (next() % 128) as u32;
            let (x, y) = (Bits::from(a), Bits::from(b));
            assert_eq!(x.add(y, 128).low128(), a.wrapping_add(b));
            assert_eq!(x.sub(y, 128).low128(), a.wrapping_sub(b));
            assert_eq!(x.mul(y, 128).low128(), a.wrapping_mul(b));
            assert_eq!(x.shl(by, 128).low128(), a << by);
            assert_eq!(x.lshr(by).low128(), a >> by);
            assert_eq!(x.ashr(by, 128).low128(), (a as i128 >> by) as u128);
            assert_eq!(x.slt(y, 128), (a as i128) < b as i128);
            let wide = x.shl(100, 256).add(y, 256);
            let (quotient, rest) = wide.udivrem(y, 256);
            if !y.is_zero() {
                assert_eq!(quotient.mul(y, 256).add(rest, 256), wide);
                assert!(rest.ult(y));
            }
        }
        assert_eq!(Bits::ones(512).neg(512), Bits::from(1u64));
        let (quotient, rest) = Bits::from(0x80u64).sdivrem(Bits::from(0xffu64), 8);
        assert_eq!((quotient.low(), rest.low()), (0x80, 0));
    }
}
