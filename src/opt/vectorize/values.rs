//! Classifies the values of an iteration: uniform, lanes or mask in the vector loop. Only values
//! that have a use there are classified.

use super::access::{Access, Form};
use super::reduction::Reduction;
use super::shape::{ParamValue, Shape};
use crate::cost;
use crate::legalize::{Legality, LegalizeAction};
use crate::remarks::Reason;
use crate::shape::vector_of;
use clif_opt::edit;
use clif_opt::loops::{self, InductionVariable, NaturalLoop};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Type, Value, ValueDef};
use npu_mc::machine::LANES;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The representation of a value in the vector loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A scalar that is the same in every iteration.
    Uniform,
    /// A vector of this type with a lane for each iteration.
    Lanes(Type),
    /// A condition for each iteration: all ones or zeros in the lanes of a vector of this type.
    Mask(Type),
}

/// The context of the classification.
pub struct Values<'a> {
    /// The function.
    pub func: &'a Function,
    /// The operations that are legal on lanes.
    pub legality: Legality<'a>,
    /// The loop.
    pub lp: &'a NaturalLoop,
    /// Its control flow.
    pub shape: &'a Shape,
    /// Its induction variables.
    pub variables: &'a [InductionVariable],
    /// Its reductions.
    pub reductions: &'a [Reduction],
    /// Its accesses, in the order of the program.
    pub accesses: &'a [Access],
    /// The representations of the values classified so far.
    pub kinds: FxHashMap<Value, Kind>,
    /// The instructions that execute on lanes.
    pub lanewise: FxHashSet<Inst>,
    /// The induction variables that have uses as lanes.
    pub counting: Vec<Value>,
}

