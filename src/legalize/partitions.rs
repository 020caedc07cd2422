//! Selects vectors that are cheaper as scalar lanes although a register could hold them.
//!
//! Moving a vector to and from a register is expensive: a load shuffles the words of a line, and a
//! store packs them into bytes. So vectors that are only copied, or loaded, used once in arithmetic
//! and stored, cost fewer instructions as scalars. Values that are connected by instructions form a
//! partition, which is either in registers or split. A partition stays in registers if it leaves the
//! function, joins at a block parameter or contains an instruction that this file does not support.

use super::conditions::Legality;
use crate::shape::is_short;
use crate::spaces::{self, Space};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstructionData, MemFlags, Opcode, Type, Value, ValueDef, types,
};
use cranelift_codegen::loop_analysis::LoopAnalysis;
use rustc_hash::{FxHashMap, FxHashSet};

/// A cost, in instructions.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) as_lanes: u32,
    pub(super) as_register: u32,
}

/// A partition of vector values that share their representation.
#[derive(Clone, Copy, Default)]
pub(super) struct Partition {
    pub(super) cost: Cost,
    /// The representation does not depend on the cost: registers here, lanes in `pairs.rs`.
    pub(super) is_fixed: bool,
    /// The partition loads or stores outside of loops, so its constants are loaded for it alone.
    loads: bool,
    stores: bool,
}

/// Disjoint sets of values, with union and find.
#[derive(Default)]
pub(super) struct Partitions {
    numbers: FxHashMap<Value, usize>,
    parents: Vec<usize>,
    pub(super) partitions: Vec<Partition>,
}

impl Partitions {
    /// Returns the partition of a value; creates one if it has none.
    pub(super) fn number(&mut self, value: Value) -> usize {
        let next = self.parents.len();
        let number = *self.numbers.entry(value).or_insert(next);
        if number == next {
            self.parents.push(next);
            self.partitions.push(Partition::default());
        }
        self.root(number)
    }

    /// Returns the representative of a partition.
    pub(super) fn root(&mut self, mut number: usize) -> usize {
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    /// Merges two partitions.
    pub(super) fn join(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let (x, y) = (self.partitions[a], self.partitions[b]);
            self.partitions[a] = Partition {
                cost: Cost {
                    as_lanes: x.cost.as_lanes + y.cost.as_lanes,
                    as_register: x.cost.as_register + y.cost.as_register,
                },
                is_fixed: x.is_fixed || y.is_fixed,
                loads: x.loads || y.loads,
                stores: x.stores || y.stores,
            };
            self.parents[b] = a;
        }
        a
    }
}

/// Returns the values that are cheaper as lanes.
pub fn find(
    func: &Function,
    order: &[Block],
    cfg: &ControlFlowGraph,
    domtree: &DominatorTree,
    legality: Legality<'_>,
) -> FxHashSet<Value> {
    let mut partitions = Partitions::default();
    let mut loops = LoopAnalysis::new();
    loops.compute(func, cfg, domtree);
    for &block in order {
        for &param in func.dfg.block_params(block) {
            if is_short(func.dfg.value_type(param)) {
                let partition = partitions.number(param);
                partitions.partitions[partition].is_fixed = true;
            }
        }
        let in_loop = loops.innermost_loop(block).is_some();
        for inst in func.layout.block_insts(block) {
            visit(func, inst, in_loop, legality, &mut partitions);
        }
    }
    let values: Vec<(Value, usize)> = partitions
        .numbers
        .iter()
        .map(|(&value, &number)| (value, number))
        .collect();
    let mut found = FxHashSet::default();
    for (value, number) in values {
        let root = partitions.root(number);
        let partition = partitions.partitions[root];
        // Instructions that load the address of the constants, and one or two constants.
        let constants = match (partition.loads, partition.stores) {
            (false, false) => 0,
            (loads, stores) => 2 + u32::from(loads) + 2 * u32::from(stores),
        };
        if !partition.is_fixed && partition.cost.as_lanes <= partition.cost.as_register + constants {
            found.insert(value);
        }
    }
    found
}

