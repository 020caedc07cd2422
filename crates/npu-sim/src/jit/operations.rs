//! The translation of the operations of the R format: one table, with an arm for each operation of
//! td.

use super::translate::Builder;
use super::units::{self, LaneUnit, Register, Unit, lane_unit, unit, wide};
use crate::alu;
use crate::fast::float;
use crate::fp;
use crate::registers::Lanes;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use multiversion::multiversion;
use npu_mc::raw::AluOp;

/// Emits an operation with two operands.
type Emit = fn(&mut Builder<'_>, Value, Value) -> Value;

/// The translation of an operation.
#[derive(Clone, Copy)]
pub(super) enum Translation {
    /// Instructions of the host, for scalars and for parts of vectors.
    Host(Emit),
    /// Sign extension from this type.
    Extend(Type),
    /// A shift by the whole amount; a call if each lane has its own amount.
    Shift(Shift, LaneUnit),
    /// Instructions of the host for scalars, a call for lanes.
    Scalar(Emit, LaneUnit),
    /// Calls.
    Call(Unit, LaneUnit),
    Compare(Condition),
    /// An operation with a separate form, or for the interpreter.
    Other,
}

#[derive(Clone, Copy)]
pub(super) enum Shift {
    Left,
    Right,
    /// [`crate::alu::ashr`].
    Signed,
}

/// The condition of a compare.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    Integer(IntCC),
    /// A float compare: an integer compare of the bits, with both operands inverted if their signs
    /// differ ([`crate::fp::gt`]).
    Float(IntCC),
}

/// Returns the translation of an operation.
pub(super) fn translation(op: AluOp) -> Translation {
    use Condition::{Float, Integer};
    use Translation::{Call, Compare, Extend, Host, Other, Scalar};
    match op {
        AluOp::Not => Host(|this, a, _| this.b.ins().bnot(a)),
        AluOp::Or => Host(|this, a, b| this.b.ins().bor(a, b)),
        AluOp::And => Host(|this, a, b| this.b.ins().band(a, b)),
        AluOp::Xor => Host(|this, a, b| this.b.ins().bxor(a, b)),
        AluOp::Add => Host(|this, a, b| this.b.ins().iadd(a, b)),
        AluOp::Sub => Host(|this, a, b| this.b.ins().isub(a, b)),
        AluOp::Mull => Host(|this, a, b| this.b.ins().imul(a, b)),
        AluOp::Move | AluOp::Sext32 => Host(|_, a, _| a),
        AluOp::Sext8 => Extend(I8),
        AluOp::Sext16 => Extend(I16),
        AluOp::Mulhs => Scalar(
            |this, a, b| {
                let factors = [a, b].map(|factor| this.b.ins().sextend(I64, factor));
                high_half(this, factors)
            },
            lane_unit!(Mulhs),
        ),
        AluOp::Mulhu => Scalar(
            |this, a, b| {
                let factors = [a, b].map(|factor| this.b.ins().uextend(I64, factor));
                high_half(this, factors)
            },
            lane_unit!(Mulhu),
        ),
        AluOp::Ashr => Translation::Shift(Shift::Signed, lane_unit!(Ashr)),
        AluOp::Shr => Translation::Shift(Shift::Right, lane_unit!(Shr)),
        AluOp::Shl => Translation::Shift(Shift::Left, lane_unit!(Shl)),
        AluOp::Clz => Scalar(|this, a, _| this.b.ins().clz(a), lane_unit!(Clz)),
        AluOp::Ctz => Scalar(|this, a, _| this.b.ins().ctz(a), lane_unit!(Ctz)),
        AluOp::Fadd => Call(unit!(Binary(a, b) = fp::add), lane_unit!(float::add)),
        AluOp::Fsub => Call(unit!(Binary(a, b) = fp::sub), lane_unit!(float::sub)),
        AluOp::Fmul => Call(unit!(Binary(a, b) = fp::mul), lane_unit!(float::mul)),
        AluOp::Fdiv => Call(unit!(Binary(a, b) = fp::div), lane_unit!(float::div)),
        AluOp::Itof => Call(unit!(Unary(a) = fp::from_int), lane_unit!(float::from_int)),
        AluOp::Ftoi => Call(unit!(Unary(a) = fp::to_int), lane_unit!(float::to_int)),
        AluOp::Cmpeq => Compare(Integer(IntCC::Equal)),
        AluOp::Cmpne => Compare(Integer(IntCC::NotEqual)),
        AluOp::Cmpgt => Compare(Integer(IntCC::SignedGreaterThan)),
        AluOp::Cmpge => Compare(Integer(IntCC::SignedGreaterThanOrEqual)),
        AluOp::Cmplt => Compare(Integer(IntCC::SignedLessThan)),
        AluOp::Cmple => Compare(Integer(IntCC::SignedLessThanOrEqual)),
        AluOp::Cmpugt => Compare(Integer(IntCC::UnsignedGreaterThan)),
        AluOp::Cmpuge => Compare(Integer(IntCC::UnsignedGreaterThanOrEqual)),
        AluOp::Cmpult => Compare(Integer(IntCC::UnsignedLessThan)),
        AluOp::Cmpule => Compare(Integer(IntCC::UnsignedLessThanOrEqual)),
        AluOp::Cmpfeq => Compare(Float(IntCC::Equal)),
        AluOp::Cmpfne => Compare(Float(IntCC::NotEqual)),
        AluOp::Cmpfgt => Compare(Float(IntCC::UnsignedGreaterThan)),
        AluOp::Cmpfge => Compare(Float(IntCC::UnsignedGreaterThanOrEqual)),
        AluOp::Cmpflt => Compare(Float(IntCC::UnsignedLessThan)),
        AluOp::Cmpfle => Compare(Float(IntCC::UnsignedLessThanOrEqual)),
        AluOp::Shuffle | AluOp::Getlane | AluOp::CrtMask => Other,
        AluOp::F32tof64 | AluOp::F64tof32 | AluOp::Crp => Other,
    }
}

