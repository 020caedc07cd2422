//! The meaning of integer instructions of CLIF on bits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};

/// The first result of an instruction whose operands are these, zero-extended to 64 bits: integers of up to 64 bits, zero-extended.
/// Bits above those of the result's type have no meaning. `None` if the instruction is not known here, or traps.
pub fn operate(func: &Function, inst: Inst, operands: &[u64]) -> Option<u64> {
    let dfg = &func.dfg;
    let fits = |value| {
        let ty = dfg.value_type(value);
        ty.is_int() && ty.bits() <= 64
    };
    let args = dfg.inst_args(inst);
    if !fits(*dfg.inst_results(inst).first()?) || !args.iter().all(|&arg| fits(arg)) {
        return None;
    }
    let arg = |number: usize| -> Option<(u64, i64, u32)> {
        let width = dfg.value_type(*args.get(number)?).bits();
        let bits = *operands.get(number)?;
        let unused = 64 - width;
        Some((bits, (bits << unused).cast_signed() >> unused, width))
    };
    Some(match dfg.insts[inst] {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => imm.bits().cast_unsigned(),
        InstructionData::Unary { opcode, .. } => {
            let (bits, signed, width) = arg(0)?;
            match opcode {
                Opcode::Uextend | Opcode::Ireduce => bits,
                Opcode::Sextend => signed.cast_unsigned(),
                Opcode::Ineg => bits.wrapping_neg(),
                Opcode::Bnot => !bits,
                Opcode::Iabs => signed.unsigned_abs(),
                Opcode::Clz => u64::from(bits.leading_zeros() - (64 - width)),
                Opcode::Ctz => u64::from(bits.trailing_zeros().min(width)),
                Opcode::Popcnt => bits.count_ones().into(),
                // The copies of the sign below it.
                Opcode::Cls => u64::from((signed ^ (signed >> 63)).leading_zeros() - (64 - width) - 1),
                _ => return None,
            }
        }
        InstructionData::Binary { opcode, .. } => {
            let ((a, sa, width), (b, sb, _)) = (arg(0)?, arg(1)?);
            let amount = (b % u64::from(width)) as u32;
            match opcode {
                Opcode::Iadd => a.wrapping_add(b),
                Opcode::Isub => a.wrapping_sub(b),
                Opcode::Imul => a.wrapping_mul(b),
                Opcode::Band => a & b,
                Opcode::Bor => a | b,
                Opcode::Bxor => a ^ b,
                Opcode::Ishl => a << amount,
                Opcode::Ushr => a >> amount,
                Opcode::Sshr => (sa >> amount).cast_unsigned(),
                Opcode::Rotl => a << amount | a.checked_shr(width - amount).unwrap_or(0),
                Opcode::Rotr => a >> amount | a.checked_shl(width - amount).unwrap_or(0),
                Opcode::Umin => a.min(b),
                Opcode::Umax => a.max(b),
                Opcode::Smin => sa.min(sb).cast_unsigned(),
                Opcode::Smax => sa.max(sb).cast_unsigned(),
                Opcode::Udiv => a.checked_div(b)?,
                Opcode::Urem => a.checked_rem(b)?,
                Opcode::Sdiv => sa.checked_div(sb)?.cast_unsigned(),
                Opcode::Srem if sb != 0 => sa.wrapping_rem(sb).cast_unsigned(),
                _ => return None,
            }
        }
        InstructionData::IntCompare { cond, .. } => {
            let ((a, sa, _), (b, sb, _)) = (arg(0)?, arg(1)?);
            u64::from(match cond {
                IntCC::Equal => a == b,
                IntCC::NotEqual => a != b,
                IntCC::SignedLessThan => sa < sb,
                IntCC::SignedGreaterThanOrEqual => sa >= sb,
                IntCC::SignedGreaterThan => sa > sb,
                IntCC::SignedLessThanOrEqual => sa <= sb,
                IntCC::UnsignedLessThan => a < b,
                IntCC::UnsignedGreaterThanOrEqual => a >= b,
                IntCC::UnsignedGreaterThan => a > b,
                IntCC::UnsignedLessThanOrEqual => a <= b,
            })
        }
        InstructionData::Ternary {
            opcode: Opcode::Select | Opcode::SelectSpectreGuard,
            ..
        } => {
            if arg(0)?.0 != 0 {
                arg(1)?.0
            } else {
                arg(2)?.0
            }
        }
        _ => return None,
    })
}
