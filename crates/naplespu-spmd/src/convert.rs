//! Divisions by uniform numbers and conversions between integers and floats, on vectors of words.
//!
//! The machine has no vector instruction for a division. Its conversions are exact for numbers
//! below 2^24 only, and its float additions are not correctly rounded, so the conversions here use
//! integer instructions.

use crate::emit::{Emitter, Parts};
use crate::error::Error;
use crate::facts;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Opcode, TrapCode, Value, types};

/// Bits of the fraction of an `f32`.
const FRACTION_BITS: i64 = 23;

/// The biased exponent of an `f32` whose fraction, with its leading bit, is its integer value.
const INTEGER_EXPONENT: i64 = 150;

/// The wanted result of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Division {
    Quotient,
    Remainder,
}

impl Division {
    /// Returns the result that a division instruction has.
    pub fn of(opcode: Opcode) -> Self {
        match opcode {
            Opcode::Udiv | Opcode::Sdiv => Self::Quotient,
            _ => Self::Remainder,
        }
    }
}

/// A uniform divisor.
struct Divisor {
    /// The divisor, or its magnitude for signed divisions, in all lanes.
    lanes: Value,
    /// floor((2^32 - 1) / divisor) in all lanes.
    reciprocal: Value,
}

impl Emitter<'_> {
    /// Emits an unsigned division of `i32` lanes by a uniform number.
    pub fn divide_unsigned(&mut self, x: Value, divisor: Value, wanted: Division) -> Result<Parts, Error> {
        let vectors = self.vectors(x)?;
        let number = self.scalar(divisor)?;
        self.trap_if_zero(divisor, number);
        let divisor = self.divisor(facts::constant(self.old, divisor), number);
        let mut results = Parts::new();
        for lanes in vectors {
            results.push(self.divide_lanes(lanes, &divisor, wanted)?);
        }
        Ok(results)
    }

    /// Emits a signed division of `i32` lanes by a uniform number.
    pub fn divide_signed(&mut self, x: Value, divisor: Value, wanted: Division) -> Result<Parts, Error> {
        let vectors = self.vectors(x)?;
        let number = self.scalar(divisor)?;
        self.trap_if_zero(divisor, number);
        let constant = facts::constant(self.old, divisor).map(|number| number as i32);
        if wanted == Division::Quotient && constant.is_none_or(|number| number == -1) {
            self.trap_if_overflow(&vectors, number);
        }
        let amount = self.word(31);
        let sign = self.builder.ins().sshr(number, amount);
        let flipped = self.builder.ins().bxor(number, sign);
        let magnitude = self.builder.ins().isub(flipped, sign);
        let divisor = self.divisor(constant.map(|number| i64::from(number.unsigned_abs())), magnitude);
        let sign = self.builder.ins().splat(types::I32X16, sign);
        let mut results = Parts::new();
        for lanes in vectors {
            let sign_of_lanes = self.builder.ins().sshr(lanes, amount);
            let lanes = self.negate_if(lanes, sign_of_lanes);
            let result = self.divide_lanes(lanes, &divisor, wanted)?;
            let sign = match wanted {
                Division::Quotient => self.builder.ins().bxor(sign_of_lanes, sign),
                Division::Remainder => sign_of_lanes,
            };
            results.push(self.negate_if(result, sign));
        }
        Ok(results)
    }

    /// Traps if the divisor is zero and a lane is active.
    fn trap_if_zero(&mut self, divisor: Value, number: Value) {
        if facts::constant(self.old, divisor).is_some_and(|number| number as u32 != 0) {
            return;
        }
        let mut valid = self.builder.ins().icmp_imm_u(IntCC::NotEqual, number, 0);
        if let Some(mask) = self.mask.clone() {
            let any = self.any(&mask);
            let idle = self.builder.ins().icmp_imm_u(IntCC::Equal, any, 0);
            valid = self.builder.ins().bor(valid, idle);
        }
        self.builder.ins().trapz(valid, TrapCode::INTEGER_DIVISION_BY_ZERO);
    }

    /// Traps if the divisor is -1 and an active lane is the smallest integer.
    fn trap_if_overflow(&mut self, vectors: &[Value], number: Value) {
        let smallest = self.splat_constant(i32::MIN.into());
        let active = self.active();
        let mut found = self.word(0);
        for (&lanes, active) in vectors.iter().zip(active) {
            let equal = self.builder.ins().icmp(IntCC::Equal, lanes, smallest);
            let equal = self.builder.ins().vhigh_bits(types::I32, equal);
            let equal = self.builder.ins().band(equal, active);
            found = self.builder.ins().bor(found, equal);
        }
        let found = self.builder.ins().icmp_imm_u(IntCC::NotEqual, found, 0);
        let negated = self.builder.ins().icmp_imm_s(IntCC::Equal, number, -1);
        let overflow = self.builder.ins().band(found, negated);
        self.builder.ins().trapnz(overflow, TrapCode::INTEGER_OVERFLOW);
    }

    /// Computes the reciprocal. A divisor of zero, which no active lane has, is replaced by one.
    fn divisor(&mut self, constant: Option<i64>, number: Value) -> Divisor {
        let constant = constant.map(|number| number as u32).filter(|&number| number != 0);
        let (number, reciprocal) = match constant {
            Some(constant) => (self.word(constant.into()), self.word((u32::MAX / constant).into())),
            None => {
                let one = self.word(1);
                let number = self.builder.ins().umax(number, one);
                let all = self.word(u32::MAX.into());
                (number, self.builder.ins().udiv(all, number))
            }
        };
        Divisor {
            lanes: self.builder.ins().splat(types::I32X16, number),
            reciprocal: self.builder.ins().splat(types::I32X16, reciprocal),
        }
    }

    /// Divides sixteen unsigned numbers. With r = floor((2^32 - 1) / d), 2^32 - r d is between 1 and
    /// d, so x r / 2^32 is less than 1 below x / d, and its floor is the quotient or one less.
    fn divide_lanes(&mut self, lanes: Value, divisor: &Divisor, wanted: Division) -> Result<Value, Error> {
        let quotient = self.builder.ins().umulhi(lanes, divisor.reciprocal);
        let product = self.builder.ins().imul(quotient, divisor.lanes);
        let remainder = self.builder.ins().isub(lanes, product);
        let less = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, remainder, divisor.lanes);
        let less = self.builder.ins().vhigh_bits(types::I32, less);
        let (result, corrected) = match wanted {
            Division::Quotient => {
                let one = self.splat_constant(1);
                (quotient, self.builder.ins().iadd(quotient, one))
            }
            Division::Remainder => (remainder, self.builder.ins().isub(remainder, divisor.lanes)),
        };
        self.mix_words("vector_mixi32", less, corrected, result)
    }

    /// Negates the lanes whose `sign` is -1; the others have 0.
    fn negate_if(&mut self, lanes: Value, sign: Value) -> Value {
        let flipped = self.builder.ins().bxor(lanes, sign);
        self.builder.ins().isub(flipped, sign)
    }

    /// Converts sixteen integers to floats, rounded to nearest.
    pub fn float_from_int(&mut self, lanes: Value, signed: bool) -> Result<Value, Error> {
        let amount = self.word(31);
        let sign = signed.then(|| self.builder.ins().sshr(lanes, amount));
        let magnitude = match sign {
            Some(sign) => self.negate_if(lanes, sign),
            None => lanes,
        };
        // The leading bit becomes bit 31; the lowest eight bits are rounded away, ties to even.
        let zeros = self.intrinsic("clzv16i32", &[magnitude])?;
        let amounts = self.and_constant(zeros, 31);
        let aligned = self.intrinsic("shlv16i32", &[magnitude, amounts])?;
        let significand = self.shift_right(aligned, 8);
        let odd = self.and_constant(significand, 1);
        let rest = self.and_constant(aligned, 255);
        let half = self.splat_constant(127);
        let rest = self.builder.ins().iadd(rest, half);
        let rest = self.builder.ins().iadd(rest, odd);
        let up = self.shift_right(rest, 8);
        // The leading bit of the significand adds one to the exponent.
        let largest = self.splat_constant(INTEGER_EXPONENT + 7);
        let exponent = self.builder.ins().isub(largest, zeros);
        let fraction_bits = self.word(FRACTION_BITS);
        let exponent = self.builder.ins().ishl(exponent, fraction_bits);
        // Zero has no leading bit.
        let not_zero = self.builder.ins().sshr(aligned, amount);
        let exponent = self.builder.ins().band(exponent, not_zero);
        let rounded = self.builder.ins().iadd(significand, up);
        let mut bits = self.builder.ins().iadd(rounded, exponent);
        if let Some(sign) = sign {
            let sign = self.builder.ins().ishl(sign, amount);
            bits = self.builder.ins().bor(bits, sign);
        }
        Ok(self.cast(bits, types::F32X16))
    }

    /// Converts sixteen floats to integers, rounded towards zero. Numbers out of range become the
    /// nearest integer, and NaN becomes 0.
    pub fn int_from_float(&mut self, lanes: Value, signed: bool) -> Result<Value, Error> {
        let bits = self.cast(lanes, types::I32X16);
        let exponent = self.shift_right(bits, FRACTION_BITS);
        let exponent = self.and_constant(exponent, 255);
        let fraction = self.and_constant(bits, (1 << FRACTION_BITS) - 1);
        let leading = self.splat_constant(1 << FRACTION_BITS);
        let significand = self.builder.ins().bor(fraction, leading);
        let middle = self.splat_constant(INTEGER_EXPONENT);
        let up = self.builder.ins().isub(exponent, middle);
        let down = self.builder.ins().isub(middle, exponent);
        let most = self.splat_constant(31);
        let down = self.builder.ins().umin(down, most);
        let down = self.intrinsic("shrv16i32", &[significand, down])?;
        let amounts = self.and_constant(up, 31);
        let shifted = self.intrinsic("shlv16i32", &[significand, amounts])?;
        let is_up = self.compare(IntCC::UnsignedGreaterThan, exponent, INTEGER_EXPONENT);
        let mut result = self.mix_words("vector_mixi32", is_up, shifted, down)?;
        let magnitude = self.and_constant(bits, i64::from(i32::MAX));
        let mut zero_lanes = self.compare(IntCC::UnsignedGreaterThan, magnitude, f32::INFINITY.to_bits().into());
        let amount = self.word(31);
        let (limit, largest) = if signed {
            let sign = self.builder.ins().sshr(bits, amount);
            result = self.negate_if(result, sign);
            let largest = self.splat_constant(i32::MAX.into());
            (INTEGER_EXPONENT + 8, self.builder.ins().bxor(sign, largest))
        } else {
            let negative = self.builder.ins().vhigh_bits(types::I32, bits);
            zero_lanes = self.builder.ins().bor(zero_lanes, negative);
            (INTEGER_EXPONENT + 9, self.splat_constant(-1))
        };
        let too_large = self.compare(IntCC::UnsignedGreaterThanOrEqual, exponent, limit);
        let result = self.mix_words("vector_mixi32", too_large, largest, result)?;
        let zero = self.splat_constant(0);
        self.mix_words("vector_mixi32", zero_lanes, zero, result)
    }

    /// Returns the lanes that compare with a constant, as bits.
    fn compare(&mut self, cond: IntCC, lanes: Value, constant: i64) -> Value {
        let constant = self.splat_constant(constant);
        let holds = self.builder.ins().icmp(cond, lanes, constant);
        self.builder.ins().vhigh_bits(types::I32, holds)
    }

    fn and_constant(&mut self, lanes: Value, constant: i64) -> Value {
        let constant = self.splat_constant(constant);
        self.builder.ins().band(lanes, constant)
    }

    fn shift_right(&mut self, lanes: Value, amount: i64) -> Value {
        let amount = self.word(amount);
        self.builder.ins().ushr(lanes, amount)
    }

    /// Returns a scalar constant.
    fn word(&mut self, number: i64) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(number as u32))
    }
}
