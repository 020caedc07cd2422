//! Atomic instructions of the threads proposal.
//!
//! Atomic accesses become CLIF's after a check of bounds and of alignment, which is mandatory here.
//! The machine has no instruction for waiting. Each shared memory has a queue of waiting threads,
//! in their order of arrival, and a ticket lock. A waiting thread polls its own word until another
//! thread sets the word or the timeout has passed. Two functions implement waiting and waking; a
//! module has them if it needs them.

use crate::body::Body;
use crate::emit::{Emitter, Region};
use crate::env::fault;
use crate::error::{Result, WasmError};
use crate::memory::Access;
use crate::queue::{COUNT, ENTRIES, ENTRY_BYTES, NEXT_TICKET, SERVED, WOKEN, Waiting};
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, BlockArg, FuncRef, InstBuilder, Opcode, Signature, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{FuncId, Linkage};
use npu_sim::THREADS;
use types::{I8, I16, I32, I64};
use wasmparser::{MemArg, Operator};

/// The results of `memory.atomic.wait`.
const OK: u32 = 0;
const NOT_EQUAL: u32 = 1;
const TIMED_OUT: u32 = 2;

/// Nanoseconds per cycle, as for WASI, for an assumed clock of 100 MHz.
const CYCLE_NANOSECONDS: i64 = 10;

