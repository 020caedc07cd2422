//! Emits the vector loop before the scalar loop.
//!
//! ```text
//! decide:  enough iterations, aligned, no overlap? if not: header
//! setup:   invariant values, start values of the vector loop
//! body:    sixteen iterations; while sixteen more remain: body
//! after:   results of reductions; if iterations remain: header, else: leave
//! ```

use super::access::{Access, Form};
use super::depend::Check;
use super::lanes;
use super::plan::{Plan, Tail, broken};
use super::reduction::Reduction;
use super::shape::{ExitTest, ParamValue};
use super::values::ITERATIONS_PER_VECTOR;
use crate::error::CompileError;
use crate::intrinsics::PseudoCalls;
use crate::opt::vectorize::check::{AccessClaim, Total, VectorLoop};
use clif_opt::edit::{self, Edge};
use clif_opt::linear::{self, LinearSum};
use clif_opt::loops::{self, Bound, InductionVariable};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, ConstantData, Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, StackSlot, Type, Value,
    ValueDef, types,
};
use npu_mc::machine::{CACHE_LINE, LANES};
use rustc_hash::FxHashMap;

/// The iteration counts of the vector loop.
#[derive(Clone, Copy, Debug)]
pub struct IterationCounts {
    /// All complete iterations, if computed at run time.
    all: Option<Value>,
    /// The iterations that the vector loop executes, a multiple of sixteen.
    pub whole: Value,
}

/// The state of the emission of a vector loop.
pub struct Emitter<'a> {
    /// The function.
    pub func: &'a mut Function,
    /// The plan.
    pub plan: &'a Plan,
    /// Calls that are lowered to instructions.
    pub calls: PseudoCalls,
    /// The block for invariant values of the vector loop.
    pub setup: Block,
    /// The vector loop.
    pub body: Block,
    /// The values of the header's parameters at the start of the vector loop.
    pub starts: FxHashMap<Value, Value>,
    /// The parameters of the vector loop.
    pub carried: Vec<Carried>,
    /// The claims about the loop for the checker.
    pub claims: VectorLoop,
}

/// A parameter of the vector loop.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// The parameter.
    pub param: Value,
    /// The value in the first iteration.
    pub start: Value,
    /// The value in the next iteration, once it is emitted.
    pub next: Value,
}

/// Emits the vector loop. Returns it with the claims for the checker.
///
/// # Errors
///
/// [`CompileError::Internal`] if the function does not match the plan.
pub fn run(func: &mut Function, plan: &Plan) -> Result<VectorLoop, CompileError> {
    for &slot in &plan.aligned_slots {
        align(func, slot);
    }
    let leave = leave(func, plan)?;
    let header = plan.lp.header;
    let mut block = || {
        let block = func.dfg.make_block();
        func.layout.insert_block(block, header);
        block
    };
    let (decide, setup, body, after) = (block(), block(), block(), block());
    let types: Vec<Type> = func.dfg.block_param_types(header).collect();
    let params: Vec<Value> = types
        .iter()
        .map(|&ty| func.dfg.append_block_param(decide, ty))
        .collect();
    for &entry in &plan.lp.entries {
        let args = edit::args(func, entry).ok_or_else(|| broken(entry.inst, "values on the edges to a loop"))?;
        edit::redirect(func, entry, decide, &args);
    }
    let starts = func
        .dfg
        .block_params(header)
        .iter()
        .copied()
        .zip(params.iter().copied())
        .collect();
    let mut emitter = Emitter {
        func,
        plan,
        calls: PseudoCalls::default(),
        setup,
        body,
        starts,
        carried: Vec::new(),
        claims: claims(plan),
    };
    let iterations = emitter.decide(decide, &params);
    let last = lanes::run(&mut emitter, iterations, after)?;
    emitter.finish(after, iterations, leave, &last)?;
    emitter.calls.check()?;
    Ok(VectorLoop {
        decide: Some(decide),
        params,
        setup: Some(setup),
        body: Some(body),
        after: Some(after),
        ..emitter.claims
    })
}

