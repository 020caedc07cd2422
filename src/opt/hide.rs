//! Integer operations on vectors of other sizes than 128 bits, hidden from Cranelift's optimizer.
//!
//! Its simplifications have no constants of these types and panic where they want one: for `isub` of a vector and itself, for
//! compares whose outcome is known, and so on. So, while the optimizer runs, operations that they start from have the opcodes of
//! operations on floats, about which it knows nothing. Equal ones are still found, and what does not change in a loop leaves it.
//! The types tell the real ones from the hidden ones.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{DataFlowGraph, Function, Inst, InstructionData, Opcode, Type, Value, ValueDef, types};

/// What stands for what, on two operands.
const BINARY: &[(Opcode, Opcode)] = &[(Opcode::Isub, Opcode::Fsub), (Opcode::Bxor, Opcode::Fadd)];

/// On one.
const UNARY: &[(Opcode, Opcode)] = &[(Opcode::Bnot, Opcode::Sqrt), (Opcode::Ineg, Opcode::Ceil)];

/// For compares. The others are these with their operands exchanged.
const COMPARES: &[(IntCC, Opcode)] = &[
    (IntCC::Equal, Opcode::Fmin),
    (IntCC::NotEqual, Opcode::Fmax),
    (IntCC::SignedLessThan, Opcode::Fdiv),
    (IntCC::SignedLessThanOrEqual, Opcode::Fcopysign),
    (IntCC::UnsignedLessThan, Opcode::Fmul),
    (IntCC::UnsignedLessThanOrEqual, Opcode::SqmulRoundSat),
];

/// Whether the optimizer lacks constants of the type.
fn is_wide(ty: Type) -> bool {
    ty.is_vector() && ty.lane_type().is_int() && ty.bits() != 128
}

fn other<A: PartialEq + Copy, B: PartialEq + Copy>(table: &[(A, B)], from: A) -> Option<B> {
    table.iter().find(|(known, _)| *known == from).map(|(_, to)| *to)
}

fn back<A: PartialEq + Copy, B: PartialEq + Copy>(table: &[(A, B)], from: B) -> Option<A> {
    table.iter().find(|(_, known)| *known == from).map(|(to, _)| *to)
}

/// Whether the function has values of types that the optimizer must not see as they are: wide vectors, and floats without
/// constants of their bits.
pub fn has_hidden_types(func: &Function) -> bool {
    let mut types = (0..func.dfg.num_values()).map(|value| func.dfg.value_type(Value::new(value)));
    types.any(|ty| {
        is_wide(ty) || matches!(ty.lane_type(), types::F16 | types::F128) || ty.is_vector() && ty.bits() != 128
    })
}

/// Hides the operations from the egraph.
pub fn hide_from_egraph(func: &mut Function) {
    rewrite(func, |dfg, data| match data {
        InstructionData::Ternary {
            opcode: Opcode::Bitselect,
            args,
        } => min_or_max(dfg, args),
        InstructionData::Binary { opcode, args } => Some(InstructionData::Binary {
            opcode: other(BINARY, opcode)?,
            args,
        }),
        InstructionData::Unary { opcode, arg } => Some(InstructionData::Unary {
            opcode: other(UNARY, opcode)?,
            arg,
        }),
        InstructionData::IntCompare { cond, args, .. } => {
            let [x, y] = args;
            let (opcode, args) = match other(COMPARES, cond) {
                Some(opcode) => (opcode, [x, y]),
                None => (other(COMPARES, cond.swap_args())?, [y, x]),
            };
            Some(InstructionData::Binary { opcode, args })
        }
        _ => None,
    });
}

/// Gives them their own opcodes again.
pub fn restore(func: &mut Function) {
    rewrite(func, |_, data| match data {
        InstructionData::Binary { opcode, args } => match (back(BINARY, opcode), back(COMPARES, opcode)) {
            (Some(opcode), _) => Some(InstructionData::Binary { opcode, args }),
            (None, Some(cond)) => Some(InstructionData::IntCompare {
                opcode: Opcode::Icmp,
                cond,
                args,
            }),
            (None, None) => None,
        },
        InstructionData::Unary { opcode, arg } => Some(InstructionData::Unary {
            opcode: back(UNARY, opcode)?,
            arg,
        }),
        _ => None,
    });
}

/// A choice between what was compared, which the optimizer would see if it saw the compare. Lanes of words are compared as they are, and masks of
/// compares can be shared.
fn min_or_max(dfg: &DataFlowGraph, [cond, x, y]: [Value; 3]) -> Option<InstructionData> {
    if dfg.value_type(x).lane_bits() == 32 {
        return None;
    }
    let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(cond)) else {
        return None;
    };
    let InstructionData::IntCompare { cond, args, .. } = dfg.insts[inst] else {
        return None;
    };
    let chosen = [x, y].map(|value| dfg.resolve_aliases(value));
    let compared = args.map(|value| dfg.resolve_aliases(value));
    let cond = match chosen {
        same if same == compared => cond,
        [y, x] if [x, y] == compared => cond.swap_args(),
        _ => return None,
    };
    let opcode = match cond {
        IntCC::SignedLessThan | IntCC::SignedLessThanOrEqual => Opcode::Smin,
        IntCC::SignedGreaterThan | IntCC::SignedGreaterThanOrEqual => Opcode::Smax,
        IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual => Opcode::Umin,
        IntCC::UnsignedGreaterThan | IntCC::UnsignedGreaterThanOrEqual => Opcode::Umax,
        IntCC::Equal | IntCC::NotEqual => return None,
    };
    Some(InstructionData::Binary { opcode, args: [x, y] })
}

fn rewrite(func: &mut Function, change: impl Fn(&DataFlowGraph, InstructionData) -> Option<InstructionData>) {
    let blocks: Vec<_> = func.layout.blocks().collect();
    // Uses first, as what they use becomes something else.
    for block in blocks.into_iter().rev() {
        let mut insts: Vec<Inst> = func.layout.block_insts(block).collect();
        insts.reverse();
        for inst in insts {
            let result = func.dfg.inst_results(inst).first();
            if result.is_some_and(|&result| is_wide(func.dfg.value_type(result)))
                && let Some(changed) = change(&func.dfg, func.dfg.insts[inst])
            {
                func.dfg.insts[inst] = changed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_hidden_is_found_again() {
        let text = "function %f(i32x16, i16x16) -> i32x16, i32x16, i32x16, i16x16 {
            block0(v0: i32x16, v1: i16x16):
                v2 = isub v0, v0
                v3 = bxor v2, v0
                v4 = icmp ugt v0, v3
                v5 = icmp eq v4, v0
                v6 = bnot v5
                v7 = ineg v1
                v8 = icmp sle v7, v1
                return v3, v4, v6, v8
            }";
        let mut functions = cranelift_reader::parse_functions(text).unwrap();
        let func = &mut functions[0];
        hide_from_egraph(func);
        let hidden = func.display().to_string();
        assert!(!hidden.contains("icmp") && !hidden.contains("isub") && !hidden.contains("bnot"));
        restore(func);
        // A compare may come back with its operands exchanged.
        let same = text.replace("icmp ugt v0, v3", "icmp ult v3, v0");
        let expected = cranelift_reader::parse_functions(&same).unwrap();
        assert_eq!(func.display().to_string(), expected[0].display().to_string());
    }
}
