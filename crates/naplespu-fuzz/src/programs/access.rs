//! Loads and stores at addresses that are sums of bases, counters and constants.

use super::params::Param;
use crate::eval::NARROW_ACCESSES;
use crate::instruction::{Base, Generator, Loop, Sum};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Opcode, StackSlot, Type, Value, types};

/// Size in bytes of a slot that loops access.
const SLOT: u32 = 1536;

/// The operands of an access.
pub struct Address {
    /// The operand.
    pub value: Value,
    /// The offset of the instruction.
    pub offset: i32,
    flags: MemFlagsData,
}

/// Returns the largest power of two, up to 64, that divides the number.
pub fn low_bit(number: i64) -> u32 {
    1 << number.trailing_zeros().min(6)
}

impl Generator<'_, '_, '_> {
    /// Adds a parameter that is a base.
    pub fn add_base(&mut self) {
        let bias = match self.dice.below(10) {
            0 => self.dice.one_of(&[0x7fff_fffc, 0x7fff_ffc0, 0x8000_0000, 0x7fff_fff0]),
            1..=3 => (1u32 << 31).wrapping_add(self.dice.range(-140, 140) as u32),
            4 => (self.dice.range(-300, 300) as u32) & !3,
            5 if self.dice.chance(1, 2) => self.dice.bits() as u32,
            _ => 0,
        };
        let align = match self.style.aligned {
            true => self.dice.one_of(&[1, 2, 4, 4, 4, 4, 4, 8, 8, 16, 32, 64, 64]),
            false => self.dice.one_of(&[1, 1, 2, 4, 4]),
        };
        let value = self.param(Param::Base { bias, align });
        self.bases.push(Base {
            value,
            bias,
            align,
            moves: None,
            slot: None,
            region: self.bases.len() as u32,
        });
    }

    /// Adds a constant to a value.
    pub fn plus(&mut self, value: Value, number: i64) -> Value {
        let ty = self.type_of(value);
        if self.dice.chance(1, 6) {
            let c = self.int(ty, number.wrapping_neg());
            return self.cursor().ins().isub(value, c);
        }
        let c = self.int(ty, number);
        self.sum_of(value, c, 3)
    }

    fn add_constant(&mut self, value: Value, constant: u32) -> Value {
        match constant {
            0 => value,
            _ => self.plus(value, constant.cast_signed().into()),
        }
    }

    /// Adds two values, in the other order with probability `1 / of`.
    fn sum_of(&mut self, a: Value, b: Value, of: u32) -> Value {
        let is_swapped = self.dice.chance(1, of);
        let (a, b) = if is_swapped { (b, a) } else { (a, b) };
        self.cursor().ins().iadd(a, b)
    }

    /// Returns a counter as an i32, multiplied by `scale`.
    pub fn scaled(&mut self, open: &Loop, scale: i64, within: i64) -> Value {
        let negative = open.count.first().is_none_or(|first| first < 0);
        let mut value = open.counter;
        value = match self.type_of(value) {
            types::I32 => value,
            types::I64 => self.cursor().ins().ireduce(types::I32, value),
            _ if negative => self.cursor().ins().sextend(types::I32, value),
            _ => self.cursor().ins().uextend(types::I32, value),
        };
        if within != 0 {
            value = self.add_constant(value, within as u32);
        }
        if scale == 1 {
            return value;
        }
        if scale > 0 && scale.count_ones() == 1 && self.dice.chance(1, 2) {
            return self.cursor().ins().ishl_imm_u(value, i64::from(scale.trailing_zeros()));
        }
        self.cursor().ins().imul_imm_s(value, scale)
    }

    fn scale(&mut self, step: i64, size: i64) -> i64 {
        let even = size % step == 0;
        if self.style.pure && even && !self.dice.chance(1, 40) {
            return size / step;
        }
        match self.dice.below(20) {
            0 => 2 * size,
            1 => -size,
            2 => 3 * size,
            3 => self.dice.one_of(&[1, 2, 4, 8]),
            4 => 4 * size,
            _ if even => size / step,
            5..12 => size * step.signum(),
            _ => size,
        }
    }

    /// Chooses an offset in bytes that is small compared with the memory.
    fn small(&mut self, size: i64, align: u32, store: bool) -> i64 {
        if self.style.near && (!store || self.dice.chance(1, 2)) {
            return self.dice.one_of(&[0, 0, 0, 0, 0, 1, 2, 3, 4, 15, 16, 17, 32, -1, -16]) * size;
        }
        if store && self.style.pure && self.dice.chance(9, 10) {
            // Vectorized stores need the same alignment.
            let unit = if self.dice.chance(7, 8) { 64 } else { 16 * size };
            return self.dice.range(-2, 8) * unit;
        }
        let kinds = if self.style.pure { 9 } else { 12 };
        let number = match self.dice.below(kinds) {
            0 | 1 => {
                let near = [1, 2, 3, 4, 8, 15, 16, 17, 31, 32, -1, -2, -3, -15, -16, -17, -32];
                self.dice.one_of(&near) * size
            }
            2 => self.dice.range(-70, 70) * size,
            3 => self.dice.range(-20, 20) * size,
            4 => self.dice.range(-300, 300),
            5 => self.dice.range(0, 130) * 4,
            6 => self.dice.range(0, 70) * 8,
            _ => 0,
        };
        // Usually a multiple of the element size.
        match i64::from(align) >= size && self.dice.chance(9, 10) {
            true => number.div_euclid(size) * size,
            false => number,
        }
    }

    /// Returns an address for an element of `size` bytes. It is sometimes close to the last address
    /// for that size.
    pub fn address(&mut self, size: u32, store: bool) -> Address {
        let last = self.last.clone().filter(|last| last.size == size);
        let mut sum = match last {
            Some(last) if self.dice.chance(1, 3) => last,
            _ => self.sum(size, store),
        };
        self.last = Some(sum.clone());
        let small = self.small(i64::from(size), sum.align, store);
        sum.total = sum.total.wrapping_add(small as u32);
        sum.align = sum.align.min(low_bit(small));
        let (total, bias) = (sum.total, sum.base.bias);
        // The constant is in the instruction's offset, is added before or after the index, or is
        // split.
        let (before, after, offset) = match self.dice.below(8) {
            0 => (total, 0, 0),
            1 => (0, total, 0),
            2 => {
                let part = self.dice.range(0, 4) * 4;
                (total.wrapping_sub(part), 0, part)
            }
            3 => (bias, 0, total.wrapping_sub(bias)),
            4 => (0, bias, total.wrapping_sub(bias)),
            _ => (0, 0, total),
        };
        let mut value = self.add_constant(sum.base.value, before);
        if self.dice.chance(1, 6) {
            sum.index.reverse();
        }
        for term in sum.index {
            value = self.sum_of(value, term, 5);
        }
        value = self.add_constant(value, after);
        let mut flags = MemFlagsData::new().with_endianness(Endianness::Little);
        if self.dice.chance(2, 3) {
            flags.set_notrap();
        }
        if sum.align >= sum.size && self.style.aligned && self.dice.chance(15, 16) {
            flags.set_aligned();
        }
        if self.style.regions {
            let region = self.region(sum.base.region + 20, "array");
            flags.set_alias_region(Some(region));
        }
        let offset = offset.cast_signed();
        Address { value, offset, flags }
    }

    /// Chooses the terms of an address, without the small constant.
    fn sum(&mut self, size: u32, store: bool) -> Sum {
        let pure = self.style.pure;
        let depth = self.open.len();
        let moving = |base: &Base| base.moves.filter(|moves| moves.1 == depth);
        let fits = |base: &&Base| !pure || moving(base).is_none_or(|moves| moves.0 == i64::from(size));
        let fitting: Vec<Base> = self.bases.iter().filter(fits).cloned().collect();
        let mut base = self.dice.one_of(&fitting);
        if let Some(slot) = base.slot {
            base.value = self.cursor().ins().stack_load(types::I32, types::I32, slot, 0);
        }
        let bytes = i64::from(size);
        let moves = moving(&base).is_some();
        let mut sum = Sum {
            size,
            total: base.bias,
            align: base.align,
            index: Vec::new(),
            base,
        };
        let needs = match moves {
            true => !pure && self.dice.chance(1, 5),
            // Some loads are loop-invariant.
            false => (store && pure) || !self.dice.chance(1, if self.style.near { 4 } else { 10 }),
        };
        if needs && depth > 0 {
            let is_last = pure || self.dice.chance(5, 6);
            let at = if is_last { depth - 1 } else { self.dice.below(depth) };
            let scale = self.scale(self.open[at].count.step, bytes);
            let has_within = !(pure && store) && self.dice.chance(1, 8);
            let within = if has_within { self.dice.range(-3, 17) } else { 0 };
            sum.align = sum.align.min(low_bit(within * scale));
            let mut terms = vec![(at, scale, within)];
            if at > 0 && self.dice.chance(1, 3) {
                let scale = match pure && self.dice.chance(4, 5) {
                    true => self.dice.one_of(&[64, 128, 256]),
                    false => self.dice.one_of(&[bytes, 4, 64, 40, 12 * bytes, 100]),
                };
                terms.push((self.dice.below(at), scale, 0));
            }
            for (at, scale, within) in terms {
                let open = self.open[at].clone();
                sum.index.push(self.scaled(&open, scale, within));
                sum.align = sum.align.min(low_bit(scale));
                if let Some(start) = open.count.first().filter(|start| start.unsigned_abs() > 100) {
                    sum.total = sum.total.wrapping_sub((start as u32).wrapping_mul(scale as u32));
                }
            }
        }
        if !self.style.plain && self.dice.chance(1, 10) {
            // An index that is loaded or computed.
            let low = self.low_bits(types::I32, 63);
            sum.index
                .push(self.cursor().ins().ishl_imm_u(low, i64::from(size.trailing_zeros())));
            sum.align = sum.align.min(size);
        }
        sum
    }

    /// Returns an address and the type of its element: in the memory, or in a slot if the function
    /// has no memory. Returns `None` if no slot is large enough.
    fn place(&mut self, store: bool) -> Option<(Address, Type)> {
        if self.bases.is_empty() {
            return self.slot_place();
        }
        let element = self.dice.one_of(&self.style.elements);
        Some((self.address(element.bytes(), store), element))
    }

    /// Adds a load.
    pub fn load(&mut self) {
        if let Some((address, element)) = self.place(false) {
            self.load_from(&address, element);
        }
    }

    /// Returns the types to which loads extend an element and from which stores narrow it, with the
    /// opcodes.
    fn wider(&self, element: Type) -> Vec<(Type, [Opcode; 3])> {
        let all: &[Type] = match self.style.plain {
            true => &[types::I32],
            false => &[types::I16, types::I32, types::I64],
        };
        let narrow = NARROW_ACCESSES.into_iter().find(|(ty, _)| *ty == element);
        let wider = all.iter().filter(|ty| ty.bits() > element.bits());
        wider.filter_map(|&ty| Some((ty, narrow?.1))).collect()
    }

    fn load_from(&mut self, address: &Address, element: Type) {
        let (wider, often) = (self.wider(element), element != types::I32);
        let (mut ty, mut opcode) = (element, Opcode::Load);
        if !wider.is_empty() && self.dice.chance(if often { 3 } else { 1 }, 6) {
            let (wide, opcodes) = self.dice.one_of(&wider);
            (ty, opcode) = (wide, self.dice.one_of(&opcodes[..2]));
        }
        if let Ok(flags) = self.func.dfg.mem_flags.insert(address.flags) {
            let (offset, at) = (address.offset.into(), address.value);
            let (inst, _) = self.cursor().ins().Load(opcode, ty, flags, offset, at);
            self.push_results(inst);
        }
    }

    /// Adds a store. The stored value sometimes depends on a load from the same address.
    pub fn store(&mut self) {
        let Some((address, element)) = self.place(true) else {
            return;
        };
        let memory = self.style.memory;
        if memory && self.dice.chance(1, 5) {
            self.load_from(&address, element);
            self.operation();
        }
        let wider = self.wider(element);
        let (mut from, mut opcode) = (element, Opcode::Store);
        let has = self.scope.iter().any(|&value| self.type_of(value) == element);
        if !self.style.plain && !wider.is_empty() && self.dice.chance(1, 4) {
            let (wide, [.., narrows]) = self.dice.one_of(&wider);
            (from, opcode) = (wide, narrows);
        } else if !has && memory && !self.scope.is_empty() && !self.dice.chance(1, 8) {
            from = self.some_type();
        }
        let mut stored = self.any(from);
        if opcode == Opcode::Store && from != element {
            stored = self.convert(stored, element);
        }
        if let Ok(flags) = self.func.dfg.mem_flags.insert(address.flags) {
            let (ty, offset) = (self.type_of(stored), address.offset.into());
            self.cursor()
                .ins()
                .Store(opcode, ty, flags, offset, stored, address.value);
        }
        if opcode == Opcode::Store && memory && self.dice.chance(1, 8) {
            self.load_from(&address, element);
        }
    }

    /// Adds a stack slot and stores a value in it.
    pub fn in_slot(&mut self, value: Value) -> StackSlot {
        let slot = self.add_slot(8);
        self.cursor().ins().stack_store(types::I32, value, slot, 0);
        slot
    }

    /// Adds a base whose address is in a stack slot and is reloaded for each access.
    pub fn pointer_in_slot(&mut self) {
        let base = self.dice.one_of(&self.bases);
        let slot = Some(self.in_slot(base.value));
        self.bases.push(Base { slot, ..base });
    }

    /// Adds a loop over the words of a slot. `step` gets the address of a word and
    /// the loop-carried value, and returns its next value. Returns the last value.
    fn slot_loop(&mut self, slot: StackSlot, first: Value, step: impl Fn(&mut Self, Value, Value) -> Value) -> Value {
        let size = i64::from(self.func.sized_stack_slots[slot].size);
        let (body, params) = self.block(&[types::I32; 2]);
        let (exit, results) = self.block(&[types::I32]);
        let zero = self.int(types::I32, 0);
        self.jump((body, &[zero, first]));
        self.begin(body);
        let base = self.cursor().ins().stack_addr(types::I32, slot, 0);
        let at = self.cursor().ins().iadd(base, params[0]);
        let last = step(self, at, params[1]);
        let next = self.cursor().ins().iadd_imm_s(params[0], 4);
        let mut cursor = self.cursor();
        let test = cursor.ins().icmp_imm_u(IntCC::UnsignedLessThan, next, size);
        self.branch((test, true), (body, &[next, last]), (exit, &[last]));
        self.begin(exit);
        results[0]
    }

    /// Adds a stack slot with different words, and two bases in it.
    pub fn slot_bases(&mut self) -> StackSlot {
        let slot = self.add_slot(SLOT);
        let first = self.any(types::I32);
        self.slot_loop(slot, first, |writer, at, number| {
            writer.cursor().ins().store(MemFlagsData::trusted(), number, at, 0);
            let product = writer.cursor().ins().imul_imm_s(number, 1_664_525);
            writer.cursor().ins().iadd_imm_s(product, 1_013_904_223)
        });
        // Both bases may have the same addresses, so they have one region.
        let region = self.bases.len() as u32;
        for offset in [SLOT / 4, SLOT / 2] {
            let offset = offset.cast_signed() + self.dice.one_of(&[0, 0, 4, 64, -4, 60, 16, 12]);
            let value = self.cursor().ins().stack_addr(types::I32, slot, offset);
            let mut base = self.bases[0].clone();
            (base.value, base.bias) = (value, 0);
            (base.align, base.region) = (low_bit(offset.into()), region);
            self.bases.push(base);
        }
        slot
    }

    /// Returns a number that depends on all words of a slot.
    pub fn hash(&mut self, slot: StackSlot) -> Value {
        let first = self.int(types::I32, 12345);
        self.slot_loop(slot, first, |writer, at, hash| {
            let word = writer.cursor().ins().load(types::I32, MemFlagsData::trusted(), at, 0);
            let product = writer.cursor().ins().imul_imm_s(hash, 33);
            writer.cursor().ins().bxor(product, word)
        })
    }

    /// Fills a stack slot with a number.
    pub fn fill(&mut self, slot: StackSlot) {
        let bits = self.dice.number(types::I64).cast_signed();
        let word = self.int(types::I64, bits);
        let at = self.cursor().ins().stack_addr(types::I32, slot, 0);
        for offset in (0..self.func.sized_stack_slots[slot].size.cast_signed()).step_by(8) {
            self.cursor().ins().store(MemFlagsData::new(), word, at, offset);
        }
    }

    /// Returns a random position in a stack slot, and a type. Addresses never become operands of
    /// arithmetic, because they differ from the evaluator's.
    fn slot_place(&mut self) -> Option<(Address, Type)> {
        let element = self.ty();
        let bytes = element.bytes();
        let sizes = self.func.sized_stack_slots.iter().map(|(slot, data)| (slot, data.size));
        let large: Vec<(StackSlot, u32)> = sizes.filter(|(_, size)| *size >= bytes.max(16)).collect();
        if large.is_empty() {
            return None;
        }
        let (slot, size) = self.dice.one_of(&large);
        // The computed index selects within the lower half of the slot, and the constant offset
        // selects the upper half.
        let is_dynamic = size >= 2 * bytes && self.dice.chance(1, 2);
        let most = if is_dynamic { size / 2 - bytes } else { size - bytes };
        let is_whole = bytes <= 64 && self.dice.chance(1, 3);
        let offset = match is_whole {
            true => self.dice.range(0, most / bytes) * bytes,
            false => self.dice.range(0, most),
        };
        let start = if is_dynamic { 0 } else { self.dice.range(0, offset) };
        let mut value = self.cursor().ins().stack_addr(types::I32, slot, start.cast_signed());
        let mut flags = MemFlagsData::new();
        if is_dynamic {
            let index = self.low_bits(types::I32, (size / 2 - 1).into());
            value = self.cursor().ins().iadd(value, index);
        } else if is_whole {
            flags.set_aligned();
        }
        let offset = (offset - start).cast_signed();
        Some((Address { value, offset, flags }, element))
    }
}
