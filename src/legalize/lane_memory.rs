//! Bitcasts, loads and stores of vectors that are split into lanes (`scalarize.rs`).

use super::scalarize::{Lanes, NoForm, Splitter};
use crate::shape::register_type;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{
    Endianness, Inst, InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, StackSlotData, StackSlotKind, Type,
    Value, types,
};
use npu_mc::machine::CACHE_LINE;

impl Splitter<'_> {
    /// Reinterprets the bits as lanes of another size. In little-endian order, the first lane has
    /// the lowest bits.
    pub(super) fn bitcast(&mut self, ty: Type, arg: Value, flags: MemFlagsData) -> Lanes {
        let reversed = flags.explicit_endianness() == Some(Endianness::Big);
        if !reversed && let Some(lanes) = self.bitcast_words(ty, arg) {
            return Ok(lanes);
        }
        let from = self.type_of(arg).lane_type().as_int();
        let lane = ty.lane_type();
        let to = lane.as_int();
        let mut lanes = self.each(arg, |this, value| this.as_type(from, value));
        if reversed {
            lanes.reverse();
        }
        let mut found = Vec::with_capacity(ty.lane_count() as usize);
        if from.bits() <= to.bits() {
            for group in lanes.chunks((to.bits() / from.bits()) as usize) {
                let mut sum = None;
                for (&value, number) in group.iter().zip(0i64..) {
                    let mut part = value;
                    if from != to {
                        part = self.cursor.ins().uextend(to, part);
                    }
                    if number > 0 {
                        let amount = self.iconst(types::I32, number * i64::from(from.bits()));
                        part = self.cursor.ins().ishl(part, amount);
                    }
                    sum = Some(match sum {
                        Some(sum) => self.cursor.ins().bor(sum, part),
                        None => part,
                    });
                }
                found.push(sum.ok_or(NoForm)?);
            }
        } else {
            for value in lanes {
                for number in 0..i64::from(from.bits() / to.bits()) {
                    let mut part = value;
                    if number > 0 {
                        let amount = self.iconst(types::I32, number * i64::from(to.bits()));
                        part = self.cursor.ins().ushr(part, amount);
                    }
                    found.push(self.cursor.ins().ireduce(to, part));
                }
            }
        }
        if reversed {
            found.reverse();
        }
        Ok(found.into_iter().map(|value| self.as_type(lane, value)).collect())
    }

    /// Performs a bitcast from lanes of whole words to a vector in registers. Vectors of up to 128
    /// bits are cast from one integer, larger ones go through the frame.
    pub(super) fn cast_to_register(&mut self, inst: Inst) -> Option<Value> {
        let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            flags,
        } = self.cursor.func.dfg.insts[inst]
        else {
            return None;
        };
        let result = self.cursor.func.dfg.first_result(inst);
        let (from, to) = (self.type_of(arg), self.type_of(result));
        let fits = to.is_vector() && from.lane_bits().is_multiple_of(32);
        if !fits || self.is_big(flags) || self.is_in_lanes(result) || !self.is_in_lanes(arg) {
            return None;
        }
        let bits = from.lane_type().as_int();
        let lanes = self.each(arg, |this, lane| this.as_type(bits, lane));
        if to.bits() <= types::I128.bits() {
            let whole = self.together(&lanes)?;
            return Some(self.little_bitcast(to, whole));
        }
        self.through_frame(to, bits, &lanes)
    }

    /// Stores the values, of type `stored`, to the frame and loads them as a vector in registers.
    pub(super) fn through_frame(&mut self, ty: Type, stored: Type, values: &[Value]) -> Option<Value> {
        let area = frame_area(&mut self.cursor, ty.bytes());
        let count = u32::try_from(values.len()).ok()?;
        for (&value, offset) in values.iter().zip(offsets(0, stored, count)?) {
            self.cursor.ins().store(MemFlagsData::trusted(), value, area, offset);
        }
        Some(self.cursor.ins().load(ty, MemFlagsData::trusted(), area, 0))
    }

    pub(super) fn is_big(&self, flags: MemFlags) -> bool {
        let flags = self.cursor.func.dfg.mem_flags[flags];
        flags.explicit_endianness() == Some(Endianness::Big)
    }

    fn little_bitcast(&mut self, ty: Type, value: Value) -> Value {
        match self.type_of(value) == ty {
            true => value,
            false => {
                let flags = MemFlagsData::new().with_endianness(Endianness::Little);
                self.cursor.ins().bitcast(ty, flags, value)
            }
        }
    }

    /// Performs a bitcast from a vector in a register to lanes of whole words.
    fn bitcast_words(&mut self, ty: Type, arg: Value) -> Option<Vec<Value>> {
        let words = types::I32
            .by(ty.bits() / 32)
            .filter(|&ty| register_type(ty).is_some())?;
        let in_register = self.type_of(arg).is_vector() && !self.is_in_lanes(arg);
        if !in_register || !ty.lane_bits().is_multiple_of(32) {
            return None;
        }
        if self.type_of(arg) == types::I8X16 {
            return Some(self.lanes_through_frame(ty, arg));
        }
        let register = self.little_bitcast(words, arg);
        self.lanes_of_words(ty, register)
    }

    /// Stores a register to the frame, which packs its bytes, and loads the lanes from there.
    fn lanes_through_frame(&mut self, ty: Type, register: Value) -> Vec<Value> {
        let area = frame_area(&mut self.cursor, ty.bytes());
        let flags = MemFlagsData::trusted();
        self.cursor.ins().store(flags, register, area, 0);
        let lane = ty.lane_type();
        let places = (0..ty.lane_count() * lane.bytes()).step_by(lane.bytes() as usize);
        places
            .map(|place| self.cursor.ins().load(lane, flags, area, place.cast_signed()))
            .collect()
    }

    /// Returns the lanes of the type from the words of a register.
    pub(super) fn lanes_of_words(&mut self, ty: Type, register: Value) -> Option<Vec<Value>> {
        let count = ty.lane_bits() / 32;
        let mut lanes = Vec::new();
        for first in 0..ty.lane_count() {
            let numbers = first * count..(first + 1) * count;
            let parts: Vec<Value> = numbers
                .map(|number| self.cursor.ins().extractlane(register, number as u8))
                .collect();
            let whole = self.together(&parts)?;
            lanes.push(self.as_type(ty.lane_type(), whole));
        }
        Some(lanes)
    }

    /// Concatenates words into an integer, least significant first.
    fn together(&mut self, words: &[Value]) -> Option<Value> {
        if let &[word] = words {
            return Some(word);
        }
        let (low, high) = words.split_at(words.len() / 2);
        let (low, high) = (self.together(low)?, self.together(high)?);
        Some(self.cursor.ins().iconcat(low, high))
    }

    pub(super) fn load(&mut self, opcode: Opcode, ty: Type, pointer: Value, flags: MemFlagsData, offset: i32) -> Lanes {
        let lane = ty.lane_type();
        let (stored, signed) = match opcode {
            Opcode::Load => (lane, None),
            Opcode::Uload8x8 => (types::I8, Some(false)),
            Opcode::Sload8x8 => (types::I8, Some(true)),
            Opcode::Uload16x4 => (types::I16, Some(false)),
            Opcode::Sload16x4 => (types::I16, Some(true)),
            Opcode::Uload32x2 => (types::I32, Some(false)),
            Opcode::Sload32x2 => (types::I32, Some(true)),
            _ => return Err(NoForm),
        };
        let offsets = offsets(offset, stored, ty.lane_count()).ok_or(NoForm)?;
        // Loads the first lane last: a function that returns it can then load it into the register
        // of the address.
        let loaded = offsets.into_iter().rev().map(|offset| {
            let value = self.cursor.ins().load(stored, flags, pointer, offset);
            match signed {
                Some(signed) => self.extend(lane, value, signed),
                None => value,
            }
        });
        let mut lanes: Vec<Value> = loaded.collect();
        lanes.reverse();
        Ok(lanes)
    }

    pub(super) fn store(
        &mut self,
        [value, pointer]: [Value; 2],
        flags: MemFlagsData,
        offset: i32,
    ) -> Result<(), NoForm> {
        let ty = self.type_of(value);
        let offsets = offsets(offset, ty.lane_type(), ty.lane_count()).ok_or(NoForm)?;
        for (lane, offset) in self.lanes(value).into_iter().zip(offsets) {
            self.cursor.ins().store(flags, lane, pointer, offset);
        }
        Ok(())
    }
}

/// Creates a stack slot for this number of bytes, aligned to cache lines. Returns its address.
pub(super) fn frame_area(cursor: &mut FuncCursor<'_>, bytes: u32) -> Value {
    let data = StackSlotData::new(
        StackSlotKind::ExplicitSlot,
        bytes.max(CACHE_LINE),
        CACHE_LINE.trailing_zeros() as u8,
    );
    let slot = cursor.func.create_sized_stack_slot(data);
    cursor.ins().stack_addr(types::I32, slot, 0)
}

/// Returns the offsets of the lanes in memory, or `None` if one is out of range.
fn offsets(first: i32, lane: Type, count: u32) -> Option<Vec<i32>> {
    (0..count)
        .map(|number| first.checked_add(i32::try_from(number * lane.bytes()).ok()?))
        .collect()
}