impl Body<'_, '_, '_, '_, '_> {
    /// Pops an address and returns the checked device address.
    fn atomic_address(&mut self, arg: &MemArg, bytes: u32) -> Result<Value> {
        let index = self.pop()?;
        self.emitter.atomic_address(arg, bytes, index)
    }

    fn atomic_load(&mut self, arg: &MemArg, narrow: Type, ty: Type) -> Result<()> {
        let address = self.atomic_address(arg, narrow.bytes())?;
        let flags = self.emitter.flags(Region::Heap(memory_of(arg)));
        let value = self.emitter.builder.ins().atomic_load(narrow, flags, address);
        self.push_wide(value, narrow, ty);
        Ok(())
    }

    fn atomic_store(&mut self, arg: &MemArg, narrow: Type, ty: Type) -> Result<()> {
        let value = self.pop_narrow(narrow, ty)?;
        let address = self.atomic_address(arg, narrow.bytes())?;
        let flags = self.emitter.flags(Region::Heap(memory_of(arg)));
        self.emitter.builder.ins().atomic_store(flags, value, address);
        Ok(())
    }

    fn atomic_change(&mut self, arg: &MemArg, narrow: Type, ty: Type, op: AtomicRmwOp) -> Result<()> {
        let value = self.pop_narrow(narrow, ty)?;
        let address = self.atomic_address(arg, narrow.bytes())?;
        let flags = self.emitter.flags(Region::Heap(memory_of(arg)));
        let ins = self.emitter.builder.ins();
        let found = ins.atomic_rmw(narrow, flags, op, address, value);
        self.push_wide(found, narrow, ty);
        Ok(())
    }

    fn atomic_exchange_if(&mut self, arg: &MemArg, narrow: Type, ty: Type) -> Result<()> {
        let (value, expected) = (self.pop_narrow(narrow, ty)?, self.pop_narrow(narrow, ty)?);
        let address = self.atomic_address(arg, narrow.bytes())?;
        let flags = self.emitter.flags(Region::Heap(memory_of(arg)));
        let found = self.emitter.builder.ins().atomic_cas(flags, address, expected, value);
        self.push_wide(found, narrow, ty);
        Ok(())
    }

    /// Pops an operand and truncates it to the width of the access. The expected value of an
    /// exchange is truncated as well.
    fn pop_narrow(&mut self, narrow: Type, ty: Type) -> Result<Value> {
        let value = self.pop()?;
        Ok(if narrow == ty {
            value
        } else {
            self.emitter.builder.ins().ireduce(narrow, value)
        })
    }

    fn push_wide(&mut self, value: Value, narrow: Type, ty: Type) {
        let value = if narrow == ty {
            value
        } else {
            self.emitter.builder.ins().uextend(ty, value)
        };
        self.push(value);
    }

    fn wait(&mut self, arg: &MemArg, ty: Type) -> Result<()> {
        let (timeout, expected) = (self.pop()?, self.pop()?);
        let address = self.atomic_address(arg, ty.bytes())?;
        let Some(queue) = self.emitter.memory(memory_of(arg))?.queue else {
            self.trap(traps::EXPECTED_SHARED);
            return Ok(());
        };
        let queue = self.emitter.symbol(queue);
        let wide = self.emitter.word((ty == I64).into());
        let expected = if ty == I64 {
            expected
        } else {
            self.emitter.builder.ins().uextend(I64, expected)
        };
        let function = self.emitter.waiting(Waiting::Wait)?;
        let call = self
            .emitter
            .builder
            .ins()
            .call(function, &[queue, address, expected, wide, timeout]);
        self.push_results(call);
        Ok(())
    }

    fn notify(&mut self, arg: &MemArg) -> Result<()> {
        let count = self.pop()?;
        let address = self.atomic_address(arg, 4)?;
        let Some(queue) = self.emitter.memory(memory_of(arg))?.queue else {
            // No thread can wait on memory that is not shared.
            let none = self.emitter.word(0);
            self.push(none);
            return Ok(());
        };
        let queue = self.emitter.symbol(queue);
        let function = self.emitter.waiting(Waiting::Notify)?;
        let call = self.emitter.builder.ins().call(function, &[queue, address, count]);
        self.push_results(call);
        Ok(())
    }

    /// Translates an atomic instruction, or passes the instruction on to the next translator.
    pub fn atomic(&mut self, op: &Operator<'_>) -> Result<()> {
        match op {
            Operator::AtomicFence { .. } => {
                self.emitter.checks.effect();
                self.emitter.builder.ins().fence();
                Ok(())
            }
            Operator::MemoryAtomicNotify { memarg } => self.notify(memarg),
            Operator::MemoryAtomicWait32 { memarg } => self.wait(memarg, I32),
            Operator::MemoryAtomicWait64 { memarg } => self.wait(memarg, I64),
            Operator::I32AtomicLoad { memarg } => self.atomic_load(memarg, I32, I32),
            Operator::I32AtomicStore { memarg } => self.atomic_store(memarg, I32, I32),
            Operator::I32AtomicRmwAdd { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::Add),
            Operator::I32AtomicRmwSub { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::Sub),
            Operator::I32AtomicRmwAnd { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::And),
            Operator::I32AtomicRmwOr { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::Or),
            Operator::I32AtomicRmwXor { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::Xor),
            Operator::I32AtomicRmwXchg { memarg } => self.atomic_change(memarg, I32, I32, AtomicRmwOp::Xchg),
            Operator::I32AtomicRmwCmpxchg { memarg } => self.atomic_exchange_if(memarg, I32, I32),
            Operator::I32AtomicLoad8U { memarg } => self.atomic_load(memarg, I8, I32),
            Operator::I32AtomicStore8 { memarg } => self.atomic_store(memarg, I8, I32),
            Operator::I32AtomicRmw8AddU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::Add),
            Operator::I32AtomicRmw8SubU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::Sub),
            Operator::I32AtomicRmw8AndU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::And),
            Operator::I32AtomicRmw8OrU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::Or),
            Operator::I32AtomicRmw8XorU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::Xor),
            Operator::I32AtomicRmw8XchgU { memarg } => self.atomic_change(memarg, I8, I32, AtomicRmwOp::Xchg),
            Operator::I32AtomicRmw8CmpxchgU { memarg } => self.atomic_exchange_if(memarg, I8, I32),
            Operator::I32AtomicLoad16U { memarg } => self.atomic_load(memarg, I16, I32),
            Operator::I32AtomicStore16 { memarg } => self.atomic_store(memarg, I16, I32),
            Operator::I32AtomicRmw16AddU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::Add),
            Operator::I32AtomicRmw16SubU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::Sub),
            Operator::I32AtomicRmw16AndU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::And),
            Operator::I32AtomicRmw16OrU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::Or),
            Operator::I32AtomicRmw16XorU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::Xor),
            Operator::I32AtomicRmw16XchgU { memarg } => self.atomic_change(memarg, I16, I32, AtomicRmwOp::Xchg),
            Operator::I32AtomicRmw16CmpxchgU { memarg } => self.atomic_exchange_if(memarg, I16, I32),
            Operator::I64AtomicLoad { memarg } => self.atomic_load(memarg, I64, I64),
            Operator::I64AtomicStore { memarg } => self.atomic_store(memarg, I64, I64),
            Operator::I64AtomicRmwAdd { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::Add),
            Operator::I64AtomicRmwSub { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::Sub),
            Operator::I64AtomicRmwAnd { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::And),
            Operator::I64AtomicRmwOr { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::Or),
            Operator::I64AtomicRmwXor { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::Xor),
            Operator::I64AtomicRmwXchg { memarg } => self.atomic_change(memarg, I64, I64, AtomicRmwOp::Xchg),
            Operator::I64AtomicRmwCmpxchg { memarg } => self.atomic_exchange_if(memarg, I64, I64),
            Operator::I64AtomicLoad8U { memarg } => self.atomic_load(memarg, I8, I64),
            Operator::I64AtomicStore8 { memarg } => self.atomic_store(memarg, I8, I64),
            Operator::I64AtomicRmw8AddU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::Add),
            Operator::I64AtomicRmw8SubU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::Sub),
            Operator::I64AtomicRmw8AndU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::And),
            Operator::I64AtomicRmw8OrU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::Or),
            Operator::I64AtomicRmw8XorU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::Xor),
            Operator::I64AtomicRmw8XchgU { memarg } => self.atomic_change(memarg, I8, I64, AtomicRmwOp::Xchg),
            Operator::I64AtomicRmw8CmpxchgU { memarg } => self.atomic_exchange_if(memarg, I8, I64),
            Operator::I64AtomicLoad16U { memarg } => self.atomic_load(memarg, I16, I64),
            Operator::I64AtomicStore16 { memarg } => self.atomic_store(memarg, I16, I64),
            Operator::I64AtomicRmw16AddU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::Add),
            Operator::I64AtomicRmw16SubU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::Sub),
            Operator::I64AtomicRmw16AndU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::And),
            Operator::I64AtomicRmw16OrU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::Or),
            Operator::I64AtomicRmw16XorU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::Xor),
            Operator::I64AtomicRmw16XchgU { memarg } => self.atomic_change(memarg, I16, I64, AtomicRmwOp::Xchg),
            Operator::I64AtomicRmw16CmpxchgU { memarg } => self.atomic_exchange_if(memarg, I16, I64),
            Operator::I64AtomicLoad32U { memarg } => self.atomic_load(memarg, I32, I64),
            Operator::I64AtomicStore32 { memarg } => self.atomic_store(memarg, I32, I64),
            Operator::I64AtomicRmw32AddU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::Add),
            Operator::I64AtomicRmw32SubU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::Sub),
            Operator::I64AtomicRmw32AndU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::And),
            Operator::I64AtomicRmw32OrU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::Or),
            Operator::I64AtomicRmw32XorU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::Xor),
            Operator::I64AtomicRmw32XchgU { memarg } => self.atomic_change(memarg, I32, I64, AtomicRmwOp::Xchg),
            Operator::I64AtomicRmw32CmpxchgU { memarg } => self.atomic_exchange_if(memarg, I32, I64),
            _ => self.simd(op),
        }
    }
}

