//! Represents vectors of eight and sixteen i64 lanes by two registers: the low words and the high
//! words of all lanes.
//!
//! The alternative, scalar lanes, costs two registers for each lane and several instructions for
//! each operation. With two registers, an operation on words is one instruction for all lanes.
//! Carries are compares, whose result is -1 in the lanes that carry. The two words of a lane are
//! adjacent in memory, so loads and stores shuffle them. The representation suits vectors that come
//! from memory or single lanes and end there.
//!
//! Values that are connected by instructions form a partition, as in `partitions.rs`. A partition stays scalar lanes
//! if it leaves the function, joins at a block parameter, contains an instruction that this file
//! does not support, or costs as many instructions in registers.

use super::partitions::{Cost, Partitions};
use crate::error::CompileError;
use crate::inst::LANES;
use crate::intrinsics::PseudoCalls;
use crate::spaces::{self, Space};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstBuilder, InstructionData, MemFlags, Opcode, Type, Value, types,
};
use npu_mc::machine::WORD_SLOT as WORD;
use rustc_hash::FxHashMap;

/// The number of instructions that load the constants of a partition: masks and indices of shuffles.
const CONSTANTS: u32 = 10;

/// The low and the high words of all lanes.
#[derive(Clone, Copy)]
struct Pair {
    low: Value,
    high: Value,
}

/// Rewrites the partitions that cost fewer instructions in two registers. In `order`, definitions precede
/// uses.
///
/// # Errors
///
/// [`CompileError::Internal`] if an instruction of a rewritten partition has an operand that was not
/// rewritten.
pub(super) fn run(func: &mut Function, order: &[Block], calls: &mut PseudoCalls) -> Result<(), CompileError> {
    let some = func.dfg.values().any(|value| is_pair(func.dfg.value_type(value)));
    if !some {
        return Ok(());
    }
    let mut partitions = Partitions::default();
    let mut insts = Vec::new();
    for &block in order {
        for &param in func.dfg.block_params(block) {
            if is_pair(func.dfg.value_type(param)) {
                let partition = partitions.number(param);
                partitions.partitions[partition].is_fixed = true;
            }
        }
        for inst in func.layout.block_insts(block) {
            insts.extend(visit(func, inst, &mut partitions).map(|partition| (inst, partition)));
        }
    }
    let chosen = |(inst, partition): (Inst, usize)| {
        let root = partitions.root(partition);
        let partition = partitions.partitions[root];
        let better = partition.cost.as_register + CONSTANTS < partition.cost.as_lanes;
        (better && !partition.is_fixed).then_some(inst)
    };
    let insts: Vec<Inst> = insts.into_iter().filter_map(chosen).collect();
    let mut rewriter = Rewriter {
        cursor: FuncCursor::new(func),
        calls,
        pairs: FxHashMap::default(),
    };
    for inst in insts {
        rewriter.cursor.goto_inst(inst);
        rewriter.cursor.use_srcloc(inst);
        let done = rewriter.rewrite(inst);
        done.ok_or_else(|| CompileError::internal("legalize", inst, "words of every operand"))?;
    }
    Ok(())
}

/// Returns whether two registers hold the words of a vector of this type.
fn is_pair(ty: Type) -> bool {
    ty == types::I64X8 || i64_by_sixteen() == Some(ty)
}

fn i64_by_sixteen() -> Option<Type> {
    types::I64.by(LANES as u32)
}

