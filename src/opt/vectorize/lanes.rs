//! Emits an iteration of the vector loop: each instruction on sixteen lanes, in program order.

use super::access::{Extension, Form};
use super::emit::{Carried, Emitter, IterationCounts, binary, vector_flags};
use super::plan::broken;
use super::shape::ParamValue;
use super::values::{self, ITERATIONS_PER_VECTOR, Kind};
use crate::error::CompileError;
use crate::opt::vectorize::check::Part;
use crate::shape::vector_of;
use clif_opt::edit::{self, Edge};
use clif_opt::linear::LinearSum;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, Endianness, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, ValueDef, types,
};
use npu_mc::machine::LANES;
use rustc_hash::FxHashMap;
use std::fmt;

/// The state of the emission of an iteration.
struct IterationEmitter<'e, 'f> {
    emitter: &'e mut Emitter<'f>,
    /// Vectors and masks for values of the loop.
    vectors: FxHashMap<Value, Value>,
    /// Scalars for uniform values of the loop.
    uniform: FxHashMap<Value, Value>,
    /// Splats of uniform values.
    splats: FxHashMap<(Value, Type), Value>,
    /// Pointers: their start terms, their stride in bytes, and their current values.
    pointers: Vec<(LinearSum, u32, Value)>,
    /// The pointer that the exit test uses: its index in `carried` and its stride in bytes.
    counting: Option<(usize, u32)>,
    /// The index in `carried` of the iteration counter, if the trip count is constant.
    counter: Option<usize>,
    /// The lines loaded in this iteration, by pointer, offset and element type.
    lines: FxHashMap<(Value, i32, Type), Value>,
}

/// Emits the iteration. Returns the vectors for values of the loop.
///
/// # Errors
///
/// [`CompileError::Internal`] if the loop does not match the plan.
pub fn run(
    emitter: &mut Emitter<'_>,
    iterations: IterationCounts,
    after: Block,
) -> Result<FxHashMap<Value, Value>, CompileError> {
    let mut iteration = IterationEmitter {
        emitter,
        vectors: FxHashMap::default(),
        uniform: FxHashMap::default(),
        splats: FxHashMap::default(),
        pointers: Vec::new(),
        counting: None,
        counter: None,
        lines: FxHashMap::default(),
    };
    iteration.begin()?;
    let insts: Vec<Inst> = iteration
        .emitter
        .plan
        .shape
        .blocks
        .iter()
        .flat_map(|&block| iteration.emitter.func.layout.block_insts(block))
        .collect();
    for inst in insts {
        if iteration.emitter.plan.lanewise.contains(&inst) {
            iteration.instruction(inst)?;
        }
    }
    iteration.end(iterations, after)?;
    Ok(iteration.vectors)
}

