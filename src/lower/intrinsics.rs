//! Lowers the intrinsics that are machine operations.
//!
//! Operations of the float unit on bits do exactly what the hardware does
//! (`docs/machine/operations.md`), including errata; the runtime uses them. Shifts use the whole
//! amount, whereas CLIF's shifts use it modulo the width.

use super::context::{InstOutput, Lower};
use super::vector::{LaneRules, Lanes, parts};
use super::words::{Word, WordRules, Words};
use crate::inst::reg::Reg;
use crate::inst::{ALL_LANES, MInst, Srcs};
use crate::intrinsics::{PseudoInst, Reserved, classify, instruction, pseudo_inst};
use crate::shape::vector_of;
use cranelift_codegen::ir::{FuncRef, Type, Value};
use npu_mc::tables::IntrinsicKind;
use npu_mc::{Opcode, OperandKind};
use regalloc2::RegClass;
use smallvec::{SmallVec, smallvec};

/// Lowers a call of an intrinsic. Returns `None` if the callee is no intrinsic or the call is
/// refused.
pub fn lower(ctx: &mut Lower<'_>, callee: FuncRef, args: &[Value]) -> Option<InstOutput> {
    if let Some(pseudo) = pseudo_inst(ctx.func, callee) {
        return lower_pseudo_inst(ctx, pseudo, args);
    }
    let Some(Reserved::Intrinsic(info)) = classify(ctx.func, callee) else {
        return None;
    };
    match (info.kind, args) {
        (IntrinsicKind::Operation, _) => operation(ctx, instruction(info)?, args),
        (IntrinsicKind::ShiftLeft, &[a, by]) => {
            let (a, by) = (ctx.words(a).low(), ctx.words(by).low());
            let shifted = ctx.word_whole_shl(a, by);
            Some(smallvec![ctx.value_regs(Words::one(shifted))])
        }
        (IntrinsicKind::ShiftRight, &[a, by]) => {
            let (a, by) = (ctx.words(a).low(), ctx.words(by).low());
            let shifted = ctx.word_whole_srl(a, by);
            Some(smallvec![ctx.value_regs(Words::one(shifted))])
        }
        (IntrinsicKind::LaneBits, _) => {
            let op = instruction(info)?;
            let lanes = ctx.put_in_regs(*args.first()?).as_slice()[0];
            let bits = ctx.emit_op(op, &[Reg::Virtual(lanes)], 0, RegClass::Int);
            let clean = ctx.word_and(Word::Reg(bits), Word::Const(ALL_LANES.into()));
            Some(smallvec![ctx.value_regs(Words::one(clean))])
        }
        _ => None,
    }
}

fn operation(ctx: &mut Lower<'_>, op: Opcode, args: &[Value]) -> Option<InstOutput> {
    let mut srcs = Srcs::new();
    for &arg in args {
        srcs.push(Reg::Virtual(*ctx.put_in_regs(arg).as_slice().first()?));
    }
    let Some(result) = op.desc().operands.iter().find(|operand| operand.is_def) else {
        ctx.emit(MInst::Op {
            op,
            dst: None,
            srcs,
            imm: 0,
        });
        return Some(SmallVec::new());
    };
    if result.kind == OperandKind::Vec {
        let lanes = Lanes::Reg(ctx.emit_op(op, &srcs, 0, RegClass::Vector));
        return Some(smallvec![ctx.lanes_regs(lanes)]);
    }
    let result = Word::Reg(ctx.emit_op(op, &srcs, 0, RegClass::Int));
    Some(smallvec![ctx.value_regs(Words::one(result))])
}

fn lower_pseudo_inst(ctx: &mut Lower<'_>, pseudo: PseudoInst, args: &[Value]) -> Option<InstOutput> {
    match (pseudo, args) {
        (PseudoInst::Mix, &[a, b, mask]) => {
            let mask = ctx.words(mask).low();
            let (a, b) = (ctx.lanes(a), ctx.lanes(b));
            let lanes = ctx.lane_select(mask, a, b);
            Some(smallvec![ctx.lanes_regs(lanes)])
        }
        (PseudoInst::Parts(opcode), args) => {
            let result = ctx.func.dfg.inst_results(ctx.origin.inst?).first()?;
            parts::across(ctx, opcode, ctx.func.dfg.value_type(*result), args)
        }
        (PseudoInst::Reinterpret, &[lanes]) => {
            let lanes = ctx.lanes(lanes);
            Some(smallvec![ctx.lanes_regs(lanes)])
        }
        (PseudoInst::Store { bits, scratchpad }, &[pointer, lanes, mask]) => {
            let ty = Type::int(bits as u16).and_then(vector_of)?;
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
