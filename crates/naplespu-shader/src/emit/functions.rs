//! Math functions on each component.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::operators::component;
use crate::error::{Error, Result};
use crate::layout::{Ty, is_half, register};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, InstructionData, Value, types};
use naga::{MathFunction, ScalarKind};

/// The kind of the numbers that a function works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Signed,
    Unsigned,
}

/// Returns whether the result of a function on halves is a half before rounding.
fn is_exact(function: MathFunction) -> bool {
    use MathFunction as Mf;
    matches!(
        function,
        Mf::Abs
            | Mf::Min
            | Mf::Max
            | Mf::Clamp
            | Mf::Saturate
            | Mf::Sign
            | Mf::Step
            | Mf::Ceil
            | Mf::Floor
            | Mf::Round
            | Mf::Trunc
            | Mf::Modf
            | Mf::Frexp
            | Mf::FaceForward
            | Mf::Transpose
    )
}

/// Returns the name of the library function for a math function.
fn library(function: MathFunction) -> Option<&'static str> {
    use MathFunction as Mf;
    Some(match function {
        Mf::Cos => "cos",
        Mf::Cosh => "cosh",
        Mf::Sin => "sin",
        Mf::Sinh => "sinh",
        Mf::Tan => "tan",
        Mf::Tanh => "tanh",
        Mf::Acos => "acos",
        Mf::Asin => "asin",
        Mf::Atan => "atan",
        Mf::Atan2 => "atan2",
        Mf::Asinh => "asinh",
        Mf::Acosh => "acosh",
        Mf::Atanh => "atanh",
        Mf::Exp => "exp",
        Mf::Exp2 => "exp2",
        Mf::Log => "log",
        Mf::Log2 => "log2",
        Mf::Pow => "pow",
        Mf::Sqrt => "sqrt",
        Mf::InverseSqrt => "inverse_sqrt",
        _ => return None,
    })
}

impl Emitter<'_, '_> {
    /// Evaluates a math function.
    pub(super) fn math(&mut self, function: MathFunction, arguments: &[(Ty, Values)]) -> Result<Values> {
        let results = self.unrounded(function, arguments)?;
        let is_of_halves = match arguments.first() {
            Some((ty, _)) => is_half(self.types.scalar(*ty)?),
            None => false,
        };
        match is_of_halves && !is_exact(function) {
            true => self.all_rounded(&results),
            false => Ok(results),
        }
    }

    /// Evaluates a math function on halves in the precision of floats.
    fn unrounded(&mut self, function: MathFunction, arguments: &[(Ty, Values)]) -> Result<Values> {
        let Some((ty, first)) = arguments.first() else {
            return Err(Error::Internal("a function without arguments".to_owned()));
        };
        if let Some(results) = self.geometry(function, arguments)? {
            return Ok(results);
        }
        if let Some(results) = self.packing(function, first)? {
            return Ok(results);
        }
        let scalar = self.types.scalar(*ty)?;
        register(scalar, self.span)?;
        let kind = match scalar.kind {
            ScalarKind::Float => Kind::Float,
            ScalarKind::Sint => Kind::Signed,
            _ => Kind::Unsigned,
        };
        match function {
            MathFunction::Frexp | MathFunction::Ldexp if scalar.width == 8 => {
                return Err(self.unsupported(format!("the function {function:?} on f64")));
            }
            MathFunction::Modf | MathFunction::Frexp => return self.decompose(function, first),
            MathFunction::Dot4I8Packed | MathFunction::Dot4U8Packed => {
                let is_signed = function == MathFunction::Dot4I8Packed;
                return self.dot_of_bytes(is_signed, arguments);
            }
            _ => {}
        }
        let count = arguments.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let mut results = Values::new();
        for index in 0..count {
            let mut operands = Values::new();
            for (_, values) in arguments {
                let Some(value) = component(values, index) else {
                    return Err(Error::Internal("arguments of different sizes".to_owned()));
                };
                operands.push(value);
            }
            results.push(self.scalar_math(function, kind, &operands)?);
        }
        Ok(results)
    }

