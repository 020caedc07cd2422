//! The plan of the vectorization of a loop. Planning does not change the function.

use super::access::{Access, Addresses, AlignmentCheck, Form};
use super::cost;
use super::depend::{self, Check};
use super::reduction::{self, Reduction};
use super::shape::{ParamValue, Shape};
use super::values::{self, ITERATIONS_PER_VECTOR, Kind, Values};
use crate::error::CompileError;
use crate::legalize::Legality;
use crate::remarks::{Reason, Vectorized};
use crate::shape::vector_of;
use clif_opt::loops::{self, InductionVariable, NaturalLoop, Ranges};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Inst, StackSlot, Value, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The maximum depth of definitions that are followed for values with uses after the loop.
const DEPTH: u32 = 8;

/// The code that executes the last iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The scalar loop always executes the last iterations.
    Loop,
    /// The scalar loop executes the remainder, if there is one. These values of the loop have later
    /// uses.
    Leave(Vec<Value>),
}

impl Tail {
    /// Returns the values with later uses, if the scalar loop may be skipped.
    pub fn escapes(&self) -> Option<&[Value]> {
        match self {
            Self::Loop => None,
            Self::Leave(escapes) => Some(escapes),
        }
    }
}

/// The plan for a loop.
#[derive(Debug)]
pub struct Plan {
    /// The loop.
    pub lp: NaturalLoop,
    /// Its control flow.
    pub shape: Shape,
    /// Its induction variables.
    pub variables: Vec<InductionVariable>,
    /// Its reductions.
    pub reductions: Vec<Reduction>,
    /// Its accesses.
    pub accesses: Vec<Access>,
    /// The alignment tests before the vector loop.
    pub alignment: Vec<AlignmentCheck>,
    /// The overlap tests before the vector loop.
    pub checks: Vec<Check>,
    /// The accesses that may reuse the line of the previous vector iteration.
    pub may_carry: Vec<bool>,
    /// The representations of values.
    pub kinds: FxHashMap<Value, Kind>,
    /// The instructions that execute on lanes.
    pub lanewise: FxHashSet<Inst>,
    /// The induction variables that have uses as lanes.
    pub counting: Vec<Value>,
    /// The code that executes the last iterations.
    pub tail: Tail,
    /// The constant number of iterations for the vector loop and its remainder; excludes the last
    /// iteration if the scalar loop always executes it.
    pub iterations: Option<u64>,
    /// The number of iterations from which the vector loop is executed, if it is not constant.
    pub least: u64,
    /// The stack slots that must be aligned to cache lines.
    pub aligned_slots: Vec<StackSlot>,
    /// The summary for remarks.
    pub summary: Vectorized,
}

impl Plan {
    /// Returns the representation of a value.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if planning did not classify the value.
    pub fn kind(&self, value: Value) -> Result<Kind, CompileError> {
        let known = self.kinds.get(&value).copied();
        known.ok_or_else(|| broken(value, "a value that planning has classified"))
    }

