//! Opcodes for loads, stores and constants, and the ranges of immediates.

use npu_mc::inst::OperandRange;
use npu_mc::{Opcode, OperandKind};
use regalloc2::RegClass;

/// Returns the opcode that loads a register of the class.
pub fn load_op(class: RegClass) -> Opcode {
    match class {
        RegClass::Int => Opcode::L32W_Mainmem,
        RegClass::Float | RegClass::Vector => Opcode::LV32WMainmem_U,
    }
}

/// Returns the opcode that stores a register of the class.
pub fn store_op(class: RegClass) -> Opcode {
    match class {
        RegClass::Int => Opcode::S32W_Mainmem,
        RegClass::Float | RegClass::Vector => Opcode::SV32WMainmem_U,
    }
}

/// The opcode that loads a small constant into a scalar register.
pub const CONSTANT_OP: Opcode = Opcode::MOVEISI;

/// Returns the opcodes that load and store one byte or one word.
pub fn access(bytes: u32) -> (Opcode, Opcode) {
    match bytes {
        1 => (Opcode::L32BU_Mainmem, Opcode::S32B_Mainmem),
        _ => (load_op(RegClass::Int), store_op(RegClass::Int)),
    }
}

/// Returns the smallest and largest immediate of an operand kind.
pub fn immediate_range(kind: OperandKind) -> (i32, i32) {
    match kind.range() {
        OperandRange::Immediate { min, max, .. } => (min, max),
        OperandRange::Register(_) => (0, 0),
    }
}

/// Returns whether the value is a valid immediate of the operand kind.
pub fn fits(kind: OperandKind, value: i32) -> bool {
    let (min, max) = immediate_range(kind);
    (min..=max).contains(&value)
}
