//! Operations across the lanes of a subgroup.

use crate::emit::emitter::{Emitter, Operand, Values};
use crate::error::Result;
use crate::layout::{is_half, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use naga::{CollectiveOperation, Direction, Expression, GatherMode, Handle, ScalarKind, SubgroupOperation};

/// The lanes in a word of a ballot.
const BALLOT: u32 = 32;

impl Emitter<'_, '_> {
    /// Returns the number of the lane in its subgroup.
    pub(super) fn lane(&mut self) -> Result<Value> {
        let value = self.call_for("__builtin_npu_lane_id", &[], types::I32)?;
        self.facts.know(value, self.lanes.saturating_sub(1));
        Ok(value)
    }

    pub(super) fn ballot(&mut self, result: Handle<Expression>, predicate: Option<Handle<Expression>>) -> Result<()> {
        let predicate = match predicate {
            Some(predicate) => self.single(predicate)?,
            None => self.flag(true),
        };
        let low = self.call_for("__builtin_npu_subgroup_ballot", &[predicate], types::I32)?;
        let mut values = Values::from_slice(&[low]);
        for first in [BALLOT, 2 * BALLOT, 3 * BALLOT] {
            values.push(if first < self.lanes {
                self.later_ballot(predicate, first)?
            } else {
                self.word(0)
            });
        }
        self.frame.values.insert(result, Operand::Value(values));
        Ok(())
    }

    /// Returns one bit for each of the 32 lanes from the lane `first` on, a multiple of 32.
    fn later_ballot(&mut self, predicate: Value, first: u32) -> Result<Value> {
        let lane = self.lane()?;
        let (mask, first) = (self.word(!(BALLOT - 1)), self.word(first));
        let (one, zero) = (self.word(1), self.word(0));
        let word_of_lane = self.builder.ins().band(lane, mask);
        let is_in_word = self.builder.ins().icmp(IntCC::Equal, word_of_lane, first);
        let counts = self.builder.ins().band(is_in_word, predicate);
        // The amount is taken modulo 32.
        let bit = self.builder.ins().ishl(one, lane);
        let bit = self.builder.ins().select(counts, bit, zero);
        self.call_for("__builtin_npu_subgroup_or_i32", &[bit], types::I32)
    }

    pub(super) fn collective(
        &mut self,
        operation: SubgroupOperation,
        collective: CollectiveOperation,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let ty = self.ty(argument)?;
        let scalar = self.types.scalar(ty)?;
        let register = register(scalar, self.span)?;
        if scalar.width == 8 {
            return Err(self.unsupported("a subgroup operation on 64 bits"));
        }
        let is_float = scalar.kind == ScalarKind::Float;
        let prefix = match (scalar.kind, operation) {
            (ScalarKind::Sint, SubgroupOperation::Min | SubgroupOperation::Max) => "s",
            (ScalarKind::Uint, SubgroupOperation::Min | SubgroupOperation::Max) => "u",
            _ => "",
        };
        let name = match operation {
            SubgroupOperation::All => "all",
            SubgroupOperation::Any => "any",
            SubgroupOperation::Add => "add",
            SubgroupOperation::Mul => "mul",
            SubgroupOperation::Min => "min",
            SubgroupOperation::Max => "max",
            SubgroupOperation::And => "and",
            SubgroupOperation::Or => "or",
            SubgroupOperation::Xor => "xor",
        };
        let scan = match collective {
            CollectiveOperation::Reduce => "",
            CollectiveOperation::InclusiveScan => "inclusive_",
            CollectiveOperation::ExclusiveScan => "exclusive_",
        };
        let name = match operation {
            SubgroupOperation::All | SubgroupOperation::Any => format!("__builtin_npu_subgroup_{name}"),
            _ => {
                let suffix = if is_float { "f32" } else { "i32" };
                format!("__builtin_npu_subgroup_{scan}{prefix}{name}_{suffix}")
            }
        };
        let mut values = Values::new();
        for value in self.value(argument)? {
            let found = self.call_for(&name, &[value], register)?;
            values.push(match is_half(scalar) {
                true => self.rounded(found)?,
                false => found,
            });
        }
        self.frame.values.insert(result, Operand::Value(values));
        Ok(())
    }

    pub(super) fn gather(
        &mut self,
        mode: GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let ty = self.ty(argument)?;
        let scalar = self.types.scalar(ty)?;
        let register = register(scalar, self.span)?;
        let source = self.source_lane(mode)?;
        let mut values = Values::new();
        for value in self.value(argument)? {
            values.push(self.read_lane(value, register, source)?);
        }
        self.frame.values.insert(result, Operand::Value(values));
        Ok(())
    }

    /// Returns the lane that a gather reads, or `None` for the first active lane.
    fn source_lane(&mut self, mode: GatherMode) -> Result<Option<Value>> {
        let source = match mode {
            GatherMode::BroadcastFirst => return Ok(None),
            GatherMode::Broadcast(index) | GatherMode::Shuffle(index) => self.single(index)?,
            GatherMode::ShuffleDown(distance) => {
                let (lane, distance) = (self.lane()?, self.single(distance)?);
                self.builder.ins().iadd(lane, distance)
            }
            GatherMode::ShuffleUp(distance) => {
                let (lane, distance) = (self.lane()?, self.single(distance)?);
                self.builder.ins().isub(lane, distance)
            }
            GatherMode::ShuffleXor(mask) => {
                let (lane, mask) = (self.lane()?, self.single(mask)?);
                self.builder.ins().bxor(lane, mask)
            }
            GatherMode::QuadBroadcast(index) => {
                let (lane, index) = (self.lane()?, self.single(index)?);
                let mask = self.word(!3);
                let first = self.builder.ins().band(lane, mask);
                self.builder.ins().bor(first, index)
            }
            GatherMode::QuadSwap(direction) => {
                let mask = match direction {
                    Direction::X => 1,
                    Direction::Y => 2,
                    Direction::Diagonal => 3,
                };
                let (lane, mask) = (self.lane()?, self.word(mask));
                self.builder.ins().bxor(lane, mask)
            }
        };
        Ok(Some(source))
    }

    /// Returns the value of another lane.
    fn read_lane(&mut self, value: Value, register: Type, source: Option<Value>) -> Result<Value> {
        if register == types::I8 {
            let wide = self.builder.ins().uextend(types::I32, value);
            let found = self.read_lane(wide, types::I32, source)?;
            let zero = self.word(0);
            return Ok(self.builder.ins().icmp(IntCC::NotEqual, found, zero));
        }
        if register.bits() == 64 {
            let (bits, shift) = (self.as_bits(value), self.word(32));
            let low = self.builder.ins().ireduce(types::I32, bits);
            let high = self.builder.ins().ushr(bits, shift);
            let high = self.builder.ins().ireduce(types::I32, high);
            let low = self.read_lane(low, types::I32, source)?;
            let high = self.read_lane(high, types::I32, source)?;
            let low = self.builder.ins().uextend(types::I64, low);
            let high = self.builder.ins().uextend(types::I64, high);
            let high = self.builder.ins().ishl(high, shift);
            let bits = self.builder.ins().bor(low, high);
            return Ok(self.as_register(bits, register));
        }
        let suffix = if register == types::F32 { "f32" } else { "i32" };
        match source {
            Some(source) => {
                let name = format!("__builtin_npu_subgroup_shuffle_{suffix}");
                self.call_for(&name, &[value, source], register)
            }
            None => {
                let name = format!("__builtin_npu_subgroup_broadcast_first_{suffix}");
                self.call_for(&name, &[value], register)
            }
        }
    }
}
