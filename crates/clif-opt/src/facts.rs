//! Facts about integers, from their definitions: upper bounds, and alignment.
//!
//! Facts hold for every execution of the definition, so no control flow is followed.

use super::loops;
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, StackSlot, Value, ValueDef};

/// The maximum depth of definitions that [`largest`] follows.
const DEPTH: u32 = 6;

/// The maximum depth of definitions that [`alignment`] follows.
const ALIGNMENT_DEPTH: u32 = 8;

/// Returns an upper bound of the value as an unsigned integer, for integers of up to 64 bits.
pub fn largest(func: &Function, value: Value) -> u64 {
    largest_within(func, value, DEPTH)
}

fn largest_within(func: &Function, value: Value, depth: u32) -> u64 {
    let value = func.dfg.resolve_aliases(value);
    let ty = func.dfg.value_type(value);
    let all = loops::mask(ty);
    if !ty.is_int() || ty.bits() > 64 {
        return u64::MAX;
    }
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
        return all;
    };
    if let Some(number) = loops::constant(func, value) {
        return number;
    }
    if depth == 0 {
        return all;
    }
    let of = |value| largest_within(func, value, depth - 1);
    let args = func.dfg.inst_args(inst);
    let found = match (func.dfg.insts[inst].opcode(), args) {
        (Opcode::Uextend, &[x]) => of(x),
        (Opcode::Ireduce, &[x]) => of(x),
        (Opcode::Uload8, _) => 0xff,
        (Opcode::Uload16, _) => 0xffff,
        (Opcode::Uload32, _) => 0xffff_ffff,
        (Opcode::Icmp | Opcode::Fcmp, _) => 1,
        (Opcode::Clz | Opcode::Ctz | Opcode::Popcnt | Opcode::Cls, _) => u64::from(ty.bits()),
        (Opcode::Band, &[x, y]) => of(x).min(of(y)),
        // All bits below the highest one may be set.
        (Opcode::Bor | Opcode::Bxor, &[x, y]) => below_highest(of(x) | of(y)),
        (Opcode::Umin, &[x, y]) => of(x).min(of(y)),
        (Opcode::Umax, &[x, y]) => of(x).max(of(y)),
        (Opcode::Select | Opcode::SelectSpectreGuard, &[_, x, y]) => of(x).max(of(y)),
        (Opcode::Iadd, &[x, y]) => of(x).checked_add(of(y)).unwrap_or(all),
        (Opcode::Imul, &[x, y]) => of(x).checked_mul(of(y)).unwrap_or(all),
        (Opcode::Urem, &[x, y]) => match loops::constant(func, y) {
            Some(number) if number > 0 => of(x).min(number - 1),
            _ => of(x),
        },
        (Opcode::Udiv, &[x, y]) => match loops::constant(func, y) {
            Some(number) if number > 0 => of(x) / number,
            _ => of(x),
        },
        (Opcode::Ushr, &[x, y]) => match loops::constant(func, y) {
            Some(amount) => of(x) >> (amount & u64::from(ty.bits() - 1)),
            None => of(x),
        },
        (Opcode::Ishl, &[x, y]) => match loops::constant(func, y) {
            Some(amount) => {
                let amount = amount & u64::from(ty.bits() - 1);
                let (low, cut) = (of(x) << amount, of(x) >> (64 - amount.max(1)) != 0 && amount > 0);
                if cut { all } else { low }
            }
            None => all,
        },
        _ => all,
    };
    if found > all { all } else { found }
}