/// Adds an instruction to the partition of its operands and results. Returns the partition, or `None` if it has
/// no such value.
fn visit(func: &Function, inst: Inst, partitions: &mut Partitions) -> Option<usize> {
    let dfg = &func.dfg;
    let operands = dfg.inst_values(inst).map(|value| dfg.resolve_aliases(value));
    let all = operands.chain(dfg.inst_results(inst).iter().copied());
    let mut pairs = all.filter(|&value| is_pair(dfg.value_type(value)));
    let first = pairs.next()?;
    let partition = partitions.number(first);
    for value in pairs {
        let other = partitions.number(value);
        partitions.join(partition, other);
    }
    let partition = partitions.root(partition);
    match cost(func, inst, dfg.value_type(first).lane_count()) {
        Some(cost) => {
            partitions.partitions[partition].cost.as_lanes += cost.as_lanes;
            partitions.partitions[partition].cost.as_register += cost.as_register;
        }
        None => partitions.partitions[partition].is_fixed = true,
    }
    Some(partition)
}

/// Returns the cost of an instruction, or `None` if it has no form on pairs.
fn cost(func: &Function, inst: Inst, lanes: u32) -> Option<Cost> {
    let cost = |as_lanes, as_register| Some(Cost { as_lanes, as_register });
    let halves = 2 * lanes / LANES as u32;
    match func.dfg.insts[inst] {
        InstructionData::Load {
            opcode: Opcode::Load,
            flags,
            offset,
            ..
        } if is_whole(func, flags, offset.into()) => cost(2 * lanes, 5 * halves),
        InstructionData::Store {
            opcode: Opcode::Store,
            flags,
            offset,
            ..
        } if is_whole(func, flags, offset.into()) => cost(2 * lanes, 4 * halves),
        InstructionData::Binary {
            opcode: Opcode::Iadd | Opcode::Isub,
            ..
        } => cost(4 * lanes, 8),
        InstructionData::Binary {
            opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
            ..
        }
        | InstructionData::Unary {
            opcode: Opcode::Bnot, ..
        } => cost(2 * lanes, 2),
        InstructionData::Unary {
            opcode: Opcode::Splat, ..
        } => cost(0, 2),
        InstructionData::UnaryConst {
            opcode: Opcode::Vconst, ..
        } => cost(lanes, 6),
        InstructionData::IntCompare {
            cond: IntCC::Equal | IntCC::NotEqual,
            ..
        } => cost(4 * lanes, 11),
        InstructionData::IntCompare { .. } => cost(5 * lanes, 17),
        InstructionData::Ternary {
            opcode: Opcode::Bitselect,
            ..
        } => cost(4 * lanes, 2),
        InstructionData::BinaryImm8 {
            opcode: Opcode::Extractlane,
            ..
        } => cost(0, 2),
        InstructionData::TernaryImm8 {
            opcode: Opcode::Insertlane,
            ..
        } => cost(0, 6),
        _ => None,
    }
}

/// Returns whether an access is aligned, little-endian and to main memory, so that it can access
/// whole registers.
fn is_whole(func: &Function, flags: MemFlags, offset: i32) -> bool {
    let data = func.dfg.mem_flags[flags];
    let plain = data.explicit_endianness() != Some(Endianness::Big) && spaces::of_flags(func, flags) == Space::Main;
    plain && data.aligned() && offset.checked_add(line()).is_some()
}

/// Returns the size of a register, in bytes.
fn line() -> i32 {
    types::I32X16.bytes().cast_signed()
}

struct Rewriter<'a> {
    cursor: FuncCursor<'a>,
    calls: &'a mut PseudoCalls,
    pairs: FxHashMap<Value, Pair>,
}