/// Returns the claims of the plan.
fn claims(plan: &Plan) -> VectorLoop {
    let access = |(number, access): (usize, &Access)| AccessClaim {
        inst: access.inst,
        store: access.store,
        size: access.size(),
        stride: access.stride,
        readonly: access.is_readonly(),
        region: access.flags.alias_region(),
        hoisted: access.form == Form::Invariant,
        carried: matches!(access.form, Form::TwoLines(_)) && plan.may_carry[number],
        last: match access.form {
            Form::TwoLines(last) => last,
            _ => None,
        },
    };
    VectorLoop {
        accesses: plan.accesses.iter().enumerate().map(access).collect(),
        tested: plan.alignment.iter().map(|check| check.access).collect(),
        reductions: plan
            .reductions
            .iter()
            .map(|reduction| (reduction.param, reduction.result))
            .collect(),
        escapes: plan.tail.escapes().unwrap_or_default().to_vec(),
        exit: Some(plan.shape.exit.edge),
        ..VectorLoop::default()
    }
}

/// Aligns a slot to cache lines.
fn align(func: &mut Function, slot: StackSlot) {
    let shift = &mut func.sized_stack_slots[slot].align_shift;
    *shift = (*shift).max(CACHE_LINE.trailing_zeros() as u8);
}

/// If the scalar loop may be skipped, creates a block with a parameter for each value that later
/// code uses, and redirects the exit and the uses to it.
fn leave(func: &mut Function, plan: &Plan) -> Result<Option<Block>, CompileError> {
    let Tail::Leave(escapes) = &plan.tail else {
        return Ok(None);
    };
    let exit = plan.shape.exit.edge;
    let (Some(target), Some(args)) = (edit::target(func, exit), edit::args(func, exit)) else {
        return Err(broken(exit.inst, "values on the exit of a loop"));
    };
    let mut outside: FxHashMap<Value, Value> = FxHashMap::default();
    let later: Vec<Block> = func.layout.blocks().filter(|&block| !plan.lp.contains(block)).collect();
    let leave = func.dfg.make_block();
    func.layout.insert_block(leave, plan.lp.header);
    for &value in escapes {
        let ty = func.dfg.value_type(value);
        outside.insert(value, func.dfg.append_block_param(leave, ty));
    }
    // Other values stay unchanged.
    let new = |func: &Function, value: Value| {
        let value = func.dfg.resolve_aliases(value);
        outside.get(&value).copied().unwrap_or(value)
    };
    for block in later {
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            let changes = func
                .dfg
                .inst_values(inst)
                .any(|value| outside.contains_key(&func.dfg.resolve_aliases(value)));
            if changes {
                let mapped: Vec<Value> = func.dfg.inst_values(inst).map(|value| new(func, value)).collect();
                func.dfg.overwrite_inst_values(inst, mapped.into_iter());
            }
        }
    }
    let args: Vec<Value> = args.into_iter().map(|arg| new(func, arg)).collect();
    edit::redirect(func, exit, leave, escapes);
    let mut cursor = FuncCursor::new(func).at_bottom(leave);
    let jump = cursor.ins().jump(target, &[]);
    edit::redirect(func, Edge { inst: jump, number: 0 }, target, &args);
    Ok(Some(leave))
}

/// Emits a constant of up to 64 bits, truncated to the type.
fn number(cursor: &mut FuncCursor<'_>, ty: Type, number: u64) -> Value {
    let unused = 64 - ty.bits();
    cursor.ins().iconst(ty, (number << unused).cast_signed() >> unused)
}

/// Returns the flags of an access to a whole vector or line.
pub fn vector_flags(flags: MemFlagsData) -> MemFlagsData {
    flags.with_aligned().with_endianness(Endianness::Little)
}

