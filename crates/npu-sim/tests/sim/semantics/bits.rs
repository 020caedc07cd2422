//! Bit vectors as numbers, with the bits that are undefined.

use npu_mc::semantics::{BinaryOp, UnaryOp};

const WORDS: usize = 8;

/// Bits of the result that have no value are 1 in `undefined`, and 0 in `value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    pub width: u32,
    value: [u64; WORDS],
    undefined: [u64; WORDS],
}

fn ones(width: u32) -> [u64; WORDS] {
    let bit = |word: usize| width.saturating_sub(64 * word as u32);
    std::array::from_fn(|word| match bit(word) {
        0 => 0,
        bits @ 1..64 => (1 << bits) - 1,
        _ => u64::MAX,
    })
}

fn map(a: &[u64; WORDS], b: &[u64; WORDS], f: impl Fn(u64, u64) -> u64) -> [u64; WORDS] {
    std::array::from_fn(|word| f(a[word], b[word]))
}

fn shift_left(a: &[u64; WORDS], by: u32) -> [u64; WORDS] {
    let (words, bits) = ((by / 64) as usize, by % 64);
    let at = |word: usize| a.get(word.wrapping_sub(words)).copied().unwrap_or(0);
    std::array::from_fn(|word| match bits {
        0 => at(word),
        _ => at(word) << bits | at(word.wrapping_sub(1)) >> (64 - bits),
    })
}

fn shift_right(a: &[u64; WORDS], by: u32) -> [u64; WORDS] {
    let (words, bits) = ((by / 64) as usize, by % 64);
    let at = |word: usize| a.get(word + words).copied().unwrap_or(0);
    std::array::from_fn(|word| match bits {
        0 => at(word),
        _ => at(word) >> bits | at(word + 1) << (64 - bits),
    })
}

impl Bits {
    pub fn new(width: u32, value: u64) -> Bits {
        let mut words = [0; WORDS];
        words[0] = value;
        Bits::of(width, words, [0; WORDS])
    }

    fn of(width: u32, value: [u64; WORDS], undefined: [u64; WORDS]) -> Bits {
        assert!((1..=512).contains(&width), "{width} bits");
        let mask = ones(width);
        let undefined = map(&undefined, &mask, |a, b| a & b);
        let value = map(&map(&value, &mask, |a, b| a & b), &undefined, |a, b| a & !b);
        Bits {
            width,
            value,
            undefined,
        }
    }

    pub fn undefined(width: u32) -> Bits {
        Bits::of(width, [0; WORDS], [u64::MAX; WORDS])
    }

    pub fn is_defined(&self) -> bool {
        self.undefined == [0; WORDS]
    }

    /// The low 32 bits, and which of them are undefined.
    pub fn word(&self) -> (u32, u32) {
        (self.value[0] as u32, self.undefined[0] as u32)
    }

    /// The number, if all bits are defined and there are at most 64.
    pub fn number(&self) -> Option<u64> {
        (self.width <= 64 && self.is_defined()).then_some(self.value[0])
    }

    /// A byte of a value that is defined.
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
        Bits::of(
            high - low + 1,
            shift_right(&self.value, low),
            shift_right(&self.undefined, low),
        )
    }

    pub fn concat(&self, low: &Bits) -> Bits {
        let or = |a: u64, b: u64| a | b;
        Bits::of(
            self.width + low.width,
            map(&shift_left(&self.value, low.width), &low.value, or),
            map(&shift_left(&self.undefined, low.width), &low.undefined, or),
        )
    }

    pub fn zero_extend(&self, width: u32) -> Bits {
        assert!(width > self.width, "{} bits extended to {width}", self.width);
        Bits { width, ..*self }
    }

    pub fn sign_extend(&self, width: u32) -> Bits {
        assert!(width > self.width, "{} bits extended to {width}", self.width);
        let sign = self.extract(self.width - 1, self.width - 1);
        let above = map(&ones(width), &ones(self.width), |a, b| a & !b);
        let fill = |on: bool, bits: [u64; WORDS]| if on { map(&bits, &above, |a, b| a | b) } else { bits };
        Bits::of(
            width,
            fill(sign.value[0] == 1, self.value),
            fill(!sign.is_defined(), self.undefined),
        )
    }

    pub fn select(&self, then: &Bits, other: &Bits) -> Bits {
        assert_eq!((self.width, then.width), (1, other.width));
        match self.number() {
            Some(0) => *other,
            Some(_) => *then,
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
        // The operations on more than 64 bits are shifts.
        if width > 64 {
            let by = u32::try_from(other.value[0]).unwrap_or(u32::MAX).min(512);
            let shifted = match op {
                BinaryOp::Shl => shift_left(&self.value, by),
                BinaryOp::Lshr => shift_right(&self.value, by),
                op => panic!("{op:?} of {width} bits"),
            };
            return Bits::of(width, shifted, [0; WORDS]);
        }
        let (a, b) = (self.value[0], other.value[0]);
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
