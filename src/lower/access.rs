//! Alignment, byte order and address space of a load or store, which select its instructions.

use super::context::Lower;
use crate::abi::slots;
use crate::inst::{Access, LANES};
use crate::spaces::{self, Space};
use clif_opt::facts::{self, Assumptions};
use cranelift_codegen::ir::{Endianness, Function, MemFlags, StackSlot, Value};
use npu_mc::machine::WORD_SLOT as WORD;

/// A load or store: the known alignment of its address, its byte order, and its memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    /// The largest power of two, in bytes, that is known to divide the address. The flag `aligned`
    /// means that the address is a multiple of the size of the access, whatever that is.
    alignment: u64,
    /// Whether the byte order in memory differs from that of registers.
    pub big_endian: bool,
    /// The memory.
    pub space: Space,
}

impl MemoryAccess {
    /// Returns whether the address is known to be a multiple of this number of bytes.
    pub fn is_aligned(self, bytes: u32) -> bool {
        self.alignment >= u64::from(bytes)
    }

    /// Returns how to access a number of this many bytes, at most a word.
    pub fn of_number(self, bytes: u32) -> Access {
        match self.big_endian {
            true if bytes > 1 => Access::Big,
            _ => self.in_order(bytes),
        }
    }

    /// Returns how to access a number of this many bytes that is little-endian, whatever the byte
    /// order of the access.
    pub fn in_order(self, bytes: u32) -> Access {
        match self.is_aligned(bytes) {
            true => Access::Plain,
            false => Access::Little,
        }
    }

    /// Returns whether one instruction accesses all of the `bytes`: a number of at most a word, or
    /// the elements of a vector of sixteen lanes, packed or words.
    pub fn is_one_instruction(self, bytes: u32) -> bool {
        let vector = bytes > WORD;
        let element = if vector { bytes / LANES as u32 } else { bytes };
        let alignment = match self.space {
            // The scratchpad has a bank for each lane, 4 bytes apart, and no packed elements.
            Space::Scratchpad if vector && element == WORD => WORD,
            Space::Scratchpad if vector => return false,
            _ => bytes,
        };
        (element == 1 || !self.big_endian) && self.is_aligned(alignment)
    }
}

impl Lower<'_> {
    /// Returns the properties of the access to `pointer` + `offset`.
    pub fn memory_access(&self, flags: MemFlags, pointer: Value, offset: i32) -> MemoryAccess {
        MemoryAccess {
            alignment: match self.func.dfg.mem_flags[flags].aligned() {
                true => facts::MAX_ALIGNMENT,
                false => self
                    .known_alignment(pointer)
                    .min(facts::power_of_two_factor(i64::from(offset).cast_unsigned())),
            },
            big_endian: self.is_big_endian(flags),
            space: spaces::of_flags(self.func, flags),
        }
    }

    /// Returns whether the byte order in memory differs from that of registers.
    pub fn is_big_endian(&self, flags: MemFlags) -> bool {
        self.func.dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big)
    }

    /// Returns the largest power of two, up to [`facts::MAX_ALIGNMENT`], that is known to divide the
    /// value.
    pub fn known_alignment(&self, value: Value) -> u64 {
        facts::alignment(self.func, value, &mut OfSlots(self.func))
    }
}

/// Stack slots have the alignment of the frame's layout.
struct OfSlots<'a>(&'a Function);

impl Assumptions for OfSlots<'_> {
    fn slot(&mut self, slot: StackSlot) -> u64 {
        u64::from(slots::slot_alignment(&self.0.sized_stack_slots[slot]))
    }
}
