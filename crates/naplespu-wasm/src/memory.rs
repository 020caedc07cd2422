//! Accesses to linear memory: addresses, bounds and alignment.
//!
//! An access to `index + offset` is in bounds if `index` is at most the memory size minus the
//! offset and the bytes of the access. One compare checks this, since a memory is never smaller
//! than its initial size. Later accesses to the same index in dominated code need no check if they
//! reach no further. If they reach further, they increase the bound of the first check, provided no
//! observable effect lies in between. An index that is small by its operations (a mask, a shift, a
//! loaded byte) needs no check below the minimum size.
//!
//! The alignment hint of an instruction guarantees nothing, and the machine has no unaligned
//! access. Therefore an address of unknown alignment is tested, and rare unaligned accesses take an
//! out-of-line path by bytes. The test covers only the part of the address with unknown alignment:
//! the test of `list + 4 * at` is a test of `list`.

use crate::config::PAGE;
use crate::emit::{Emitter, Region};
use crate::error::Result;
use clif_opt::facts::{self, Assumptions};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    BlockArg, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, StackSlot, TrapCode, Type, Value, ValueDef,
    types,
};
use std::collections::HashMap;
use wasmparser::MemArg;

/// Offsets up to this one stay in the instruction, so that all accesses to a structure share an
/// address.
const SHARED_OFFSETS: u32 = 0xff;

/// The maximum number of terms of an index that are removed for their alignment.
const MAX_TERMS: u32 = 6;

/// A check that dominates the current position.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// The largest distance in bytes from the index to the end of a checked access.
    end: u64,
    /// The constant of the check, and how it depends on `end`.
    bound: Option<(Inst, Bound)>,
    /// The number of effects before it.
    epoch: u32,
}

/// How the constant of a check depends on `end`.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// The size of the memory minus `end`; the field is the size in bytes.
    Rest(u64),
    /// The end itself, which the code subtracts from the size of the memory.
    End,
}

/// The checks that dominate the current position.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    known: HashMap<(u32, Value), Check>,
    /// The previous check of an index for each change, oldest first. Copies of all checks for each
    /// block would make translation quadratic in the length of a function.
    journal: Vec<((u32, Value), Option<Check>)>,
    epoch: u32,
}

/// A position in the journal of checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl Checks {
    /// Records an observable effect or a branch; later checks cannot move before it.
    pub fn effect(&mut self) {
        self.epoch += 1;
    }

    /// Returns the current position, for [`Checks::back_to`].
    pub fn place(&self) -> Place {
        Place(self.journal.len())
    }

    /// Returns to the checks at `place`, in code that is only reachable through that position.
    /// Memories never shrink and values never change, so those checks hold there, including in
    /// every iteration of a loop. Places are restored in the order of blocks, inner ones first.
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
    /// The CLIF instruction.
    pub opcode: Opcode,
    /// The type of the value.
    pub ty: Type,
    /// The size in memory, in bytes.
    pub bytes: u32,
}

impl Access {
    /// Returns the alignment that the access needs, in bytes. Scalars of several words are accessed
    /// by words.
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
        // The opcode of an extending vector load determines the lanes; its type is the address's.
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

    /// Returns the address in the device's memory, as a value and an offset, after the bounds
    /// check.
    pub fn address(&mut self, access: Access, arg: &MemArg, index: Value) -> Result<(Value, i32)> {
        let memory = self.memory(arg.memory())?;
        if self.env.config.bounds_checks {
            self.check(arg, access.bytes, index)?;
        }
        // An offset outside every memory has trapped already, so truncation is safe.
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

    /// Traps if the access is out of bounds.
    fn check(&mut self, arg: &MemArg, bytes: u32, index: Value) -> Result<()> {
        let number = arg.memory();
        let memory = self.memory(number)?;
        let end = arg.offset.saturating_add(u64::from(bytes));
        let least = u64::from(memory.limits.min) * u64::from(PAGE);
        let index = self.builder.func.dfg.resolve_aliases(index);
        // `end` is compared first: most memories are too small for an index without a known bound.
        if end <= least && facts::largest(self.builder.func, index) <= least - end {
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
            // Every index is out of bounds, however the memory grows.
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

    /// Returns a value that is nonzero if the address is not a multiple of `align`, or `None` if it
    /// is known to be aligned.
    pub fn may_be_misaligned(&mut self, align: u32, arg: &MemArg, index: Value) -> Option<Value> {
        let known = self.alignment(index);
        let offset = arg.offset as u32;
        if align == 1 || (known >= align.into() && offset.is_multiple_of(align)) {
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

    /// Returns a value with the same low bits (below `align`, a power of two): the sum without its
    /// terms that are multiples of `align`. All elements of an array share it. In a loop over the
    /// elements it is loop-invariant, so that the test moves out of the loop.
    fn without_multiples(&self, value: Value, align: u32) -> Value {
        let dfg = &self.builder.func.dfg;
        let mut value = dfg.resolve_aliases(value);
        for _ in 0..MAX_TERMS {
            let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
                break;
            };
            let InstructionData::Binary { opcode, args: [a, b] } = dfg.insts[inst] else {
                break;
            };
            let is_multiple = |value| self.alignment(value) >= align.into();
            let rest = match opcode {
                Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor if is_multiple(b) => a,
                Opcode::Iadd | Opcode::Bor | Opcode::Bxor if is_multiple(a) => b,
                _ => break,
            };
            value = dfg.resolve_aliases(rest);
        }
        value
    }

    /// Returns the largest power of two that the value is known to be a multiple of.
    fn alignment(&self, value: Value) -> u64 {
        facts::alignment(self.builder.func, value, &mut NoSlots)
    }
}

/// The translator creates no stack slots whose addresses are indices.
struct NoSlots;

impl Assumptions for NoSlots {
    fn slot(&mut self, _: StackSlot) -> u64 {
        1
    }
}

/// The memory index of an access.
pub(crate) trait OfMemory {
    fn memory(&self) -> u32;
}

impl OfMemory for MemArg {
    fn memory(&self) -> u32 {
        match self.target {
            wasmparser::MemArgTarget::Memory(index) => index,
            // The validator accepts this only for atomic accesses to arrays, which are refused.
            _ => u32::MAX,
        }
    }
}
