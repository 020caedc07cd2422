//! Implements the target interface of `clif-opt` for this machine.

use crate::cost;
use crate::error::CompileError;
use crate::inst::ops::immediate_range;
use crate::intrinsics::{self, Reserved};
use crate::isa::Isa;
use crate::legalize::Legality;
use crate::spaces::{self, Space};
use clif_opt::{Error, Target};
use cranelift_codegen::ir::{Function, Inst, MemFlags, Opcode};
use cranelift_codegen::settings::Flags;
use npu_mc::OperandKind;
use npu_mc::tables::IntrinsicKind;
use std::ops::RangeInclusive;

impl Target for Isa {
    fn flags(&self) -> &Flags {
        self.quiet_flags()
    }

    /// On with the setting `loop_checker`, and in debug builds unless the flag `enable_verifier` is
    /// off.
    fn checks_loops(&self) -> bool {
        self.settings().loop_checker || cfg!(debug_assertions) && self.flags().enable_verifier()
    }

    fn instructions(&self, func: &Function, inst: Inst) -> Option<u32> {
        match func.dfg.insts[inst].opcode() {
            Opcode::Call if intrinsics::is_instruction(func, inst) => Some(1),
            _ => cost::scalar(Legality::new(self.flags(), self.settings()), func, inst),
        }
    }

    /// The lane mask belongs to a function.
    fn has_own_state(&self, func: &Function) -> bool {
        let mut callees = func.dfg.ext_funcs.keys();
        callees.any(|callee| match intrinsics::classify(func, callee) {
            Some(Reserved::Intrinsic(info)) => {
                matches!(info.kind, IntrinsicKind::WriteMask | IntrinsicKind::WriteMaskLanes)
            }
            _ => false,
        })
    }

    fn is_instruction(&self, func: &Function, inst: Inst) -> bool {
        intrinsics::is_instruction(func, inst)
    }

    fn memory(&self, func: &Function, flags: MemFlags) -> usize {
        match spaces::of_flags(func, flags) {
            Space::Main => 0,
            Space::Scratchpad => 1,
        }
    }

    fn offsets(&self) -> RangeInclusive<i32> {
        let (lowest, highest) = immediate_range(OperandKind::Offset9);
        lowest..=highest
    }

    fn immediates(&self) -> RangeInclusive<i32> {
        let (lowest, highest) = immediate_range(OperandKind::Simm9);
        lowest..=highest
    }
}

impl From<Error> for CompileError {
    fn from(error: Error) -> Self {
        match error {
            Error::Cranelift(what) => Self::Optimizer(what),
            Error::Internal { pass, at, expected } => Self::internal(pass, at, expected),
            error => Self::Optimizer(error.to_string()),
        }
    }
}
