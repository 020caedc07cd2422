//! Loads and stores of vectors of fewer than sixteen lanes that are in registers of sixteen (`widen.rs`).
//!
//! The hardware loads and stores sixteen elements. A vector that is aligned to its size lies within one line of the cache, so the line
//! is loaded and its words are shuffled down. The other bytes of a line are there to be read: a cache holds whole lines, memory ends at the end
//! of one, and what another thread writes meanwhile ends in lanes that are not used. Writing them is another matter, and stores to main
//! memory ignore the mask. But stores of packed elements write as many bytes as there are lanes, so sixteen bytes, whatever they are, are stored
//! as `i8x16`, and thirty-two as `i16x16`.

use super::scalarize::Splitter;
use super::widen::widened;
use crate::inst::LANES;
use crate::spaces::{self, Space};
use cranelift_codegen::ir::{
    InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, StackSlot, Type, Value, ValueDef, types,
};
use npu_mc::machine::{CACHE_LINE, WORD_SLOT as WORD};

impl Splitter<'_> {
    /// The address as one word.
    fn address(&mut self, pointer: Value, offset: i32) -> Option<Value> {
        let word = match self.type_of(pointer) {
            types::I32 => pointer,
            ty if ty.bits() > 32 => self.cursor.ins().ireduce(types::I32, pointer),
            _ => return None,
        };
        Some(match offset {
            0 => word,
            _ => self.cursor.ins().iadd_imm_s(word, i64::from(offset)),
        })
    }

    /// A vector that may be anywhere, as lanes: sixteen bytes are loaded at once.
    pub(super) fn load_words(&mut self, ty: Type, pointer: Value, flags: MemFlags, offset: i32) -> Option<Vec<Value>> {
        let whole = packed(ty.bytes()) == Some(types::I8X16) && self.has_words(ty);
        if !whole || !self.is_plain(flags) {
            return None;
        }
        let flags = self.cursor.func.dfg.mem_flags[flags];
        if flags.aligned() {
            return None;
        }
        let value = self.cursor.ins().load(types::I8X16, flags, pointer, offset);
        self.cast_to_scalars(value, ty)
    }

    /// The order of bytes and the memory are the usual ones.
    fn is_plain(&self, flags: MemFlags) -> bool {
        !self.is_big(flags) && spaces::of_flags(self.cursor.func, flags) == Space::Main
    }

    /// The stack slot and the place in it that an address is, aligned to lines of the cache.
    fn slot(&mut self, pointer: Value, offset: i32) -> Option<(StackSlot, i32)> {
        let func = &mut *self.cursor.func;
        let ValueDef::Result(inst, 0) = func.dfg.value_def(func.dfg.resolve_aliases(pointer)) else {
            return None;
        };
        let InstructionData::StackAddr {
            stack_slot,
            offset: start,
            ..
        } = func.dfg.insts[inst]
        else {
            return None;
        };
        let place = i32::from(start).checked_add(offset)?;
        let slot = &mut func.sized_stack_slots[stack_slot];
        slot.align_shift = slot.align_shift.max(CACHE_LINE.trailing_zeros() as u8);
        Some((stack_slot, place))
    }

    /// The words of a vector in a stack slot, if they lie within a line.
    fn load_from_slot(&mut self, bytes: u32, pointer: Value, flags: MemFlagsData, offset: i32) -> Option<Value> {
        let (slot, place) = self.slot(pointer, offset)?;
        let within = place.rem_euclid(CACHE_LINE.cast_signed()).cast_unsigned();
        if !within.is_multiple_of(WORD) || within + bytes > CACHE_LINE {
            return None;
        }
        let start = place - within.cast_signed();
        let line = self.cursor.ins().stack_addr(types::I32, slot, start);
        let words = self.cursor.ins().load(types::I32X16, flags.with_aligned(), line, 0);
        Some(match within / WORD {
            0 => words,
            first => self.pick(words, |lane| first + lane % (bytes / WORD)),
        })
    }

    /// The element that is in memory, if the load is of vectors, and how it is extended.
    pub(super) fn load_whole(
        &mut self,
        opcode: Opcode,
        ty: Type,
        pointer: Value,
        flags: MemFlags,
        offset: i32,
    ) -> Option<Value> {
        let to = widened(ty)?;
        let (element, signed) = match opcode {
            Opcode::Load => (ty.lane_type(), None),
            Opcode::Uload8x8 => (types::I8, Some(false)),
            Opcode::Sload8x8 => (types::I8, Some(true)),
            Opcode::Uload16x4 => (types::I16, Some(false)),
            Opcode::Sload16x4 => (types::I16, Some(true)),
            _ => return None,
        };
        if !self.is_plain(flags) {
            return None;
        }
        let flags = self.cursor.func.dfg.mem_flags[flags];
        let held = element.by(LANES as u32)?;
        let bytes = element.bytes() * ty.lane_count();
        let loaded = self.load_elements(bytes, held, pointer, flags, offset)?;
        match signed {
            Some(signed) => self.extend_lanes(to, loaded, signed),
            None => Some(loaded),
        }
    }

    /// So many bytes from memory, in a register of the type.
    fn load_elements(
        &mut self,
        bytes: u32,
        held: Type,
        pointer: Value,
        flags: MemFlagsData,
        offset: i32,
    ) -> Option<Value> {
        if bytes > 4
            && let Some(words) = self.load_from_slot(bytes, pointer, flags, offset)
        {
            return self.recast(held, words);
        }
        let loaded = match bytes {
            5.. if flags.aligned() => self.load_from_line(bytes, pointer, flags, offset)?,
            ..=8 => {
                let int = Type::int(8 * bytes as u16)?;
                let value = self.cursor.ins().load(int, flags, pointer, offset);
                let mut words = Vec::new();
                self.add_words(value, &mut words);
                self.words_together(&words)?
            }
            _ => self.cursor.ins().load(packed(bytes)?, flags, pointer, offset),
        };
        self.recast(held, loaded)
    }

    /// The words of a vector that lies within a line of the cache.
    fn load_from_line(&mut self, bytes: u32, pointer: Value, flags: MemFlagsData, offset: i32) -> Option<Value> {
        let count = bytes / WORD;
        let address = self.address(pointer, offset)?;
        let line = self.cursor.ins().band_imm_s(address, -i64::from(CACHE_LINE));
        let word = self.cursor.ins().ushr_imm_u(address, i64::from(WORD.trailing_zeros()));
        let first = self.cursor.ins().band_imm_u(word, i64::from(CACHE_LINE / WORD) - 1);
        let words = self.cursor.ins().load(types::I32X16, flags, line, 0);
        // The hardware knows sixteen lanes and nothing beyond.
        let within = self.each_lane(|lane| lane % count);
        let first = self.cursor.ins().splat(types::I32X16, first);
        let index = self.cursor.ins().iadd(within, first);
        Some(self.calls.shuffle(&mut self.cursor, words, index))
    }

    pub(super) fn store_whole(&mut self, [value, pointer]: [Value; 2], flags: MemFlags, offset: i32) -> Option<()> {
        let ty = self.type_of(value);
        widened(ty)?;
        if !self.is_plain(flags) {
            return None;
        }
        let flags = self.cursor.func.dfg.mem_flags[flags];
        // It is worth knowing where it goes.
        let _ = self.slot(pointer, offset);
        let bytes = ty.bytes();
        let wide = self.wide(value)?;
        let stored = if bytes <= 8 {
            let int = Type::int(8 * bytes as u16)?;
            self.cast_to_scalars(wide, int)?.first().copied()?
        } else {
            self.recast(packed(bytes)?, wide)?
        };
        self.cursor.ins().store(flags, stored, pointer, offset);
        Some(())
    }
}

/// The vector of sixteen packed elements that has so many bytes.
fn packed(bytes: u32) -> Option<Type> {
    Type::int((8 * bytes / LANES as u32) as u16)?.by(LANES as u32)
}
