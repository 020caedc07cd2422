//! Unary, binary and relational operators, and conversions.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::facts::constant;
use crate::error::{Error, Result};
use crate::layout::{Ty, is_half, register};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use naga::{BinaryOperator, RelationalFunction, Scalar, ScalarKind, UnaryOperator, VectorSize};

/// The bits of a float without the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;

/// The bits of infinity.
const INFINITY: u32 = 0x7f80_0000;

impl Emitter<'_, '_> {
    /// Negates a Boolean.
    pub(super) fn not(&mut self, value: Value) -> Value {
        let one = self.flag(true);
        self.builder.ins().bxor(value, one)
    }

    pub(super) fn unary(&mut self, op: UnaryOperator, ty: Ty, values: &Values) -> Result<Values> {
        let scalar = self.types.scalar(ty)?;
        register(scalar, self.span)?;
        let mut results = Values::new();
        for &value in values {
            results.push(match (op, scalar.kind) {
                (UnaryOperator::Negate, ScalarKind::Float) => self.builder.ins().fneg(value),
                (UnaryOperator::Negate, _) => self.builder.ins().ineg(value),
                (UnaryOperator::LogicalNot, _) | (UnaryOperator::BitwiseNot, ScalarKind::Bool) => self.not(value),
                (UnaryOperator::BitwiseNot, _) => self.builder.ins().bnot(value),
            });
        }
        Ok(results)
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        (left_ty, left): (Ty, Values),
        (right_ty, right): (Ty, Values),
    ) -> Result<Values> {
        let scalar = self.types.scalar(left_ty)?;
        register(scalar, self.span)?;
        let product = match (op, left_ty, right_ty) {
            (BinaryOperator::Multiply, Ty::Matrix { columns, rows, .. }, Ty::Matrix { columns: width, .. }) => {
                let columns = right.chunks_exact(columns as usize).take(width as usize);
                Some(
                    columns
                        .flat_map(|column| self.matrix_by_vector(&left, rows, column))
                        .collect(),
                )
            }
            (BinaryOperator::Multiply, Ty::Matrix { rows, .. }, Ty::Vector(..)) => {
                Some(self.matrix_by_vector(&left, rows, &right))
            }
            (BinaryOperator::Multiply, Ty::Vector(..), Ty::Matrix { rows, .. }) => {
                let columns = right.chunks_exact(rows as usize);
                Some(columns.map(|column| self.dot_floats(&left, column)).collect())
            }
            _ => None,
        };
        let results = match product {
            Some(product) => product,
            None => self.componentwise(op, scalar, &left, &right)?,
        };
        use BinaryOperator as Op;
        match op {
            Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Modulo if is_half(scalar) => {
                self.all_rounded(&results)
            }
            _ => Ok(results),
        }
    }

    fn componentwise(&mut self, op: BinaryOperator, scalar: Scalar, left: &Values, right: &Values) -> Result<Values> {
        let count = left.len().max(right.len());
        let mut results = Values::new();
        for index in 0..count {
            let (Some(a), Some(b)) = (component(left, index), component(right, index)) else {
                return Err(Error::Internal("operands of different sizes".to_owned()));
            };
            results.push(self.scalar_binary(op, scalar, a, b)?);
        }
        Ok(results)
    }

    /// Returns the product of a matrix, by columns, and a vector.
    fn matrix_by_vector(&mut self, matrix: &[Value], rows: VectorSize, vector: &[Value]) -> Values {
        let mut sums = Values::new();
        for (column, &factor) in matrix.chunks_exact(rows as usize).zip(vector) {
            for (row, &element) in column.iter().enumerate() {
                let product = self.builder.ins().fmul(element, factor);
                match sums.get_mut(row) {
                    Some(sum) => *sum = self.builder.ins().fadd(*sum, product),
                    None => sums.push(product),
                }
            }
        }
        sums
    }

