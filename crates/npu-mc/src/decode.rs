//! The decoder: word to instruction.

use crate::desc::BitRun;
use crate::generated;
use crate::inst::{Inst, Operand, OperandRange, Operands};
use crate::reg::{Reg, RegFile};
use core::fmt;

/// The word is not an instruction of the assembler. The hardware may still execute it as an
/// operation; see [`split`](crate::split()).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// The word.
    pub word: u32,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x} is not an instruction", self.word)
    }
}

impl core::error::Error for DecodeError {}

fn gather(word: u32, runs: &[BitRun]) -> u32 {
    runs.iter().fold(0, |value, run| {
        value | ((word >> run.inst_lsb) & run.mask()) << run.value_lsb
    })
}

/// Decodes a word.
///
/// If several records share the encoding, the result is the record that td marks as decodable
/// (`moveil`, not `leal`). Immediates are sign-extended if their operand class is signed.
///
/// # Errors
///
/// Fails if the word matches no record.
pub fn decode(word: u32) -> Result<Inst, DecodeError> {
    let opcode = generated::opcode_of(word).ok_or(DecodeError { word })?;
    let mut operands = Operands::new();
    for od in opcode.desc().operands {
        let bits = gather(word, od.runs);
        let operand = match od.kind.range() {
            OperandRange::Register(file) => register(file, bits).ok_or(DecodeError { word })?,
            OperandRange::Immediate {
                bits: width, signed, ..
            } => {
                let unused = 32 - u32::from(width);
                let top = bits << unused;
                Operand::Imm(if signed {
                    top as i32 >> unused
                } else {
                    (top >> unused) as i32
                })
            }
        };
        operands.push(operand);
    }
    Ok(Inst { opcode, operands })
}

fn register(file: RegFile, bits: u32) -> Option<Operand> {
    let number = u8::try_from(bits).ok()?;
    Reg::new(file, number).map(Operand::from)
}
