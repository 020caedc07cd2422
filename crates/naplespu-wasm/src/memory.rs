//! Accesses to linear memory: addresses, bounds, alignment.
//!
//! An access to `index + offset` is inside if `index` is at most the size of the memory less the offset and the bytes of the access. That is
//! one compare, since a memory is never smaller than at its start. Later accesses to the same index in code that the check
//! dominates need none if they reach no further, and move the bound of the first check if nothing that can be observed lies between.
//! An index that its operations keep small (a mask, a shift, a byte that was loaded) needs none below the smallest size.
//!
//! The hint of alignment in an instruction promises nothing, and the machine has no access that is not aligned. So an address
//! that is not known to be aligned is tested, and the rare ones that are not are taken by bytes, out of line. The test is one of the
//! part of the address that is not known to be aligned: that of `list + 4 * at` is one of `list`.

use crate::config::PAGE;
use crate::emit::{Emitter, Region};
use crate::error::Result;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    BlockArg, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, TrapCode, Type, Value, ValueDef, types,
};
use std::collections::HashMap;
use wasmparser::MemArg;

/// Offsets up to this one stay in the instruction: all accesses to a structure share an address.
const SHARED_OFFSETS: u32 = 0xff;

/// How many operations are followed to find out what an index can be: with two operands each, 64 in all.
const DEPTH: u32 = 6;

/// A check that dominates the code that is made now.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// The access ends at most this far after the index.
    end: u64,
    /// The constant that says so, and what it is for an end of 0.
    bound: Option<(Inst, Bound)>,
    /// Effects that there were before it.
    epoch: u32,
}

/// What a constant of a check is made of.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// The bytes of the memory less the end.
    Rest(u64),
    /// The end, which is taken from the bytes of the memory.
    End,
}

/// The checks that dominate the code that is made now.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    known: HashMap<(u32, Value), Check>,
    /// What was known about an index before something else was, oldest first. Copies of all that is known, one for each block, would
    /// take time with the square of the length of a function.
    journal: Vec<((u32, Value), Option<Check>)>,
    epoch: u32,
}

/// The checks at some place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl Checks {
    /// Something that can be observed, or a branch: a check after it cannot be made before.
    pub fn effect(&mut self) {
        self.epoch += 1;
    }

    /// The checks before the code that is made now, for [`Checks::back_to`].
    pub fn place(&self) -> Place {
        Place(self.journal.len())
    }

    /// Code that can be reached from elsewhere, and only through that place: memories never shrink and values never change, so
    /// what was checked there is still inside, in every round of a loop. Places come back in the order of blocks, inner ones first.
    pub fn back_to(&mut self, place: Place) {
        self.effect();
        for (index, before) in self.journal.drain(place.0.min(self.journal.len())..).rev() {
            match before {
                Some(check) => self.known.insert(index, check),
                None => self.known.remove(&index),
            };
        }
    }

    fn learn(&mut self, index: (u32, Value), check: Check) {
        let before = self.known.insert(index, check);
        self.journal.push((index, before));
    }
}

/// A load or store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The instruction of CLIF.
    pub opcode: Opcode,
    /// The type of the value.
    pub ty: Type,
    /// Bytes in memory.
    pub bytes: u32,
}

impl Access {
    /// What an aligned address is a multiple of. Scalars of several words are accessed word by word.
    fn align(self) -> u32 {
        if self.ty.is_vector() {
            self.bytes
        } else {
            self.bytes.min(4)
        }
    }
}

