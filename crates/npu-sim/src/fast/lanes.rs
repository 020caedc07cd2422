//! Operations on all lanes of vector registers: loops that the compiler vectorizes for the host.

use super::float;
use crate::alu::{self, Operation};
use crate::mem_op::Extension;
use crate::registers::{LANES, Lanes};
use multiversion::multiversion;
use npu_mc::for_each_alu_op;
use npu_mc::raw::AluOp;

/// Bit *k* in lane *k*.
const BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// The number of lanes of half a register.
const HALF: usize = LANES / 2;

/// The lane mask expanded to all bits of each lane, for half a register. A table is used because
/// the host compiler needs several times as many instructions to compute it from [`BITS`].
static ON: [[u32; HALF]; 1 << HALF] = {
    let mut on = [[0; HALF]; 1 << HALF];
    let mut mask = 0;
    while mask < 1 << HALF {
        let mut lane = 0;
        while lane < HALF {
            on[mask][lane] = if mask >> lane & 1 != 0 { u32::MAX } else { 0 };
            lane += 1;
        }
        mask += 1;
    }
    on
};

/// Expands a lane mask to all bits of each lane.
#[inline(always)]
pub(crate) fn on(mask: u16) -> Lanes {
    let (low, high) = (ON[usize::from(mask as u8)], ON[usize::from(mask >> HALF)]);
    Lanes(std::array::from_fn(|k| if k < HALF { low[k] } else { high[k - HALF] }))
}

/// The vector registers of a thread.
type Registers = [Lanes; 64];

/// A source of an operation on lanes.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A vector register.
    Vector(u8),
    /// The same value in every lane.
    Scalar(u32),
}

impl Source {
    #[inline(always)]
    fn lanes(self, registers: &Registers) -> Lanes {
        match self {
            Source::Vector(number) => registers[usize::from(number & 63)],
            Source::Scalar(value) => Lanes::splat(value),
        }
    }
}

/// The destination of an operation on lanes.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub register: u8,
    /// The written lanes.
    pub mask: u16,
}

impl Target {
    /// Writes the lanes that are on in the mask.
    #[inline(always)]
    pub fn write(self, registers: &mut Registers, new: &Lanes) {
        write(&mut registers[usize::from(self.register & 63)], self.mask, new);
    }
}

/// Writes the lanes that are on in `mask`.
#[inline(always)]
pub(crate) fn write(register: &mut Lanes, mask: u16, new: &Lanes) {
    if mask == u16::MAX {
        *register = *new;
        return;
    }
    let on = on(mask);
    let kept = register.zip(&on, |old, on| old & !on);
    *register = kept.zip(&new.zip(&on, |new, on| new & on), |kept, new| kept | new);
}

/// Selects the lanes of `a` by `numbers`; returns `None` if a number exceeds the lanes.
#[inline(always)]
pub(crate) fn shuffle(a: &Lanes, numbers: &Lanes) -> Option<Lanes> {
    let inside = numbers.0.iter().all(|&number| number < LANES as u32);
    inside.then(|| numbers.map(|number| a.0[number as usize % LANES]))
}

/// Collects bit 0 of each lane into a bit set.
#[inline(always)]
pub(crate) fn low_bits(a: &Lanes) -> u32 {
    a.0.iter().zip(0..).fold(0, |set, (lane, k)| set | (lane & 1) << k)
}

/// Extends the low bytes of each word.
#[inline(always)]
pub(crate) fn extend(extension: Extension, words: &Lanes) -> Lanes {
    match extension {
        Extension::Signed8 => words.map(|word| const { Extension::Signed8 }.apply(word)),
        Extension::Signed16 => words.map(|word| const { Extension::Signed16 }.apply(word)),
        Extension::Unsigned8 => words.map(|word| const { Extension::Unsigned8 }.apply(word)),
        Extension::Unsigned16 => words.map(|word| const { Extension::Unsigned16 }.apply(word)),
        Extension::Word => *words,
    }
}

