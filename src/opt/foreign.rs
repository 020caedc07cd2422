//! Disguises CLIF that Cranelift's egraph pass does not support.
//!
//! The pass panics on types without constants, and treats the two memories of this machine as one.
//! [`Disguise::put_on`] rewrites such CLIF and [`Disguise::take_off`] restores it; a remaining
//! disguise is an internal error. Only the egraph pass runs between the two.
//!
//! | disguise | reason | redundant if Cranelift had |
//! |---|---|---|
//! | integer operations on vectors of other sizes than 128 bits have opcodes of float operations | simplifications create constants of their result (`isub` of a value and itself) | constants of these types, or a type check in each such rule |
//! | bitwise operations on f16, f128 and vectors of f32 are casts and operations on integers | as above (`bxor` of a value and itself) | the same |
//! | addresses of the scratchpad are sums with a symbol | an alias region is a hint about one memory: a store may be forwarded to a load of another region | address spaces |
//!
//! Two more disguises last for all of optimization: the lane mask is a stack slot
//! (`intrinsics::expand`), and the call of a block with handlers identifies the block
//! (`clif_opt::handlers`).

use crate::error::CompileError;
use crate::spaces::{Space, is_scratchpad, of_inst};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{
    DataFlowGraph, Endianness, ExternalName, Function, GlobalValue, GlobalValueData, Inst, InstBuilder,
    InstructionData, MemFlagsData, Opcode, Type, Value, ValueDef, types,
};
use smallvec::SmallVec;

/// The disguises in a function.
pub struct Disguise {
    /// Whether operations are disguised.
    operations: bool,
    /// The symbol in addresses of the scratchpad.
    scratchpad: Option<GlobalValue>,
}

impl Disguise {
    /// Disguises unsupported CLIF. Most functions have none.
    pub fn put_on(func: &mut Function) -> Self {
        let operations = has_hidden_types(func);
        if operations {
            floats_as_bits(func);
            hide(func);
        }
        Self {
            operations,
            scratchpad: separate(func),
        }
    }

    /// Removes the disguises.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if a disguise remains.
    pub fn take_off(self, func: &mut Function) -> Result<(), CompileError> {
        if !self.operations && self.scratchpad.is_none() {
            return Ok(());
        }
        if self.operations {
            restore(func);
        }
        if let Some(offset) = self.scratchpad {
            join(func, offset);
        }
        let left = insts(func).into_iter().find(|&inst| self.covers(func, inst));
        match left {
            Some(inst) => Err(CompileError::internal(
                "egraph",
                func.dfg.display_inst(inst),
                "its own opcode",
            )),
            None => Ok(()),
        }
    }

    /// Returns whether an instruction is a disguise.
    fn covers(&self, func: &Function, inst: Inst) -> bool {
        let data = &func.dfg.insts[inst];
        if let InstructionData::UnaryGlobalValue { global_value, .. } = *data {
            return self.scratchpad == Some(global_value);
        }
        let stands = |opcode| {
            let mut hidden = BINARY.iter().chain(UNARY).map(|(_, hidden)| *hidden);
            opcode == UNSIGNED_AT_MOST || hidden.any(|hidden| hidden == opcode) || back(COMPARES, opcode).is_some()
        };
        let is_hidden_type = || {
            func.dfg
                .inst_results(inst)
                .first()
                .is_some_and(|&result| is_wide(func.dfg.value_type(result)))
        };
        self.operations && stands(data.opcode()) && is_hidden_type()
    }
}

/// Binary operations and their disguises.
const BINARY: &[(Opcode, Opcode)] = &[(Opcode::Isub, Opcode::Fsub), (Opcode::Bxor, Opcode::Fadd)];

/// Unary operations and their disguises.
const UNARY: &[(Opcode, Opcode)] = &[(Opcode::Bnot, Opcode::Sqrt), (Opcode::Ineg, Opcode::Ceil)];

/// Condition codes and their disguises. The other conditions are these with swapped operands.
const COMPARES: &[(IntCC, Opcode)] = &[
    (IntCC::Equal, Opcode::Fmin),
    (IntCC::NotEqual, Opcode::Fmax),
    (IntCC::SignedLessThan, Opcode::Fdiv),
    (IntCC::SignedLessThanOrEqual, Opcode::Fcopysign),
    (IntCC::UnsignedLessThan, Opcode::Fmul),
];

