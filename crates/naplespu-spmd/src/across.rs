//! Operations across the lanes of a subgroup.

use crate::builtins::{Builtin, Extent, FloatOp, IntOp, Reduction};
use crate::divergence::{Form, definition};
use crate::emit::{ALL_LANES, Emitter, LANES, Parts};
use crate::error::Error;
use crate::versions::MAX_DEPTH;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Value, types};
use smallvec::smallvec;

/// Emits the value that does not change the result of an operation.
pub fn identity<'f>(ins: impl InstBuilder<'f>, reduction: Reduction) -> Value {
    let number = |number: i32| i64::from(number as u32);
    match reduction {
        Reduction::Float(FloatOp::Add) => ins.f32const(0.0),
        Reduction::Float(FloatOp::Mul) => ins.f32const(1.0),
        Reduction::Float(FloatOp::Min) => ins.f32const(f32::INFINITY),
        Reduction::Float(FloatOp::Max) => ins.f32const(f32::NEG_INFINITY),
        Reduction::Int(op) => {
            let value = match op {
                IntOp::Add | IntOp::Or | IntOp::Xor | IntOp::Umax => 0,
                IntOp::Mul => 1,
                IntOp::And | IntOp::Umin => number(-1),
                IntOp::Smin => number(i32::MAX),
                IntOp::Smax => number(i32::MIN),
            };
            ins.iconst(types::I32, value)
        }
    }
}

