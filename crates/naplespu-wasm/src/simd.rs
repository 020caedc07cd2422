//! Translates 128-bit vector instructions, including relaxed ones.
//!
//! WebAssembly has one 128-bit type; CLIF has one for each lane shape. A value on the stack has the
//! shape of the instruction that made it, and is cast when an instruction needs another shape.
//! Values that leave the stack, to locals, blocks or calls, are [`WHOLE`]. Lanes are in the order
//! of their bytes in memory, so casts are little-endian.
//!
//! Relaxed instructions behave like the strict ones where that is cheap. Fused multiply-adds round
//! twice, and relaxed minimum and maximum are `pmin` and `pmax`.

use crate::body::Body;
use crate::emit::Emitter;
use crate::error::Result;
use crate::memory::Access;
use crate::types::WHOLE;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, ValueDef, types,
};
use cranelift_frontend::FuncInstBuilder;
use types::{F32X4, F64X2, I8X16, I16X8, I32, I32X4, I64X2};
use wasmparser::{MemArg, Operator};

impl Emitter<'_, '_, '_, '_> {
    pub fn vector(&mut self, ty: Type, bytes: u128) -> Value {
        let constants = &mut self.builder.func.dfg.constants;
        let constant = constants.insert(ConstantData::from(bytes.to_le_bytes().to_vec()));
        self.builder.ins().vconst(ty, constant)
    }

    /// Casts a vector to this shape, keeping its bits.
    pub fn cast(&mut self, value: Value, ty: Type) -> Value {
        let dfg = &self.builder.func.dfg;
        if dfg.value_type(value) == ty {
            return value;
        }
        if let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value)) {
            match dfg.insts[inst] {
                InstructionData::UnaryConst {
                    opcode: Opcode::Vconst,
                    constant_handle,
                } => return self.builder.ins().vconst(ty, constant_handle),
                InstructionData::LoadNoOffset {
                    opcode: Opcode::Bitcast,
                    arg,
                    ..
                } if dfg.value_type(arg) == ty => return arg,
                _ => {}
            }
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// Returns a value in its type outside the value stack.
    pub fn settled(&mut self, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value).is_vector() {
            self.cast(value, WHOLE)
        } else {
            value
        }
    }
}

/// Returns the integer type with the same lanes as a float type.
fn of_bits(ty: Type) -> Type {
    match ty {
        F32X4 => I32X4,
        F64X2 => I64X2,
        other => other,
    }
}

/// The builder of the instruction that computes a value from one or two operands.
type Ins<'f, 'b> = FuncInstBuilder<'f, 'b>;