    /// Calls a function of the library. On `f64`, it has only the functions that are instructions.
    pub(super) fn library(&mut self, name: &str, operands: &[Value]) -> Result<Value> {
        if let Some(&first) = operands.first()
            && self.dfg().value_type(first) == types::F64
        {
            let root = match name {
                "sqrt" | "inverse_sqrt" => self.builder.ins().sqrt(first),
                _ => return Err(self.unsupported(format!("the function {name} on f64"))),
            };
            if name == "sqrt" {
                return Ok(root);
            }
            let one = self.float_of(types::F64, 1.0);
            return Ok(self.builder.ins().fdiv(one, root));
        }
        self.call_for(&format!("npu_math_{name}"), operands, types::F32)
    }

    /// Evaluates a function on scalars. It is one flat list of the functions.
    fn scalar_math(&mut self, function: MathFunction, kind: Kind, operands: &[Value]) -> Result<Value> {
        use MathFunction as Mf;
        if let Some(name) = library(function) {
            return self.library(name, operands);
        }
        if let Some(value) = self.bit_function(function, kind, operands)? {
            return Ok(value);
        }
        let wrong = || Error::Internal(format!("{function:?} with a wrong number of arguments"));
        let &[a, ref rest @ ..] = operands else {
            return Err(wrong());
        };
        let b = rest.first().copied().ok_or_else(wrong);
        let c = rest.get(1).copied().ok_or_else(wrong);
        Ok(match function {
            Mf::Abs => match kind {
                Kind::Float => self.builder.ins().fabs(a),
                Kind::Signed => self.builder.ins().iabs(a),
                Kind::Unsigned => a,
            },
            Mf::Min => self.min(kind, a, b?),
            Mf::Max => self.max(kind, a, b?),
            Mf::Clamp => {
                let low = self.max(kind, a, b?);
                self.min(kind, low, c?)
            }
            Mf::Saturate => self.saturated(a, 0.0, 1.0),
            Mf::Radians | Mf::Degrees if self.dfg().value_type(a) == types::F64 => {
                let radians = std::f64::consts::PI / 180.0;
                let factor = if function == Mf::Radians {
                    radians
                } else {
                    radians.recip()
                };
                let factor = self.builder.ins().f64const(factor);
                self.builder.ins().fmul(a, factor)
            }
            Mf::Radians => self.times(a, std::f32::consts::PI / 180.0),
            Mf::Degrees => self.times(a, 180.0 / std::f32::consts::PI),
            Mf::Ceil => self.builder.ins().ceil(a),
            Mf::Floor => self.builder.ins().floor(a),
            Mf::Round => self.builder.ins().nearest(a),
            Mf::Trunc => self.builder.ins().trunc(a),
            Mf::Fract => {
                let floor = self.builder.ins().floor(a);
                self.builder.ins().fsub(a, floor)
            }
            Mf::Ldexp => self.ldexp(a, b?),
            Mf::Sign => self.sign(kind, a),
            Mf::Fma => {
                let product = self.builder.ins().fmul(a, b?);
                self.builder.ins().fadd(product, c?)
            }
            Mf::Mix => {
                // a * (1 - c) + b * c
                let (one, b, c) = (self.like(a, 1.0), b?, c?);
                let rest = self.builder.ins().fsub(one, c);
                let first = self.builder.ins().fmul(a, rest);
                let second = self.builder.ins().fmul(b, c);
                self.builder.ins().fadd(first, second)
            }
            Mf::Step => {
                let (one, zero) = (self.like(a, 1.0), self.like(a, 0.0));
                let is_below = self.builder.ins().fcmp(FloatCC::LessThanOrEqual, a, b?);
                self.builder.ins().select(is_below, one, zero)
            }
            Mf::SmoothStep => {
                // t * t * (3 - 2 * t) with t = saturate((c - a) / (b - a))
                let (b, c) = (b?, c?);
                let distance = self.builder.ins().fsub(c, a);
                let width = self.builder.ins().fsub(b, a);
                let quotient = self.builder.ins().fdiv(distance, width);
                let t = self.saturated(quotient, 0.0, 1.0);
                let (two, three) = (self.like(a, 2.0), self.like(a, 3.0));
                let double = self.builder.ins().fmul(t, two);
                let rest = self.builder.ins().fsub(three, double);
                let square = self.builder.ins().fmul(t, t);
                self.builder.ins().fmul(square, rest)
            }
            Mf::QuantizeToF16 => self.rounded(a)?,
            other => return Err(self.unsupported(format!("the function {other:?}"))),
        })
    }

