//! Queries of the rules about values: constants, and defining instructions.

use super::context::{Lower, sign_extend};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value, ValueDef, types};

impl Lower<'_> {
    /// Returns the constant of a type of at most 32 bits, zero-extended.
    pub fn scalar_constant(&self, value: Value) -> Option<u64> {
        if !self.may_be_constant[value] || self.func.dfg.value_type(value).bits() > 32 {
            return None;
        }
        self.as_constant(value)
    }

    /// Returns the constant, sign-extended from its type.
    pub fn signed_constant(&self, value: Value) -> Option<i32> {
        let constant = self.scalar_constant(value)?;
        Some(sign_extend(constant, self.func.dfg.value_type(value).bits()).cast_signed())
    }

    /// Returns the bits of an f32 constant.
    pub fn float_constant(&self, value: Value) -> Option<u32> {
        match self.func.dfg.insts[self.defining(value)?] {
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits()),
            _ => None,
        }
    }

    /// Returns the instruction whose first result is the value.
    pub fn defining(&self, value: Value) -> Option<Inst> {
        match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, 0) => Some(inst),
            _ => None,
        }
    }

    /// Returns whether the value is the overflow flag of an instruction, its second result: 0 or 1
    /// in a full register.
    pub fn is_overflow_flag(&self, value: Value) -> bool {
        let def = self.func.dfg.value_def(value);
        let ValueDef::Result(inst, 1) = def else { return false };
        matches!(
            self.func.dfg.insts[inst].opcode(),
            Opcode::UaddOverflow
                | Opcode::SaddOverflow
                | Opcode::UsubOverflow
                | Opcode::SsubOverflow
                | Opcode::UmulOverflow
                | Opcode::SmulOverflow
                | Opcode::UaddOverflowCin
                | Opcode::SaddOverflowCin
                | Opcode::UsubOverflowBin
                | Opcode::SsubOverflowBin
        )
    }

    /// Returns whether the register of the value is 0 or 1 because an instruction produces a truth
    /// value. An f32 compare may leave other bits.
    pub fn is_truth(&self, value: Value) -> bool {
        if self.is_overflow_flag(value) {
            return true;
        }
        let Some(inst) = self.defining(value) else {
            return false;
        };
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } => true,
            InstructionData::FloatCompare { args: [x, _], .. } => {
                matches!(self.func.dfg.value_type(x), types::F64 | types::F128)
            }
            _ => false,
        }
    }

    /// Returns whether the register of a narrow value is known to be zero-extended. Follows up to
    /// `depth` definitions.
    pub fn is_zero_extended(&self, value: Value, depth: u32) -> bool {
        if self.is_truth(value) {
            return true;
        }
        let Some(inst) = self.defining(value) else {
            return false;
        };
        match self.func.dfg.insts[inst] {
            InstructionData::Binary { opcode, args: [a, b] } if depth > 0 => {
                let known = |value| self.is_zero_extended(value, depth - 1);
                // A constant whose sign bit is clear.
                let positive = |value| {
                    let bits = self.func.dfg.value_type(value).bits();
                    self.scalar_constant(value)
                        .is_some_and(|number| number >> (bits - 1) == 0)
                };
                match opcode {
                    Opcode::Band => known(a) || known(b) || positive(a) || positive(b),
                    Opcode::Bor | Opcode::Bxor => known(a) && known(b),
                    _ => false,
                }
            }
            // A narrow load zero-extends, unless its only user requested sign extension. This is
            // another user.
            data => matches!(
                data.opcode(),
                Opcode::Load | Opcode::Uload8 | Opcode::Uload16 | Opcode::Clz | Opcode::AtomicLoad
            ),
        }
    }

    /// Returns a constant shift amount modulo the width of the type.
    pub fn amount_of(&mut self, ty: Type, value: Value) -> u32 {
        let constant = self.wide_constant(value).unwrap_or_else(|| {
            self.set_internal(value, "a shift amount that is a constant");
            0
        });
        (constant & u128::from(ty.bits() - 1)) as u32
    }
}
