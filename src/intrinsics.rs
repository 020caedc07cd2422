//! Calls to reserved names that are instructions of the machine.
//!
//! These are the float unit's operations on bit patterns, and shifts by any amount: they do exactly what the hardware
//! does (`microarch.md` sections 4.1 and 6), errata included. The runtime builds on them. Shifts take their whole
//! amount, where CLIF's take it modulo the width: 32 and more, as unsigned numbers, give 0. On a machine where this is
//! corrected (erratum `shift_amount_not_modulo` off) they are sequences that give the same.

use crate::inst::Srcs;
use crate::inst::reg::Reg;
use crate::lower::words::{Word, Words};
use crate::lower::{InstOutput, Lower};
use cranelift_codegen::ir::{self, ExternalName, FuncRef, Function, Value, types};
use npu_mc::Opcode;
use regalloc2::RegClass;

/// Name, instruction and number of operands. All operands and the result are i32.
const RAW: &[(&str, Opcode, usize)] = &[
    ("__builtin_npu_raw_fadd", Opcode::ADDFSSS_32, 2),
    ("__builtin_npu_raw_fmul", Opcode::MULFSSS_32, 2),
    ("__builtin_npu_raw_fdiv", Opcode::DIVFSSS_32, 2),
    ("__builtin_npu_raw_itof", Opcode::I32TOF32_SS, 1),
    ("__builtin_npu_raw_ftoi", Opcode::F32TOI32_SS, 1),
    ("__builtin_npu_raw_shl", Opcode::SLLSSS_32, 2),
    ("__builtin_npu_raw_shr", Opcode::SRLSSS_32, 2),
];

/// What a reserved name turns out to be.
pub enum Reserved {
    /// An instruction.
    Instruction(Opcode),
    /// A name that starts like an intrinsic but is none, or is called with another signature.
    Unknown(String),
}

/// Whether a name, without `%`, is one that only intrinsics have.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("__builtin_npu_")
}

/// Whether the function reference is an intrinsic. `None` for ordinary functions.
pub fn classify(func: &Function, callee: FuncRef) -> Option<Reserved> {
    let data = &func.dfg.ext_funcs[callee];
    let ExternalName::TestCase(name) = &data.name else {
        return None;
    };
    let name = std::str::from_utf8(name.raw()).ok()?;
    if !is_reserved(name) {
        return None;
    }
    let sig = &func.dfg.signatures[data.signature];
    let all_words = sig
        .params
        .iter()
        .chain(&sig.returns)
        .all(|p| p.value_type == types::I32);
    let known = RAW.iter().find(|(known, _, operands)| {
        *known == name && sig.params.len() == *operands && sig.returns.len() == 1 && all_words
    });
    Some(match known {
        Some((_, op, _)) => Reserved::Instruction(*op),
        None => Reserved::Unknown(name.to_owned()),
    })
}

/// Whether the CLIF instruction is a call of an intrinsic, and so no call for the machine.
pub fn is_instruction(func: &Function, inst: ir::Inst) -> bool {
    match func.dfg.insts[inst] {
        ir::InstructionData::Call { func_ref, .. } => {
            matches!(classify(func, func_ref), Some(Reserved::Instruction(_)))
        }
        _ => false,
    }
}

fn is_shift(op: Opcode) -> bool {
    matches!(op, Opcode::SLLSSS_32 | Opcode::SRLSSS_32)
}

/// The form of a shift that has its amount in the instruction, if the amount is a constant below the width.
fn with_immediate(ctx: &Lower<'_>, op: Opcode, args: &[Value]) -> Option<(Opcode, i32)> {
    let op = match op {
        Opcode::SLLSSS_32 => Opcode::SLLSSI,
        Opcode::SRLSSS_32 => Opcode::SRLSSI,
        _ => return None,
    };
    let amount = ctx.as_constant(*args.get(1)?)?;
    Some((op, i32::try_from(amount).ok().filter(|n| *n < 32)?))
}

/// Lowers a call of an intrinsic.
pub fn lower(ctx: &mut Lower<'_>, callee: FuncRef, args: &[Value]) -> Option<InstOutput> {
    let Some(Reserved::Instruction(op)) = classify(ctx.func, callee) else {
        return None;
    };
    let (op, imm, args) = match with_immediate(ctx, op, args) {
        Some((op, imm)) => (op, imm, &args[..1]),
        None => (op, 0, args),
    };
    let mut srcs = Srcs::new();
    for &arg in args {
        srcs.push(Reg::Virtual(ctx.put_in_regs(arg).as_slice()[0]));
    }
    let amount = srcs.get(1).copied();
    let result = Word::Reg(ctx.emit_op(op, &srcs, imm, RegClass::Int));
    let result = match amount {
        Some(amount) if is_shift(op) && !ctx.isa.has_erratum("shift_amount_not_modulo") => {
            let in_range = ctx.binary(Opcode::SLTUISSS_32, Word::Reg(amount), Word::Const(32));
            let mask = ctx.binary(Opcode::SUBSSS_32, Word::ZERO, in_range);
            ctx.binary(Opcode::ANDSSS_32, result, mask)
        }
        _ => result,
    };
    Some(smallvec::smallvec![ctx.value_regs(Words::one(result))])
}
