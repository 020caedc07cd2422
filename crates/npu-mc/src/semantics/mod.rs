//! The semantics of instructions, from td, over any algebra of bit vectors.
//!
//! [`execute`] executes one instruction on a [`Machine`]. The machine defines the values: with
//! numbers it is an evaluator, with solver terms a symbolic executor. The tables are generated from
//! the fields `Does` and `DoesInScratchpad` of td's `HwOp` records and from `Inputs` and `Output`
//! of the instruction formats. `docs/td.md` documents the operations.
//!
//! # Contract
//!
//! * All inputs are read before the first result is written.
//! * The value of a lane write already includes the lane mask: it is the lane's new value.
//! * `pc` as a source is the address of the instruction. A write to `pc` has no effect. The machine
//!   sees neither access.
//! * [`Machine::write_mask`] follows a write to a register with the number of `rm`.
//! * Errata that change a result are part of the semantics. [`execute_mended`] leaves out the
//!   errata in its argument.
//! * A floating-point operation is a [`FloatFunction`], with the results of the hardware's units.
//! * An access to the I/O space uses [`Space::Main`]; the machine decides its effect.
//! * Timing is not modelled: neither results that are lost before a branch nor late traps.
//!
//! # Examples
//!
//! `crates/npu-sim/tests/sim/semantics.rs` contains a machine whose values are numbers.

mod execute;
mod table;

pub use crate::errata::Erratum;
pub use crate::machine::TrapReason;
pub use execute::{Unsupported, execute, execute_mended};
pub use generated::{BinaryOp, FloatFunction, UnaryOp, operation};

use crate::reg::Reg;

/// The enums and tables generated from `td/`.
mod generated {
    include!(concat!(env!("OUT_DIR"), "/semantics.rs"));
}

/// An algebra of bit vectors of 1 to 512 bits. A condition has one bit.
///
/// Operands have equal widths where [`BinaryOp`] requires it; the generator checks this for td.
pub trait Algebra {
    /// A bit vector.
    type Value: Clone;

    /// Returns the low `width` bits of a number; bits from 64 on are 0.
    fn constant(&mut self, width: u32, bits: u64) -> Self::Value;

    /// Returns the constant value of at most 64 bits, if it is known. It only enables
    /// simplifications: `None` is always correct.
    fn known(&self, value: &Self::Value) -> Option<u64> {
        let _ = value;
        None
    }

    /// Applies a unary operation; the result has the width of the operand.
    fn unary(&mut self, op: UnaryOp, a: Self::Value) -> Self::Value;

    /// Applies a binary operation to operands of the same width. The result has that width, or one
    /// bit for a compare.
    fn binary(&mut self, op: BinaryOp, a: Self::Value, b: Self::Value) -> Self::Value;

    /// Returns `then` if the condition is 1, `other` if it is 0.
    fn select(&mut self, condition: Self::Value, then: Self::Value, other: Self::Value) -> Self::Value;

    /// Returns bits `high` to `low`, both included.
    fn extract(&mut self, high: u32, low: u32, a: Self::Value) -> Self::Value;

    /// Concatenates two values; `high` becomes the upper bits.
    fn concat(&mut self, high: Self::Value, low: Self::Value) -> Self::Value;

    /// Zero-extends to `width` bits, which is more than the width of the value.
    fn zero_extend(&mut self, width: u32, a: Self::Value) -> Self::Value;

    /// Sign-extends to `width` bits, which is more than the width of the value.
    fn sign_extend(&mut self, width: u32, a: Self::Value) -> Self::Value;

    /// Applies an operation of the float unit to one lane. Operands and result are bit patterns of
    /// 32 bits.
    fn float(&mut self, function: FloatFunction, operands: &[Self::Value]) -> Self::Value;

    /// Returns bits that the hardware leaves undefined: a new unknown value for each call.
    fn undefined(&mut self, width: u32) -> Self::Value;
}

/// A machine that executes instructions: the state of one thread.
pub trait Machine: Algebra {
    /// Reads a scalar register by number, 32 bits. The number is never that of `pc`.
    fn read_scalar(&mut self, register: u8) -> Self::Value;

    /// Writes a scalar register. A write to `rm` does not set the lane mask:
    /// [`Machine::write_mask`] follows.
    fn write_scalar(&mut self, register: u8, value: Self::Value);

    /// Reads a lane of a vector register by number, 32 bits.
    fn read_lane(&mut self, register: u8, lane: u32) -> Self::Value;

    /// Writes a lane of a vector register. The value already includes the lane mask.
    fn write_lane(&mut self, register: u8, lane: u32, value: Self::Value);

    /// Reads the lane mask in force, 16 bits. It is the low half of `rm`, except after the unusual
    /// writes of some errata.
    fn read_mask(&mut self) -> Self::Value;

    /// Writes the lane mask, 16 bits.
    fn write_mask(&mut self, value: Self::Value);

    /// Loads `bytes` bytes; the byte at `address` becomes the low bits. Scratchpad addresses wrap
    /// at the scratchpad's size. The result is unused if the condition is 0.
    fn load(&mut self, space: Space, address: Self::Value, bytes: u32, condition: Self::Value) -> Self::Value;

    /// Stores a value of `bytes` bytes if the condition is 1; the low bits go to `address`.
    fn store(&mut self, space: Space, address: Self::Value, bytes: u32, value: Self::Value, condition: Self::Value);

    /// Reads the control register with this 6-bit number, 32 bits.
    fn read_control(&mut self, register: Self::Value) -> Self::Value;

    /// Handles a trap. If the condition is 1, the instruction performs its trap behavior and the
    /// thread continues at the trap vector.
    ///
    /// The result selects the case that this execution follows: `true` for the trap. A machine that
    /// follows both cases executes the instruction once for each.
    fn trap(&mut self, reason: TrapReason, condition: Self::Value) -> bool;

    /// Handles an instruction that never completes if the condition is 1. The next use of
    /// `register`, or of the unit if `register` is `None`, hangs the thread. The result selects the
    /// case that this execution follows, as with [`Machine::trap`]; `true` has no other effect.
    fn never_completes(&mut self, register: Option<Reg>, condition: Self::Value) -> bool;

    /// Performs any other effect.
    fn control(&mut self, effect: ControlEffect<Self::Value>);
}

/// A memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// Main memory and the I/O space.
    Main,
    /// The scratchpad of the core.
    Scratchpad,
}

/// An effect on something other than registers and memory. An instruction has at most one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlEffect<V> {
    /// An unconditional jump. A call has already written `ra`.
    Jump {
        /// The address.
        target: V,
    },
    /// A conditional branch.
    Branch {
        /// Whether it is taken.
        condition: V,
        /// The address of a taken branch.
        target: V,
    },
    /// The thread waits at a barrier.
    Barrier {
        /// The number of the barrier, 9 bits.
        id: V,
        /// The number of other participating threads, 7 bits.
        others: V,
    },
    /// A write to a control register. Some control registers are read-only.
    WriteControl {
        /// Its number, 6 bits.
        register: V,
        /// The value, 32 bits.
        value: V,
    },
    /// A write-back of the cache line with this address.
    Flush {
        /// The address.
        address: V,
    },
    /// A write-back and invalidation of the cache line with this address.
    Invalidate {
        /// The address.
        address: V,
    },
}
