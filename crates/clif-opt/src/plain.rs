//! A machine for the tests of passes.

use crate::Target;
use cranelift_codegen::ir::{Function, Inst, MemFlags};
use cranelift_codegen::settings::{self, Flags};
use std::ops::RangeInclusive;

/// One memory, and an instruction for everything.
pub struct Plain(Flags);

impl Plain {
    /// With Cranelift's default flags.
    pub fn new() -> Self {
        Self(Flags::new(settings::builder()))
    }
}

impl Target for Plain {
    fn flags(&self) -> &Flags {
        &self.0
    }

    fn checks_loops(&self) -> bool {
        true
    }

    fn instructions(&self, func: &Function, inst: Inst) -> Option<u32> {
        (!func.dfg.insts[inst].opcode().is_call()).then_some(1)
    }

    fn is_instruction(&self, _: &Function, _: Inst) -> bool {
        false
    }

    fn memory(&self, _: &Function, _: MemFlags) -> usize {
        0
    }

    fn offsets(&self) -> RangeInclusive<i32> {
        -256..=255
    }

    fn immediates(&self) -> RangeInclusive<i32> {
        -256..=255
    }
}
