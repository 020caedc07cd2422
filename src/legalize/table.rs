//! The table that the build makes of `td/NaplesPULegalize.td`, and what is computed from it.

use super::Rule;
use cranelift_codegen::ir::{Opcode, Type, types};
use npu_mc::tables::{LegalizeAction, LegalizeCondition};

include!(concat!(env!("OUT_DIR"), "/legalize.rs"));

/// The rules of an opcode in a column.
pub(super) fn rules(opcode: Opcode, column: usize) -> &'static [Rule] {
    RULES[usize::from(CELLS[opcode as usize][column])]
}

/// For each opcode the columns in which it may be refused, one bit per column.
pub(super) static REFUSABLE: [u16; 256] = {
    let mut all = [0; 256];
    let mut opcode = 0;
    while opcode < all.len() {
        let mut column = 0;
        while column < COLUMNS {
            let rules = RULES[CELLS[opcode][column] as usize];
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
