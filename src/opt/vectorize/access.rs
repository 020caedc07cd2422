//! Loads and stores of a loop: first address, stride and alignment.

use crate::remarks::Reason;
use crate::spaces::{self, Space};
use clif_opt::edit;
use clif_opt::facts::{self, Assumptions};
use clif_opt::linear::{LinearOp, LinearSum};
use clif_opt::loops::{self, InductionVariable, NaturalLoop, Ranges};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstructionData, MemFlagsData, Opcode, StackSlot, Type, Value, types,
};
use npu_mc::machine::{CACHE_LINE, LANES};
use smallvec::SmallVec;

/// The extension of a narrow element by a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// No extension.
    None,
    /// Zero extension.
    Zeros,
    /// Sign extension.
    Sign,
}

/// The form of a vector access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One access to an aligned vector.
    Aligned,
    /// A load of the two aligned vectors, called lines, that contain the elements. The field is the
    /// index of the last element in its line, if it is constant.
    TwoLines(Option<u32>),
    /// One element at an invariant address.
    Invariant,
}

/// A test of alignment before the vector loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignmentCheck {
    /// The index of the access whose first address is tested.
    pub access: usize,
    /// The power of two, in bytes, that must divide the address.
    pub modulus: u32,
}

/// The conditions for the forms of the accesses of a loop.
#[derive(Debug, Default)]
pub struct Alignment {
    /// The tests before the vector loop: one for each base of unknown alignment.
    pub checks: Vec<AlignmentCheck>,
    /// The stack slots that must be aligned to cache lines.
    pub slots: Vec<StackSlot>,
}

/// A load or store.
#[derive(Clone, Debug)]
pub struct Access {
    /// The instruction.
    pub inst: Inst,
    /// Whether it is a store.
    pub store: bool,
    /// The type of an element in memory.
    pub element: Type,
    /// The extension of a loaded element.
    pub extension: Extension,
    /// The memory flags.
    pub flags: MemFlagsData,
    /// The address in the current iteration, in terms of the header's parameters and invariant
    /// values.
    pub near: LinearSum,
    /// The address in the first iteration: expanded as far as possible, with the parameters' values
    /// at loop entry.
    pub first: LinearSum,
    /// The stride in bytes per iteration.
    pub stride: i32,
    /// The form of the vector access.
    pub form: Form,
}

impl Access {
    /// Returns the size of an element in bytes.
    pub fn size(&self) -> u32 {
        self.element.bytes()
    }

    /// Returns the size of sixteen elements in bytes.
    pub fn bytes(&self) -> u32 {
        self.size() * LANES
    }

    /// Returns whether it is a load whose value never changes while the function runs.
    pub fn is_readonly(&self) -> bool {
        !self.store && self.flags.readonly()
    }

    /// Returns the stack slot that the address is based on.
    pub fn slot(&self, func: &Function) -> Option<StackSlot> {
        let mut slots = self.first.terms.iter().filter_map(|&(value, factor)| {
            let slot = slot_of(func, value)?;
            Some((slot, factor))
        });
        match (slots.next(), slots.next()) {
            (Some((slot, 1)), None) => Some(slot),
            _ => None,
        }
    }

    /// Returns the slot and the range of its bytes that the loop accesses in this number of
    /// iterations, if the range is known to be inside the slot.
    pub fn slot_range(&self, func: &Function, iterations: u64, ranges: &Ranges) -> Option<(StackSlot, i64, i64)> {
        let slot = self.slot(func)?;
        let (mut low, mut high) = (
            i64::from(self.first.constant.cast_signed()),
            i64::from(self.first.constant.cast_signed()),
        );
        for &(value, factor) in &self.first.terms {
            if slot_of(func, value).is_some() {
                continue;
            }
            let &(least, most) = ranges.get(&value)?;
            let factor = i64::from(factor.cast_signed());
            let ends = [least.checked_mul(factor)?, most.checked_mul(factor)?];
            low = low.checked_add(ends[0].min(ends[1]))?;
            high = high.checked_add(ends[0].max(ends[1]))?;
        }
        let distance = i64::from(self.stride).checked_mul(i64::try_from(iterations.saturating_sub(1)).ok()?)?;
        low = low.checked_add(distance.min(0))?;
        high = high.checked_add(distance.max(0))?.checked_add(self.size().into())?;
        let size = i64::from(func.sized_stack_slots[slot].size);
        (low >= 0 && high <= size).then_some((slot, low, high))
    }
}

/// Returns the slot if the value is its address.
fn slot_of(func: &Function, value: Value) -> Option<StackSlot> {
    match func.dfg.insts[func.dfg.value_def(value).inst()?] {
        InstructionData::StackAddr { stack_slot, offset, .. } if i32::from(offset) == 0 => Some(stack_slot),
        _ => None,
    }
}

/// The context of the analysis of accesses.
pub struct Addresses<'a> {
    /// The function.
    pub ctx: &'a Context,
    /// All loops of the function.
    pub loops: &'a [NaturalLoop],
    /// The current loop.
    pub lp: &'a NaturalLoop,
    /// The induction variables of the current loop.
    pub variables: &'a [InductionVariable],
}

