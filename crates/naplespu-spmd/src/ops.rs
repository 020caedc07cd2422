//! Operations on lanes: masks, and instructions that have a vector form.

use crate::convert::Division;
use crate::divergence::{Form, lanes_type};
use crate::emit::{ALL_LANES, Emitter, LANES, Parts, callee_name, is_uniform_intrinsic};
use crate::error::Error;
use crate::remarks::{AccessOutcome, CallOutcome, OperationOutcome, Reason, is_division};
use crate::{builtins, facts};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockCall, ConstantData, Endianness, ExceptionTable, FuncRef, Immediate, Inst, InstBuilder, InstBuilderBase,
    InstructionData, JumpTable, MemFlagsData, Opcode, SigRef, StackSlot, Type, Value, ValueList, types,
};
use smallvec::smallvec;

impl Emitter<'_> {
    /// Writes an instruction that does not end a block.
    pub fn instruction(&mut self, inst: Inst) -> Result<(), Error> {
        let old = self.old;
        let data = old.dfg.insts[inst];
        let opcode = data.opcode();
        match builtins::called(old, inst) {
            Some(Ok(builtin)) => return self.across(inst, builtin),
            Some(Err(name)) => {
                return Err(Error::Builtin {
                    function: old.name.to_string(),
                    name,
                });
            }
            None => {}
        }
        match opcode {
            Opcode::Load
            | Opcode::Store
            | Opcode::Uload8
            | Opcode::Sload8
            | Opcode::Uload16
            | Opcode::Sload16
            | Opcode::Istore8
            | Opcode::Istore16 => return self.access(inst),
            Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::AtomicStore => {
                // The address is the first operand of all but a store.
                let args = old.dfg.inst_args(inst);
                let address = args[usize::from(opcode == Opcode::AtomicStore)];
                self.explain_access(inst, address, AccessOutcome::Lanes(Reason::Atomic));
                return self.lane_loop(inst);
            }
            Opcode::Trapz | Opcode::Trapnz if self.form(old.dfg.inst_args(inst)[0]) != Form::Uniform => {
                return self.trap_if_any(inst);
            }
            _ => {}
        }
        let results = old.dfg.inst_results(inst).to_vec();
        let scalar = |&value: &Value| matches!(self.divergence.form(value), Form::Uniform | Form::Linear(_));
        let args = old.dfg.inst_values(inst).collect::<Vec<_>>();
        let uniform_args = args.iter().all(|&arg| self.form(arg) == Form::Uniform);
        // A call for effect is executed by each work-item.
        let once = !opcode.is_call() || callee_name(old, inst).is_some_and(|name| is_uniform_intrinsic(&name));
        if !results.is_empty() && results.iter().all(scalar) || results.is_empty() && uniform_args && once {
            if opcode.is_call() {
                self.explain_call(inst, CallOutcome::Scalar);
            } else if is_division(opcode) {
                self.explain_operation(inst, OperationOutcome::Scalar);
            }
            let values = self.scalar_copy(inst)?;
            for (result, value) in results.into_iter().zip(values) {
                self.define(result, smallvec![value])?;
            }
            return Ok(());
        }
        if opcode == Opcode::Call {
            return self.call(inst);
        }
        if opcode.is_call() {
            self.explain_call(inst, CallOutcome::Lanes);
        }
        let &[result] = &results[..] else {
            return self.lane_loop(inst);
        };
        match self.vector_form(inst, result)? {
            Some(parts) => self.define(result, parts),
            None => {
                if opcode == Opcode::AtomicLoad {
                    self.explain_access(inst, args[0], AccessOutcome::Lanes(Reason::Atomic));
                } else if !opcode.is_call() {
                    self.explain_operation(inst, OperationOutcome::Lanes);
                }
                self.lane_loop(inst)
            }
        }
    }

    /// Copies an instruction on scalars and returns its results.
    pub fn scalar_copy(&mut self, inst: Inst) -> Result<Vec<Value>, Error> {
        let mut scalars = std::collections::BTreeMap::new();
        for value in self.old.dfg.inst_values(inst).collect::<Vec<_>>() {
            scalars.insert(value, self.scalar(value)?);
        }
        Ok(self.copy_with(inst, &scalars))
    }

    /// Copies an instruction with other operands and returns its results.
    pub fn copy_with(&mut self, inst: Inst, operands: &std::collections::BTreeMap<Value, Value>) -> Vec<Value> {
        let list = match self.old.dfg.insts[inst] {
            InstructionData::Call { args, .. } | InstructionData::CallIndirect { args, .. } => {
                let args: Vec<Value> = args.as_slice(&self.old.dfg.value_lists).to_vec();
                let args: Vec<Value> = args
                    .iter()
                    .map(|arg| operands.get(arg).copied().unwrap_or(*arg))
                    .collect();
                ValueList::from_slice(&args, &mut self.builder.func.dfg.value_lists)
            }
            _ => ValueList::new(),
        };
        let data = self.old.dfg.insts[inst].map(Operands { operands, list });
        let control = self.old.dfg.ctrl_typevar(inst);
        let (new, dfg) = self.builder.ins().build(data, control);
        dfg.inst_results(new).to_vec()
    }

    /// Traps if an active lane does.
    fn trap_if_any(&mut self, inst: Inst) -> Result<(), Error> {
        let InstructionData::CondTrap { opcode, arg, code } = self.old.dfg.insts[inst] else {
            return Err(self.internal("a conditional trap"));
        };
        self.explain_trap(inst);
        let set = self.condition(arg)?;
        let lanes = match opcode {
            Opcode::Trapz => self.and_not_mask(self.mask.clone().as_ref(), &set),
            _ => self.and_mask(self.mask.clone().as_ref(), &set),
        };
        let any = self.any(&lanes);
        self.builder.ins().trapnz(any, code);
        Ok(())
    }

    fn call(&mut self, inst: Inst) -> Result<(), Error> {
        let name = callee_name(self.old, inst);
        let InstructionData::Call { func_ref, .. } = self.old.dfg.insts[inst] else {
            return self.lane_loop(inst);
        };
        let signature = self.old.dfg.signatures[self.old.dfg.ext_funcs[func_ref].signature].clone();
        let known = name.as_ref().and_then(|name| self.callees.get(name)).copied();
        match (name, known) {
            (Some(name), Some(callee)) if crate::emit::is_pure(callee, self.callees) => {
                self.explain_call(inst, CallOutcome::Vector);
                let callee = self.vector_callee(&name, &signature)?;
                let mut args = Vec::new();
                for arg in self.old.dfg.inst_args(inst).to_vec() {
                    args.extend(self.vectors(arg)?);
                }
                let call = self.builder.ins().call(callee, &args);
                let values = self.builder.inst_results(call).to_vec();
                let results = self.old.dfg.inst_results(inst).to_vec();
                for (result, parts) in results.into_iter().zip(values.chunks(self.parts)) {
                    self.define(result, parts.into())?;
                }
                Ok(())
            }
            _ => {
                self.explain_call(inst, CallOutcome::Lanes);
                self.lane_loop(inst)
            }
        }
    }

    /// Returns the result of an instruction on vectors, or `None` if it has no vector form.
    fn vector_form(&mut self, inst: Inst, result: Value) -> Result<Option<Parts>, Error> {
        let data = self.old.dfg.insts[inst];
        let ty = self.old.dfg.value_type(result);
        let bits = self.divergence.form(result) == Form::Bits;
        match data {
            InstructionData::IntCompare { args, cond, .. } => self.int_compare(cond, args).map(Some),
            InstructionData::FloatCompare { args, cond, .. } => {
                let [x, y] = [self.vectors(args[0])?, self.vectors(args[1])?];
                let compare = |this: &mut Self, part: usize| {
                    let lanes = this.builder.ins().fcmp(cond, x[part], y[part]);
                    this.builder.ins().vhigh_bits(types::I32, lanes)
                };
                Ok(Some((0..self.parts).map(|part| compare(self, part)).collect()))
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [condition, x, y],
            } => self.select(condition, x, y, bits).map(Some),
            InstructionData::Binary { opcode, args } if bits => {
                let [x, y] = [self.condition(args[0])?, self.condition(args[1])?];
                let parts = (0..self.parts).map(|part| match opcode {
                    Opcode::Band => self.builder.ins().band(x[part], y[part]),
                    Opcode::Bor => self.builder.ins().bor(x[part], y[part]),
                    _ => self.builder.ins().bxor(x[part], y[part]),
                });
                Ok(Some(parts.collect()))
            }
            InstructionData::Binary { opcode, args } => self.binary(inst, opcode, args, ty),
            InstructionData::Unary { opcode, arg } => self.unary(inst, opcode, arg, ty),
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } => {
                let vectors = self.vectors(arg)?;
                let to = self.lanes_of(result)?;
                let from = self.old.dfg.value_type(arg);
                if lanes_type(from).map(Type::bits) != Some(to.bits()) || from.bits() != ty.bits() {
                    return Ok(None);
                }
                Ok(Some(vectors.iter().map(|&lanes| self.cast(lanes, to)).collect()))
            }
            InstructionData::Ternary {
                opcode: Opcode::Bitselect | Opcode::Fma,
                ..
            } => self.same_on_vectors(inst, ty).map(Some),
            _ => Ok(None),
        }
    }

    fn binary(&mut self, inst: Inst, opcode: Opcode, args: [Value; 2], ty: Type) -> Result<Option<Parts>, Error> {
        match opcode {
            Opcode::Iadd | Opcode::Isub | Opcode::Imul | Opcode::Band | Opcode::Bor | Opcode::Bxor => {}
            Opcode::Smin | Opcode::Smax => return self.extended(inst, true, ty).map(Some),
            Opcode::Umin | Opcode::Umax => return self.extended(inst, false, ty).map(Some),
            Opcode::Umulhi | Opcode::Smulhi if ty == types::I32 => {}
            Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv => {}
            Opcode::Fmin | Opcode::Fmax | Opcode::Fcopysign => {}
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr
                if ty.bits() <= 32
                    && (self.form(args[1]) == Form::Uniform || self.old.dfg.value_type(args[1]).bits() <= 32) =>
            {
                return self.shift(opcode, args, ty).map(Some);
            }
            Opcode::Rotl | Opcode::Rotr if ty == types::I32 && self.form(args[1]) == Form::Uniform => {
                let amount = self.scalar(args[1])?;
                let vectors = self.vectors(args[0])?;
                let rotate = |this: &mut Self, lanes: Value| match opcode {
                    Opcode::Rotl => this.builder.ins().rotl(lanes, amount),
                    _ => this.builder.ins().rotr(lanes, amount),
                };
                return Ok(Some(vectors.iter().map(|&lanes| rotate(self, lanes)).collect()));
            }
            Opcode::Udiv | Opcode::Urem if ty == types::I32 => {
                let constant = facts::constant(self.old, args[1]).map(|divisor| divisor as u32);
                let Some(divisor) = constant.filter(|divisor| divisor.is_power_of_two()) else {
                    if self.form(args[1]) != Form::Uniform {
                        return Ok(None);
                    }
                    let wanted = Division::of(opcode);
                    self.explain_operation(inst, OperationOutcome::Reciprocal);
                    return self.divide_unsigned(args[0], args[1], wanted).map(Some);
                };
                self.explain_operation(inst, OperationOutcome::Shift);
                let vectors = self.vectors(args[0])?;
                let shift = self
                    .builder
                    .ins()
                    .iconst(types::I32, i64::from(divisor.trailing_zeros()));
                let mask = self.splat_constant(i64::from(divisor - 1));
                let part = |this: &mut Self, lanes: Value| match opcode {
                    Opcode::Udiv => this.builder.ins().ushr(lanes, shift),
                    _ => this.builder.ins().band(lanes, mask),
                };
                return Ok(Some(vectors.iter().map(|&lanes| part(self, lanes)).collect()));
            }
            Opcode::Sdiv | Opcode::Srem if ty == types::I32 && self.form(args[1]) == Form::Uniform => {
                self.explain_operation(inst, OperationOutcome::Reciprocal);
                return self.divide_signed(args[0], args[1], Division::of(opcode)).map(Some);
            }
            _ => return Ok(None),
        }
        self.same_on_vectors(inst, ty).map(Some)
    }

    fn unary(&mut self, inst: Inst, opcode: Opcode, arg: Value, ty: Type) -> Result<Option<Parts>, Error> {
        let from = self.old.dfg.value_type(arg);
        let small = |ty: Type| ty.is_int() && ty.bits() <= 32;
        match opcode {
            Opcode::Ineg | Opcode::Bnot | Opcode::Fneg | Opcode::Fabs | Opcode::Sqrt => {}
            Opcode::Ceil | Opcode::Floor | Opcode::Trunc | Opcode::Nearest => {}
            Opcode::Iabs | Opcode::Popcnt if ty == types::I32 => {}
            Opcode::Clz | Opcode::Ctz if ty == types::I32 => {
                let name = if opcode == Opcode::Clz {
                    "clzv16i32"
                } else {
                    "ctzv16i32"
                };
                let vectors = self.vectors(arg)?;
                let mut parts = Parts::new();
                for lanes in vectors {
                    parts.push(self.intrinsic(name, &[lanes])?);
                }
                return Ok(Some(parts));
            }
            Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce if small(from) && small(ty) => {
                let vectors = self.vectors(arg)?;
                return Ok(Some(match opcode {
                    Opcode::Uextend => self.extend(&vectors, from, false),
                    Opcode::Sextend => self.extend(&vectors, from, true),
                    _ => vectors,
                }));
            }
            Opcode::FcvtFromSint | Opcode::FcvtFromUint if small(from) && ty == types::F32 => {
                let signed = opcode == Opcode::FcvtFromSint;
                let vectors = self.vectors(arg)?;
                let vectors = self.extend(&vectors, from, signed);
                let mut parts = Parts::new();
                for lanes in vectors {
                    parts.push(self.float_from_int(lanes, signed)?);
                }
                return Ok(Some(parts));
            }
            Opcode::FcvtToSintSat | Opcode::FcvtToUintSat if from == types::F32 && ty == types::I32 => {
                let mut parts = Parts::new();
                for lanes in self.vectors(arg)? {
                    parts.push(self.int_from_float(lanes, opcode == Opcode::FcvtToSintSat)?);
                }
                return Ok(Some(parts));
            }
            _ => return Ok(None),
        }
        self.same_on_vectors(inst, ty).map(Some)
    }

    /// Copies an instruction with vectors as operands. The upper bits of narrow results are
    /// undefined, as are those of its operands.
    fn same_on_vectors(&mut self, inst: Inst, ty: Type) -> Result<Parts, Error> {
        let control =
            lanes_type(ty).ok_or_else(|| self.unsupported(inst, "its type has no vector of sixteen lanes"))?;
        let args: Vec<Value> = self.old.dfg.inst_args(inst).to_vec();
        let mut vectors = Vec::new();
        for &arg in &args {
            vectors.push(self.vectors(arg)?);
        }
        let mut parts = Parts::new();
        for part in 0..self.parts {
            let operands = args
                .iter()
                .zip(&vectors)
                .map(|(&arg, parts)| (arg, parts[part]))
                .collect();
            parts.push(self.build_vector(inst, &operands, control));
        }
        Ok(parts)
    }

    fn build_vector(
        &mut self,
        inst: Inst,
        operands: &std::collections::BTreeMap<Value, Value>,
        control: Type,
    ) -> Value {
        let data = self.old.dfg.insts[inst].map(Operands {
            operands,
            list: ValueList::new(),
        });
        let (new, dfg) = self.builder.ins().build(data, control);
        dfg.first_result(new)
    }

    /// Like [`Self::same_on_vectors`], after extending narrow operands.
    fn extended(&mut self, inst: Inst, signed: bool, ty: Type) -> Result<Parts, Error> {
        if ty.bits() >= 32 {
            return self.same_on_vectors(inst, ty);
        }
        let args: Vec<Value> = self.old.dfg.inst_args(inst).to_vec();
        let mut vectors = Vec::new();
        for &arg in &args {
            let parts = self.vectors(arg)?;
            vectors.push(self.extend(&parts, ty, signed));
        }
        let mut parts = Parts::new();
        for part in 0..self.parts {
            let operands = args
                .iter()
                .zip(&vectors)
                .map(|(&arg, parts)| (arg, parts[part]))
                .collect();
            parts.push(self.build_vector(inst, &operands, types::I32X16));
        }
        Ok(parts)
    }

    fn shift(&mut self, opcode: Opcode, [value, amount]: [Value; 2], ty: Type) -> Result<Parts, Error> {
        let vectors = self.vectors(value)?;
        let vectors = match opcode {
            Opcode::Ushr => self.extend(&vectors, ty, false),
            Opcode::Sshr => self.extend(&vectors, ty, true),
            _ => vectors,
        };
        if self.form(amount) != Form::Uniform {
            return self.shift_by_lanes(opcode, &vectors, amount, ty);
        }
        let amount = self.scalar(amount)?;
        let amount = if ty.bits() < 32 {
            let amount = self.widened(amount);
            self.builder.ins().band_imm_u(amount, i64::from(ty.bits() - 1))
        } else {
            amount
        };
        let shift = |this: &mut Self, lanes: Value| match opcode {
            Opcode::Ishl => this.builder.ins().ishl(lanes, amount),
            Opcode::Ushr => this.builder.ins().ushr(lanes, amount),
            _ => this.builder.ins().sshr(lanes, amount),
        };
        Ok(vectors.iter().map(|&lanes| shift(self, lanes)).collect())
    }

    /// Shifts each lane by its own amount, modulo the width.
    fn shift_by_lanes(&mut self, opcode: Opcode, vectors: &Parts, amount: Value, ty: Type) -> Result<Parts, Error> {
        let name = match opcode {
            Opcode::Ishl => "shlv16i32",
            Opcode::Ushr => "shrv16i32",
            _ => "ashrv16i32",
        };
        let amounts = self.vectors(amount)?;
        let width = self.splat_constant(i64::from(ty.bits() - 1));
        let mut parts = Parts::new();
        for (&lanes, amount) in vectors.iter().zip(amounts) {
            let amount = self.builder.ins().band(amount, width);
            parts.push(self.intrinsic(name, &[lanes, amount])?);
        }
        Ok(parts)
    }

    fn int_compare(&mut self, cond: IntCC, args: [Value; 2]) -> Result<Parts, Error> {
        let ty = self.old.dfg.value_type(args[0]);
        let signed = cond != cond.unsigned();
        let mut sides = Vec::new();
        for arg in args {
            let parts = self.vectors(arg)?;
            sides.push(self.extend(&parts, ty, signed));
        }
        Ok((0..self.parts)
            .map(|part| {
                let lanes = self.builder.ins().icmp(cond, sides[0][part], sides[1][part]);
                self.builder.ins().vhigh_bits(types::I32, lanes)
            })
            .collect())
    }

    fn select(&mut self, condition: Value, x: Value, y: Value, bits: bool) -> Result<Parts, Error> {
        let [x, y] = if bits {
            [self.condition(x)?, self.condition(y)?]
        } else {
            [self.vectors(x)?, self.vectors(y)?]
        };
        if self.form(condition) == Form::Uniform {
            let condition = self.scalar(condition)?;
            return Ok((0..self.parts)
                .map(|part| self.builder.ins().select(condition, x[part], y[part]))
                .collect());
        }
        let lanes = self.condition(condition)?;
        self.mix(&lanes, &x, &y)
    }

    /// Returns lanes of `x` where the mask is set and of `y` elsewhere. Both are vectors or bits.
    pub fn mix(&mut self, mask: &Parts, x: &Parts, y: &Parts) -> Result<Parts, Error> {
        let mut parts = Parts::new();
        for part in 0..self.parts {
            let (mask, x, y) = (mask[part], x[part], y[part]);
            parts.push(match self.builder.func.dfg.value_type(x) {
                types::I32 => {
                    let both = self.builder.ins().bxor(x, y);
                    let taken = self.builder.ins().band(both, mask);
                    self.builder.ins().bxor(y, taken)
                }
                types::I32X16 => self.mix_words("vector_mixi32", mask, x, y)?,
                types::F32X16 => self.mix_words("vector_mixf32", mask, x, y)?,
                ty => self.mix_wide(mask, x, y, ty)?,
            });
        }
        Ok(parts)
    }

    pub fn mix_words(&mut self, name: &str, mask: Value, x: Value, y: Value) -> Result<Value, Error> {
        self.set_mask(mask)?;
        self.intrinsic(name, &[x, y])
    }

    /// Selects lanes that are not words, by lanes of all ones or zeros.
    fn mix_wide(&mut self, mask: Value, x: Value, y: Value, ty: Type) -> Result<Value, Error> {
        let int = ty.as_int();
        let element = int.lane_type();
        let bytes = usize::from(element.bytes() as u16);
        let mut bits = vec![0; bytes * LANES as usize];
        for lane in 0..LANES as usize {
            bits[lane * bytes + lane / 8] = 1 << (lane % 8);
        }
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bits));
        let lanes = self.builder.ins().vconst(int, constant);
        let mask = match element.bits() {
            16 => self.builder.ins().ireduce(element, mask),
            _ => self.builder.ins().uextend(element, mask),
        };
        let mask = self.builder.ins().splat(int, mask);
        let set = self.builder.ins().band(mask, lanes);
        let chosen = self.builder.ins().icmp(IntCC::Equal, set, lanes);
        let chosen = self.cast(chosen, ty);
        Ok(self.builder.ins().bitselect(chosen, x, y))
    }

    /// Returns lanes in which a value of type `ty` is not zero, as bits.
    pub fn nonzero(&mut self, vectors: &Parts, ty: Type) -> Parts {
        let vectors = self.extend(vectors, ty, false);
        let zero = lanes_type(ty).map(|ty| self.zero_vector(ty));
        vectors
            .iter()
            .map(|&lanes| {
                let zero = zero.unwrap_or(lanes);
                let set = self.builder.ins().icmp(IntCC::NotEqual, lanes, zero);
                self.builder.ins().vhigh_bits(types::I32, set)
            })
            .collect()
    }

    /// Defines the upper bits of lanes of a narrow type.
    pub fn extend(&mut self, vectors: &Parts, from: Type, signed: bool) -> Parts {
        if !from.is_int() || from.bits() >= 32 {
            return vectors.clone();
        }
        if signed {
            let amount = self.builder.ins().iconst(types::I32, i64::from(32 - from.bits()));
            let extend = |this: &mut Self, lanes: Value| {
                let high = this.builder.ins().ishl(lanes, amount);
                this.builder.ins().sshr(high, amount)
            };
            return vectors.iter().map(|&lanes| extend(self, lanes)).collect();
        }
        let mask = self.splat_constant((1 << from.bits()) - 1);
        vectors
            .iter()
            .map(|&lanes| self.builder.ins().band(lanes, mask))
            .collect()
    }

    /// Returns a vector with this number in each lane.
    pub fn splat_constant(&mut self, number: i64) -> Value {
        let number = self.builder.ins().iconst(types::I32, number);
        self.builder.ins().splat(types::I32X16, number)
    }

    /// Returns zeros.
    pub fn zero_vector(&mut self, ty: Type) -> Value {
        let zeros = vec![0; ty.bytes() as usize];
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(zeros));
        self.builder.ins().vconst(ty, constant)
    }

    /// Returns the multiples of `stride` by lane number.
    pub fn steps(&mut self, stride: i32) -> Parts {
        (0..self.parts as i32)
            .map(|part| {
                let numbers = (0..LANES as i32).map(|lane| (part * LANES as i32 + lane).wrapping_mul(stride));
                self.words_constant(numbers)
            })
            .collect()
    }

    /// Returns a constant vector.
    pub fn words_constant(&mut self, words: impl Iterator<Item = i32>) -> Value {
        let bytes: Vec<u8> = words.flat_map(i32::to_le_bytes).collect();
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        self.builder.ins().vconst(types::I32X16, constant)
    }

    /// Returns an integer below 32 bits as a word with undefined upper bits, others as they are.
    pub fn widened(&mut self, scalar: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(scalar);
        if ty.is_int() && ty.bits() < 32 {
            self.builder.ins().uextend(types::I32, scalar)
        } else {
            scalar
        }
    }

    /// Reinterprets the bits of a vector.
    pub fn cast(&mut self, lanes: Value, to: Type) -> Value {
        if self.builder.func.dfg.value_type(lanes) == to {
            return lanes;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(to, flags, lanes)
    }

    /// Returns active lanes for which the condition holds.
    pub fn and_mask(&mut self, mask: Option<&Parts>, condition: &Parts) -> Parts {
        match mask {
            None => condition.clone(),
            Some(mask) => (0..self.parts)
                .map(|part| self.builder.ins().band(mask[part], condition[part]))
                .collect(),
        }
    }

    /// Returns active lanes for which the condition does not hold.
    pub fn and_not_mask(&mut self, mask: Option<&Parts>, condition: &Parts) -> Parts {
        let all = self.builder.ins().iconst(types::I32, ALL_LANES);
        (0..self.parts)
            .map(|part| match mask {
                None => self.builder.ins().bxor(condition[part], all),
                Some(mask) => self.builder.ins().band_not(mask[part], condition[part]),
            })
            .collect()
    }

    /// Returns the active lanes.
    pub fn active(&mut self) -> Parts {
        match self.mask.clone() {
            Some(mask) => mask,
            None => {
                let all = self.builder.ins().iconst(types::I32, ALL_LANES);
                smallvec![all; self.parts]
            }
        }
    }

    /// Returns whether a bit is set, as a value that is not zero.
    pub fn any(&mut self, mask: &Parts) -> Value {
        let mut any = mask[0];
        for &part in &mask[1..] {
            any = self.builder.ins().bor(any, part);
        }
        any
    }

    /// Sets the mask for the next masked intrinsic.
    pub fn set_mask(&mut self, mask: Value) -> Result<(), Error> {
        let call = self.intrinsics.call(self.builder.ins(), "write_mask_reg", &[mask]);
        call.map_err(|_| self.internal("the intrinsic write_mask_reg"))?;
        Ok(())
    }

    /// Calls an intrinsic with a result.
    pub fn intrinsic(&mut self, name: &str, args: &[Value]) -> Result<Value, Error> {
        let value = self.intrinsics.call(self.builder.ins(), name, args).ok().flatten();
        value.ok_or_else(|| self.internal("an intrinsic with a result"))
    }

    /// Calls an intrinsic without a result.
    pub fn effect(&mut self, name: &str, args: &[Value]) -> Result<(), Error> {
        let call = self.intrinsics.call(self.builder.ins(), name, args);
        call.map(|_| ()).map_err(|_| self.internal("an intrinsic"))
    }
}

