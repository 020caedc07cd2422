//! Replaces selects by arithmetic.
//!
//! A branch over a move costs four issue slots that no other instruction can use. A compare is 0 or
//! 1, so its product with a number is the number or 0:
//!
//! * A select between a number and 0 is a product.
//! * A select between constants is a product and a sum.
//! * A select between a number and the result of an operation on it is that operation with a
//!   product.
//! * A bitwise and with a negated bit, as compilers emit it for selects, is a product.

use super::edit;
use super::facts;
use super::loops::{constant, mask};
use crate::Target;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, ValueDef, types};

/// Rewrites selects. Returns whether anything changed.
pub fn run(func: &mut Function, target: &dyn Target) -> bool {
    let mut uses = None;
    edit::rewrite_each(func, |func, inst| match func.dfg.insts[inst].opcode() {
        Opcode::Smax => clamp_at_zero(func, inst, IntCC::SignedGreaterThan),
        Opcode::Smin => clamp_at_zero(func, inst, IntCC::SignedLessThan),
        Opcode::Band => product_for_sign_mask(func, inst),
        Opcode::Select => {
            let uses = uses.get_or_insert_with(|| edit::count_uses(func));
            rewrite(func, target, inst, uses)
        }
        _ => false,
    })
}

/// Returns whether the type is an integer of one register.
fn is_word(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 32
}

/// Replaces a minimum or maximum with 0 by a product.
fn clamp_at_zero(func: &mut Function, inst: Inst, kept_if: IntCC) -> bool {
    let &[x, y] = func.dfg.inst_args(inst) else {
        return false;
    };
    let number = match (constant(func, x), constant(func, y)) {
        (_, Some(0)) => x,
        (Some(0), _) => y,
        _ => return false,
    };
    let ty = func.dfg.value_type(number);
    if ty != types::I32 {
        // The compare would need an extension of a narrow number.
        return false;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let zero = cursor.ins().iconst(ty, 0);
    let is_kept = cursor.ins().icmp(kept_if, number, zero);
    let factor = cursor.ins().uextend(ty, is_kept);
    func.replace(inst).imul(number, factor);
    true
}

/// Replaces the bitwise and of a number and a negated bit by the product of the number and the bit.
fn product_for_sign_mask(func: &mut Function, inst: Inst) -> bool {
    let &[x, y] = func.dfg.inst_args(inst) else {
        return false;
    };
    if !is_word(func.dfg.value_type(x)) {
        return false;
    }
    let Some((bit, number)) = negated_bit(func, x)
        .map(|bit| (bit, y))
        .or_else(|| negated_bit(func, y).map(|bit| (bit, x)))
    else {
        return false;
    };
    func.replace(inst).imul(bit, number);
    true
}

/// Returns the bit if the value is a negated bit.
fn negated_bit(func: &Function, value: Value) -> Option<Value> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(value)) else {
        return None;
    };
    let bit = match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
        (Opcode::Ineg, &[bit]) => bit,
        (Opcode::Isub, &[zero, bit]) if constant(func, zero) == Some(0) => bit,
        _ => return None,
    };
    (facts::largest(func, bit) <= 1).then_some(bit)
}

/// A select as a product, combined with another value if `base` is given.
#[derive(Clone, Copy, Debug)]
struct Product {
    /// Whether the product is nonzero when the condition is false.
    negated: bool,
    /// The factor of the condition bit.
    operand: Value,
    /// The operation and operand that combine with the product.
    base: Option<(Opcode, Value)>,
}

