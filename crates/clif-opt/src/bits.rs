//! Upper bounds of integers, and simplifications by them.
//!
//! * Removes a bit mask that covers all bits that can be set.
//! * Converts a small integer to f32 from a narrow type, which the float unit converts exactly.

use super::{edit, loops};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, ValueDef, types};

/// The opcodes that the pass rewrites.
pub const OPCODES: &[Opcode] = &[Opcode::Band, Opcode::FcvtFromUint, Opcode::FcvtFromSint];

/// The maximum depth of definitions that the analysis follows.
const DEPTH: u32 = 6;

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
        (Opcode::Udiv, &[x, _]) => of(x),
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
fn below_highest(bits: u64) -> u64 {
    u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// Simplifies operations by upper bounds. Returns whether anything changed. Aliases may remain.
pub fn run(func: &mut Function, has_fpu: bool) -> bool {
    edit::rewrite_each(func, |func, inst| match func.dfg.insts[inst].opcode() {
        Opcode::Band => redundant_mask(func, inst),
        Opcode::FcvtFromUint | Opcode::FcvtFromSint if has_fpu => small_to_float(func, inst),
        _ => false,
    })
}

fn redundant_mask(func: &mut Function, inst: Inst) -> bool {
    let InstructionData::Binary { args: [x, y], .. } = func.dfg.insts[inst] else {
        return false;
    };
    let result = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(result);
    if !ty.is_int() || ty.bits() > 64 {
        return false;
    }
    let (value, mask) = match (loops::constant(func, x), loops::constant(func, y)) {
        (None, Some(mask)) => (x, mask),
        (Some(mask), None) => (y, mask),
        _ => return false,
    };
    if below_highest(largest(func, value)) & !mask != 0 {
        return false;
    }
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
    true
}

/// Returns i8 or i16, whichever is the narrowest type that holds the value as an unsigned number.
/// Returns `None` if neither does, or if the value has fewer than 32 or more than 64 bits.
pub fn narrow(func: &Function, value: Value) -> Option<Type> {
    let ty = func.dfg.value_type(value);
    if !ty.is_int() || !(32..=64).contains(&ty.bits()) {
        return None;
    }
    match largest(func, value) {
        0..=0xff => Some(types::I8),
        0x100..=0xffff => Some(types::I16),
        _ => None,
    }
}

fn small_to_float(func: &mut Function, inst: Inst) -> bool {
    let InstructionData::Unary { arg, .. } = func.dfg.insts[inst] else {
        return false;
    };
    let to = func.dfg.value_type(func.dfg.first_result(inst));
    let Some(narrow) = narrow(func, arg).filter(|_| to == types::F32) else {
        return false;
    };
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let small = cursor.ins().ireduce(narrow, arg);
    func.replace(inst).fcvt_from_uint(types::F32, small);
    true
}

#[cfg(test)]
mod tests {
    use super::super::straight_line;
    use super::*;

    /// Returns the upper bound of the returned value.
    fn largest_of(body: &str) -> u64 {
        let text = format!("function %f(i32, i8) -> i32 {{\nblock0(v0: i32, v1: i8):\n{body}\n    return v9\n}}");
        let functions = cranelift_reader::parse_functions(&text).unwrap();
        let func = &functions[0];
        let block = func.layout.entry_block().unwrap();
        let last = func.layout.last_inst(block).unwrap();
        largest(func, func.dfg.inst_args(last)[0])
    }

    const UNARY: [&str; 7] = ["ineg", "bnot", "iabs", "clz", "ctz", "popcnt", "cls"];
    const BINARY: [&str; 18] = [
        "iadd", "isub", "imul", "band", "bor", "bxor", "ishl", "ushr", "sshr", "rotl", "umin", "umax", "smin", "smax",
        "udiv", "urem", "sdiv", "srem",
    ];

    /// Returns functions whose operands are masked by different constants.
    fn functions(width: u32, last: impl Fn(&str, &str) -> String) -> Vec<String> {
        let masks = [(0, 0), (3, 7), (0x7f, 5), (12, 1), (-1, 3), (-1, -1)];
        let text = |(a, b): (i64, i64)| {
            let last = last("v4", "v5");
            format!(
                "function %f(i{width}, i{width}) -> i{width} {{\nblock0(v0: i{width}, v1: i{width}):\n    v2 = iconst.i{width} {a}\n    \
                 v3 = iconst.i{width} {b}\n    v4 = band v0, v2\n    v5 = band v1, v3\n{last}\n    return v9\n}}"
            )
        };
        masks.map(text).to_vec()
    }

    #[test]
    fn no_value_exceeds_its_bound() {
        for width in [8, 16, 32, 64] {
            for opcode in UNARY {
                for text in functions(width, |a, _| format!("    v9 = {opcode} {a}")) {
                    straight_line::check_bound(&text, largest);
                }
            }
            for opcode in BINARY {
                for text in functions(width, |a, b| format!("    v9 = {opcode} {a}, {b}")) {
                    straight_line::check_bound(&text, largest);
                }
                for constant in [1, 3, width / 2, width - 1, width, width + 2] {
                    let last =
                        |a: &str, _: &str| format!("    v6 = iconst.i{width} {constant}\n    v9 = {opcode} {a}, v6");
                    for text in functions(width, last) {
                        straight_line::check_bound(&text, largest);
                    }
                }
            }
            let select = |a: &str, b: &str| format!("    v6 = icmp ult v0, v1\n    v9 = select v6, {a}, {b}");
            for text in functions(width, select) {
                straight_line::check_bound(&text, largest);
            }
        }
    }

    #[test]
    fn removed_masks_are_redundant() {
        let mut removed = 0;
        for width in [8, 32] {
            for mask in [0, 1, 2, 4, 5, 7, 12, 15, 0x7f, -2, -1] {
                for opcode in ["iadd", "band", "bor", "umin", "umax", "imul"] {
                    let last = |a: &str, b: &str| {
                        format!("    v6 = {opcode} {a}, {b}\n    v7 = iconst.i{width} {mask}\n    v9 = band v6, v7")
                    };
                    for text in functions(width, last) {
                        removed += usize::from(straight_line::check_results(&text, |func| run(func, false)));
                    }
                }
            }
        }
        assert!(removed > 200, "{removed}");
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
            assert_eq!(largest_of(body), expected, "{body}");
        }
    }
}
