//! The functions that translations call: float units, and operations on lanes without inline code.

use super::region::Source;
use super::state::State;
use crate::alu::Operation;
use crate::fast::lanes::{self, Target};
use crate::registers::{LANES, Lanes};
use npu_mc::raw::AluOp;
use std::cell::Cell;

/// A function for operations that are too long to inline.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Unary(extern "C" fn(u32) -> u32),
    Binary(extern "C" fn(u32, u32) -> u32),
}

/// Wraps a function of an operation on scalars in a unit.
macro_rules! unit {
    ($kind:ident($($operand:ident),*) = $function:path) => {{
        extern "C" fn unit($($operand: u32),*) -> u32 {
            $function($($operand),*)
        }
        Unit::$kind(unit)
    }};
}

impl Unit {
    /// The address of the function.
    pub fn address(&self) -> i64 {
        match self {
            Unit::Unary(f) => *f as usize as i64,
            Unit::Binary(f) => *f as usize as i64,
        }
    }

    /// The number of operands.
    pub fn operands(&self) -> usize {
        match self {
            Unit::Unary(_) => 1,
            Unit::Binary(_) => 2,
        }
    }
}

/// A vector register. It may be result and operand at the same time.
pub(super) type Register = Cell<Lanes>;

/// The functions of an operation on all lanes, by the kind of the last operand.
#[derive(Clone, Copy)]
pub(super) struct LaneUnit {
    pub with_vector: extern "C" fn(&Register, &Register, &Register),
    pub with_scalar: extern "C" fn(&Register, &Register, u32),
    /// The same under a lane mask, which the last operand contains expanded to all bits of each
    /// lane.
    pub with_vector_on: extern "C" fn(&Register, &Register, &Register, &Register),
    pub with_scalar_on: extern "C" fn(&Register, &Register, u32, &Register),
}

/// Writes the lanes that are on.
#[inline(always)]
pub(super) fn write(d: &Register, new: &Lanes, on: &Register) {
    let on = on.get();
    let kept = d.get().zip(&on, |old, on| old & !on);
    d.set(kept.zip(&new.zip(&on, |new, on| new & on), |kept, new| kept | new));
}

/// Computes an operation by lanes as defined.
#[inline(always)]
pub(super) fn defined(operation: Operation, a: &Lanes, b: &Lanes) -> Lanes {
    match operation {
        Operation::Unary(f) | Operation::FloatUnary(f) => a.map(f),
        Operation::Binary(f) | Operation::FloatBinary(f) => a.zip(b, f),
        // These are not operations by lanes.
        Operation::Compare(_)
        | Operation::FloatCompare(_)
        | Operation::Shuffle
        | Operation::GetLane
        | Operation::Mask
        | Operation::NoUnit
        | Operation::Hang => *a,
    }
}

/// Defines functions that translations call, compiled for the widest vectors of the host.
macro_rules! wide {
    ($($(#[$attribute:meta])* $visible:vis fn $name:ident($($parameter:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            $(#[$attribute])*
            #[multiversion(targets(
                "x86_64+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+bmi1+bmi2+lzcnt",
                "x86_64+avx2+bmi1+bmi2+lzcnt",
            ))]
            $visible extern "C" fn $name($($parameter: $type),*) $(-> $result)? $body
        )*
    };
}

/// Defines the functions of an operation on lanes, from a function on all lanes or from the
/// definition.
macro_rules! lane_unit {
    ($op:ident) => {
        lane_unit!(|a: &Lanes, b: &Lanes| units::defined(const { alu::operation(AluOp::$op) }, a, b))
    };
    ($function:expr) => {{
        wide! {
            fn with_vector(d: &Register, a: &Register, b: &Register) {
                d.set(($function)(&a.get(), &b.get()));
            }
            fn with_scalar(d: &Register, a: &Register, b: u32) {
                d.set(($function)(&a.get(), &Lanes::splat(b)));
            }
            fn with_vector_on(d: &Register, a: &Register, b: &Register, on: &Register) {
                units::write(d, &($function)(&a.get(), &b.get()), on);
            }
            fn with_scalar_on(d: &Register, a: &Register, b: u32, on: &Register) {
                units::write(d, &($function)(&a.get(), &Lanes::splat(b)), on);
            }
        }
        LaneUnit {
            with_vector,
            with_scalar,
            with_vector_on,
            with_scalar_on,
        }
    }};
}
pub(super) use {lane_unit, unit, wide};

/// Returns a lane of a register.
pub(super) extern "C" fn lane(a: &Register, number: u32) -> u32 {
    a.get().0[number as usize % LANES]
}

/// Encodes an operation on lanes as an argument for [`vector`].
pub(super) fn packed(op: AluOp, d: u8, a: Source, b: Source) -> u64 {
    let number = |source: Source| match source {
        Source::Vector(number) => u64::from(number & 63),
        // The scalar operand.
        Source::Scalar(_) | Source::Immediate(_) => SCALAR,
    };
    op as u64 | u64::from(d & 63) << 8 | number(a) << 16 | number(b) << 24
}

/// A marker in place of the number of a vector register.
const SCALAR: u64 = 0x80;

fn source(number: u64, scalar: u32) -> lanes::Source {
    if number & SCALAR != 0 {
        lanes::Source::Scalar(scalar)
    } else {
        lanes::Source::Vector(number as u8 & 63)
    }
}

/// Executes an operation that [`packed`] encoded, with the value of its scalar operand, if any.
pub(super) extern "C" fn vector(state: &mut State<'_>, packed: u64, scalar: u32) {
    let target = Target {
        register: (packed >> 8) as u8 & 63,
        mask: state.mask as u16,
    };
    let (a, b) = (source(packed >> 16, scalar), source(packed >> 24, scalar));
    // Unreachable for operations that are not by lanes.
    let _done = lanes::operate(packed as u8, state.vectors, target, a, b);
}

/// Returns the undriven bits of a word of memory.
pub(super) extern "C" fn word(state: &mut State<'_>, address: u32) -> u32 {
    state.watch.word(address)
}

/// Sets the undriven bits of a word of memory.
pub(super) extern "C" fn set_word(state: &mut State<'_>, address: u32, bits: u32) -> u32 {
    // Spills usually store to the same word repeatedly.
    if bits != state.watch.word(address) {
        state.watch.set_word(address, bits);
        state.words = state.watch.memory();
    }
    0
}

/// Records a store of a vector register.
pub(super) extern "C" fn line_driven(state: &mut State<'_>, address: u32) -> u32 {
    state.watch.line_driven(address);
    state.words = state.watch.memory();
    0
}