fn rewrite(func: &mut Function, target: &dyn Target, inst: Inst, uses: &SecondaryMap<Value, u32>) -> bool {
    let &[condition, yes, no] = func.dfg.inst_args(inst) else {
        return false;
    };
    let ty = func.dfg.value_type(yes);
    if !is_word(ty) {
        return false;
    }
    let (yes, no) = (func.dfg.resolve_aliases(yes), func.dfg.resolve_aliases(no));
    let plan = match (constant(func, yes), constant(func, no)) {
        (_, Some(0)) => Product {
            negated: false,
            operand: yes,
            base: None,
        },
        (Some(0), _) => Product {
            negated: true,
            operand: no,
            base: None,
        },
        (Some(a), Some(b)) => return select_of_constants(func, target, inst, condition, (a, b)),
        _ => match (operation_on(func, yes, no, uses), operation_on(func, no, yes, uses)) {
            (Some((op, operand)), _) => Product {
                negated: false,
                operand,
                base: Some((op, no)),
            },
            (None, Some((op, operand))) => Product {
                negated: true,
                operand,
                base: Some((op, yes)),
            },
            (None, None) => return false,
        },
    };
    if let Some(product) = scaled_bit(func, inst, condition, plan) {
        return replace(func, inst, plan, product);
    }
    let Some(bit) = condition_bit(func, inst, condition, plan.negated, ty) else {
        return false;
    };
    let product = if constant(func, plan.operand) == Some(1) {
        bit
    } else {
        FuncCursor::new(func).at_inst(inst).ins().imul(bit, plan.operand)
    };
    replace(func, inst, plan, product)
}

fn replace(func: &mut Function, inst: Inst, plan: Product, product: Value) -> bool {
    match plan.base {
        None => {
            let result = func.dfg.first_result(inst);
            func.dfg.clear_results(inst);
            func.dfg.change_to_alias(result, product);
            func.layout.remove_inst(inst);
        }
        Some((op, base)) => {
            let replace = func.replace(inst);
            match op {
                Opcode::Iadd => replace.iadd(base, product),
                Opcode::Isub => replace.isub(base, product),
                Opcode::Bor => replace.bor(base, product),
                _ => replace.bxor(base, product),
            };
        }
    }
    true
}

/// If `value` is a single-use operation on `from` that has no effect with a 0 as the other operand,
/// returns the opcode and the other operand.
fn operation_on(
    func: &Function,
    value: Value,
    from: Value,
    uses: &SecondaryMap<Value, u32>,
) -> Option<(Opcode, Value)> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
        return None;
    };
    if uses[value] != 1 {
        return None;
    }
    let InstructionData::Binary { opcode, args: [x, y] } = func.dfg.insts[inst] else {
        return None;
    };
    let (x, y) = (func.dfg.resolve_aliases(x), func.dfg.resolve_aliases(y));
    match opcode {
        Opcode::Iadd | Opcode::Bor | Opcode::Bxor if x == from => Some((opcode, y)),
        Opcode::Iadd | Opcode::Bor | Opcode::Bxor if y == from => Some((opcode, x)),
        Opcode::Isub if x == from => Some((opcode, y)),
        _ => None,
    }
}

/// Rewrites a select between two constants if factor and summand fit immediates.
fn select_of_constants(
    func: &mut Function,
    target: &dyn Target,
    inst: Inst,
    condition: Value,
    (yes, no): (u64, u64),
) -> bool {
    let ty = func.dfg.value_type(func.dfg.first_result(inst));
    let signed = |number: u64| {
        let unused = 64 - ty.bits();
        (number << unused).cast_signed() >> unused
    };
    let is_short = |number: i64| i32::try_from(number).is_ok_and(|number| target.immediates().contains(&number));
    let Some((negated, factor, summand)) = [(false, yes, no), (true, no, yes)]
        .into_iter()
        .map(|(negated, some, other)| {
            let factor = some.wrapping_sub(other) & mask(ty);
            (negated, signed(factor), signed(other))
        })
        .filter(|(_, factor, summand)| is_short(*factor) && is_short(*summand))
        // A factor of 1 needs no multiplication.
        .min_by_key(|(_, factor, _)| *factor != 1)
    else {
        return false;
    };
    let Some(bit) = condition_bit(func, inst, condition, negated, ty) else {
        return false;
    };
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let product = if factor == 1 {
        bit
    } else {
        let factor = cursor.ins().iconst(ty, factor & mask(ty).cast_signed());
        cursor.ins().imul(bit, factor)
    };
    let summand = cursor.ins().iconst(ty, summand & mask(ty).cast_signed());
    func.replace(inst).iadd(product, summand);
    true
}