/// Emits the high half of a product.
fn high_half(this: &mut Builder<'_>, [a, b]: [Value; 2]) -> Value {
    let product = this.b.ins().imul(a, b);
    let half = this.b.ins().iconst(I64, 32);
    let high = this.b.ins().ushr(product, half);
    this.b.ins().ireduce(I32, high)
}

/// The second operand of an operation on scalars.
#[derive(Clone, Copy)]
pub(super) enum Second {
    Register(Value),
    Immediate(u32),
}

impl Builder<'_> {
    /// Emits an operation on scalars.
    pub fn alu(&mut self, op: AluOp, a: Value, second: Second) -> Value {
        if let Translation::Shift(shift, _) = translation(op) {
            return self.shift(shift, a, second);
        }
        let b = match second {
            Second::Register(value) => value,
            Second::Immediate(value) => self.constant(value),
        };
        match translation(op) {
            Translation::Host(emit) | Translation::Scalar(emit, _) => emit(self, a, b),
            Translation::Extend(low) => {
                let low = self.b.ins().ireduce(low, a);
                self.b.ins().sextend(I32, low)
            }
            Translation::Call(unit, _) => self.call_scalar(unit, &[a, b]),
            Translation::Compare(condition) => {
                let holds = self.holds(condition, a, b);
                match condition {
                    Condition::Integer(_) => self.b.ins().uextend(I32, holds),
                    Condition::Float(_) => {
                        let [yes, no] = [0xffff, 0].map(|value| self.constant(value));
                        self.b.ins().select(holds, yes, no)
                    }
                }
            }
            // These are not operations on scalars.
            Translation::Shift(..) | Translation::Other => a,
        }
    }

    /// Emits a shift of a scalar; large amounts shift out all bits.
    fn shift(&mut self, shift: Shift, a: Value, second: Second) -> Value {
        let bits = match shift {
            Shift::Left | Shift::Right => 32,
            Shift::Signed => 64,
        };
        let amount = match second {
            Second::Immediate(amount) if amount >= bits => return self.constant(0),
            Second::Immediate(amount) => self.constant(amount),
            Second::Register(amount) => amount,
        };
        let shifted = match shift {
            Shift::Left => self.b.ins().ishl(a, amount),
            Shift::Right => self.b.ins().ushr(a, amount),
            Shift::Signed => {
                let wide = self.b.ins().sextend(I64, a);
                let wide = self.b.ins().ushr(wide, amount);
                self.b.ins().ireduce(I32, wide)
            }
        };
        if let Second::Immediate(_) = second {
            return shifted;
        }
        let bits = self.constant(bits);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, bits);
        let zero = self.constant(0);
        self.b.ins().select(inside, shifted, zero)
    }

    /// Emits a compare; for vectors it compares lane by lane.
    pub fn holds(&mut self, condition: Condition, a: Value, b: Value) -> Value {
        let (condition, a, b) = match condition {
            Condition::Integer(condition) => (condition, a, b),
            Condition::Float(condition) => {
                let differing = self.b.ins().bxor(a, b);
                let sign = self.constant(31);
                let turn = self.b.ins().sshr(differing, sign);
                let [a, b] = [a, b].map(|operand| self.b.ins().bxor(operand, turn));
                (condition, a, b)
            }
        };
        self.b.ins().icmp(condition, a, b)
    }
}