impl Emitter<'_, '_, '_, '_> {
    pub fn load(&mut self, access: Access, arg: &MemArg, index: Value) -> Result<Value> {
        let (address, offset) = self.address(access, arg, index)?;
        let flags = self.flags(Region::Heap(arg.memory()));
        let Some(odd) = self.may_be_misaligned(access.align(), arg, index) else {
            return Ok(self.load_at(access, flags.with_aligned(), address, offset));
        };
        let [aligned, bytes, done] = [(); 3].map(|()| self.builder.create_block());
        self.builder.set_cold_block(bytes);
        let result = self.builder.append_block_param(done, access.ty);
        self.builder.ins().brif(odd, bytes, &[], aligned, &[]);
        for (block, flags) in [(aligned, flags.with_aligned()), (bytes, flags)] {
            self.builder.switch_to_block(block);
            self.builder.seal_block(block);
            let value = self.load_at(access, flags, address, offset);
            self.builder.ins().jump(done, &[BlockArg::Value(value)]);
        }
        self.builder.switch_to_block(done);
        self.builder.seal_block(done);
        Ok(result)
    }

    fn load_at(&mut self, access: Access, flags: MemFlagsData, address: Value, offset: i32) -> Value {
        let flags = self.builder.func.dfg.mem_flags.insert_unchecked(flags);
        // What widens the lanes of a vector says so itself; its type is that of the address.
        let controlling = if access.ty.is_vector() && access.opcode != Opcode::Load {
            types::I32
        } else {
            access.ty
        };
        let (inst, dfg) = self
            .builder
            .ins()
            .Load(access.opcode, controlling, flags, offset.into(), address);
        dfg.first_result(inst)
    }

    pub fn store(&mut self, access: Access, arg: &MemArg, index: Value, value: Value) -> Result<()> {
        let (address, offset) = self.address(access, arg, index)?;
        self.checks.effect();
        let flags = self.flags(Region::Heap(arg.memory()));
        let Some(odd) = self.may_be_misaligned(access.align(), arg, index) else {
            self.store_at(access, flags.with_aligned(), value, address, offset);
            return Ok(());
        };
        let [aligned, bytes, done] = [(); 3].map(|()| self.builder.create_block());
        self.builder.set_cold_block(bytes);
        self.builder.ins().brif(odd, bytes, &[], aligned, &[]);
        for (block, flags) in [(aligned, flags.with_aligned()), (bytes, flags)] {
            self.builder.switch_to_block(block);
            self.builder.seal_block(block);
            self.store_at(access, flags, value, address, offset);
            self.builder.ins().jump(done, &[]);
        }
        self.builder.switch_to_block(done);
        self.builder.seal_block(done);
        Ok(())
    }

    fn store_at(&mut self, access: Access, flags: MemFlagsData, value: Value, address: Value, offset: i32) {
        let flags = self.builder.func.dfg.mem_flags.insert_unchecked(flags);
        self.builder
            .ins()
            .Store(access.opcode, access.ty, flags, offset.into(), value, address);
    }

    /// The address in the device's memory, as a value and an offset, after the check.
    pub fn address(&mut self, access: Access, arg: &MemArg, index: Value) -> Result<(Value, i32)> {
        let memory = self.memory(arg.memory())?;
        if self.env.config.bounds_checks {
            self.check(arg, access.bytes, index)?;
        }
        // An offset that lies outside of every memory has trapped, and may be cut off.
        let offset = arg.offset as u32;
        let (folded, left) = (offset & !SHARED_OFFSETS, offset & SHARED_OFFSETS);
        let constant = self.constant_of(index);
        let address = match (memory.base, constant) {
            (crate::items::Base::At(base), Some(index)) => {
                return Ok((self.word(base.wrapping_add(index).wrapping_add(offset)), 0));
            }
            (crate::items::Base::At(base), None) => self.add(index, base.wrapping_add(folded)),
            (crate::items::Base::Data(data), _) => {
                let base = self.symbol(data);
                let address = self.builder.ins().iadd(index, base);
                self.add(address, folded)
            }
        };
        Ok((address, left as i32))
    }