/// Returns the memory index of an access.
fn memory_of(arg: &MemArg) -> u32 {
    crate::memory::OfMemory::memory(arg)
}

impl Emitter<'_, '_, '_, '_> {
    /// Returns the device address, after the checks of bounds and alignment.
    fn atomic_address(&mut self, arg: &MemArg, bytes: u32, index: Value) -> Result<Value> {
        let access = Access {
            opcode: Opcode::AtomicLoad,
            ty: I32,
            bytes,
        };
        let (address, offset) = self.address(access, arg, index)?;
        self.checks.effect();
        if let Some(odd) = self.may_be_misaligned(bytes, arg, index) {
            self.builder.ins().trapnz(odd, traps::UNALIGNED_ATOMIC);
        }
        Ok(self.add(address, offset as u32))
    }

    /// Returns the function of this module that waits or wakes; its body is emitted at the end.
    fn waiting(&mut self, which: Waiting) -> Result<FuncRef> {
        let id = self.env.waiting_function(which)?;
        Ok(self.env.module.declare_func_in_func(id, self.builder.func))
    }

    /// Emits a function that waits or wakes.
    pub fn make_waiting(&mut self, which: Waiting) -> Result<()> {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let params = self.builder.block_params(entry).to_vec();
        match (which, &params[..]) {
            (Waiting::Wait, &[queue, address, expected, wide, timeout]) => {
                self.make_wait([queue, address, expected, wide, timeout])?;
            }
            (Waiting::Notify, &[queue, address, most]) => self.make_notify(queue, address, most),
            _ => return Err(WasmError::internal("the arguments of a function that waits")),
        }
        self.builder.seal_all_blocks();
        Ok(())
    }

