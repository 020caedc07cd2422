//! Pointers, loads, stores and atomic operations.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::facts::constant;
use crate::emit::places::MAX_SELECTS;
use crate::emit::pointer::{Memory, Place, Pointer, Root, Step};
use crate::error::{Error, Result};
use crate::layout::{Ty, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, StackSlot, Type, Value, types};
use cranelift_frontend::Variable;
use naga::{AtomicFunction, GlobalVariable, Handle, Scalar, ScalarKind};
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
                let is_atomic = matches!(pointer.ty, Ty::Atomic(_));
                let mut registers = SmallVec::<[Type; 4]>::new();
                for (scalar, _) in &scalars {
                    registers.push(register(*scalar, self.span)?);
                }
                let (memory, base, offset) = (*memory, *base, *offset);
                self.guarded(*guard, &registers, |emitter| {
                    let mut values = Values::new();
                    for (scalar, at) in &scalars {
                        values.push(emitter.load_scalar(memory, base, offset + at, *scalar, is_atomic));
                    }
                    Ok(values)
                })
            }
        }
    }

    fn load_scalar(&mut self, memory: Memory, base: Value, offset: u32, scalar: Scalar, is_atomic: bool) -> Value {
        let flags = self.flags(memory);
        if is_atomic {
            let address = self.displaced(base, offset);
            return self.builder.ins().atomic_load(types::I32, flags, address);
        }
        match scalar.kind {
            ScalarKind::Bool => {
                let word = self.builder.ins().load(types::I32, flags, base, offset as i32);
                let zero = self.word(0);
                self.builder.ins().icmp(IntCC::NotEqual, word, zero)
            }
            ScalarKind::Float => self.builder.ins().load(types::F32, flags, base, offset as i32),
            _ => self.builder.ins().load(types::I32, flags, base, offset as i32),
        }
    }

    fn displaced(&mut self, base: Value, offset: u32) -> Value {
        match offset {
            0 => base,
            offset => {
                let offset = self.word(offset);
                self.builder.ins().iadd(base, offset)
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
                let is_atomic = matches!(pointer.ty, Ty::Atomic(_));
                let (memory, base, offset) = (*memory, *base, *offset);
                self.guarded(*guard, &[], |emitter| {
                    for ((scalar, at), value) in scalars.iter().zip(values) {
                        emitter.store_scalar(memory, base, offset + at, *scalar, *value, is_atomic);
                    }
                    Ok(Values::new())
                })?;
                Ok(())
            }
        }
    }

    fn store_scalar(
        &mut self,
        memory: Memory,
        base: Value,
        offset: u32,
        scalar: Scalar,
        value: Value,
        is_atomic: bool,
    ) {
        let flags = self.flags(memory);
        if is_atomic {
            let address = self.displaced(base, offset);
            self.builder.ins().atomic_store(flags, value, address);
            return;
        }
        let value = match scalar.kind {
            ScalarKind::Bool => self.builder.ins().uextend(types::I32, value),
            _ => value,
        };
        self.builder.ins().store(flags, value, base, offset as i32);
    }

    /// Emits code that runs if the guard holds. Its results are zero otherwise.
    fn guarded(
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

    /// Performs an atomic operation. Returns the old value, and for a compare-exchange also whether
    /// it stored. Out of range nothing happens, and the result is zero.
    pub(super) fn atomic(
        &mut self,
        pointer: &Pointer,
        function: AtomicFunction,
        value: Value,
        compare: Option<Value>,
    ) -> Result<Values> {
        let Ty::Atomic(scalar) = pointer.ty else {
            return Err(Error::Internal("an atomic operation on another type".to_owned()));
        };
        let is_signed = match (scalar.kind, scalar.width) {
            (ScalarKind::Sint, 4) => true,
            (ScalarKind::Uint, 4) => false,
            _ => return Err(self.unsupported("an atomic operation on another type than i32 and u32")),
        };
        let Place::Memory {
            memory,
            base,
            offset,
            guard,
            ..
        } = pointer.place
        else {
            return Err(Error::Internal("an atomic operation on a private variable".to_owned()));
        };
        let operation = match function {
            AtomicFunction::Add => Some(AtomicRmwOp::Add),
            AtomicFunction::Subtract => Some(AtomicRmwOp::Sub),
            AtomicFunction::And => Some(AtomicRmwOp::And),
            AtomicFunction::ExclusiveOr => Some(AtomicRmwOp::Xor),
            AtomicFunction::InclusiveOr => Some(AtomicRmwOp::Or),
            AtomicFunction::Min if is_signed => Some(AtomicRmwOp::Smin),
            AtomicFunction::Min => Some(AtomicRmwOp::Umin),
            AtomicFunction::Max if is_signed => Some(AtomicRmwOp::Smax),
            AtomicFunction::Max => Some(AtomicRmwOp::Umax),
            AtomicFunction::Exchange { compare: None } => Some(AtomicRmwOp::Xchg),
            AtomicFunction::Exchange { compare: Some(_) } => None,
        };
        let flags = self.flags(memory);
        let results: &[Type] = match operation {
            Some(_) => &[types::I32],
            None => &[types::I32, types::I8],
        };
        self.guarded(guard, results, |emitter| {
            let address = emitter.displaced(base, offset);
            let mut found = Values::new();
            match (operation, compare) {
                (Some(operation), _) => {
                    let ins = emitter.builder.ins();
                    found.push(ins.atomic_rmw(types::I32, flags, operation, address, value));
                }
                (None, Some(compare)) => {
                    let old = emitter.builder.ins().atomic_cas(flags, address, compare, value);
                    found.push(old);
                    found.push(emitter.builder.ins().icmp(IntCC::Equal, old, compare));
                }
                (None, None) => return Err(Error::Internal("an exchange without a value to compare".to_owned())),
            }
            Ok(found)
        })
    }
}