impl Rewriter<'_> {
    /// Rewrites an instruction that has a cost to one on pairs.
    fn rewrite(&mut self, inst: Inst) -> Option<()> {
        let dfg = &self.cursor.func.dfg;
        let data = dfg.insts[inst];
        let result = dfg.inst_results(inst).first().copied();
        let lanes = result.map_or(0, |result| dfg.value_type(result).lane_count());
        let pair = match data {
            InstructionData::Load { arg, flags, offset, .. } => self.load(lanes, arg, flags, offset.into()),
            InstructionData::Store {
                args, flags, offset, ..
            } => {
                self.store(args, flags, offset.into())?;
                self.cursor.func.layout.remove_inst(inst);
                return Some(());
            }
            InstructionData::Binary { opcode, args, .. } => {
                let [x, y] = [self.pair(args[0])?, self.pair(args[1])?];
                self.binary(opcode, x, y)
            }
            InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            } => {
                let x = self.pair(arg)?;
                self.both([x], |cursor, [x]| cursor.ins().bnot(x))
            }
            InstructionData::Unary { arg, .. } => {
                let (low, high) = self.cursor.ins().isplit(arg);
                Pair {
                    low: self.cursor.ins().splat(types::I32X16, low),
                    high: self.cursor.ins().splat(types::I32X16, high),
                }
            }
            InstructionData::UnaryConst { constant_handle, .. } => {
                let bytes = self.cursor.func.dfg.constants.get(constant_handle).as_slice().to_vec();
                let words: Vec<&[u8]> = bytes.chunks_exact(WORD as usize).collect();
                let mut every_other = |first: usize| {
                    let words = words.iter().copied().skip(first).step_by(2).cycle();
                    let bytes: Vec<u8> = words.take(LANES).flatten().copied().collect();
                    let constant = self.cursor.func.dfg.constants.insert(bytes.into());
                    self.cursor.ins().vconst(types::I32X16, constant)
                };
                Pair {
                    low: every_other(0),
                    high: every_other(1),
                }
            }
            InstructionData::IntCompare { cond, args, .. } => {
                let [x, y] = [self.pair(args[0])?, self.pair(args[1])?];
                let mask = self.compare(cond, x, y);
                Pair { low: mask, high: mask }
            }
            InstructionData::Ternary { args, .. } => {
                let [mask, x, y] = [self.pair(args[0])?, self.pair(args[1])?, self.pair(args[2])?];
                self.both([mask, x, y], |cursor, [mask, x, y]| cursor.ins().bitselect(mask, x, y))
            }
            InstructionData::BinaryImm8 { arg, imm, .. } => {
                let x = self.pair(arg)?;
                let low = self.cursor.ins().extractlane(x.low, imm);
                let high = self.cursor.ins().extractlane(x.high, imm);
                let whole = self.cursor.ins().iconcat(low, high);
                let dfg = &mut self.cursor.func.dfg;
                dfg.clear_results(inst);
                dfg.change_to_alias(result?, whole);
                self.cursor.func.layout.remove_inst(inst);
                return Some(());
            }
            InstructionData::TernaryImm8 { args, imm, .. } => {
                let x = self.pair(args[0])?;
                let (low, high) = self.cursor.ins().isplit(args[1]);
                Pair {
                    low: self.cursor.ins().insertlane(x.low, low, imm),
                    high: self.cursor.ins().insertlane(x.high, high, imm),
                }
            }
            _ => return None,
        };
        self.pairs.insert(result?, pair);
        self.cursor.func.layout.remove_inst(inst);
        Some(())
    }

    fn pair(&self, value: Value) -> Option<Pair> {
        self.pairs.get(&self.cursor.func.dfg.resolve_aliases(value)).copied()
    }

    /// Applies the same operation to the low and the high words.
    fn both<const N: usize>(&mut self, of: [Pair; N], each: impl Fn(&mut FuncCursor<'_>, [Value; N]) -> Value) -> Pair {
        Pair {
            low: each(&mut self.cursor, of.map(|pair| pair.low)),
            high: each(&mut self.cursor, of.map(|pair| pair.high)),
        }
    }

    fn binary(&mut self, opcode: Opcode, x: Pair, y: Pair) -> Pair {
        let mut on = |x: Value, y: Value| {
            let (inst, dfg) = self.cursor.ins().Binary(opcode, types::I32X16, x, y);
            dfg.first_result(inst)
        };
        let (low, high) = (on(x.low, y.low), on(x.high, y.high));
        // Lanes of a compare are -1 where the condition holds.
        let high = match opcode {
            Opcode::Iadd => {
                let carry = self.cursor.ins().icmp(IntCC::UnsignedLessThan, low, x.low);
                self.cursor.ins().isub(high, carry)
            }
            Opcode::Isub => {
                let borrow = self.cursor.ins().icmp(IntCC::UnsignedLessThan, x.low, y.low);
                self.cursor.ins().iadd(high, borrow)
            }
            _ => high,
        };
        Pair { low, high }
    }

    /// Returns a mask with all ones in lanes where the condition holds. The high words decide
    /// unless they are equal.
    fn compare(&mut self, cond: IntCC, x: Pair, y: Pair) -> Value {
        let low = self.cursor.ins().icmp(cond.unsigned(), x.low, y.low);
        match cond {
            IntCC::Equal => {
                let high = self.cursor.ins().icmp(cond, x.high, y.high);
                self.cursor.ins().band(low, high)
            }
            IntCC::NotEqual => {
                let high = self.cursor.ins().icmp(cond, x.high, y.high);
                self.cursor.ins().bor(low, high)
            }
            _ => {
                let high = self.cursor.ins().icmp(cond.without_equal(), x.high, y.high);
                let equal = self.cursor.ins().icmp(IntCC::Equal, x.high, y.high);
                self.cursor.ins().bitselect(equal, low, high)
            }
        }
    }

    /// Emits a constant of sixteen words.
    fn each_lane(&mut self, number: impl Fn(u32) -> u32) -> Value {
        let bytes: Vec<u8> = (0..LANES as u32).flat_map(|lane| number(lane).to_le_bytes()).collect();
        let constant = self.cursor.func.dfg.constants.insert(bytes.into());
        self.cursor.ins().vconst(types::I32X16, constant)
    }

    /// Selects a lane of `words` for each lane, by its number modulo the lane count.
    fn pick(&mut self, words: Value, number: impl Fn(u32) -> u32) -> Value {
        let index = self.each_lane(|lane| number(lane) % LANES as u32);
        self.calls.shuffle(&mut self.cursor, words, index)
    }

    /// Loads a pair. In memory, the two words of each lane are adjacent. With eight lanes, the
    /// upper half of each register repeats them.
    fn load(&mut self, lanes: u32, pointer: Value, flags: MemFlags, offset: i32) -> Pair {
        let flags = self.cursor.func.dfg.mem_flags[flags];
        let first = self.cursor.ins().load(types::I32X16, flags, pointer, offset);
        let mut low = self.pick(first, |lane| 2 * lane);
        let mut high = self.pick(first, |lane| 2 * lane + 1);
        if lanes == LANES as u32 {
            let second = self.cursor.ins().load(types::I32X16, flags, pointer, offset + line());
            let upper = self.each_lane(|lane| if lane < LANES as u32 / 2 { 0 } else { u32::MAX });
            let more = self.pick(second, |lane| 2 * lane);
            low = self.cursor.ins().bitselect(upper, more, low);
            let more = self.pick(second, |lane| 2 * lane + 1);
            high = self.cursor.ins().bitselect(upper, more, high);
        }
        Pair { low, high }
    }

    fn store(&mut self, [value, pointer]: [Value; 2], flags: MemFlags, offset: i32) -> Option<()> {
        let pair = self.pair(value)?;
        let flags = self.cursor.func.dfg.mem_flags[flags];
        let bytes = self.cursor.func.dfg.value_type(value).bytes().cast_signed();
        let odd = self.each_lane(|lane| if lane % 2 == 0 { 0 } else { u32::MAX });
        for (number, place) in (0u32..).zip((0..bytes).step_by(line() as usize)) {
            let from = number * LANES as u32 / 2;
            let low = self.pick(pair.low, |lane| from + lane / 2);
            let high = self.pick(pair.high, |lane| from + lane / 2);
            let words = self.cursor.ins().bitselect(odd, high, low);
            self.cursor.ins().store(flags, words, pointer, offset + place);
        }
        Some(())
    }
}
