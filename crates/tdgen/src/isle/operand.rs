//! Kinds of operands: register classes, immediates, addresses, and what only pseudo-instructions take.

use tablegen::{Record, ValueKind};

use super::constructors::{Fault, access};
use super::fault;

/// A kind of operand, with the name of its ISLE type.
#[derive(Clone, Copy)]
pub(super) struct OperandKind<'a> {
    /// The register class or operand record.
    pub record: Record<'a>,
    /// Whether it is a register class.
    pub is_register: bool,
    /// The letter in the names of emitters; a space for what no machine instruction has.
    pub letter: char,
    pub isle_type: &'a str,
}

impl<'a> OperandKind<'a> {
    /// The kind of this record; none if no ISLE term can make such an operand.
    pub fn of(record: Record<'a>) -> Result<Option<Self>, Fault> {
        let letter = letter(record)?;
        let symbolic = record.field("OperandType").is_some()
            && record.string("OperandType").map_err(access)? == "OPERAND_ABSOLUTE";
        let isle_type = if record.is_a("PseudoOperand") {
            Some(record.string("IsleType").map_err(access)?)
        } else {
            isle_type(letter).filter(|_| !symbolic)
        };
        Ok(isle_type.map(|isle_type| OperandKind {
            record,
            is_register: record.is_a("RegisterClass"),
            letter,
            isle_type,
        }))
    }

    /// Whether it is the same kind, or ISLE converts that one into this.
    pub fn is(&self, other: Record<'_>) -> bool {
        self.record.name() == other.name() || self.class().is_some_and(|class| class.name() == class_of(other))
    }

    /// The register class that it is in, or will be in once an instruction wants it there.
    pub fn class(&self) -> Option<Record<'a>> {
        if self.is_register {
            return Some(self.record);
        }
        self.record.field("RegClass")?;
        self.record.def_field("RegClass").ok()
    }
}

/// The name of the register class of an operand; its own name if it has none.
fn class_of(record: Record<'_>) -> &str {
    match record.field("RegClass") {
        Some(_) => record.def_field("RegClass").map_or(record.name(), |class| class.name()),
        None => record.name(),
    }
}

/// The ISLE type of an operand with this shape letter; none if no ISLE term can make it.
fn isle_type(letter: char) -> Option<&'static str> {
    match letter {
        's' => Some("Gpr"),
        'v' => Some("Vec"),
        'i' => Some("Simm9"),
        'w' => Some("Imm16"),
        'm' => Some("AMode"),
        _ => None,
    }
}

/// The letter of an operand in the names of instruction shapes; a space if it has none.
pub(super) fn letter(operand: Record<'_>) -> Result<char, Fault> {
    if operand.field("Shape").is_none() {
        return Ok(' ');
    }
    Ok(operand.string("Shape").map_err(access)?.chars().next().unwrap_or(' '))
}

/// The record of an operand, also of one with named sub-operands.
pub(super) fn operand_record(kind: ValueKind<'_>) -> Option<Record<'_>> {
    match kind {
        ValueKind::Def(record) => Some(record),
        ValueKind::Dag(dag) => dag.operator_def(),
        _ => None,
    }
}

/// Kind and name of each operand of a list; no kind where ISLE has no type for it.
pub(super) fn operands<'a>(record: Record<'a>, list: &str) -> Result<Vec<(Option<OperandKind<'a>>, String)>, Fault> {
    let mut found = Vec::new();
    for (value, name) in record.dag(list).map_err(access)?.args() {
        let Some(operand) = operand_record(value.kind()) else {
            return Err(fault(
                value.span(),
                format!(
                    "operand of `{}` is neither a register class nor an operand",
                    record.name()
                ),
            ));
        };
        found.push((OperandKind::of(operand)?, name.unwrap_or_default().to_owned()));
    }
    Ok(found)
}
