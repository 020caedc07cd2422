//! Reductions: values that a loop accumulates by an associative operation.

use super::shape::{ParamValue, Shape};
use crate::remarks::Reason;
use clif_opt::edit;
use clif_opt::loops::{InductionVariable, NaturalLoop};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Type, Value, types};

/// A reduction.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The header parameter.
    pub param: Value,
    /// The operation that combines the lanes, and the lanes with the initial value.
    pub opcode: Opcode,
    /// The value after an iteration.
    pub result: Value,
    /// The values between parameter and result. In the vector loop, their lanes are partial sums,
    /// not values of an iteration.
    pub partial: Vec<Value>,
    /// The type of an element.
    pub ty: Type,
}

impl Reduction {
    /// Returns the identity of the operation. Returns `None` if the operation is idempotent, so
    /// that every lane can start with the initial value.
    pub fn identity(&self) -> Option<i64> {
        match self.opcode {
            Opcode::Iadd | Opcode::Bor | Opcode::Bxor => Some(0),
            Opcode::Band => Some(-1),
            Opcode::Imul => Some(1),
            _ => None,
        }
    }
}

/// Finds the reductions among the header's parameters.
///
/// # Errors
///
/// The reason if a parameter is neither an induction variable nor a reduction.
pub fn find(
    func: &Function,
    lp: &NaturalLoop,
    shape: &Shape,
    variables: &[InductionVariable],
) -> Result<Vec<Reduction>, Reason> {
    let mut found = Vec::new();
    let next = edit::args(func, lp.back_edge).unwrap_or_default();
    for (&param, next) in func.dfg.block_params(lp.header).iter().zip(next) {
        if variables.iter().any(|variable| variable.param == param) || func.dfg.resolve_aliases(next) == param {
            continue;
        }
        found.push(chain(func, lp, shape, param, next)?);
    }
    Ok(found)
}

/// Follows block parameters that have a single value.
fn through(func: &Function, shape: &Shape, value: Value) -> Value {
    let mut value = func.dfg.resolve_aliases(value);
    while let Some(&ParamValue::Same(same)) = shape.param_values.get(&value) {
        value = func.dfg.resolve_aliases(same);
    }
    value
}

/// Follows a parameter through the operations of the reduction to its next value.
fn chain(func: &Function, lp: &NaturalLoop, shape: &Shape, param: Value, next: Value) -> Result<Reduction, Reason> {
    let ty = func.dfg.value_type(param);
    let carried = Reason::Carried(ty);
    let result = through(func, shape, next);
    let mut at = param;
    let mut partial = Vec::new();
    let mut combined: Option<Opcode> = None;
    while at != result {
        let mut users = users(func, lp, shape, at);
        let (Some(user), None) = (users.pop(), users.pop()) else {
            return Err(carried);
        };
        let InstructionData::Binary { opcode, args } = func.dfg.insts[user] else {
            return Err(carried);
        };
        if matches!(opcode, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul) {
            return Err(Reason::FloatReduction(opcode));
        }
        let sides = args.map(|arg| through(func, shape, arg) == at);
        let opcode = match (opcode, sides) {
            // Repeated subtraction is the subtraction of a sum.
            (Opcode::Isub, [true, false]) => Opcode::Iadd,
            (
                Opcode::Iadd
                | Opcode::Imul
                | Opcode::Band
                | Opcode::Bor
                | Opcode::Bxor
                | Opcode::Smin
                | Opcode::Smax
                | Opcode::Umin
                | Opcode::Umax,
                [true, false] | [false, true],
            ) => opcode,
            _ => return Err(carried),
        };
        if combined.is_some_and(|known| known != opcode) || shape.optional.contains(&block_of(func, user)) {
            return Err(carried);
        }
        combined = Some(opcode);
        at = func.dfg.first_result(user);
        if at != result {
            partial.push(at);
        }
    }
    // No other instruction of the iteration uses the value.
    let opcode = combined.ok_or(carried.clone())?;
    if !users(func, lp, shape, result).is_empty() || !matches!(ty, types::I8 | types::I16 | types::I32) {
        return Err(carried);
    }
    Ok(Reduction {
        param,
        opcode,
        result,
        partial,
        ty,
    })
}

fn block_of(func: &Function, inst: Inst) -> cranelift_codegen::ir::Block {
    clif_opt::loops::defining_block(func, func.dfg.first_result(inst))
}

/// Returns the instructions of the loop that use the value, with one item for each use. Arguments
/// of branches do not count.
fn users(func: &Function, lp: &NaturalLoop, shape: &Shape, value: Value) -> Vec<Inst> {
    let mut found = Vec::new();
    for &block in &lp.blocks {
        for inst in func.layout.block_insts(block) {
            let branch = func.dfg.insts[inst].opcode().is_branch();
            // Only the condition of a branch counts. The analysis follows block parameters that it
            // passes the value to, or they have no other use.
            let args = func.dfg.inst_args(inst);
            let uses = args.iter().filter(|&&arg| through(func, shape, arg) == value);
            found.extend(uses.map(|_| inst));
            if branch && chosen(func, shape, inst, value) {
                found.push(inst);
            }
        }
    }
    found
}

/// Returns whether a branch passes the value to a parameter that has several possible values.
fn chosen(func: &Function, shape: &Shape, branch: Inst, value: Value) -> bool {
    edit::destinations(func, branch).iter().any(|call| {
        let to = call.block(&func.dfg.value_lists);
        let args = call.args(&func.dfg.value_lists);
        let params = func.dfg.block_params(to).iter();
        args.zip(params).any(|(arg, param)| {
            let same = arg.as_value().is_some_and(|arg| through(func, shape, arg) == value);
            same && matches!(shape.param_values.get(param), Some(ParamValue::Either { .. }))
        })
    })
}
