//! Lowers instructions on vectors of several registers, one register after the other.
//!
//! An operation on each lane alone is lowered once for each part of the vectors. [`Lower::part`] is
//! the current part: a vector operand is represented by its register of that part, and a scalar
//! operand stays the same. So a rule handles vectors of one register only.

use super::context::{InstOutput, Lower, ValueRegs};
use super::isle;
use super::vector::Lanes;
use crate::inst::LANES;
use crate::shape::vector_registers;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode};
use regalloc2::VReg;
use smallvec::{SmallVec, smallvec};

/// The mode of lowering an instruction.
#[derive(Clone, Copy)]
enum Mode {
    /// Once, for all operands and results.
    Once,
    /// Once, with this current part.
    Part(u8),
    /// Once for each of this number of parts.
    Each(u8),
    /// Once, for a register that is the same in all of this number of parts.
    Same(u8),
}

/// Lowers one instruction. Returns `None` if no rule covers it.
pub fn lower(ctx: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    if !ctx.has_parts {
        return isle::lower(ctx, inst);
    }
    match mode_of(ctx, inst) {
        Mode::Once => isle::lower(ctx, inst),
        Mode::Part(part) => ctx.at_part(part, |ctx| isle::lower(ctx, inst)),
        Mode::Each(count) => each(ctx, inst, count),
        Mode::Same(count) => {
            let one = *isle::lower(ctx, inst)?.first()?.as_slice().first()?;
            let regs: SmallVec<[VReg; 4]> = smallvec![one; count.into()];
            Some(smallvec![ValueRegs::from_slice(&regs)?])
        }
    }
}

fn mode_of(ctx: &Lower<'_>, inst: Inst) -> Mode {
    let dfg = &ctx.func.dfg;
    let data = &dfg.insts[inst];
    let opcode = data.opcode();
    if opcode.is_call() || opcode.is_terminator() {
        return Mode::Once;
    }
    let whole = match data {
        InstructionData::Store { args, .. } => Some(args[0]),
        _ => dfg.inst_results(inst).first().copied(),
    };
    let count = whole.and_then(|value| vector_registers(dfg.value_type(value)));
    match (*data, count) {
        (
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                imm,
                ..
            },
            _,
        ) => Mode::Part(imm / LANES as u8),
        (InstructionData::LoadNoOffset { arg, .. }, Some(_))
            if whole.is_some_and(|value| dfg.value_type(value).lane_count() != dfg.value_type(arg).lane_count()) =>
        {
            Mode::Once
        }
        (_, Some(count @ 2..)) => match opcode {
            Opcode::Select | Opcode::SelectSpectreGuard => Mode::Once,
            Opcode::Splat => Mode::Same(count),
            _ => Mode::Each(count),
        },
        _ => Mode::Once,
    }
}

/// Lowers one part after the other.
fn each(ctx: &mut Lower<'_>, inst: Inst, count: u8) -> Option<InstOutput> {
    let is_first_lane = ctx.func.dfg.insts[inst].opcode() == Opcode::ScalarToVector;
    let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
    for part in 0..count {
        let output = match is_first_lane && part > 0 {
            true => smallvec![ctx.lanes_regs(Lanes::Const(0))],
            false => ctx.at_part(part, |ctx| isle::lower(ctx, inst))?,
        };
        regs.extend(output.iter().flat_map(ValueRegs::as_slice).copied());
    }
    if regs.is_empty() {
        return Some(InstOutput::new());
    }
    Some(smallvec![ValueRegs::from_slice(&regs)?])
}