impl Values<'_> {
    /// Classifies a value and everything that it depends on.
    ///
    /// # Errors
    ///
    /// The reason why no vector can represent the value.
    pub fn kind(&mut self, value: Value) -> Result<Kind, Reason> {
        let value = self.func.dfg.resolve_aliases(value);
        if let Some(&known) = self.kinds.get(&value) {
            return Ok(known);
        }
        let kind = self.find(value)?;
        self.kinds.insert(value, kind);
        Ok(kind)
    }

    fn find(&mut self, value: Value) -> Result<Kind, Reason> {
        if self.lp.is_invariant(self.func, value) {
            return Ok(Kind::Uniform);
        }
        let ty = self.func.dfg.value_type(value);
        let inst = match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, 0) => inst,
            ValueDef::Result(inst, _) => {
                return Err(Reason::Operation(self.func.dfg.insts[inst].opcode(), ty));
            }
            ValueDef::Param(..) => return self.param(value, ty),
            ValueDef::Union(..) => return Err(Reason::Carried(ty)),
        };
        if let Some(access) = self.accesses.iter().find(|access| access.inst == inst) {
            if access.form == Form::Invariant {
                return Ok(Kind::Uniform);
            }
            let lanes = vector_of(ty).ok_or(Reason::Element(ty))?;
            self.lanewise.insert(inst);
            return Ok(Kind::Lanes(lanes));
        }
        let func = self.func;
        let args = func.dfg.inst_args(inst);
        let mut kinds: SmallVec<[Kind; 4]> = SmallVec::new();
        for &arg in args {
            kinds.push(self.kind(arg)?);
        }
        let opcode = self.func.dfg.insts[inst].opcode();
        if !is_pure(opcode) {
            return Err(Reason::Effect(opcode));
        }
        if kinds.iter().all(|&kind| kind == Kind::Uniform) {
            return Ok(Kind::Uniform);
        }
        let kind = self.operation(inst, ty, args, &kinds)?;
        self.lanewise.insert(inst);
        Ok(kind)
    }

    fn param(&mut self, value: Value, ty: Type) -> Result<Kind, Reason> {
        if let Some(&param_values) = self.shape.param_values.get(&value) {
            return match param_values {
                ParamValue::Same(value) => self.kind(value),
                ParamValue::Either { condition, yes, no } => {
                    let kinds = [self.kind(condition)?, self.kind(yes)?, self.kind(no)?];
                    if kinds == [Kind::Uniform; 3] {
                        // No instruction outside of the loop computes the value.
                        return Err(Reason::Branches(loops::defining_block(self.func, value)));
                    }
                    self.choice(ty, kinds)
                }
            };
        }
        let lanes = vector_of(ty).ok_or(Reason::Element(ty))?;
        if self.reductions.iter().any(|reduction| reduction.param == value) {
            return Ok(Kind::Lanes(lanes));
        }
        if self.variables.iter().any(|variable| variable.param == value) {
            self.counting.push(value);
            return Ok(Kind::Lanes(lanes));
        }
        Err(Reason::Carried(ty))
    }

    /// Classifies a select between two values.
    fn choice(&self, ty: Type, [condition, yes, no]: [Kind; 3]) -> Result<Kind, Reason> {
        let lanes = vector_of(ty).ok_or(Reason::Element(ty))?;
        let mixed = Reason::MixedWidths(Opcode::Select);
        let wrong = |kind: Kind| matches!(kind, Kind::Mask(_)) || matches!(kind, Kind::Lanes(own) if own != lanes);
        if wrong(yes) || wrong(no) {
            return Err(mixed);
        }
        match condition {
            Kind::Mask(mask) if mask.lane_bits() == lanes.lane_bits() => Ok(Kind::Lanes(lanes)),
            Kind::Uniform => Ok(Kind::Lanes(lanes)),
            Kind::Mask(_) => Err(mixed),
            Kind::Lanes(_) => Err(Reason::Operation(Opcode::Select, lanes)),
        }
    }

    fn operation(&self, inst: Inst, ty: Type, args: &[Value], kinds: &[Kind]) -> Result<Kind, Reason> {
        let data = &self.func.dfg.insts[inst];
        let opcode = data.opcode();
        let of = |value: Value| self.func.dfg.value_type(value);
        let mixed = Reason::MixedWidths(opcode);
        let is_mask = |kind: &Kind| matches!(kind, Kind::Mask(_));
        match opcode {
            Opcode::Icmp | Opcode::Fcmp => {
                let compared = vector_of(of(args[0])).ok_or(Reason::Element(of(args[0])))?;
                if kinds.iter().any(is_mask) {
                    return self.negation(inst, args, kinds).ok_or(mixed);
                }
                self.exists(opcode, compared)?;
                Ok(Kind::Mask(compared.as_truthy()))
            }
            Opcode::Band | Opcode::Bor | Opcode::Bxor if kinds.iter().any(is_mask) => match *kinds {
                [Kind::Mask(a), Kind::Mask(b)] if a == b => Ok(Kind::Mask(a)),
                _ => self.negation(inst, args, kinds).ok_or(mixed),
            },
            Opcode::Uextend if kinds.iter().any(is_mask) => match (kinds[0], vector_of(ty)) {
                (Kind::Mask(mask), Some(lanes)) if mask.lane_bits() == lanes.lane_bits() => Ok(Kind::Lanes(lanes)),
                _ => Err(mixed),
            },
            Opcode::Select => self.choice(ty, [kinds[0], kinds[1], kinds[2]]),
            _ if kinds.iter().any(is_mask) => Err(mixed),
            Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce => match (vector_of(of(args[0])), vector_of(ty)) {
                (Some(_), Some(to)) => Ok(Kind::Lanes(to)),
                (None, _) => Err(Reason::Element(of(args[0]))),
                (_, None) => Err(Reason::Element(ty)),
            },
            Opcode::Bitcast => match (vector_of(of(args[0])), vector_of(ty)) {
                (Some(from), Some(to)) if from.bits() == to.bits() => Ok(Kind::Lanes(to)),
                _ => Err(Reason::Element(ty)),
            },
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr if kinds[1] != Kind::Uniform => {
                Err(Reason::ShiftAmount(opcode))
            }
            _ => {
                let lanes = vector_of(ty).ok_or(Reason::Element(ty))?;
                let like = matches!(
                    data,
                    InstructionData::Unary { .. } | InstructionData::Binary { .. } | InstructionData::Ternary { .. }
                );
                if !like {
                    return Err(Reason::Operation(opcode, lanes));
                }
                self.exists(opcode, lanes)?;
                Ok(Kind::Lanes(lanes))
            }
        }
    }

    /// Returns the mask's representation if the operation combines a mask and a constant so that
    /// the result is the mask or its negation: `x & 1`, `x ^ 1`, `x == 0`, `x != 0`.
    fn negation(&self, inst: Inst, args: &[Value], kinds: &[Kind]) -> Option<Kind> {
        negates(self.func, inst)?;
        match (kinds[0], loops::constant(self.func, args[1])) {
            (Kind::Mask(mask), Some(_)) => Some(Kind::Mask(mask)),
            _ => None,
        }
    }

    /// Checks that the operation exists on vectors of the type.
    fn exists(&self, opcode: Opcode, ty: Type) -> Result<(), Reason> {
        let takes = opcode.constraints().ctrl_typeset().is_some_and(|set| set.contains(ty));
        match self.legality.action(opcode, ty) {
            Some(LegalizeAction::LibCall | LegalizeAction::Scalarize | LegalizeAction::Refused) | None => {
                Err(Reason::Operation(opcode, ty))
            }
            Some(_) if takes => Ok(()),
            Some(_) => Err(Reason::Operation(opcode, ty)),
        }
    }

    /// Estimates the number of machine instructions of a lane-wise instruction that is not an
    /// access.
    pub fn weight(&self, inst: Inst) -> u32 {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[inst].opcode();
        let result = dfg.inst_results(inst).first().map(|&value| dfg.value_type(value));
        let operand = dfg.inst_args(inst).first().map(|&value| dfg.value_type(value));
        match opcode {
            // Sets, uses and resets the mask.
            Opcode::Select => return 3,
            Opcode::Bitcast | Opcode::Ireduce => return 0,
            Opcode::Uextend | Opcode::Sextend => return 1,
            Opcode::Icmp if operand.is_some_and(|ty| ty.bits() == 32) => return 1,
            Opcode::Icmp => return 3,
            Opcode::Fcmp => return 18,
            // The amount is uniform.
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => return 1,
            _ => {}
        }
        result
            .and_then(vector_of)
            .map_or(1, |ty| cost::lanes(self.legality, opcode, ty))
    }
}

