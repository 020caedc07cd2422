//! Pointers, loads and stores.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::facts::constant;
use crate::emit::places::MAX_SELECTS;
use crate::emit::pointer::{Memory, Place, Pointer, Root, Step};
use crate::error::{Error, Result};
use crate::layout::{Ty, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlot, Type, Value, types};
use cranelift_frontend::Variable;
use naga::{GlobalVariable, Handle};
use smallvec::SmallVec;
use std::rc::Rc;

/// The largest number of words that are cleared without a loop.
const MAX_UNROLLED: u32 = 16;

impl Emitter<'_, '_> {
    /// Returns the address of a variable.
    pub(super) fn pointer_to(&mut self, root: &Root, ty: Ty, global: Option<Handle<GlobalVariable>>) -> Pointer {
        let in_memory = |memory, base| Place::Memory {
            memory,
            base,
            offset: 0,
            guard: None,
            global,
        };
        let place = match root {
            Root::Registers(variables) => Place::Registers {
                variables: variables.clone(),
                first: 0,
                steps: SmallVec::new(),
            },
            Root::Stack(slot) => {
                let base = self.builder.ins().stack_addr(types::I32, *slot, 0);
                in_memory(Memory::Stack, base)
            }
            Root::Workgroup(address) => {
                let base = self.word(*address);
                in_memory(Memory::Workgroup, base)
            }
            Root::Buffer { address, is_read_only } => in_memory(
                Memory::Buffer {
                    is_read_only: *is_read_only,
                },
                *address,
            ),
        };
        Pointer { ty, place }
    }

    /// Returns the address of an element or member with a constant index.
    pub(super) fn member(&mut self, pointer: &Pointer, index: u32) -> Result<Pointer> {
        let ty = self.types.element(pointer.ty, index, self.span)?;
        let known = self.types.elements(pointer.ty);
        if known.is_none() && index > 0 {
            let index = self.word(index);
            return self.indexed(pointer, index);
        }
        if known.is_some_and(|count| index >= count) {
            return Err(Error::Internal(format!("the constant index {index} is out of range")));
        }
        let mut place = pointer.place.clone();
        match &mut place {
            Place::Registers { first, .. } => *first += self.types.first_scalar(pointer.ty, index, self.span)?,
            Place::Memory { memory, offset, .. } => {
                *offset += self.types.offset(pointer.ty, index, memory.layout(), self.span)?;
            }
        }
        Ok(Pointer { ty, place })
    }

    /// Returns the address of an element with a dynamic index. The index is checked or clamped
    /// unless its bound is less than the number of elements.
    pub(super) fn indexed(&mut self, pointer: &Pointer, index: Value) -> Result<Pointer> {
        let known = self.types.elements(pointer.ty);
        if let (Some(index), Some(count)) = (constant(self.dfg(), index), known)
            && index < count
        {
            return self.member(pointer, index);
        }
        let ty = self.types.element(pointer.ty, 0, self.span)?;
        let mut place = pointer.place.clone();
        match &mut place {
            Place::Registers { steps, .. } => {
                let count = known.unwrap_or(0);
                let stride = self.types.count(ty, self.span)?;
                steps.push(Step { index, count, stride });
            }
            Place::Memory {
                memory,
                base,
                guard,
                global,
                ..
            } => {
                let index = match (known, *memory) {
                    (Some(count), Memory::Stack) => self.clamped(index, count),
                    (Some(count), _) => {
                        let count = self.word(count);
                        self.guard(guard, index, count);
                        index
                    }
                    (None, _) => {
                        let length = global.and_then(|global| self.lengths.get(&global).copied());
                        let Some(length) = length else {
                            return Err(Error::Internal("an array without a length".to_owned()));
                        };
                        self.guard(guard, index, length);
                        index
                    }
                };
                let stride = self.types.stride(pointer.ty, memory.layout(), self.span)?;
                let distance = self.scaled(index, stride);
                *base = self.builder.ins().iadd(*base, distance);
            }
        }
        Ok(Pointer { ty, place })
    }

    /// Returns an index multiplied with a constant.
    fn scaled(&mut self, index: Value, factor: u32) -> Value {
        if factor.is_power_of_two() {
            let shift = self.word(factor.trailing_zeros());
            return self.builder.ins().ishl(index, shift);
        }
        let factor = self.word(factor);
        self.builder.ins().imul(index, factor)
    }

