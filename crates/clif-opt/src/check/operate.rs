//! The semantics of integer CLIF instructions on bits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};

/// Returns the first result of an instruction. Operands and result are integers of up to 64 bits,
/// zero-extended to 64 bits; result bits above its type are undefined. Returns `None` for
/// unsupported instructions and traps.
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
                // The number of bits below the sign bit that are equal to it.
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
                // The minimum divided by -1 traps.
                Opcode::Sdiv if sb != -1 || a != 1 << (width - 1) => sa.checked_div(sb)?.cast_unsigned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::data_value::DataValue;
    use cranelift_interpreter::environment::FunctionStore;
    use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
    use cranelift_interpreter::step::ControlFlow;

    const UNARY: [&str; 7] = ["ineg", "bnot", "iabs", "clz", "ctz", "popcnt", "cls"];
    const BINARY: [&str; 19] = [
        "iadd", "isub", "imul", "band", "bor", "bxor", "ishl", "ushr", "sshr", "rotl", "rotr", "umin", "umax", "smin",
        "smax", "udiv", "urem", "sdiv", "srem",
    ];
    const WIDTHS: [u32; 4] = [8, 16, 32, 64];

    /// Returns numbers near the limits of a type, and shift amounts.
    fn numbers(width: u32) -> Vec<u64> {
        let mask = u64::MAX >> (64 - width);
        let sign = 1 << (width - 1);
        let middle = 0x0123_4567_89ab_cdef;
        [
            0,
            1,
            2,
            3,
            7,
            u64::from(width) - 1,
            width.into(),
            sign - 1,
            sign,
            sign + 1,
            mask - 1,
            mask,
            middle & mask,
        ]
        .into()
    }

    fn value(bits: u64, width: u32) -> DataValue {
        match width {
            8 => DataValue::I8(bits as i8),
            16 => DataValue::I16(bits as i16),
            32 => DataValue::I32(bits as i32),
            _ => DataValue::I64(bits.cast_signed()),
        }
    }

    /// Returns the result of Cranelift's interpreter, or `None` for a trap.
    fn interpreted(func: &Function, args: &[DataValue]) -> Option<u64> {
        let mut store = FunctionStore::default();
        store.add("f".to_owned(), func);
        let mut interpreter = Interpreter::new(InterpreterState::default().with_function_store(store));
        match interpreter.call_by_name("f", args).expect("the interpreter runs") {
            ControlFlow::Return(values) => match values[..] {
                [DataValue::I8(value)] => Some((value as u8).into()),
                [DataValue::I16(value)] => Some((value as u16).into()),
                [DataValue::I32(value)] => Some((value as u32).into()),
                [DataValue::I64(value)] => Some(value.cast_unsigned()),
                ref other => panic!("{other:?}"),
            },
            ControlFlow::Trap(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Compares the first instruction of a function with the interpreter on all combinations of
    /// numbers.
    fn compare(text: &str, params: &[u32]) {
        let func = &cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"))[0];
        let entry = func.layout.entry_block().expect("a block");
        let inst = func.layout.first_inst(entry).expect("an instruction");
        let width = func.dfg.value_type(func.dfg.first_result(inst)).bits();
        let mask = u64::MAX >> (64 - width);
        let second = |number: usize| params.get(number).map_or(vec![0], |&width| numbers(width));
        for &a in &numbers(params[0]) {
            for &b in &second(1) {
                for &c in &second(2) {
                    let bits = &[a, b, c][..params.len()];
                    let args: Vec<DataValue> = bits
                        .iter()
                        .zip(params)
                        .map(|(&bits, &width)| value(bits, width))
                        .collect();
                    let found = operate(func, inst, bits).map(|bits| bits & mask);
                    // The interpreter traps for the remainder of the minimum by -1, which is 0.
                    if func.dfg.insts[inst].opcode() == Opcode::Srem && a == 1 << (width - 1) && b == mask {
                        assert_eq!(found, Some(0), "{text}");
                        continue;
                    }
                    assert_eq!(found, interpreted(func, &args), "{text}\n{args:?}");
                }
            }
        }
    }

    #[test]
    fn results_agree_with_the_interpreter() {
        for width in WIDTHS {
            for opcode in UNARY {
                compare(
                    &format!(
                        "function %f(i{width}) -> i{width} {{\nblock0(v0: i{width}):\n v1 = {opcode} v0\n return v1\n}}"
                    ),
                    &[width],
                );
            }
            for opcode in BINARY {
                compare(
                    &format!(
                        "function %f(i{width}, i{width}) -> i{width} {{\nblock0(v0: i{width}, v1: i{width}):\n v2 = {opcode} v0, v1\n return v2\n}}"
                    ),
                    &[width, width],
                );
            }
            for condition in IntCC::all() {
                compare(
                    &format!(
                        "function %f(i{width}, i{width}) -> i8 {{\nblock0(v0: i{width}, v1: i{width}):\n v2 = icmp {condition} v0, v1\n return v2\n}}"
                    ),
                    &[width, width],
                );
            }
            compare(
                &format!(
                    "function %f(i8, i{width}, i{width}) -> i{width} {{\nblock0(v0: i8, v1: i{width}, v2: i{width}):\n v3 = select v0, v1, v2\n return v3\n}}"
                ),
                &[8, width, width],
            );
            for wide in WIDTHS.into_iter().filter(|&wide| wide > width) {
                for opcode in ["uextend", "sextend"] {
                    compare(
                        &format!(
                            "function %f(i{width}) -> i{wide} {{\nblock0(v0: i{width}):\n v1 = {opcode}.i{wide} v0\n return v1\n}}"
                        ),
                        &[width],
                    );
                }
                compare(
                    &format!(
                        "function %f(i{wide}) -> i{width} {{\nblock0(v0: i{wide}):\n v1 = ireduce.i{width} v0\n return v1\n}}"
                    ),
                    &[wide],
                );
            }
            // Shift amounts of another type.
            for opcode in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
                for amount in WIDTHS {
                    compare(
                        &format!(
                            "function %f(i{width}, i{amount}) -> i{width} {{\nblock0(v0: i{width}, v1: i{amount}):\n v2 = {opcode} v0, v1\n return v2\n}}"
                        ),
                        &[width, amount],
                    );
                }
            }
        }
    }
}
