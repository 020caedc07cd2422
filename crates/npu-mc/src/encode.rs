//! The encoder: instruction to word.

use crate::inst::{Inst, Opcode, Operand, OperandKind, OperandRange};
use crate::reg::RegFile;
use core::fmt;

/// Why an instruction has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The instruction has too few or too many operands.
    Count {
        /// The opcode.
        opcode: Opcode,
        /// The number of operands found.
        found: usize,
    },
    /// An operand is of the wrong kind: an integer for a register, or a register of the other file.
    Kind {
        /// The opcode.
        opcode: Opcode,
        /// Index in the operand list.
        index: usize,
        /// The operand found.
        found: Operand,
    },
    /// An integer is out of its operand's range.
    Range {
        /// The opcode.
        opcode: Opcode,
        /// Index in the operand list.
        index: usize,
        /// The value.
        value: i32,
        /// The smallest value that fits.
        min: i32,
        /// The largest value that fits.
        max: i32,
    },
}

impl EncodeError {
    /// Returns the opcode that could not be encoded.
    pub const fn opcode(&self) -> Opcode {
        match *self {
            EncodeError::Count { opcode, .. }
            | EncodeError::Kind { opcode, .. }
            | EncodeError::Range { opcode, .. } => opcode,
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let desc = self.opcode().desc();
        let name = |index: usize| desc.operands.get(index).map_or("?", |o| o.name);
        match *self {
            EncodeError::Count { found, .. } => {
                write!(f, "`{}` takes {} operands, not {found}", desc.asm, desc.operands.len())
            }
            EncodeError::Kind { index, found, .. } => {
                write!(f, "`{}`: `${}` cannot be ", desc.asm, name(index))?;
                match found {
                    Operand::S(r) => write!(f, "the scalar register {r}"),
                    Operand::V(r) => write!(f, "the vector register {r}"),
                    Operand::Imm(value) => write!(f, "the integer {value}"),
                }
            }
            EncodeError::Range {
                index, value, min, max, ..
            } => write!(
                f,
                "`{}`: `${}` = {value} is not in {min}..={max}",
                desc.asm,
                name(index)
            ),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Returns why an operand does not fit in its position.
#[cold]
fn fault(opcode: Opcode, index: usize, kind: OperandKind, found: Operand) -> EncodeError {
    match (kind.range(), found) {
        (OperandRange::Immediate { min, max, .. }, Operand::Imm(value)) => EncodeError::Range {
            opcode,
            index,
            value,
            min,
            max,
        },
        _ => EncodeError::Kind { opcode, index, found },
    }
}

/// Encodes an instruction.
///
/// # Errors
///
/// Reports the first operand that is missing, superfluous, of the wrong kind or out of range.
pub fn encode(inst: &Inst) -> Result<u32, EncodeError> {
    let opcode = inst.opcode;
    let desc = opcode.desc();
    let found = inst.operands.len();
    if found != desc.operands.len() {
        return Err(EncodeError::Count { opcode, found });
    }
    let mut word = desc.base;
    for (index, (&operand, od)) in inst.operands.iter().zip(desc.operands).enumerate() {
        let bits = match (od.kind.range(), operand) {
            (OperandRange::Register(RegFile::Scalar), Operand::S(r)) => u32::from(r.number()),
            (OperandRange::Register(RegFile::Vector), Operand::V(r)) => u32::from(r.number()),
            (OperandRange::Immediate { min, max, .. }, Operand::Imm(value)) if (min..=max).contains(&value) => {
                value as u32
            }
            _ => return Err(fault(opcode, index, od.kind, operand)),
        };
        for run in od.runs {
            word |= ((bits >> run.value_lsb) & run.mask()) << run.inst_lsb;
        }
    }
    Ok(word)
}
