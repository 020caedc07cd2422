//! Atomic operations.

use crate::emit::emitter::{Emitter, Values};
use crate::emit::functions::Kind;
use crate::emit::pointer::{Memory, Place, Pointer};
use crate::error::{Error, Result};
use crate::layout::{Ty, register};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, MemFlagsData, Type, Value, types};
use naga::{AtomicFunction, ScalarKind};

impl Emitter<'_, '_> {
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
        let register = register(scalar, self.span)?;
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
        let exchanges = matches!(function, AtomicFunction::Exchange { compare: Some(_) });
        let results: &[Type] = match exchanges {
            false => &[register],
            true => &[register, types::I8],
        };
        self.guarded(guard, results, |emitter| {
            let address = emitter.displaced(base, offset);
            if let Some(compare) = compare {
                return Ok(emitter.compare_exchange(memory, address, compare, value));
            }
            let old = match scalar.kind {
                ScalarKind::Float => emitter.atomic_float(memory, address, function, value)?,
                kind => emitter.atomic_integer(memory, address, function, kind, value)?,
            };
            Ok(Values::from_elem(old, 1))
        })
    }

    fn compare_exchange(&mut self, memory: Memory, address: Value, compare: Value, value: Value) -> Values {
        let flags = self.flags(memory);
        let old = self.builder.ins().atomic_cas(flags, address, compare, value);
        let stored = self.builder.ins().icmp(IntCC::Equal, old, compare);
        Values::from_slice(&[old, stored])
    }

    fn atomic_integer(
        &mut self,
        memory: Memory,
        address: Value,
        function: AtomicFunction,
        kind: ScalarKind,
        value: Value,
    ) -> Result<Value> {
        let is_signed = kind == ScalarKind::Sint;
        let operation = match function {
            AtomicFunction::Add => AtomicRmwOp::Add,
            AtomicFunction::Subtract => AtomicRmwOp::Sub,
            AtomicFunction::And => AtomicRmwOp::And,
            AtomicFunction::ExclusiveOr => AtomicRmwOp::Xor,
            AtomicFunction::InclusiveOr => AtomicRmwOp::Or,
            AtomicFunction::Min if is_signed => AtomicRmwOp::Smin,
            AtomicFunction::Min => AtomicRmwOp::Umin,
            AtomicFunction::Max if is_signed => AtomicRmwOp::Smax,
            AtomicFunction::Max => AtomicRmwOp::Umax,
            AtomicFunction::Exchange { compare: None } => AtomicRmwOp::Xchg,
            AtomicFunction::Exchange { compare: Some(_) } => {
                return Err(Error::Internal("an exchange without a value to compare".to_owned()));
            }
        };
        let (flags, ty) = (self.flags(memory), self.dfg().value_type(value));
        Ok(self.builder.ins().atomic_rmw(ty, flags, operation, address, value))
    }

    /// Updates a float: exchanges its bits until they are those from which the new value is made.
    fn atomic_float(
        &mut self,
        memory: Memory,
        address: Value,
        function: AtomicFunction,
        value: Value,
    ) -> Result<Value> {
        let flags = self.flags(memory);
        let float = self.dfg().value_type(value);
        let bits = float.as_int();
        if let AtomicFunction::Exchange { compare: None } = function {
            let value = self.as_bits(value);
            let exchange = AtomicRmwOp::Xchg;
            let old = self.builder.ins().atomic_rmw(bits, flags, exchange, address, value);
            return Ok(self.as_register(old, float));
        }
        let first = self.builder.ins().atomic_load(bits, flags, address);
        let (head, after) = (self.builder.create_block(), self.builder.create_block());
        let expected = self.builder.append_block_param(head, bits);
        self.builder.ins().jump(head, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(head);
        let old = self.as_register(expected, float);
        let new = match function {
            AtomicFunction::Add => self.builder.ins().fadd(old, value),
            AtomicFunction::Subtract => self.builder.ins().fsub(old, value),
            AtomicFunction::Min => self.min(Kind::Float, old, value),
            AtomicFunction::Max => self.max(Kind::Float, old, value),
            other => return Err(self.unsupported(format!("the atomic operation {other:?} on floats"))),
        };
        let new = self.as_bits(new);
        let found = self.builder.ins().atomic_cas(flags, address, expected, new);
        let stored = self.builder.ins().icmp(IntCC::Equal, found, expected);
        self.builder
            .ins()
            .brif(stored, after, &[], head, &[BlockArg::Value(found)]);
        self.builder.seal_block(head);
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
        Ok(self.as_register(expected, float))
    }

    /// Returns the integer with the bits of a value.
    pub(super) fn as_bits(&mut self, value: Value) -> Value {
        let ty = self.dfg().value_type(value);
        match ty.is_float() {
            true => self.builder.ins().bitcast(ty.as_int(), MemFlagsData::new(), value),
            false => value,
        }
    }

    /// Returns the value of a register type with the bits of an integer.
    pub(super) fn as_register(&mut self, bits: Value, ty: Type) -> Value {
        match ty.is_float() {
            true => self.builder.ins().bitcast(ty, MemFlagsData::new(), bits),
            false => bits,
        }
    }
}
