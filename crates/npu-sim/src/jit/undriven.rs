//! The upper halves that integer compares of vectors leave undriven, followed through translations as [`crate::hazard`] follows them.
//!
//! For each block it is known which registers have such a half. What would leave other bits undriven, or use some, is for the
//! definition.

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

/// What a result has when an operand of the operation has an undriven half.
enum Result {
    /// All bits.
    Driven,
    /// The lower half.
    Half,
    /// All bits, if the lower half of the first operand is not 0.
    DrivenIfDecided,
    /// This, if the upper half of the driven operand is 0.
    IfLow(Half),
    /// The operation is for the definition.
    Other,
}

/// Whether a result has an undriven half.
type Half = bool;

/// The result of an operation on scalars whose first or second operand has an undriven half, or both; `immediate` is the second one, if it
/// is known.
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
        // A driven half decides all bits or none.
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

    /// The registers with undriven halves after operation `done` of a block; `None` when that is for the definition. Leaves the region
    /// where it depends on values whether it is.
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
                // With the V bit of the operand that it has not it is one on vectors, which uses the bits.
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
            // With the V bit of the operand that it has not it is one on vectors, which uses the bits.
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

    /// Leaves the region in front of an operation if the lower half of a register is 0, so that the upper one decides.
    fn leave_unless_decided(&mut self, number: u8, pc: u32, done: usize) {
        let value = self.register(number);
        let low = self.constant(0xffff);
        let low = self.b.ins().band(value, low);
        let zero = self.constant(0);
        let undecided = self.b.ins().icmp(IntCC::Equal, low, zero);
        self.leave_if(undecided, pc, done);
    }
}