/// The disguise of `UnsignedLessThanOrEqual`, with the second operand twice: all opcodes on two
/// floats are used, and CLIF has the other binary opcodes on vectors of integers.
const UNSIGNED_AT_MOST: Opcode = Opcode::Fma;

/// Returns whether the egraph pass lacks constants of the type.
fn is_wide(ty: Type) -> bool {
    ty.is_vector() && ty.lane_type().is_int() && ty.bits() != 128
}

fn other<A: PartialEq + Copy, B: PartialEq + Copy>(table: &[(A, B)], from: A) -> Option<B> {
    table.iter().find(|(known, _)| *known == from).map(|(_, to)| *to)
}

fn back<A: PartialEq + Copy, B: PartialEq + Copy>(table: &[(A, B)], from: B) -> Option<A> {
    table.iter().find(|(_, known)| *known == from).map(|(to, _)| *to)
}

/// Returns whether the function has values of unsupported types: wide vectors, and floats without
/// integer constants of their size.
fn has_hidden_types(func: &Function) -> bool {
    let mut types = (0..func.dfg.num_values()).map(|value| func.dfg.value_type(Value::new(value)));
    types.any(|ty| {
        is_wide(ty) || matches!(ty.lane_type(), types::F16 | types::F128) || ty.is_vector() && ty.bits() != 128
    })
}

/// Disguises the operations.
fn hide(func: &mut Function) {
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
            let at_most = |x, y| InstructionData::Ternary {
                opcode: UNSIGNED_AT_MOST,
                args: [x, y, y],
            };
            match cond {
                IntCC::UnsignedLessThanOrEqual => return Some(at_most(x, y)),
                IntCC::UnsignedGreaterThanOrEqual => return Some(at_most(y, x)),
                _ => {}
            }
            let (opcode, args) = match other(COMPARES, cond) {
                Some(opcode) => (opcode, [x, y]),
                None => (other(COMPARES, cond.swap_args())?, [y, x]),
            };
            Some(InstructionData::Binary { opcode, args })
        }
        _ => None,
    });
}

/// Restores the opcodes.
fn restore(func: &mut Function) {
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
        InstructionData::Ternary {
            opcode: UNSIGNED_AT_MOST,
            args: [x, y, _],
        } => Some(InstructionData::IntCompare {
            opcode: Opcode::Icmp,
            cond: IntCC::UnsignedLessThanOrEqual,
            args: [x, y],
        }),
        InstructionData::Unary { opcode, arg } => Some(InstructionData::Unary {
            opcode: back(UNARY, opcode)?,
            arg,
        }),
        _ => None,
    });
}

/// Returns a select between the operands of its compare as a minimum or maximum. The egraph pass
/// does not recognize it while the compare is disguised. Excludes 32-bit lanes: they have a direct
/// select, and several selects can share the mask of a compare.
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
    // Uses before definitions, because the opcodes of definitions change.
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

/// Replaces bitwise operations on f16, f128 and vectors of f32 of other sizes than 128 bits by
/// integer operations. Cranelift's simplification has no constants of these types and panics where
/// it creates one (`bxor` of a value and itself).
fn floats_as_bits(func: &mut Function) {
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            let opcode = func.dfg.insts[inst].opcode();
            let bitwise = matches!(
                opcode,
                Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect
            );
            let Some(&result) = func.dfg.inst_results(inst).first().filter(|_| bitwise) else {
                continue;
            };
            let float = func.dfg.value_type(result);
            let bits = match float {
                types::F16 => types::I16,
                types::F128 => types::I128,
                _ if float.is_vector() && float.lane_type() == types::F32 && float.bits() != 128 => float.as_int(),
                _ => continue,
            };
            let flags = if float.is_vector() {
                MemFlagsData::new().with_endianness(Endianness::Little)
            } else {
                MemFlagsData::new()
            };
            let mut cursor = FuncCursor::new(func).at_inst(inst);
            let given: Vec<Value> = cursor.func.dfg.inst_values(inst).collect();
            let args: Vec<Value> = given
                .into_iter()
                .map(|value| cursor.ins().bitcast(bits, flags, value))
                .collect();
            let value = match (opcode, args.as_slice()) {
                (Opcode::Band, &[a, b]) => cursor.ins().band(a, b),
                (Opcode::Bor, &[a, b]) => cursor.ins().bor(a, b),
                (Opcode::Bxor, &[a, b]) => cursor.ins().bxor(a, b),
                (Opcode::Bnot, &[a]) => cursor.ins().bnot(a),
                (Opcode::Bitselect, &[c, a, b]) => cursor.ins().bitselect(c, a, b),
                _ => continue,
            };
            cursor.func.replace(inst).bitcast(float, flags, value);
        }
    }
}

