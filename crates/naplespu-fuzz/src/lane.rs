//! Operations on single lanes of 8 to 128 bits, in Rust's arithmetic. A scalar is one lane.
//!
//! A lane is in the low bits of an `u128`; the upper bits are 0. Results whose bits CLIF leaves
//! open are the NaN without sign and payload, as in the compiler.

use crate::eval::Stop;
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{InstructionData, Opcode, TrapCode, Type, types};
use npu_sim::fp;
use std::cmp::Ordering;

/// The arithmetic of `fadd`, `fsub`, `fmul` and `fdiv` on `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// The arithmetic of the machine's float unit.
    Machine,
    /// IEEE 754.
    Ieee,
}

/// Truncates a number to `width` bits.
pub fn truncate(width: u32, value: u128) -> u128 {
    value & (u128::MAX >> (128 - width))
}

/// Returns a lane as a signed number.
pub fn signed(width: u32, lane: u128) -> i128 {
    (lane << (128 - width)).cast_signed() >> (128 - width)
}

/// Computes an instruction on one lane of each operand. `from` is the type of the first operand's
/// lane, `to` that of the result's. A comparison gives 0 or 1.
///
/// # Errors
///
/// Returns the trap of a division or conversion, or [`Stop::Unsupported`].
pub fn operate(
    data: &InstructionData,
    arithmetic: Arithmetic,
    from: Type,
    to: Type,
    args: &[u128],
) -> Result<u128, Stop> {
    let opcode = data.opcode();
    let unsupported = Stop::Unsupported(opcode);
    let is_unknown = |ty: &Type| ty.is_float() && !matches!(*ty, types::F32 | types::F64);
    match opcode {
        Opcode::Bitselect => return Ok(args[0] & args[1] | !args[0] & args[2]),
        Opcode::Select | Opcode::SelectSpectreGuard => return Ok(args[if args[0] != 0 { 1 } else { 2 }]),
        Opcode::Splat => return Ok(args[0]),
        _ if [from, to].iter().any(is_unknown) => return Err(unsupported),
        _ => {}
    }
    let result = match (data, from.is_float(), to.is_float()) {
        (InstructionData::IntCompare { cond, .. }, ..) => int_holds(*cond, from.bits(), args[0], args[1]).into(),
        (InstructionData::FloatCompare { cond, .. }, ..) => {
            float_holds(*cond, float(from, args[0]), float(from, args[1])).into()
        }
        (_, true, true) => match (opcode, from, to) {
            (_, types::F32, types::F32) if arithmetic == Arithmetic::Machine => on_machine(opcode, args),
            (_, types::F32, types::F32) => on_f32(opcode, args),
            (_, types::F64, types::F64) => on_f64(opcode, args),
            (Opcode::Fpromote | Opcode::Fdemote | Opcode::FvpromoteLow | Opcode::Fvdemote, ..) => {
                Some(float_bits(to, float(from, args[0])))
            }
            _ => None,
        }
        .ok_or(unsupported)?,
        (_, true, false) => to_int(opcode, to.bits(), float(from, args[0]))?,
        (_, false, true) => match (opcode, to, signed(from.bits(), args[0])) {
            (Opcode::FcvtFromUint, types::F32, _) => (args[0] as f32).to_bits().into(),
            (Opcode::FcvtFromUint, ..) => (args[0] as f64).to_bits().into(),
            (Opcode::FcvtFromSint, types::F32, number) => (number as f32).to_bits().into(),
            (Opcode::FcvtFromSint, _, number) => (number as f64).to_bits().into(),
            _ => return Err(unsupported),
        },
        _ => on_ints(opcode, from.bits(), to.bits(), args)?,
    };
    Ok(truncate(to.bits(), result))
}