#[inline(always)]
fn each(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(u32, u32) -> u32) {
    *out = a.zip(b, f);
}

// Each function reads and writes whole registers with the widest accesses of the host, which does
// not forward several narrow writes to a wide read.

/// Defines one function for each float unit: in a single large function the compiler does not
/// vectorize all of the loops.
macro_rules! float_units {
    ($($name:ident)*) => {
        $(
            #[multiversion(targets(
                "x86_64+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+bmi1+bmi2+lzcnt",
                "x86_64+avx2+bmi1+bmi2+lzcnt",
            ))]
            fn $name(registers: &mut Registers, target: Target, a: Source, b: Source) {
                let (a, b) = (a.lanes(registers), b.lanes(registers));
                target.write(registers, &float::$name(&a, &b));
            }
        )*
    };
}
float_units!(add sub mul div from_int to_int);

/// Executes an operation by lanes. For other operations it returns `None` and writes nothing.
#[inline(always)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not in the list of float units is looked up in that of all operations"
)]
pub(crate) fn operate(op: u8, registers: &mut Registers, target: Target, a: Source, b: Source) -> Option<()> {
    match AluOp::from_code(op)? {
        AluOp::Fadd => add(registers, target, a, b),
        AluOp::Fsub => sub(registers, target, a, b),
        AluOp::Fmul => mul(registers, target, a, b),
        AluOp::Fdiv => div(registers, target, a, b),
        AluOp::Itof => from_int(registers, target, a, b),
        AluOp::Ftoi => to_int(registers, target, a, b),
        _ => return integer(op, registers, target, a, b),
    }
    Some(())
}

/// Executes an integer operation; the match is outside of the loop over lanes so that the compiler
/// vectorizes each loop.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
fn integer(op: u8, registers: &mut Registers, target: Target, a: Source, b: Source) -> Option<()> {
    let (a, b) = (&a.lanes(registers), &b.lanes(registers));
    let mut result = Lanes::default();
    let out = &mut result;
    macro_rules! by_lane {
        ($($name:ident $(, $immediate:ident)?;)*) => {
            match AluOp::from_code(op)? {
                $(AluOp::$name => match const { alu::operation(AluOp::$name) } {
                    Operation::Unary(f) => each(a, b, out, |a, _| f(a)),
                    Operation::Binary(f) => each(a, b, out, f),
                    Operation::FloatUnary(_) | Operation::FloatBinary(_) | Operation::Compare(_) => return None,
                    Operation::FloatCompare(_) | Operation::Shuffle | Operation::GetLane => return None,
                    Operation::Mask | Operation::NoUnit | Operation::Hang => return None,
                },)*
            }
        };
    }
    for_each_alu_op!(by_lane);
    target.write(registers, &result);
    Some(())
}

/// Returns the bit set of a compare of vectors, or `None` for other operations.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub(crate) fn compare(op: u8, registers: &Registers, a: Source, b: Source) -> Option<u32> {
    let (a, b) = (&a.lanes(registers), &b.lanes(registers));
    let mut holds = Lanes::default();
    let out = &mut holds;
    macro_rules! by_lane {
        ($($name:ident $(, $immediate:ident)?;)*) => {
            match AluOp::from_code(op)? {
                $(AluOp::$name => match const { alu::operation(AluOp::$name) } {
                    Operation::Compare(f) | Operation::FloatCompare(f) => each(a, b, out, |a, b| u32::from(f(a, b))),
                    Operation::Unary(_) | Operation::Binary(_) | Operation::FloatUnary(_) => return None,
                    Operation::FloatBinary(_) | Operation::Shuffle | Operation::GetLane => return None,
                    Operation::Mask | Operation::NoUnit | Operation::Hang => return None,
                },)*
            }
        };
    }
    for_each_alu_op!(by_lane);
    let bits = holds
        .0
        .into_iter()
        .zip(BITS)
        .map(|(holds, bit)| holds.wrapping_neg() & bit);
    Some(bits.fold(0, |set, bit| set | bit))
}
