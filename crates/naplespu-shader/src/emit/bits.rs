//! Functions on bits, and packing of numbers into words.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::functions::Kind;
use crate::error::{Error, Result};
use crate::layout::Ty;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use naga::MathFunction;

impl Emitter<'_, '_> {
    /// Evaluates a function on the bits of an integer. Returns `None` for other functions.
    pub(super) fn bit_function(
        &mut self,
        function: MathFunction,
        kind: Kind,
        operands: &[Value],
    ) -> Result<Option<Value>> {
        use MathFunction as Mf;
        let Some(ty) = operands.first().map(|&value| self.dfg().value_type(value)) else {
            return Ok(None);
        };
        let result = match (function, operands) {
            (Mf::CountTrailingZeros, &[a]) => self.builder.ins().ctz(a),
            (Mf::CountLeadingZeros, &[a]) => self.builder.ins().clz(a),
            (Mf::CountOneBits, &[a]) => self.builder.ins().popcnt(a),
            (Mf::ReverseBits, &[a]) if ty == types::I32 => self.reversed(a),
            (Mf::ReverseBits, &[a]) => self.builder.ins().bitrev(a),
            (Mf::FirstTrailingBit, &[a]) => {
                let count = self.builder.ins().ctz(a);
                let (zero, none) = (self.integer(ty, 0), self.integer(ty, -1));
                let is_zero = self.builder.ins().icmp(IntCC::Equal, a, zero);
                self.builder.ins().select(is_zero, none, count)
            }
            (Mf::FirstLeadingBit, &[a]) => {
                let a = match kind {
                    // The first bit that differs from the sign.
                    Kind::Signed => {
                        let shift = self.word(ty.bits() - 1);
                        let sign = self.builder.ins().sshr(a, shift);
                        self.builder.ins().bxor(a, sign)
                    }
                    _ => a,
                };
                // The last bit minus the width is -1, the result for zero.
                let count = self.builder.ins().clz(a);
                let last = self.integer(ty, i64::from(ty.bits()) - 1);
                self.builder.ins().isub(last, count)
            }
            (Mf::ExtractBits, &[a, offset, count]) => self.extract(kind, a, offset, count),
            (Mf::InsertBits, &[a, new, offset, count]) => self.insert(a, new, offset, count),
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// Clamps an offset to the width and a count to the rest of the word.
    fn field(&mut self, width: Value, offset: Value, count: Value) -> (Value, Value) {
        let offset = self.builder.ins().umin(offset, width);
        let rest = self.builder.ins().isub(width, offset);
        let count = self.builder.ins().umin(count, rest);
        (offset, count)
    }

    fn extract(&mut self, kind: Kind, a: Value, offset: Value, count: Value) -> Value {
        let ty = self.dfg().value_type(a);
        let width = self.word(ty.bits());
        let (offset, count) = self.field(width, offset, count);
        // The field moves to the top of the word, and back with its sign. Shift amounts are less
        // than the width because the count is not zero.
        let (none, zero) = (self.word(0), self.integer(ty, 0));
        let rest = self.builder.ins().isub(width, count);
        let above = self.builder.ins().isub(rest, offset);
        let top = self.builder.ins().ishl(a, above);
        let field = match kind {
            Kind::Signed => self.builder.ins().sshr(top, rest),
            _ => self.builder.ins().ushr(top, rest),
        };
        let is_empty = self.builder.ins().icmp(IntCC::Equal, count, none);
        self.builder.ins().select(is_empty, zero, field)
    }

    fn insert(&mut self, a: Value, new: Value, offset: Value, count: Value) -> Value {
        let ty = self.dfg().value_type(a);
        let width = self.word(ty.bits());
        let (offset, count) = self.field(width, offset, count);
        let (none, ones) = (self.word(0), self.integer(ty, -1));
        let rest = self.builder.ins().isub(width, count);
        let mask = self.builder.ins().ushr(ones, rest);
        let mask = self.builder.ins().ishl(mask, offset);
        let moved = self.builder.ins().ishl(new, offset);
        let difference = self.builder.ins().bxor(a, moved);
        let difference = self.builder.ins().band(difference, mask);
        let merged = self.builder.ins().bxor(a, difference);
        let is_empty = self.builder.ins().icmp(IntCC::Equal, count, none);
        self.builder.ins().select(is_empty, a, merged)
    }

    /// Reverses the bits: exchanges neighbors, pairs, and so on. CLIF has no such instruction for
    /// vectors.
    fn reversed(&mut self, mut value: Value) -> Value {
        for (shift, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f), (8, 0x00ff_00ff)] {
            let (shift, mask) = (self.word(shift), self.word(mask));
            let high = self.builder.ins().ushr(value, shift);
            let high = self.builder.ins().band(high, mask);
            let low = self.builder.ins().band(value, mask);
            let low = self.builder.ins().ishl(low, shift);
            value = self.builder.ins().bor(high, low);
        }
        let shift = self.word(16);
        let high = self.builder.ins().ushr(value, shift);
        let low = self.builder.ins().ishl(value, shift);
        self.builder.ins().bor(high, low)
    }

    /// Evaluates a function that packs or unpacks numbers. Returns `None` for other functions.
    pub(super) fn packing(&mut self, function: MathFunction, values: &Values) -> Result<Option<Values>> {
        use MathFunction as Mf;
        let first = values
            .first()
            .copied()
            .ok_or_else(|| Error::Internal("a function without arguments".to_owned()))?;
        let one = |value: Value| Values::from_elem(value, 1);
        let results = match function {
            Mf::Pack4x8snorm => one(self.pack_normalized(values, 8, true)),
            Mf::Pack4x8unorm => one(self.pack_normalized(values, 8, false)),
            Mf::Pack2x16snorm => one(self.pack_normalized(values, 16, true)),
            Mf::Pack2x16unorm => one(self.pack_normalized(values, 16, false)),
            Mf::Pack2x16float => {
                let halves = values
                    .iter()
                    .map(|&value| self.half_of(value))
                    .collect::<Result<Values>>()?;
                one(self.pack(&halves, 16))
            }
            Mf::Pack4xI8 | Mf::Pack4xU8 => one(self.pack(values, 8)),
            Mf::Pack4xI8Clamp => {
                let (low, high) = (self.word(-128i32 as u32), self.word(127));
                let clamped = self.clamp_all(Kind::Signed, values, low, high);
                one(self.pack(&clamped, 8))
            }
            Mf::Pack4xU8Clamp => {
                let (low, high) = (self.word(0), self.word(255));
                let clamped = self.clamp_all(Kind::Unsigned, values, low, high);
                one(self.pack(&clamped, 8))
            }
            Mf::Unpack4x8snorm => self.unpack_normalized(first, 8, true),
            Mf::Unpack4x8unorm => self.unpack_normalized(first, 8, false),
            Mf::Unpack2x16snorm => self.unpack_normalized(first, 16, true),
            Mf::Unpack2x16unorm => self.unpack_normalized(first, 16, false),
            Mf::Unpack2x16float => {
                let halves = self.unpack(first, 16, false);
                halves
                    .into_iter()
                    .map(|half| self.of_half(half))
                    .collect::<Result<_>>()?
            }
            Mf::Unpack4xI8 => self.unpack(first, 8, true),
            Mf::Unpack4xU8 => self.unpack(first, 8, false),
            _ => return Ok(None),
        };
        Ok(Some(results))
    }

    fn clamp_all(&mut self, kind: Kind, values: &Values, low: Value, high: Value) -> Values {
        let mut results = Values::new();
        for &value in values {
            let value = self.max(kind, value, low);
            results.push(self.min(kind, value, high));
        }
        results
    }

    /// Puts the low `bits` of each value into a word, the first lowest.
    fn pack(&mut self, values: &Values, bits: u32) -> Value {
        let mut word = self.word(0);
        for (index, &value) in values.iter().enumerate() {
            let mask = self.word((1 << bits) - 1);
            let mut part = self.builder.ins().band(value, mask);
            if index > 0 {
                let shift = self.word(bits * index as u32);
                part = self.builder.ins().ishl(part, shift);
                part = self.builder.ins().bor(word, part);
            }
            word = part;
        }
        word
    }

    /// Returns the parts of a word, the lowest first, extended to words.
    fn unpack(&mut self, word: Value, bits: u32, is_signed: bool) -> Values {
        let mut values = Values::new();
        let down = self.word(32 - bits);
        for index in 1..=32 / bits {
            let up = self.word(32 - bits * index);
            let top = self.builder.ins().ishl(word, up);
            values.push(match is_signed {
                true => self.builder.ins().sshr(top, down),
                false => self.builder.ins().ushr(top, down),
            });
        }
        values
    }

    /// Packs floats in [0, 1] or [-1, 1] as integers of `bits`.
    fn pack_normalized(&mut self, values: &Values, bits: u32, is_signed: bool) -> Value {
        let (low, scale) = match is_signed {
            true => (-1.0, ((1u32 << (bits - 1)) - 1) as f32),
            false => (0.0, ((1u32 << bits) - 1) as f32),
        };
        let mut parts = Values::new();
        for &value in values {
            let value = self.saturated(value, low, 1.0);
            let scaled = self.times(value, scale);
            let half = self.float(0.5);
            let sum = self.builder.ins().fadd(scaled, half);
            let whole = self.builder.ins().floor(sum);
            let ins = self.builder.ins();
            parts.push(ins.fcvt_to_sint_sat(types::I32, whole));
        }
        self.pack(&parts, bits)
    }

    fn unpack_normalized(&mut self, word: Value, bits: u32, is_signed: bool) -> Values {
        let parts = self.unpack(word, bits, is_signed);
        let mut values = Values::new();
        for part in parts {
            let float = types::F32;
            values.push(match is_signed {
                true => {
                    let number = self.builder.ins().fcvt_from_sint(float, part);
                    let scale = self.float(((1u32 << (bits - 1)) - 1) as f32);
                    let quotient = self.builder.ins().fdiv(number, scale);
                    let low = self.float(-1.0);
                    self.max(Kind::Float, quotient, low)
                }
                false => {
                    let number = self.builder.ins().fcvt_from_uint(float, part);
                    let scale = self.float(((1u32 << bits) - 1) as f32);
                    self.builder.ins().fdiv(number, scale)
                }
            });
        }
        values
    }

    /// Returns the sum of the products of four bytes.
    pub(super) fn dot_of_bytes(&mut self, is_signed: bool, arguments: &[(Ty, Values)]) -> Result<Values> {
        let [(_, a), (_, b)] = arguments else {
            return Err(Error::Internal("a dot product of other than two words".to_owned()));
        };
        let (Some(&a), Some(&b)) = (a.first(), b.first()) else {
            return Err(Error::Internal("a dot product without operands".to_owned()));
        };
        let (a, b) = (self.unpack(a, 8, is_signed), self.unpack(b, 8, is_signed));
        let mut sum = self.word(0);
        for (a, b) in a.into_iter().zip(b) {
            let product = self.builder.ins().imul(a, b);
            sum = self.builder.ins().iadd(sum, product);
        }
        Ok(Values::from_elem(sum, 1))
    }

    /// Returns the bits of the nearest half-precision float, ties to even, in the low half.
    pub(super) fn half_of(&mut self, value: Value) -> Result<Value> {
        let bits = self.call_for("npu_half_bits", &[value], types::I32)?;
        self.facts.know(bits, 0xffff);
        Ok(bits)
    }

    /// Returns the float of a half-precision float in the low half.
    pub(super) fn of_half(&mut self, half: Value) -> Result<Value> {
        self.call_for("npu_half_value", &[half], types::F32)
    }

    /// Returns the value of the nearest half-precision float, ties to even.
    pub(super) fn rounded(&mut self, value: Value) -> Result<Value> {
        self.call_for("npu_half_round", &[value], types::F32)
    }

    /// Returns the values of the nearest half-precision floats.
    pub(super) fn all_rounded(&mut self, values: &Values) -> Result<Values> {
        values.iter().map(|&value| self.rounded(value)).collect()
    }
}
