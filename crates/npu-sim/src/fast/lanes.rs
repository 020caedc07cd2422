//! Operations on all lanes of vector registers: loops that are compiled for the vector units of the host.

use super::float;
use crate::alu::{self, Operation, operations};
use crate::registers::{LANES, Lanes};
use multiversion::multiversion;
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

/// The vector registers of a thread.
type Registers = [Lanes; 64];

/// A source of an operation on lanes.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A vector register.
    Vector(u8),
    /// The same in every lane.
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

/// Where the result of an operation on lanes goes.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub register: u8,
    /// The lanes that are written.
    pub mask: u16,
}

impl Target {
    /// Writes the lanes that are on.
    #[inline(always)]
    pub fn write(self, registers: &mut Registers, new: &Lanes) {
        let register = &mut registers[usize::from(self.register & 63)];
        if self.mask == u16::MAX {
            *register = *new;
            return;
        }
        let mask = u32::from(self.mask);
        let old = *register;
        let mut result = Lanes::default();
        for (((result, old), new), bit) in result.0.iter_mut().zip(old.0).zip(new.0).zip(BITS) {
            let keep = u32::from(mask & bit != 0).wrapping_sub(1);
            *result = (old & keep) | (new & !keep);
        }
        *register = result;
    }
}

#[inline(always)]
fn each(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(u32, u32) -> u32) {
    for ((out, a), b) in out.0.iter_mut().zip(a.0).zip(b.0) {
        *out = f(a, b);
    }
}

// Whole registers are read and written in each of the functions, all with the widest accesses of the host: it forwards no
// wide read from several narrow writes.

/// The float units on all lanes, each a function of its own: in one large function not all of their loops become vector code.
macro_rules! float_units {
    ($($name:ident)*) => {
        $(
            #[multiversion(targets(
                "x86_64+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+bmi1+bmi2+lzcnt",
                "x86_64+avx2+bmi1+bmi2+lzcnt",
            ))]
            fn $name(registers: &mut Registers, target: Target, a: Source, b: Source) {
                let (a, b) = (a.lanes(registers), b.lanes(registers));
                let mut out = Lanes::default();
                each(&a, &b, &mut out, |a, b| float::$name(a, b));
                target.write(registers, &out);
            }
        )*
    };
}
float_units!(add sub mul div from_int to_int);

/// One operation, if it is one by lanes; `None` otherwise, and nothing is written.
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

/// An integer operation; the match is outside the loop over lanes so that each loop is compiled for vectors of the host.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
fn integer(op: u8, registers: &mut Registers, target: Target, a: Source, b: Source) -> Option<()> {
    let (a, b) = (&a.lanes(registers), &b.lanes(registers));
    let mut result = Lanes::default();
    let out = &mut result;
    macro_rules! by_lane {
        ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
            match AluOp::from_code(op)? {
                $(AluOp::$name => match const { alu::operation(AluOp::$name) } {
                    Operation::Unary(f) => each(a, b, out, |a, _| f(a)),
                    Operation::Binary(f) => each(a, b, out, f),
                    Operation::FloatUnary(_)
                    | Operation::FloatBinary(_)
                    | Operation::Compare(_)
                    | Operation::FloatCompare(_)
                    | Operation::Shuffle
                    | Operation::GetLane
                    | Operation::Mask
                    | Operation::NoUnit
                    | Operation::Hang => return None,
                },)*
            }
        };
    }
    operations!(by_lane);
    target.write(registers, &result);
    Some(())
}

/// The bit set of a compare of vectors; `None` for other operations.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub(crate) fn compare(op: u8, registers: &Registers, a: Source, b: Source) -> Option<u32> {
    let (a, b) = (&a.lanes(registers), &b.lanes(registers));
    let mut holds = Lanes::default();
    let out = &mut holds;
    macro_rules! by_lane {
        ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
            match AluOp::from_code(op)? {
                $(AluOp::$name => match const { alu::operation(AluOp::$name) } {
                    Operation::Compare(f) | Operation::FloatCompare(f) => each(a, b, out, |a, b| u32::from(f(a, b))),
                    Operation::Unary(_)
                    | Operation::Binary(_)
                    | Operation::FloatUnary(_)
                    | Operation::FloatBinary(_)
                    | Operation::Shuffle
                    | Operation::GetLane
                    | Operation::Mask
                    | Operation::NoUnit
                    | Operation::Hang => return None,
                },)*
            }
        };
    }
    operations!(by_lane);
    let bits = holds
        .0
        .into_iter()
        .zip(BITS)
        .map(|(holds, bit)| holds.wrapping_neg() & bit);
    Some(bits.fold(0, |set, bit| set | bit))
}