impl Addresses<'_> {
    /// Returns the instruction as an access, or `None` if it is not an access.
    ///
    /// # Errors
    ///
    /// The reason why sixteen of the accesses cannot be combined.
    pub fn of(&self, inst: Inst) -> Result<Option<Access>, Reason> {
        let func = &self.ctx.func;
        let data = &func.dfg.insts[inst];
        let opcode = data.opcode();
        let value = |number: usize| func.dfg.value_type(func.dfg.inst_args(inst)[number]);
        let (store, element, extension) = match opcode {
            Opcode::Load => (false, func.dfg.ctrl_typevar(inst), Extension::None),
            Opcode::Store => (true, value(0), Extension::None),
            Opcode::Uload8 => (false, types::I8, Extension::Zeros),
            Opcode::Sload8 => (false, types::I8, Extension::Sign),
            Opcode::Uload16 => (false, types::I16, Extension::Zeros),
            Opcode::Sload16 => (false, types::I16, Extension::Sign),
            Opcode::Istore8 => (true, types::I8, Extension::None),
            Opcode::Istore16 => (true, types::I16, Extension::None),
            _ => return Ok(None),
        };
        let (InstructionData::Load { flags, offset, .. } | InstructionData::Store { flags, offset, .. }) = *data else {
            return Ok(None);
        };
        if !matches!(element, types::I8 | types::I16 | types::I32 | types::F32) {
            return Err(Reason::Element(element));
        }
        let in_scratchpad = spaces::of_flags(func, flags) == Space::Scratchpad;
        let flags = func.dfg.mem_flags[flags];
        if in_scratchpad || flags.explicit_endianness() == Some(Endianness::Big) {
            return Err(Reason::Memory(opcode));
        }
        let pointer = func.dfg.inst_args(inst)[usize::from(store)];
        let unknown = Reason::Address(opcode);
        if func.dfg.value_type(pointer) != types::I32 {
            return Err(unknown);
        }
        let opens = |inst: Inst, _: LinearOp| {
            func.layout
                .inst_block(inst)
                .is_some_and(|block| self.lp.contains(block))
        };
        let mut near = LinearSum::of(func, pointer, &opens).ok_or(unknown.clone())?;
        near.constant = near.constant.wrapping_add(i32::from(offset).cast_unsigned());
        let mut stride = 0u32;
        for &(value, factor) in &near.terms {
            if let Some(variable) = self.variables.iter().find(|variable| variable.param == value) {
                stride = stride.wrapping_add(factor.wrapping_mul(variable.step as u32));
            } else if !self.lp.is_invariant(func, value) {
                return Err(unknown);
            }
        }
        let stride = stride.cast_signed();
        let bytes = element.bytes();
        let form = match stride {
            0 if store => return Err(Reason::SameAddress),
            0 => Form::Invariant,
            _ if stride.cast_unsigned() == bytes => Form::Aligned,
            _ => return Err(Reason::Stride(stride, bytes)),
        };
        let mut first = self.first(&near).ok_or(unknown)?;
        first.terms.sort_unstable_by_key(|term| term.0);
        Ok(Some(Access {
            inst,
            store,
            element,
            extension,
            flags,
            near,
            first,
            stride,
            form,
        }))
    }

    /// Expands a sum at loop entry as far as possible.
    fn first(&self, sum: &LinearSum) -> Option<LinearSum> {
        let func = &self.ctx.func;
        let mut whole = LinearSum {
            constant: sum.constant,
            ..LinearSum::default()
        };
        for &(value, factor) in &sum.terms {
            let value = self.at_entry(value);
            let part = LinearSum::of(func, value, &|_, _| true)?;
            whole.constant = whole.constant.wrapping_add(part.constant.wrapping_mul(factor));
            for (value, inner) in part.terms {
                let factor = inner.wrapping_mul(factor);
                match whole.terms.iter_mut().find(|term| term.0 == value) {
                    Some(term) => term.1 = term.1.wrapping_add(factor),
                    None => whole.terms.push((value, factor)),
                }
            }
        }
        whole.terms.retain(|term| term.1 != 0);
        Some(whole)
    }

    /// Returns the value of a header parameter at loop entry, if the loop has one entry.
    pub fn at_entry(&self, value: Value) -> Value {
        let func = &self.ctx.func;
        let &[entry] = self.lp.entries.as_slice() else {
            return value;
        };
        let args = edit::args(func, entry).unwrap_or_default();
        let params = func.dfg.block_params(self.lp.header).iter();
        let found = params.zip(args).find(|(param, _)| **param == value);
        found.map_or(value, |(_, arg)| func.dfg.resolve_aliases(arg))
    }

    /// Returns the largest power of two, up to the size of a cache line, that divides the terms of
    /// a sum without its constant. Stack slots count as aligned to cache lines; slots that the
    /// result relies on are appended to `slots`.
    pub fn alignment(&self, sum: &LinearSum, slots: &mut Vec<StackSlot>) -> u32 {
        let mut assumptions = OuterLoops { addresses: self, slots };
        let mut least = u64::from(CACHE_LINE);
        for &(value, factor) in &sum.terms {
            let own = facts::alignment(&self.ctx.func, value, &mut assumptions);
            least = least.min(own * facts::power_of_two_factor(factor.into()));
        }
        least as u32
    }

    /// Returns whether the residue of a term modulo `bytes` may differ between executions of the
    /// loop.
    fn varies(&self, sum: &LinearSum, bytes: u32) -> bool {
        let func = &self.ctx.func;
        sum.terms.iter().any(|term| {
            let one = LinearSum {
                terms: SmallVec::from_slice(&[*term]),
                constant: 0,
            };
            let inside = self
                .ctx
                .loop_analysis
                .innermost_loop(loops::defining_block(func, term.0))
                .is_some();
            inside && self.alignment(&one, &mut Vec::new()) < bytes
        })
    }

    /// Chooses the form of each access, and the alignment tests that the forms require.
    ///
    /// Accesses with equal terms differ by constants, so one test of a base determines the
    /// alignment of all of them. The test covers the widest vector on that base, because alignment
    /// to a narrower vector does not imply alignment to a wider one.
    ///
    /// # Errors
    ///
    /// [`Reason::Alignment`] if an access has no form.
    pub fn choose_forms(&self, accesses: &mut [Access]) -> Result<Alignment, Reason> {
        let mut found = Alignment::default();
        // Stores come first, because they have no unaligned form.
        let mut order: Vec<usize> = (0..accesses.len()).collect();
        order.sort_by_key(|&number| !accesses[number].store);
        for number in order {
            let access = &accesses[number];
            if access.form == Form::Invariant {
                continue;
            }
            let bytes = access.bytes();
            let terms = LinearSum {
                constant: 0,
                ..access.first.clone()
            };
            let known = self.alignment(&terms, &mut found.slots);
            // The offset in bytes of the access from a multiple of its vector size; `None` if it is
            // known only at run time.
            let position = if known >= bytes {
                Some(access.first.constant & (bytes - 1))
            } else if self.varies(&terms, bytes) {
                None
            } else {
                Some(position_by_check(accesses, number, &mut found.checks))
            };
            let size = access.size();
            let in_elements = match position {
                Some(position) => position.is_multiple_of(size),
                None => {
                    access.flags.aligned()
                        || u64::from(known).min(facts::power_of_two_factor(access.first.constant.into())) >= size.into()
                }
            };
            let form = match position {
                Some(0) => Form::Aligned,
                _ if access.store || !in_elements => {
                    return Err(Reason::Alignment(self.ctx.func.dfg.insts[access.inst].opcode()));
                }
                // The index of the last element in its line.
                _ => Form::TwoLines(position.map(|position| (position / size + LANES - 1) % LANES)),
            };
            accesses[number].form = form;
        }
        found.slots.sort_unstable();
        found.slots.dedup();
        Ok(found)
    }
}

