//! Addresses as linear sums: values with constant factors, and a constant, modulo 2^32.

use super::loops;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};
use smallvec::SmallVec;

/// The maximum depth of operands that a sum includes.
const MAX_DEPTH: u32 = 16;

/// The maximum number of terms of a sum.
const MAX_TERMS: usize = 12;

/// A sum of products, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinearSum {
    /// Distinct values with their factors, sorted by value.
    pub terms: SmallVec<[(Value, u32); 4]>,
    /// The constant.
    pub constant: u32,
}

/// A linear operation on i32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearOp {
    /// The sum of two values.
    Add(Value, Value),
    /// The difference of two values.
    Sub(Value, Value),
    /// The sum of a value and a constant.
    AddConst(Value, u32),
    /// The product of a value and a constant.
    MulConst(Value, u32),
}

/// Returns the instruction as a linear operation, if it is one.
pub fn linear_op(func: &Function, inst: Inst) -> Option<LinearOp> {
    let InstructionData::Binary { opcode, args } = func.dfg.insts[inst] else {
        return None;
    };
    let [a, b] = args;
    if func.dfg.value_type(a) != types::I32 {
        return None;
    }
    let number = |value| loops::constant(func, value);
    let word = |number: u64| (number & u64::from(u32::MAX)) as u32;
    // Constants are usually the right operand.
    let commuted = |b| match number(b) {
        Some(c) => Some((a, word(c))),
        None => number(a).map(|c| (b, word(c))),
    };
    Some(match opcode {
        Opcode::Iadd => match commuted(b) {
            Some((value, c)) => LinearOp::AddConst(value, c),
            None => LinearOp::Add(a, b),
        },
        Opcode::Isub => match number(b) {
            Some(c) => LinearOp::AddConst(a, word(c).wrapping_neg()),
            None => LinearOp::Sub(a, b),
        },
        Opcode::Imul => {
            let (value, c) = commuted(b)?;
            LinearOp::MulConst(value, c)
        }
        Opcode::Ishl if func.dfg.value_type(b).bits() <= 64 => LinearOp::MulConst(a, 1 << (number(b)? & 31)),
        _ => return None,
    })
}

impl LinearSum {
    /// Returns the value as a sum. An instruction is replaced by its operands if `opens` returns
    /// true for it. Returns `None` if the sum has too many terms.
    pub fn of(func: &Function, value: Value, opens: &dyn Fn(Inst, LinearOp) -> bool) -> Option<Self> {
        let mut sum = Self::default();
        sum.add(func, value, 1, opens, MAX_DEPTH)?;
        sum.terms.retain(|term| term.1 != 0);
        sum.terms.sort_unstable_by_key(|term| term.0);
        Some(sum)
    }

    fn add(
        &mut self,
        func: &Function,
        value: Value,
        factor: u32,
        opens: &dyn Fn(Inst, LinearOp) -> bool,
        depth: u32,
    ) -> Option<()> {
        let value = func.dfg.resolve_aliases(value);
        if let Some(number) = loops::constant(func, value) {
            let word = (number & u64::from(u32::MAX)) as u32;
            self.constant = self.constant.wrapping_add(word.wrapping_mul(factor));
            return Some(());
        }
        if depth > 0
            && let ValueDef::Result(inst, 0) = func.dfg.value_def(value)
            && let Some(op) = linear_op(func, inst)
            && opens(inst, op)
        {
            return match op {
                LinearOp::Add(a, b) => {
                    self.add(func, a, factor, opens, depth - 1)?;
                    self.add(func, b, factor, opens, depth - 1)
                }
                LinearOp::Sub(a, b) => {
                    self.add(func, a, factor, opens, depth - 1)?;
                    self.add(func, b, factor.wrapping_neg(), opens, depth - 1)
                }
                LinearOp::AddConst(a, number) => {
                    self.constant = self.constant.wrapping_add(number.wrapping_mul(factor));
                    self.add(func, a, factor, opens, depth - 1)
                }
                LinearOp::MulConst(a, number) => self.add(func, a, factor.wrapping_mul(number), opens, depth - 1),
            };
        }
        if let Some(term) = self.terms.iter_mut().find(|term| term.0 == value) {
            term.1 = term.1.wrapping_add(factor);
            return Some(());
        }
        self.terms.push((value, factor));
        (self.terms.len() <= MAX_TERMS).then_some(())
    }
}

