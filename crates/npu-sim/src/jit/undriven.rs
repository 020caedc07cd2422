//! Tracking of the undriven upper halves that integer compares of vectors produce, in translations;
//! compare [`crate::hazard`].
//!
//! The registers with undriven halves are known for each block. Operations that would use undriven
//! bits, or would leave other bits undriven, require the definition.

use super::access::WORD;
use super::operations::Condition;
use super::region::{Form, Item, Source};
use super::translate::Builder;
use crate::alu::{self, Operation, Spread, is_unary};
use crate::hazard::UPPER_HALF;
use crate::registers::{PC, RA, RM};
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use npu_mc::raw::AluOp;

/// The driven bits of the result of an operation with a half-driven operand.
enum Result {
    /// All bits are driven.
    Driven,
    /// The lower half is driven.
    Half,
    /// All bits are driven if the lower half of the first operand is not 0.
    DrivenIfDecided,
    /// As given, if the upper half of the driven operand is 0.
    IfLow(Half),
    /// The operation requires the definition.
    Other,
}

/// Whether a value has an undriven upper half.
type Half = bool;

/// Returns the driven bits of the result of an operation on scalars. At least one of the operands
/// has an undriven half; `immediate` is the second operand if it is a constant.
fn result(op: AluOp, [first, second]: [Half; 2], immediate: Option<u32>) -> Result {
    let of = |half| if half { Result::Half } else { Result::Driven };
    let moved = |bits| match bits {
        0 => Result::Driven,
        UPPER_HALF => Result::Half,
        _ => Result::Other,
    };
    match (alu::spread(op), alu::operation(op), immediate) {
        (Spread::Copied, ..) => of(first),
        (Spread::Xor | Spread::Carried, ..) => Result::Half,
        (Spread::And | Spread::Or, ..) if first && second => Result::Half,
        // The upper half of the constant must determine all bits of the result half or none.
        (Spread::And, _, Some(immediate)) => moved(UPPER_HALF & immediate),
        (Spread::Or, _, Some(immediate)) => moved(UPPER_HALF & !immediate),
        (Spread::And, _, None) => Result::IfLow(false),
        (Spread::Or, _, None) => Result::IfLow(true),
        (Spread::Moved, Operation::Unary(f), _) => moved(f(UPPER_HALF)),
        (Spread::Moved, Operation::Binary(f), Some(immediate)) => moved(f(UPPER_HALF, immediate)),
        (Spread::Decided, ..) => Result::DrivenIfDecided,
        (Spread::Moved | Spread::Unwritten | Spread::Used, ..) => Result::Other,
    }
}

impl Builder<'_> {
    fn has_half(&self, number: u8) -> Half {
        number != PC && self.known.undriven >> (number & 63) & 1 != 0
    }

    fn source_has_half(&self, source: Source) -> Half {
        match source {
            Source::Scalar(number) => self.has_half(number),
            Source::Vector(_) | Source::Immediate(_) => false,
        }
    }

    /// Returns the registers with undriven halves after operation `done` of a block, or `None` if
    /// it requires the definition. If that depends on values, emits code that leaves the region.
    pub fn follow(&mut self, item: &Item, done: usize) -> Option<u64> {
        let &Item { pc, op, form } = item;
        let with = |number: u8, half: Half| {
            let bit = 1 << (number & 63);
            Some(if half {
                self.known.undriven | bit
            } else {
                self.known.undriven & !bit
            })
        };
        let unless_used = |used: Half, after: Option<u64>| after.filter(|_| !used);
        let same = Some(self.known.undriven);
        match form {
            Form::Alu { op: alu, immediate } => self.follow_alu(item, done, alu, immediate),
            Form::MoveMask => {
                let half = self.has_half(op.a);
                // With a V bit on its unused operand the operation is one on vectors, which uses
                // the bits.
                unless_used(half && op.b != PC, with(RM, half))
            }
            Form::MaskConstant(_) => with(RM, false),
            Form::Nop => same,
            Form::Constant(_) => with(op.d, false),
            Form::LoadScratchpad => unless_used(self.has_half(op.a), with(op.d, false)),
            Form::Load { bytes, .. } => {
                let half = self.known.words && bytes == WORD && self.reloads.contains(&pc);
                unless_used(self.has_half(op.a), with(op.d, half))
            }
            Form::Half { kept, .. } => with(op.d, kept >> 16 != 0 && self.has_half(op.d)),
            Form::Store { .. } | Form::StoreScratchpad | Form::LoadVector | Form::StoreVector | Form::JumpRegister => {
                unless_used(self.has_half(op.a), same)
            }
            Form::LoadNarrow(_) | Form::StoreNarrow(_) | Form::LoadVectorScratchpad | Form::StoreVectorScratchpad => {
                unless_used(self.has_half(op.a), same)
            }
            Form::HalfLanes { .. } | Form::Shuffle => same,
            Form::GetLane { number } => unless_used(number.is_none() && self.has_half(op.b), with(op.d, false)),
            Form::MakeMask => with(op.d, false),
            Form::Jump { link } => {
                if link {
                    with(RA, false)
                } else {
                    same
                }
            }
            Form::Branch { .. } => {
                if self.has_half(op.a) {
                    self.leave_unless_decided(op.a, pc, done);
                }
                same
            }
            Form::Lanes { a, b, .. } => unless_used(self.source_has_half(a) || self.source_has_half(b), same),
            Form::Splat(source) => unless_used(self.source_has_half(source), same),
            Form::Compare { condition, a, b, .. } | Form::CompareMask { condition, a, b, .. } => {
                let used = self.source_has_half(a) || self.source_has_half(b);
                unless_used(used, with(op.d, matches!(condition, Condition::Integer(_))))
            }
        }
    }

    fn follow_alu(&mut self, item: &Item, done: usize, alu: AluOp, immediate: bool) -> Option<u64> {
        let &Item { pc, op, .. } = item;
        let unary = is_unary(alu);
        let first = self.has_half(op.a);
        let second = !immediate && !unary && self.has_half(op.b);
        let bit = 1 << (op.d & 63);
        let (driven, half) = (self.known.undriven & !bit, self.known.undriven | bit);
        if !first && !second {
            return Some(driven);
        }
        if unary && !immediate && op.b != PC {
            // With a V bit on its unused operand the operation is one on vectors, which uses the
            // bits.
            return None;
        }
        match result(alu, [first, second], immediate.then_some(op.imm as u32)) {
            Result::Driven => Some(driven),
            Result::Half => Some(half),
            Result::DrivenIfDecided => {
                self.leave_unless_decided(op.a, pc, done);
                Some(driven)
            }
            Result::IfLow(is_half) => {
                let value = self.register(if first { op.b } else { op.a });
                let low = self.constant(0xffff);
                let more = self.b.ins().icmp(IntCC::UnsignedGreaterThan, value, low);
                self.leave_if(more, pc, done);
                Some(if is_half { half } else { driven })
            }
            Result::Other => None,
        }
    }

    /// Leaves the region before an operation if the lower half of a register is 0, so that the
    /// result depends on the upper half.
    fn leave_unless_decided(&mut self, number: u8, pc: u32, done: usize) {
        let value = self.register(number);
        let low = self.constant(0xffff);
        let low = self.b.ins().band(value, low);
        let zero = self.constant(0);
        let undecided = self.b.ins().icmp(IntCC::Equal, low, zero);
        self.leave_if(undecided, pc, done);
    }
}
