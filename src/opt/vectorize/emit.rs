//! The vector loop, in front of the loop that it does rounds of.
//!
//! ```text
//! decide:  are there sixteen rounds, is all aligned, does nothing overlap? if not: header
//! setup:   what does not change, and what the vector loop starts with
//! body:    sixteen rounds; as long as there are as many: body
//! after:   what the sixteen lanes of a reduction come to; the remaining rounds: header; if there are none: leave
//! ```

use super::access::{Access, Form};
use super::depend::Check;
use super::lanes;
use super::plan::{Plan, Tail, broken};
use super::reduction::Reduction;
use super::shape::{Pace, Passed};
use super::values::ROUNDS;
use crate::error::CompileError;
use crate::intrinsics::PseudoCalls;
use crate::opt::vectorize::check::{AccessClaim, Total, VectorLoop};
use clif_opt::edit::{self, Edge};
use clif_opt::linear::{self, Sum};
use clif_opt::loops::{self, Bound, Induction};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, ConstantData, Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, StackSlot, Type, Value,
    ValueDef, types,
};
use npu_mc::machine::{CACHE_LINE, LANES};
use rustc_hash::FxHashMap;

/// How many rounds there are.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// All that can be whole rounds, if that is computed at run time.
    all: Option<Value>,
    /// Those that the vector loop does, a multiple of sixteen.
    pub whole: Value,
}

/// The vector loop that is being made.
pub struct Emitter<'a> {
    /// The function.
    pub func: &'a mut Function,
    /// What is done.
    pub plan: &'a Plan,
    /// Calls that are lowered to instructions.
    pub calls: PseudoCalls,
    /// Makes what does not change in the vector loop.
    pub setup: Block,
    /// The vector loop.
    pub body: Block,
    /// What the header's parameters are where the vector loop starts.
    pub starts: FxHashMap<Value, Value>,
    /// The parameters of the vector loop, with what they start as and what they become.
    pub carried: Vec<Carried>,
    /// What is claimed about the loop, for its check.
    pub claims: VectorLoop,
}

/// A parameter of the vector loop.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// The parameter.
    pub param: Value,
    /// What it is in the first round.
    pub start: Value,
    /// What it is in the next round, once that is known.
    pub next: Value,
}

/// Makes the vector loop. Returns it with the claims that its check needs.
///
/// # Errors
///
/// [`CompileError::Internal`] if the function is not as the plan says.
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
    let rounds = emitter.decide(decide, &params);
    let last = lanes::run(&mut emitter, rounds, after)?;
    emitter.finish(after, rounds, leave, &last)?;
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