    /// Returns an index that is less than `count`.
    fn clamped(&mut self, index: Value, count: u32) -> Value {
        let last = self.word(count.saturating_sub(1));
        if self.facts.bound(self.dfg(), index) < count {
            return index;
        }
        self.builder.ins().umin(index, last)
    }

    /// Adds the condition `index < length` to a guard.
    fn guard(&mut self, guard: &mut Option<Value>, index: Value, length: Value) {
        if self.facts.is_less(self.dfg(), index, length) {
            return;
        }
        let fits = self.builder.ins().icmp(IntCC::UnsignedLessThan, index, length);
        *guard = Some(match *guard {
            Some(before) => self.builder.ins().band(before, fits),
            None => fits,
        });
    }

    /// Returns the length of the array that a pointer to an array that is sized at run time has.
    pub(super) fn array_length(&mut self, pointer: &Pointer) -> Result<Value> {
        if let Some(count) = self.types.elements(pointer.ty) {
            return Ok(self.word(count));
        }
        let length = pointer.global().and_then(|global| self.lengths.get(&global));
        length
            .copied()
            .ok_or_else(|| Error::Internal("an array without a length".to_owned()))
    }

    /// Loads a value. Elements out of range are zero in buffers and workgroup memory.
    pub(super) fn load(&mut self, pointer: &Pointer) -> Result<Values> {
        match &pointer.place {
            Place::Registers {
                variables,
                first,
                steps,
            } => {
                let count = self.types.count(pointer.ty, self.span)?;
                Ok(self.pick(variables, *first, count, steps))
            }
            Place::Memory {
                memory,
                base,
                offset,
                guard,
                ..
            } => {
                let scalars = self.types.scalars(pointer.ty, memory.layout(), self.span)?;
                let mut registers = SmallVec::<[Type; 4]>::new();
                for (scalar, _) in &scalars {
                    registers.push(register(*scalar, self.span)?);
                }
                let location = self.location(*memory, *base, *offset, pointer.ty)?;
                self.guarded(*guard, &registers, |emitter| emitter.load_scalars(location, &scalars))
            }
        }
    }

    /// Stores a value. A store out of range is skipped, or goes to another element of a private
    /// array.
    pub(super) fn store(&mut self, pointer: &Pointer, values: &Values) -> Result<()> {
        match &pointer.place {
            Place::Registers {
                variables,
                first,
                steps,
            } => {
                self.put(variables, *first, values, steps, None);
                Ok(())
            }
            Place::Memory {
                memory,
                base,
                offset,
                guard,
                ..
            } => {
                let scalars = self.types.scalars(pointer.ty, memory.layout(), self.span)?;
                let location = self.location(*memory, *base, *offset, pointer.ty)?;
                self.guarded(*guard, &[], |emitter| {
                    emitter.store_scalars(location, &scalars, values)?;
                    Ok(Values::new())
                })?;
                Ok(())
            }
        }
    }

