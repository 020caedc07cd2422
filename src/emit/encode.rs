//! The last step: words, relocations, traps, source locations, stack maps, debug tags and places of labelled values.

use super::{CallKind, Fixup, Item, Items, Label};
use crate::code::{
    CompiledCode, DebugTags, LabelRange, Reloc, RelocTarget, SrcLocRange, StackMap, StackMapEntry, TagPosition, Trap,
};
use crate::error::CompileError;
use crate::frame::Frame;
use cranelift_codegen::ir::{self, Function};
use npu_mc::machine::{INSTRUCTION_SIZE, VECTOR_SLOT};
use npu_mc::{Inst, Operand};

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
pub fn encode(items: &Items, frame: &Frame, func: &Function) -> Result<CompiledCode, CompileError> {
    let mut code = CompiledCode {
        bytes: Vec::with_capacity(items.list.len() * INSTRUCTION_SIZE as usize),
        frame: frame.layout.clone(),
        block_starts: items.blocks.iter().map(|&b| offset(items.position(b))).collect(),
        ..CompiledCode::default()
    };
    code.pool_start = offset(items.list.len()).next_multiple_of(VECTOR_SLOT);
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
        if let Fixup::Pool { kind, index: vector } = item.fixup {
            code.relocs.push(Reloc {
                offset: offset(index),
                kind,
                target: RelocTarget::Function,
                addend: i64::from(code.pool_start) + i64::from(vector) * i64::from(VECTOR_SLOT),
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
        if let (Some(inst), true) = (item.origin.inst, item.call != CallKind::None) {
            record_call(&mut code, func, inst, item.call, offset(index + 1));
        }
        if code.insts.last().is_none_or(|&(_, last)| last != item.origin.inst) {
            code.insts.push((offset(index), item.origin.inst));
        }
    }
    if items.pool.is_empty() {
        code.pool_start = offset(items.list.len());
    } else {
        let nop = npu_mc::encode(&Inst::new(npu_mc::Opcode::NOP, []));
        let nop = nop
            .map_err(|error| CompileError::TooLarge(error.to_string()))?
            .to_le_bytes();
        while code.bytes.len() < code.pool_start as usize {
            code.bytes.extend_from_slice(&nop);
        }
        code.bytes
            .extend(items.pool.iter().flatten().flat_map(|lane| lane.to_le_bytes()));
    }
    record_sequence_points(&mut code, items, func);
    record_labels(&mut code, items);
    Ok(code)
}

/// The instruction with its immediate filled in.
fn resolve(items: &Items, index: usize, item: &Item) -> Inst {
    let distance = |target: Label, after: u32| {
        let to = i64::from(offset(items.position(target)));
        to - i64::from(offset(index)) - i64::from(after)
    };
    let immediate = match item.fixup {
        Fixup::None | Fixup::Reloc { .. } | Fixup::Pool { .. } => return item.inst,
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

/// Stack maps and debug tags of calls; `next` is the offset behind the jump.
fn record_call(code: &mut CompiledCode, func: &Function, inst: ir::Inst, kind: CallKind, next: u32) {
    let tags = func.debug_tags.get(inst);
    if !tags.is_empty() {
        let (offset, position) = match kind {
            CallKind::Call => (next, TagPosition::Behind),
            // There is nothing to return to.
            CallKind::TailCall | CallKind::None => (next - INSTRUCTION_SIZE, TagPosition::InFront),
        };
        code.debug_tags.push(DebugTags {
            offset,
            position,
            tags: tags.to_vec(),
        });
    }
    if kind != CallKind::Call {
        return;
    }
    let Some(entries) = func.dfg.user_stack_map_entries(inst) else {
        return;
    };
    let slots = &code.frame.stack_slots;
    let entries = entries
        .iter()
        .map(|entry| StackMapEntry {
            ty: entry.ty,
            offset: slots
                .get(entry.slot.as_u32() as usize)
                .map_or(0, |slot| slot + entry.offset),
        })
        .collect();
    code.stack_maps.push(StackMap {
        return_offset: next,
        entries,
    });
}

fn record_sequence_points(code: &mut CompiledCode, items: &Items, func: &Function) {
    for &(label, inst) in &items.sequence_points {
        let tags = func.debug_tags.get(inst);
        if !tags.is_empty() {
            code.debug_tags.push(DebugTags {
                offset: offset(items.position(label)),
                position: TagPosition::InFront,
                tags: tags.to_vec(),
            });
        }
    }
    code.debug_tags.sort_by_key(|tags| (tags.offset, tags.position));
}

fn record_labels(code: &mut CompiledCode, items: &Items) {
    for place in &items.places {
        let range = LabelRange {
            start: offset(place.start),
            end: offset(place.end),
            loc: place.loc,
        };
        code.value_labels.entry(place.label).or_default().push(range);
    }
    for ranges in code.value_labels.values_mut() {
        ranges.sort_by_key(|range| (range.start, range.end));
    }
}
