//! The cost of CLIF instructions in machine instructions, for passes that compare two forms of
//! code.
//!
//! td's `InstructionCounts` contains the measured cost of each instruction in isolation. In
//! context, an instruction may cost less: constants and extensions are merged into their users, and
//! a compare becomes the condition of a branch. This module lists these cases.

use crate::legalize::{self, Legality, LegalizeAction};
use clif_opt::loops;
use cranelift_codegen::ir::{Function, Inst, Opcode, Type};

/// Returns the cost of an instruction on scalars. Returns `None` for a call and for an operation
/// that a runtime routine implements.
pub fn scalar(legality: Legality<'_>, func: &Function, inst: Inst) -> Option<u32> {
    let opcode = func.dfg.insts[inst].opcode();
    match opcode {
        Opcode::Iconst | Opcode::F32const | Opcode::F64const | Opcode::Jump | Opcode::Nop => return Some(0),
        Opcode::StackAddr | Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce | Opcode::Bitcast => return Some(0),
        Opcode::Brif => return Some(1),
        Opcode::Ishl | Opcode::Ushr | Opcode::Sshr
            if loops::constant(func, func.dfg.inst_args(inst)[1]).is_some()
                && func.dfg.ctrl_typevar(inst).bits() <= 32 =>
        {
            return Some(1);
        }
        _ if opcode.is_call() || opcode.is_return() => return None,
        _ => {}
    }
    match legality.rule(func, inst)?.action {
        LegalizeAction::LibCall | LegalizeAction::Scalarize | LegalizeAction::Refused => None,
        _ => legalize::instructions(opcode, func.dfg.ctrl_typevar(inst)),
    }
}

/// Returns the cost of an operation on the sixteen lanes of a vector of this type. Returns 1 for an
/// operation that the machine does not have; callers exclude these.
pub fn lanes(legality: Legality<'_>, opcode: Opcode, ty: Type) -> u32 {
    match legality.action(opcode, ty) {
        Some(LegalizeAction::LibCall | LegalizeAction::Scalarize | LegalizeAction::Refused) | None => 1,
        _ => legalize::instructions(opcode, ty).unwrap_or(1),
    }
}
