//! Includes the table that the build generates from `td/NaplesPULegalize.td`, and derives data from
//! it.

use super::rules::Rule;
use crate::routine::Routine;
use cranelift_codegen::ir::{Opcode, Type, types};
use npu_mc::RegFile;
use npu_mc::cc::ValueType;
use npu_mc::tables::{LegalizeAction, LegalizeCondition};

include!(concat!(env!("OUT_DIR"), "/legalize.rs"));

/// Returns the rules of an opcode in a column.
pub(super) fn rules(opcode: Opcode, column: usize) -> &'static [Rule] {
    RULES[usize::from(CELLS[opcode as usize][column])]
}

/// Returns the number of machine instructions of an opcode in a column, or `None` if the form does
/// not exist or calls a routine.
pub(super) fn instructions(opcode: Opcode, column: usize) -> Option<u32> {
    let count = COUNTS[opcode as usize][column];
    (count != u16::MAX).then_some(count.into())
}

/// The column of instructions without a controlling type.
const UNTYPED: usize = column(types::INVALID);

/// For each opcode, the columns in which it may be refused or lacks a rule, one bit per column. An
/// opcode has rules either for instructions without a controlling type or for types, so a missing
/// rule of the other kind does not count.
pub(super) static REFUSABLE: [u16; 256] = {
    let mut all = [0; 256];
    let mut opcode = 0;
    while opcode < all.len() {
        let mut column = 0;
        while column < COLUMNS {
            let rules = RULES[CELLS[opcode][column] as usize];
            let untyped = !RULES[CELLS[opcode][UNTYPED] as usize].is_empty();
            if rules.is_empty() && untyped == (column == UNTYPED) {
                all[opcode] |= 1 << column;
            }
            let mut index = 0;
            while index < rules.len() {
                if matches!(rules[index].action, LegalizeAction::Refused) {
                    all[opcode] |= 1 << column;
                }
                index += 1;
            }
            column += 1;
        }
        opcode += 1;
    }
    all
};