    /// Plans the vectorization of an innermost loop.
    ///
    /// # Errors
    ///
    /// The reason why the loop is not vectorized.
    pub fn of(
        ctx: &Context,
        legality: Legality<'_>,
        all: &[NaturalLoop],
        ranges: &Ranges,
        lp: &NaturalLoop,
    ) -> Result<Self, Reason> {
        let func = &ctx.func;
        let shape = Shape::of(ctx, lp)?;
        let variables = loops::induction_variables(func, lp);
        let most = shape
            .known()
            .or_else(|| Some(loops::max_trip_count(func, lp, &shape.exit, ranges)?.saturating_sub(1)))
            .map(|before| before.saturating_add(shape.at_end.into()));
        if let Some(most) = most.filter(|&most| most < ITERATIONS_PER_VECTOR) {
            return Err(Reason::TooFewIterations(most));
        }
        let addresses = Addresses {
            ctx,
            loops: all,
            lp,
            variables: &variables,
        };
        let mut accesses = Vec::new();
        for &block in &shape.blocks {
            for inst in func.layout.block_insts(block) {
                let opcode = func.dfg.insts[inst].opcode();
                match addresses.of(inst)? {
                    // The vector loop would execute the access unconditionally.
                    Some(_) if shape.optional.contains(&block) => return Err(Reason::Branches(block)),
                    Some(access) => accesses.push(access),
                    None if opcode.is_branch() || values::is_pure(opcode) => {}
                    None => return Err(Reason::Effect(opcode)),
                }
            }
        }
        let reductions = reduction::find(func, lp, &shape, &variables)?;
        let all_accesses = accesses.clone();
        let mut values = Values {
            func,
            legality,
            lp,
            shape: &shape,
            variables: &variables,
            reductions: &reductions,
            accesses: &all_accesses,
            kinds: FxHashMap::default(),
            lanewise: FxHashSet::default(),
            counting: Vec::new(),
        };
        for access in accesses.iter().filter(|access| access.store) {
            let stored = func.dfg.inst_args(access.inst)[0];
            let ty = func.dfg.value_type(stored);
            match values.kind(stored)? {
                Kind::Uniform if vector_of(ty).is_none() => return Err(Reason::Element(ty)),
                _ => {}
            }
            values.lanewise.insert(access.inst);
        }
        for reduction in &reductions {
            values.kind(reduction.result)?;
        }
        // Dead loads are omitted.
        accesses.retain(|access| access.form == Form::Invariant || values.lanewise.contains(&access.inst));
        if accesses.iter().all(|access| access.form == Form::Invariant) {
            return Err(Reason::NoArrays);
        }
        let alignment = addresses.choose_forms(&mut accesses)?;
        let known = shape.known().map(|before| before + u64::from(shape.at_end));
        // The vector loop counts iterations in 32 bits.
        if known.is_some_and(|known| u32::try_from(known).is_err()) {
            return Err(Reason::NotCounted);
        }
        let dependences = depend::find(func, &accesses, known, ranges)?;
        let tail = tail(func, lp, &shape, &values);
        let leaves = tail != Tail::Loop;
        let iterations = shape.known().map(|before| before + u64::from(leaves));
        if let Some(few) = iterations.filter(|&iterations| iterations < ITERATIONS_PER_VECTOR) {
            return Err(Reason::TooFewIterations(few));
        }
        let costs = cost::of(
            &values,
            &accesses,
            &alignment.checks,
            &dependences.checks,
            &dependences.may_carry,
        );
        let least = costs.decide(iterations, most)?;
        let unaligned = |access: &&Access| matches!(access.form, Form::TwoLines(_));
        let summary = Vectorized {
            lanes: ITERATIONS_PER_VECTOR as u32,
            trip_count: known,
            least_trip_count: least as u32,
            reductions: reductions.len(),
            unaligned_loads: accesses.iter().filter(unaligned).count(),
            alignment_check: !alignment.checks.is_empty(),
            overlap_checks: dependences.checks.len(),
            scalar_cost: costs.scalar,
            vector_cost: costs.vector,
        };
        let Values {
            kinds,
            lanewise,
            counting,
            ..
        } = values;
        Ok(Self {
            lp: lp.clone(),
            variables,
            reductions,
            accesses,
            alignment: alignment.checks,
            checks: dependences.checks,
            may_carry: dependences.may_carry,
            kinds,
            lanewise,
            counting,
            tail,
            iterations,
            least,
            aligned_slots: alignment.slots,
            summary,
            shape,
        })
    }
}

/// Returns the error for a broken invariant of the pass.
pub fn broken(at: impl fmt::Display, expected: &'static str) -> CompileError {
    CompileError::internal("vectorize", at, expected)
}

/// Returns whether the scalar loop may be skipped: all values with later uses must be available
/// after the vector loop.
fn tail(func: &Function, lp: &NaturalLoop, shape: &Shape, values: &Values<'_>) -> Tail {
    if !shape.at_end || !shape.is_exact() {
        return Tail::Loop;
    }
    let escapes = values::escaping(func, lp);
    let known = escapes
        .iter()
        .all(|&value| is_known_at_the_end(func, lp, shape, values, value, DEPTH));
    if known { Tail::Leave(escapes) } else { Tail::Loop }
}

/// Returns whether the value of the last iteration is available after the vector loop.
fn is_known_at_the_end(
    func: &Function,
    lp: &NaturalLoop,
    shape: &Shape,
    values: &Values<'_>,
    value: Value,
    depth: u32,
) -> bool {
    let value = func.dfg.resolve_aliases(value);
    let of = |value| depth > 0 && is_known_at_the_end(func, lp, shape, values, value, depth - 1);
    if lp.is_invariant(func, value) || values.reductions.iter().any(|reduction| reduction.result == value) {
        return true;
    }
    if values
        .reductions
        .iter()
        .any(|reduction| reduction.partial.contains(&value))
    {
        return false;
    }
    match (func.dfg.value_def(value), shape.param_values.get(&value)) {
        (_, Some(&ParamValue::Same(same))) => of(same),
        (_, Some(ParamValue::Either { .. })) => false,
        (ValueDef::Result(inst, 0), _) => {
            if values.lanewise.contains(&inst) {
                return matches!(values.kinds.get(&value), Some(Kind::Lanes(_)));
            }
            values::is_pure(func.dfg.insts[inst].opcode()) && func.dfg.inst_args(inst).iter().all(|&arg| of(arg))
        }
        (ValueDef::Param(block, _), _) => {
            block == lp.header && values.variables.iter().any(|variable| variable.param == value)
        }
        _ => false,
    }
}
