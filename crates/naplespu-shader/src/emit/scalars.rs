//! Loads and stores of scalars, by their types and the layout of the memory.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::pointer::Memory;
use crate::error::Result;
use crate::layout::{Layout, Ty, is_half, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use naga::{Scalar, ScalarKind};

/// The place of a value in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    memory: Memory,
    base: Value,
    offset: u32,
    is_atomic: bool,
    /// Whether the address is a multiple of 4, so that a word can be two halves.
    is_word: bool,
}

impl Emitter<'_, '_> {
    /// Returns the place of a value of a type.
    pub(super) fn location(&self, memory: Memory, base: Value, offset: u32, ty: Ty) -> Result<Location> {
        Ok(Location {
            memory,
            base,
            offset,
            is_atomic: matches!(ty, Ty::Atomic(_)),
            is_word: self.types.host_alignment(ty, self.span)? >= 4,
        })
    }

    /// Loads scalars, which have these offsets.
    pub(super) fn load_scalars(&mut self, location: Location, scalars: &[(Scalar, u32)]) -> Result<Values> {
        let mut values = Values::new();
        // The last word of two halves, and its offset.
        let mut last: Option<(u32, Value)> = None;
        for &(scalar, at) in scalars {
            if !(is_half(scalar) && location.memory.layout() == Layout::Host) {
                values.push(self.load_scalar(location, at, scalar)?);
                continue;
            }
            let flags = self.flags(location.memory);
            let half = if location.is_word {
                let first = at & !3;
                let word = match last {
                    Some((offset, word)) if offset == first => word,
                    _ => {
                        let offset = location.offset.saturating_add(first) as i32;
                        self.builder.ins().load(types::I32, flags, location.base, offset)
                    }
                };
                last = Some((first, word));
                // The conversion ignores the upper half.
                match at % 4 {
                    0 => word,
                    _ => {
                        let shift = self.word(16);
                        self.builder.ins().ushr(word, shift)
                    }
                }
            } else {
                let offset = location.offset.saturating_add(at) as i32;
                self.builder.ins().uload16(types::I32, flags, location.base, offset)
            };
            values.push(self.of_half(half)?);
        }
        Ok(values)
    }

    fn load_scalar(&mut self, location: Location, at: u32, scalar: Scalar) -> Result<Value> {
        let flags = self.flags(location.memory);
        let offset = location.offset.saturating_add(at);
        let register = register(scalar, self.span)?;
        if location.is_atomic {
            let address = self.displaced(location.base, offset);
            let found = self.builder.ins().atomic_load(register.as_int(), flags, address);
            return Ok(self.as_register(found, register));
        }
        let offset = offset as i32;
        if scalar.kind == ScalarKind::Bool {
            let word = self.builder.ins().load(types::I32, flags, location.base, offset);
            let zero = self.word(0);
            return Ok(self.builder.ins().icmp(IntCC::NotEqual, word, zero));
        }
        Ok(self.builder.ins().load(register, flags, location.base, offset))
    }

    /// Stores scalars, which have these offsets.
    pub(super) fn store_scalars(
        &mut self,
        location: Location,
        scalars: &[(Scalar, u32)],
        values: &Values,
    ) -> Result<()> {
        let mut all = scalars.iter().copied().zip(values.iter().copied()).peekable();
        while let Some(((scalar, at), value)) = all.next() {
            if !(is_half(scalar) && location.memory.layout() == Layout::Host) {
                self.store_scalar(location, at, scalar, value);
                continue;
            }
            let flags = self.flags(location.memory);
            let offset = location.offset.saturating_add(at) as i32;
            let low = self.half_of(value)?;
            let is_pair = |&((other, after), _): &((Scalar, u32), Value)| is_half(other) && after == at + 2;
            if location.is_word
                && at % 4 == 0
                && let Some((_, high)) = all.next_if(is_pair)
            {
                let high = self.half_of(high)?;
                let shift = self.word(16);
                let high = self.builder.ins().ishl(high, shift);
                let word = self.builder.ins().bor(low, high);
                self.builder.ins().store(flags, word, location.base, offset);
            } else {
                self.builder.ins().istore16(flags, low, location.base, offset);
            }
        }
        Ok(())
    }

    fn store_scalar(&mut self, location: Location, at: u32, scalar: Scalar, value: Value) {
        let flags = self.flags(location.memory);
        let offset = location.offset.saturating_add(at);
        if location.is_atomic {
            let address = self.displaced(location.base, offset);
            let value = self.as_bits(value);
            self.builder.ins().atomic_store(flags, value, address);
            return;
        }
        let value = match scalar.kind {
            ScalarKind::Bool => self.builder.ins().uextend(types::I32, value),
            _ => value,
        };
        self.builder.ins().store(flags, value, location.base, offset as i32);
    }

    pub(super) fn displaced(&mut self, base: Value, offset: u32) -> Value {
        match offset {
            0 => base,
            offset => {
                let offset = self.word(offset);
                self.builder.ins().iadd(base, offset)
            }
        }
    }
}
