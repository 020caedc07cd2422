//! Facts about scalar values: constants, booleans, and alignment.

use crate::builtins::{self, Builtin};
use crate::options::Options;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use std::collections::{BTreeMap, BTreeSet};

/// Alignment of the number of lane 0.
pub const ALIGN_OF_LANE_0: u32 = MAX_ALIGN;

/// Alignment of zero, and the largest alignment that is recorded.
const MAX_ALIGN: u32 = 1 << 16;

/// Returns the value of an integer constant.
pub fn constant(func: &Function, value: Value) -> Option<i64> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, 0) => match func.dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the incoming arguments of each block parameter.
pub fn incoming(func: &Function) -> BTreeMap<Value, Vec<(Inst, Value)>> {
    let mut incoming: BTreeMap<Value, Vec<(Inst, Value)>> = BTreeMap::new();
    for block in func.layout.blocks() {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        let dfg = &func.dfg;
        for call in dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables) {
            let target = call.block(&dfg.value_lists);
            for (&param, arg) in dfg.block_params(target).iter().zip(call.args(&dfg.value_lists)) {
                if let Some(arg) = arg.as_value() {
                    incoming.entry(param).or_default().push((inst, arg));
                }
            }
        }
    }
    incoming
}

/// Returns the `i8` values that are known to be 0 or 1.
pub fn booleans(func: &Function, order: &[Block]) -> BTreeSet<Value> {
    let incoming = incoming(func);
    let mut booleans: BTreeSet<Value> = func
        .dfg
        .values()
        .filter(|&value| func.dfg.value_type(value) == types::I8)
        .collect();
    loop {
        let mut removed = Vec::new();
        for &block in order {
            for &param in func.dfg.block_params(block) {
                let args = incoming.get(&param);
                if !args.is_some_and(|args| args.iter().all(|(_, arg)| booleans.contains(arg))) {
                    removed.push(param);
                }
            }
            for inst in func.layout.block_insts(block) {
                let result = func.dfg.inst_results(inst).first();
                if let Some(&result) = result.filter(|result| booleans.contains(result))
                    && !is_boolean(func, inst, &booleans)
                {
                    removed.push(result);
                }
            }
        }
        let before = booleans.len();
        for value in removed {
            booleans.remove(&value);
        }
        if booleans.len() == before {
            return booleans;
        }
    }
}

fn is_boolean(func: &Function, inst: Inst, booleans: &BTreeSet<Value>) -> bool {
    let args = func.dfg.inst_args(inst);
    match func.dfg.insts[inst].opcode() {
        Opcode::Icmp | Opcode::Fcmp => true,
        Opcode::Iconst => matches!(constant(func, func.dfg.first_result(inst)), Some(0 | 1)),
        Opcode::Band | Opcode::Bor | Opcode::Bxor => args.iter().all(|arg| booleans.contains(arg)),
        Opcode::Select => args[1..].iter().all(|arg| booleans.contains(arg)),
        Opcode::Call => matches!(
            builtins::called(func, inst),
            Some(Ok(Builtin::Any | Builtin::All | Builtin::AllKnown | Builtin::Elect))
        ),
        _ => false,
    }
}

/// Returns the alignment of each value in bytes, if that of the lane number is `of_lane`. With that
/// of lane 0, [`ALIGN_OF_LANE_0`], the alignment of values that are consecutive or strided is that
/// of lane 0.
pub fn alignment(func: &Function, order: &[Block], options: &Options, of_lane: u32) -> BTreeMap<Value, u32> {
    let incoming = incoming(func);
    let mut known: BTreeMap<Value, u32> = BTreeMap::new();
    for (index, &param) in order
        .first()
        .map_or(&[][..], |&entry| func.dfg.block_params(entry))
        .iter()
        .enumerate()
    {
        let align = options.alignment.get(index).copied().unwrap_or(1);
        known.insert(param, align.clamp(1, MAX_ALIGN).next_power_of_two());
    }
    let entry = order.first().copied();
    loop {
        let mut changed = false;
        for &block in order {
            for &param in func.dfg.block_params(block) {
                if Some(block) == entry {
                    continue;
                }
                let of_arg = |(_, arg): &(Inst, Value)| known.get(arg).copied().unwrap_or(MAX_ALIGN);
                let align = incoming
                    .get(&param)
                    .and_then(|args| args.iter().map(of_arg).min())
                    .unwrap_or(1);
                changed |= known.insert(param, align) != Some(align);
            }
            for inst in func.layout.block_insts(block) {
                if let Some(&result) = func.dfg.inst_results(inst).first() {
                    let align = of_inst(func, inst, of_lane, |value| {
                        known.get(&value).copied().unwrap_or(MAX_ALIGN)
                    });
                    changed |= known.insert(result, align) != Some(align);
                }
            }
        }
        if !changed {
            return known;
        }
    }
}

fn of_inst(func: &Function, inst: Inst, of_lane: u32, of: impl Fn(Value) -> u32) -> u32 {
    let args = func.dfg.inst_args(inst);
    let power = |value: i64| {
        if value == 0 {
            MAX_ALIGN
        } else {
            1 << value.trailing_zeros().min(16)
        }
    };
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { imm, .. } => power(imm.bits()),
        InstructionData::StackAddr { stack_slot, offset, .. } => {
            let slot = &func.sized_stack_slots[stack_slot];
            (1 << slot.align_shift.min(16)).min(power(i32::from(offset).into()))
        }
        InstructionData::Binary { opcode, .. } => match opcode {
            Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor => of(args[0]).min(of(args[1])),
            Opcode::Band => of(args[0]).max(of(args[1])),
            Opcode::Imul => of(args[0]).saturating_mul(of(args[1])).min(MAX_ALIGN),
            Opcode::Ishl => match constant(func, args[1]) {
                Some(amount @ 0..32) => of(args[0]).saturating_mul(1 << amount.min(16)).min(MAX_ALIGN),
                _ => of(args[0]),
            },
            _ => 1,
        },
        InstructionData::Ternary {
            opcode: Opcode::Select, ..
        } => of(args[1]).min(of(args[2])),
        InstructionData::Call { .. } if matches!(builtins::called(func, inst), Some(Ok(Builtin::LaneId))) => of_lane,
        _ => 1,
    }
}