/// Returns a number with all bits set up to the highest set bit.
pub fn below_highest(bits: u64) -> u64 {
    u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// The largest alignment that [`alignment`] returns.
pub const MAX_ALIGNMENT: u64 = 1 << 16;

/// Facts that the caller of [`alignment`] supplies, in addition to the definitions of values.
pub trait Assumptions {
    /// Returns the alignment of a stack slot, a power of two in bytes.
    fn slot(&mut self, slot: StackSlot) -> u64;

    /// Returns the initial values of a block parameter and the number that each iteration adds, if
    /// it is an induction variable.
    fn induction_variable(&self, _block: Block, _number: usize) -> Option<(Vec<Value>, u64)> {
        None
    }
}

/// Returns the largest power of two, up to [`MAX_ALIGNMENT`], that is known to divide the value.
pub fn alignment(func: &Function, value: Value, assumptions: &mut impl Assumptions) -> u64 {
    alignment_within(func, value, assumptions, ALIGNMENT_DEPTH)
}

/// Returns the largest power of two, up to [`MAX_ALIGNMENT`], that divides the number.
pub fn power_of_two_factor(number: u64) -> u64 {
    MAX_ALIGNMENT.min(1 << number.trailing_zeros().min(63))
}

fn alignment_within(func: &Function, value: Value, assumptions: &mut impl Assumptions, depth: u32) -> u64 {
    let value = func.dfg.resolve_aliases(value);
    if let Some(number) = loops::constant(func, value) {
        return power_of_two_factor(number);
    }
    if depth == 0 {
        return 1;
    }
    let inst = match func.dfg.value_def(value) {
        ValueDef::Result(inst, 0) => inst,
        ValueDef::Param(block, number) => {
            let Some((starts, step)) = assumptions.induction_variable(block, number) else {
                return 1;
            };
            let starts = starts.iter();
            let starts = starts.map(|&start| alignment_within(func, start, assumptions, depth - 1));
            return starts.fold(power_of_two_factor(step), u64::min);
        }
        _ => return 1,
    };
    let data = func.dfg.insts[inst];
    if let InstructionData::StackAddr { stack_slot, offset, .. } = data {
        let offset = power_of_two_factor(i64::from(offset).cast_unsigned());
        return assumptions.slot(stack_slot).min(offset);
    }
    let mut of = |value| alignment_within(func, value, assumptions, depth - 1);
    match (data.opcode(), func.dfg.inst_args(inst)) {
        (Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor, &[x, y]) => of(x).min(of(y)),
        (Opcode::Band, &[x, y]) => of(x).max(of(y)),
        (Opcode::Imul, &[x, y]) => MAX_ALIGNMENT.min(of(x) * of(y)),
        (Opcode::Ishl, &[x, y]) => match loops::constant(func, y) {
            // The amount is taken modulo the width of the type.
            Some(amount) if amount < u64::from(func.dfg.value_type(x).bits()) => {
                MAX_ALIGNMENT.min(of(x) << amount.min(16))
            }
            _ => of(x),
        },
        (Opcode::Select | Opcode::SelectSpectreGuard, &[_, x, y]) => of(x).min(of(y)),
        (Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce, &[x]) => of(x),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::straight_line::{check_values, masked};
    use super::*;

    /// No assumptions.
    struct Definitions;

    impl Assumptions for Definitions {
        fn slot(&mut self, _: StackSlot) -> u64 {
            1
        }
    }

    /// Returns a fact about the returned value.
    fn fact(body: &str, fact: impl FnOnce(&Function, Value) -> u64) -> u64 {
        let text = format!("function %f(i32, i8) -> i32 {{\nblock0(v0: i32, v1: i8):\n{body}\n    return v9\n}}");
        let functions = cranelift_reader::parse_functions(&text).unwrap();
        let func = &functions[0];
        let block = func.layout.entry_block().unwrap();
        let last = func.layout.last_inst(block).unwrap();
        fact(func, func.dfg.inst_args(last)[0])
    }

    const UNARY: [&str; 7] = ["ineg", "bnot", "iabs", "clz", "ctz", "popcnt", "cls"];
    const BINARY: [&str; 18] = [
        "iadd", "isub", "imul", "band", "bor", "bxor", "ishl", "ushr", "sshr", "rotl", "umin", "umax", "smin", "smax",
        "udiv", "urem", "sdiv", "srem",
    ];

    #[test]
    fn facts_hold_for_every_value() {
        let holds = |func: &Function, value, number: u64| {
            number <= largest(func, value) && number.is_multiple_of(alignment(func, value, &mut Definitions))
        };
        for width in [8, 16, 32, 64] {
            for opcode in UNARY {
                for text in masked(width, |a, _| format!("    v9 = {opcode} {a}")) {
                    check_values(&text, holds);
                }
            }
            for opcode in BINARY {
                for text in masked(width, |a, b| format!("    v9 = {opcode} {a}, {b}")) {
                    check_values(&text, holds);
                }
                for constant in [1, 3, width / 2, width - 1, width, width + 2] {
                    let last =
                        |a: &str, _: &str| format!("    v6 = iconst.i{width} {constant}\n    v9 = {opcode} {a}, v6");
                    for text in masked(width, last) {
                        check_values(&text, holds);
                    }
                }
            }
            let select = |a: &str, b: &str| format!("    v6 = icmp ult v0, v1\n    v9 = select v6, {a}, {b}");
            for text in masked(width, select) {
                check_values(&text, holds);
            }
        }
    }

    #[test]
    fn bounds_follow_operations() {
        for (body, expected) in [
            ("v9 = uextend.i32 v1", 0xff),
            ("v9 = uload8.i32 v0", 0xff),
            ("v9 = uload16.i32 v0", 0xffff),
            ("v2 = uload32.i64 v0\n v9 = ireduce.i32 v2", 0xffff_ffff),
            ("v9 = load.i32 v0", 0xffff_ffff),
            ("v9 = sload8.i32 v0", 0xffff_ffff),
            ("v2 = iconst.i32 12\n v9 = band v0, v2", 12),
            ("v2 = iconst.i32 12\n v9 = urem v0, v2", 11),
            ("v2 = iconst.i32 28\n v9 = ushr v0, v2", 15),
            ("v2 = uextend.i32 v1\n v9 = iadd v2, v2", 510),
            ("v2 = uextend.i32 v1\n v9 = imul v2, v2", 65025),
            ("v2 = uextend.i32 v1\n v3 = iconst.i32 4\n v9 = ishl v2, v3", 0xff0),
            (
                "v2 = uextend.i32 v1\n v3 = iconst.i32 28\n v9 = ishl v2, v3",
                0xffff_ffff,
            ),
            ("v2 = uextend.i32 v1\n v3 = iconst.i32 256\n v9 = bor v2, v3", 511),
            ("v9 = iadd v0, v0", 0xffff_ffff),
            ("v9 = sextend.i32 v1", 0xffff_ffff),
        ] {
            assert_eq!(fact(body, largest), expected, "{body}");
        }
    }

    #[test]
    fn alignment_follows_operations() {
        for (body, expected) in [
            ("v9 = iconst.i32 48", 16),
            ("v9 = iconst.i32 0", MAX_ALIGNMENT),
            ("v9 = load.i32 v0", 1),
            ("v2 = iconst.i32 12\n v9 = imul v0, v2", 4),
            ("v2 = iconst.i32 -64\n v9 = band v0, v2", 64),
            (
                "v2 = iconst.i32 4\n v3 = ishl v0, v2\n v4 = iconst.i32 8\n v9 = isub v3, v4",
                8,
            ),
            ("v2 = iconst.i32 35\n v9 = ishl v0, v2", 1),
            ("v2 = iconst.i8 2\n v3 = ishl v1, v2\n v9 = sextend.i32 v3", 4),
            ("v2 = iconst.i32 4\n v3 = iconst.i32 24\n v9 = select v0, v2, v3", 4),
        ] {
            assert_eq!(
                fact(body, |func, value| alignment(func, value, &mut Definitions)),
                expected,
                "{body}"
            );
        }
    }
}