    /// Emits code that runs if the guard holds. Its results are zero otherwise.
    pub(super) fn guarded(
        &mut self,
        guard: Option<Value>,
        results: &[Type],
        inner: impl FnOnce(&mut Self) -> Result<Values>,
    ) -> Result<Values> {
        let Some(guard) = guard else {
            return inner(self);
        };
        let mut zeros = SmallVec::<[BlockArg; 4]>::new();
        for ty in results {
            zeros.push(BlockArg::Value(self.zero(*ty)));
        }
        let (then, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(guard, then, &[], after, &zeros);
        self.builder.switch_to_block(then);
        self.builder.seal_block(then);
        let values = inner(self)?;
        let values: SmallVec<[BlockArg; 4]> = values.into_iter().map(BlockArg::Value).collect();
        self.builder.ins().jump(after, &values);
        let mut found = Values::new();
        for ty in results {
            found.push(self.builder.append_block_param(after, *ty));
        }
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
        Ok(found)
    }

    /// Loads variables in registers. A dynamic index selects among all elements.
    fn pick(&mut self, variables: &Rc<[Variable]>, first: u32, count: u32, steps: &[Step]) -> Values {
        let Some((step, rest)) = steps.split_first() else {
            let range = first as usize..(first + count) as usize;
            let found = variables.get(range).unwrap_or_default();
            return found.iter().map(|one| self.builder.use_var(*one)).collect();
        };
        let mut found = self.pick(variables, first, count, rest);
        for element in 1..step.count {
            let other = self.pick(variables, first + element * step.stride, count, rest);
            let element = self.word(element);
            let is_it = self.builder.ins().icmp(IntCC::Equal, step.index, element);
            for (value, other) in found.iter_mut().zip(other) {
                *value = self.builder.ins().select(is_it, other, *value);
            }
        }
        found
    }

    /// Stores variables in registers, those whose dynamic indices match.
    fn put(
        &mut self,
        variables: &Rc<[Variable]>,
        first: u32,
        values: &Values,
        steps: &[Step],
        condition: Option<Value>,
    ) {
        let Some((step, rest)) = steps.split_first() else {
            let range = first as usize..first as usize + values.len();
            for (variable, &value) in variables.get(range).unwrap_or_default().iter().zip(values) {
                let value = match condition {
                    Some(condition) => {
                        let old = self.builder.use_var(*variable);
                        self.builder.ins().select(condition, value, old)
                    }
                    None => value,
                };
                self.builder.def_var(*variable, value);
            }
            return;
        };
        for element in 0..step.count {
            let number = self.word(element);
            let is_it = self.builder.ins().icmp(IntCC::Equal, step.index, number);
            let both = match condition {
                Some(condition) => self.builder.ins().band(condition, is_it),
                None => is_it,
            };
            self.put(variables, first + element * step.stride, values, rest, Some(both));
        }
    }

    /// Returns an element of a value with a dynamic index.
    pub(super) fn element(&mut self, ty: Ty, values: &Values, index: Value) -> Result<Values> {
        let element = self.types.element(ty, 0, self.span)?;
        let size = self.types.count(element, self.span)? as usize;
        let count = self.types.elements(ty).unwrap_or(0);
        if let Some(index) = constant(self.dfg(), index) {
            let first = index.min(count.saturating_sub(1)) as usize * size;
            return Ok(values.iter().skip(first).take(size).copied().collect());
        }
        if count > MAX_SELECTS {
            let slot = self.spill(ty, values)?;
            return self.element_of_slot(ty, slot, index);
        }
        let mut found: Values = values.iter().take(size).copied().collect();
        for element in 1..count {
            let number = self.word(element);
            let is_it = self.builder.ins().icmp(IntCC::Equal, index, number);
            for (value, other) in found.iter_mut().zip(values.iter().skip(element as usize * size)) {
                *value = self.builder.ins().select(is_it, *other, *value);
            }
        }
        Ok(found)
    }

    /// Loads an element of an array on the stack.
    pub(super) fn element_of_slot(&mut self, ty: Ty, slot: StackSlot, index: Value) -> Result<Values> {
        let pointer = self.pointer_to(&Root::Stack(slot), ty, None);
        let element = self.indexed(&pointer, index)?;
        self.load(&element)
    }

    /// Zeroes a stack slot.
    pub(super) fn clear(&mut self, slot: StackSlot, words: u32) {
        let zero = self.word(0);
        let flags = self.flags(Memory::Stack);
        let base = self.builder.ins().stack_addr(types::I32, slot, 0);
        if words <= MAX_UNROLLED {
            for word in 0..words {
                self.builder.ins().store(flags, zero, base, word as i32 * 4);
            }
            return;
        }
        let (head, after) = (self.builder.create_block(), self.builder.create_block());
        let at = self.builder.append_block_param(head, types::I32);
        self.builder.ins().jump(head, &[BlockArg::Value(zero)]);
        self.builder.switch_to_block(head);
        let address = self.builder.ins().iadd(base, at);
        self.builder.ins().store(flags, zero, address, 0);
        let (four, end) = (self.word(4), self.word(words * 4));
        let next = self.builder.ins().iadd(at, four);
        let goes_on = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.builder
            .ins()
            .brif(goes_on, head, &[BlockArg::Value(next)], after, &[]);
        self.builder.seal_block(head);
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
    }
}