fn on_ints(opcode: Opcode, width: u32, to: u32, args: &[u128]) -> Result<u128, Stop> {
    let at = |n: usize| args.get(n).copied().unwrap_or(0);
    let (a, b) = (at(0), at(1));
    let (sa, sb) = (signed(width, a), signed(width, b));
    let (min, max) = (i128::MIN >> (128 - width), i128::MAX >> (128 - width));
    let most = truncate(width, u128::MAX);
    // The widths are powers of two, so the low bits of a negative amount are right.
    let amount = (b % u128::from(width)) as u32;
    let unsigned = i128::cast_unsigned;
    let is_wide = width == 128;
    Ok(match opcode {
        Opcode::Iadd => a.wrapping_add(b),
        Opcode::Isub => a.wrapping_sub(b),
        Opcode::Imul => a.wrapping_mul(b),
        Opcode::Band => a & b,
        Opcode::Bor => a | b,
        Opcode::Bxor => a ^ b,
        Opcode::Smin => unsigned(sa.min(sb)),
        Opcode::Smax => unsigned(sa.max(sb)),
        Opcode::Umin => a.min(b),
        Opcode::Umax => a.max(b),
        Opcode::Smulhi if !is_wide => unsigned((sa * sb) >> width),
        Opcode::Umulhi if !is_wide => (a * b) >> width,
        Opcode::SaddSat if !is_wide => unsigned((sa + sb).clamp(min, max)),
        Opcode::SsubSat if !is_wide => unsigned((sa - sb).clamp(min, max)),
        Opcode::UaddSat if !is_wide => (a + b).min(most),
        Opcode::UsubSat => a.saturating_sub(b),
        Opcode::AvgRound if !is_wide => (a + b + 1) >> 1,
        // Fixed-point fractions between -1 and 1; the product is rounded to nearest.
        Opcode::SqmulRoundSat if !is_wide => unsigned(((sa * sb + (1 << (width - 2))) >> (width - 1)).min(max)),
        Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem if b == 0 => {
            return Err(Stop::Trapped(TrapCode::INTEGER_DIVISION_BY_ZERO));
        }
        Opcode::Sdiv if sa == min && sb == -1 => return Err(Stop::Trapped(TrapCode::INTEGER_OVERFLOW)),
        Opcode::Udiv => a / b,
        Opcode::Urem => a % b,
        Opcode::Sdiv => unsigned(sa / sb),
        Opcode::Srem => unsigned(sa.wrapping_rem(sb)),
        Opcode::Ishl => a << amount,
        Opcode::Ushr => a >> amount,
        Opcode::Sshr => unsigned(sa >> amount),
        Opcode::Rotl | Opcode::Rotr if amount == 0 => a,
        Opcode::Rotl => a << amount | a >> (width - amount),
        Opcode::Rotr => a >> amount | a << (width - amount),
        Opcode::Bnot => !a,
        Opcode::Ineg => a.wrapping_neg(),
        Opcode::Iabs => unsigned(sa.wrapping_abs()),
        Opcode::Popcnt => a.count_ones().into(),
        Opcode::Clz => (a.leading_zeros() + width - 128).into(),
        Opcode::Ctz => a.trailing_zeros().min(width).into(),
        Opcode::Cls => ((sa ^ (sa >> 127)).leading_zeros() + width - 129).into(),
        Opcode::Bitrev => a.reverse_bits() >> (128 - width),
        Opcode::Bswap => a.swap_bytes() >> (128 - width),
        Opcode::Uextend | Opcode::Ireduce | Opcode::UwidenLow | Opcode::UwidenHigh => a,
        Opcode::Sextend | Opcode::SwidenLow | Opcode::SwidenHigh => unsigned(sa),
        Opcode::Bmask => u128::from(a != 0).wrapping_neg(),
        Opcode::Snarrow => unsigned(sa.clamp(i128::MIN >> (128 - to), i128::MAX >> (128 - to))),
        Opcode::Unarrow => unsigned(sa.max(0)).min(truncate(to, u128::MAX)),
        Opcode::Uunarrow => a.min(truncate(to, u128::MAX)),
        _ => return Err(Stop::Unsupported(opcode)),
    })
}

/// Returns sum, difference or product with carry or overflow, as value and flag.
pub fn overflowing(opcode: Opcode, width: u32, args: &[u128]) -> Result<(u128, bool), Stop> {
    let (a, b) = (args[0], args[1]);
    let (sa, sb) = (signed(width, a), signed(width, b));
    let carry = args.get(2).map_or(0, |&carry| u128::from(carry & 0xff != 0));
    let outside = |(value, over): (i128, bool)| {
        let low = truncate(width, value.cast_unsigned());
        (low, over || signed(width, low) != value)
    };
    let above = |(value, over): (u128, bool)| (truncate(width, value), over || truncate(width, value) != value);
    Ok(match opcode {
        Opcode::UaddOverflow | Opcode::UaddOverflowCin | Opcode::UaddOverflowTrap => {
            let (sum, over) = a.overflowing_add(b);
            let (sum, again) = sum.overflowing_add(carry);
            above((sum, over || again))
        }
        Opcode::UsubOverflow | Opcode::UsubOverflowBin => {
            let less = a < b || a - b < carry;
            (truncate(width, a.wrapping_sub(b).wrapping_sub(carry)), less)
        }
        Opcode::SaddOverflow => outside(sa.overflowing_add(sb)),
        Opcode::SsubOverflow => outside(sa.overflowing_sub(sb)),
        Opcode::UmulOverflow => above(a.overflowing_mul(b)),
        Opcode::SmulOverflow => outside(sa.overflowing_mul(sb)),
        _ => return Err(Stop::Unsupported(opcode)),
    })
}

/// Returns whether a condition of `icmp` holds.
fn int_holds(condition: IntCC, width: u32, a: u128, b: u128) -> bool {
    match condition {
        IntCC::Equal => a == b,
        IntCC::SignedLessThan => signed(width, a) < signed(width, b),
        IntCC::SignedGreaterThan => signed(width, a) > signed(width, b),
        IntCC::UnsignedLessThan => a < b,
        IntCC::UnsignedGreaterThan => a > b,
        _ => !int_holds(condition.complement(), width, a, b),
    }
}

