//! Simplifies conditions of scalar code, so that the analysis recognizes them.
//!
//! Languages whose booleans are words, such as WebAssembly, extend the result of a compare and
//! compare it with zero again. Tests of alignment are decided by the alignment of the arguments.

use crate::divergence::definition;
use crate::facts;
use crate::options::Options;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};

/// Maximum depth of a condition.
const MAX_DEPTH: u32 = 8;

/// Simplifies the conditions of branches, traps and selects.
pub fn run(func: &mut Function, options: &Options) {
    func.dfg.resolve_all_aliases();
    decide_alignment(func, options);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            simplify(func, inst);
        }
    }
}

fn simplify(func: &mut Function, inst: Inst) {
    let opcode = func.dfg.insts[inst].opcode();
    if !matches!(opcode, Opcode::Brif | Opcode::Trapz | Opcode::Trapnz | Opcode::Select) {
        return;
    }
    let Some(&condition) = func.dfg.inst_args(inst).first() else {
        return;
    };
    if opcode == Opcode::Brif
        && let (Some(number), InstructionData::Brif { blocks, .. }) =
            (facts::constant(func, condition), func.dfg.insts[inst])
    {
        func.dfg.insts[inst] = InstructionData::Jump {
            opcode: Opcode::Jump,
            destination: blocks[usize::from(number == 0)],
        };
        return;
    }
    let new = boolean(func, condition, MAX_DEPTH);
    if let Some(new) = new.filter(|&new| new != condition)
        && let Some(first) = func.dfg.inst_args_mut(inst).first_mut()
    {
        *first = new;
    }
}

/// Returns a boolean of type `i8` that is 1 if the value, which is known to be 0 or 1, is 1.
fn boolean(func: &mut Function, value: Value, depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let inst = definition(func, value)?;
    match func.dfg.insts[inst] {
        InstructionData::Unary {
            opcode: Opcode::Uextend,
            arg,
        } => boolean(func, arg, depth),
        InstructionData::IntCompare { cond, args: [x, y], .. } => {
            let zero = matches!(cond, IntCC::Equal | IntCC::NotEqual) && facts::constant(func, y) == Some(0);
            let inner = if zero { boolean(func, x, depth) } else { None };
            match inner {
                Some(inner) if cond == IntCC::Equal => Some(negated(func, inst, inner)),
                Some(inner) => Some(inner),
                None => Some(value),
            }
        }
        InstructionData::FloatCompare { .. } => Some(value),
        InstructionData::Binary {
            opcode: opcode @ (Opcode::Band | Opcode::Bor | Opcode::Bxor),
            args: [x, y],
        } => {
            if opcode == Opcode::Band && facts::constant(func, y) == Some(1) {
                return boolean(func, x, depth);
            }
            let (x, y) = (boolean(func, x, depth)?, boolean(func, y, depth)?);
            if func.dfg.value_type(value) == types::I8 && func.dfg.inst_args(inst) == [x, y] {
                return Some(value);
            }
            let mut cursor = FuncCursor::new(func).after_inst(inst);
            cursor.use_srcloc(inst);
            Some(match opcode {
                Opcode::Band => cursor.ins().band(x, y),
                Opcode::Bor => cursor.ins().bor(x, y),
                _ => cursor.ins().bxor(x, y),
            })
        }
        _ => None,
    }
}

/// Emits the negation of a boolean after an instruction that its definition dominates.
fn negated(func: &mut Function, after: Inst, value: Value) -> Value {
    let data = definition(func, value).map(|inst| func.dfg.insts[inst]);
    let mut cursor = FuncCursor::new(func).after_inst(after);
    cursor.use_srcloc(after);
    match data {
        Some(InstructionData::IntCompare { cond, args: [x, y], .. }) => cursor.ins().icmp(cond.complement(), x, y),
        Some(InstructionData::FloatCompare { cond, args: [x, y], .. }) => cursor.ins().fcmp(cond.complement(), x, y),
        _ => {
            let one = cursor.ins().iconst(types::I8, 1);
            cursor.ins().bxor(value, one)
        }
    }
}

/// Replaces the lower bits of numbers by zero where their alignment is known.
fn decide_alignment(func: &mut Function, options: &Options) {
    let order: Vec<Block> = func.layout.blocks().collect();
    let insts = order.iter().flat_map(|&block| func.layout.block_insts(block));
    let tests: Vec<(Inst, Value, i64)> = insts
        .filter_map(|inst| match func.dfg.insts[inst] {
            InstructionData::Binary {
                opcode: Opcode::Band,
                args: [x, y],
            } => Some((inst, x, facts::constant(func, y)?)),
            _ => None,
        })
        .filter(|&(_, _, mask)| mask > 0)
        .collect();
    if tests.is_empty() {
        return;
    }
    let alignment = facts::alignment(func, &order, options, 1);
    for (inst, value, mask) in tests {
        if func.dfg.value_type(value).is_int() && alignment.get(&value).is_some_and(|&align| mask < i64::from(align)) {
            func.dfg.insts[inst] = InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm: 0.into(),
            };
        }
    }
}