impl IterationEmitter<'_, '_> {
    fn setup(&mut self) -> FuncCursor<'_> {
        let block = self.emitter.setup;
        self.emitter.at(block)
    }

    fn body(&mut self) -> FuncCursor<'_> {
        let block = self.emitter.body;
        self.emitter.at(block)
    }

    /// Adds a parameter to the vector loop. Its next value is set later.
    fn carry(&mut self, start: Value) -> usize {
        let ty = self.emitter.func.dfg.value_type(start);
        let body = self.emitter.body;
        let param = self.emitter.func.dfg.append_block_param(body, ty);
        self.emitter.carried.push(Carried {
            param,
            start,
            next: param,
        });
        self.emitter.carried.len() - 1
    }

    /// Adds the parameters for reductions and for induction variables with uses as lanes.
    fn begin(&mut self) -> Result<(), CompileError> {
        let plan = self.emitter.plan;
        if plan.iterations.is_some() {
            let zero = self.setup().ins().iconst(types::I32, 0);
            self.counter = Some(self.carry(zero));
        }
        for reduction in &plan.reductions {
            let ty = vector_type(reduction.ty, reduction.param)?;
            let start = match reduction.identity() {
                Some(identity) => self.setup().ins().iconst(reduction.ty, identity),
                None => self.emitter.starts[&reduction.param],
            };
            let start = self.setup().ins().splat(ty, start);
            let position = self.carry(start);
            let param = self.emitter.carried[position].param;
            self.vectors.insert(reduction.param, param);
        }
        for variable in &plan.variables {
            if !plan.counting.contains(&variable.param) {
                continue;
            }
            let ty = vector_type(variable.ty, variable.param)?;
            let start = self.emitter.starts[&variable.param];
            let step = variable.step as u32;
            let setup = self.emitter.setup;
            let lane_offsets = self.emitter.lane_numbers(setup, ty, |lane| lane.wrapping_mul(step));
            let mut cursor = self.setup();
            let start = cursor.ins().splat(ty, start);
            let start = cursor.ins().iadd(start, lane_offsets);
            let unused = 64 - variable.ty.bits();
            let distance = (variable.step.wrapping_mul(ITERATIONS_PER_VECTOR) << unused).cast_signed() >> unused;
            let distance = cursor.ins().iconst(variable.ty, distance);
            let distance = cursor.ins().splat(ty, distance);
            let position = self.carry(start);
            let param = self.emitter.carried[position].param;
            let next = self.body().ins().iadd(param, distance);
            self.emitter.carried[position].next = next;
            self.vectors.insert(variable.param, param);
        }
        Ok(())
    }

    /// Emits the exit test and the back edge.
    fn end(&mut self, iterations: IterationCounts, after: Block) -> Result<(), CompileError> {
        let plan = self.emitter.plan;
        for reduction in &plan.reductions {
            let lanes = |value: Value| self.vectors.get(&value).copied();
            let missing = || broken(reduction.param, "the lanes of a reduction");
            let (param, next) = lanes(reduction.param)
                .zip(lanes(reduction.result))
                .ok_or_else(missing)?;
            let mut carried = self.emitter.carried.iter_mut();
            let carried = carried.find(|carried| carried.param == param).ok_or_else(missing)?;
            carried.next = next;
        }
        let continues = match (self.counter, plan.iterations) {
            (Some(position), Some(all)) => {
                let param = self.emitter.carried[position].param;
                let times = all / ITERATIONS_PER_VECTOR;
                let mut cursor = self.body();
                let one = cursor.ins().iconst(types::I32, 1);
                let next = cursor.ins().iadd(param, one);
                let end = cursor.ins().iconst(types::I32, times.cast_signed());
                let continues = cursor.ins().icmp(IntCC::NotEqual, next, end);
                self.emitter.carried[position].next = next;
                continues
            }
            _ => {
                let Some((position, bytes)) = self.counting else {
                    return Err(broken(plan.lp.header, "a pointer that counts the iterations"));
                };
                let bytes = bytes / LANES;
                let Carried { start, next, .. } = self.emitter.carried[position];
                let mut cursor = self.setup();
                let bytes = cursor.ins().iconst(types::I32, i64::from(bytes));
                let distance = cursor.ins().imul(iterations.whole, bytes);
                let end = cursor.ins().iadd(start, distance);
                self.body().ins().icmp(IntCC::NotEqual, next, end)
            }
        };
        let (starts, nexts): (Vec<Value>, Vec<Value>) = self
            .emitter
            .carried
            .iter()
            .map(|carried| (carried.start, carried.next))
            .unzip();
        let body = self.emitter.body;
        let jump = self.setup().ins().jump(body, &[]);
        edit::redirect(self.emitter.func, Edge { inst: jump, number: 0 }, body, &starts);
        let branch = self.body().ins().brif(continues, body, &[], after, &[]);
        let edge = Edge {
            inst: branch,
            number: 0,
        };
        edit::redirect(self.emitter.func, edge, body, &nexts);
        Ok(())
    }

    /// Returns the scalar for a uniform value.
    fn uniform(&mut self, value: Value) -> Result<Value, CompileError> {
        let func = &self.emitter.func;
        let plan = self.emitter.plan;
        let value = func.dfg.resolve_aliases(value);
        if let Some(&known) = self.uniform.get(&value) {
            return Ok(known);
        }
        let made = if plan.lp.is_invariant(func, value) {
            value
        } else if let Some(&start) = self.emitter.starts.get(&value) {
            start
        } else if let Some(&ParamValue::Same(same)) = plan.shape.param_values.get(&value) {
            self.uniform(same)?
        } else if let ValueDef::Result(inst, _) = func.dfg.value_def(value) {
            let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
            let args = args.into_iter().map(|arg| self.uniform(arg));
            let args: Vec<Value> = args.collect::<Result<_, _>>()?;
            let setup = self.emitter.setup;
            self.emitter.copy_inst(setup, inst, &args)
        } else {
            return Err(broken(value, "a value that is the same in all iterations"));
        };
        self.uniform.insert(value, made);
        Ok(made)
    }

    /// Returns a value as a vector of this type.
    fn lanes(&mut self, value: Value, ty: Type) -> Result<Value, CompileError> {
        let value = self.emitter.func.dfg.resolve_aliases(value);
        if let Some(&known) = self.vectors.get(&value) {
            return Ok(known);
        }
        match self.emitter.plan.kind(value)? {
            Kind::Uniform => {
                let scalar = self.uniform(value)?;
                if let Some(&known) = self.splats.get(&(scalar, ty)) {
                    return Ok(known);
                }
                let splat = self.setup().ins().splat(ty, scalar);
                self.splats.insert((scalar, ty), splat);
                Ok(splat)
            }
            Kind::Lanes(_) | Kind::Mask(_) => {
                let lanes = match self.emitter.plan.shape.param_values.get(&value) {
                    Some(&ParamValue::Same(same)) => self.lanes(same, ty)?,
                    Some(&ParamValue::Either { condition, yes, no }) => self.choice(condition, yes, no, ty)?,
                    None => return Err(broken(value, "an instruction before its uses")),
                };
                self.vectors.insert(value, lanes);
                Ok(lanes)
            }
        }
    }

    /// Emits a bitcast.
    fn cast(&mut self, value: Value, ty: Type) -> Value {
        if self.emitter.func.dfg.value_type(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.body().ins().bitcast(ty, flags, value)
    }

    fn choice(&mut self, condition: Value, yes: Value, no: Value, ty: Type) -> Result<Value, CompileError> {
        let (yes, no) = (self.lanes(yes, ty)?, self.lanes(no, ty)?);
        if self.emitter.plan.kind(condition)? == Kind::Uniform {
            let condition = self.uniform(condition)?;
            return Ok(self.body().ins().select(condition, yes, no));
        }
        let mask = self.lanes(condition, ty)?;
        let mask = self.cast(mask, ty);
        Ok(self.body().ins().bitselect(mask, yes, no))
    }

    /// Emits a vector with lanes of another width. The upper bits of widened lanes are undefined.
    fn reinterpret(&mut self, value: Value, ty: Type) -> Value {
        let mut calls = std::mem::take(&mut self.emitter.calls);
        let result = calls.reinterpret(&mut self.body(), value, ty);
        self.emitter.calls = calls;
        result
    }

    fn shuffle(&mut self, block: Block, value: Value, index: Value) -> Value {
        let mut calls = std::mem::take(&mut self.emitter.calls);
        let result = calls.shuffle(&mut self.emitter.at(block), value, index);
        self.emitter.calls = calls;
        result
    }

    /// Emits the extension of narrow lanes.
    fn extend(&mut self, value: Value, from: Type, to: Type, extension: Extension) -> Value {
        let bits = from.bits();
        let wide = self.reinterpret(value, to);
        let element = to.lane_type();
        match extension {
            Extension::None => wide,
            Extension::Zeros => {
                let mask = self.setup().ins().iconst(element, (1i64 << bits) - 1);
                let mask = self.setup().ins().splat(to, mask);
                self.body().ins().band(wide, mask)
            }
            Extension::Sign => {
                let mut cursor = self.body();
                let amount = cursor.ins().iconst(types::I32, i64::from(element.bits() - bits));
                let high = cursor.ins().ishl(wide, amount);
                cursor.ins().sshr(high, amount)
            }
        }
    }

    fn instruction(&mut self, inst: Inst) -> Result<(), CompileError> {
        let plan = self.emitter.plan;
        let srcloc = self.emitter.func.srcloc(inst);
        let before = self.emitter.func.layout.last_inst(self.emitter.body);
        if let Some(number) = plan.accesses.iter().position(|access| access.inst == inst) {
            if plan.accesses[number].store {
                self.store(number)?;
            } else {
                let value = self.load(number)?;
                self.vectors.insert(self.emitter.func.dfg.first_result(inst), value);
            }
        } else {
            let value = self.operation(inst)?;
            self.vectors.insert(self.emitter.func.dfg.first_result(inst), value);
        }
        // The source location.
        if !srcloc.is_default() {
            let body = self.emitter.body;
            let layout = &self.emitter.func.layout;
            let first = before.map_or(layout.first_inst(body), |before| layout.next_inst(before));
            let made: Vec<Inst> = std::iter::successors(first, |&inst| layout.next_inst(inst)).collect();
            for inst in made {
                self.emitter.func.set_srcloc(inst, srcloc);
            }
        }
        Ok(())
    }

    fn operation(&mut self, inst: Inst) -> Result<Value, CompileError> {
        let func = &self.emitter.func;
        let data = func.dfg.insts[inst];
        let opcode = data.opcode();
        let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        let of = |value: Value| func.dfg.value_type(value);
        let result = func.dfg.first_result(inst);
        let scalar = of(result);
        let from = args.first().map_or(scalar, |&arg| of(arg));
        let plan = self.emitter.plan;
        let kind = plan.kind(result)?;
        let first_kind = args.first().map(|&arg| plan.kind(arg)).transpose()?;
        let of_mask = matches!(first_kind, Some(Kind::Mask(_)));
        // The lanes of an operand, for operations whose operand type differs from the result type.
        let operands = || vector_type(from, result);
        if let (Kind::Mask(mask), Some(negates)) = (kind, values::negates(func, inst))
            && of_mask
        {
            let lanes = self.lanes(args[0], mask)?;
            return Ok(if negates { self.body().ins().bnot(lanes) } else { lanes });
        }
        Ok(match (opcode, data, kind) {
            (_, InstructionData::IntCompare { cond, .. }, _) => {
                let (a, b) = (self.lanes(args[0], operands()?)?, self.lanes(args[1], operands()?)?);
                self.body().ins().icmp(cond, a, b)
            }
            (_, InstructionData::FloatCompare { cond, .. }, _) => {
                let (a, b) = (self.lanes(args[0], operands()?)?, self.lanes(args[1], operands()?)?);
                self.body().ins().fcmp(cond, a, b)
            }
            (_, _, Kind::Mask(mask)) => {
                let (a, b) = (self.lanes(args[0], mask)?, self.lanes(args[1], mask)?);
                binary(&mut self.body(), opcode, mask, a, b)
            }
            (_, _, Kind::Uniform) => self.uniform(result)?,
            (Opcode::Uextend, _, Kind::Lanes(ty)) if of_mask => {
                let mask = self.lanes(args[0], ty)?;
                let mask = self.cast(mask, ty);
                let one = self.setup().ins().iconst(ty.lane_type(), 1);
                let one = self.setup().ins().splat(ty, one);
                self.body().ins().band(mask, one)
            }
            (Opcode::Uextend | Opcode::Sextend, _, Kind::Lanes(ty)) => {
                let lanes = self.lanes(args[0], operands()?)?;
                let extension = if opcode == Opcode::Uextend {
                    Extension::Zeros
                } else {
                    Extension::Sign
                };
                self.extend(lanes, from, ty, extension)
            }
            (Opcode::Ireduce, _, Kind::Lanes(ty)) => {
                let lanes = self.lanes(args[0], operands()?)?;
                self.reinterpret(lanes, ty)
            }
            (Opcode::Bitcast, _, Kind::Lanes(ty)) => {
                let lanes = self.lanes(args[0], operands()?)?;
                self.cast(lanes, ty)
            }
            (Opcode::Select, _, Kind::Lanes(ty)) => self.choice(args[0], args[1], args[2], ty)?,
            (
                Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr,
                InstructionData::Binary { .. },
                Kind::Lanes(ty),
            ) => {
                let lanes = self.lanes(args[0], ty)?;
                let amount = self.uniform(args[1])?;
                binary(&mut self.body(), opcode, ty, lanes, amount)
            }
            (_, _, Kind::Lanes(ty)) => {
                let lanes = args.iter().map(|&arg| self.lanes(arg, ty));
                let lanes: Vec<Value> = lanes.collect::<Result<_, _>>()?;
                let mut cursor = self.body();
                match *lanes.as_slice() {
                    [a] => {
                        let (inst, dfg) = cursor.ins().Unary(opcode, ty, a);
                        dfg.first_result(inst)
                    }
                    [a, b] => binary(&mut cursor, opcode, ty, a, b),
                    [a, b, c] => {
                        let (inst, dfg) = cursor.ins().Ternary(opcode, ty, a, b, c);
                        dfg.first_result(inst)
                    }
                    _ => return Err(broken(inst, "an operation on one to three values")),
                }
            }
        })
    }

    /// Returns the pointer and the offset for an access. The pointer grows by `bytes` in each
    /// iteration.
    fn pointer(&mut self, sum: &LinearSum, bytes: u32) -> (Value, i32) {
        let offset = sum.constant.cast_signed();
        let same = |known: &&(LinearSum, u32, Value)| known.0.terms == sum.terms && known.1 == bytes;
        if let Some(known) = self.pointers.iter().find(same) {
            return (known.2, offset);
        }
        let setup = self.emitter.setup;
        let start = self.emitter.base(setup, sum);
        let pointer = self.moving_pointer(start, bytes);
        self.pointers.push((sum.clone(), bytes, pointer));
        (pointer, offset)
    }

    /// Emits a pointer that starts at `start` and grows by `bytes` in each iteration.
    fn moving_pointer(&mut self, start: Value, bytes: u32) -> Value {
        if let Some(position) = self.counter {
            // With a constant trip count, an address computed from the counter lets later loop
            // passes choose.
            let counter = self.emitter.carried[position].param;
            let mut cursor = self.body();
            let distance = cursor.ins().iconst(types::I32, i64::from(bytes.trailing_zeros()));
            let distance = cursor.ins().ishl(counter, distance);
            return cursor.ins().iadd(start, distance);
        }
        let position = self.carry(start);
        let param = self.emitter.carried[position].param;
        let mut cursor = self.body();
        let distance = cursor.ins().iconst(types::I32, i64::from(bytes));
        let next = cursor.ins().iadd(param, distance);
        self.emitter.carried[position].next = next;
        self.counting.get_or_insert((position, bytes));
        param
    }

    /// Converts a mask of all ones or zeros to the result of a CLIF compare: 1 or 0 in an i8.
    fn mask_to_bool(&mut self, mask: Value) -> Value {
        let bytes = self.reinterpret(mask, types::I8X16);
        let one = self.setup().ins().iconst(types::I8, 1);
        let one = self.setup().ins().splat(types::I8X16, one);
        self.body().ins().band(bytes, one)
    }

    fn store(&mut self, number: usize) -> Result<(), CompileError> {
        let access = &self.emitter.plan.accesses[number];
        let (bytes, element) = (access.bytes(), access.element);
        let ty = vector_type(element, access.inst)?;
        let value = self.emitter.func.dfg.inst_args(access.inst)[0];
        let own = self.emitter.func.dfg.value_type(value);
        let mut lanes = match self.emitter.plan.kind(value)? {
            Kind::Mask(mask) => {
                let mask = self.lanes(value, mask)?;
                self.mask_to_bool(mask)
            }
            Kind::Lanes(_) | Kind::Uniform => self.lanes(value, vector_type(own, value)?)?,
        };
        if own != element {
            lanes = self.reinterpret(lanes, ty);
        }
        let (pointer, offset) = self.pointer(&access.near, bytes);
        let flags = vector_flags(access.flags);
        let inst = self.body().ins().store(flags, lanes, pointer, offset);
        self.emitter.claims.parts.push((inst, number, Part::Whole));
        Ok(())
    }

    fn load(&mut self, number: usize) -> Result<Value, CompileError> {
        let plan = self.emitter.plan;
        let access = &plan.accesses[number];
        let ty = vector_type(access.element, access.inst)?;
        let loaded = match access.form {
            Form::TwoLines(position) => {
                let words = self.two_lines(number, position);
                if access.size() < types::I32.bytes() {
                    self.reinterpret(words, ty)
                } else {
                    self.cast(words, ty)
                }
            }
            _ => {
                let (pointer, offset) = self.pointer(&access.near, access.bytes());
                let flags = vector_flags(access.flags);
                let loaded = self.body().ins().load(ty, flags, pointer, offset);
                self.claim(loaded, number, Part::Whole);
                loaded
            }
        };
        let wide = self
            .emitter
            .func
            .dfg
            .value_type(self.emitter.func.dfg.first_result(access.inst));
        Ok(match access.extension {
            Extension::None => loaded,
            extension => self.extend(loaded, access.element, vector_type(wide, access.inst)?, extension),
        })
    }

    /// Emits a load of sixteen elements from two lines (vectors at aligned addresses). Shuffles
    /// move the elements of each line to their lanes. `position` is the index of the last element in
    /// its line.
    fn two_lines(&mut self, number: usize, position: Option<u32>) -> Value {
        let plan = self.emitter.plan;
        let (access, carries) = (&plan.accesses[number], plan.may_carry[number]);
        let (size, line) = (access.size(), access.bytes().cast_signed());
        let last_lane = LANES - 1;
        // The pointers and offsets of the last and first line, the shuffle indices, and the lanes
        // of the last line.
        let (pointer, last, first, index, mask);
        match position {
            Some(position) => {
                let (base, offset) = self.pointer(&access.near, access.bytes());
                pointer = (base, base);
                last = offset.wrapping_add((last_lane * size).cast_signed() - (position * size).cast_signed());
                first = last.wrapping_sub(line);
                let setup = self.emitter.setup;
                index = self
                    .emitter
                    .lane_numbers(setup, types::I32X16, |lane| (lane + position + 1) % LANES);
                mask = self.emitter.lane_numbers(setup, types::I32X16, |lane| {
                    if lane + position >= last_lane { u32::MAX } else { 0 }
                });
            }
            None => {
                let setup = self.emitter.setup;
                let address = self.emitter.first_address(setup, access);
                let end = self.emitter.plus(setup, address, last_lane * size);
                let numbers = self.emitter.lane_numbers(setup, types::I32X16, |lane| lane);
                let mut cursor = self.setup();
                let whole = cursor.ins().iconst(types::I32, -i64::from(line));
                let last_line = cursor.ins().band(end, whole);
                let first_line = cursor.ins().band(address, whole);
                let element = match size.trailing_zeros() {
                    0 => end,
                    distance => {
                        let distance = cursor.ins().iconst(types::I32, i64::from(distance));
                        cursor.ins().ushr(end, distance)
                    }
                };
                let lanes = cursor.ins().iconst(types::I32, i64::from(last_lane));
                let position = cursor.ins().band(element, lanes);
                let one = cursor.ins().iconst(types::I32, 1);
                let distance = cursor.ins().iadd(position, one);
                let distance = cursor.ins().splat(types::I32X16, distance);
                let sum = cursor.ins().iadd(numbers, distance);
                let lanes_of = cursor.ins().splat(types::I32X16, lanes);
                index = cursor.ins().band(sum, lanes_of);
                // The lanes from 15 - position upwards.
                let least = cursor.ins().isub(lanes, position);
                let least = cursor.ins().splat(types::I32X16, least);
                mask = cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, numbers, least);
                let bytes = access.bytes();
                let first_pointer = if carries {
                    first_line
                } else {
                    self.moving_pointer(first_line, bytes)
                };
                pointer = (self.moving_pointer(last_line, bytes), first_pointer);
                (last, first) = (0, 0);
            }
        }
        let body = self.emitter.body;
        let last_words = self.line((number, Part::LastLine), pointer.0, last, carries);
        let last_words = self.shuffle(body, last_words, index);
        let first_words = if carries {
            // The last line of the previous iteration.
            let setup = self.emitter.setup;
            let start = match position {
                Some(_) => self.emitter.base(setup, &access.near),
                None => pointer.1,
            };
            let line = self.words_at(setup, (number, Part::FirstLine), start, first);
            let start = self.shuffle(setup, line, index);
            let position = self.carry(start);
            self.emitter.carried[position].next = last_words;
            self.emitter.carried[position].param
        } else {
            let line = self.line((number, Part::FirstLine), pointer.1, first, carries);
            self.shuffle(body, line, index)
        };
        self.body().ins().bitselect(mask, last_words, first_words)
    }

    /// Loads a line. With `once`, reuses a line loaded in this iteration.
    fn line(&mut self, part: (usize, Part), pointer: Value, offset: i32, once: bool) -> Value {
        let key = (pointer, offset, self.emitter.plan.accesses[part.0].element);
        if once && let Some(&known) = self.lines.get(&key) {
            return known;
        }
        let loaded = self.words_at(self.emitter.body, part, pointer, offset);
        if once {
            self.lines.insert(key, loaded);
        }
        loaded
    }

    /// Records the part of the access that a vector load covers.
    fn claim(&mut self, loaded: Value, number: usize, part: Part) {
        if let ValueDef::Result(inst, _) = self.emitter.func.dfg.value_def(loaded) {
            self.emitter.claims.parts.push((inst, number, part));
        }
    }

    /// Loads an aligned vector of an access's elements, as words.
    fn words_at(&mut self, block: Block, (number, part): (usize, Part), pointer: Value, offset: i32) -> Value {
        let access = &self.emitter.plan.accesses[number];
        let ty = vector_of(access.element.as_int()).unwrap_or(types::I32X16);
        let flags = vector_flags(access.flags);
        let mut cursor = self.emitter.at(block);
        let loaded = cursor.ins().load(ty, flags, pointer, offset);
        self.claim(loaded, number, part);
        let mut calls = std::mem::take(&mut self.emitter.calls);
        let words = calls.reinterpret(&mut self.emitter.at(block), loaded, types::I32X16);
        self.emitter.calls = calls;
        words
    }
}

/// Returns the vector type of sixteen elements of this type.
fn vector_type(element: Type, at: impl fmt::Display) -> Result<Type, CompileError> {
    vector_of(element).ok_or_else(|| broken(at, "a type that lanes have"))
}
