//! Selects as arithmetic: a branch over a move is four instructions, of which no other can use the time.
//!
//! A compare is 0 or 1. Multiplied by it, a number is either itself or 0, so
//!
//! * a select between a number and 0 is a product,
//! * one between constants a product and a sum,
//! * one between a number and what it becomes by an operation does that operation with the product,
//! * and a number under a mask that is a bit in all places, as compilers make it of such a select, is a product, too.

use super::bits;
use super::edit;
use super::loops::{constant, mask};
use crate::Target;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, ValueDef, types};

/// Rewrites selects. Gives whether there were any.
pub fn run(func: &mut Function, target: &dyn Target) -> bool {
    let mut uses = None;
    edit::rewrite_each(func, |func, inst| match func.dfg.insts[inst].opcode() {
        Opcode::Smax => limit(func, inst, IntCC::SignedGreaterThan),
        Opcode::Smin => limit(func, inst, IntCC::SignedLessThan),
        Opcode::Band => spread(func, inst),
        Opcode::Select => {
            let uses = uses.get_or_insert_with(|| edit::count_uses(func));
            rewrite(func, target, inst, uses)
        }
        _ => false,
    })
}

/// Whether it is a scalar of one register.
fn is_word(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 32
}

/// What is limited by 0 is itself or 0.
fn limit(func: &mut Function, inst: Inst, stays: IntCC) -> bool {
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
        // A narrow number would have to be extended for the compare.
        return false;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let zero = cursor.ins().iconst(ty, 0);
    let is_itself = cursor.ins().icmp(stays, number, zero);
    let factor = cursor.ins().uextend(ty, is_itself);
    func.replace(inst).imul(number, factor);
    true
}

/// A number under the negative of a bit is the number times the bit.
fn spread(func: &mut Function, inst: Inst) -> bool {
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

/// The bit that the value is the negative of.
fn negated_bit(func: &Function, value: Value) -> Option<Value> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(value)) else {
        return None;
    };
    let bit = match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
        (Opcode::Ineg, &[bit]) => bit,
        (Opcode::Isub, &[zero, bit]) if constant(func, zero) == Some(0) => bit,
        _ => return None,
    };
    (bits::largest(func, bit) <= 1).then_some(bit)
}

/// What a select chooses from, as something that is there in one case only.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Whether that is the case when the condition does not hold.
    otherwise: bool,
    /// What is there.
    part: Value,
    /// What it is combined with; without, it stands alone.
    with: Option<(Opcode, Value)>,
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
        (_, Some(0)) => Plan {
            otherwise: false,
            part: yes,
            with: None,
        },
        (Some(0), _) => Plan {
            otherwise: true,
            part: no,
            with: None,
        },
        (Some(a), Some(b)) => return between(func, target, inst, condition, (a, b)),
        _ => match (step(func, yes, no, uses), step(func, no, yes, uses)) {
            (Some((op, part)), _) => Plan {
                otherwise: false,
                part,
                with: Some((op, no)),
            },
            (None, Some((op, part))) => Plan {
                otherwise: true,
                part,
                with: Some((op, yes)),
            },
            (None, None) => return false,
        },
    };
    if let Some(product) = bit_times(func, inst, condition, plan) {
        return replace(func, inst, plan, product);
    }
    let Some(truth) = truth(func, inst, condition, plan.otherwise, ty) else {
        return false;
    };
    let product = if constant(func, plan.part) == Some(1) {
        truth
    } else {
        FuncCursor::new(func).at_inst(inst).ins().imul(truth, plan.part)
    };
    replace(func, inst, plan, product)
}

fn replace(func: &mut Function, inst: Inst, plan: Plan, product: Value) -> bool {
    match plan.with {
        None => {
            let result = func.dfg.first_result(inst);
            func.dfg.clear_results(inst);
            func.dfg.change_to_alias(result, product);
            func.layout.remove_inst(inst);
        }
        Some((op, with)) => {
            let replace = func.replace(inst);
            match op {
                Opcode::Iadd => replace.iadd(with, product),
                Opcode::Isub => replace.isub(with, product),
                Opcode::Bor => replace.bor(with, product),
                _ => replace.bxor(with, product),
            };
        }
    }
    true
}