/// Returns the offset in bytes from a multiple of the vector size under the alignment tests. Adds a
/// test, or strengthens the test of the same base.
fn position_by_check(accesses: &[Access], number: usize, checks: &mut Vec<AlignmentCheck>) -> u32 {
    let access = &accesses[number];
    let bytes = access.bytes();
    let same_base = |check: &&mut AlignmentCheck| accesses[check.access].first.terms == access.first.terms;
    let Some(check) = checks.iter_mut().find(same_base) else {
        checks.push(AlignmentCheck {
            access: number,
            modulus: bytes,
        });
        return 0;
    };
    let distance = access
        .first
        .constant
        .wrapping_sub(accesses[check.access].first.constant);
    if check.modulus < bytes {
        if distance.is_multiple_of(check.modulus) {
            // The access tested before stays aligned if this one is aligned.
            check.access = number;
        }
        check.modulus = bytes;
    }
    let tested = accesses[check.access].first.constant;
    access.first.constant.wrapping_sub(tested) & (bytes - 1)
}

/// Stack slots are aligned to cache lines, and parameters of outer loops are induction variables.
struct OuterLoops<'a, 'b> {
    addresses: &'a Addresses<'b>,
    /// The slots that the result relies on.
    slots: &'a mut Vec<StackSlot>,
}

impl Assumptions for OuterLoops<'_, '_> {
    fn slot(&mut self, slot: StackSlot) -> u64 {
        self.slots.push(slot);
        CACHE_LINE.into()
    }

    fn induction_variable(&self, block: Block, number: usize) -> Option<(Vec<Value>, u64)> {
        let addresses = self.addresses;
        let func = &addresses.ctx.func;
        let outer = addresses.loops.iter();
        let outer = outer
            .filter(|lp| lp.id != addresses.lp.id)
            .find(|lp| lp.header == block)?;
        let argument = |branch| edit::args(func, branch)?.get(number).copied();
        let (root, step) = loops::split_offset(func, argument(outer.back_edge)?);
        let starts: Option<Vec<Value>> = outer.entries.iter().map(|&entry| argument(entry)).collect();
        (root == func.dfg.block_params(block)[number]).then_some((starts?, step))
    }
}