/// Returns whether an operation on a mask and a constant negates the mask, or `None` if it is not
/// such an operation.
pub fn negates(func: &Function, inst: Inst) -> Option<bool> {
    use cranelift_codegen::ir::condcodes::IntCC;
    let number = loops::constant(func, *func.dfg.inst_args(inst).get(1)?)?;
    match (func.dfg.insts[inst], number) {
        (InstructionData::Binary { opcode, .. }, 1) => match opcode {
            Opcode::Band => Some(false),
            Opcode::Bxor => Some(true),
            _ => None,
        },
        (InstructionData::IntCompare { cond, .. }, 0) => match cond {
            IntCC::Equal => Some(true),
            IntCC::NotEqual => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the only effect of the operation is to compute its results.
pub fn is_pure(opcode: Opcode) -> bool {
    !(opcode.can_load()
        || opcode.can_store()
        || opcode.can_trap()
        || opcode.is_call()
        || opcode.is_branch()
        || opcode.is_terminator()
        || opcode.other_side_effects())
}

/// Returns the values of the loop with uses after it, sorted by number.
pub fn escaping(func: &Function, lp: &NaturalLoop) -> Vec<Value> {
    let inside: FxHashSet<_> = lp.blocks.iter().copied().collect();
    let mut found: Vec<Value> = Vec::new();
    let mut add = |value: Value| {
        let value = func.dfg.resolve_aliases(value);
        if inside.contains(&loops::defining_block(func, value)) {
            found.push(value);
        }
    };
    for block in func.layout.blocks().filter(|block| !inside.contains(block)) {
        for inst in func.layout.block_insts(block) {
            func.dfg.inst_values(inst).for_each(&mut add);
        }
    }
    for &exit in &lp.exits {
        edit::args(func, exit)
            .unwrap_or_default()
            .into_iter()
            .for_each(&mut add);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The number of scalar iterations in a vector iteration.
pub const ITERATIONS_PER_VECTOR: u64 = LANES as u64;