    fn constant_of(&self, value: Value) -> Option<u32> {
        let dfg = &self.builder.func.dfg;
        match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, 0) => match dfg.insts[inst] {
                InstructionData::UnaryImm {
                    opcode: Opcode::Iconst,
                    imm,
                } => Some(imm.bits() as u32),
                _ => None,
            },
            _ => None,
        }
    }

    /// Traps if the access is not inside of the memory.
    fn check(&mut self, arg: &MemArg, bytes: u32, index: Value) -> Result<()> {
        let number = arg.memory();
        let memory = self.memory(number)?;
        let end = arg.offset.saturating_add(u64::from(bytes));
        let least = u64::from(memory.limits.min) * u64::from(PAGE);
        let index = self.builder.func.dfg.resolve_aliases(index);
        // The end first: most memories are too small for any index that nothing is known about.
        if end <= least && self.largest(index, DEPTH) <= least - end {
            return Ok(());
        }
        let epoch = self.checks.epoch;
        if let Some(&check) = self.checks.known.get(&(number, index)) {
            if end <= check.end {
                return Ok(());
            }
            if let Some((inst, bound)) = check.bound
                && check.epoch == epoch
                && end <= least
            {
                let imm = match bound {
                    Bound::Rest(all) => all - end,
                    Bound::End => end,
                };
                self.builder.func.dfg.insts[inst] = InstructionData::UnaryImm {
                    opcode: Opcode::Iconst,
                    imm: Imm64::new(imm as i64),
                };
                self.checks.learn((number, index), Check { end, ..check });
                return Ok(());
            }
        }
        let code = TrapCode::HEAP_OUT_OF_BOUNDS;
        let size = u64::from(memory.reserved);
        if end > size {
            // No index is inside, however the memory grows.
            let always = self.word(1);
            self.builder.ins().trapnz(always, code);
            return Ok(());
        }
        let (most, bound) = if memory.fixed {
            let most = self.word((size - end) as u32);
            (most, Some((most, Bound::Rest(size))))
        } else {
            let size = self.memory_bytes(number)?;
            let end_value = self.word(end as u32);
            if end > least {
                let outside = self.compare(IntCC::UnsignedLessThan, size, end_value);
                self.builder.ins().trapnz(outside, code);
            }
            let most = self.builder.ins().isub(size, end_value);
            (most, (end <= least).then_some((end_value, Bound::End)))
        };
        let outside = self.compare(IntCC::UnsignedGreaterThan, index, most);
        self.builder.ins().trapnz(outside, code);
        let dfg = &self.builder.func.dfg;
        let bound = bound.and_then(|(value, bound)| Some((dfg.value_def(value).inst()?, bound)));
        self.checks.learn((number, index), Check { end, bound, epoch });
        Ok(())
    }

    /// An unsigned number that an integer of up to 32 bits never exceeds.
    fn largest(&self, value: Value, depth: u32) -> u64 {
        let dfg = &self.builder.func.dfg;
        let value = dfg.resolve_aliases(value);
        let ones = |bits: u32| u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        let ty = dfg.value_type(value);
        if !ty.is_int() || ty.bits() > types::I32.bits() {
            return u64::MAX;
        }
        let any = ones(ty.bits());
        if let Some(constant) = self.constant_of(value) {
            return u64::from(constant) & any;
        }
        let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
            return any;
        };
        if depth == 0 {
            return any;
        }
        let largest = |value| self.largest(value, depth - 1);
        let bound = match dfg.insts[inst] {
            InstructionData::Load { opcode, .. } => match opcode {
                Opcode::Uload8 => ones(8),
                Opcode::Uload16 => ones(16),
                _ => any,
            },
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => 1,
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => largest(arg),
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [_, a, b],
            } => largest(a).max(largest(b)),
            InstructionData::Binary { opcode, args: [a, b] } if ty == types::I32 => match opcode {
                Opcode::Band => largest(a).min(largest(b)),
                Opcode::Bor | Opcode::Bxor => ones(64 - (largest(a) | largest(b)).leading_zeros()),
                // What is too large for the type has wrapped, and may be anything.
                Opcode::Iadd => largest(a).saturating_add(largest(b)),
                Opcode::Imul => largest(a).saturating_mul(largest(b)),
                Opcode::Ushr => match self.constant_of(b) {
                    Some(bits) => largest(a) >> (bits % types::I32.bits()),
                    None => largest(a),
                },
                Opcode::Ishl => match self.constant_of(b) {
                    Some(bits) => largest(a) << (bits % types::I32.bits()),
                    None => any,
                },
                Opcode::Urem => match self.constant_of(b) {
                    Some(divisor) => largest(a).min(u64::from(divisor.saturating_sub(1))),
                    None => largest(a),
                },
                Opcode::Udiv => match self.constant_of(b) {
                    Some(divisor) => largest(a).checked_div(u64::from(divisor)).unwrap_or(any),
                    None => largest(a),
                },
                _ => any,
            },
            _ => any,
        };
        if bound > any { any } else { bound }
    }

    /// A value that is not 0 if the address is no multiple of a power of two; `None` if it is known to be.
    pub fn may_be_misaligned(&mut self, align: u32, arg: &MemArg, index: Value) -> Option<Value> {
        let known = self.alignment(index, 8);
        let offset = arg.offset as u32;
        if align == 1 || (known >= align && offset.is_multiple_of(align)) {
            return None;
        }
        // Bases are multiples of a page.
        let odd = self.without_multiples(index, align);
        let address = if offset.is_multiple_of(align) {
            odd
        } else {
            self.add(odd, offset)
        };
        let mask = self.word(align - 1);
        Some(self.builder.ins().band(address, mask))
    }

    /// A value whose bits below a power of two are those of another: what is left of sums without the parts that are multiples of it.
    /// Elements of an array share it, and in a loop over them it does not change, so that the test leaves the loop.
    fn without_multiples(&self, value: Value, align: u32) -> Value {
        let dfg = &self.builder.func.dfg;
        let mut value = dfg.resolve_aliases(value);
        for _ in 0..DEPTH {
            let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
                break;
            };
            let InstructionData::Binary { opcode, args: [a, b] } = dfg.insts[inst] else {
                break;
            };
            let is_multiple = |value| self.alignment(value, DEPTH) >= align;
            let rest = match opcode {
                Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor if is_multiple(b) => a,
                Opcode::Iadd | Opcode::Bor | Opcode::Bxor if is_multiple(a) => b,
                _ => break,
            };
            value = dfg.resolve_aliases(rest);
        }
        value
    }

    /// A power of two up to 16 that the value is known to be a multiple of.
    fn alignment(&self, value: Value, depth: u32) -> u32 {
        const MOST: u32 = 16;
        let power = |bits: u32| 1 << bits.min(MOST.trailing_zeros());
        let dfg = &self.builder.func.dfg;
        let value = dfg.resolve_aliases(value);
        if depth == 0 {
            return 1;
        }
        if let Some(constant) = self.constant_of(value) {
            return power(constant.trailing_zeros());
        }
        let ValueDef::Result(inst, _) = dfg.value_def(value) else {
            return 1;
        };
        let InstructionData::Binary { opcode, args: [a, b] } = dfg.insts[inst] else {
            return 1;
        };
        let left = || self.alignment(a, depth - 1);
        let right = || self.alignment(b, depth - 1);
        match opcode {
            Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor => left().min(right()),
            Opcode::Band => left().max(right()),
            Opcode::Imul => (left() * right()).min(MOST),
            Opcode::Ishl => match self.constant_of(b) {
                Some(bits) => power(left().trailing_zeros() + bits % types::I32.bits()),
                None => left(),
            },
            _ => 1,
        }
    }
}

/// The memory of an access.
pub(crate) trait OfMemory {
    fn memory(&self) -> u32;
}

impl OfMemory for MemArg {
    fn memory(&self) -> u32 {
        match self.target {
            wasmparser::MemArgTarget::Memory(index) => index,
            // The validator lets this through for atomic accesses to arrays alone, which are refused.
            _ => u32::MAX,
        }
    }
}