    fn blocks<const N: usize>(&mut self) -> [Block; N] {
        [(); N].map(|()| self.builder.create_block())
    }

    fn cell(&mut self, address: Value, offset: i32) -> Value {
        let flags = self.flags(Region::Other).with_aligned();
        self.builder.ins().load(I32, flags, address, offset)
    }

    fn set_cell(&mut self, value: Value, address: Value, offset: i32) {
        let flags = self.flags(Region::Other).with_aligned();
        self.builder.ins().store(flags, value, address, offset);
    }

    /// Acquires the ticket lock of a queue. Tickets are fair: a thread that wakes others in a loop
    /// must not starve threads that start to wait.
    fn lock(&mut self, queue: Value) {
        let [again, taken] = self.blocks();
        let flags = self.flags(Region::Other);
        let tickets = self.add(queue, NEXT_TICKET);
        let served = self.add(queue, SERVED as u32);
        let one = self.word(1);
        let ins = self.builder.ins();
        let own = ins.atomic_rmw(I32, flags, AtomicRmwOp::Add, tickets, one);
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let now = self.builder.ins().atomic_load(I32, flags, served);
        let is_own = self.compare(IntCC::Equal, now, own);
        self.builder.ins().brif(is_own, taken, &[], again, &[]);
        self.builder.switch_to_block(taken);
    }

    /// Releases the lock to the next ticket.
    fn unlock(&mut self, queue: Value) {
        let flags = self.flags(Region::Other);
        let now = self.cell(queue, SERVED);
        let next = self.add(now, 1);
        let served = self.add(queue, SERVED as u32);
        self.builder.ins().atomic_store(flags, next, served);
    }

    fn unlock_and_return(&mut self, queue: Value, result: Value) {
        self.unlock(queue);
        self.builder.ins().return_(&[result]);
    }

    fn entry(&mut self, queue: Value, number: Value) -> Value {
        let shift = self.word(ENTRY_BYTES.trailing_zeros());
        let distance = self.builder.ins().ishl(number, shift);
        let address = self.builder.ins().iadd(queue, distance);
        self.add(address, ENTRIES)
    }

    /// Returns the address of the word that becomes 1 when a thread is woken.
    fn woken(&mut self, queue: Value, thread: Value) -> Value {
        let shift = self.word(2);
        let distance = self.builder.ins().ishl(thread, shift);
        let address = self.builder.ins().iadd(queue, distance);
        self.add(address, WOKEN)
    }

