//! Performs an operation on each lane of a vector that `scalarize.rs` splits into scalars.

use super::convert;
use super::scalarize::{Lanes, NoForm, Splitter};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value, types};

impl Splitter<'_> {
    pub(super) fn unary(&mut self, opcode: Opcode, ty: Type, arg: Value) -> Lanes {
        let lane = ty.lane_type();
        let same_lanes = self.type_of(arg).lane_count() == ty.lane_count();
        Ok(match opcode {
            Opcode::FcvtToUint
            | Opcode::FcvtToSint
            | Opcode::FcvtToUintSat
            | Opcode::FcvtToSintSat
            | Opcode::FcvtFromUint
            | Opcode::FcvtFromSint
            | Opcode::X86Cvtt2dq
                if !same_lanes =>
            {
                return Err(NoForm);
            }
            Opcode::Bnot
            | Opcode::Ineg
            | Opcode::Iabs
            | Opcode::Popcnt
            | Opcode::Clz
            | Opcode::Ctz
            | Opcode::Cls
            | Opcode::Bitrev
            | Opcode::Bswap
            | Opcode::Fneg
            | Opcode::Fabs
            | Opcode::Sqrt
            | Opcode::Ceil
            | Opcode::Floor
            | Opcode::Trunc
            | Opcode::Nearest
            | Opcode::FcvtToUint
            | Opcode::FcvtToSint
            | Opcode::FcvtToUintSat
            | Opcode::FcvtToSintSat
            | Opcode::FcvtFromUint
            | Opcode::FcvtFromSint
            | Opcode::Uextend
            | Opcode::Sextend
            | Opcode::Ireduce
            | Opcode::Fpromote
            | Opcode::Fdemote
            | Opcode::Bmask => self.each(arg, |this, value| {
                let (inst, dfg) = this.cursor.ins().Unary(opcode, lane, value);
                dfg.first_result(inst)
            }),
            Opcode::Splat => vec![arg; ty.lane_count() as usize],
            Opcode::ScalarToVector => {
                let size = lane.bytes() as usize;
                let zero = self.constant(lane, &vec![0; size]);
                let mut lanes = vec![zero; ty.lane_count() as usize];
                if let Some(first) = lanes.first_mut() {
                    *first = arg;
                }
                lanes
            }
            Opcode::VanyTrue => vec![self.truth(arg, false)?],
            Opcode::VallTrue => vec![self.truth(arg, true)?],
            Opcode::VhighBits => vec![self.high_bits(ty, arg)],
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let all = self.lanes(arg);
                let (low, high) = all.split_at(all.len() / 2);
                let half = match opcode {
                    Opcode::SwidenLow | Opcode::UwidenLow => low,
                    _ => high,
                };
                let signed = matches!(opcode, Opcode::SwidenLow | Opcode::SwidenHigh);
                half.iter().map(|&value| self.extend(lane, value, signed)).collect()
            }
            Opcode::FvpromoteLow => {
                let all = self.lanes(arg);
                let half = all.iter().take(ty.lane_count() as usize);
                half.map(|&value| self.cursor.ins().fpromote(lane, value)).collect()
            }
            Opcode::Fvdemote => {
                let mut lanes = self.each(arg, |this, value| this.cursor.ins().fdemote(lane, value));
                let size = lane.bytes() as usize;
                let zero = self.constant(lane, &vec![0; size]);
                lanes.resize(ty.lane_count() as usize, zero);
                lanes
            }
            Opcode::X86Cvtt2dq => self.each(arg, |this, value| convert::or_least(&mut this.cursor, lane, value)),
            _ => return Err(NoForm),
        })
    }

    pub(super) fn extend(&mut self, ty: Type, value: Value, signed: bool) -> Value {
        if signed {
            self.cursor.ins().sextend(ty, value)
        } else {
            self.cursor.ins().uextend(ty, value)
        }
    }

    /// Returns whether any lane, or every lane if `all`, has a bit that is set.
    fn truth(&mut self, arg: Value, all: bool) -> Result<Value, NoForm> {
        let ty = self.type_of(arg).lane_type().as_int();
        let bits = self.each(arg, |this, value| {
            this.truth_of(value).unwrap_or_else(|| {
                let value = this.as_type(ty, value);
                let zero = this.iconst(ty, 0);
                this.cursor.ins().icmp(IntCC::NotEqual, value, zero)
            })
        });
        let fold = |x: Value, y: Value| {
            if all {
                self.cursor.ins().band(x, y)
            } else {
                self.cursor.ins().bor(x, y)
            }
        };
        bits.into_iter().reduce(fold).ok_or(NoForm)
    }

    /// Collects the highest bit of each lane; the first lane becomes the lowest bit.
    fn high_bits(&mut self, ty: Type, arg: Value) -> Value {
        let from = self.type_of(arg).lane_type().as_int();
        let lanes = self.lanes(arg);
        let mut sum = self.iconst(ty, 0);
        for (lane, number) in lanes.into_iter().zip(0..i64::from(ty.bits())) {
            let bit = self.truth_of(lane).unwrap_or_else(|| self.is_negative(from, lane));
            let wide = match ty {
                types::I8 => bit,
                _ => self.cursor.ins().uextend(ty, bit),
            };
            let amount = self.iconst(types::I32, number);
            let placed = self.cursor.ins().ishl(wide, amount);
            sum = self.cursor.ins().bor(sum, placed);
        }
        sum
    }

    /// Returns whether the highest bit of a lane is set. `bits` is the integer type of the lane's
    /// size.
    fn is_negative(&mut self, bits: Type, lane: Value) -> Value {
        let lane = self.as_type(bits, lane);
        let zero = self.iconst(bits, 0);
        self.cursor.ins().icmp(IntCC::SignedLessThan, lane, zero)
    }

    /// Returns the least signed integer of the type.
    fn least(&mut self, ty: Type) -> Value {
        let one = self.iconst(ty, 1);
        let amount = self.iconst(types::I32, i64::from(ty.bits()) - 1);
        self.cursor.ins().ishl(one, amount)
    }

    pub(super) fn binary(&mut self, opcode: Opcode, ty: Type, [x, y]: [Value; 2]) -> Lanes {
        let lane = ty.lane_type();
        Ok(match opcode {
            Opcode::Iadd
            | Opcode::Isub
            | Opcode::Imul
            | Opcode::Umulhi
            | Opcode::Smulhi
            | Opcode::Band
            | Opcode::Bor
            | Opcode::Bxor
            | Opcode::Smin
            | Opcode::Umin
            | Opcode::Smax
            | Opcode::Umax
            | Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Fmin
            | Opcode::Fmax
            | Opcode::Fcopysign => self.pairs(x, y, |this, x, y| {
                let (inst, dfg) = this.cursor.ins().Binary(opcode, lane, x, y);
                dfg.first_result(inst)
            }),
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr => self.each(x, |this, value| {
                let (inst, dfg) = this.cursor.ins().Binary(opcode, lane, value, y);
                dfg.first_result(inst)
            }),
            Opcode::AvgRound => self.pairs(x, y, |this, x, y| {
                // x + y is twice the common bits plus the differing bits. This is half of it,
                // rounded up.
                let any = this.cursor.ins().bor(x, y);
                let other = this.cursor.ins().bxor(x, y);
                let one = this.iconst(types::I32, 1);
                let half = this.cursor.ins().ushr(other, one);
                this.cursor.ins().isub(any, half)
            }),
            Opcode::UaddSat => self.pairs(x, y, |this, x, y| {
                let (sum, over) = this.cursor.ins().uadd_overflow(x, y);
                let all = this.cursor.ins().bmask(lane, over);
                this.cursor.ins().bor(sum, all)
            }),
            Opcode::UsubSat => self.pairs(x, y, |this, x, y| {
                let (difference, under) = this.cursor.ins().usub_overflow(x, y);
                let zero = this.iconst(lane, 0);
                this.cursor.ins().select(under, zero, difference)
            }),
            Opcode::SaddSat => self.pairs(x, y, |this, x, y| {
                let sum = this.cursor.ins().iadd(x, y);
                // The sum overflows if its sign differs from the signs of both operands.
                let (a, b) = (this.cursor.ins().bxor(x, sum), this.cursor.ins().bxor(y, sum));
                let signs = this.cursor.ins().band(a, b);
                this.saturated(lane, sum, signs, x)
            }),
            Opcode::SsubSat => self.pairs(x, y, |this, x, y| {
                let difference = this.cursor.ins().isub(x, y);
                let (a, b) = (this.cursor.ins().bxor(x, y), this.cursor.ins().bxor(x, difference));
                let signs = this.cursor.ins().band(a, b);
                this.saturated(lane, difference, signs, x)
            }),
            Opcode::SqmulRoundSat | Opcode::X86Pmulhrsw => {
                let saturates = opcode == Opcode::SqmulRoundSat;
                let wide = lane.double_width().ok_or(NoForm)?;
                self.pairs(x, y, |this, x, y| this.rounded_product(lane, wide, [x, y], saturates))
            }
            Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow => {
                let mut all = self.lanes(x);
                all.extend(self.lanes(y));
                all.into_iter().map(|value| self.narrow(opcode, lane, value)).collect()
            }
            Opcode::IaddPairwise => {
                let mut all = self.lanes(x);
                all.extend(self.lanes(y));
                let add = |pair: &[Value]| match *pair {
                    [x, y] => Ok(self.cursor.ins().iadd(x, y)),
                    _ => Err(NoForm),
                };
                all.chunks(2).map(add).collect::<Lanes>()?
            }
            Opcode::X86Pmaddubsw => {
                let products = self.pairs(x, y, |this, x, y| {
                    let x = this.cursor.ins().uextend(types::I32, x);
                    let y = this.cursor.ins().sextend(types::I32, y);
                    this.cursor.ins().imul(x, y)
                });
                let add = |pair: &[Value]| match *pair {
                    [x, y] => {
                        let sum = self.cursor.ins().iadd(x, y);
                        Ok(self.narrow(Opcode::Snarrow, lane, sum))
                    }
                    _ => Err(NoForm),
                };
                products.chunks(2).map(add).collect::<Lanes>()?
            }
            _ => return Err(NoForm),
        })
    }

    /// Returns `result`, or a bound if the sign bit of `signs` is set: the least integer if `like`
    /// is negative, else the greatest.
    fn saturated(&mut self, ty: Type, result: Value, signs: Value, like: Value) -> Value {
        let zero = self.iconst(ty, 0);
        let over = self.cursor.ins().icmp(IntCC::SignedLessThan, signs, zero);
        let amount = self.iconst(types::I32, i64::from(ty.bits()) - 1);
        let sign = self.cursor.ins().sshr(like, amount);
        let least = self.least(ty);
        let greatest = self.cursor.ins().bnot(least);
        let bound = self.cursor.ins().bxor(sign, greatest);
        self.cursor.ins().select(over, bound, result)
    }

    /// Returns the rounded product of two fixed-point fractions.
    fn rounded_product(&mut self, ty: Type, wide: Type, [x, y]: [Value; 2], saturates: bool) -> Value {
        let (x, y) = (self.cursor.ins().sextend(wide, x), self.cursor.ins().sextend(wide, y));
        let product = self.cursor.ins().imul(x, y);
        let half = self.iconst(wide, 1 << (ty.bits() - 2));
        let sum = self.cursor.ins().iadd(product, half);
        let amount = self.iconst(types::I32, i64::from(ty.bits()) - 1);
        let mut upper = self.cursor.ins().sshr(sum, amount);
        if saturates {
            // Only the product of the two least integers is out of range.
            let most = self.iconst(wide, (1 << (ty.bits() - 1)) - 1);
            upper = self.cursor.ins().smin(upper, most);
        }
        self.cursor.ins().ireduce(ty, upper)
    }

    /// Saturates to a narrower type.
    fn narrow(&mut self, opcode: Opcode, ty: Type, value: Value) -> Value {
        let wide = self.type_of(value);
        let bits = ty.bits();
        let clamped = match opcode {
            Opcode::Uunarrow => {
                let most = self.iconst(wide, (1 << bits) - 1);
                self.cursor.ins().umin(value, most)
            }
            _ => {
                let (least, most) = match opcode {
                    Opcode::Snarrow => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                    _ => (0, (1i64 << bits) - 1),
                };
                let (least, most) = (self.iconst(wide, least), self.iconst(wide, most));
                let value = self.cursor.ins().smax(value, least);
                self.cursor.ins().smin(value, most)
            }
        };
        self.cursor.ins().ireduce(ty, clamped)
    }

    pub(super) fn ternary(&mut self, opcode: Opcode, ty: Type, [a, x, y]: [Value; 3]) -> Lanes {
        let lane = ty.lane_type();
        Ok(match opcode {
            Opcode::Bitselect => {
                let (a, x, y) = (self.lanes(a), self.lanes(x), self.lanes(y));
                let lanes = a.into_iter().zip(x).zip(y);
                lanes
                    .map(|((a, x), y)| match self.truth_of(a) {
                        Some(truth) => self.cursor.ins().select(truth, x, y),
                        None => self.cursor.ins().bitselect(a, x, y),
                    })
                    .collect()
            }
            Opcode::Fma => {
                let a = self.lanes(a);
                let pairs = self.pairs(x, y, |_, x, _| x).into_iter().zip(self.lanes(y));
                a.into_iter()
                    .zip(pairs)
                    .map(|(a, (x, y))| {
                        let (inst, dfg) = self.cursor.ins().Ternary(opcode, lane, a, x, y);
                        dfg.first_result(inst)
                    })
                    .collect()
            }
            // Each lane of the first operand is a mask of all ones or all zeros, or else its
            // highest bit decides.
            Opcode::Blendv => {
                let bits = lane.as_int();
                let chosen = self.each(a, |this, value| {
                    this.truth_of(value).unwrap_or_else(|| this.is_negative(bits, value))
                });
                let (x, y) = (self.lanes(x), self.lanes(y));
                let both = x.into_iter().zip(y);
                chosen
                    .into_iter()
                    .zip(both)
                    .map(|(chosen, (x, y))| self.cursor.ins().select(chosen, x, y))
                    .collect()
            }
            Opcode::Select | Opcode::SelectSpectreGuard => self.pairs(x, y, |this, x, y| {
                let (inst, dfg) = this.cursor.ins().Ternary(opcode, lane, a, x, y);
                dfg.first_result(inst)
            }),
            _ => return Err(NoForm),
        })
    }
}