/// Adds a symbol to every address of the scratchpad. Returns `None` if there is none.
fn separate(func: &mut Function) -> Option<GlobalValue> {
    if !func
        .dfg
        .alias_regions
        .iter()
        .any(|(region, _)| is_scratchpad(func, region))
    {
        return None;
    }
    // The optimizer treats a symbol as an unknown number that is the same everywhere.
    let offset = func.create_global_value(GlobalValueData::Symbol {
        name: ExternalName::testcase("scratchpad"),
        offset: 0.into(),
        colocated: false,
        tls: false,
    });
    for inst in insts(func) {
        if of_inst(func, inst) != Space::Scratchpad {
            continue;
        }
        let Some(pointer) = pointer_argument(&func.dfg.insts[inst]) else {
            continue;
        };
        let old = func.dfg.inst_args(inst)[pointer];
        let ty = func.dfg.value_type(old);
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        let offset = cursor.ins().symbol_value(ty, offset);
        let sum = cursor.ins().iadd(old, offset);
        func.dfg.inst_args_mut(inst)[pointer] = sum;
    }
    Some(offset)
}

/// Replaces the symbol by 0, which lowering removes.
fn join(func: &mut Function, offset: GlobalValue) {
    for inst in insts(func) {
        let InstructionData::UnaryGlobalValue { global_value, .. } = func.dfg.insts[inst] else {
            continue;
        };
        if global_value == offset {
            let ty = func.dfg.ctrl_typevar(inst);
            func.replace(inst).iconst(ty, 0);
        }
    }
}

/// Returns the operand number of the address of an access.
fn pointer_argument(data: &InstructionData) -> Option<usize> {
    Some(match data {
        InstructionData::Load { .. } | InstructionData::LoadNoOffset { .. } => 0,
        InstructionData::AtomicRmw { .. } | InstructionData::AtomicCas { .. } => 0,
        InstructionData::Store { .. } | InstructionData::StoreNoOffset { .. } => 1,
        _ => return None,
    })
}

fn insts(func: &Function) -> SmallVec<[Inst; 64]> {
    func.layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect()
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
        hide(func);
        let hidden = func.display().to_string();
        assert!(!hidden.contains("icmp") && !hidden.contains("isub") && !hidden.contains("bnot"));
        restore(func);
        // The operands of a compare may be swapped.
        let same = text.replace("icmp ugt v0, v3", "icmp ult v3, v0");
        let expected = cranelift_reader::parse_functions(&same).unwrap();
        assert_eq!(func.display().to_string(), expected[0].display().to_string());
    }
    #[test]
    fn what_stands_for_something_else_is_noticed() {
        let text = "function %f(i32x16, f32x16) -> i32x16, f32x16 {
            block0(v0: i32x16, v1: f32x16):
                v2 = isub v0, v0
                v3 = fsub v1, v1
                return v2, v3
            }";
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let disguise = Disguise::put_on(&mut func);
        let covered: Vec<bool> = insts(&func)
            .into_iter()
            .map(|inst| disguise.covers(&func, inst))
            .collect();
        assert_eq!(covered, [true, false, false]);
        assert!(disguise.take_off(&mut func).is_ok());
        assert_eq!(func.dfg.insts[insts(&func)[0]].opcode(), Opcode::Isub);
    }
}