/// Replaces operands. All other entities are the same in both functions, since the new one starts
/// as a copy.
struct Operands<'a> {
    operands: &'a std::collections::BTreeMap<Value, Value>,
    /// The new list of a call.
    list: ValueList,
}

impl cranelift_codegen::ir::instructions::InstructionMapper for Operands<'_> {
    fn map_value(&mut self, value: Value) -> Value {
        self.operands.get(&value).copied().unwrap_or(value)
    }
    fn map_value_list(&mut self, _: ValueList) -> ValueList {
        self.list
    }
    fn map_global_value(&mut self, global: cranelift_codegen::ir::GlobalValue) -> cranelift_codegen::ir::GlobalValue {
        global
    }
    fn map_jump_table(&mut self, table: JumpTable) -> JumpTable {
        table
    }
    fn map_exception_table(&mut self, table: ExceptionTable) -> ExceptionTable {
        table
    }
    fn map_block_call(&mut self, call: BlockCall) -> BlockCall {
        call
    }
    fn map_block(&mut self, block: Block) -> Block {
        block
    }
    fn map_func_ref(&mut self, callee: FuncRef) -> FuncRef {
        callee
    }
    fn map_sig_ref(&mut self, signature: SigRef) -> SigRef {
        signature
    }
    fn map_stack_slot(&mut self, slot: StackSlot) -> StackSlot {
        slot
    }
    fn map_dynamic_stack_slot(
        &mut self,
        slot: cranelift_codegen::ir::DynamicStackSlot,
    ) -> cranelift_codegen::ir::DynamicStackSlot {
        slot
    }
    fn map_constant(&mut self, constant: cranelift_codegen::ir::Constant) -> cranelift_codegen::ir::Constant {
        constant
    }
    fn map_immediate(&mut self, immediate: Immediate) -> Immediate {
        immediate
    }
}
