//! Replaces vector types of dynamic size by types of fixed size.
//!
//! The scale is four for all types, so a base type of 128 bits (`i32x4xN`) fills one register of 512
//! bits, and `i32x8xN` two. The global value of the type (`dyn_scale_target_const`) is not read. One
//! scale for all types keeps lane counts consistent when lanes are widened or narrowed. Signatures,
//! block parameters and results get the fixed type; `stacks.rs` rewrites the stack slots. After this
//! pass such a value is an ordinary vector with its number of lanes.

use super::lane_memory::frame_area;
use super::rules::rules;
use super::zeros::replace_by_zeros;
use crate::error::Refusal;
use crate::shape::{SCALE, fixed, register_type};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Signature, Type, Value,
};
use npu_mc::tables::LegalizeCondition;
use rustc_hash::FxHashMap;

/// Returns whether the function has values of dynamic vector types.
pub(crate) fn has_dynamic(func: &Function) -> bool {
    let mut values = (0..func.dfg.num_values()).map(|value| func.dfg.value_type(Value::new(value)));
    let in_signature = |sig: &Signature| {
        let mut params = sig.params.iter().chain(&sig.returns);
        params.any(|param| param.value_type.is_dynamic_vector())
    };
    values.any(Type::is_dynamic_vector)
        || in_signature(&func.signature)
        || func.dfg.signatures.values().any(in_signature)
}

/// Rewrites the function. An `extract_vector` that remains takes a part of a vector of fixed size.
///
/// Returns the refusals, and replaces the refused instructions by zeros: each `extract_vector` of a
/// part that the vector does not have, and the forms that td refuses on dynamic vectors.
pub(crate) fn run(func: &mut Function) -> Vec<Refusal> {
    fix_signature(&mut func.signature);
    func.dfg.signatures.values_mut().for_each(fix_signature);
    let mut refusals = Vec::new();
    let mut refused = Vec::new();
    let mut changed = FxHashMap::default();
    let blocks: Vec<_> = func.layout.blocks().collect();
    for &block in &blocks {
        for param in func.dfg.block_params(block).to_vec() {
            if let Some(ty) = dynamic(func, param) {
                changed.insert(param, func.dfg.replace_block_param(param, ty));
            }
        }
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let refusal = part_beyond(func, inst).or_else(|| without_form(func, inst));
            if let Some((what, help)) = refusal {
                refusals.push(Refusal {
                    function: func.name.to_string(),
                    inst: Some((inst, func.dfg.display_inst(inst).to_string())),
                    srcloc: Some(func.srcloc(inst)).filter(|loc| !loc.is_default()),
                    what,
                    help: Some(help.to_owned()),
                });
                refused.push(inst);
            }
            for result in func.dfg.inst_results(inst).to_vec() {
                if let Some(ty) = dynamic(func, result) {
                    changed.insert(result, func.dfg.replace_result(result, ty));
                }
            }
        }
    }
    for &block in &blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let dfg = &mut func.dfg;
            let args: Vec<Value> = dfg.inst_values(inst).map(|value| dfg.resolve_aliases(value)).collect();
            let args = args
                .into_iter()
                .map(|value| changed.get(&value).copied().unwrap_or(value));
            dfg.overwrite_inst_values(inst, args);
            take_part(func, inst);
        }
    }
    if let Some(labels) = &mut func.dfg.values_labels {
        labels.retain(|value, _| !changed.contains_key(value));
    }
    for inst in refused {
        replace_by_zeros(func, inst);
    }
    refusals
}

/// Extracts a part through the frame. CLIF has `extract_vector` on vectors of dynamic size only, so
/// it is not available for a vector in registers.
fn take_part(func: &mut Function, inst: Inst) {
    let InstructionData::BinaryImm8 {
        opcode: Opcode::ExtractVector,
        arg,
        imm,
    } = func.dfg.insts[inst]
    else {
        return;
    };
    let result = func.dfg.first_result(inst);
    let part = func.dfg.value_type(result);
    let whole = func.dfg.value_type(arg);
    if register_type(whole).is_none() {
        return;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let area = frame_area(&mut cursor, whole.bytes());
    let flags = MemFlagsData::trusted();
    cursor.ins().store(flags, arg, area, 0);
    let offset = i32::from(imm) * part.bytes().cast_signed();
    cursor.func.replace(inst).load(part, flags, area, offset);
}

fn fix_signature(signature: &mut Signature) {
    for param in signature.params.iter_mut().chain(&mut signature.returns) {
        param.value_type = fixed(param.value_type).unwrap_or(param.value_type);
    }
}

/// Returns the fixed type of a value of dynamic size.
fn dynamic(func: &Function, value: Value) -> Option<Type> {
    let ty = func.dfg.value_type(value);
    fixed(ty).filter(|_| ty.is_dynamic_vector())
}

/// Returns the refusal of an `extract_vector` whose part the operand does not have.
fn part_beyond(func: &Function, inst: Inst) -> Option<(String, &'static str)> {
    let InstructionData::BinaryImm8 {
        opcode: Opcode::ExtractVector,
        arg,
        imm,
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    let beyond = u32::from(imm) >= SCALE && func.dfg.value_type(arg).is_dynamic_vector();
    beyond.then(|| {
        let what = format!("part {imm} of a vector of {SCALE}");
        (what, "parts are numbered from 0")
    })
}

/// Returns the refusal of a form that exists on vectors of fixed size only.
fn without_form(func: &Function, inst: Inst) -> Option<(String, &'static str)> {
    let ty = func.dfg.ctrl_typevar(inst);
    if !ty.is_dynamic_vector() {
        return None;
    }
    let opcode = func.dfg.insts[inst].opcode();
    let rule = rules(opcode, ty)
        .iter()
        .find(|rule| rule.when == LegalizeCondition::DynamicSize)?;
    Some((rule.refusal(opcode, ty), rule.nearest_form))
}
