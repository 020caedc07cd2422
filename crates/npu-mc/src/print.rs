//! The assembler's text of an instruction.

use crate::desc::AsmPiece;
use crate::inst::{Inst, Operand};
use core::fmt;

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::S(r) => r.fmt(f),
            Operand::V(r) => r.fmt(f),
            Operand::Imm(value) => value.fmt(f),
        }
    }
}

/// Writes the text that assembles to this instruction. If an ill-formed instruction lacks an
/// operand, `?` stands for the operand.
impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = |index: u8| self.operands.get(usize::from(index)).copied();
        for piece in self.desc().print {
            match *piece {
                AsmPiece::Text(text) => f.write_str(text)?,
                AsmPiece::Operand(index) => match operand(index) {
                    Some(operand) => operand.fmt(f)?,
                    None => f.write_str("?")?,
                },
                AsmPiece::OperandUnlessZero(index) => match operand(index) {
                    Some(Operand::Imm(0)) => {}
                    Some(operand) => operand.fmt(f)?,
                    None => f.write_str("?")?,
                },
            }
        }
        Ok(())
    }
}