    /// Returns the smaller number.
    pub(super) fn min(&mut self, kind: Kind, a: Value, b: Value) -> Value {
        match kind {
            Kind::Float => self.min_constant(a, b).unwrap_or_else(|| {
                let is_less = self.builder.ins().fcmp(FloatCC::LessThan, b, a);
                self.builder.ins().select(is_less, b, a)
            }),
            Kind::Signed => self.builder.ins().smin(a, b),
            Kind::Unsigned => self.builder.ins().umin(a, b),
        }
    }

    /// Returns the larger number.
    pub(super) fn max(&mut self, kind: Kind, a: Value, b: Value) -> Value {
        match kind {
            Kind::Float => self.max_constant(a, b).unwrap_or_else(|| {
                let is_less = self.builder.ins().fcmp(FloatCC::LessThan, a, b);
                self.builder.ins().select(is_less, b, a)
            }),
            Kind::Signed => self.builder.ins().smax(a, b),
            Kind::Unsigned => self.builder.ins().umax(a, b),
        }
    }

    /// Returns the smaller number if one is a constant. As integers, floats are ordered like their
    /// values if they are positive, and in reverse order above all positive ones, unsigned, if they
    /// are negative.
    fn min_constant(&mut self, a: Value, b: Value) -> Option<Value> {
        let is_negative = self.is_negative_constant(a).or_else(|| self.is_negative_constant(b))?;
        let [a, b] = [a, b].map(|float| self.bits(float));
        let smaller = if is_negative {
            self.builder.ins().umax(a, b)
        } else {
            self.builder.ins().smin(a, b)
        };
        Some(self.of_bits(smaller))
    }

    /// Returns the larger number if one is a constant.
    fn max_constant(&mut self, a: Value, b: Value) -> Option<Value> {
        let is_negative = self.is_negative_constant(a).or_else(|| self.is_negative_constant(b))?;
        let [a, b] = [a, b].map(|float| self.bits(float));
        let larger = if is_negative {
            self.builder.ins().umin(a, b)
        } else {
            self.builder.ins().smax(a, b)
        };
        Some(self.of_bits(larger))
    }

