//! The target of the unit tests.

use crate::Target;
use cranelift_codegen::ir::{Function, Inst, MemFlags};
use cranelift_codegen::settings::{self, Flags};
use std::ops::RangeInclusive;

/// A target with one memory and one instruction for each operation.
pub struct TestTarget(Flags);

impl TestTarget {
    /// Creates a target with Cranelift's default flags.
    pub fn new() -> Self {
        Self(Flags::new(settings::builder()))
    }
}

impl Target for TestTarget {
    fn flags(&self) -> &Flags {
        &self.0
    }

    fn checks_loops(&self) -> bool {
        true
    }

    fn instructions(&self, func: &Function, inst: Inst) -> Option<u32> {
        (!func.dfg.insts[inst].opcode().is_call()).then_some(1)
    }

    fn has_own_state(&self, _: &Function) -> bool {
        false
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
