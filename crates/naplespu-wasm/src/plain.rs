//! Translates scalar instructions that neither branch nor call.

use crate::body::Body;
use crate::error::Result;
use crate::memory::Access;
use crate::traps;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Opcode, Type, Value, types};
use types::{F32, F64, I8, I16, I32, I64};
use wasmparser::{MemArg, Operator};

impl Body<'_, '_, '_, '_, '_> {
    fn unary(&mut self, make: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value) -> Value) -> Result<()> {
        let a = self.pop()?;
        let value = make(self.emitter.builder.ins(), a);
        self.push(value);
        Ok(())
    }

    fn binary(
        &mut self,
        make: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value, Value) -> Value,
    ) -> Result<()> {
        let (b, a) = (self.pop()?, self.pop()?);
        let value = make(self.emitter.builder.ins(), a, b);
        self.push(value);
        Ok(())
    }

    /// Translates a division or remainder, which may trap.
    fn division(
        &mut self,
        make: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value, Value) -> Value,
    ) -> Result<()> {
        self.emitter.checks.effect();
        self.binary(make)
    }

    fn icmp(&mut self, cc: IntCC) -> Result<()> {
        let (b, a) = (self.pop()?, self.pop()?);
        let condition = self.emitter.compare(cc, a, b);
        self.push_condition(condition);
        Ok(())
    }

    fn fcmp(&mut self, cc: FloatCC) -> Result<()> {
        let (b, a) = (self.pop()?, self.pop()?);
        let condition = self.emitter.builder.ins().fcmp(cc, a, b);
        self.push_condition(condition);
        Ok(())
    }

    fn eqz(&mut self, ty: Type) -> Result<()> {
        let a = self.pop()?;
        let zero = self.emitter.builder.ins().iconst(ty, 0);
        let condition = self.emitter.compare(IntCC::Equal, a, zero);
        self.push_condition(condition);
        Ok(())
    }

    /// Sign-extends the low bits.
    fn sign(&mut self, from: Type, to: Type) -> Result<()> {
        self.unary(|ins, a| ins.ireduce(from, a))?;
        self.unary(|ins, a| ins.sextend(to, a))
    }

    /// Truncates a float to an integer; traps if the result is out of range.
    fn truncate(&mut self, ty: Type, signed: bool) -> Result<()> {
        self.emitter.checks.effect();
        self.unary(|ins, a| {
            if signed {
                ins.fcvt_to_sint(ty, a)
            } else {
                ins.fcvt_to_uint(ty, a)
            }
        })
    }

    fn load(&mut self, arg: &MemArg, opcode: Opcode, ty: Type, bytes: u32) -> Result<()> {
        let index = self.pop()?;
        let value = self.emitter.load(Access { opcode, ty, bytes }, arg, index)?;
        self.push(value);
        Ok(())
    }

    fn store(&mut self, arg: &MemArg, opcode: Opcode, ty: Type, bytes: u32) -> Result<()> {
        let (value, index) = (self.pop()?, self.pop()?);
        self.emitter.store(Access { opcode, ty, bytes }, arg, index, value)
    }

    /// Pops three operands; the last is on top of the stack.
    fn three(&mut self) -> Result<[Value; 3]> {
        let [c, b, a] = [self.pop()?, self.pop()?, self.pop()?];
        Ok([a, b, c])
    }

    /// Pushes the two halves of a 128-bit value.
    fn push_halves(&mut self, value: Value) {
        let (low, high) = self.emitter.builder.ins().isplit(value);
        self.push(low);
        self.push(high);
    }

    pub fn plain(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I32Const { value } => {
                let value = self.emitter.word(*value as u32);
                self.push(value);
            }
            Operator::I64Const { value } => {
                let value = self.emitter.builder.ins().iconst(I64, *value);
                self.push(value);
            }
            Operator::F32Const { value } => {
                let value = self.emitter.builder.ins().f32const(Ieee32::with_bits(value.bits()));
                self.push(value);
            }
            Operator::F64Const { value } => {
                let value = self.emitter.builder.ins().f64const(Ieee64::with_bits(value.bits()));
                self.push(value);
            }
            Operator::GlobalGet { global_index } => {
                let value = self.emitter.global_get(*global_index)?;
                self.push(value);
            }
            Operator::GlobalSet { global_index } => {
                let value = self.pop()?;
                let value = self.emitter.settled(value);
                self.emitter.checks.effect();
                self.emitter.global_set(*global_index, value)?;
            }
            Operator::RefNull { .. } => {
                let null = self.emitter.word(0);
                self.push(null);
            }
            Operator::RefIsNull => self.eqz(I32)?,
            Operator::RefFunc { function_index } => {
                let reference = self.emitter.func_ref(*function_index)?;
                self.push(reference);
            }
            Operator::RefAsNonNull => {
                let reference = self.pop()?;
                self.emitter.checks.effect();
                self.emitter.builder.ins().trapz(reference, traps::NULL_REFERENCE);
                self.push(reference);
            }
            _ => return self.of_memory(op),
        }
        Ok(())
    }

    fn of_memory(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I32Load { memarg } => self.load(memarg, Opcode::Load, I32, 4),
            Operator::I64Load { memarg } => self.load(memarg, Opcode::Load, I64, 8),
            Operator::F32Load { memarg } => self.load(memarg, Opcode::Load, F32, 4),
            Operator::F64Load { memarg } => self.load(memarg, Opcode::Load, F64, 8),
            Operator::I32Load8S { memarg } => self.load(memarg, Opcode::Sload8, I32, 1),
            Operator::I32Load8U { memarg } => self.load(memarg, Opcode::Uload8, I32, 1),
            Operator::I32Load16S { memarg } => self.load(memarg, Opcode::Sload16, I32, 2),
            Operator::I32Load16U { memarg } => self.load(memarg, Opcode::Uload16, I32, 2),
            Operator::I64Load8S { memarg } => self.load(memarg, Opcode::Sload8, I64, 1),
            Operator::I64Load8U { memarg } => self.load(memarg, Opcode::Uload8, I64, 1),
            Operator::I64Load16S { memarg } => self.load(memarg, Opcode::Sload16, I64, 2),
            Operator::I64Load16U { memarg } => self.load(memarg, Opcode::Uload16, I64, 2),
            Operator::I64Load32S { memarg } => {
                self.load(memarg, Opcode::Load, I32, 4)?;
                self.unary(|ins, a| ins.sextend(I64, a))
            }
            Operator::I64Load32U { memarg } => {
                self.load(memarg, Opcode::Load, I32, 4)?;
                self.unary(|ins, a| ins.uextend(I64, a))
            }
            Operator::I32Store { memarg } => self.store(memarg, Opcode::Store, I32, 4),
            Operator::I64Store { memarg } => self.store(memarg, Opcode::Store, I64, 8),
            Operator::F32Store { memarg } => self.store(memarg, Opcode::Store, F32, 4),
            Operator::F64Store { memarg } => self.store(memarg, Opcode::Store, F64, 8),
            Operator::I32Store8 { memarg } => self.store(memarg, Opcode::Istore8, I32, 1),
            Operator::I32Store16 { memarg } => self.store(memarg, Opcode::Istore16, I32, 2),
            Operator::I64Store8 { memarg } => self.store(memarg, Opcode::Istore8, I64, 1),
            Operator::I64Store16 { memarg } => self.store(memarg, Opcode::Istore16, I64, 2),
            Operator::I64Store32 { memarg } => {
                self.unary(|ins, a| ins.ireduce(I32, a))?;
                self.store(memarg, Opcode::Store, I32, 4)
            }
            Operator::MemorySize { mem } => {
                let pages = self.emitter.memory_size(*mem)?;
                self.push(pages);
                Ok(())
            }
            Operator::MemoryGrow { mem } => {
                let pages = self.pop()?;
                let before = self.emitter.memory_grow(*mem, pages)?;
                self.push(before);
                Ok(())
            }
            Operator::MemoryInit { data_index, mem } => {
                let [to, from, count] = self.three()?;
                self.emitter.memory_init(*data_index, *mem, to, from, count)
            }
            Operator::DataDrop { data_index } => self.emitter.data_drop(*data_index),
            Operator::MemoryCopy { dst_mem, src_mem } => {
                let [to, from, count] = self.three()?;
                self.emitter.memory_copy(*dst_mem, *src_mem, to, from, count)
            }
            Operator::MemoryFill { mem } => {
                let [to, byte, count] = self.three()?;
                self.emitter.memory_fill(*mem, to, byte, count)
            }
            Operator::TableInit { elem_index, table } => {
                let [to, from, count] = self.three()?;
                self.emitter.table_init(*elem_index, *table, to, from, count)
            }
            Operator::ElemDrop { elem_index } => self.emitter.elem_drop(*elem_index),
            Operator::TableCopy { dst_table, src_table } => {
                let [to, from, count] = self.three()?;
                self.emitter.table_copy(*dst_table, *src_table, to, from, count)
            }
            Operator::TableFill { table } => {
                let [start, value, count] = self.three()?;
                self.emitter.table_fill(*table, start, value, count)
            }
            Operator::TableGet { table } => {
                let index = self.pop()?;
                let value = self.emitter.table_get(*table, index)?;
                self.push(value);
                Ok(())
            }
            Operator::TableSet { table } => {
                let (value, index) = (self.pop()?, self.pop()?);
                self.emitter.table_set(*table, index, value)
            }
            Operator::TableGrow { table } => {
                let (count, value) = (self.pop()?, self.pop()?);
                let before = self.emitter.table_grow(*table, value, count)?;
                self.push(before);
                Ok(())
            }
            Operator::TableSize { table } => {
                let size = self.emitter.table_size(*table)?;
                self.push(size);
                Ok(())
            }
            _ => self.compare(op),
        }
    }

    fn compare(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I32Eqz => self.eqz(I32),
            Operator::I64Eqz => self.eqz(I64),
            Operator::I32Eq | Operator::I64Eq => self.icmp(IntCC::Equal),
            Operator::I32Ne | Operator::I64Ne => self.icmp(IntCC::NotEqual),
            Operator::I32LtS | Operator::I64LtS => self.icmp(IntCC::SignedLessThan),
            Operator::I32LtU | Operator::I64LtU => self.icmp(IntCC::UnsignedLessThan),
            Operator::I32GtS | Operator::I64GtS => self.icmp(IntCC::SignedGreaterThan),
            Operator::I32GtU | Operator::I64GtU => self.icmp(IntCC::UnsignedGreaterThan),
            Operator::I32LeS | Operator::I64LeS => self.icmp(IntCC::SignedLessThanOrEqual),
            Operator::I32LeU | Operator::I64LeU => self.icmp(IntCC::UnsignedLessThanOrEqual),
            Operator::I32GeS | Operator::I64GeS => self.icmp(IntCC::SignedGreaterThanOrEqual),
            Operator::I32GeU | Operator::I64GeU => self.icmp(IntCC::UnsignedGreaterThanOrEqual),
            Operator::F32Eq | Operator::F64Eq => self.fcmp(FloatCC::Equal),
            Operator::F32Ne | Operator::F64Ne => self.fcmp(FloatCC::NotEqual),
            Operator::F32Lt | Operator::F64Lt => self.fcmp(FloatCC::LessThan),
            Operator::F32Gt | Operator::F64Gt => self.fcmp(FloatCC::GreaterThan),
            Operator::F32Le | Operator::F64Le => self.fcmp(FloatCC::LessThanOrEqual),
            Operator::F32Ge | Operator::F64Ge => self.fcmp(FloatCC::GreaterThanOrEqual),
            _ => self.integer(op),
        }
    }

    fn integer(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::I32Clz | Operator::I64Clz => self.unary(|ins, a| ins.clz(a)),
            Operator::I32Ctz | Operator::I64Ctz => self.unary(|ins, a| ins.ctz(a)),
            Operator::I32Popcnt | Operator::I64Popcnt => self.unary(|ins, a| ins.popcnt(a)),
            Operator::I32Add | Operator::I64Add => self.binary(|ins, a, b| ins.iadd(a, b)),
            Operator::I32Sub | Operator::I64Sub => self.binary(|ins, a, b| ins.isub(a, b)),
            Operator::I32Mul | Operator::I64Mul => self.binary(|ins, a, b| ins.imul(a, b)),
            Operator::I32DivS | Operator::I64DivS => self.division(|ins, a, b| ins.sdiv(a, b)),
            Operator::I32DivU | Operator::I64DivU => self.division(|ins, a, b| ins.udiv(a, b)),
            Operator::I32RemS | Operator::I64RemS => self.division(|ins, a, b| ins.srem(a, b)),
            Operator::I32RemU | Operator::I64RemU => self.division(|ins, a, b| ins.urem(a, b)),
            Operator::I32And | Operator::I64And => self.binary(|ins, a, b| ins.band(a, b)),
            Operator::I32Or | Operator::I64Or => self.binary(|ins, a, b| ins.bor(a, b)),
            Operator::I32Xor | Operator::I64Xor => self.binary(|ins, a, b| ins.bxor(a, b)),
            Operator::I32Shl | Operator::I64Shl => self.binary(|ins, a, b| ins.ishl(a, b)),
            Operator::I32ShrS | Operator::I64ShrS => self.binary(|ins, a, b| ins.sshr(a, b)),
            Operator::I32ShrU | Operator::I64ShrU => self.binary(|ins, a, b| ins.ushr(a, b)),
            Operator::I32Rotl | Operator::I64Rotl => self.binary(|ins, a, b| ins.rotl(a, b)),
            Operator::I32Rotr | Operator::I64Rotr => self.binary(|ins, a, b| ins.rotr(a, b)),
            Operator::I32WrapI64 => self.unary(|ins, a| ins.ireduce(I32, a)),
            Operator::I64ExtendI32S => self.unary(|ins, a| ins.sextend(I64, a)),
            Operator::I64ExtendI32U => self.unary(|ins, a| ins.uextend(I64, a)),
            Operator::I32Extend8S => self.sign(I8, I32),
            Operator::I32Extend16S => self.sign(I16, I32),
            Operator::I64Extend8S => self.sign(I8, I64),
            Operator::I64Extend16S => self.sign(I16, I64),
            Operator::I64Extend32S => self.sign(I32, I64),
            Operator::I64Add128 | Operator::I64Sub128 => {
                let [bh, bl, ah, al] = [self.pop()?, self.pop()?, self.pop()?, self.pop()?];
                let a = self.emitter.builder.ins().iconcat(al, ah);
                let b = self.emitter.builder.ins().iconcat(bl, bh);
                let ins = self.emitter.builder.ins();
                let value = if matches!(op, Operator::I64Add128) {
                    ins.iadd(a, b)
                } else {
                    ins.isub(a, b)
                };
                self.push_halves(value);
                Ok(())
            }
            Operator::I64MulWideS | Operator::I64MulWideU => {
                let (b, a) = (self.pop()?, self.pop()?);
                let low = self.emitter.builder.ins().imul(a, b);
                let ins = self.emitter.builder.ins();
                let high = if matches!(op, Operator::I64MulWideS) {
                    ins.smulhi(a, b)
                } else {
                    ins.umulhi(a, b)
                };
                self.push(low);
                self.push(high);
                Ok(())
            }
            _ => self.float(op),
        }
    }

    fn float(&mut self, op: &Operator<'_>) -> Result<()> {
        let plain = MemFlagsData::new();
        match op {
            Operator::F32Abs | Operator::F64Abs => self.unary(|ins, a| ins.fabs(a)),
            Operator::F32Neg | Operator::F64Neg => self.unary(|ins, a| ins.fneg(a)),
            Operator::F32Ceil | Operator::F64Ceil => self.unary(|ins, a| ins.ceil(a)),
            Operator::F32Floor | Operator::F64Floor => self.unary(|ins, a| ins.floor(a)),
            Operator::F32Trunc | Operator::F64Trunc => self.unary(|ins, a| ins.trunc(a)),
            Operator::F32Nearest | Operator::F64Nearest => self.unary(|ins, a| ins.nearest(a)),
            Operator::F32Sqrt | Operator::F64Sqrt => self.unary(|ins, a| ins.sqrt(a)),
            Operator::F32Add | Operator::F64Add => self.binary(|ins, a, b| ins.fadd(a, b)),
            Operator::F32Sub | Operator::F64Sub => self.binary(|ins, a, b| ins.fsub(a, b)),
            Operator::F32Mul | Operator::F64Mul => self.binary(|ins, a, b| ins.fmul(a, b)),
            Operator::F32Div | Operator::F64Div => self.binary(|ins, a, b| ins.fdiv(a, b)),
            Operator::F32Min | Operator::F64Min => self.binary(|ins, a, b| ins.fmin(a, b)),
            Operator::F32Max | Operator::F64Max => self.binary(|ins, a, b| ins.fmax(a, b)),
            Operator::F32Copysign | Operator::F64Copysign => self.binary(|ins, a, b| ins.fcopysign(a, b)),
            Operator::F32DemoteF64 => self.unary(|ins, a| ins.fdemote(F32, a)),
            Operator::F64PromoteF32 => self.unary(|ins, a| ins.fpromote(F64, a)),
            Operator::I32ReinterpretF32 => self.unary(|ins, a| ins.bitcast(I32, plain, a)),
            Operator::I64ReinterpretF64 => self.unary(|ins, a| ins.bitcast(I64, plain, a)),
            Operator::F32ReinterpretI32 => self.unary(|ins, a| ins.bitcast(F32, plain, a)),
            Operator::F64ReinterpretI64 => self.unary(|ins, a| ins.bitcast(F64, plain, a)),
            Operator::I32TruncF32S | Operator::I32TruncF64S => self.truncate(I32, true),
            Operator::I32TruncF32U | Operator::I32TruncF64U => self.truncate(I32, false),
            Operator::I64TruncF32S | Operator::I64TruncF64S => self.truncate(I64, true),
            Operator::I64TruncF32U | Operator::I64TruncF64U => self.truncate(I64, false),
            Operator::I32TruncSatF32S | Operator::I32TruncSatF64S => self.unary(|ins, a| ins.fcvt_to_sint_sat(I32, a)),
            Operator::I32TruncSatF32U | Operator::I32TruncSatF64U => self.unary(|ins, a| ins.fcvt_to_uint_sat(I32, a)),
            Operator::I64TruncSatF32S | Operator::I64TruncSatF64S => self.unary(|ins, a| ins.fcvt_to_sint_sat(I64, a)),
            Operator::I64TruncSatF32U | Operator::I64TruncSatF64U => self.unary(|ins, a| ins.fcvt_to_uint_sat(I64, a)),
            Operator::F32ConvertI32S | Operator::F32ConvertI64S => self.unary(|ins, a| ins.fcvt_from_sint(F32, a)),
            Operator::F32ConvertI32U | Operator::F32ConvertI64U => self.unary(|ins, a| ins.fcvt_from_uint(F32, a)),
            Operator::F64ConvertI32S | Operator::F64ConvertI64S => self.unary(|ins, a| ins.fcvt_from_sint(F64, a)),
            Operator::F64ConvertI32U | Operator::F64ConvertI64U => self.unary(|ins, a| ins.fcvt_from_uint(F64, a)),
            _ => self.atomic(op),
        }
    }
}