    /// Returns whether a constant `f32` has its sign bit set.
    fn is_negative_constant(&self, value: Value) -> Option<bool> {
        let dfg = &self.builder.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits() >> 31 == 1),
            _ => None,
        }
    }

    /// Returns a float between two constants.
    pub(super) fn saturated(&mut self, value: Value, low: f32, high: f32) -> Value {
        let (low, high) = (self.like(value, low), self.like(value, high));
        let value = self.max(Kind::Float, value, low);
        self.min(Kind::Float, value, high)
    }

    /// Multiplies a float with a constant.
    pub(super) fn times(&mut self, value: Value, factor: f32) -> Value {
        let factor = self.like(value, factor);
        self.builder.ins().fmul(value, factor)
    }

    /// Returns a constant of the type of a float.
    pub(super) fn like(&mut self, value: Value, constant: f32) -> Value {
        let ty = self.dfg().value_type(value);
        self.float_of(ty, constant)
    }

    fn sign(&mut self, kind: Kind, a: Value) -> Value {
        if kind == Kind::Float {
            let (zero, one, minus_one) = (self.like(a, 0.0), self.like(a, 1.0), self.like(a, -1.0));
            let is_negative = self.builder.ins().fcmp(FloatCC::LessThan, a, zero);
            let is_positive = self.builder.ins().fcmp(FloatCC::GreaterThan, a, zero);
            let rest = self.builder.ins().select(is_positive, one, zero);
            return self.builder.ins().select(is_negative, minus_one, rest);
        }
        // -1 or 0 by the sign bit, with the bit of `a > 0`.
        let ty = self.dfg().value_type(a);
        let (shift, zero) = (self.word(ty.bits() - 1), self.integer(ty, 0));
        let sign = self.builder.ins().sshr(a, shift);
        let is_positive = self.builder.ins().icmp(IntCC::SignedGreaterThan, a, zero);
        let bit = self.builder.ins().uextend(ty, is_positive);
        self.builder.ins().bor(sign, bit)
    }

    /// Returns `a * 2^b` by a sum of exponents. The float unit has no subnormal numbers, so they are
    /// zeros.
    fn ldexp(&mut self, a: Value, b: Value) -> Value {
        let (low, high) = (self.word(-512i32 as u32), self.word(512));
        let b = self.builder.ins().smax(b, low);
        let b = self.builder.ins().smin(b, high);
        let bits = self.bits(a);
        let (shift, mask, zero) = (self.word(23), self.word(0xff), self.word(0));
        let (sign_mask, infinity) = (self.word(1 << 31), self.word(0x7f80_0000));
        let exponent = self.builder.ins().ushr(bits, shift);
        let exponent = self.builder.ins().band(exponent, mask);
        let sum = self.builder.ins().iadd(exponent, b);
        let distance = self.builder.ins().ishl(b, shift);
        let scaled = self.builder.ins().iadd(bits, distance);
        let sign = self.builder.ins().band(bits, sign_mask);
        let infinite = self.builder.ins().bor(sign, infinity);
        let is_large = self.builder.ins().icmp(IntCC::SignedGreaterThanOrEqual, sum, mask);
        let result = self.builder.ins().select(is_large, infinite, scaled);
        let is_small = self.builder.ins().icmp(IntCC::SignedLessThanOrEqual, sum, zero);
        let result = self.builder.ins().select(is_small, sign, result);
        // Zeros, infinities and NaNs stay.
        let is_zero = self.builder.ins().icmp(IntCC::Equal, exponent, zero);
        let result = self.builder.ins().select(is_zero, sign, result);
        let is_special = self.builder.ins().icmp(IntCC::Equal, exponent, mask);
        let result = self.builder.ins().select(is_special, bits, result);
        self.of_bits(result)
    }

    /// Evaluates `modf` (fractions, then whole parts) and `frexp` (fractions, then exponents).
    fn decompose(&mut self, function: MathFunction, values: &Values) -> Result<Values> {
        let (mut fractions, mut others) = (Values::new(), Values::new());
        for &value in values {
            let (fraction, other) = match function {
                MathFunction::Modf => {
                    let whole = self.builder.ins().trunc(value);
                    let fraction = self.builder.ins().fsub(value, whole);
                    (fraction, whole)
                }
                _ => self.frexp(value),
            };
            fractions.push(fraction);
            others.push(other);
        }
        fractions.extend(others);
        Ok(fractions)
    }

    /// Returns a fraction with a magnitude in [0.5, 1), and an exponent. Zeros, subnormal numbers,
    /// infinities and NaNs are their own fractions.
    fn frexp(&mut self, value: Value) -> (Value, Value) {
        let bits = self.bits(value);
        let (shift, mask, bias, zero) = (self.word(23), self.word(0xff), self.word(126), self.word(0));
        let biased = self.builder.ins().ushr(bits, shift);
        let biased = self.builder.ins().band(biased, mask);
        let exponent = self.builder.ins().isub(biased, bias);
        let (rest_mask, half) = (self.word(0x807f_ffff), self.word(0x3f00_0000));
        let rest = self.builder.ins().band(bits, rest_mask);
        let fraction = self.builder.ins().bor(rest, half);
        let fraction = self.of_bits(fraction);
        let is_small = self.builder.ins().icmp(IntCC::Equal, biased, zero);
        let is_large = self.builder.ins().icmp(IntCC::Equal, biased, mask);
        let is_special = self.builder.ins().bor(is_small, is_large);
        let fraction = self.builder.ins().select(is_special, value, fraction);
        let exponent = self.builder.ins().select(is_special, zero, exponent);
        (fraction, exponent)
    }
}
