//! Reads the `Inst` field of an instruction: its constant bits, and the positions of operand bits.
//!
//! Every bit of the word is constant or an operand bit, and every bit of an operand's field has
//! exactly one position in the word. Anything else is a fault.

use super::operands::Part;
use super::{constant_bits, fault, field_span};
use crate::model::{BitRun, OperandKind, OperandRange};
use std::collections::BTreeMap;
use tablegen::{BitValue, Diagnostic, Record};

/// The contents of `Inst`.
pub(super) struct Encoding {
    /// Constant bits.
    pub(super) base: u32,
    /// Constant bits that the decoder checks.
    pub(super) fixed: u32,
    /// Bits that the decoder ignores.
    pub(super) ignored: u32,
    /// For each part, the positions of its bits.
    pub(super) runs: Vec<Vec<BitRun>>,
}

/// The width of a register field (`docs/machine/registers.md`).
const REGISTER_FIELD: u32 = 6;

/// The width of an instruction word.
const WORD: usize = 32;

/// Reads `Inst` of an instruction with these operand parts.
pub(super) fn encoding(record: Record<'_>, parts: &[Part], kinds: &[OperandKind]) -> Result<Encoding, Vec<Diagnostic>> {
    let one = |diagnostic: Diagnostic| vec![diagnostic];
    let bits = record.bits("Inst").map_err(|e| one(e.into()))?;
    let span = field_span(record, "Inst");
    let name = record.name();
    if bits.len() != WORD {
        return Err(one(fault(
            span,
            format!("`Inst` of `{name}` has {} bits, not {WORD}", bits.len()),
        )));
    }
    let mut ignored = match record.field("DecodeIgnored") {
        Some(_) => constant_bits(record, "DecodeIgnored").map_err(one)?,
        None => 0,
    };
    let mut faults = Vec::new();
    let mut base = 0;
    let mut constant = 0;
    let mut uncovered = 0u32;
    // Three kinds of faults: bits of `Inst` from a field that is not an operand, operand bits that
    // are used twice, and operand bits beyond their field.
    let mut strays: BTreeMap<&str, u32> = BTreeMap::new();
    let mut twice: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut beyond: BTreeMap<&str, u32> = BTreeMap::new();
    // For each part, the position of each bit of its value.
    let mut places: Vec<Vec<Option<u8>>> = Vec::new();
    for part in parts {
        let width = match record.field(&part.name) {
            Some(_) => record.bits(&part.name).map(|b| b.len()),
            None => Ok(0),
        };
        places.push(vec![None; width.map_err(|e| one(e.into()))?]);
    }
    for (i, bit) in bits.iter().enumerate() {
        match bit {
            BitValue::Zero => constant |= 1 << i,
            BitValue::One => {
                constant |= 1 << i;
                base |= 1 << i;
            }
            BitValue::Unset => uncovered |= 1 << i,
            BitValue::Field { field, index } => {
                let here = 1u32 << i;
                let value_bit = 1u32.checked_shl(*index).unwrap_or(0);
                let Some(p) = parts.iter().position(|part| part.name == *field) else {
                    *strays.entry(field).or_default() |= here;
                    continue;
                };
                match places[p].get_mut(*index as usize) {
                    Some(place @ None) => *place = Some(i as u8),
                    Some(Some(first)) => {
                        let (value, inst) = twice.entry(field).or_default();
                        *value |= value_bit;
                        *inst |= here | 1 << *first;
                    }
                    None => *beyond.entry(field).or_default() |= here,
                }
            }
        }
    }
    for (field, inst) in strays {
        faults.push(fault(
            span,
            format!(
                "{} of `Inst` of `{name}` {} from `{field}`, which is not an operand of the instruction",
                bit_list(inst),
                if inst.count_ones() == 1 { "comes" } else { "come" }
            ),
        ));
    }
    for (field, (value, inst)) in twice {
        faults.push(fault(
            span,
            format!(
                "{} of operand `${field}` of `{name}` {} encoded twice, in {} of `Inst`",
                bit_list(value),
                if value.count_ones() == 1 { "is" } else { "are" },
                bit_list(inst)
            ),
        ));
    }
    for (field, inst) in beyond {
        faults.push(fault(
            span,
            format!(
                "{} of `Inst` of `{name}` come from beyond the end of `{field}`",
                bit_list(inst)
            ),
        ));
    }
    // An ignored bit needs no value.
    let gaps = uncovered & !ignored;
    if gaps != 0 {
        faults.push(fault(
            span,
            format!(
                "{} of `Inst` of `{name}` {} neither constant nor part of an operand",
                bit_list(gaps),
                if gaps.count_ones() == 1 { "is" } else { "are" }
            ),
        ));
    }
    for (part, places) in parts.iter().zip(&places) {
        let read = match kinds[part.kind].range {
            OperandRange::Register(_) => places.len(),
            OperandRange::Immediate { bits, .. } => bits as usize,
        };
        let lost = places
            .iter()
            .take(read)
            .flatten()
            .fold(0, |mask, place| mask | (ignored & 1 << place));
        if lost != 0 {
            faults.push(fault(
                span,
                format!(
                    "the decoder of `{name}` ignores {} of `Inst`, but operand `${}` needs them",
                    bit_list(lost),
                    part.name
                ),
            ));
        }
    }
    for (part, places) in parts.iter().zip(&places) {
        faults.extend(check_part(record, part, places, &kinds[part.kind]));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // The decoder reads the significant bits of an immediate; the bits above them repeat the sign.
    for (part, places) in parts.iter().zip(&places) {
        if let OperandRange::Immediate { bits, .. } = kinds[part.kind].range {
            for place in places.iter().skip(bits as usize).flatten() {
                ignored |= 1 << place;
            }
        }
    }
    Ok(Encoding {
        base,
        fixed: constant & !ignored,
        ignored,
        runs: places.iter().map(|p| runs_of(p)).collect(),
    })
}

/// Returns the fault of an operand: its field is missing, has the wrong width, or is encoded only
/// in part.
fn check_part(record: Record<'_>, part: &Part, places: &[Option<u8>], kind: &OperandKind) -> Option<Diagnostic> {
    let name = record.name();
    let operand = &part.name;
    if places.is_empty() {
        return Some(fault(
            part.span,
            format!("operand `${operand}` of `{name}` has no field `bits<n> {operand}`, so it is not encoded"),
        ));
    }
    let missing: Vec<usize> = (0..places.len()).filter(|i| places[*i].is_none()).collect();
    if missing.len() == places.len() {
        return Some(fault(
            part.span,
            format!("operand `${operand}` of `{name}` is not encoded: `Inst` does not use it"),
        ));
    }
    if !missing.is_empty() {
        let mask = missing
            .iter()
            .fold(0u32, |m, i| m | 1u32.checked_shl(*i as u32).unwrap_or(0));
        return Some(fault(
            field_span(record, "Inst"),
            format!(
                "operand `${operand}` of `{name}` is encoded only in part: {} of it {} missing in `Inst`",
                bit_list(mask),
                if missing.len() == 1 { "is" } else { "are" }
            ),
        ));
    }
    let width = places.len() as u32;
    let wanted = match kind.range {
        OperandRange::Register(_) => REGISTER_FIELD,
        OperandRange::Immediate { field_bits, .. } => field_bits,
    };
    if wanted != width {
        return Some(fault(
            field_span(record, operand),
            format!(
                "operand `${operand}` of `{name}` has a field of {width} bits, but its class `{}` needs {}",
                kind.record, wanted
            ),
        ));
    }
    None
}

fn runs_of(places: &[Option<u8>]) -> Vec<BitRun> {
    let mut runs: Vec<BitRun> = Vec::new();
    for (value_bit, inst_bit) in places.iter().enumerate() {
        let Some(inst_bit) = *inst_bit else { continue };
        match runs.last_mut() {
            Some(run) if run.inst_lsb + run.width == inst_bit => run.width += 1,
            _ => runs.push(BitRun {
                inst_lsb: inst_bit,
                value_lsb: value_bit as u8,
                width: 1,
            }),
        }
    }
    runs
}

/// Formats a mask as `bit 5` or `bits 7-5, 0`.
pub(super) fn bit_list(mask: u32) -> String {
    let mut runs: Vec<(u32, u32)> = crate::tree::runs(mask).collect();
    runs.reverse();
    let texts: Vec<String> = runs
        .iter()
        .map(|(lsb, width)| match width {
            1 => lsb.to_string(),
            _ => format!("{}-{lsb}", lsb + width - 1),
        })
        .collect();
    let word = if mask.count_ones() == 1 { "bit" } else { "bits" };
    format!("{word} {}", texts.join(", "))
}