/// Returns the operands if the condition is an integer compare.
fn compare(func: &Function, condition: Value) -> Option<(IntCC, Value, Value)> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(condition)) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond, args: [x, y], .. } => Some((cond, x, y)),
        _ => None,
    }
}

/// Returns the number if the condition compares it with 0, and whether it tests for equality.
fn compare_with_zero(func: &Function, condition: Value) -> Option<(Value, bool)> {
    match compare(func, condition)? {
        (IntCC::Equal, x, y) if constant(func, y) == Some(0) => Some((x, true)),
        (IntCC::NotEqual, x, y) if constant(func, y) == Some(0) => Some((x, false)),
        _ => None,
    }
}

/// Emits the product of a masked bit and a constant for a select of a constant by that bit.
fn scaled_bit(func: &mut Function, inst: Inst, condition: Value, plan: Product) -> Option<Value> {
    let operand = constant(func, plan.operand)?;
    let (number, zero) = compare_with_zero(func, condition)?;
    let ValueDef::Result(masks, 0) = func.dfg.value_def(func.dfg.resolve_aliases(number)) else {
        return None;
    };
    let InstructionData::Binary {
        opcode: Opcode::Band,
        args: [x, y],
    } = func.dfg.insts[masks]
    else {
        return None;
    };
    let bit = constant(func, y).or_else(|| constant(func, x))?;
    let ty = func.dfg.value_type(plan.operand);
    if !bit.is_power_of_two() || operand % bit != 0 || func.dfg.value_type(number) != ty || zero != plan.negated {
        return None;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let factor = cursor.ins().iconst(ty, (operand / bit).cast_signed());
    Some(cursor.ins().imul(number, factor))
}

/// Emits the condition, or its negation, as 0 or 1 of type `ty`.
fn condition_bit(func: &mut Function, inst: Inst, condition: Value, negated: bool, ty: Type) -> Option<Value> {
    let bit = if let Some((number, zero)) = compare_with_zero(func, condition)
        && zero == negated
        && is_word(func.dfg.value_type(number))
        && facts::largest(func, number) <= 1
    {
        number
    } else if !negated && facts::largest(func, condition) <= 1 {
        condition
    } else {
        // The negated compare of multi-word numbers may cost many instructions.
        let (cond, x, y) = compare(func, condition).filter(|(_, x, _)| is_word(func.dfg.value_type(*x)))?;
        let cond = if negated { cond.complement() } else { cond };
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.ins().icmp(cond, x, y)
    };
    let has = func.dfg.value_type(bit);
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    Some(match has.bits().cmp(&ty.bits()) {
        std::cmp::Ordering::Less => cursor.ins().uextend(ty, bit),
        std::cmp::Ordering::Equal => bit,
        std::cmp::Ordering::Greater => cursor.ins().ireduce(ty, bit),
    })
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::straight_line::check_results;
    use crate::test_target::TestTarget;
    use cranelift_codegen::ir::Function;

    /// Conditions `v9` that use `v0`, `v1` and the i8 `v2`.
    const CONDITIONS: [&str; 13] = [
        "v9 = icmp slt v0, v1",
        "v9 = icmp uge v0, v1",
        "v9 = icmp ne v0, v1",
        "v9 = icmp eq v0, v20",
        "v9 = icmp ne v0, v20",
        "v9 = icmp ugt v2, v24",
        "v9 = iadd v2, v24",
        "v9 = band v2, v21",
        "v8 = band v0, v22\n    v9 = icmp ne v8, v20",
        "v8 = band v0, v22\n    v9 = icmp eq v8, v20",
        "v8 = band v0, v23\n    v9 = icmp ne v8, v20",
        "v8 = band v0, v23\n    v9 = icmp eq v8, v20",
        "v7 = icmp ult v0, v1\n    v8 = uextend.{T} v7\n    v9 = icmp eq v8, v20",
    ];

    /// Alternatives `v12` and `v13` that use `v0` and `v1`.
    const CHOICES: [&str; 14] = [
        "v12 = iconst.{T} 1\n    v13 = iconst.{T} 0",
        "v12 = iconst.{T} 0\n    v13 = iconst.{T} 1",
        "v12 = iconst.{T} 12\n    v13 = iconst.{T} 0",
        "v12 = iconst.{T} 0\n    v13 = iconst.{T} 100",
        "v12 = iconst.{T} 3\n    v13 = iconst.{T} 5",
        "v12 = iconst.{T} 2\n    v13 = iconst.{T} 1",
        "v12 = iconst.{T} -1\n    v13 = iconst.{T} 120",
        "v12 = iadd v1, v20\n    v13 = iconst.{T} 0",
        "v12 = iconst.{T} 0\n    v13 = iadd v0, v20",
        "v12 = iadd v1, v0\n    v13 = iadd v1, v20",
        "v13 = bxor v1, v0\n    v12 = bor v1, v20",
        "v12 = isub v1, v0\n    v13 = bor v1, v1",
        "v12 = isub v0, v1\n    v13 = bor v1, v1",
        "v12 = iadd v1, v22\n    v13 = bor v1, v1",
    ];

    fn text(ty: &str, body: &str) -> String {
        format!(
            "function %f({ty}, {ty}, i8) -> {ty} {{\nblock0(v0: {ty}, v1: {ty}, v2: i8):\n    v20 = iconst.{ty} 0\n    \
             v21 = iconst.i8 1\n    v22 = iconst.{ty} 1\n    v23 = iconst.{ty} 4\n    v24 = iconst.i8 0\n    {body}\n    return v14\n}}"
        )
        .replace("{T}", ty)
    }

    fn run_pass(func: &mut Function) -> bool {
        run(func, &TestTarget::new())
    }

    #[test]
    fn rewritten_selects_have_the_same_results() {
        let mut changed = 0;
        for ty in ["i8", "i16", "i32"] {
            for condition in CONDITIONS {
                for choices in CHOICES {
                    let body = format!("{condition}\n    {choices}\n    v14 = select v9, v12, v13");
                    changed += usize::from(check_results(&text(ty, &body), run_pass));
                }
                // The first alternative has another use.
                let body = format!(
                    "{condition}\n    v12 = iadd v1, v0\n    v10 = select v9, v12, v1\n    v14 = bxor v10, v12"
                );
                check_results(&text(ty, &body), run_pass);
            }
        }
        assert!(changed > 250, "{changed}");
    }

    #[test]
    fn rewritten_clamps_and_masks_have_the_same_results() {
        let mut changed = 0;
        for ty in ["i8", "i16", "i32"] {
            for opcode in ["smax", "smin"] {
                for operands in ["v0, v20", "v20, v0", "v0, v22", "v0, v1"] {
                    changed += usize::from(check_results(
                        &text(ty, &format!("v14 = {opcode} {operands}")),
                        run_pass,
                    ));
                }
            }
            for bit in ["band v0, v22", "band v0, v23", "bor v0, v22", "ushr v0, v20"] {
                for negative in ["ineg v8", "isub v20, v8", "isub v22, v8"] {
                    for mask in ["v10, v1", "v1, v10"] {
                        let body = format!("v8 = {bit}\n    v10 = {negative}\n    v14 = band {mask}");
                        changed += usize::from(check_results(&text(ty, &body), run_pass));
                    }
                }
            }
        }
        assert!(changed >= 16, "{changed}");
    }
}