    fn scalar_binary(&mut self, op: BinaryOperator, scalar: Scalar, a: Value, b: Value) -> Result<Value> {
        use BinaryOperator as Op;
        let kind = scalar.kind;
        let is_float = kind == ScalarKind::Float;
        let is_signed = kind == ScalarKind::Sint;
        Ok(match op {
            Op::Add if is_float => self.builder.ins().fadd(a, b),
            Op::Add => self.builder.ins().iadd(a, b),
            Op::Subtract if is_float => self.builder.ins().fsub(a, b),
            Op::Subtract => self.builder.ins().isub(a, b),
            Op::Multiply if is_float => self.builder.ins().fmul(a, b),
            Op::Multiply => self.builder.ins().imul(a, b),
            Op::Divide if is_float => self.builder.ins().fdiv(a, b),
            Op::Divide => self.divide(is_signed, a, b).0,
            Op::Modulo if is_float => {
                let quotient = self.builder.ins().fdiv(a, b);
                let whole = self.builder.ins().trunc(quotient);
                let product = self.builder.ins().fmul(b, whole);
                self.builder.ins().fsub(a, product)
            }
            Op::Modulo => {
                let remainder = self.divide(is_signed, a, b).1;
                match remainder {
                    Some(remainder) => remainder,
                    None => self.remainder(is_signed, a, b),
                }
            }
            Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => {
                self.compare(op, kind, a, b)
            }
            Op::And | Op::LogicalAnd => self.builder.ins().band(a, b),
            Op::InclusiveOr | Op::LogicalOr => self.builder.ins().bor(a, b),
            Op::ExclusiveOr => self.builder.ins().bxor(a, b),
            Op::ShiftLeft => self.builder.ins().ishl(a, b),
            Op::ShiftRight if is_signed => self.builder.ins().sshr(a, b),
            Op::ShiftRight => self.builder.ins().ushr(a, b),
        })
    }

    fn compare(&mut self, op: BinaryOperator, kind: ScalarKind, a: Value, b: Value) -> Value {
        use BinaryOperator as Op;
        if kind == ScalarKind::Float {
            let condition = match op {
                Op::Equal => FloatCC::Equal,
                Op::NotEqual => FloatCC::NotEqual,
                Op::Less => FloatCC::LessThan,
                Op::LessEqual => FloatCC::LessThanOrEqual,
                Op::Greater => FloatCC::GreaterThan,
                _ => FloatCC::GreaterThanOrEqual,
            };
            return self.builder.ins().fcmp(condition, a, b);
        }
        let condition = match (op, kind) {
            (Op::Equal, _) => IntCC::Equal,
            (Op::NotEqual, _) => IntCC::NotEqual,
            (Op::Less, ScalarKind::Sint) => IntCC::SignedLessThan,
            (Op::LessEqual, ScalarKind::Sint) => IntCC::SignedLessThanOrEqual,
            (Op::Greater, ScalarKind::Sint) => IntCC::SignedGreaterThan,
            (_, ScalarKind::Sint) => IntCC::SignedGreaterThanOrEqual,
            (Op::Less, _) => IntCC::UnsignedLessThan,
            (Op::LessEqual, _) => IntCC::UnsignedLessThanOrEqual,
            (Op::Greater, _) => IntCC::UnsignedGreaterThan,
            _ => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.builder.ins().icmp(condition, a, b)
    }

    /// Returns the quotient, and the remainder if the divisor is constant. A quotient by zero is
    /// the dividend, and its remainder zero; the same holds for the smallest integer by -1.
    fn divide(&mut self, is_signed: bool, a: Value, b: Value) -> (Value, Option<Value>) {
        let divisor = match self.dfg().value_type(b) {
            types::I32 => constant(self.dfg(), b),
            _ => None,
        };
        let Some(divisor) = divisor else {
            let b = self.safe_divisor(is_signed, a, b);
            return (
                match is_signed {
                    true => self.builder.ins().sdiv(a, b),
                    false => self.builder.ins().udiv(a, b),
                },
                None,
            );
        };
        if divisor == 0 {
            let zero = self.word(0);
            return (a, Some(zero));
        }
        let bound = self.facts.bound(self.dfg(), a);
        let is_nonnegative = bound <= i32::MAX as u32 && divisor <= i32::MAX as u32;
        let is_signed = is_signed && !is_nonnegative;
        let quotient = if is_signed {
            // The quotient of the magnitudes, with the sign of the quotient.
            let shift = self.word(31);
            let sign = self.builder.ins().sshr(a, shift);
            let flipped = self.builder.ins().bxor(a, sign);
            let magnitude = self.builder.ins().isub(flipped, sign);
            let quotient = self.divide_by(magnitude, (divisor as i32).unsigned_abs());
            let flipped = self.builder.ins().bxor(quotient, sign);
            let quotient = self.builder.ins().isub(flipped, sign);
            match (divisor as i32) < 0 {
                true => self.builder.ins().ineg(quotient),
                false => quotient,
            }
        } else if divisor.is_power_of_two() {
            let quotient = self.divide_by(a, divisor);
            let mask = self.word(divisor - 1);
            return (quotient, Some(self.builder.ins().band(a, mask)));
        } else {
            self.divide_by(a, divisor)
        };
        let factor = self.word(divisor);
        let product = self.builder.ins().imul(quotient, factor);
        let remainder = self.builder.ins().isub(a, product);
        if !is_signed {
            self.facts.know(quotient, bound / divisor);
            self.facts.know(remainder, bound.min(divisor - 1));
        }
        (quotient, Some(remainder))
    }

    /// Divides an unsigned number by a constant that is not zero: by a shift, or by a multiplication
    /// with the reciprocal.
    fn divide_by(&mut self, a: Value, divisor: u32) -> Value {
        if divisor.is_power_of_two() {
            let shift = self.word(divisor.trailing_zeros());
            return self.builder.ins().ushr(a, shift);
        }
        // With 2^(bits-1) < divisor < 2^bits the factor is 2^32 * (2^bits / divisor - 1) + 1.
        let bits = 32 - (divisor - 1).leading_zeros();
        let factor = ((((1u64 << bits) - u64::from(divisor)) << 32) / u64::from(divisor) + 1) as u32;
        let factor = self.word(factor);
        let high = self.builder.ins().umulhi(a, factor);
        let rest = self.builder.ins().isub(a, high);
        let one = self.word(1);
        let half = self.builder.ins().ushr(rest, one);
        let sum = self.builder.ins().iadd(half, high);
        let shift = self.word(bits - 1);
        self.builder.ins().ushr(sum, shift)
    }

    fn remainder(&mut self, is_signed: bool, a: Value, b: Value) -> Value {
        let b = self.safe_divisor(is_signed, a, b);
        match is_signed {
            true => self.builder.ins().srem(a, b),
            false => self.builder.ins().urem(a, b),
        }
    }

    /// Returns 1 instead of divisors that trap. The quotient by 1 is the dividend, and the remainder
    /// zero, as the shader languages define both.
    fn safe_divisor(&mut self, is_signed: bool, a: Value, b: Value) -> Value {
        let ty = self.dfg().value_type(b);
        let (zero, one) = (self.integer(ty, 0), self.integer(ty, 1));
        let mut traps = self.builder.ins().icmp(IntCC::Equal, b, zero);
        if is_signed {
            let smallest = i64::MIN >> (64 - ty.bits());
            let (smallest, minus_one) = (self.integer(ty, smallest), self.integer(ty, -1));
            let is_smallest = self.builder.ins().icmp(IntCC::Equal, a, smallest);
            let is_minus_one = self.builder.ins().icmp(IntCC::Equal, b, minus_one);
            let overflows = self.builder.ins().band(is_smallest, is_minus_one);
            traps = self.builder.ins().bor(traps, overflows);
        }
        self.builder.ins().select(traps, one, b)
    }

    /// Returns the bits of a float.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        self.builder.ins().bitcast(types::I32, MemFlagsData::new(), value)
    }

