//! What is to become of a loop: everything that is known before anything is changed.

use super::access::{Access, Addresses, AlignmentCheck, Form};
use super::cost;
use super::depend::{self, Check};
use super::reduction::{self, Reduction};
use super::shape::{Passed, Shape};
use super::values::{self, Kind, ROUNDS, Values};
use crate::error::CompileError;
use crate::legalize::Legality;
use crate::remarks::{Reason, Vectorised};
use crate::shape::vector_of;
use clif_opt::loops::{self, Induction, NaturalLoop, Ranges};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Inst, StackSlot, Value, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// How far values that are used after the loop are followed.
const DEPTH: u32 = 8;

/// Where the last rounds are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// By the scalar loop, always.
    Loop,
    /// By the scalar loop, if any are left. These values of the loop are used later.
    Leave(Vec<Value>),
}

impl Tail {
    /// The values that are used later, if the vector loop may be the end.
    pub fn escapes(&self) -> Option<&[Value]> {
        match self {
            Self::Loop => None,
            Self::Leave(escapes) => Some(escapes),
        }
    }
}

/// What is to become of a loop.
#[derive(Debug)]
pub struct Plan {
    /// The loop.
    pub lp: NaturalLoop,
    /// Its shape.
    pub shape: Shape,
    /// Its variables.
    pub variables: Vec<Induction>,
    /// Its reductions.
    pub reductions: Vec<Reduction>,
    /// Its accesses.
    pub accesses: Vec<Access>,
    /// The tests of alignment in front of the vector loop.
    pub alignment: Vec<AlignmentCheck>,
    /// The tests in front of the vector loop that accesses do not overlap.
    pub checks: Vec<Check>,
    /// The accesses that may take over what they loaded in the round before.
    pub may_carry: Vec<bool>,
    /// What values are.
    pub kinds: FxHashMap<Value, Kind>,
    /// The instructions that are done on lanes.
    pub lanewise: FxHashSet<Inst>,
    /// The variables that are needed as lanes.
    pub counting: Vec<Value>,
    /// Where the last rounds are done.
    pub tail: Tail,
    /// How many rounds the vector loop and what follows it do, if that is known; one less than there are if the last one is done by
    /// the scalar loop in any case.
    pub rounds: Option<u64>,
    /// Slots that have to be aligned to lines.
    pub aligned_slots: Vec<StackSlot>,
    /// What is said about it.
    pub summary: Vectorised,
}

impl Plan {
    /// What a value is.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if planning did not reach the value.
    pub fn kind(&self, value: Value) -> Result<Kind, CompileError> {
        let known = self.kinds.get(&value).copied();
        known.ok_or_else(|| broken(value, "a value that planning has classified"))
    }

    /// A plan for an innermost loop.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn of(
        ctx: &Context,
        legality: Legality<'_>,
        all: &[NaturalLoop],
        ranges: &Ranges,
        lp: &NaturalLoop,
    ) -> Result<Self, Reason> {
        let func = &ctx.func;
        let shape = Shape::of(ctx, lp)?;
        let variables = loops::inductions(func, lp);
        let most = shape
            .known()
            .or_else(|| Some(loops::most_rounds(func, lp, &shape.exit, ranges)?.saturating_sub(1)))
            .map(|before| before.saturating_add(shape.at_end.into()));
        if let Some(most) = most.filter(|&most| most < ROUNDS) {
            return Err(Reason::FewRounds(most));
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
                    // It would be done whether the block is passed or not.
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
        // What is loaded for nobody is not loaded.
        accesses.retain(|access| access.form == Form::OnePlace || values.lanewise.contains(&access.inst));
        if accesses.iter().all(|access| access.form == Form::OnePlace) {
            return Err(Reason::NoArrays);
        }
        let alignment = addresses.choose_forms(&mut accesses)?;
        let known = shape.known().map(|before| before + u64::from(shape.at_end));
        // Iterations are counted in 32 bits.
        if known.is_some_and(|known| u32::try_from(known).is_err()) {
            return Err(Reason::NotCounted);
        }
        let dependences = depend::find(func, &accesses, known, ranges)?;
        let tail = tail(func, lp, &shape, &values);
        let leaves = tail != Tail::Loop;
        let rounds = shape.known().map(|before| before + u64::from(leaves));
        if let Some(few) = rounds.filter(|&rounds| rounds < ROUNDS) {
            return Err(Reason::FewRounds(few));
        }
        let costs = cost::of(
            &values,
            &accesses,
            &alignment.checks,
            &dependences.checks,
            &dependences.may_carry,
        );
        costs.decide(rounds, most)?;
        let unaligned = |access: &&Access| matches!(access.form, Form::TwoLines(_));
        let summary = Vectorised {
            lanes: ROUNDS as u32,
            rounds: known,
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
            rounds,
            aligned_slots: alignment.slots,
            summary,
            shape,
        })
    }
}

/// The error for a broken invariant of the pass.
pub fn broken(at: impl fmt::Display, expected: &'static str) -> CompileError {
    CompileError::internal("vectorize", at, expected)
}

/// Whether the vector loop may be the end: all that is used later is known there.
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

/// Whether what the value was in the last round is known after the vector loop.
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
    match (func.dfg.value_def(value), shape.passed.get(&value)) {
        (_, Some(&Passed::Same(same))) => of(same),
        (_, Some(Passed::Either { .. })) => false,
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
