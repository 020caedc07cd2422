//! Encoding, the last step: instruction words, relocations, traps, source locations, stack maps,
//! debug tags and value locations.

pub mod print;

use crate::code::{
    CallSite, CompiledCode, DebugTagPos, DebugTags, ExceptionHandler, LabelRange, Reloc, RelocTarget, SrcLocRange,
    StackMap, StackMapEntry, Trap,
};
use crate::error::CompileError;
use crate::frame::Frame;
use crate::post_ra::func::{CallKind, Fixup, Label, MachFunction, McInst};
use cranelift_codegen::ir::{self, Function};
use npu_mc::machine::{INSTRUCTION_SIZE, VECTOR_SLOT};
use npu_mc::{Inst, Operand};

/// Returns the byte offset of an instruction.
fn offset(index: usize) -> u32 {
    // `encode` rejects code with more instructions than fit.
    index as u32 * INSTRUCTION_SIZE
}

/// The maximum number of instructions, from offsets of 31 bits.
const MAX_INSTS: usize = (i32::MAX as u32 / INSTRUCTION_SIZE) as usize;

/// Encodes the function.
///
/// # Errors
///
/// [`CompileError::TooLarge`] if there are too many instructions or an operand does not fit its
/// field, [`CompileError::Internal`] if a label or a slot is missing.
pub fn encode(function: &MachFunction, frame: &Frame, func: &Function) -> Result<CompiledCode, CompileError> {
    if function.insts().len() > MAX_INSTS {
        return Err(CompileError::TooLarge(format!(
            "the code has more than {MAX_INSTS} instructions"
        )));
    }
    let mut block_starts = Vec::with_capacity(function.vcode_blocks.len());
    for &block in &function.vcode_blocks {
        block_starts.push(offset(function.position(block)?));
    }
    let mut code = CompiledCode {
        bytes: Vec::with_capacity(function.insts().len() * INSTRUCTION_SIZE as usize),
        frame: frame.layout.clone(),
        block_starts,
        // A CLIF instruction usually becomes about two machine instructions.
        insts: Vec::with_capacity(function.insts().len() / 2 + 1),
        ..CompiledCode::default()
    };
    code.pool_start = offset(function.insts().len()).next_multiple_of(VECTOR_SLOT);
    for (index, mc) in function.insts().iter().enumerate() {
        let distance = |target: Label, after: u32| -> Result<i64, CompileError> {
            let to = i64::from(offset(function.position(target)?));
            Ok(to - i64::from(offset(index)) - i64::from(after))
        };
        let word = match &mc.fixup {
            Fixup::None => word(&mc.inst)?,
            Fixup::Reloc { kind, target, addend } => {
                code.relocs.push(Reloc {
                    offset: offset(index),
                    kind: *kind,
                    target: target.clone(),
                    addend: *addend,
                });
                word(&mc.inst)?
            }
            Fixup::Address { kind, target } => {
                code.relocs.push(Reloc {
                    offset: offset(index),
                    kind: *kind,
                    target: RelocTarget::Function,
                    addend: i64::from(offset(function.position(*target)?)),
                });
                word(&mc.inst)?
            }
            Fixup::Pool { kind, index: vector } => {
                code.relocs.push(Reloc {
                    offset: offset(index),
                    kind: *kind,
                    target: RelocTarget::Function,
                    addend: i64::from(code.pool_start) + i64::from(*vector) * i64::from(VECTOR_SLOT),
                });
                word(&mc.inst)?
            }
            Fixup::Branch(target) | Fixup::TableEntry { target, .. } => patched(mc.inst, distance(*target, 0)?)?,
            Fixup::FarHigh { target, after } => patched(mc.inst, distance(*target, *after)? >> 16 & 0xffff)?,
            Fixup::FarLow { target, after } => patched(mc.inst, distance(*target, *after)? & 0xffff)?,
        };
        code.bytes.extend_from_slice(&word.to_le_bytes());
        if let Some(trap) = mc.trap {
            code.traps.push(Trap {
                offset: offset(index),
                code: trap,
                inst: mc.origin.inst,
                srcloc: mc.origin.srcloc,
            });
        }
        record_srcloc(&mut code.srclocs, offset(index), mc);
        if let (Some(inst), true) = (mc.origin.inst, mc.call != CallKind::None) {
            record_call(&mut code, func, inst, mc.call, offset(index + 1))?;
        }
        if code.insts.last().is_none_or(|&(_, last)| last != mc.origin.inst) {
            code.insts.push((offset(index), mc.origin.inst));
        }
    }
    if function.pool.is_empty() {
        code.pool_start = offset(function.insts().len());
    } else {
        let nop = npu_mc::encode(&Inst::new(npu_mc::Opcode::NOP, []));
        let nop = nop
            .map_err(|error| CompileError::TooLarge(error.to_string()))?
            .to_le_bytes();
        while code.bytes.len() < code.pool_start as usize {
            code.bytes.extend_from_slice(&nop);
        }
        code.bytes
            .extend(function.pool.iter().flatten().flat_map(|lane| lane.to_le_bytes()));
    }
    record_sequence_points(&mut code, function, func)?;
    record_call_sites(&mut code, function)?;
    record_labels(&mut code, function);
    Ok(code)
}