/// Returns whether a condition of `fcmp` holds.
fn float_holds(condition: FloatCC, x: f64, y: f64) -> bool {
    match condition {
        FloatCC::Ordered => !x.is_nan() && !y.is_nan(),
        FloatCC::Equal => x == y,
        FloatCC::OrderedNotEqual => x.partial_cmp(&y).is_some_and(Ordering::is_ne),
        FloatCC::LessThan => x < y,
        FloatCC::LessThanOrEqual => x <= y,
        FloatCC::GreaterThan => x > y,
        FloatCC::GreaterThanOrEqual => x >= y,
        _ => !float_holds(condition.complement(), x, y),
    }
}

/// Returns a float of 32 or 64 bits as `f64`, which is exact.
fn float(ty: Type, bits: u128) -> f64 {
    match ty {
        types::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

fn float_bits(ty: Type, number: f64) -> u128 {
    match ty {
        _ if number.is_nan() && ty == types::F32 => f32::NAN.to_bits().into(),
        _ if number.is_nan() => f64::NAN.to_bits().into(),
        types::F32 => (number as f32).to_bits().into(),
        _ => number.to_bits().into(),
    }
}

fn to_int(opcode: Opcode, width: u32, x: f64) -> Result<u128, Stop> {
    let is_signed = matches!(opcode, Opcode::FcvtToSint | Opcode::FcvtToSintSat);
    let (low, high) = match is_signed {
        true => (i128::MIN >> (128 - width), (i128::MAX >> (128 - width)).cast_unsigned()),
        false => (0, truncate(width, u128::MAX)),
    };
    let result = match is_signed {
        true => (x as i128).clamp(low, high.cast_signed()).cast_unsigned(),
        false => (x as u128).min(high),
    };
    match opcode {
        Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => Ok(result),
        Opcode::FcvtToSint | Opcode::FcvtToUint if x.is_nan() => {
            Err(Stop::Trapped(TrapCode::BAD_CONVERSION_TO_INTEGER))
        }
        // The rounded number is in range if it is between the next floats outside; both are exact.
        Opcode::FcvtToSint | Opcode::FcvtToUint => match x.trunc() < low as f64 || x.trunc() >= (high as f64 + 1.0) {
            true => Err(Stop::Trapped(TrapCode::INTEGER_OVERFLOW)),
            false => Ok(result),
        },
        _ => Err(Stop::Unsupported(opcode)),
    }
}

fn on_machine(opcode: Opcode, args: &[u128]) -> Option<u128> {
    let operation = match opcode {
        Opcode::Fadd => fp::add,
        Opcode::Fsub => fp::sub,
        Opcode::Fmul => fp::mul,
        Opcode::Fdiv => fp::div,
        _ => return on_f32(opcode, args),
    };
    Some(operation(args[0] as u32, args[1] as u32).into())
}

macro_rules! on_floats {
    ($name:ident, $float:ident, $bits:ident) => {
        fn $name(opcode: Opcode, args: &[u128]) -> Option<u128> {
            let bits = |n: usize| args[n] as $bits;
            let value = |n: usize| $float::from_bits(bits(n));
            let sign = 1 << ($bits::BITS - 1);
            let result = match opcode {
                Opcode::Fneg => return Some((bits(0) ^ sign).into()),
                Opcode::Fabs => return Some((bits(0) & !sign).into()),
                Opcode::Fcopysign => return Some((bits(0) & !sign | bits(1) & sign).into()),
                Opcode::Fmin | Opcode::Fmax if value(0).is_nan() || value(1).is_nan() => $float::NAN,
                // -0 is less than +0.
                Opcode::Fmin if value(0) == value(1) => $float::from_bits(bits(0) | bits(1)),
                Opcode::Fmax if value(0) == value(1) => $float::from_bits(bits(0) & bits(1)),
                Opcode::Fmin => value(0).min(value(1)),
                Opcode::Fmax => value(0).max(value(1)),
                Opcode::Fadd => value(0) + value(1),
                Opcode::Fsub => value(0) - value(1),
                Opcode::Fmul => value(0) * value(1),
                Opcode::Fdiv => value(0) / value(1),
                Opcode::Fma => value(0).mul_add(value(1), value(2)),
                Opcode::Sqrt => value(0).sqrt(),
                Opcode::Ceil => value(0).ceil(),
                Opcode::Floor => value(0).floor(),
                Opcode::Trunc => value(0).trunc(),
                Opcode::Nearest => value(0).round_ties_even(),
                _ => return None,
            };
            let result = if result.is_nan() { $float::NAN } else { result };
            Some(result.to_bits().into())
        }
    };
}

on_floats!(on_f32, f32, u32);
on_floats!(on_f64, f64, u64);