    /// Emits an operation of the machine without arguments.
    fn machine(&mut self, name: &str, ty: Type) -> Result<Value> {
        let name = format!("{}{name}", crate::npu::PREFIX);
        let mut signature = Signature::new(CallConv::SystemV);
        signature.returns.push(AbiParam::new(ty));
        let id = self.env.function(&name, Linkage::Import, &signature)?;
        let function = self.env.module.declare_func_in_func(id, self.builder.func);
        let call = self.builder.ins().call(function, &[]);
        let result = self.builder.inst_results(call).first().copied();
        result.ok_or_else(|| WasmError::internal("a result of an intrinsic"))
    }

    fn make_wait(&mut self, [queue, address, expected, wide, timeout]: [Value; 5]) -> Result<()> {
        let tile = self.machine("tile_id", I32)?;
        let own = self.machine("thread_id", I32)?;
        let each = self.word(THREADS as u32);
        let first = self.builder.ins().imul(tile, each);
        let own = self.builder.ins().iadd(first, own);
        let start = self.machine("cycles", I64)?;
        let woken = self.woken(queue, own);

        // The lock keeps wakes out while the value is compared.
        self.lock(queue);
        let [long, word, compare, differs, sleep] = self.blocks();
        let flags = self.flags(Region::Heap(u32::MAX));
        let found = self.builder.append_block_param(compare, I64);
        self.builder.ins().brif(wide, long, &[], word, &[]);
        self.builder.switch_to_block(long);
        let value = self.builder.ins().atomic_load(I64, flags, address);
        self.builder.ins().jump(compare, &[BlockArg::Value(value)]);
        self.builder.switch_to_block(word);
        let value = self.builder.ins().atomic_load(I32, flags, address);
        let value = self.builder.ins().uextend(I64, value);
        self.builder.ins().jump(compare, &[BlockArg::Value(value)]);
        self.builder.switch_to_block(compare);
        let same = self.compare(IntCC::Equal, found, expected);
        self.builder.ins().brif(same, sleep, &[], differs, &[]);
        self.builder.switch_to_block(differs);
        let result = self.word(NOT_EQUAL);
        self.unlock_and_return(queue, result);

        self.builder.switch_to_block(sleep);
        let count = self.cell(queue, COUNT);
        let entry = self.entry(queue, count);
        self.set_cell(address, entry, 0);
        self.set_cell(own, entry, 4);
        let (zero, one) = (self.word(0), self.word(1));
        self.set_cell(zero, woken, 0);
        let more = self.builder.ins().iadd(count, one);
        self.set_cell(more, queue, COUNT);
        let flags = self.flags(Region::Other);
        self.unlock(queue);
        let each = self.builder.ins().iconst(I64, CYCLE_NANOSECONDS);
        let cycles = self.builder.ins().udiv(timeout, each);
        let never = self.builder.ins().iconst(I64, 0);
        let for_ever = self.compare(IntCC::SignedLessThan, timeout, never);

        let [look, time, clock, awake, late] = self.blocks();
        self.builder.ins().jump(look, &[]);
        self.builder.switch_to_block(look);
        let is_woken = self.builder.ins().atomic_load(I32, flags, woken);
        self.builder.ins().brif(is_woken, awake, &[], time, &[]);
        self.builder.switch_to_block(awake);
        let result = self.word(OK);
        self.builder.ins().return_(&[result]);
        self.builder.switch_to_block(time);
        self.builder.ins().brif(for_ever, look, &[], clock, &[]);
        self.builder.switch_to_block(clock);
        let now = self.machine("cycles", I64)?;
        let passed = self.builder.ins().isub(now, start);
        let is_early = self.compare(IntCC::UnsignedLessThan, passed, cycles);
        self.builder.ins().brif(is_early, look, &[], late, &[]);

        // The timeout has passed, unless a wake came before the lock was acquired.
        self.builder.switch_to_block(late);
        self.lock(queue);
        let [leave, last, removed, step, keep, next] = self.blocks();
        let is_woken = self.cell(woken, 0);
        self.builder.ins().brif(is_woken, last, &[], leave, &[]);
        self.builder.switch_to_block(last);
        let result = self.word(OK);
        self.unlock_and_return(queue, result);
        self.builder.switch_to_block(leave);
        let count = self.cell(queue, COUNT);
        let arg = BlockArg::Value;
        let at = self.builder.append_block_param(step, I32);
        let to = self.builder.append_block_param(step, I32);
        self.builder.ins().jump(step, &[arg(zero), arg(zero)]);
        self.builder.switch_to_block(step);
        let done = self.compare(IntCC::Equal, at, count);
        self.builder.ins().brif(done, removed, &[], next, &[]);
        self.builder.switch_to_block(next);
        let entry = self.entry(queue, at);
        let (key, thread) = (self.cell(entry, 0), self.cell(entry, 4));
        let at_next = self.builder.ins().iadd(at, one);
        let is_own = self.compare(IntCC::Equal, thread, own);
        self.builder
            .ins()
            .brif(is_own, step, &[arg(at_next), arg(to)], keep, &[]);
        self.builder.switch_to_block(keep);
        let place = self.entry(queue, to);
        self.set_cell(key, place, 0);
        self.set_cell(thread, place, 4);
        let to_next = self.builder.ins().iadd(to, one);
        self.builder.ins().jump(step, &[arg(at_next), arg(to_next)]);
        self.builder.switch_to_block(removed);
        self.set_cell(to, queue, COUNT);
        let result = self.word(TIMED_OUT);
        self.unlock_and_return(queue, result);
        Ok(())
    }