    /// Returns the float with these bits.
    pub(super) fn of_bits(&mut self, value: Value) -> Value {
        self.builder.ins().bitcast(types::F32, MemFlagsData::new(), value)
    }

    /// Returns whether a float is infinite, or is a NaN.
    fn is_special(&mut self, value: Value, is_nan: bool) -> Value {
        if self.dfg().value_type(value) == types::F64 {
            if is_nan {
                return self.builder.ins().fcmp(FloatCC::Unordered, value, value);
            }
            let (magnitude, infinity) = (self.builder.ins().fabs(value), self.float_of(types::F64, f32::INFINITY));
            return self.builder.ins().fcmp(FloatCC::Equal, magnitude, infinity);
        }
        let (mask, infinity) = (self.word(MAGNITUDE), self.word(INFINITY));
        let bits = self.bits(value);
        let magnitude = self.builder.ins().band(bits, mask);
        let condition = if is_nan {
            IntCC::UnsignedGreaterThan
        } else {
            IntCC::Equal
        };
        self.builder.ins().icmp(condition, magnitude, infinity)
    }

    pub(super) fn relational(&mut self, function: RelationalFunction, values: &Values) -> Result<Values> {
        let mut results = Values::new();
        match function {
            RelationalFunction::IsNan | RelationalFunction::IsInf => {
                let is_nan = function == RelationalFunction::IsNan;
                for &value in values {
                    results.push(self.is_special(value, is_nan));
                }
            }
            RelationalFunction::All | RelationalFunction::Any => {
                let is_all = function == RelationalFunction::All;
                let mut values = values.iter().copied();
                let Some(mut result) = values.next() else {
                    return Err(Error::Internal("a vector without components".to_owned()));
                };
                for value in values {
                    result = match is_all {
                        true => self.builder.ins().band(result, value),
                        false => self.builder.ins().bor(result, value),
                    };
                }
                results.push(result);
            }
        }
        Ok(results)
    }

