//! An evaluator of integer CLIF on concrete values.
//!
//! It shares no arithmetic with the passes: it executes instructions, one at a time, on bit vectors
//! of up to 64 bits. Values that it cannot execute (function parameters, loads, calls, floats) are
//! leaves. The caller assigns their values. An unassigned leaf gets a number that depends on the
//! seed, the value and, for leaves of a loop, the iteration.

use super::operate::operate;
use super::value_table::ValueTable;
use crate::loops::mask;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, StackSlot, Value, ValueDef};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The maximum number of instructions that one call of [`Evaluator::get`] executes. Functions with
/// longer chains of arithmetic are not checked.
const MAX_STEPS: usize = 20_000;

/// An evaluator of values of a function.
pub struct Evaluator<'a> {
    func: &'a Function,
    seed: u64,
    assigned: ValueTable,
    /// Values computed from the assigned ones.
    known: ValueTable,
    /// The stack of [`Evaluator::get`]; a call reuses its memory.
    open: Vec<Value>,
    /// The blocks whose leaves depend on the iteration, and the iteration.
    inside: &'a [Block],
    iteration: u64,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator for `func`. Leaves in the blocks `inside` depend on the iteration.
    pub fn new(func: &'a Function, inside: &'a [Block], seed: u64) -> Self {
        Self {
            func,
            seed,
            assigned: ValueTable::default(),
            known: ValueTable::default(),
            open: Vec::new(),
            inside,
            iteration: 0,
        }
    }

    /// Assigns a value, truncated to its type.
    pub fn set(&mut self, value: Value, bits: u64) {
        let value = self.func.dfg.resolve_aliases(value);
        let bits = bits & mask(self.func.dfg.value_type(value));
        if self.assigned.set(value, bits) != Some(bits) {
            self.known.clear();
        }
    }

    /// Starts another iteration of the loop, with other values for its leaves.
    pub fn set_iteration(&mut self, iteration: u64) {
        self.iteration = iteration;
        self.known.clear();
    }

    /// Returns the value, zero-extended to 64 bits. Returns `None` if its type is not an integer of
    /// up to 64 bits, or if it depends on more than `MAX_STEPS` instructions.
    pub fn get(&mut self, value: Value) -> Option<u64> {
        let value = self.func.dfg.resolve_aliases(value);
        let ty = self.func.dfg.value_type(value);
        if !ty.is_int() || ty.bits() > 64 {
            return None;
        }
        if let Some(bits) = self.lookup(value) {
            return Some(bits);
        }
        self.open.clear();
        self.open.push(value);
        for _ in 0..MAX_STEPS {
            let Some(&top) = self.open.last() else { break };
            if self.lookup(top).is_some() {
                self.open.pop();
                continue;
            }
            let Some(inst) = self.executable(top) else {
                let leaf = self.leaf(top);
                self.known.set(top, leaf);
                continue;
            };
            let before = self.open.len();
            for &arg in self.func.dfg.inst_args(inst) {
                let arg = self.func.dfg.resolve_aliases(arg);
                if self.lookup(arg).is_none() {
                    self.open.push(arg);
                }
            }
            if self.open.len() == before {
                let result = self.execute(inst)?;
                self.known.set(top, result & mask(self.func.dfg.value_type(top)));
            }
        }
        self.lookup(value)
    }

    /// Returns the leaves that the value depends on, in the order of their numbers.
    pub fn leaves(&self, value: Value) -> Vec<Value> {
        let mut stack = vec![self.func.dfg.resolve_aliases(value)];
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.executable(value).filter(|_| self.assigned.get(value).is_none()) {
                Some(inst) => stack.extend(
                    self.func
                        .dfg
                        .inst_args(inst)
                        .iter()
                        .map(|&arg| self.func.dfg.resolve_aliases(arg)),
                ),
                None => found.push(value),
            }
        }
        found.sort_unstable();
        found
    }

    fn lookup(&self, value: Value) -> Option<u64> {
        self.assigned.get(value).or_else(|| self.known.get(value))
    }

    /// Returns the instruction that computes the value, if [`Self::execute`] supports it.
    fn executable(&self, value: Value) -> Option<Inst> {
        let dfg = &self.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
            return None;
        };
        let integers = dfg.inst_args(inst).iter().all(|&arg| {
            let ty = dfg.value_type(arg);
            ty.is_int() && ty.bits() <= 64
        });
        let known = match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode, .. } => opcode == Opcode::Iconst,
            InstructionData::Unary { opcode, .. } => matches!(
                opcode,
                Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce | Opcode::Ineg | Opcode::Bnot
            ),
            InstructionData::Binary { opcode, .. } => matches!(
                opcode,
                Opcode::Iadd
                    | Opcode::Isub
                    | Opcode::Imul
                    | Opcode::Band
                    | Opcode::Bor
                    | Opcode::Bxor
                    | Opcode::Ishl
                    | Opcode::Ushr
                    | Opcode::Sshr
                    | Opcode::Umin
                    | Opcode::Umax
                    | Opcode::Smin
                    | Opcode::Smax
            ),
            InstructionData::IntCompare { .. } | InstructionData::StackAddr { .. } => true,
            InstructionData::Ternary { opcode, .. } => matches!(opcode, Opcode::Select | Opcode::SelectSpectreGuard),
            _ => false,
        };
        let ty = dfg.value_type(value);
        (known && integers && ty.is_int() && ty.bits() <= 64).then_some(inst)
    }

    /// Returns the result of an instruction with known operands.
    fn execute(&self, inst: Inst) -> Option<u64> {
        let dfg = &self.func.dfg;
        if let InstructionData::StackAddr { stack_slot, offset, .. } = dfg.insts[inst] {
            let slot = self.slot(stack_slot);
            return Some(slot.wrapping_add_signed(i64::from(i32::from(offset))));
        }
        let args = dfg.inst_args(inst).iter();
        let operands: Option<SmallVec<[u64; 4]>> = args.map(|&arg| self.lookup(dfg.resolve_aliases(arg))).collect();
        operate(self.func, inst, &operands?)
    }

    /// Returns the address of a stack slot: exactly as aligned as the slot, and far from other
    /// slots.
    fn slot(&self, slot: StackSlot) -> u64 {
        let align = 1u64 << self.func.sized_stack_slots[slot].align_shift;
        let number = u64::from(slot.as_u32());
        let units = mix(self.seed ^ number) & 0xff;
        ((number + 1) << 20) + units * align.max(4)
    }

    /// Returns the number of an unassigned leaf, which depends on the seed.
    fn leaf(&self, value: Value) -> u64 {
        let dfg = &self.func.dfg;
        let block = match dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        };
        let varies = block.is_some_and(|block| self.inside.contains(&block));
        let iteration = if varies { self.iteration + 1 } else { 0 };
        mix(self.seed ^ mix(u64::from(value.as_u32()) ^ iteration << 32)) & mask(dfg.value_type(value))
    }
}

/// A bijection of 64-bit numbers that spreads small differences (the finalizer of MurmurHash3).
pub fn mix(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}