fn word(inst: &Inst) -> Result<u32, CompileError> {
    npu_mc::encode(inst).map_err(|error| CompileError::TooLarge(format!("{inst}: {error}")))
}

/// Returns the word of the instruction with this immediate.
fn patched(mut inst: Inst, immediate: i64) -> Result<u32, CompileError> {
    let immediate = i32::try_from(immediate).ok();
    match (inst.operands.len().checked_sub(1), immediate) {
        (Some(last), Some(immediate)) => inst.operands.set(last, Operand::Imm(immediate)),
        _ => {
            return Err(CompileError::internal(
                "encode",
                inst,
                "an immediate for the distance to a label",
            ));
        }
    }
    word(&inst)
}

fn record_srcloc(list: &mut Vec<SrcLocRange>, start: u32, mc: &McInst) {
    let loc = mc.origin.srcloc;
    if loc.is_default() {
        return;
    }
    let end = start + INSTRUCTION_SIZE;
    match list.last_mut() {
        Some(last) if last.loc == loc && last.end == start => last.end = end,
        _ => list.push(SrcLocRange { start, end, loc }),
    }
}

/// Records stack maps and debug tags of calls. `next` is the offset after the jump.
fn record_call(
    code: &mut CompiledCode,
    func: &Function,
    inst: ir::Inst,
    kind: CallKind,
    next: u32,
) -> Result<(), CompileError> {
    let tags = func.debug_tags.get(inst);
    if !tags.is_empty() {
        let (offset, pos) = match kind {
            CallKind::Call => (next, DebugTagPos::Post),
            // A tail call has no return address.
            CallKind::TailCall | CallKind::None => (next - INSTRUCTION_SIZE, DebugTagPos::Pre),
        };
        code.debug_tags.push(DebugTags {
            offset,
            pos,
            tags: tags.to_vec(),
        });
    }
    if kind != CallKind::Call {
        return Ok(());
    }
    let Some(entries) = func.dfg.user_stack_map_entries(inst) else {
        return Ok(());
    };
    let slots = &code.frame.stack_slots;
    let entries = entries.iter().map(|entry| {
        let slot = slots.get(entry.slot.as_u32() as usize);
        let slot = slot.ok_or_else(|| CompileError::internal("encode", entry.slot, "a slot that the frame has"))?;
        Ok(StackMapEntry {
            ty: entry.ty,
            offset: slot + entry.offset,
        })
    });
    let entries = entries.collect::<Result<_, CompileError>>()?;
    code.stack_maps.push(StackMap {
        return_offset: next,
        entries,
    });
    Ok(())
}

fn record_sequence_points(
    code: &mut CompiledCode,
    function: &MachFunction,
    func: &Function,
) -> Result<(), CompileError> {
    for &(label, inst) in &function.sequence_points {
        let tags = func.debug_tags.get(inst);
        if !tags.is_empty() {
            code.debug_tags.push(DebugTags {
                offset: offset(function.position(label)?),
                pos: DebugTagPos::Pre,
                tags: tags.to_vec(),
            });
        }
    }
    code.debug_tags.sort_by_key(|tags| (tags.offset, tags.pos));
    Ok(())
}

fn record_call_sites(code: &mut CompiledCode, function: &MachFunction) -> Result<(), CompileError> {
    for site in &function.call_sites {
        let mut handlers = Vec::with_capacity(site.handlers.len());
        let mut context = None;
        for handler in &site.handlers {
            if handler.context != context {
                context = handler.context;
                handlers.extend(context.map(ExceptionHandler::Context));
            }
            let offset = offset(function.position(handler.block)?);
            handlers.push(match handler.tag {
                Some(tag) => ExceptionHandler::Tag(tag, offset),
                None => ExceptionHandler::Default(offset),
            });
        }
        code.call_sites.push(CallSite {
            return_offset: offset(function.position(site.after)?),
            popped: site.popped,
            handlers,
        });
    }
    code.call_sites.sort_by_key(|site| site.return_offset);
    Ok(())
}

fn record_labels(code: &mut CompiledCode, function: &MachFunction) {
    for live in function.value_locations() {
        let range = LabelRange {
            start: offset(live.start),
            end: offset(live.end),
            loc: live.loc,
        };
        code.value_labels_ranges.entry(live.label).or_default().push(range);
    }
    for ranges in code.value_labels_ranges.values_mut() {
        ranges.sort_by_key(|range| (range.start, range.end));
    }
}