/// What the first value has been made of the second by, if that is an operation that does nothing with 0 and nobody else wants.
fn step(func: &Function, value: Value, from: Value, uses: &SecondaryMap<Value, u32>) -> Option<(Opcode, Value)> {
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

/// A select between two constants, if both factor and summand are short.
fn between(func: &mut Function, target: &dyn Target, inst: Inst, condition: Value, (yes, no): (u64, u64)) -> bool {
    let ty = func.dfg.value_type(func.dfg.first_result(inst));
    let signed = |number: u64| {
        let unused = 64 - ty.bits();
        (number << unused).cast_signed() >> unused
    };
    let is_short = |number: i64| i32::try_from(number).is_ok_and(|number| target.immediates().contains(&number));
    let Some((otherwise, factor, summand)) = [(false, yes, no), (true, no, yes)]
        .into_iter()
        .map(|(otherwise, some, other)| {
            let factor = some.wrapping_sub(other) & mask(ty);
            (otherwise, signed(factor), signed(other))
        })
        .filter(|(_, factor, summand)| is_short(*factor) && is_short(*summand))
        // The sum alone is best.
        .min_by_key(|(_, factor, _)| *factor != 1)
    else {
        return false;
    };
    let Some(truth) = truth(func, inst, condition, otherwise, ty) else {
        return false;
    };
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let product = if factor == 1 {
        truth
    } else {
        let factor = cursor.ins().iconst(ty, factor & mask(ty).cast_signed());
        cursor.ins().imul(truth, factor)
    };
    let summand = cursor.ins().iconst(ty, summand & mask(ty).cast_signed());
    func.replace(inst).iadd(product, summand);
    true
}

/// An integer compare.
fn compare(func: &Function, condition: Value) -> Option<(IntCC, Value, Value)> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(condition)) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond, args: [x, y], .. } => Some((cond, x, y)),
        _ => None,
    }
}

/// The number of which a compare asks whether it is 0, and whether it asks for that.
fn compare_with_zero(func: &Function, condition: Value) -> Option<(Value, bool)> {
    match compare(func, condition)? {
        (IntCC::Equal, x, y) if constant(func, y) == Some(0) => Some((x, true)),
        (IntCC::NotEqual, x, y) if constant(func, y) == Some(0) => Some((x, false)),
        _ => None,
    }
}

/// A bit, where it stands, times the constant that makes it the part: two instructions.
fn bit_times(func: &mut Function, inst: Inst, condition: Value, plan: Plan) -> Option<Value> {
    let part = constant(func, plan.part)?;
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
    let ty = func.dfg.value_type(plan.part);
    if !bit.is_power_of_two() || part % bit != 0 || func.dfg.value_type(number) != ty || zero != plan.otherwise {
        return None;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let factor = cursor.ins().iconst(ty, (part / bit).cast_signed());
    Some(cursor.ins().imul(number, factor))
}

/// 1 where the condition holds, or where it does not, else 0.
fn truth(func: &mut Function, inst: Inst, condition: Value, otherwise: bool, ty: Type) -> Option<Value> {
    let truth = if let Some((number, zero)) = compare_with_zero(func, condition)
        && zero == otherwise
        && is_word(func.dfg.value_type(number))
        && bits::largest(func, number) <= 1
    {
        number
    } else if !otherwise && bits::largest(func, condition) <= 1 {
        condition
    } else {
        // The opposite compare of numbers of several words may be a second one of many instructions.
        let (cond, x, y) = compare(func, condition).filter(|(_, x, _)| is_word(func.dfg.value_type(*x)))?;
        let cond = if otherwise { cond.complement() } else { cond };
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.ins().icmp(cond, x, y)
    };
    let has = func.dfg.value_type(truth);
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    Some(match has.bits().cmp(&ty.bits()) {
        std::cmp::Ordering::Less => cursor.ins().uextend(ty, truth),
        std::cmp::Ordering::Equal => truth,
        std::cmp::Ordering::Greater => cursor.ins().ireduce(ty, truth),
    })
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::plain::Plain;
    use crate::straight::keeps;
    use cranelift_codegen::ir::Function;

    /// Conditions `v9` of `v0`, `v1` and `v2`, an i8.
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

    /// Choices `v12` and `v13` of `v0` and `v1`.
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

    fn run_plain(func: &mut Function) -> bool {
        run(func, &Plain::new())
    }

    #[test]
    fn selects_mean_the_same() {
        let mut changed = 0;
        for ty in ["i8", "i16", "i32"] {
            for condition in CONDITIONS {
                for choices in CHOICES {
                    let body = format!("{condition}\n    {choices}\n    v14 = select v9, v12, v13");
                    changed += usize::from(keeps(&text(ty, &body), run_plain));
                }
                // The first choice is wanted elsewhere too.
                let body = format!(
                    "{condition}\n    v12 = iadd v1, v0\n    v10 = select v9, v12, v1\n    v14 = bxor v10, v12"
                );
                keeps(&text(ty, &body), run_plain);
            }
        }
        assert!(changed > 250, "{changed}");
    }

    #[test]
    fn limits_and_masks_mean_the_same() {
        let mut changed = 0;
        for ty in ["i8", "i16", "i32"] {
            for opcode in ["smax", "smin"] {
                for operands in ["v0, v20", "v20, v0", "v0, v22", "v0, v1"] {
                    changed += usize::from(keeps(&text(ty, &format!("v14 = {opcode} {operands}")), run_plain));
                }
            }
            for bit in ["band v0, v22", "band v0, v23", "bor v0, v22", "ushr v0, v20"] {
                for negative in ["ineg v8", "isub v20, v8", "isub v22, v8"] {
                    for mask in ["v10, v1", "v1, v10"] {
                        let body = format!("v8 = {bit}\n    v10 = {negative}\n    v14 = band {mask}");
                        changed += usize::from(keeps(&text(ty, &body), run_plain));
                    }
                }
            }
        }
        assert!(changed >= 16, "{changed}");
    }
}
