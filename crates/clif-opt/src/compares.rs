//! Replaces compares of an f32, or of a register of them, with a constant by integer compares of the
//! bits.
//!
//! As signed integers, the bits of nonnegative floats are in the order of the floats, and those of
//! negative floats are in reverse order. For a constant other than 0, one integer compare selects
//! one side, and a second one excludes NaNs and numbers of the other sign where necessary. This
//! costs two or three instructions; a compare of two variables costs seven.

use super::edit;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Value, ValueDef, types,
};

/// The opcodes that the pass rewrites.
pub const OPCODES: &[Opcode] = &[Opcode::Fcmp];

/// The bits of infinity.
const INFINITY: u32 = 0x7f80_0000;

/// The sign bit.
const SIGN: u32 = 1 << 31;

/// Rewrites compares. Returns whether anything changed.
pub fn run(func: &mut Function) -> bool {
    edit::rewrite_each(func, |func, inst| {
        func.dfg.insts[inst].opcode() == Opcode::Fcmp && rewrite(func, inst)
    })
}

/// Returns the bits of an f32 constant, or of a vector of it.
fn constant(func: &Function, value: Value) -> Option<u32> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(value)) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits()),
        InstructionData::Unary {
            opcode: Opcode::Splat,
            arg,
        } => constant(func, arg),
        _ => None,
    }
}

/// A condition on the bits of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// The unsigned distance from the first number is at most the second one.
    Within(u32, u32),
    /// Both compares hold.
    Both((IntCC, u32), (IntCC, u32)),
}

impl Test {
    /// Returns the condition for an ordered compare with a constant, if one exists.
    fn new(condition: FloatCC, bits: u32) -> Option<Self> {
        let size = bits & !SIGN;
        if size == 0 || size >= INFINITY {
            return None;
        }
        // Away from 0, the numbers are a range that ends with infinity.
        let largest = INFINITY | bits & SIGN;
        let outward = |first: u32| Self::Within(first, largest - first);
        let negative = bits & SIGN != 0;
        Some(match (condition, negative) {
            (FloatCC::GreaterThan, false) | (FloatCC::LessThan, true) => outward(bits + 1),
            (FloatCC::GreaterThanOrEqual, false) | (FloatCC::LessThanOrEqual, true) => outward(bits),
            // Towards 0, the range includes the numbers of the other sign, and must exclude their
            // NaNs.
            (FloatCC::LessThan, false) => Self::Both(
                (IntCC::SignedLessThan, bits),
                (IntCC::UnsignedLessThanOrEqual, INFINITY | SIGN),
            ),
            (FloatCC::LessThanOrEqual, false) => Self::Both(
                (IntCC::SignedLessThanOrEqual, bits),
                (IntCC::UnsignedLessThanOrEqual, INFINITY | SIGN),
            ),
            (FloatCC::GreaterThan, true) => Self::Both(
                (IntCC::UnsignedLessThan, bits),
                (IntCC::SignedLessThanOrEqual, INFINITY),
            ),
            (FloatCC::GreaterThanOrEqual, true) => Self::Both(
                (IntCC::UnsignedLessThanOrEqual, bits),
                (IntCC::SignedLessThanOrEqual, INFINITY),
            ),
            _ => return None,
        })
    }
}

fn rewrite(func: &mut Function, inst: Inst) -> bool {
    let InstructionData::FloatCompare { cond, args: [x, y], .. } = func.dfg.insts[inst] else {
        return false;
    };
    let ty = match func.dfg.value_type(x) {
        types::F32 => types::I32,
        types::F32X16 => types::I32X16,
        _ => return false,
    };
    let (condition, value, bits) = match (constant(func, x), constant(func, y)) {
        (None, Some(bits)) => (cond, x, bits),
        (Some(bits), None) => (cond.swap_args(), y, bits),
        _ => return false,
    };
    // An unordered compare is the negation of an ordered one.
    let (test, holds) = match (Test::new(condition, bits), Test::new(condition.complement(), bits)) {
        (Some(test), _) => (test, true),
        (None, Some(test)) => (test, false),
        (None, None) => return false,
    };
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let raw = cursor.ins().bitcast(ty, MemFlagsData::new(), value);
    let number = |cursor: &mut FuncCursor<'_>, bits: u32| {
        let number = cursor.ins().iconst(types::I32, i64::from(bits.cast_signed()));
        if ty.is_vector() {
            cursor.ins().splat(ty, number)
        } else {
            number
        }
    };
    let with_polarity = |condition: IntCC| if holds { condition } else { condition.complement() };
    match test {
        Test::Within(first, most) => {
            let first = number(&mut cursor, first);
            let above = cursor.ins().isub(raw, first);
            let most = number(&mut cursor, most);
            func.replace(inst)
                .icmp(with_polarity(IntCC::UnsignedLessThanOrEqual), above, most);
        }
        Test::Both((a, left), (b, right)) => {
            let left = number(&mut cursor, left);
            let left = cursor.ins().icmp(with_polarity(a), raw, left);
            let right = number(&mut cursor, right);
            let right = cursor.ins().icmp(with_polarity(b), raw, right);
            if holds {
                func.replace(inst).band(left, right);
            } else {
                func.replace(inst).bor(left, right);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: IntCC, a: u32, b: u32) -> bool {
        match condition {
            IntCC::SignedLessThan => a.cast_signed() < b.cast_signed(),
            IntCC::SignedLessThanOrEqual => a.cast_signed() <= b.cast_signed(),
            IntCC::UnsignedLessThan => a < b,
            _ => a <= b,
        }
    }

    #[test]
    fn bit_tests_agree_with_float_compares() {
        let interesting = |size: u32| [size, size + 1, size.wrapping_sub(1)];
        let sizes = [
            0,
            1,
            0x0080_0000,
            0x3f80_0000,
            0x4080_0000,
            0x7f7f_ffff,
            INFINITY,
            0x7fc0_0000,
            0x7fff_fffe,
        ];
        let all: Vec<u32> = sizes
            .iter()
            .flat_map(|&size| interesting(size))
            .flat_map(|bits| [bits, bits | SIGN])
            .collect();
        let conditions = [
            FloatCC::LessThan,
            FloatCC::LessThanOrEqual,
            FloatCC::GreaterThan,
            FloatCC::GreaterThanOrEqual,
        ];
        let mut tested = 0;
        for condition in conditions {
            for &bits in &all {
                let Some(test) = Test::new(condition, bits) else {
                    continue;
                };
                for &x in &all {
                    let (a, b) = (f32::from_bits(x), f32::from_bits(bits));
                    let expected = match condition {
                        FloatCC::LessThan => a < b,
                        FloatCC::LessThanOrEqual => a <= b,
                        FloatCC::GreaterThan => a > b,
                        _ => a >= b,
                    };
                    let found = match test {
                        Test::Within(first, most) => x.wrapping_sub(first) <= most,
                        Test::Both((c, left), (d, right)) => holds(c, x, left) && holds(d, x, right),
                    };
                    assert_eq!(found, expected, "{a:?} {condition} {b:?}");
                    tested += 1;
                }
            }
        }
        assert!(tested > 4000);
    }
}
