//! Operations of the fast interpreter on vectors.

use super::lanes::{self, Source, Target};
use super::{Done, Exit, Port, Run};
use crate::alu::{self, Operation};
use crate::operands::is_slow;
use crate::predecode::Op;
use crate::registers::{Lanes, RM};
use npu_mc::for_each_alu_op;
use npu_mc::raw::AluOp;

/// The opcodes whose results can be lost, and the opcodes of integer compares, whose scalar result
/// on vectors has an undriven upper half.
const LONG: u64 = opcodes().0;
const PARTLY_DRIVEN: u64 = opcodes().1;

const fn opcodes() -> (u64, u64) {
    let (mut long, mut partly_driven) = (0, 0);
    macro_rules! each {
        ($($name:ident $(, $immediate:ident)?;)*) => {
            $(
                if is_slow(AluOp::$name) {
                    long |= 1 << AluOp::$name as u8;
                }
                if matches!(alu::operation(AluOp::$name), Operation::Compare(_)) {
                    partly_driven |= 1 << AluOp::$name as u8;
                }
            )*
        };
    }
    for_each_alu_op!(each);
    (long, partly_driven)
}

/// Returns whether the result of an opcode can be lost.
#[inline(always)]
fn is_long(op: u8) -> bool {
    LONG >> (op & 63) & 1 != 0
}

/// Returns whether an opcode is a compare whose scalar result on vectors has an undriven upper
/// half.
#[inline(always)]
fn is_partly_driven(op: u8) -> bool {
    PARTLY_DRIVEN >> (op & 63) & 1 != 0
}

impl<const WATCH: bool, P: Port> Run<'_, WATCH, P> {
    #[inline(always)]
    pub(super) fn vector(&self, number: u8) -> &Lanes {
        &self.thread.vectors[usize::from(number & 63)]
    }

    /// Returns a scalar register as the source of every lane.
    #[inline(always)]
    pub(super) fn in_lanes(&self, number: u8) -> Source {
        Source::Scalar(self.scalar(number))
    }

    #[inline(always)]
    fn target(&self, op: &Op) -> Target {
        Target {
            register: op.d,
            mask: self.thread.mask,
        }
    }

    #[inline(always)]
    pub(super) fn set_lanes(&mut self, op: &Op, value: &Lanes) -> Done {
        self.target(op).write(&mut self.thread.vectors, value);
        self.next()
    }

    /// Executes an operation by lanes with the given opcode.
    #[inline(always)]
    pub(super) fn by_lane(&mut self, op: &Op, code: u8, a: Source, b: Source) -> Done {
        let target = self.target(op);
        lanes::operate(code, &mut self.thread.vectors, target, a, b).ok_or(Exit::Slow)?;
        if is_long(code) {
            self.can_be_lost();
        }
        self.next()
    }

    /// Executes a compare with a vector. The result of an integer compare has an undriven upper
    /// half, which is tracked from the first compare on.
    #[inline(always)]
    pub(super) fn compare(&mut self, op: &Op, code: u8, b: Source) -> Done {
        let partly_driven = is_partly_driven(code);
        if partly_driven && !WATCH {
            return Err(Exit::Slow);
        }
        let set = lanes::compare(code, &self.thread.vectors, Source::Vector(op.a), b).ok_or(Exit::Slow)?;
        if is_long(code) {
            self.can_be_lost();
        }
        if op.d == RM {
            self.thread.mask = set as u16;
        }
        if WATCH {
            if partly_driven {
                self.thread.watch.mark_upper_half(op.d);
            } else {
                self.thread.watch.driven(op.d);
            }
            self.watched.undriven = self.thread.watch.undriven_scalars();
        }
        self.set(op, set)
    }

    #[inline(always)]
    pub(super) fn shuffle(&mut self, op: &Op) -> Done {
        let lanes = lanes::shuffle(self.vector(op.a), self.vector(op.b)).ok_or(Exit::Slow)?;
        if const { is_slow(AluOp::Shuffle) } {
            self.can_be_lost();
        }
        self.set_lanes(op, &lanes)
    }

    #[inline(always)]
    pub(super) fn get_lane(&mut self, op: &Op, number: u32) -> Done {
        let lane = *self.vector(op.a).0.get(number as usize).ok_or(Exit::Slow)?;
        if const { is_slow(AluOp::Getlane) } {
            self.can_be_lost();
        }
        self.set(op, lane)
    }

    #[inline(always)]
    pub(super) fn make_mask(&mut self, op: &Op) -> Done {
        let set = lanes::low_bits(self.vector(op.a));
        if const { is_slow(AluOp::CrtMask) } {
            self.can_be_lost();
        }
        if op.d == RM {
            self.thread.mask = set as u16;
        }
        self.set(op, set)
    }
}