impl Emitter<'_> {
    /// Writes a call of a built-in function.
    pub fn across(&mut self, inst: Inst, builtin: Builtin) -> Result<(), Error> {
        let args = self.old.dfg.inst_args(inst).to_vec();
        let Some(&result) = self.old.dfg.inst_results(inst).first() else {
            return Err(self.unsupported(inst, "a barrier outside of a kernel"));
        };
        let active = self.active();
        let parts = match builtin {
            Builtin::LaneId => smallvec![self.builder.ins().iconst(types::I32, 0)],
            Builtin::Any => {
                let set = self.condition(args[0])?;
                let set = self.and_mask(Some(&active), &set);
                smallvec![self.has_bits(&set, IntCC::NotEqual)]
            }
            Builtin::All => {
                let set = self.condition(args[0])?;
                let unset = self.and_not_mask(Some(&active), &set);
                smallvec![self.has_bits(&unset, IntCC::Equal)]
            }
            Builtin::AllKnown => smallvec![match self.all_known(args[0], MAX_DEPTH)? {
                Some(all) => all,
                None => {
                    let set = self.condition(args[0])?;
                    let unset = self.and_not_mask(Some(&active), &set);
                    self.has_bits(&unset, IntCC::Equal)
                }
            }],
            Builtin::Ballot => {
                let set = self.condition(args[0])?;
                let set = self.and_mask(Some(&active), &set);
                let mut ballot = set[0];
                if let Some(&high) = set.get(1) {
                    let shift = self.builder.ins().iconst(types::I32, i64::from(LANES));
                    let high = self.builder.ins().ishl(high, shift);
                    ballot = self.builder.ins().bor(ballot, high);
                }
                smallvec![ballot]
            }
            Builtin::Elect => self.elect(&active),
            Builtin::BroadcastFirst(_) => smallvec![self.broadcast_first(&active, args[0])?],
            Builtin::Shuffle(_) => self.shuffle(args[0], args[1])?,
            Builtin::Reduce(reduction, extent) => self.reduce(&active, args[0], reduction, extent)?,
            _ => return Err(self.unsupported(inst, "a built-in function of work-groups outside of a kernel")),
        };
        let parts = match (self.divergence.form(result), parts.len()) {
            (Form::Uniform | Form::Linear(_), _) => parts,
            (_, 1) if self.parts > 1 => smallvec![parts[0]; self.parts],
            _ => parts,
        };
        self.define(result, parts)
    }

    fn has_bits(&mut self, mask: &Parts, condition: IntCC) -> Value {
        let any = self.any(mask);
        let zero = self.builder.ins().iconst(types::I32, 0);
        self.builder.ins().icmp(condition, any, zero)
    }

    /// Returns a scalar that is not zero only if a compare of a linear and a uniform number holds in
    /// all lanes, or `None` for other conditions.
    fn all_known(&mut self, value: Value, depth: u32) -> Result<Option<Value>, Error> {
        if self.form(value) == Form::Uniform {
            return self.scalar(value).map(Some);
        }
        let Some(inst) = definition(self.old, value) else {
            return Ok(None);
        };
        let (cond, args) = match self.old.dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } => (cond, args),
            InstructionData::Binary {
                opcode: Opcode::Band,
                args: [x, y],
            } if depth > 0 => {
                let (Some(x), Some(y)) = (self.all_known(x, depth - 1)?, self.all_known(y, depth - 1)?) else {
                    return Ok(None);
                };
                return Ok(Some(self.builder.ins().band(x, y)));
            }
            _ => return Ok(None),
        };
        let (cond, linear, stride, bound) = match args.map(|arg| self.form(arg)) {
            [Form::Linear(stride), Form::Uniform] => (cond, args[0], stride, args[1]),
            [Form::Uniform, Form::Linear(stride)] => (cond.swap_args(), args[1], stride, args[0]),
            _ => return Ok(None),
        };
        let first = self.scalar(linear)?;
        let bound = self.scalar(bound)?;
        let Some(span) = stride.checked_mul(self.lanes as i32 - 1) else {
            return Ok(None);
        };
        if cond == IntCC::UnsignedLessThan && stride > 0 {
            // A single compare of the index, with a bound that a loop does not compute again: the
            // last lane is below the bound if the first is below the bound minus `span`, or zero.
            let span = self.builder.ins().iconst(types::I32, i64::from(span));
            let greater = self.builder.ins().umax(bound, span);
            let bound = self.builder.ins().isub(greater, span);
            return Ok(Some(self.builder.ins().icmp(cond, first, bound)));
        }
        let last = self.builder.ins().iadd_imm_s(first, i64::from(span));
        let (low, high) = if stride >= 0 { (first, last) } else { (last, first) };
        // Without a wrap, the lowest and the highest lane decide.
        use IntCC::*;
        let (order, decides) = match cond {
            UnsignedLessThan | UnsignedLessThanOrEqual => (UnsignedLessThanOrEqual, high),
            UnsignedGreaterThan | UnsignedGreaterThanOrEqual => (UnsignedLessThanOrEqual, low),
            SignedLessThan | SignedLessThanOrEqual => (SignedLessThanOrEqual, high),
            SignedGreaterThan | SignedGreaterThanOrEqual => (SignedLessThanOrEqual, low),
            Equal | NotEqual => return Ok(None),
        };
        let ordered = self.builder.ins().icmp(order, low, high);
        let holds = self.builder.ins().icmp(cond, decides, bound);
        Ok(Some(self.builder.ins().band(ordered, holds)))
    }

    fn elect(&mut self, active: &Parts) -> Parts {
        let zero = self.builder.ins().iconst(types::I32, 0);
        let mut before = zero;
        let mut elected = Parts::new();
        for &mask in active {
            let negative = self.builder.ins().ineg(mask);
            let lowest = self.builder.ins().band(mask, negative);
            let lowest = self.builder.ins().select(before, zero, lowest);
            elected.push(lowest);
            before = self.builder.ins().bor(before, mask);
        }
        elected
    }

    fn broadcast_first(&mut self, active: &Parts, value: Value) -> Result<Value, Error> {
        if self.form(value) == Form::Uniform {
            return self.scalar(value);
        }
        let vectors = self.vectors(value)?;
        let ty = self.old.dfg.value_type(value);
        let slot = self.lanes_slot(0, types::I32X16);
        self.store_lanes(slot, &vectors);
        // From the last part to the first, so that the first one with an active lane is left.
        let mut offset = self.builder.ins().iconst(types::I32, 0);
        for part in (0..self.parts).rev() {
            let lane = self.builder.ins().ctz(active[part]);
            let lane = self.builder.ins().iadd_imm_s(lane, i64::from(part as u32 * LANES));
            offset = self.builder.ins().select(active[part], lane, offset);
        }
        let shift = self.builder.ins().iconst(types::I32, 2);
        let offset = self.builder.ins().ishl(offset, shift);
        let base = self.builder.ins().stack_addr(types::I32, slot, 0);
        let address = self.builder.ins().iadd(base, offset);
        Ok(self.builder.ins().load(ty, MemFlagsData::trusted(), address, 0))
    }

    fn shuffle(&mut self, value: Value, index: Value) -> Result<Parts, Error> {
        let ty = self.lanes_of(value)?;
        let (values, index) = (self.vectors(value)?, self.vectors(index)?);
        let words: Parts = values.iter().map(|&lanes| self.cast(lanes, types::I32X16)).collect();
        let last = self.splat_constant(i64::from(LANES - 1));
        let shift = self.builder.ins().iconst(types::I32, i64::from(LANES.trailing_zeros()));
        let mut parts = Parts::new();
        for index in index {
            let lane = self.builder.ins().band(index, last);
            let mut shuffled = self.intrinsic("shufflei32", &[words[0], lane])?;
            let of_part = self.builder.ins().ushr(index, shift);
            for (part, &source) in words.iter().enumerate().skip(1) {
                let number = self.splat_constant(part as i64);
                let here = self.builder.ins().icmp(IntCC::Equal, of_part, number);
                let here = self.builder.ins().vhigh_bits(types::I32, here);
                let other = self.intrinsic("shufflei32", &[source, lane])?;
                self.set_mask(here)?;
                shuffled = self.intrinsic("vector_mixi32", &[other, shuffled])?;
            }
            parts.push(self.cast(shuffled, ty));
        }
        Ok(parts)
    }

    fn reduce(&mut self, active: &Parts, value: Value, reduction: Reduction, extent: Extent) -> Result<Parts, Error> {
        let ty = self.lanes_of(value)?;
        let neutral = identity(self.builder.ins(), reduction);
        let neutral = self.builder.ins().splat(ty, neutral);
        let values = self.vectors(value)?;
        let values = self.mix(active, &values, &smallvec![neutral; self.parts])?;
        if extent == Extent::Reduce {
            let mut all = values[0];
            for &part in &values[1..] {
                all = self.combine(reduction, all, part);
            }
            for distance in [8, 4, 2, 1] {
                let other = self.permuted(all, |lane| lane ^ distance)?;
                all = self.combine(reduction, all, other);
            }
            return Ok(smallvec![self.builder.ins().extractlane(all, 0)]);
        }
        let mut carry = neutral;
        let mut parts = Parts::new();
        for part in values {
            let mut sums = part;
            for distance in [1, 2, 4, 8] {
                let other = self.permuted(sums, |lane| (lane - distance) & (LANES as i32 - 1))?;
                let reached = ALL_LANES << distance & ALL_LANES;
                let other = self.mix_constant(reached, other, neutral)?;
                sums = self.combine(reduction, other, sums);
            }
            let total = self.permuted(sums, |_| LANES as i32 - 1)?;
            if extent == Extent::Exclusive {
                let before = self.permuted(sums, |lane| (lane - 1) & (LANES as i32 - 1))?;
                sums = self.mix_constant(ALL_LANES & !1, before, neutral)?;
            }
            parts.push(self.combine(reduction, carry, sums));
            carry = self.combine(reduction, carry, total);
        }
        Ok(parts)
    }

    fn mix_constant(&mut self, mask: i64, x: Value, y: Value) -> Result<Value, Error> {
        let mask = self.builder.ins().iconst(types::I32, mask);
        self.set_mask(mask)?;
        let name = if self.builder.func.dfg.value_type(x) == types::F32X16 {
            "vector_mixf32"
        } else {
            "vector_mixi32"
        };
        self.intrinsic(name, &[x, y])
    }

    /// Returns a vector whose lane `n` is the lane `from(n)` of `lanes`.
    fn permuted(&mut self, lanes: Value, from: impl Fn(i32) -> i32) -> Result<Value, Error> {
        let ty = self.builder.func.dfg.value_type(lanes);
        let index = self.words_constant((0..LANES as i32).map(from));
        let words = self.cast(lanes, types::I32X16);
        let words = self.intrinsic("shufflei32", &[words, index])?;
        Ok(self.cast(words, ty))
    }

    fn combine(&mut self, reduction: Reduction, x: Value, y: Value) -> Value {
        let ins = self.builder.ins();
        match reduction {
            Reduction::Int(IntOp::Add) => ins.iadd(x, y),
            Reduction::Int(IntOp::Mul) => ins.imul(x, y),
            Reduction::Int(IntOp::And) => ins.band(x, y),
            Reduction::Int(IntOp::Or) => ins.bor(x, y),
            Reduction::Int(IntOp::Xor) => ins.bxor(x, y),
            Reduction::Int(IntOp::Smin) => ins.smin(x, y),
            Reduction::Int(IntOp::Smax) => ins.smax(x, y),
            Reduction::Int(IntOp::Umin) => ins.umin(x, y),
            Reduction::Int(IntOp::Umax) => ins.umax(x, y),
            Reduction::Float(FloatOp::Add) => ins.fadd(x, y),
            Reduction::Float(FloatOp::Mul) => ins.fmul(x, y),
            Reduction::Float(FloatOp::Min) => ins.fmin(x, y),
            Reduction::Float(FloatOp::Max) => ins.fmax(x, y),
        }
    }
}
