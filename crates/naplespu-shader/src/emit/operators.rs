//! Unary, binary and relational operators, and conversions.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::facts::constant;
use crate::error::{Error, Result};
use crate::layout::{Ty, register};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
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
        if op == BinaryOperator::Multiply {
            match (left_ty, right_ty) {
                (Ty::Matrix { columns, rows, .. }, Ty::Matrix { columns: width, .. }) => {
                    let mut product = Values::new();
                    for column in right.chunks_exact(columns as usize).take(width as usize) {
                        product.extend(self.matrix_by_vector(&left, rows, column));
                    }
                    return Ok(product);
                }
                (Ty::Matrix { rows, .. }, Ty::Vector(..)) => return Ok(self.matrix_by_vector(&left, rows, &right)),
                (Ty::Vector(..), Ty::Matrix { rows, .. }) => {
                    let columns = right.chunks_exact(rows as usize);
                    return Ok(columns.map(|column| self.dot_floats(&left, column)).collect());
                }
                _ => {}
            }
        }
        let scalar = self.types.scalar(left_ty)?;
        register(scalar, self.span)?;
        let count = left.len().max(right.len());
        let mut results = Values::new();
        for index in 0..count {
            let (Some(a), Some(b)) = (component(&left, index), component(&right, index)) else {
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
        let Some(divisor) = constant(self.dfg(), b) else {
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
        let (zero, one) = (self.word(0), self.word(1));
        let mut traps = self.builder.ins().icmp(IntCC::Equal, b, zero);
        if is_signed {
            let (smallest, minus_one) = (self.word(1 << 31), self.word(u32::MAX));
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

    /// Returns whether the magnitude of a float compares with infinity.
    fn compare_with_infinity(&mut self, condition: IntCC, value: Value) -> Value {
        let (mask, infinity) = (self.word(MAGNITUDE), self.word(INFINITY));
        let bits = self.bits(value);
        let magnitude = self.builder.ins().band(bits, mask);
        self.builder.ins().icmp(condition, magnitude, infinity)
    }

    pub(super) fn relational(&mut self, function: RelationalFunction, values: &Values) -> Result<Values> {
        let mut results = Values::new();
        match function {
            RelationalFunction::IsNan => {
                for &value in values {
                    results.push(self.compare_with_infinity(IntCC::UnsignedGreaterThan, value));
                }
            }
            RelationalFunction::IsInf => {
                for &value in values {
                    results.push(self.compare_with_infinity(IntCC::Equal, value));
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
        register(to, self.span)?;
        let mut results = Values::new();
        for &value in values {
            results.push(match width {
                None => self.reinterpret(value, from.kind, kind)?,
                Some(_) => self.convert_scalar(value, from.kind, kind),
            });
        }
        Ok(results)
    }

    fn reinterpret(&mut self, value: Value, from: ScalarKind, to: ScalarKind) -> Result<Value> {
        match (from, to) {
            (ScalarKind::Float, ScalarKind::Sint | ScalarKind::Uint) => Ok(self.bits(value)),
            (ScalarKind::Sint | ScalarKind::Uint, ScalarKind::Float) => Ok(self.of_bits(value)),
            (ScalarKind::Sint | ScalarKind::Uint, ScalarKind::Sint | ScalarKind::Uint) => Ok(value),
            (from, to) if from == to => Ok(value),
            _ => Err(self.unsupported("a bitcast of bool")),
        }
    }

    fn convert_scalar(&mut self, value: Value, from: ScalarKind, to: ScalarKind) -> Value {
        use ScalarKind::{Bool, Float, Sint, Uint};
        match (from, to) {
            (Bool, Sint | Uint) => self.builder.ins().uextend(types::I32, value),
            (Bool, Float) => {
                let (one, zero) = (self.float(1.0), self.float(0.0));
                self.builder.ins().select(value, one, zero)
            }
            (Sint | Uint, Bool) => {
                let zero = self.word(0);
                self.builder.ins().icmp(IntCC::NotEqual, value, zero)
            }
            (Float, Bool) => {
                // All but zero, which has only the bit of the sign.
                let bits = self.bits(value);
                let (mask, zero) = (self.word(MAGNITUDE), self.word(0));
                let magnitude = self.builder.ins().band(bits, mask);
                self.builder.ins().icmp(IntCC::NotEqual, magnitude, zero)
            }
            (Sint, Float) => self.builder.ins().fcvt_from_sint(types::F32, value),
            (Uint, Float) => self.builder.ins().fcvt_from_uint(types::F32, value),
            (Float, Sint) => self.builder.ins().fcvt_to_sint_sat(types::I32, value),
            (Float, Uint) => self.builder.ins().fcvt_to_uint_sat(types::I32, value),
            _ => value,
        }
    }
}

/// Returns a component of a vector, or the scalar that stands for all components.
pub(crate) fn component(values: &Values, index: usize) -> Option<Value> {
    match values[..] {
        [one] => Some(one),
        _ => values.get(index).copied(),
    }
}