    fn make_notify(&mut self, queue: Value, address: Value, most: Value) {
        self.lock(queue);
        let (zero, one) = (self.word(0), self.word(1));
        let count = self.cell(queue, COUNT);
        let [step, next, wake, keep, end] = self.blocks();
        let arg = BlockArg::Value;
        let [at, to, done] = [(); 3].map(|()| self.builder.append_block_param(step, I32));
        self.builder.ins().jump(step, &[arg(zero), arg(zero), arg(zero)]);
        self.builder.switch_to_block(step);
        let is_last = self.compare(IntCC::Equal, at, count);
        self.builder.ins().brif(is_last, end, &[], next, &[]);
        self.builder.switch_to_block(next);
        let entry = self.entry(queue, at);
        let (key, thread) = (self.cell(entry, 0), self.cell(entry, 4));
        let at_next = self.builder.ins().iadd(at, one);
        let is_here = self.compare(IntCC::Equal, key, address);
        let is_wanted = self.compare(IntCC::UnsignedLessThan, done, most);
        let hit = self.builder.ins().band(is_here, is_wanted);
        self.builder.ins().brif(hit, wake, &[], keep, &[]);
        self.builder.switch_to_block(wake);
        let woken = self.woken(queue, thread);
        let flags = self.flags(Region::Other);
        self.builder.ins().atomic_store(flags, one, woken);
        let more = self.builder.ins().iadd(done, one);
        self.builder.ins().jump(step, &[arg(at_next), arg(to), arg(more)]);
        self.builder.switch_to_block(keep);
        let place = self.entry(queue, to);
        self.set_cell(key, place, 0);
        self.set_cell(thread, place, 4);
        let to_next = self.builder.ins().iadd(to, one);
        self.builder.ins().jump(step, &[arg(at_next), arg(to_next), arg(done)]);
        self.builder.switch_to_block(end);
        self.set_cell(to, queue, COUNT);
        self.unlock_and_return(queue, done);
    }
}

impl crate::env::Env<'_, '_> {
    /// Returns the function of this module that waits or wakes, and declares it at its first use.
    fn waiting_function(&mut self, which: Waiting) -> Result<FuncId> {
        if let Some(&(_, id)) = self.waiting.iter().find(|(known, _)| *known == which) {
            return Ok(id);
        }
        let name = self.fresh(match which {
            Waiting::Wait => "wait",
            Waiting::Notify => "notify",
        });
        let declared = self.module.declare_function(&name, Linkage::Local, &which.signature());
        let id = declared.map_err(|error| fault(&name, error))?;
        self.waiting.push((which, id));
        Ok(id)
    }
}
