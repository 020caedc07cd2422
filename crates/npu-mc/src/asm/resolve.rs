//! The end of an assembly: resolves fixups, and turns those with unknown addresses into
//! relocations.

use super::assembler::{Assembler, Fixup, Place, immediate};
use super::directive::data_fault;
use super::expr::Expr;
use super::fault::{Fault, Span};
use super::object::{Binding, Line, Object, Relocation, Symbol, SymbolValue, Target};
use super::symbol::{Definition, Entry, SymbolId};
use super::value::{Base, Evaluator, Value};
use crate::encode::encode;
use crate::inst::{Inst, Operand};
use crate::machine::INSTRUCTION_SIZE;
use crate::reloc::{self, Formula, Reloc, RelocError};

/// The result of a fixup.
enum Outcome {
    Bytes([u8; 8], usize),
    /// The instruction with its operand, and its word.
    Inst(Inst, u32),
    /// The operand with this index is the distance to an offset in the same section.
    Distance(Reloc, usize, u32),
    Wait(Reloc, Base, i64),
}

pub(super) fn finish(mut asm: Assembler<'_>) -> (Object, Vec<Fault>) {
    let mut faults = core::mem::take(&mut asm.faults);
    let fixups = core::mem::take(&mut asm.fixups);
    let mut relocations = Vec::new();
    let mut evaluator = Evaluator::new(&asm.symbols);
    for fixup in &fixups {
        let outcome = match outcome(&mut evaluator, fixup) {
            Ok(outcome) => outcome,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let section = &mut asm.sections[fixup.section.index()];
        match outcome {
            Outcome::Bytes(bytes, len) => {
                if let Some(place) = section.bytes_at_mut(fixup.offset).get_mut(..len) {
                    place.copy_from_slice(&bytes[..len]);
                }
            }
            Outcome::Inst(inst, word) => {
                if let Some(place) = section.bytes_at_mut(fixup.offset).first_chunk_mut() {
                    *place = word.to_le_bytes();
                }
                if let Some(Line { inst: Some(known), .. }) = asm.lines.get_mut(fixup.line) {
                    *known = inst;
                }
            }
            Outcome::Distance(kind, index, target) => {
                let place = section.bytes_at_mut(fixup.offset);
                if let Err(e) = reloc::apply(kind, place, target, 0, fixup.offset) {
                    faults.push(out_of_reach(&e, &fixup.span));
                }
                if let Some(Line { inst: Some(known), .. }) = asm.lines.get_mut(fixup.line) {
                    let distance = target.wrapping_sub(fixup.offset) as i32;
                    known.operands.set(index, Operand::Imm(distance));
                }
            }
            Outcome::Wait(kind, base, addend) => relocations.push(Relocation {
                section: fixup.section,
                offset: fixup.offset,
                kind,
                target: match base {
                    Base::Section(section) => Target::Section(section),
                    Base::Symbol(symbol) => Target::Symbol(symbol),
                },
                addend,
                span: fixup.span.clone(),
            }),
        }
    }
    let mut symbols = Vec::new();
    for (index, entry) in asm.symbols.list.iter().enumerate() {
        match symbol(&mut evaluator, SymbolId(index as u32), entry) {
            Ok(symbol) => symbols.push(symbol),
            Err(fault) => faults.push(fault),
        }
    }
    faults.sort_by_key(|f| (f.span.start, f.span.end));
    faults.dedup();
    let object = Object {
        sections: asm.sections,
        symbols,
        relocations,
        lines: asm.lines,
    };
    (object, faults)
}

fn outcome(evaluator: &mut Evaluator<'_>, fixup: &Fixup) -> Result<Outcome, Fault> {
    let span = &fixup.span;
    let value = evaluator.value(&fixup.expr, span)?;
    let kind = match (&fixup.place, value) {
        (Place::Data(size), Value::Number(value)) => {
            let bytes = data_fault(value, *size, span)?;
            let mut low = [0; 8];
            low.copy_from_slice(&bytes[..8]);
            return Ok(Outcome::Bytes(low, usize::from(*size)));
        }
        (Place::Data(4), Value::Address { .. }) => Reloc::Abs32,
        (Place::Data(size), Value::Address { .. }) => {
            let plural = if *size == 1 { "" } else { "s" };
            let message = format!("an address does not fit in {size} byte{plural}");
            return Err(Fault::new(span.clone(), message, "addresses have 4").note("`.long` holds an address"));
        }
        (
            Place::Operand {
                inst,
                index,
                number: true,
                ..
            },
            Value::Number(value),
        ) => {
            let mut inst = *inst;
            let operand = Operand::Imm(immediate(inst.opcode, *index, value, span)?);
            inst.operands.set(*index, operand);
            let word = encode(&inst).map_err(|e| Fault::new(span.clone(), e.to_string(), "here"))?;
            return Ok(Outcome::Inst(inst, word));
        }
        (Place::Operand { inst, .. }, Value::Number(value)) => {
            let message = format!("the memory operand of `{}` is the number {value}", inst.desc().mnemonic);
            let fault = Fault::new(span.clone(), message, "expected a label");
            return Err(fault.note("a number is an offset and needs a base register: `offset(base)`"));
        }
        (
            Place::Operand {
                inst, address: None, ..
            },
            Value::Address { base, .. },
        ) => {
            let mnemonic = inst.desc().mnemonic;
            let what = evaluator.describe(base);
            let message =
                format!("`{mnemonic}` takes a number here, and the address of {what} is not known before linking");
            let fault = Fault::new(span.clone(), message, "an address");
            return Err(fault.note("`leah` and `leal` load the halves of an address"));
        }
        (
            Place::Operand {
                address: Some(kind), ..
            },
            Value::Address { .. },
        ) => *kind,
    };
    let Value::Address { base, addend } = value else {
        return Err(Fault::new(span.clone(), "this is not an address", "here"));
    };
    let place = evaluator
        .place(base)
        .map(|(section, offset)| (section, offset + addend));
    if kind.info().formula == Formula::Pc
        && let Some((section, target)) = place
        && section == fixup.section
    {
        // A distance relative to `.` is accepted unchecked, like a plain number.
        if kind == Reloc::Branch
            && matches!(base, Base::Symbol(_))
            && target.rem_euclid(i128::from(INSTRUCTION_SIZE)) != 0
        {
            let message = format!("{} is not an address of an instruction", evaluator.describe(base));
            let label = format!("offset {target} in its section, no multiple of {INSTRUCTION_SIZE}");
            return Err(Fault::new(span.clone(), message, label));
        }
        let distance = target - i128::from(fixup.offset);
        let (min, max) = kind.range();
        return match u32::try_from(target.rem_euclid(1 << 32)) {
            Ok(target) if (i128::from(min)..=i128::from(max)).contains(&distance) => {
                let index = if let Place::Operand { index, .. } = fixup.place {
                    index
                } else {
                    0
                };
                Ok(Outcome::Distance(kind, index, target))
            }
            _ => Err(too_far(distance, min, max, span)),
        };
    }
    let Ok(addend) = i64::try_from(addend) else {
        return Err(Fault::new(
            span.clone(),
            "the constant of this address is too large",
            "at most 32 bits",
        ));
    };
    Ok(match place {
        // A symbol that is invisible outside is replaced by its section, so that the object does
        // not need the symbol.
        Some((section, offset)) if !evaluator.is_global(base) => match i64::try_from(offset) {
            Ok(offset) => Outcome::Wait(kind, Base::Section(section), offset),
            Err(_) => Outcome::Wait(kind, base, addend),
        },
        _ => Outcome::Wait(kind, base, addend),
    })
}

fn too_far(distance: i128, min: i64, max: i64, span: &Span) -> Fault {
    let message = format!("the label is {} bytes away", distance.unsigned_abs());
    Fault::new(span.clone(), message, format!("{min} to {max} can be reached"))
}

/// Returns the fault for a relocation that does not fit, at its operand in the source.
pub fn out_of_reach(error: &RelocError, span: &Span) -> Fault {
    match *error {
        RelocError::Range { value, min, max, .. } => too_far(i128::from(value), min, max, span),
        RelocError::Short { .. } => Fault::new(span.clone(), error.to_string(), "here"),
    }
}

fn symbol(evaluator: &mut Evaluator<'_>, id: SymbolId, entry: &Entry) -> Result<Symbol, Fault> {
    let fault = |why: String| Fault::new(entry.span.clone(), why, "this symbol");
    let value = match &entry.definition {
        Definition::None if entry.hidden => {
            let number = entry.name.trim_end_matches('f');
            return Err(Fault::new(
                entry.span.clone(),
                format!("there is no label `{number}:` after this"),
                "refers to nothing",
            ));
        }
        Definition::None => SymbolValue::Undefined,
        Definition::Label { section, offset } => SymbolValue::Place {
            section: *section,
            offset: *offset,
        },
        Definition::Assigned(_) => match evaluator.value(&Expr::Symbol(id), &entry.span)? {
            Value::Number(value) => match i64::try_from(value) {
                Ok(value) => SymbolValue::Number(value),
                // An unsigned 64-bit number has the same bits.
                Err(_) => SymbolValue::Number(value as i64),
            },
            Value::Address { base, addend } => match (evaluator.place(base), base) {
                (Some((section, offset)), _) => {
                    let offset = u32::try_from(offset + addend);
                    let offset = offset.map_err(|_| fault(format!("`{}` is outside of its section", entry.name)))?;
                    SymbolValue::Place { section, offset }
                }
                (None, Base::Symbol(symbol)) => SymbolValue::Near {
                    symbol,
                    addend: i64::try_from(addend).map_err(|_| fault("the constant is too large".to_owned()))?,
                },
                (None, Base::Section(_)) => SymbolValue::Undefined,
            },
        },
    };
    let size = match &entry.size {
        None => None,
        Some(expr) => match evaluator.value(expr, &entry.span)? {
            Value::Number(size) => {
                let size = u32::try_from(size);
                Some(size.map_err(|_| fault(format!("the size of `{}` is not a number of bytes", entry.name)))?)
            }
            Value::Address { .. } => return Err(fault(format!("the size of `{}` is an address", entry.name))),
        },
    };
    let undefined = value == SymbolValue::Undefined;
    Ok(Symbol {
        name: entry.name.clone(),
        value,
        // An undefined symbol has to be defined by another object.
        binding: entry
            .binding
            .unwrap_or(if undefined { Binding::Global } else { Binding::Local }),
        kind: entry.kind,
        size,
        private: entry.hidden || entry.name.starts_with(".L"),
        span: entry.span.clone(),
    })
}
