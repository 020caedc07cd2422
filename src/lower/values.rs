//! Operands of lowering: constants, registers, and loads whose user requires an extended value.

use super::context::{Lower, ValueRegs, sign_extend};
use super::words;
use crate::error::{CompileError, Refusal};
use cranelift_codegen::ir::{self, Inst, Opcode, Value, ValueDef};
use regalloc2::{RegClass, VReg};

impl Lower<'_> {
    /// Returns the value's constant, zero-extended from its type.
    pub fn as_constant(&self, value: Value) -> Option<u64> {
        if !self.may_be_constant[value] {
            return None;
        }
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let ir::InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let bits = self.func.dfg.value_type(value).bits();
        let raw = imm.bits().cast_unsigned();
        Some(if bits >= 64 { raw } else { raw & ((1 << bits) - 1) })
    }

    /// Returns the registers of a value, and counts a use.
    pub fn put_in_regs(&mut self, value: Value) -> ValueRegs {
        let regs = self.value_regs[value];
        if let (Some(regs), false) = (regs, self.may_be_constant[value]) {
            self.lowered_uses[value] += 1;
            return regs;
        }
        let is_vector = regs.is_some_and(|regs| regs.regs[0].class() == RegClass::Vector);
        if is_vector && let Some(constant) = self.constant_parts(value) {
            return constant;
        }
        if let (Some(constant), Some(ValueRegs { len, .. })) = (self.wide_constant(value), regs) {
            let bits = self.func.dfg.value_type(value).bits();
            if bits < 32 {
                // The upper bits of narrow integers are undefined. Zeros there allow a
                // one-instruction constant, and all ones can share a register with -1 of other
                // types.
                let signed = sign_extend(constant as u64, bits);
                let number = if signed == u32::MAX { signed } else { constant as u32 };
                return ValueRegs::one(self.constant(number));
            }
            return self.value_regs(words::Words::constant(constant, len.into()));
        }
        self.lowered_uses[value] += 1;
        regs.unwrap_or_else(|| {
            let ty = self.func.dfg.value_type(value);
            self.set_fault(CompileError::Unsupported(vec![Refusal {
                function: self.func.name.to_string(),
                inst: None,
                srcloc: None,
                what: format!("a value of type {ty} ({value})"),
                help: None,
            }]));
            ValueRegs::one(VReg::new(0, RegClass::Int))
        })
    }

    /// Returns whether the value is the result of a load and the caller is its only user.
    pub fn is_lone_load(&self, value: Value) -> bool {
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return false;
        };
        self.uses[value] == 1 && self.func.dfg.insts[inst].opcode() == Opcode::Load
    }

    /// Requests sign extension to 32 bits from the [single-use](Self::is_lone_load) load that
    /// defines the value.
    pub fn request_signed_load(&mut self, value: Value) {
        self.signed_loads[value] = true;
    }

    /// Returns whether the user of a load requested sign extension.
    pub fn wants_signed_load(&self, inst: Inst) -> bool {
        self.func
            .dfg
            .inst_results(inst)
            .first()
            .is_some_and(|&v| self.signed_loads[v])
    }
}