/// What the plan claims.
fn claims(plan: &Plan) -> VectorLoop {
    let access = |(number, access): (usize, &Access)| AccessClaim {
        inst: access.inst,
        store: access.store,
        size: access.size(),
        stride: access.stride,
        readonly: access.is_readonly(),
        region: access.flags.alias_region(),
        hoisted: access.form == Form::OnePlace,
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

/// Gives a slot the alignment of a line.
fn align(func: &mut Function, slot: StackSlot) {
    let shift = &mut func.sized_stack_slots[slot].align_shift;
    *shift = (*shift).max(CACHE_LINE.trailing_zeros() as u8);
}

/// If the loop can end with the vector loop: a block for what later code takes from either, with a parameter for each value.
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
    // Values that do not escape from the loop stay as they are.
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

/// A number of a type of up to 64 bits, cut off.
fn number(cursor: &mut FuncCursor<'_>, ty: Type, number: u64) -> Value {
    let unused = 64 - ty.bits();
    cursor.ins().iconst(ty, (number << unused).cast_signed() >> unused)
}

/// The flags of an access of a whole vector, or of a line that it is in.
pub fn vector_flags(flags: MemFlagsData) -> MemFlagsData {
    flags.with_aligned().with_endianness(Endianness::Little)
}

impl Emitter<'_> {
    /// A place at the end of a block.
    pub fn at(&mut self, block: Block) -> FuncCursor<'_> {
        FuncCursor::new(self.func).at_bottom(block)
    }

    /// The terms of a sum where the loop starts.
    fn start_terms(&self, sum: &Sum) -> Vec<(Value, u32)> {
        // A term is a parameter of the header or does not change in the loop.
        let start = |value: Value| self.starts.get(&value).copied().unwrap_or(value);
        sum.terms
            .iter()
            .map(|&(value, factor)| (start(value), factor))
            .collect()
    }

    /// The address of a sum, without its constant, where the loop starts.
    pub fn base(&mut self, block: Block, sum: &Sum) -> Value {
        let terms = self.start_terms(sum);
        let mut cursor = self.at(block);
        match linear::add_terms(&mut cursor, None, &terms) {
            Some(base) => base,
            None => cursor.ins().iconst(types::I32, 0),
        }
    }

    /// The address of an access in the first round.
    pub fn first_address(&mut self, block: Block, access: &Access) -> Value {
        let base = self.base(block, &access.near);
        self.plus(block, base, access.near.constant)
    }

    /// A value and a number.
    pub fn plus(&mut self, block: Block, value: Value, constant: u32) -> Value {
        if constant == 0 {
            return value;
        }
        let mut cursor = self.at(block);
        let constant = number(&mut cursor, types::I32, constant.into());
        cursor.ins().iadd(value, constant)
    }

    /// Ends the block that decides.
    fn decide(&mut self, decide: Block, params: &[Value]) -> Rounds {
        let mut conditions = Vec::new();
        let rounds = match self.plan.rounds {
            Some(rounds) => {
                let whole = rounds & !(ROUNDS - 1);
                Rounds {
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
            self.check_apart(decide, check, rounds.whole, &mut conditions);
        }
        self.claims.counted = conditions[..counted].to_vec();
        self.claims.aligned = conditions[counted..aligned].to_vec();
        self.claims.apart = conditions[aligned..].to_vec();
        self.claims.whole = Some(rounds.whole);
        self.claims.total = match (&self.plan.tail, rounds.all, self.plan.rounds) {
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
        rounds
    }

    /// Computes how many rounds there are at run time.
    fn count(&mut self, decide: Block, params: &[Value], conditions: &mut Vec<Value>) -> Rounds {
        let shape = &self.plan.shape;
        let exit = shape.exit;
        let variable = exit.variable;
        let (ty, shift, up, pace) = (variable.ty, shape.shift, shape.up, shape.pace);
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
        match pace {
            Pace::Meets if shift > 0 => {
                let odd = number(&mut cursor, ty, (1 << shift) - 1);
                let rest = cursor.ins().band(distance, odd);
                let zero = number(&mut cursor, ty, 0);
                conditions.push(cursor.ins().icmp(IntCC::Equal, rest, zero));
            }
            Pace::Meets => {}
            Pace::Stays(stays) => {
                conditions.push(cursor.ins().icmp(stays.without_equal(), first, bound));
            }
        }
        let mut rounds = distance;
        if shift > 0 {
            let shift = number(&mut cursor, ty, shift.into());
            rounds = cursor.ins().ushr(rounds, shift);
        }
        if leaves {
            // With the round that the test is in.
            let one = number(&mut cursor, ty, 1);
            rounds = cursor.ins().iadd(rounds, one);
        }
        let few = number(&mut cursor, ty, ROUNDS - 1);
        conditions.push(cursor.ins().icmp(IntCC::UnsignedGreaterThan, rounds, few));
        let mask = number(&mut cursor, ty, !(ROUNDS - 1));
        let whole = cursor.ins().band(rounds, mask);
        Rounds {
            all: Some(rounds),
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

    fn check_apart(&mut self, decide: Block, check: &Check, whole: Value, conditions: &mut Vec<Value>) {
        let plan = self.plan;
        match *check {
            Check::Apart {
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
                    // In elements: the bytes of all iterations together may be 2^32 and more.
                    let limit = if access.form == Form::OnePlace {
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

    /// Ends the block after the vector loop.
    fn finish(
        &mut self,
        after: Block,
        rounds: Rounds,
        leave: Option<Block>,
        vectors: &FxHashMap<Value, Value>,
    ) -> Result<(), CompileError> {
        let plan = self.plan;
        let header = plan.lp.header;
        // What the header's parameters are after the rounds that were done, and what they were in the last one.
        let mut next: FxHashMap<Value, Value> = self.starts.clone();
        let mut last = FxHashMap::default();
        for variable in &plan.variables {
            let start = self.starts[&variable.param];
            let (now, before) = self.moved(after, variable, start, rounds.whole);
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
        let branch = match (rounds.all, plan.rounds) {
            (None, Some(all)) if all.is_multiple_of(ROUNDS) => {
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
                let none = cursor.ins().icmp(IntCC::Equal, all, rounds.whole);
                cursor.ins().brif(none, leave, &[], header, &[])
            }
        };
        let edge = |number| Edge { inst: branch, number };
        edit::redirect(self.func, edge(0), leave, &escapes);
        edit::redirect(self.func, edge(1), header, &params);
        Ok(())
    }

    /// What a variable is after so many rounds, and what it was in the last of them.
    fn moved(&mut self, block: Block, variable: &Induction, start: Value, rounds: Value) -> (Value, Value) {
        let ty = variable.ty;
        let mut cursor = self.at(block);
        let rounds = match ty {
            types::I64 => cursor.ins().uextend(ty, rounds),
            types::I32 => rounds,
            _ => cursor.ins().ireduce(ty, rounds),
        };
        let step = number(&mut cursor, ty, variable.step);
        let way = if variable.step == 1 {
            rounds
        } else {
            cursor.ins().imul(rounds, step)
        };
        let now = cursor.ins().iadd(start, way);
        let before = cursor.ins().isub(now, step);
        (now, before)
    }

    /// What a reduction is after the vector loop: the lanes and what came before.
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
            // What came before was in every lane.
            sum
        }
    }

    /// The vector with every lane moved down by a distance, the lowest ones to the top.
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

    /// A constant vector of integers.
    pub fn lane_numbers(&mut self, block: Block, ty: Type, of: impl Fn(u32) -> u32) -> Value {
        let size = ty.lane_type().bytes() as usize;
        let bytes: Vec<u8> = (0..LANES)
            .flat_map(|lane| of(lane).to_le_bytes().into_iter().take(size))
            .collect();
        let constant = self.func.dfg.constants.insert(ConstantData::from(bytes.as_slice()));
        self.at(block).ins().vconst(ty, constant)
    }

    /// What a value of the loop was in the last round.
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
        if !self.plan.lp.contains(loops::definition(self.func, value)) {
            return Ok(value);
        }
        let result = if let Some(&Passed::Same(same)) = self.plan.shape.passed.get(&value) {
            self.at_the_end(block, same, last, vectors)?
        } else if let Some(&lanes) = vectors.get(&value) {
            self.at(block).ins().extractlane(lanes, LANES as u8 - 1)
        } else if let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) {
            let args: Vec<Value> = self.func.dfg.inst_args(inst).to_vec();
            let args: Vec<Value> = args
                .into_iter()
                .map(|arg| self.at_the_end(block, arg, last, vectors))
                .collect::<Result<_, _>>()?;
            self.again(block, inst, &args)
        } else {
            return Err(broken(value, "a value that is known after the vector loop"));
        };
        last.insert(value, result);
        Ok(result)
    }

    /// The instruction once more, at the end of a block, with other operands.
    pub fn again(&mut self, block: Block, inst: Inst, args: &[Value]) -> Value {
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

/// An operation on two values of a type.
pub fn binary(cursor: &mut FuncCursor<'_>, opcode: Opcode, ty: Type, a: Value, b: Value) -> Value {
    let (inst, dfg) = cursor.ins().Binary(opcode, ty, a, b);
    dfg.first_result(inst)
}
