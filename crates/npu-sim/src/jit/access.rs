//! Loads and stores in translations: main memory through its page table, and the scratchpad.

use super::region::Item;
use super::state::State;
use super::translate::Builder;
use super::units;
use crate::hazard::UPPER_HALF;
use crate::mem_op::{Extension, access_size, alignment, lane_extension};
use crate::memory::{MEMORY_INDEX, PAGE_SIZE, PLAIN_LAST};
use crate::predecode::Op;
use crate::registers::LANES;
use crate::shared::SCRATCHPAD_SIZE;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use npu_mc::raw::MemOp;
use std::mem::offset_of;

/// The number of bytes of a word, the unit in which memory tracks undriven bits.
pub(super) const WORD: u32 = size_of::<u32>() as u32;

/// The number of bytes of a vector register.
const LINE: u32 = LANES as u32 * WORD;

/// Returns the flags of an access that cannot trap.
pub(super) fn unaligned() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Builder<'_> {
    /// Emits a load of a scalar.
    pub fn load(&mut self, item: &Item, done: usize, bytes: u32, signed: bool) -> bool {
        let &Item { pc, op, .. } = item;
        let (address, place) = self.readable(item, done, bytes, bytes);
        if self.known.words && bytes != WORD {
            let watched = self.watched(address, 1);
            self.leave_if(watched, pc, done);
        }
        let flags = MemFlagsData::trusted();
        let ins = self.b.ins();
        let value = match (bytes, signed) {
            (1, true) => ins.sload8(I32, flags, place, 0),
            (1, false) => ins.uload8(I32, flags, place, 0),
            (2, true) => ins.sload16(I32, flags, place, 0),
            (2, false) => ins.uload16(I32, flags, place, 0),
            _ => ins.load(I32, flags, place, 0),
        };
        if self.known.words && bytes == WORD {
            self.load_watched(item, done, address);
        }
        self.set(op.d, value);
        true
    }

    /// Checks the undriven bits of a loaded word, and leaves if they differ from the expected ones:
    /// the upper half for loads in `reloads`, none for other loads.
    fn load_watched(&mut self, item: &Item, done: usize, address: Value) {
        let expected = if self.reloads.contains(&item.pc) { UPPER_HALF } else { 0 };
        let watched = self.watched(address, 1);
        if expected != 0 {
            let zero = self.b.ins().iconst(I64, 0);
            let driven = self.b.ins().icmp(IntCC::Equal, watched, zero);
            self.leave_if(driven, item.pc, done);
        }
        let (on, bits) = if expected == 0 {
            let on = self.detour(watched);
            (
                Some(on),
                self.call(units::word as *const () as usize, &[self.state, address]),
            )
        } else {
            (
                None,
                self.call(units::word as *const () as usize, &[self.state, address]),
            )
        };
        let expected = self.constant(expected);
        let other = self.b.ins().icmp(IntCC::NotEqual, bits, expected);
        let (other, same) = self.split(other);
        self.b.set_cold_block(other);
        self.b.switch_to_block(other);
        let pc = self.constant(item.pc);
        let field = offset_of!(State<'_>, reload) as i32;
        self.b.ins().store(MemFlagsData::trusted(), pc, self.state, field);
        self.exit_before(item.pc, done);
        self.b.switch_to_block(same);
        if let Some(on) = on {
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(on);
        }
    }

    /// Emits a store of a scalar.
    pub fn store(&mut self, item: &Item, done: usize, bytes: u32) -> bool {
        let &Item { pc, op, .. } = item;
        let (address, place) = self.writable(item, done, bytes);
        if self.known.words && bytes != WORD {
            let watched = self.watched(address, 1);
            self.leave_if(watched, pc, done);
        }
        let value = self.register(op.d);
        let flags = MemFlagsData::trusted();
        match bytes {
            1 => self.b.ins().istore8(flags, value, place, 0),
            2 => self.b.ins().istore16(flags, value, place, 0),
            _ => self.b.ins().store(flags, value, place, 0),
        };
        if bytes != WORD {
            return false;
        }
        let set_word = units::set_word as *const () as usize;
        if self.known.undriven >> (op.d & 63) & 1 != 0 {
            let half = self.constant(UPPER_HALF);
            self.call(set_word, &[self.state, address, half]);
            self.known.words = true;
        } else if self.known.words {
            let watched = self.watched(address, 1);
            let on = self.detour(watched);
            let zero = self.constant(0);
            self.call(set_word, &[self.state, address, zero]);
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(on);
        }
        false
    }

    /// Emits a load of a vector register; vector loads ignore undriven bits.
    pub fn load_line(&mut self, item: &Item, done: usize) -> bool {
        let (_, place) = self.readable(item, done, LINE, LINE);
        self.load_vector(item.op.d, place, MemFlagsData::trusted());
        true
    }

    /// Emits a load of the low bytes of the words of a line.
    pub fn load_narrow(&mut self, item: &Item, done: usize, kind: MemOp) -> bool {
        let (_, place) = self.readable(item, done, alignment(kind), LINE);
        let signed = matches!(lane_extension(kind), Extension::Signed8 | Extension::Signed16);
        self.load_extended(item.op.d, place, 8 * (WORD - access_size(kind)), signed);
        true
    }

    /// Emits a store of the low bytes of the lanes.
    pub fn store_narrow(&mut self, item: &Item, done: usize, kind: MemOp) -> bool {
        let (address, place) = self.writable(item, done, alignment(kind));
        let bytes = access_size(kind);
        if self.known.words {
            // The definition treats all vector stores as stores of a line of words.
            let watched = self.watched(address, u32::MAX >> (32 - LANES));
            self.leave_if(watched, item.pc, done);
        }
        for lane in 0..LANES as i32 {
            let value = self.lane(item.op.d, lane);
            let offset = lane * bytes as i32;
            let flags = unaligned();
            match bytes {
                1 => self.b.ins().istore8(flags, value, place, offset),
                _ => self.b.ins().istore16(flags, value, place, offset),
            };
        }
        false
    }

    /// Emits a store of a vector register, all of whose bits are driven.
    pub fn store_line(&mut self, item: &Item, done: usize) -> bool {
        let (address, place) = self.writable(item, done, LINE);
        self.store_vector(item.op.d, place);
        if self.known.words {
            let watched = self.watched(address, u32::MAX >> (32 - LANES));
            let on = self.detour(watched);
            self.call(units::line_driven as *const () as usize, &[self.state, address]);
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(on);
        }
        false
    }

    pub fn load_scratchpad(&mut self, item: &Item, done: usize) -> bool {
        let place = self.scratchpad(item, done, WORD);
        let value = self.b.ins().load(I32, MemFlagsData::trusted(), place, 0);
        self.set(item.op.d, value);
        false
    }

    pub fn store_scratchpad(&mut self, item: &Item, done: usize) -> bool {
        let place = self.scratchpad(item, done, WORD);
        let value = self.register(item.op.d);
        self.b.ins().store(MemFlagsData::trusted(), value, place, 0);
        false
    }

    pub fn load_vector_scratchpad(&mut self, item: &Item, done: usize) -> bool {
        let place = self.scratchpad_line(item, done);
        self.load_vector(item.op.d, place, unaligned());
        false
    }

    pub fn store_vector_scratchpad(&mut self, item: &Item, done: usize) -> bool {
        let place = self.scratchpad_line(item, done);
        self.store_lanes(item.op.d, place);
        false
    }

    /// Returns the host address of `bytes` bytes of the scratchpad, from a word on. Leaves if they
    /// wrap.
    fn scratchpad(&mut self, item: &Item, done: usize, bytes: u32) -> Value {
        let address = self.sum(item.op);
        let low = self.constant(WORD - 1);
        let misaligned = self.b.ins().band(address, low);
        self.leave_if(misaligned, item.pc, done);
        // Addresses wrap.
        let size = SCRATCHPAD_SIZE as u32;
        let inside = self.constant(size - 1);
        let offset = self.b.ins().band(address, inside);
        if bytes != WORD {
            let last = self.constant(size - bytes);
            let wraps = self.b.ins().icmp(IntCC::UnsignedGreaterThan, offset, last);
            self.leave_if(wraps, item.pc, done);
        }
        let offset = self.b.ins().uextend(I64, offset);
        let field = offset_of!(State<'_>, scratchpad) as i32;
        let base = self.b.ins().load(I64, MemFlagsData::trusted(), self.state, field);
        self.b.ins().iadd(base, offset)
    }

    /// Returns the host address of the words of a vector in the scratchpad. Leaves if all lanes are
    /// off, since the access then never completes.
    fn scratchpad_line(&mut self, item: &Item, done: usize) -> Value {
        if !self.known.full {
            let offset = offset_of!(State<'_>, mask) as i32;
            let mask = self.b.ins().load(I32, MemFlagsData::trusted(), self.state, offset);
            let zero = self.constant(0);
            let none = self.b.ins().icmp(IntCC::Equal, mask, zero);
            self.leave_if(none, item.pc, done);
        }
        self.scratchpad(item, done, LINE)
    }

    /// Branches to a new cold block if `condition` is not 0, and continues there; returns the block
    /// after it.
    fn detour(&mut self, condition: Value) -> Block {
        let [detour, on] = [(); 2].map(|()| self.b.create_block());
        self.b.set_cold_block(detour);
        self.b.ins().brif(condition, detour, &[], on, &[]);
        self.b.seal_block(detour);
        self.b.switch_to_block(detour);
        on
    }

    /// Returns a nonzero value if one of the words at the address may have undriven bits. Bit *k*
    /// of `words` selects word *k* from the address on.
    fn watched(&mut self, address: Value, words: u32) -> Value {
        let offset = offset_of!(State<'_>, words) as i32;
        let set = self.b.ins().load(I64, MemFlagsData::trusted(), self.state, offset);
        let bits = self.constant(WORD.trailing_zeros());
        // `rotr` uses the lowest 6 bits.
        let number = self.b.ins().ushr(address, bits);
        let set = self.b.ins().rotr(set, number);
        let words = self.b.ins().iconst(I64, i64::from(words));
        self.b.ins().band(set, words)
    }

    /// Returns the address of a load and the host address of the unit of `unit` bytes that contains
    /// it. Leaves if the access is misaligned, in I/O space, or to a page that a view lacks.
    fn readable(&mut self, item: &Item, done: usize, alignment: u32, unit: u32) -> (Value, Value) {
        let (address, special) = self.address(item.op, alignment);
        self.leave_if(special, item.pc, done);
        let entry = self.entry(address);
        if self.views {
            let zero = self.constant(0);
            let absent = self.b.ins().icmp(IntCC::Equal, entry, zero);
            self.leave_if(absent, item.pc, done);
        }
        let first = if unit == alignment {
            address
        } else {
            let kept = self.constant(!(unit - 1));
            self.b.ins().band(address, kept)
        };
        (address, self.place(entry, first))
    }

    /// Returns the address and the host address of a store. Leaves if the store needs the
    /// definition.
    fn writable(&mut self, item: &Item, done: usize, bytes: u32) -> (Value, Value) {
        let (address, special) = self.address(item.op, bytes);
        let entry = self.entry(address);
        let unwritable = self.unwritable(entry);
        let special = self.b.ins().bor(special, unwritable);
        self.leave_if(special, item.pc, done);
        (address, self.place(entry, address))
    }

    /// Returns Sa + imm.
    fn sum(&mut self, op: Op) -> Value {
        let base = self.register(op.a);
        if op.imm == 0 {
            return base;
        }
        let offset = self.constant(op.imm as u32);
        self.b.ins().iadd(base, offset)
    }

    /// Returns the address of an access, and a nonzero value if it is misaligned or in I/O space.
    fn address(&mut self, op: Op, bytes: u32) -> (Value, Value) {
        let address = self.sum(op);
        // A rotation moves the low bits to the top, where they make a misaligned address larger
        // than every aligned one.
        let bits = bytes.trailing_zeros();
        let turned = if bits == 0 {
            address
        } else {
            let bits = self.constant(bits);
            self.b.ins().rotr(address, bits)
        };
        let io = self.constant(npu_mc::machine::IO_BASE >> bits);
        let special = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, io);
        (address, special)
    }

    /// Returns the page-table entry of an address.
    fn entry(&mut self, address: Value) -> Value {
        let shift = self.constant(PAGE_SIZE.trailing_zeros());
        let slot = self.b.ins().ushr(address, shift);
        let slot = self.b.ins().uextend(I64, slot);
        let two = self.b.ins().iconst(I64, 2);
        let slot = self.b.ins().ishl(slot, two);
        let slot = self.b.ins().iadd(self.table, slot);
        // No operation of a translation changes the table.
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b.ins().load(I32, flags, slot, 0)
    }

    /// Returns a nonzero value if a store to the page needs the definition: unwritten pages have
    /// entry 0, other special pages have a bit set above the index.
    fn unwritable(&mut self, entry: Value) -> Value {
        let one = self.constant(1);
        let number = self.b.ins().isub(entry, one);
        let last = self.constant(PLAIN_LAST - 1);
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, number, last)
    }

    /// Returns the host address of an address in main memory.
    fn place(&mut self, entry: Value, address: Value) -> Value {
        let index = self.constant(MEMORY_INDEX);
        let index = self.b.ins().band(entry, index);
        let index = self.b.ins().uextend(I64, index);
        let shift = self.b.ins().iconst(I64, i64::from(PAGE_SIZE.trailing_zeros()));
        let page = self.b.ins().ishl(index, shift);
        let page = self.b.ins().iadd(self.pages, page);
        let low = self.constant(PAGE_SIZE - 1);
        let offset = self.b.ins().band(address, low);
        let offset = self.b.ins().uextend(I64, offset);
        self.b.ins().iadd(page, offset)
    }
}
