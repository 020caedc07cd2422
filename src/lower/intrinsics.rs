//! What is left of intrinsics when CLIF is lowered: operations of the machine.
//!
//! Those of the float unit on bits do exactly what the hardware does (`microarch.md` 4.1 and 6), errata included; the
//! runtime builds on them. Shifts take their whole amount, where CLIF's take it modulo the width: on a machine where this is
//! corrected (erratum `shift_amount_not_modulo` off) they are sequences that give the same.

use super::context::{InstOutput, Lower};
use super::vector::{LaneRules, Lanes};
use super::words::{Word, Words};
use crate::inst::reg::Reg;
use crate::inst::{ALL_LANES, MInst, Srcs};
use crate::intrinsics::{Piece, Reserved, classify, instruction, piece};
use cranelift_codegen::ir::{FuncRef, Value, types};
use npu_mc::errata::Erratum;
use npu_mc::tables::IntrinsicKind;
use npu_mc::{Opcode, OperandKind, relation};
use regalloc2::RegClass;
use smallvec::{SmallVec, smallvec};

/// Lowers a call of an intrinsic. `None` if it is none, or is refused.
pub fn lower(ctx: &mut Lower<'_>, callee: FuncRef, args: &[Value]) -> Option<InstOutput> {
    if let Some(piece) = piece(ctx.func, callee) {
        return lower_piece(ctx, piece, args);
    }
    let Some(Reserved::Intrinsic(info)) = classify(ctx.func, callee) else {
        return None;
    };
    let op = instruction(info)?;
    match info.kind {
        IntrinsicKind::Operation => operation(ctx, op, args),
        IntrinsicKind::LaneBits => {
            let lanes = ctx.put_in_regs(*args.first()?).as_slice()[0];
            let bits = ctx.emit_op(op, &[Reg::Virtual(lanes)], 0, RegClass::Int);
            let clean = ctx.word_and(Word::Reg(bits), Word::Const(ALL_LANES.into()));
            Some(smallvec![ctx.value_regs(Words::one(clean))])
        }
        _ => None,
    }
}

fn is_shift(op: Opcode) -> bool {
    matches!(op, Opcode::SLLSSS_32 | Opcode::SRLSSS_32)
}

/// The form of a shift that has its amount in the instruction, if the amount is a constant below the width.
fn with_immediate(ctx: &Lower<'_>, op: Opcode, args: &[Value]) -> Option<(Opcode, i32)> {
    let short = relation::to_immediate(op).filter(|_| is_shift(op))?;
    let amount = ctx.as_constant(*args.get(1)?)?;
    Some((short, i32::try_from(amount).ok().filter(|n| *n < 32)?))
}

fn operation(ctx: &mut Lower<'_>, op: Opcode, args: &[Value]) -> Option<InstOutput> {
    let (op, imm, args) = match with_immediate(ctx, op, args) {
        Some((op, imm)) => (op, imm, &args[..1]),
        None => (op, 0, args),
    };
    let mut srcs = Srcs::new();
    for &arg in args {
        srcs.push(Reg::Virtual(*ctx.put_in_regs(arg).as_slice().first()?));
    }
    let amount = srcs.get(1).copied();
    let Some(result) = op.desc().operands.iter().find(|operand| operand.is_def) else {
        ctx.emit(MInst::Op {
            op,
            dst: None,
            srcs,
            imm,
        });
        return Some(SmallVec::new());
    };
    if result.kind == OperandKind::Vec {
        let lanes = Lanes::Reg(ctx.emit_op(op, &srcs, imm, RegClass::Vector));
        return Some(smallvec![ctx.lanes_regs(lanes)]);
    }
    let result = Word::Reg(ctx.emit_op(op, &srcs, imm, RegClass::Int));
    let result = match amount {
        Some(amount) if is_shift(op) && !ctx.isa.has_erratum(Erratum::ShiftAmountNotModulo) => {
            let in_range = ctx.binary(Opcode::SLTUISSS_32, Word::Reg(amount), Word::Const(32));
            let mask = ctx.binary(Opcode::SUBSSS_32, Word::ZERO, in_range);
            ctx.binary(Opcode::ANDSSS_32, result, mask)
        }
        _ => result,
    };
    Some(smallvec![ctx.value_regs(Words::one(result))])
}

fn lower_piece(ctx: &mut Lower<'_>, piece: Piece, args: &[Value]) -> Option<InstOutput> {
    match (piece, args) {
        (Piece::Mix, &[a, b, mask]) => {
            let mask = ctx.words(mask).low();
            let (a, b) = (ctx.lanes(a), ctx.lanes(b));
            let lanes = ctx.lane_select(mask, a, b);
            Some(smallvec![ctx.lanes_regs(lanes)])
        }
        (Piece::Reinterpret, &[lanes]) => {
            let lanes = ctx.lanes(lanes);
            Some(smallvec![ctx.lanes_regs(lanes)])
        }
        (Piece::Store { bits, scratchpad }, &[pointer, lanes, mask]) => {
            let ty = match bits {
                8 => types::I8X16,
                16 => types::I16X16,
                _ => types::I32X16,
            };
            let mask = ctx.words(mask).low();
            if mask == Word::ZERO {
                return Some(SmallVec::new());
            }
            let lanes = ctx.lanes(lanes);
            let lanes = Lanes::Reg(ctx.vector_reg(lanes));
            let addr = ctx.address(pointer, 0, npu_mc::machine::WORD_SLOT);
            ctx.store_some_lanes(ty, scratchpad, mask, lanes, addr);
            Some(SmallVec::new())
        }
        _ => None,
    }
}