impl Emitter<'_> {
    /// Returns a cursor at the end of a block.
    pub fn at(&mut self, block: Block) -> FuncCursor<'_> {
        FuncCursor::new(self.func).at_bottom(block)
    }

    /// Returns the terms of a sum with the start values of the loop.
    fn start_terms(&self, sum: &LinearSum) -> Vec<(Value, u32)> {
        // Every term is a header parameter or invariant.
        let start = |value: Value| self.starts.get(&value).copied().unwrap_or(value);
        sum.terms
            .iter()
            .map(|&(value, factor)| (start(value), factor))
            .collect()
    }

    /// Emits the terms of a sum with the start values of the loop, without the constant.
    pub fn base(&mut self, block: Block, sum: &LinearSum) -> Value {
        let terms = self.start_terms(sum);
        let mut cursor = self.at(block);
        match linear::add_terms(&mut cursor, None, &terms) {
            Some(base) => base,
            None => cursor.ins().iconst(types::I32, 0),
        }
    }

    /// Emits the address of an access in the first iteration.
    pub fn first_address(&mut self, block: Block, access: &Access) -> Value {
        let base = self.base(block, &access.near);
        self.plus(block, base, access.near.constant)
    }

    /// Emits the sum of a value and a constant.
    pub fn plus(&mut self, block: Block, value: Value, constant: u32) -> Value {
        if constant == 0 {
            return value;
        }
        let mut cursor = self.at(block);
        let constant = number(&mut cursor, types::I32, constant.into());
        cursor.ins().iadd(value, constant)
    }

    /// Emits the tests before the vector loop.
    fn decide(&mut self, decide: Block, params: &[Value]) -> IterationCounts {
        let mut conditions = Vec::new();
        let iterations = match self.plan.iterations {
            Some(iterations) => {
                let whole = iterations & !(ITERATIONS_PER_VECTOR - 1);
                IterationCounts {
                    all: None,
                    whole: number(&mut self.at(decide), types::I32, whole),
                }
            }
            None => self.count(decide, params, &mut conditions),
        };
        let counted = conditions.len();
        self.check_alignment(decide, &mut conditions);
        let aligned = conditions.len();
        for check in &self.plan.checks {
            self.emit_check(decide, check, iterations.whole, &mut conditions);
        }
        self.claims.counted = conditions[..counted].to_vec();
        self.claims.aligned = conditions[counted..aligned].to_vec();
        self.claims.disjoint = conditions[aligned..].to_vec();
        self.claims.whole = Some(iterations.whole);
        self.claims.total = match (&self.plan.tail, iterations.all, self.plan.iterations) {
            (Tail::Leave(_), Some(all), _) => Total::Counted(all),
            (Tail::Leave(_), None, Some(all)) => Total::Constant(all),
            _ => Total::Unknown,
        };
        let (setup, header) = (self.setup, self.plan.lp.header);
        let mut cursor = self.at(decide);
        let all = conditions.into_iter().reduce(|all, one| cursor.ins().band(all, one));
        match all {
            None => {
                cursor.ins().jump(setup, &[]);
            }
            Some(all) => {
                let branch = cursor.ins().brif(all, setup, &[], header, &[]);
                let edge = Edge {
                    inst: branch,
                    number: 1,
                };
                edit::redirect(self.func, edge, header, params);
            }
        }
        iterations
    }

    /// Emits the trip count.
    fn count(&mut self, decide: Block, params: &[Value], conditions: &mut Vec<Value>) -> IterationCounts {
        let shape = &self.plan.shape;
        let exit = shape.exit;
        let variable = exit.variable;
        let (ty, shift, up, exit_test) = (variable.ty, shape.shift, shape.up, shape.exit_test);
        let least = self.plan.least;
        let leaves = matches!(self.plan.tail, Tail::Leave(_));
        let mut cursor = self.at(decide);
        let bound = match exit.bound {
            Bound::Constant(bound) => number(&mut cursor, ty, bound),
            Bound::Value(value) => value,
        };
        let mut first = params[variable.index];
        if exit.offset != 0 {
            let offset = number(&mut cursor, ty, exit.offset);
            first = cursor.ins().iadd(first, offset);
        }
        let distance = if up {
            cursor.ins().isub(bound, first)
        } else {
            cursor.ins().isub(first, bound)
        };
        match exit_test {
            ExitTest::Equality if shift > 0 => {
                let odd = number(&mut cursor, ty, (1 << shift) - 1);
                let remainder = cursor.ins().band(distance, odd);
                let zero = number(&mut cursor, ty, 0);
                conditions.push(cursor.ins().icmp(IntCC::Equal, remainder, zero));
            }
            ExitTest::Equality => {}
            ExitTest::Order(stays) => {
                conditions.push(cursor.ins().icmp(stays.without_equal(), first, bound));
            }
        }
        let mut iterations = distance;
        if shift > 0 {
            let shift = number(&mut cursor, ty, shift.into());
            iterations = cursor.ins().ushr(iterations, shift);
        }
        if leaves {
            // Includes the iteration with the exit test.
            let one = number(&mut cursor, ty, 1);
            iterations = cursor.ins().iadd(iterations, one);
        }
        let few = number(&mut cursor, ty, least - 1);
        conditions.push(cursor.ins().icmp(IntCC::UnsignedGreaterThan, iterations, few));
        let mask = number(&mut cursor, ty, !(ITERATIONS_PER_VECTOR - 1));
        let whole = cursor.ins().band(iterations, mask);
        IterationCounts {
            all: Some(iterations),
            whole,
        }
    }

    fn check_alignment(&mut self, decide: Block, conditions: &mut Vec<Value>) {
        let plan = self.plan;
        let mut bits: Vec<Value> = Vec::new();
        for check in &plan.alignment {
            let address = self.first_address(decide, &plan.accesses[check.access]);
            let mut cursor = self.at(decide);
            let mask = number(&mut cursor, types::I32, (check.modulus - 1).into());
            bits.push(cursor.ins().band(address, mask));
        }
        let mut cursor = self.at(decide);
        if let Some(all) = bits.into_iter().reduce(|all, one| cursor.ins().bor(all, one)) {
            let zero = number(&mut cursor, types::I32, 0);
            conditions.push(cursor.ins().icmp(IntCC::Equal, all, zero));
        }
    }

    fn emit_check(&mut self, decide: Block, check: &Check, whole: Value, conditions: &mut Vec<Value>) {
        let plan = self.plan;
        match *check {
            Check::Distance {
                pair: (a, b),
                forbidden,
            } => {
                let a = self.base(decide, &plan.accesses[a].near);
                let b = self.base(decide, &plan.accesses[b].near);
                let mut cursor = self.at(decide);
                let distance = cursor.ins().isub(b, a);
                let first = number(&mut cursor, types::I32, forbidden.first.into());
                let above = cursor.ins().isub(distance, first);
                let more = number(&mut cursor, types::I32, forbidden.more.into());
                conditions.push(cursor.ins().icmp(IntCC::UnsignedGreaterThan, above, more));
            }
            Check::Disjoint(a, b, bytes) => {
                let starts = [a, b].map(|access| self.first_address(decide, &plan.accesses[access]));
                let mut cursor = self.at(decide);
                for (one, other) in [(0, 1), (1, 0)] {
                    let access = &plan.accesses[[a, b][one]];
                    let mut distance = cursor.ins().isub(starts[other], starts[one]);
                    // In elements: the size of all iterations in bytes may exceed 32 bits.
                    let limit = if access.form == Form::Invariant {
                        number(&mut cursor, types::I32, bytes.into())
                    } else {
                        let shift = access.size().trailing_zeros();
                        if shift > 0 {
                            let shift = number(&mut cursor, types::I32, shift.into());
                            distance = cursor.ins().ushr(distance, shift);
                        }
                        whole
                    };
                    conditions.push(cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, distance, limit));
                }
            }
        }
    }

    /// Emits the block after the vector loop.
    fn finish(
        &mut self,
        after: Block,
        iterations: IterationCounts,
        leave: Option<Block>,
        vectors: &FxHashMap<Value, Value>,
    ) -> Result<(), CompileError> {
        let plan = self.plan;
        let header = plan.lp.header;
        // The header's parameters after the vector loop, and in its last iteration.
        let mut next: FxHashMap<Value, Value> = self.starts.clone();
        let mut last = FxHashMap::default();
        for variable in &plan.variables {
            let start = self.starts[&variable.param];
            let (now, before) = self.advance(after, variable, start, iterations.whole);
            next.insert(variable.param, now);
            last.insert(variable.param, before);
        }
        for reduction in &plan.reductions {
            let Some(&lanes) = vectors.get(&reduction.result) else {
                return Err(broken(reduction.result, "the lanes of a reduction"));
            };
            let total = self.reduce(after, reduction, lanes);
            next.insert(reduction.param, total);
            last.insert(reduction.result, total);
        }
        let params: Vec<Value> = self
            .func
            .dfg
            .block_params(header)
            .iter()
            .map(|param| next[param])
            .collect();
        let Some((leave, escapes)) = leave.zip(plan.tail.escapes()) else {
            let mut cursor = self.at(after);
            let jump = cursor.ins().jump(header, &[]);
            edit::redirect(self.func, Edge { inst: jump, number: 0 }, header, &params);
            return Ok(());
        };
        let escapes: Vec<Value> = escapes
            .iter()
            .map(|&value| self.at_the_end(after, value, &mut last, vectors))
            .collect::<Result<_, _>>()?;
        let mut cursor = self.at(after);
        let branch = match (iterations.all, plan.iterations) {
            (None, Some(all)) if all.is_multiple_of(ITERATIONS_PER_VECTOR) => {
                let jump = cursor.ins().jump(leave, &[]);
                edit::redirect(self.func, Edge { inst: jump, number: 0 }, leave, &escapes);
                return Ok(());
            }
            (None, _) => {
                let jump = cursor.ins().jump(header, &[]);
                edit::redirect(self.func, Edge { inst: jump, number: 0 }, header, &params);
                return Ok(());
            }
            (Some(all), _) => {
                let none = cursor.ins().icmp(IntCC::Equal, all, iterations.whole);
                cursor.ins().brif(none, leave, &[], header, &[])
            }
        };
        let edge = |number| Edge { inst: branch, number };
        edit::redirect(self.func, edge(0), leave, &escapes);
        edit::redirect(self.func, edge(1), header, &params);
        Ok(())
    }

    /// Emits the value of an induction variable after the iterations, and in the last of them.
    fn advance(
        &mut self,
        block: Block,
        variable: &InductionVariable,
        start: Value,
        iterations: Value,
    ) -> (Value, Value) {
        let ty = variable.ty;
        let mut cursor = self.at(block);
        let iterations = match ty {
            types::I64 => cursor.ins().uextend(ty, iterations),
            types::I32 => iterations,
            _ => cursor.ins().ireduce(ty, iterations),
        };
        let step = number(&mut cursor, ty, variable.step);
        let distance = if variable.step == 1 {
            iterations
        } else {
            cursor.ins().imul(iterations, step)
        };
        let now = cursor.ins().iadd(start, distance);
        let before = cursor.ins().isub(now, step);
        (now, before)
    }

    /// Emits the result of a reduction: the lanes and the initial value.
    fn reduce(&mut self, block: Block, reduction: &Reduction, lanes: Value) -> Value {
        let start = self.starts[&reduction.param];
        let ty = self.func.dfg.value_type(lanes);
        let opcode = reduction.opcode;
        let mut sum = lanes;
        let mut distance = LANES / 2;
        while distance > 0 {
            let moved = self.rotate(block, sum, distance);
            let mut cursor = self.at(block);
            sum = binary(&mut cursor, opcode, ty, sum, moved);
            distance /= 2;
        }
        let mut cursor = self.at(block);
        let sum = cursor.ins().extractlane(sum, 0);
        if reduction.identity().is_some() {
            binary(&mut cursor, opcode, reduction.ty, start, sum)
        } else {
            // Every lane started with the initial value.
            sum
        }
    }

    /// Rotates the lanes of a vector down by a distance.
    fn rotate(&mut self, block: Block, lanes: Value, distance: u32) -> Value {
        let ty = self.func.dfg.value_type(lanes);
        let index = self.lane_numbers(block, types::I32X16, |lane| (lane + distance) % LANES);
        let mut calls = std::mem::take(&mut self.calls);
        let mut cursor = self.at(block);
        let words = calls.reinterpret(&mut cursor, lanes, types::I32X16);
        let moved = calls.shuffle(&mut cursor, words, index);
        let moved = calls.reinterpret(&mut cursor, moved, ty);
        self.calls = calls;
        moved
    }

    /// Emits a constant vector of integers.
    pub fn lane_numbers(&mut self, block: Block, ty: Type, of: impl Fn(u32) -> u32) -> Value {
        let size = ty.lane_type().bytes() as usize;
        let bytes: Vec<u8> = (0..LANES)
            .flat_map(|lane| of(lane).to_le_bytes().into_iter().take(size))
            .collect();
        let constant = self.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.at(block).ins().vconst(ty, constant)
    }

    /// Emits the value of the last iteration.
    fn at_the_end(
        &mut self,
        block: Block,
        value: Value,
        last: &mut FxHashMap<Value, Value>,
        vectors: &FxHashMap<Value, Value>,
    ) -> Result<Value, CompileError> {
        let value = self.func.dfg.resolve_aliases(value);
        if let Some(&known) = last.get(&value) {
            return Ok(known);
        }
        if !self.plan.lp.contains(loops::defining_block(self.func, value)) {
            return Ok(value);
        }
        let result = if let Some(&ParamValue::Same(same)) = self.plan.shape.param_values.get(&value) {
            self.at_the_end(block, same, last, vectors)?
        } else if let Some(&lanes) = vectors.get(&value) {
            self.at(block).ins().extractlane(lanes, LANES as u8 - 1)
        } else if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) {
            let args: Vec<Value> = self.func.dfg.inst_args(inst).to_vec();
            let args: Vec<Value> = args
                .into_iter()
                .map(|arg| self.at_the_end(block, arg, last, vectors))
                .collect::<Result<_, _>>()?;
            self.copy_inst(block, inst, &args)
        } else {
            return Err(broken(value, "a value that is known after the vector loop"));
        };
        last.insert(value, result);
        Ok(result)
    }

    /// Copies an instruction with other operands to the end of a block.
    pub fn copy_inst(&mut self, block: Block, inst: Inst, args: &[Value]) -> Value {
        let copy = self.func.dfg.clone_inst(inst);
        self.func.layout.append_inst(copy, block);
        let srcloc = self.func.srcloc(inst);
        if !srcloc.is_default() {
            self.func.set_srcloc(copy, srcloc);
        }
        self.func.dfg.inst_args_mut(copy).copy_from_slice(args);
        self.func.dfg.first_result(copy)
    }
}

/// Emits a binary operation.
pub fn binary(cursor: &mut FuncCursor<'_>, opcode: Opcode, ty: Type, a: Value, b: Value) -> Value {
    let (inst, dfg) = cursor.ins().Binary(opcode, ty, a, b);
    dfg.first_result(inst)
}