/// Emits the sum of `total` and the terms. Values with the same factor share one multiplication.
/// Returns `None` for an empty sum.
pub fn add_terms(cursor: &mut FuncCursor<'_>, total: Option<Value>, terms: &[(Value, u32)]) -> Option<Value> {
    let is_negative = |factor: u32| factor.cast_signed() < 0;
    let (negative, positive): (Vec<_>, Vec<_>) = terms.iter().copied().partition(|term| is_negative(term.1));
    let negative: Vec<_> = negative
        .into_iter()
        .map(|(value, factor)| (value, factor.wrapping_neg()))
        .collect();
    let (more, less) = (sum_of_products(cursor, positive), sum_of_products(cursor, negative));
    let own = match (more, less) {
        (Some(more), Some(less)) => Some(cursor.ins().isub(more, less)),
        (Some(more), None) => Some(more),
        (None, Some(less)) => {
            return Some(match total {
                Some(total) => cursor.ins().isub(total, less),
                None => cursor.ins().ineg(less),
            });
        }
        (None, None) => None,
    };
    match (total, own) {
        (Some(total), Some(own)) => Some(cursor.ins().iadd(total, own)),
        (total, own) => total.or(own),
    }
}

/// Emits the sum of the terms.
fn sum_of_products(cursor: &mut FuncCursor<'_>, mut terms: Vec<(Value, u32)>) -> Option<Value> {
    terms.sort_unstable_by_key(|&(value, factor)| (factor, value));
    let mut total: Option<Value> = None;
    for group in terms.chunk_by(|a, b| a.1 == b.1) {
        let &[(first, factor), ref rest @ ..] = group else {
            continue;
        };
        let sum = rest.iter().fold(first, |sum, term| cursor.ins().iadd(sum, term.0));
        let product = multiply(cursor, sum, factor);
        total = Some(match total {
            Some(total) => cursor.ins().iadd(total, product),
            None => product,
        });
    }
    total
}

/// Emits the product of the value and a constant.
fn multiply(cursor: &mut FuncCursor<'_>, value: Value, factor: u32) -> Value {
    if factor == 1 {
        return value;
    }
    if factor.is_power_of_two() {
        let amount = cursor.ins().iconst(types::I32, i64::from(factor.trailing_zeros()));
        return cursor.ins().ishl(value, amount);
    }
    let factor = cursor.ins().iconst(types::I32, i64::from(factor.cast_signed()));
    cursor.ins().imul(value, factor)
}

#[cfg(test)]
mod tests {
    use super::super::straight_line::check_results;
    use super::*;
    use cranelift_codegen::cursor::Cursor;

    /// Replaces the returned value by code emitted from its linear sum.
    fn rebuild_from_sum(func: &mut Function) -> bool {
        let entry = func.layout.entry_block().unwrap();
        let last = func.layout.last_inst(entry).unwrap();
        let value = func.dfg.inst_args(last)[0];
        let sum = LinearSum::of(func, value, &|_, _| true).unwrap();
        let mut cursor = FuncCursor::new(func).at_inst(last);
        let constant = cursor.ins().iconst(types::I32, i64::from(sum.constant.cast_signed()));
        let total = add_terms(&mut cursor, Some(constant), &sum.terms).unwrap();
        let own = add_terms(&mut cursor, None, &sum.terms);
        // Twice the sum, minus its terms, minus its constant.
        let twice = own.map_or(total, |own| {
            let double = cursor.ins().iadd(total, total);
            let less = cursor.ins().isub(double, own);
            cursor.ins().isub(less, constant)
        });
        func.dfg.inst_args_mut(last)[0] = twice;
        true
    }

    #[test]
    fn rebuilt_sums_have_the_same_value() {
        let steps = ["iadd", "isub", "imul", "ishl"];
        let operands = ["v2", "v3", "v4", "v5"];
        for first in steps {
            for second in steps {
                for third in ["iadd", "isub"] {
                    for (number, one) in operands.iter().enumerate() {
                        let other = operands[(number + 1) % operands.len()];
                        check_results(
                            &format!(
                                "function %f(i32, i32) -> i32 {{\nblock0(v0: i32, v1: i32):\n    v2 = iconst.i32 5\n    \
                                 v3 = iconst.i32 -3\n    v4 = iconst.i32 8\n    v5 = iconst.i32 1\n    v6 = {first} v0, {one}\n    \
                                 v7 = {second} v1, {other}\n    v8 = {third} v6, v7\n    v9 = isub v8, {one}\n    v10 = isub v9, v1\n    \
                                 v11 = isub v10, v1\n    v12 = iadd {other}, v11\n    return v12\n}}"
                            ),
                            rebuild_from_sum,
                        );
                    }
                }
            }
        }
    }
}