    /// Converts components to another kind, or reinterprets their bits if there is no width.
    pub(super) fn convert(&mut self, ty: Ty, values: &Values, kind: ScalarKind, width: Option<u8>) -> Result<Values> {
        let from = self.types.scalar(ty)?;
        register(from, self.span)?;
        let to = Scalar {
            kind,
            width: width.unwrap_or(from.width),
        };
        let mut results = Values::new();
        for &value in values {
            results.push(match width {
                None => self.reinterpret(value, from, to)?,
                Some(_) => self.convert_scalar(value, from, to)?,
            });
        }
        Ok(results)
    }

    fn reinterpret(&mut self, value: Value, from: Scalar, to: Scalar) -> Result<Value> {
        let target = register(to, self.span)?;
        if from.kind != to.kind && (from.kind == ScalarKind::Bool || to.kind == ScalarKind::Bool) {
            return Err(self.unsupported("a bitcast of bool"));
        }
        if from.kind == to.kind {
            return Ok(value);
        }
        let bits = self.as_bits(value);
        Ok(self.as_register(bits, target))
    }

    /// Converts a float to an integer. A number out of range gives the nearest integer that both types
    /// have.
    fn truncated(&mut self, value: Value, from: Scalar, to: Scalar, target: Type) -> Value {
        let is_signed = to.kind == ScalarKind::Sint;
        let most = largest(from.width, target.bits(), is_signed);
        let limit = self.integer(target, most);
        if !is_signed {
            let whole = self.builder.ins().fcvt_to_uint_sat(target, value);
            return self.builder.ins().umin(whole, limit);
        }
        let whole = self.builder.ins().fcvt_to_sint_sat(target, value);
        let whole = self.builder.ins().smin(whole, limit);
        match is_half(from) {
            true => {
                let low = self.integer(target, -most);
                self.builder.ins().smax(whole, low)
            }
            false => whole,
        }
    }

    fn convert_scalar(&mut self, value: Value, from: Scalar, to: Scalar) -> Result<Value> {
        use ScalarKind::{Bool, Float, Sint, Uint};
        let (source, target) = (register(from, self.span)?, register(to, self.span)?);
        let converted = match (from.kind, to.kind) {
            (Bool, Sint | Uint) => self.builder.ins().uextend(target, value),
            (Bool, Float) => {
                let (one, zero) = (self.float_of(target, 1.0), self.float_of(target, 0.0));
                return Ok(self.builder.ins().select(value, one, zero));
            }
            (Sint | Uint, Bool) => {
                let zero = self.integer(source, 0);
                self.builder.ins().icmp(IntCC::NotEqual, value, zero)
            }
            (Float, Bool) => {
                // All but zero, which has only the bit of the sign.
                let bits = self.as_bits(value);
                let (one, zero) = (self.word(1), self.integer(source.as_int(), 0));
                let magnitude = self.builder.ins().ishl(bits, one);
                self.builder.ins().icmp(IntCC::NotEqual, magnitude, zero)
            }
            (Sint, Float) => self.builder.ins().fcvt_from_sint(target, value),
            (Uint, Float) => self.builder.ins().fcvt_from_uint(target, value),
            (Float, Sint | Uint) => self.truncated(value, from, to, target),
            (Sint, Sint | Uint) if source.bits() < target.bits() => self.builder.ins().sextend(target, value),
            (Uint, Sint | Uint) if source.bits() < target.bits() => self.builder.ins().uextend(target, value),
            (Sint | Uint, Sint | Uint) if source.bits() > target.bits() => self.builder.ins().ireduce(target, value),
            (Float, Float) if source.bits() < target.bits() => self.builder.ins().fpromote(target, value),
            (Float, Float) if source.bits() > target.bits() => self.builder.ins().fdemote(target, value),
            _ => value,
        };
        match is_half(to) && !is_half(from) {
            true => self.rounded(converted),
            false => Ok(converted),
        }
    }
}

/// Returns the largest integer of `bits` bits, of which one is the sign if it is signed, that a float
/// of a width in bytes can have.
fn largest(width: u8, bits: u32, is_signed: bool) -> i64 {
    let digits = match width {
        2 => return 65504,
        4 => 24,
        _ => 53,
    };
    let bits = bits - u32::from(is_signed);
    let all = u64::MAX >> (64 - bits);
    let unused = u64::MAX.checked_shr(64 - bits + digits).unwrap_or(0);
    (all & !unused) as i64
}

/// Returns a component of a vector, or the scalar that stands for all components.
pub(crate) fn component(values: &Values, index: usize) -> Option<Value> {
    match values[..] {
        [one] => Some(one),
        _ => values.get(index).copied(),
    }
}
