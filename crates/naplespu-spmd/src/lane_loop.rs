//! Operations without a vector form: a loop over the active lanes, with the lanes of operands and
//! results in stack slots.

use crate::divergence::Form;
use crate::emit::{ALL_LANES, Emitter, LANES, Parts};
use crate::error::Error;
use cranelift_codegen::ir::{
    Inst, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};
use std::collections::BTreeMap;

/// Alignment of a slot for lanes: that of a cache line, so that vectors are aligned.
const SLOT_ALIGN_SHIFT: u8 = 6;

impl Emitter<'_> {
    /// Executes an instruction on the scalars of each active lane, from the lowest.
    pub fn lane_loop(&mut self, inst: Inst) -> Result<(), Error> {
        let results = self.old.dfg.inst_results(inst).to_vec();
        let mut scalars = BTreeMap::new();
        let mut stored: Vec<(Value, StackSlot)> = Vec::new();
        for value in self.old.dfg.inst_values(inst).collect::<Vec<_>>() {
            if scalars.contains_key(&value) || stored.iter().any(|&(other, _)| other == value) {
                continue;
            }
            if self.form(value) == Form::Uniform {
                scalars.insert(value, self.scalar(value)?);
            } else {
                let vectors = self.vectors(value)?;
                let slot = self.lanes_slot(stored.len(), self.lanes_of(value)?);
                self.store_lanes(slot, &vectors);
                stored.push((value, slot));
            }
        }
        let mut result_slots = Vec::new();
        for (index, &result) in results.iter().enumerate() {
            result_slots.push(self.lanes_slot(stored.len() + index, self.lanes_of(result)?));
        }
        let active = self.active();
        for part in 0..self.parts {
            self.loop_over_part(inst, part, active[part], &scalars, &stored, &result_slots)?;
        }
        for (&result, &slot) in results.iter().zip(&result_slots) {
            let ty = self.lanes_of(result)?;
            let vectors = self.load_lanes(slot, ty);
            let vectors = if self.divergence.form(result) == Form::Bits {
                self.nonzero(&vectors, types::I8)
            } else {
                vectors
            };
            self.define(result, vectors)?;
        }
        Ok(())
    }

    fn loop_over_part(
        &mut self,
        inst: Inst,
        part: usize,
        active: Value,
        scalars: &BTreeMap<Value, Value>,
        stored: &[(Value, StackSlot)],
        results: &[StackSlot],
    ) -> Result<(), Error> {
        let [body, done] = std::array::from_fn(|_| self.builder.create_block());
        let left = self.builder.append_block_param(body, types::I32);
        match &self.mask {
            // The mask of a block that is executed is not empty, but that of a part can be.
            Some(_) => {
                self.builder.ins().brif(active, body, &[active.into()], done, &[]);
            }
            None => {
                let all = self.builder.ins().iconst(types::I32, ALL_LANES);
                self.builder.ins().jump(body, &[all.into()]);
            }
        }
        self.builder.switch_to_block(body);
        let lane = self.builder.ins().ctz(left);
        let mut operands = scalars.clone();
        for &(value, slot) in stored {
            let ty = self.old.dfg.value_type(value);
            let address = self.lane_address(slot, part, lane, ty);
            operands.insert(value, self.load_lane(address, ty));
        }
        let values = self.copy_with(inst, &operands);
        for (value, &slot) in values.into_iter().zip(results) {
            let ty = self.builder.func.dfg.value_type(value);
            let address = self.lane_address(slot, part, lane, ty);
            let value = self.widened(value);
            self.builder.ins().store(MemFlagsData::trusted(), value, address, 0);
        }
        let less = self.builder.ins().iadd_imm_s(left, -1);
        let left = self.builder.ins().band(left, less);
        self.builder.ins().brif(left, body, &[left.into()], done, &[]);
        self.builder.switch_to_block(done);
        Ok(())
    }

    /// Returns the address of a lane of a slot.
    fn lane_address(&mut self, slot: StackSlot, part: usize, lane: Value, ty: Type) -> Value {
        let bytes = ty.bytes().max(4);
        let base = self
            .builder
            .ins()
            .stack_addr(types::I32, slot, (part as u32 * bytes * LANES) as i32);
        let shift = self.builder.ins().iconst(types::I32, i64::from(bytes.trailing_zeros()));
        let offset = self.builder.ins().ishl(lane, shift);
        self.builder.ins().iadd(base, offset)
    }

    fn load_lane(&mut self, address: Value, ty: Type) -> Value {
        if ty.is_int() && ty.bits() < 32 {
            let word = self.builder.ins().load(types::I32, MemFlagsData::trusted(), address, 0);
            return self.builder.ins().ireduce(ty, word);
        }
        self.builder.ins().load(ty, MemFlagsData::trusted(), address, 0)
    }

    /// Returns a slot for the lanes of a value. Slots with the same index are shared between
    /// operations.
    pub fn lanes_slot(&mut self, index: usize, ty: Type) -> StackSlot {
        let size = ty.bytes() * self.parts as u32;
        while self.slots.len() <= index {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, SLOT_ALIGN_SHIFT);
            let slot = self.builder.create_sized_stack_slot(data);
            self.slots.push(slot);
        }
        let slot = self.slots[index];
        let data = &mut self.builder.func.sized_stack_slots[slot];
        data.size = data.size.max(size);
        slot
    }

    /// Stores vectors to a slot.
    pub fn store_lanes(&mut self, slot: StackSlot, vectors: &Parts) {
        for (part, &lanes) in vectors.iter().enumerate() {
            let bytes = self.builder.func.dfg.value_type(lanes).bytes();
            let address = self
                .builder
                .ins()
                .stack_addr(types::I32, slot, (part as u32 * bytes) as i32);
            self.builder.ins().store(MemFlagsData::trusted(), lanes, address, 0);
        }
    }

    /// Loads vectors from a slot.
    pub fn load_lanes(&mut self, slot: StackSlot, ty: Type) -> Parts {
        (0..self.parts)
            .map(|part| {
                let address = self
                    .builder
                    .ins()
                    .stack_addr(types::I32, slot, (part as u32 * ty.bytes()) as i32);
                self.builder.ins().load(ty, MemFlagsData::trusted(), address, 0)
            })
            .collect()
    }
}
