//! Kinds of operands: register classes, immediates, addresses, and operands of pseudo-instructions
//! only.

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
    /// The letter in the names of emitters; a space for operands that no machine instruction has.
    pub letter: char,
    pub isle_type: &'a str,
}

impl<'a> OperandKind<'a> {
    /// Returns the kind of this record; `None` if no ISLE term can construct such an operand.
    pub fn of(record: Record<'a>) -> Result<Option<Self>, Fault> {
        let letter = letter(record)?;
        let symbolic = record.field("IsSymbol").is_some() && record.bit("IsSymbol").map_err(access)?;
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

    /// Returns whether `other` is the same kind, or ISLE converts it to this kind.
    pub fn is(&self, other: Record<'_>) -> bool {
        self.record.name() == other.name() || self.class().is_some_and(|class| class.name() == class_of(other))
    }

    /// Returns the register class that holds the operand, or will hold it once an instruction needs
    /// it there.
    pub fn class(&self) -> Option<Record<'a>> {
        if self.is_register {
            return Some(self.record);
        }
        self.record.field("RegClass")?;
        self.record.def_field("RegClass").ok()
    }
}

/// Returns the name of the register class of an operand; its own name if it has none.
fn class_of(record: Record<'_>) -> &str {
    match record.field("RegClass") {
        Some(_) => record.def_field("RegClass").map_or(record.name(), |class| class.name()),
        None => record.name(),
    }
}

/// Returns the ISLE type of an operand with this shape letter; `None` if no ISLE term can construct
/// it.
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

/// Returns the letter of an operand in the names of instruction shapes; a space if it has none.
pub(super) fn letter(operand: Record<'_>) -> Result<char, Fault> {
    if operand.field("Shape").is_none() {
        return Ok(' ');
    }
    Ok(operand.string("Shape").map_err(access)?.chars().next().unwrap_or(' '))
}

/// Returns the record of an operand; named sub-operands are allowed.
pub(super) fn operand_record(kind: ValueKind<'_>) -> Option<Record<'_>> {
    match kind {
        ValueKind::Def(record) => Some(record),
        ValueKind::Dag(dag) => dag.operator_def(),
        _ => None,
    }
}

/// Returns the kind and name of each operand of a list; the kind is `None` if ISLE has no type for
/// it.
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
