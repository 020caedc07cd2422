//! Bit vectors as numbers, with undefined bits.

use npu_mc::semantics::{BinaryOp, UnaryOp};

/// A bit vector. Undefined bits are 1 in `undefined`, and 0 in `value`. A value of more than 64
/// bits is always defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bits {
    pub width: u32,
    value: u64,
    undefined: u64,
    /// The words above the lowest one, for a value of more than 64 bits.
    above: Option<Box<[u64; ABOVE]>>,
}

const ABOVE: usize = 7;

fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

impl Bits {
    pub fn new(width: u32, value: u64) -> Bits {
        match width {
            ..=64 => Bits::of(width, value, 0),
            _ => Bits::wide(width, |word| if word == 0 { value } else { 0 }),
        }
    }

    fn of(width: u32, value: u64, undefined: u64) -> Bits {
        assert!((1..=64).contains(&width), "{width} bits");
        let undefined = undefined & ones(width);
        Bits {
            width,
            value: value & ones(width) & !undefined,
            undefined,
            above: None,
        }
    }

    fn wide(width: u32, mut word: impl FnMut(u32) -> u64) -> Bits {
        assert!((65..=512).contains(&width), "{width} bits");
        let mut word = |index: u32| match width.saturating_sub(64 * index) {
            0 => 0,
            left => word(index) & ones(left),
        };
        Bits {
            width,
            value: word(0),
            undefined: 0,
            above: Some(Box::new(std::array::from_fn(|index| word(index as u32 + 1)))),
        }
    }

    /// Returns 64 bits from bit `low` on.
    fn word_at(&self, low: u32) -> u64 {
        let word = |index: u32| match (index, &self.above) {
            (0, _) => self.value,
            (_, Some(above)) => above.get(index as usize - 1).copied().unwrap_or(0),
            (_, None) => 0,
        };
        let (index, bits) = (low / 64, low % 64);
        match bits {
            0 => word(index),
            _ => word(index) >> bits | word(index + 1) << (64 - bits),
        }
    }

    pub fn undefined(width: u32) -> Bits {
        Bits::of(width, 0, u64::MAX)
    }

    pub fn is_defined(&self) -> bool {
        self.undefined == 0
    }

    /// Returns the low 32 bits, and the mask of the undefined ones.
    pub fn word(&self) -> (u32, u32) {
        (self.value as u32, self.undefined as u32)
    }

    /// Returns the number, if all bits are defined and there are at most 64.
    pub fn number(&self) -> Option<u64> {
        (self.width <= 64 && self.is_defined()).then_some(self.value)
    }

    /// Returns a byte, if it is defined.
    pub fn byte(&self, index: u32) -> Option<u8> {
        let part = self.extract(8 * index + 7, 8 * index);
        part.number().map(|byte| byte as u8)
    }

    pub fn extract(&self, high: u32, low: u32) -> Bits {
        assert!(
            low <= high && high < self.width,
            "bits {high} to {low} of {}",
            self.width
        );
        let width = high - low + 1;
        if width > 64 {
            return Bits::wide(width, |word| self.word_at(low + 64 * word));
        }
        Bits::of(width, self.word_at(low), self.undefined.checked_shr(low).unwrap_or(0))
    }

    pub fn concat(&self, low: &Bits) -> Bits {
        let width = self.width + low.width;
        let below = low.width;
        if width <= 64 {
            let (value, undefined) = (self.value << below, self.undefined << below);
            return Bits::of(width, value | low.value, undefined | low.undefined);
        }
        assert!(self.is_defined() && low.is_defined(), "undefined bits in {width} bits");
        Bits::wide(width, |word| {
            let from = 64 * word;
            let high = match from.checked_sub(below) {
                Some(from) => self.word_at(from),
                None => self.value.checked_shl(below - from).unwrap_or(0),
            };
            low.word_at(from) | high
        })
    }

    pub fn zero_extend(&self, width: u32) -> Bits {
        assert!(width > self.width, "{} bits extended to {width}", self.width);
        match width {
            ..=64 => Bits::of(width, self.value, self.undefined),
            _ => {
                assert!(self.is_defined(), "undefined bits in {width} bits");
                Bits::wide(width, |word| self.word_at(64 * word))
            }
        }
    }

    pub fn sign_extend(&self, width: u32) -> Bits {
        assert!(width > self.width, "{} bits extended to {width}", self.width);
        let sign = 1 << (self.width - 1);
        let fill = |bits: u64| {
            if bits & sign != 0 {
                bits | !ones(self.width)
            } else {
                bits
            }
        };
        Bits::of(width, fill(self.value), fill(self.undefined))
    }

    pub fn select(&self, then: &Bits, other: &Bits) -> Bits {
        assert_eq!((self.width, then.width), (1, other.width));
        match self.number() {
            Some(0) => other.clone(),
            Some(_) => then.clone(),
            None => Bits::undefined(then.width),
        }
    }

    pub fn unary(&self, op: UnaryOp) -> Bits {
        let width = self.width;
        let Some(a) = self.number() else {
            return Bits::undefined(width);
        };
        let result = match op {
            UnaryOp::Not => !a,
            UnaryOp::Neg => a.wrapping_neg(),
            UnaryOp::Clz => u64::from(a.leading_zeros() - (64 - width)),
            UnaryOp::Ctz => u64::from(a.trailing_zeros().min(width)),
        };
        Bits::new(width, result)
    }

    pub fn binary(&self, op: BinaryOp, other: &Bits) -> Bits {
        assert_eq!(self.width, other.width, "{op:?} of different widths");
        let width = self.width;
        let result_width = if op.is_compare() { 1 } else { width };
        if !self.is_defined() || !other.is_defined() {
            return Bits::undefined(result_width);
        }
        // The only operations on more than 64 bits are shifts.
        if width > 64 {
            let by = u32::try_from(other.value).unwrap_or(u32::MAX).min(width);
            return match op {
                BinaryOp::Shl => Bits::wide(width, |word| match (64 * word).checked_sub(by) {
                    Some(from) => self.word_at(from),
                    None => self.value.checked_shl(by - 64 * word).unwrap_or(0),
                }),
                BinaryOp::Lshr => Bits::wide(width, |word| self.word_at(64 * word + by)),
                op => panic!("{op:?} of {width} bits"),
            };
        }
        let (a, b) = (self.value, other.value);
        let signed = |x: u64| (x << (64 - width)) as i64 >> (64 - width);
        let below = b < u64::from(width);
        let result = match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Shl => {
                if below {
                    a << b
                } else {
                    0
                }
            }
            BinaryOp::Lshr => {
                if below {
                    a >> b
                } else {
                    0
                }
            }
            BinaryOp::Ashr => (signed(a) >> b.min(63)) as u64,
            BinaryOp::Eq => u64::from(a == b),
            BinaryOp::Ne => u64::from(a != b),
            BinaryOp::Ult => u64::from(a < b),
            BinaryOp::Ule => u64::from(a <= b),
            BinaryOp::Slt => u64::from(signed(a) < signed(b)),
            BinaryOp::Sle => u64::from(signed(a) <= signed(b)),
        };
        Bits::new(result_width, result)
    }
}
