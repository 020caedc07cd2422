//! What instructions do, from td: executed over any algebra of bit vectors.
//!
//! [`execute`] carries out one instruction on a [`Machine`]. The machine gives the values: numbers make an evaluator, terms of a
//! solver make a symbolic execution. The tables come from the fields `Does` and `DoesInScratchpad` of td's `HwOp` records and from
//! `Inputs` and `Output` of the instruction formats. `docs/td.md` documents the operations.
//!
//! # Contract
//!
//! * All values of the state are read before the first one is written.
//! * A write to a lane gets the value that the lane has afterwards: the lane mask has been applied.
//! * `pc` as a source is the address of the instruction, and a write to it has no effect; the machine sees neither.
//! * A write to a register with the number of `rm` is followed by [`Machine::write_mask`].
//! * Errata that change a result are part of what an instruction does. [`execute_mended`] leaves out those that it is given.
//! * A floating point operation is one of [`FloatFunction`], with the results of the hardware's units.
//! * An access of the I/O space is an access of [`Space::Main`]; the machine decides what it does.
//! * Timing is no part of it: results that are lost before a branch, and traps that come late, are not modelled.
//!
//! # Examples
//!
//! `crates/npu-sim/tests/sim/semantics.rs` has a machine of numbers.

mod execute;
mod table;

pub use crate::errata::Erratum;
pub use crate::machine::TrapReason;
pub use execute::{Unsupported, execute, execute_mended};
pub use generated::{BinaryOp, FloatFunction, UnaryOp, operation};

use crate::reg::Reg;

/// The enums and tables made from `td/` by the build script.
mod generated {
    include!(concat!(env!("OUT_DIR"), "/semantics.rs"));
}

/// Bit vectors of 1 to 512 bits. A condition has one bit.
///
/// The operations get operands of equal widths where [`BinaryOp`] asks for that; td is checked for it.
pub trait Algebra {
    /// A bit vector.
    type Value: Clone;

    /// The low `width` bits of a number; bits from 64 on are 0.
    fn constant(&mut self, width: u32, bits: u64) -> Self::Value;

    /// The number that a value of at most 64 bits is known to be. Used for simplifications alone: `None` is always right.
    fn known(&self, value: &Self::Value) -> Option<u64> {
        let _ = value;
        None
    }

    /// An operation on one value; the result has its width.
    fn unary(&mut self, op: UnaryOp, a: Self::Value) -> Self::Value;

    /// An operation on two values of one width; the result has that width, or one bit for a compare.
    fn binary(&mut self, op: BinaryOp, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `then` if the condition is 1, `other` if it is 0.
    fn select(&mut self, condition: Self::Value, then: Self::Value, other: Self::Value) -> Self::Value;

    /// Bits `high` to `low`, both included.
    fn extract(&mut self, high: u32, low: u32, a: Self::Value) -> Self::Value;

    /// The bits of both, those of `high` above those of `low`.
    fn concat(&mut self, high: Self::Value, low: Self::Value) -> Self::Value;

    /// Extends with zeros to `width` bits, which are more than the value has.
    fn zero_extend(&mut self, width: u32, a: Self::Value) -> Self::Value;

    /// Extends with the sign to `width` bits, which are more than the value has.
    fn sign_extend(&mut self, width: u32, a: Self::Value) -> Self::Value;

    /// An operation of the float unit on one lane: operands and result are bit patterns of 32 bits.
    fn float(&mut self, function: FloatFunction, operands: &[Self::Value]) -> Self::Value;

    /// Bits that the hardware leaves undefined: an unknown value, another one each time.
    fn undefined(&mut self, width: u32) -> Self::Value;
}

/// What an instruction acts on: the state of one thread.
pub trait Machine: Algebra {
    /// A scalar register by number, 32 bits. Never asked for `pc`.
    fn read_scalar(&mut self, register: u8) -> Self::Value;

    /// Sets a scalar register. That of `rm` does not set the lane mask: [`Machine::write_mask`] follows.
    fn write_scalar(&mut self, register: u8, value: Self::Value);

    /// A lane of a vector register by number, 32 bits.
    fn read_lane(&mut self, register: u8, lane: u32) -> Self::Value;

    /// Sets a lane of a vector register. The mask has been applied to the value.
    fn write_lane(&mut self, register: u8, lane: u32, value: Self::Value);

    /// The lane mask in force, 16 bits. It is the low half of `rm` except after the odd writes that errata name.
    fn read_mask(&mut self) -> Self::Value;

    /// Sets the lane mask, 16 bits.
    fn write_mask(&mut self, value: Self::Value);

    /// Loads `bytes` bytes, the one at `address` in the low bits. Addresses of the scratchpad count modulo its size. If the
    /// condition is 0 the value has no use.
    fn load(&mut self, space: Space, address: Self::Value, bytes: u32, condition: Self::Value) -> Self::Value;

    /// Stores a value of `bytes` bytes, the low bits at `address`, if the condition is 1.
    fn store(&mut self, space: Space, address: Self::Value, bytes: u32, value: Self::Value, condition: Self::Value);

    /// The control register with a number of 6 bits, 32 bits.
    fn read_control(&mut self, register: Self::Value) -> Self::Value;

    /// If the condition is 1 the instruction traps: it does what it does in this case, and the thread goes on at the trap vector.
    ///
    /// The result says which case this execution follows; `true` asks for the trap. A machine that follows both executes the
    /// instruction once for each.
    fn trap(&mut self, reason: TrapReason, condition: Self::Value) -> bool;

    /// If the condition is 1 the instruction never completes; the next use of `register`, or of the unit if there is none, hangs
    /// the thread. The result says which case this execution follows, as with [`Machine::trap`]; the first one has no other
    /// effect.
    fn never_completes(&mut self, register: Option<Reg>, condition: Self::Value) -> bool;

    /// Everything else.
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

/// An effect on something else than registers and memory. At most one of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlEffect<V> {
    /// A jump that is always taken. A call has written `ra`.
    Jump {
        /// The address.
        target: V,
    },
    /// A branch.
    Branch {
        /// Whether it is taken.
        condition: V,
        /// The address if it is.
        target: V,
    },
    /// Arrival at a barrier.
    Barrier {
        /// The number of the barrier, 9 bits.
        id: V,
        /// How many other threads take part, 7 bits.
        others: V,
    },
    /// A control register is written, if it can be.
    WriteControl {
        /// Its number, 6 bits.
        register: V,
        /// The value, 32 bits.
        value: V,
    },
    /// The cache line of this address is written back.
    Flush {
        /// The address.
        address: V,
    },
    /// The cache line of this address is written back and dropped.
    Invalidate {
        /// The address.
        address: V,
    },
}
