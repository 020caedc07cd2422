//! The last step: words, relocations, traps, source locations and places of labelled values.

use super::{Fixup, Item, Items, Label};
use crate::code::{CompiledCode, LabelLoc, LabelRange, Reloc, SrcLocRange, Trap};
use crate::error::CompileError;
use crate::frame::Frame;
use crate::inst::reg::from_preg;
use crate::regalloc::spill_unit;
use cranelift_codegen::ir::ValueLabel;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Inst, Operand};
use regalloc2::Output;

/// Byte offset of an instruction.
fn offset(index: usize) -> u32 {
    u32::try_from(index)
        .unwrap_or(u32::MAX)
        .saturating_mul(INSTRUCTION_SIZE)
}

/// Writes the function.
///
/// # Errors
///
/// [`CompileError::TooLarge`] if an operand does not fit its field.
pub fn encode(items: &Items, frame: &Frame, output: &Output) -> Result<CompiledCode, CompileError> {
    let mut code = CompiledCode {
        bytes: Vec::with_capacity(items.list.len() * INSTRUCTION_SIZE as usize),
        frame: frame.layout.clone(),
        block_starts: items.blocks.iter().map(|&b| offset(items.position(b))).collect(),
        ..CompiledCode::default()
    };
    for (index, item) in items.list.iter().enumerate() {
        let inst = resolve(items, index, item);
        let word = npu_mc::encode(&inst).map_err(|error| CompileError::TooLarge(format!("{inst}: {error}")))?;
        code.bytes.extend_from_slice(&word.to_le_bytes());
        if let Fixup::Reloc { kind, target, addend } = &item.fixup {
            code.relocs.push(Reloc {
                offset: offset(index),
                kind: *kind,
                target: target.clone(),
                addend: *addend,
            });
        }
        if let Some(trap) = item.trap {
            code.traps.push(Trap {
                offset: offset(index),
                code: trap,
                inst: item.origin.inst,
                srcloc: item.origin.srcloc,
            });
        }
        record_srcloc(&mut code.srclocs, offset(index), item);
    }
    record_labels(&mut code, items, frame, output);
    Ok(code)
}

/// The instruction with its immediate filled in.
fn resolve(items: &Items, index: usize, item: &Item) -> Inst {
    let distance = |target: Label, after: u32| {
        let to = i64::from(offset(items.position(target)));
        to - i64::from(offset(index)) - i64::from(after)
    };
    let immediate = match item.fixup {
        Fixup::None | Fixup::Reloc { .. } => return item.inst,
        Fixup::Branch(target) | Fixup::TableEntry { target, .. } => distance(target, 0),
        Fixup::FarHigh { target, after } => distance(target, after) >> 16 & 0xffff,
        Fixup::FarLow { target, after } => distance(target, after) & 0xffff,
    };
    let mut operands = item.inst.operands.to_vec();
    if let Some(last) = operands.last_mut() {
        *last = Operand::Imm(i32::try_from(immediate).unwrap_or(i32::MAX));
    }
    Inst {
        opcode: item.inst.opcode,
        operands: npu_mc::Operands::from_slice(&operands).unwrap_or(item.inst.operands),
    }
}

fn record_srcloc(list: &mut Vec<SrcLocRange>, start: u32, item: &Item) {
    let loc = item.origin.srcloc;
    if loc.is_default() {
        return;
    }
    let end = start + INSTRUCTION_SIZE;
    match list.last_mut() {
        Some(last) if last.loc == loc && last.end == start => last.end = end,
        _ => list.push(SrcLocRange { start, end, loc }),
    }
}

fn record_labels(code: &mut CompiledCode, items: &Items, frame: &Frame, output: &Output) {
    let place = |point: regalloc2::ProgPoint| {
        let inst = u32::try_from(point.inst().index()).ok()?;
        items.marks.get(&inst).map(|&label| offset(items.position(label)))
    };
    for &(label, from, to, allocation) in &output.debug_locations {
        let (Some(start), Some(end)) = (place(from), place(to)) else {
            continue;
        };
        let loc = match (allocation.as_reg().and_then(from_preg), allocation.as_stack()) {
            (Some(reg), _) => LabelLoc::Reg(reg),
            (None, Some(slot)) => {
                let at = u32::try_from(slot.index()).unwrap_or(0) * spill_unit();
                LabelLoc::Stack((frame.layout.spills.0 + at).cast_signed())
            }
            (None, None) => continue,
        };
        if start < end {
            code.value_labels
                .entry(ValueLabel::from_u32(label))
                .or_default()
                .push(LabelRange { start, end, loc });
        }
    }
}