impl Body<'_, '_, '_, '_, '_> {
    fn lanes(&mut self, ty: Type) -> Result<Value> {
        let value = self.pop()?;
        Ok(self.emitter.cast(value, ty))
    }

    fn lanes1(&mut self, ty: Type, make: impl FnOnce(Ins<'_, '_>, Value) -> Value) -> Result<()> {
        let a = self.lanes(ty)?;
        let value = make(self.emitter.builder.ins(), a);
        self.push(value);
        Ok(())
    }

    fn lanes2(&mut self, ty: Type, make: impl FnOnce(Ins<'_, '_>, Value, Value) -> Value) -> Result<()> {
        let (b, a) = (self.lanes(ty)?, self.lanes(ty)?);
        let value = make(self.emitter.builder.ins(), a, b);
        self.push(value);
        Ok(())
    }

    /// Pops values, all cast to the shape of the topmost one, as integers.
    fn alike<const N: usize>(&mut self) -> Result<[Value; N]> {
        let last = self.pop()?;
        let ty = of_bits(self.emitter.builder.func.dfg.value_type(last));
        let mut values = [last; N];
        for (at, value) in values.iter_mut().enumerate().rev() {
            let taken = if at + 1 == N { last } else { self.pop()? };
            *value = self.emitter.cast(taken, ty);
        }
        Ok(values)
    }

    fn compare_lanes(&mut self, ty: Type, cc: IntCC) -> Result<()> {
        self.lanes2(ty, |ins, a, b| ins.icmp(cc, a, b))
    }

    fn compare_floats(&mut self, ty: Type, cc: FloatCC) -> Result<()> {
        self.lanes2(ty, |ins, a, b| ins.fcmp(cc, a, b))
    }

    /// Shifts the lanes of a vector; the shift amount is taken modulo the bits of a lane.
    fn shift(&mut self, ty: Type, make: impl FnOnce(Ins<'_, '_>, Value, Value) -> Value) -> Result<()> {
        let bits = self.pop()?;
        let a = self.lanes(ty)?;
        let value = make(self.emitter.builder.ins(), a, bits);
        self.push(value);
        Ok(())
    }

    /// Widens the lower or upper lanes to twice their width.
    fn widen(&mut self, a: Value, high: bool, signed: bool) -> Value {
        let ins = self.emitter.builder.ins();
        match (high, signed) {
            (false, false) => ins.uwiden_low(a),
            (false, true) => ins.swiden_low(a),
            (true, false) => ins.uwiden_high(a),
            (true, true) => ins.swiden_high(a),
        }
    }

    fn extend(&mut self, from: Type, high: bool, signed: bool) -> Result<()> {
        let a = self.lanes(from)?;
        let value = self.widen(a, high, signed);
        self.push(value);
        Ok(())
    }

    fn multiply_wide(&mut self, from: Type, high: bool, signed: bool) -> Result<()> {
        let (b, a) = (self.lanes(from)?, self.lanes(from)?);
        let (a, b) = (self.widen(a, high, signed), self.widen(b, high, signed));
        let value = self.emitter.builder.ins().imul(a, b);
        self.push(value);
        Ok(())
    }

    fn add_pairs(&mut self, from: Type, signed: bool) -> Result<()> {
        let a = self.lanes(from)?;
        let value = self.sum_of_pairs(a, signed);
        self.push(value);
        Ok(())
    }

    /// Adds adjacent lanes, widened to twice their width.
    fn sum_of_pairs(&mut self, a: Value, signed: bool) -> Value {
        let (low, high) = (self.widen(a, false, signed), self.widen(a, true, signed));
        self.emitter.builder.ins().iadd_pairwise(low, high)
    }

    /// Adds the products of adjacent signed lanes, widened to twice their width.
    fn dot(&mut self, from: Type) -> Result<Value> {
        let (b, a) = (self.lanes(from)?, self.lanes(from)?);
        let [low, high] = [false, true].map(|half| {
            let (a, b) = (self.widen(a, half, true), self.widen(b, half, true));
            self.emitter.builder.ins().imul(a, b)
        });
        Ok(self.emitter.builder.ins().iadd_pairwise(low, high))
    }

    /// Selects one of two operands by a compare; the first one if they are unordered: `pmin`,
    /// `pmax`.
    fn pick(&mut self, ty: Type, cc: FloatCC) -> Result<()> {
        let (b, a) = (self.lanes(ty)?, self.lanes(ty)?);
        let mask = self.emitter.builder.ins().fcmp(cc, b, a);
        let bits = of_bits(ty);
        let (a, b) = (self.emitter.cast(a, bits), self.emitter.cast(b, bits));
        let value = self.emitter.builder.ins().bitselect(mask, b, a);
        self.push(value);
        Ok(())
    }

    /// Adds a third operand to the product of two, rounding both results. With `negated`, the
    /// product is negated.
    fn multiply_add(&mut self, ty: Type, negated: bool) -> Result<()> {
        let [c, b, a] = [self.lanes(ty)?, self.lanes(ty)?, self.lanes(ty)?];
        let product = self.emitter.builder.ins().fmul(a, b);
        let ins = self.emitter.builder.ins();
        let value = if negated {
            ins.fsub(c, product)
        } else {
            ins.fadd(product, c)
        };
        self.push(value);
        Ok(())
    }

    fn splat(&mut self, ty: Type) -> Result<()> {
        let mut value = self.pop()?;
        let lane = ty.lane_type();
        if lane.is_int() && lane.bits() < 32 {
            value = self.emitter.builder.ins().ireduce(lane, value);
        }
        let value = self.emitter.builder.ins().splat(ty, value);
        self.push(value);
        Ok(())
    }

    fn extract(&mut self, ty: Type, lane: u8) -> Result<()> {
        self.lanes1(ty, |ins, a| ins.extractlane(a, lane))
    }

    fn extract_narrow(&mut self, ty: Type, lane: u8, signed: bool) -> Result<()> {
        self.extract(ty, lane)?;
        let value = self.pop()?;
        let ins = self.emitter.builder.ins();
        let value = if signed {
            ins.sextend(I32, value)
        } else {
            ins.uextend(I32, value)
        };
        self.push(value);
        Ok(())
    }

    fn replace(&mut self, ty: Type, lane: u8) -> Result<()> {
        let mut value = self.pop()?;
        let a = self.lanes(ty)?;
        let narrow = ty.lane_type();
        if narrow.is_int() && narrow.bits() < 32 {
            value = self.emitter.builder.ins().ireduce(narrow, value);
        }
        let value = self.emitter.builder.ins().insertlane(a, value, lane);
        self.push(value);
        Ok(())
    }

    fn all_true(&mut self, ty: Type) -> Result<()> {
        let a = self.lanes(ty)?;
        let condition = self.emitter.builder.ins().vall_true(a);
        self.push_condition(condition);
        Ok(())
    }

    fn bitmask(&mut self, ty: Type) -> Result<()> {
        self.lanes1(ty, |ins, a| ins.vhigh_bits(I32, a))
    }

    /// Converts two `f64` lanes to 32-bit integers, followed by two zero lanes.
    fn truncate_doubles(&mut self, signed: bool) -> Result<()> {
        let a = self.lanes(F64X2)?;
        let zero = self.emitter.vector(I64X2, 0);
        let ins = self.emitter.builder.ins();
        let wide = if signed {
            ins.fcvt_to_sint_sat(I64X2, a)
        } else {
            ins.fcvt_to_uint_sat(I64X2, a)
        };
        let ins = self.emitter.builder.ins();
        let value = if signed {
            ins.snarrow(wide, zero)
        } else {
            ins.uunarrow(wide, zero)
        };
        self.push(value);
        Ok(())
    }

    /// Loads a scalar.
    fn load_scalar(&mut self, arg: &MemArg, ty: Type) -> Result<Value> {
        let index = self.pop()?;
        let access = Access {
            opcode: Opcode::Load,
            ty,
            bytes: ty.bytes(),
        };
        self.emitter.load(access, arg, index)
    }

    fn load_splat(&mut self, arg: &MemArg, ty: Type) -> Result<()> {
        let value = self.load_scalar(arg, ty.lane_type())?;
        let value = self.emitter.builder.ins().splat(ty, value);
        self.push(value);
        Ok(())
    }

    fn load_zero(&mut self, arg: &MemArg, ty: Type) -> Result<()> {
        let value = self.load_scalar(arg, ty.lane_type())?;
        let value = self.emitter.builder.ins().scalar_to_vector(ty, value);
        self.push(value);
        Ok(())
    }

    fn load_lane(&mut self, arg: &MemArg, ty: Type, lane: u8) -> Result<()> {
        let a = self.lanes(ty)?;
        let value = self.load_scalar(arg, ty.lane_type())?;
        let value = self.emitter.builder.ins().insertlane(a, value, lane);
        self.push(value);
        Ok(())
    }

    fn store_lane(&mut self, arg: &MemArg, ty: Type, lane: u8) -> Result<()> {
        let a = self.lanes(ty)?;
        let index = self.pop()?;
        let value = self.emitter.builder.ins().extractlane(a, lane);
        let ty = ty.lane_type();
        let access = Access {
            opcode: Opcode::Store,
            ty,
            bytes: ty.bytes(),
        };
        self.emitter.store(access, arg, index, value)
    }

    /// Loads eight bytes and widens the lanes to twice their width.
    fn load_extended(&mut self, arg: &MemArg, opcode: Opcode, ty: Type) -> Result<()> {
        let index = self.pop()?;
        let value = self.emitter.load(Access { opcode, ty, bytes: 8 }, arg, index)?;
        self.push(value);
        Ok(())
    }

    /// Translates a vector instruction; this is the last translator.
    pub fn simd(&mut self, op: &Operator<'_>) -> Result<()> {
        let whole = |opcode| Access {
            opcode,
            ty: WHOLE,
            bytes: 16,
        };
        match op {
            Operator::V128Load { memarg } => {
                let index = self.pop()?;
                let value = self.emitter.load(whole(Opcode::Load), memarg, index)?;
                self.push(value);
                Ok(())
            }
            Operator::V128Store { memarg } => {
                let (value, index) = (self.lanes(WHOLE)?, self.pop()?);
                self.emitter.store(whole(Opcode::Store), memarg, index, value)
            }
            Operator::V128Load8x8S { memarg } => self.load_extended(memarg, Opcode::Sload8x8, I16X8),
            Operator::V128Load8x8U { memarg } => self.load_extended(memarg, Opcode::Uload8x8, I16X8),
            Operator::V128Load16x4S { memarg } => self.load_extended(memarg, Opcode::Sload16x4, I32X4),
            Operator::V128Load16x4U { memarg } => self.load_extended(memarg, Opcode::Uload16x4, I32X4),
            Operator::V128Load32x2S { memarg } => self.load_extended(memarg, Opcode::Sload32x2, I64X2),
            Operator::V128Load32x2U { memarg } => self.load_extended(memarg, Opcode::Uload32x2, I64X2),
            Operator::V128Load8Splat { memarg } => self.load_splat(memarg, I8X16),
            Operator::V128Load16Splat { memarg } => self.load_splat(memarg, I16X8),
            Operator::V128Load32Splat { memarg } => self.load_splat(memarg, I32X4),
            Operator::V128Load64Splat { memarg } => self.load_splat(memarg, I64X2),
            Operator::V128Load32Zero { memarg } => self.load_zero(memarg, I32X4),
            Operator::V128Load64Zero { memarg } => self.load_zero(memarg, I64X2),
            Operator::V128Load8Lane { memarg, lane } => self.load_lane(memarg, I8X16, *lane),
            Operator::V128Load16Lane { memarg, lane } => self.load_lane(memarg, I16X8, *lane),
            Operator::V128Load32Lane { memarg, lane } => self.load_lane(memarg, I32X4, *lane),
            Operator::V128Load64Lane { memarg, lane } => self.load_lane(memarg, I64X2, *lane),
            Operator::V128Store8Lane { memarg, lane } => self.store_lane(memarg, I8X16, *lane),
            Operator::V128Store16Lane { memarg, lane } => self.store_lane(memarg, I16X8, *lane),
            Operator::V128Store32Lane { memarg, lane } => self.store_lane(memarg, I32X4, *lane),
            Operator::V128Store64Lane { memarg, lane } => self.store_lane(memarg, I64X2, *lane),
            _ => self.simd_lanes(op),
        }
    }

    fn simd_lanes(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::V128Const { value } => {
                let value = self.emitter.vector(WHOLE, value.i128() as u128);
                self.push(value);
                Ok(())
            }
            Operator::I8x16Shuffle { lanes } => {
                let (b, a) = (self.lanes(I8X16)?, self.lanes(I8X16)?);
                let dfg = &mut self.emitter.builder.func.dfg;
                let mask = dfg.immediates.push(ConstantData::from(&lanes[..]));
                let value = self.emitter.builder.ins().shuffle(a, b, mask);
                self.push(value);
                Ok(())
            }
            Operator::I8x16Swizzle | Operator::I8x16RelaxedSwizzle => self.lanes2(I8X16, |ins, a, b| ins.swizzle(a, b)),
            Operator::I8x16ExtractLaneS { lane } => self.extract_narrow(I8X16, *lane, true),
            Operator::I8x16ExtractLaneU { lane } => self.extract_narrow(I8X16, *lane, false),
            Operator::I16x8ExtractLaneS { lane } => self.extract_narrow(I16X8, *lane, true),
            Operator::I16x8ExtractLaneU { lane } => self.extract_narrow(I16X8, *lane, false),
            Operator::I32x4ExtractLane { lane } => self.extract(I32X4, *lane),
            Operator::I64x2ExtractLane { lane } => self.extract(I64X2, *lane),
            Operator::F32x4ExtractLane { lane } => self.extract(F32X4, *lane),
            Operator::F64x2ExtractLane { lane } => self.extract(F64X2, *lane),
            Operator::I8x16ReplaceLane { lane } => self.replace(I8X16, *lane),
            Operator::I16x8ReplaceLane { lane } => self.replace(I16X8, *lane),
            Operator::I32x4ReplaceLane { lane } => self.replace(I32X4, *lane),
            Operator::I64x2ReplaceLane { lane } => self.replace(I64X2, *lane),
            Operator::F32x4ReplaceLane { lane } => self.replace(F32X4, *lane),
            Operator::F64x2ReplaceLane { lane } => self.replace(F64X2, *lane),
            Operator::I8x16Splat => self.splat(I8X16),
            Operator::I16x8Splat => self.splat(I16X8),
            Operator::I32x4Splat => self.splat(I32X4),
            Operator::I64x2Splat => self.splat(I64X2),
            Operator::F32x4Splat => self.splat(F32X4),
            Operator::F64x2Splat => self.splat(F64X2),
            _ => self.simd_bits(op),
        }
    }

    fn simd_bits(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::V128Not => {
                let [a] = self.alike()?;
                let value = self.emitter.builder.ins().bnot(a);
                self.push(value);
            }
            Operator::V128And | Operator::V128AndNot | Operator::V128Or | Operator::V128Xor => {
                let [a, mut b] = self.alike()?;
                if matches!(op, Operator::V128AndNot) {
                    b = self.emitter.builder.ins().bnot(b);
                }
                let ins = self.emitter.builder.ins();
                let value = match op {
                    Operator::V128Or => ins.bor(a, b),
                    Operator::V128Xor => ins.bxor(a, b),
                    _ => ins.band(a, b),
                };
                self.push(value);
            }
            Operator::V128Bitselect
            | Operator::I8x16RelaxedLaneselect
            | Operator::I16x8RelaxedLaneselect
            | Operator::I32x4RelaxedLaneselect
            | Operator::I64x2RelaxedLaneselect => {
                let [a, b, mask] = self.alike()?;
                let value = self.emitter.builder.ins().bitselect(mask, a, b);
                self.push(value);
            }
            Operator::V128AnyTrue => {
                let [a] = self.alike()?;
                let condition = self.emitter.builder.ins().vany_true(a);
                self.push_condition(condition);
            }
            Operator::I8x16AllTrue => self.all_true(I8X16)?,
            Operator::I16x8AllTrue => self.all_true(I16X8)?,
            Operator::I32x4AllTrue => self.all_true(I32X4)?,
            Operator::I64x2AllTrue => self.all_true(I64X2)?,
            Operator::I8x16Bitmask => self.bitmask(I8X16)?,
            Operator::I16x8Bitmask => self.bitmask(I16X8)?,
            Operator::I32x4Bitmask => self.bitmask(I32X4)?,
            Operator::I64x2Bitmask => self.bitmask(I64X2)?,
            _ => return self.simd_compare(op),
        }
        Ok(())
    }

    fn simd_compare(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I8x16Eq => self.compare_lanes(I8X16, IntCC::Equal),
            Operator::I8x16Ne => self.compare_lanes(I8X16, IntCC::NotEqual),
            Operator::I8x16LtS => self.compare_lanes(I8X16, IntCC::SignedLessThan),
            Operator::I8x16LtU => self.compare_lanes(I8X16, IntCC::UnsignedLessThan),
            Operator::I8x16GtS => self.compare_lanes(I8X16, IntCC::SignedGreaterThan),
            Operator::I8x16GtU => self.compare_lanes(I8X16, IntCC::UnsignedGreaterThan),
            Operator::I8x16LeS => self.compare_lanes(I8X16, IntCC::SignedLessThanOrEqual),
            Operator::I8x16LeU => self.compare_lanes(I8X16, IntCC::UnsignedLessThanOrEqual),
            Operator::I8x16GeS => self.compare_lanes(I8X16, IntCC::SignedGreaterThanOrEqual),
            Operator::I8x16GeU => self.compare_lanes(I8X16, IntCC::UnsignedGreaterThanOrEqual),
            Operator::I16x8Eq => self.compare_lanes(I16X8, IntCC::Equal),
            Operator::I16x8Ne => self.compare_lanes(I16X8, IntCC::NotEqual),
            Operator::I16x8LtS => self.compare_lanes(I16X8, IntCC::SignedLessThan),
            Operator::I16x8LtU => self.compare_lanes(I16X8, IntCC::UnsignedLessThan),
            Operator::I16x8GtS => self.compare_lanes(I16X8, IntCC::SignedGreaterThan),
            Operator::I16x8GtU => self.compare_lanes(I16X8, IntCC::UnsignedGreaterThan),
            Operator::I16x8LeS => self.compare_lanes(I16X8, IntCC::SignedLessThanOrEqual),
            Operator::I16x8LeU => self.compare_lanes(I16X8, IntCC::UnsignedLessThanOrEqual),
            Operator::I16x8GeS => self.compare_lanes(I16X8, IntCC::SignedGreaterThanOrEqual),
            Operator::I16x8GeU => self.compare_lanes(I16X8, IntCC::UnsignedGreaterThanOrEqual),
            Operator::I32x4Eq => self.compare_lanes(I32X4, IntCC::Equal),
            Operator::I32x4Ne => self.compare_lanes(I32X4, IntCC::NotEqual),
            Operator::I32x4LtS => self.compare_lanes(I32X4, IntCC::SignedLessThan),
            Operator::I32x4LtU => self.compare_lanes(I32X4, IntCC::UnsignedLessThan),
            Operator::I32x4GtS => self.compare_lanes(I32X4, IntCC::SignedGreaterThan),
            Operator::I32x4GtU => self.compare_lanes(I32X4, IntCC::UnsignedGreaterThan),
            Operator::I32x4LeS => self.compare_lanes(I32X4, IntCC::SignedLessThanOrEqual),
            Operator::I32x4LeU => self.compare_lanes(I32X4, IntCC::UnsignedLessThanOrEqual),
            Operator::I32x4GeS => self.compare_lanes(I32X4, IntCC::SignedGreaterThanOrEqual),
            Operator::I32x4GeU => self.compare_lanes(I32X4, IntCC::UnsignedGreaterThanOrEqual),
            Operator::I64x2Eq => self.compare_lanes(I64X2, IntCC::Equal),
            Operator::I64x2Ne => self.compare_lanes(I64X2, IntCC::NotEqual),
            Operator::I64x2LtS => self.compare_lanes(I64X2, IntCC::SignedLessThan),
            Operator::I64x2GtS => self.compare_lanes(I64X2, IntCC::SignedGreaterThan),
            Operator::I64x2LeS => self.compare_lanes(I64X2, IntCC::SignedLessThanOrEqual),
            Operator::I64x2GeS => self.compare_lanes(I64X2, IntCC::SignedGreaterThanOrEqual),
            Operator::F32x4Eq => self.compare_floats(F32X4, FloatCC::Equal),
            Operator::F32x4Ne => self.compare_floats(F32X4, FloatCC::NotEqual),
            Operator::F32x4Lt => self.compare_floats(F32X4, FloatCC::LessThan),
            Operator::F32x4Gt => self.compare_floats(F32X4, FloatCC::GreaterThan),
            Operator::F32x4Le => self.compare_floats(F32X4, FloatCC::LessThanOrEqual),
            Operator::F32x4Ge => self.compare_floats(F32X4, FloatCC::GreaterThanOrEqual),
            Operator::F64x2Eq => self.compare_floats(F64X2, FloatCC::Equal),
            Operator::F64x2Ne => self.compare_floats(F64X2, FloatCC::NotEqual),
            Operator::F64x2Lt => self.compare_floats(F64X2, FloatCC::LessThan),
            Operator::F64x2Gt => self.compare_floats(F64X2, FloatCC::GreaterThan),
            Operator::F64x2Le => self.compare_floats(F64X2, FloatCC::LessThanOrEqual),
            Operator::F64x2Ge => self.compare_floats(F64X2, FloatCC::GreaterThanOrEqual),
            _ => self.simd_arithmetic(op),
        }
    }

    fn simd_arithmetic(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I8x16Abs => self.lanes1(I8X16, |ins, a| ins.iabs(a)),
            Operator::I8x16Neg => self.lanes1(I8X16, |ins, a| ins.ineg(a)),
            Operator::I8x16Add => self.lanes2(I8X16, |ins, a, b| ins.iadd(a, b)),
            Operator::I8x16Sub => self.lanes2(I8X16, |ins, a, b| ins.isub(a, b)),
            Operator::I8x16Popcnt => self.lanes1(I8X16, |ins, a| ins.popcnt(a)),
            Operator::I8x16MinS => self.lanes2(I8X16, |ins, a, b| ins.smin(a, b)),
            Operator::I8x16MinU => self.lanes2(I8X16, |ins, a, b| ins.umin(a, b)),
            Operator::I8x16MaxS => self.lanes2(I8X16, |ins, a, b| ins.smax(a, b)),
            Operator::I8x16MaxU => self.lanes2(I8X16, |ins, a, b| ins.umax(a, b)),
            Operator::I8x16AddSatS => self.lanes2(I8X16, |ins, a, b| ins.sadd_sat(a, b)),
            Operator::I8x16AddSatU => self.lanes2(I8X16, |ins, a, b| ins.uadd_sat(a, b)),
            Operator::I8x16SubSatS => self.lanes2(I8X16, |ins, a, b| ins.ssub_sat(a, b)),
            Operator::I8x16SubSatU => self.lanes2(I8X16, |ins, a, b| ins.usub_sat(a, b)),
            Operator::I8x16AvgrU => self.lanes2(I8X16, |ins, a, b| ins.avg_round(a, b)),
            Operator::I8x16Shl => self.shift(I8X16, |ins, a, bits| ins.ishl(a, bits)),
            Operator::I8x16ShrS => self.shift(I8X16, |ins, a, bits| ins.sshr(a, bits)),
            Operator::I8x16ShrU => self.shift(I8X16, |ins, a, bits| ins.ushr(a, bits)),
            Operator::I16x8Abs => self.lanes1(I16X8, |ins, a| ins.iabs(a)),
            Operator::I16x8Neg => self.lanes1(I16X8, |ins, a| ins.ineg(a)),
            Operator::I16x8Add => self.lanes2(I16X8, |ins, a, b| ins.iadd(a, b)),
            Operator::I16x8Sub => self.lanes2(I16X8, |ins, a, b| ins.isub(a, b)),
            Operator::I16x8Mul => self.lanes2(I16X8, |ins, a, b| ins.imul(a, b)),
            Operator::I16x8MinS => self.lanes2(I16X8, |ins, a, b| ins.smin(a, b)),
            Operator::I16x8MinU => self.lanes2(I16X8, |ins, a, b| ins.umin(a, b)),
            Operator::I16x8MaxS => self.lanes2(I16X8, |ins, a, b| ins.smax(a, b)),
            Operator::I16x8MaxU => self.lanes2(I16X8, |ins, a, b| ins.umax(a, b)),
            Operator::I16x8AddSatS => self.lanes2(I16X8, |ins, a, b| ins.sadd_sat(a, b)),
            Operator::I16x8AddSatU => self.lanes2(I16X8, |ins, a, b| ins.uadd_sat(a, b)),
            Operator::I16x8SubSatS => self.lanes2(I16X8, |ins, a, b| ins.ssub_sat(a, b)),
            Operator::I16x8SubSatU => self.lanes2(I16X8, |ins, a, b| ins.usub_sat(a, b)),
            Operator::I16x8AvgrU => self.lanes2(I16X8, |ins, a, b| ins.avg_round(a, b)),
            Operator::I16x8Shl => self.shift(I16X8, |ins, a, bits| ins.ishl(a, bits)),
            Operator::I16x8ShrS => self.shift(I16X8, |ins, a, bits| ins.sshr(a, bits)),
            Operator::I16x8ShrU => self.shift(I16X8, |ins, a, bits| ins.ushr(a, bits)),
            Operator::I32x4Abs => self.lanes1(I32X4, |ins, a| ins.iabs(a)),
            Operator::I32x4Neg => self.lanes1(I32X4, |ins, a| ins.ineg(a)),
            Operator::I32x4Add => self.lanes2(I32X4, |ins, a, b| ins.iadd(a, b)),
            Operator::I32x4Sub => self.lanes2(I32X4, |ins, a, b| ins.isub(a, b)),
            Operator::I32x4Mul => self.lanes2(I32X4, |ins, a, b| ins.imul(a, b)),
            Operator::I32x4MinS => self.lanes2(I32X4, |ins, a, b| ins.smin(a, b)),
            Operator::I32x4MinU => self.lanes2(I32X4, |ins, a, b| ins.umin(a, b)),
            Operator::I32x4MaxS => self.lanes2(I32X4, |ins, a, b| ins.smax(a, b)),
            Operator::I32x4MaxU => self.lanes2(I32X4, |ins, a, b| ins.umax(a, b)),
            Operator::I32x4Shl => self.shift(I32X4, |ins, a, bits| ins.ishl(a, bits)),
            Operator::I32x4ShrS => self.shift(I32X4, |ins, a, bits| ins.sshr(a, bits)),
            Operator::I32x4ShrU => self.shift(I32X4, |ins, a, bits| ins.ushr(a, bits)),
            Operator::I64x2Abs => self.lanes1(I64X2, |ins, a| ins.iabs(a)),
            Operator::I64x2Neg => self.lanes1(I64X2, |ins, a| ins.ineg(a)),
            Operator::I64x2Add => self.lanes2(I64X2, |ins, a, b| ins.iadd(a, b)),
            Operator::I64x2Sub => self.lanes2(I64X2, |ins, a, b| ins.isub(a, b)),
            Operator::I64x2Mul => self.lanes2(I64X2, |ins, a, b| ins.imul(a, b)),
            Operator::I64x2Shl => self.shift(I64X2, |ins, a, bits| ins.ishl(a, bits)),
            Operator::I64x2ShrS => self.shift(I64X2, |ins, a, bits| ins.sshr(a, bits)),
            Operator::I64x2ShrU => self.shift(I64X2, |ins, a, bits| ins.ushr(a, bits)),
            Operator::I16x8Q15MulrSatS | Operator::I16x8RelaxedQ15mulrS => {
                self.lanes2(I16X8, |ins, a, b| ins.sqmul_round_sat(a, b))
            }
            _ => self.simd_widths(op),
        }
    }

    fn simd_widths(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I16x8ExtendLowI8x16S => self.extend(I8X16, false, true),
            Operator::I16x8ExtMulLowI8x16S => self.multiply_wide(I8X16, false, true),
            Operator::I16x8ExtendLowI8x16U => self.extend(I8X16, false, false),
            Operator::I16x8ExtMulLowI8x16U => self.multiply_wide(I8X16, false, false),
            Operator::I16x8ExtendHighI8x16S => self.extend(I8X16, true, true),
            Operator::I16x8ExtMulHighI8x16S => self.multiply_wide(I8X16, true, true),
            Operator::I16x8ExtendHighI8x16U => self.extend(I8X16, true, false),
            Operator::I16x8ExtMulHighI8x16U => self.multiply_wide(I8X16, true, false),
            Operator::I16x8ExtAddPairwiseI8x16S => self.add_pairs(I8X16, true),
            Operator::I16x8ExtAddPairwiseI8x16U => self.add_pairs(I8X16, false),
            Operator::I8x16NarrowI16x8S => self.lanes2(I16X8, |ins, a, b| ins.snarrow(a, b)),
            Operator::I8x16NarrowI16x8U => self.lanes2(I16X8, |ins, a, b| ins.unarrow(a, b)),
            Operator::I32x4ExtendLowI16x8S => self.extend(I16X8, false, true),
            Operator::I32x4ExtMulLowI16x8S => self.multiply_wide(I16X8, false, true),
            Operator::I32x4ExtendLowI16x8U => self.extend(I16X8, false, false),
            Operator::I32x4ExtMulLowI16x8U => self.multiply_wide(I16X8, false, false),
            Operator::I32x4ExtendHighI16x8S => self.extend(I16X8, true, true),
            Operator::I32x4ExtMulHighI16x8S => self.multiply_wide(I16X8, true, true),
            Operator::I32x4ExtendHighI16x8U => self.extend(I16X8, true, false),
            Operator::I32x4ExtMulHighI16x8U => self.multiply_wide(I16X8, true, false),
            Operator::I32x4ExtAddPairwiseI16x8S => self.add_pairs(I16X8, true),
            Operator::I32x4ExtAddPairwiseI16x8U => self.add_pairs(I16X8, false),
            Operator::I16x8NarrowI32x4S => self.lanes2(I32X4, |ins, a, b| ins.snarrow(a, b)),
            Operator::I16x8NarrowI32x4U => self.lanes2(I32X4, |ins, a, b| ins.unarrow(a, b)),
            Operator::I64x2ExtendLowI32x4S => self.extend(I32X4, false, true),
            Operator::I64x2ExtMulLowI32x4S => self.multiply_wide(I32X4, false, true),
            Operator::I64x2ExtendLowI32x4U => self.extend(I32X4, false, false),
            Operator::I64x2ExtMulLowI32x4U => self.multiply_wide(I32X4, false, false),
            Operator::I64x2ExtendHighI32x4S => self.extend(I32X4, true, true),
            Operator::I64x2ExtMulHighI32x4S => self.multiply_wide(I32X4, true, true),
            Operator::I64x2ExtendHighI32x4U => self.extend(I32X4, true, false),
            Operator::I64x2ExtMulHighI32x4U => self.multiply_wide(I32X4, true, false),
            Operator::I32x4DotI16x8S => {
                let value = self.dot(I16X8)?;
                self.push(value);
                Ok(())
            }
            Operator::I16x8RelaxedDotI8x16I7x16S => {
                let value = self.dot(I8X16)?;
                self.push(value);
                Ok(())
            }
            Operator::I32x4RelaxedDotI8x16I7x16AddS => {
                let third = self.lanes(I32X4)?;
                let halves = self.dot(I8X16)?;
                let sums = self.sum_of_pairs(halves, true);
                let value = self.emitter.builder.ins().iadd(sums, third);
                self.push(value);
                Ok(())
            }
            _ => self.simd_floats(op),
        }
    }

    fn simd_floats(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::F32x4Ceil => self.lanes1(F32X4, |ins, a| ins.ceil(a)),
            Operator::F32x4Floor => self.lanes1(F32X4, |ins, a| ins.floor(a)),
            Operator::F32x4Trunc => self.lanes1(F32X4, |ins, a| ins.trunc(a)),
            Operator::F32x4Nearest => self.lanes1(F32X4, |ins, a| ins.nearest(a)),
            Operator::F32x4Abs => self.lanes1(F32X4, |ins, a| ins.fabs(a)),
            Operator::F32x4Neg => self.lanes1(F32X4, |ins, a| ins.fneg(a)),
            Operator::F32x4Sqrt => self.lanes1(F32X4, |ins, a| ins.sqrt(a)),
            Operator::F32x4Add => self.lanes2(F32X4, |ins, a, b| ins.fadd(a, b)),
            Operator::F32x4Sub => self.lanes2(F32X4, |ins, a, b| ins.fsub(a, b)),
            Operator::F32x4Mul => self.lanes2(F32X4, |ins, a, b| ins.fmul(a, b)),
            Operator::F32x4Div => self.lanes2(F32X4, |ins, a, b| ins.fdiv(a, b)),
            Operator::F32x4Min => self.lanes2(F32X4, |ins, a, b| ins.fmin(a, b)),
            Operator::F32x4Max => self.lanes2(F32X4, |ins, a, b| ins.fmax(a, b)),
            Operator::F32x4PMin | Operator::F32x4RelaxedMin => self.pick(F32X4, FloatCC::LessThan),
            Operator::F32x4PMax | Operator::F32x4RelaxedMax => self.pick(F32X4, FloatCC::GreaterThan),
            Operator::F32x4RelaxedMadd => self.multiply_add(F32X4, false),
            Operator::F32x4RelaxedNmadd => self.multiply_add(F32X4, true),
            Operator::F64x2Ceil => self.lanes1(F64X2, |ins, a| ins.ceil(a)),
            Operator::F64x2Floor => self.lanes1(F64X2, |ins, a| ins.floor(a)),
            Operator::F64x2Trunc => self.lanes1(F64X2, |ins, a| ins.trunc(a)),
            Operator::F64x2Nearest => self.lanes1(F64X2, |ins, a| ins.nearest(a)),
            Operator::F64x2Abs => self.lanes1(F64X2, |ins, a| ins.fabs(a)),
            Operator::F64x2Neg => self.lanes1(F64X2, |ins, a| ins.fneg(a)),
            Operator::F64x2Sqrt => self.lanes1(F64X2, |ins, a| ins.sqrt(a)),
            Operator::F64x2Add => self.lanes2(F64X2, |ins, a, b| ins.fadd(a, b)),
            Operator::F64x2Sub => self.lanes2(F64X2, |ins, a, b| ins.fsub(a, b)),
            Operator::F64x2Mul => self.lanes2(F64X2, |ins, a, b| ins.fmul(a, b)),
            Operator::F64x2Div => self.lanes2(F64X2, |ins, a, b| ins.fdiv(a, b)),
            Operator::F64x2Min => self.lanes2(F64X2, |ins, a, b| ins.fmin(a, b)),
            Operator::F64x2Max => self.lanes2(F64X2, |ins, a, b| ins.fmax(a, b)),
            Operator::F64x2PMin | Operator::F64x2RelaxedMin => self.pick(F64X2, FloatCC::LessThan),
            Operator::F64x2PMax | Operator::F64x2RelaxedMax => self.pick(F64X2, FloatCC::GreaterThan),
            Operator::F64x2RelaxedMadd => self.multiply_add(F64X2, false),
            Operator::F64x2RelaxedNmadd => self.multiply_add(F64X2, true),
            Operator::I32x4TruncSatF32x4S | Operator::I32x4RelaxedTruncF32x4S => {
                self.lanes1(F32X4, |ins, a| ins.fcvt_to_sint_sat(I32X4, a))
            }
            Operator::I32x4TruncSatF64x2SZero | Operator::I32x4RelaxedTruncF64x2SZero => self.truncate_doubles(true),
            Operator::F32x4ConvertI32x4S => self.lanes1(I32X4, |ins, a| ins.fcvt_from_sint(F32X4, a)),
            Operator::F64x2ConvertLowI32x4S => {
                self.extend(I32X4, false, true)?;
                self.lanes1(I64X2, |ins, a| ins.fcvt_from_sint(F64X2, a))
            }
            Operator::I32x4TruncSatF32x4U | Operator::I32x4RelaxedTruncF32x4U => {
                self.lanes1(F32X4, |ins, a| ins.fcvt_to_uint_sat(I32X4, a))
            }
            Operator::I32x4TruncSatF64x2UZero | Operator::I32x4RelaxedTruncF64x2UZero => self.truncate_doubles(false),
            Operator::F32x4ConvertI32x4U => self.lanes1(I32X4, |ins, a| ins.fcvt_from_uint(F32X4, a)),
            Operator::F64x2ConvertLowI32x4U => {
                self.extend(I32X4, false, false)?;
                self.lanes1(I64X2, |ins, a| ins.fcvt_from_uint(F64X2, a))
            }
            Operator::F32x4DemoteF64x2Zero => self.lanes1(F64X2, |ins, a| ins.fvdemote(a)),
            Operator::F64x2PromoteLowF32x4 => self.lanes1(F32X4, |ins, a| ins.fvpromote_low(a)),
            other => Err(self.refuse(other)),
        }
    }
}
