//! Which instructions load, store and make constants, and which immediates fit.

use npu_mc::inst::OperandRange;
use npu_mc::{Opcode, OperandKind};
use regalloc2::RegClass;

/// The instruction that loads a register of the class.
pub fn load_op(class: RegClass) -> Opcode {
    match class {
        RegClass::Int => Opcode::L32W_Mainmem,
        RegClass::Float | RegClass::Vector => Opcode::LV32WMainmem_U,
    }
}

/// The instruction that stores a register of the class.
pub fn store_op(class: RegClass) -> Opcode {
    match class {
        RegClass::Int => Opcode::S32W_Mainmem,
        RegClass::Float | RegClass::Vector => Opcode::SV32WMainmem_U,
    }
}

/// The instruction that puts a small constant into a scalar register.
pub const CONSTANT_OP: Opcode = Opcode::MOVEISI;

/// The instructions that load and store one byte, or one word.
pub fn access(bytes: u32) -> (Opcode, Opcode) {
    match bytes {
        1 => (Opcode::L32BU_Mainmem, Opcode::S32B_Mainmem),
        _ => (load_op(RegClass::Int), store_op(RegClass::Int)),
    }
}

/// Smallest and largest immediate of an operand kind.
pub fn immediate_range(kind: OperandKind) -> (i32, i32) {
    match kind.range() {
        OperandRange::Immediate { min, max, .. } => (min, max),
        OperandRange::Register(_) => (0, 0),
    }
}

/// Whether the number is an immediate of the operand kind.
pub fn fits(kind: OperandKind, value: i32) -> bool {
    let (min, max) = immediate_range(kind);
    (min..=max).contains(&value)
}