fn visit(func: &Function, inst: Inst, in_loop: bool, legality: Legality<'_>, partitions: &mut Partitions) {
    let dfg = &func.dfg;
    let operands = dfg.inst_values(inst).map(|value| dfg.resolve_aliases(value));
    let all = operands.chain(dfg.inst_results(inst).iter().copied());
    let short: Vec<Value> = all.filter(|&value| is_short(dfg.value_type(value))).collect();
    let Some((&first, rest)) = short.split_first() else {
        return;
    };
    let mut partition = partitions.number(first);
    for &value in rest {
        let other = partitions.number(value);
        partition = partitions.join(partition, other);
    }
    let ty = dfg.value_type(first);
    let cost = cost(func, inst, ty, legality);
    let partition = &mut partitions.partitions[partition];
    let Some(cost) = cost else {
        partition.is_fixed = true;
        return;
    };
    partition.cost.as_lanes += cost.as_lanes;
    partition.cost.as_register += cost.as_register;
    let opcode = dfg.insts[inst].opcode();
    partition.loads |= !in_loop && opcode == Opcode::Load && ty.bytes() > 4;
    partition.stores |= !in_loop && opcode == Opcode::Store && ty.bytes() > 8;
}

/// Returns the cost of an instruction on a type, or `None` if it belongs in a register at any cost.
fn cost(func: &Function, inst: Inst, ty: Type, legality: Legality<'_>) -> Option<Cost> {
    let lanes = ty.lane_count();
    let lane = ty.lane_type();
    let dfg = &func.dfg;
    let cost = |as_lanes, as_register| Some(Cost { as_lanes, as_register });
    match dfg.insts[inst] {
        InstructionData::Load {
            opcode: Opcode::Load,
            arg,
            flags,
            ..
        } => memory_cost(func, ty, arg, flags, false),
        InstructionData::Store {
            opcode: Opcode::Store,
            args,
            flags,
            ..
        } => memory_cost(func, ty, args[1], flags, true),
        InstructionData::Binary {
            opcode: Opcode::Iadd | Opcode::Isub | Opcode::Imul | Opcode::Band | Opcode::Bor | Opcode::Bxor,
            ..
        }
        | InstructionData::Unary {
            opcode: Opcode::Bnot, ..
        } => cost(lanes, 1),
        InstructionData::Binary {
            opcode: Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv,
            ..
        } if lane == types::F32 && !legality.has_soft_float() => cost(lanes, 1),
        InstructionData::Binary {
            opcode: Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv,
            ..
        } if lane == types::F32 => cost(3 * lanes, 8 * lanes),
        InstructionData::Unary {
            opcode: Opcode::Splat, ..
        } => cost(0, 0),
        InstructionData::BinaryImm8 {
            opcode: Opcode::Extractlane,
            ..
        } => cost(0, 1),
        InstructionData::TernaryImm8 {
            opcode: Opcode::Insertlane,
            ..
        } => cost(0, 3),
        _ => None,
    }
}

/// Returns the cost of an access.
fn memory_cost(func: &Function, ty: Type, pointer: Value, flags: MemFlags, is_store: bool) -> Option<Cost> {
    let data = func.dfg.mem_flags[flags];
    if data.explicit_endianness() == Some(Endianness::Big) || spaces::of_flags(func, flags) == Space::Scratchpad {
        // These accesses are lane by lane in both cases.
        return Some(Cost {
            as_lanes: ty.lane_count(),
            as_register: 3 * ty.lane_count(),
        });
    }
    let in_slot = match func.dfg.value_def(func.dfg.resolve_aliases(pointer)) {
        ValueDef::Result(inst, 0) => matches!(func.dfg.insts[inst], InstructionData::StackAddr { .. }),
        _ => false,
    };
    let aligned = data.aligned() || in_slot;
    let is_word = ty.lane_bits() == 32;
    let single = match (ty.lane_type().bytes(), aligned, is_store) {
        (1, ..) | (_, true, _) => 1,
        (2, _, true) => 3,
        (2, ..) => 4,
        (_, _, true) => 7,
        _ => 10,
    };
    let as_register = match (ty.bytes(), is_store) {
        (..=4, false) => 3 + if aligned { 1 } else { 10 },
        (..=4, true) => 3 + if aligned { 1 } else { 7 },
        (5.., false) if in_slot => 2,
        (8, true) if aligned && is_word => 4,
        (8, true) if aligned => 7,
        (8, true) => 18,
        (5.., false) if aligned && is_word => 6,
        (5.., false) if aligned => 8,
        (5.., true) if aligned => 3,
        (16, true) => 24,
        (_, true) => 60,
        (..=16, false) => 24,
        _ => 60,
    };
    Some(Cost {
        as_lanes: single * ty.lane_count(),
        as_register,
    })
}
