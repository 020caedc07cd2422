//! Atomic operations that are more than one access of a word: a load, an operation and a store, between taking and giving back the
//! lock of the core, or that of the machine, unless only one thread uses the memory ([`Atomics`](crate::settings::Atomics)). `docs/atomics.md` says why
//! stores take it and loads do not, and proves the lock.
//!
//! A thread that traps while it has the lock would keep it. So a misaligned address has to trap before: the memory is read once
//! in front of the lock, which brings its line into the cache as well.
//!
//! Loads and stores of at most a word stay atomic where there is no lock: CLIF has no plain access that is one access of the whole width,
//! traps if it is misaligned, and changes places with no other. They are fences to the optimizer too, so it neither answers the
//! load nor moves or drops the store; what stands between them it may simplify. Lowering makes each of them one machine instruction
//! between fences (`isle/atomics.isle`). What is longer than a word, and what stands under the lock, are plain accesses
//! between fences.

use super::routines::{import, word_of};
use crate::error::CompileError;
use crate::intrinsics::{ATOMIC_ENTER, MACHINE_ENTER};
use crate::spaces::{self, Space};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, FuncRef, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value,
    types,
};
use cranelift_codegen::isa::CallConv;

/// What is rewritten here.
pub(super) const OPCODES: [Opcode; 4] = [
    Opcode::AtomicRmw,
    Opcode::AtomicCas,
    Opcode::AtomicLoad,
    Opcode::AtomicStore,
];

/// What an atomic operation does to memory.
#[derive(Clone, Copy)]
enum Change {
    Rmw(AtomicRmwOp, Value),
    Cas { expected: Value, new: Value },
    Load,
    Store(Value),
}

/// What keeps other threads from an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// The lock of the core.
    Core,
    /// The lock between cores, which brings that of the core with it.
    Machine,
}

impl Lock {
    /// The routine that takes it.
    fn routine(self, func: &mut Function) -> FuncRef {
        let name = match self {
            Self::Core => ATOMIC_ENTER,
            Self::Machine => MACHINE_ENTER,
        };
        import(func, name, CallConv::Probestack, 1, 2)
    }
}

/// One atomic operation.
struct Access {
    change: Change,
    ty: Type,
    pointer: Value,
    flags: MemFlagsData,
}

impl Access {
    fn is_word(&self) -> bool {
        self.ty.bits() <= types::I32.bits()
    }

    /// The flags of the accesses it is made of: to the same memory in the same order of bytes, aligned as far as an atomic access has to be.
    fn plain_flags(&self) -> MemFlagsData {
        let mut flags = MemFlagsData::new().with_aligned();
        flags.set_alias_region(self.flags.alias_region());
        match self.flags.explicit_endianness() {
            Some(order) => flags.with_endianness(order),
            None => flags,
        }
    }
}

/// Rewrites the function. With a lock, operations exclude one another by it.
///
/// # Errors
///
/// [`CompileError::Internal`]: the function has no room for the flags of another memory access.
pub(super) fn run(func: &mut Function, lock: Option<Lock>) -> Result<(), CompileError> {
    let mut enter = None;
    let mut cursor = FuncCursor::new(func);
    while cursor.next_block().is_some() {
        while let Some(inst) = cursor.next_inst() {
            let (change, flags, pointer) = match cursor.func.dfg.insts[inst] {
                InstructionData::AtomicRmw { op, args, flags, .. } => (Change::Rmw(op, args[1]), flags, args[0]),
                InstructionData::AtomicCas { args, flags, .. } => {
                    let [pointer, expected, new] = args;
                    (Change::Cas { expected, new }, flags, pointer)
                }
                InstructionData::LoadNoOffset {
                    opcode: Opcode::AtomicLoad,
                    arg,
                    flags,
                } => (Change::Load, flags, arg),
                InstructionData::StoreNoOffset {
                    opcode: Opcode::AtomicStore,
                    args,
                    flags,
                } => (Change::Store(args[0]), flags, args[1]),
                _ => continue,
            };
            let access = Access {
                change,
                ty: cursor.func.dfg.ctrl_typevar(inst),
                pointer,
                flags: cursor.func.dfg.mem_flags[flags],
            };
            let stays = match change {
                Change::Load => access.is_word(),
                Change::Store(_) => access.is_word() && lock.is_none(),
                Change::Rmw(..) | Change::Cas { .. } => false,
            };
            if stays {
                continue;
            }
            // The flags are in the set from here on, so that no builder finds it full.
            for flags in [access.plain_flags(), MemFlagsData::new()] {
                let inserted = cursor.func.dfg.mem_flags.insert(flags);
                inserted.map_err(|_| CompileError::internal("legalize", inst.to_string(), "room for memory flags"))?;
            }
            cursor.use_srcloc(inst);
            if let Some(lock) = lock {
                let enter = *enter.get_or_insert_with(|| lock.routine(cursor.func));
                let in_main = spaces::of_flags(cursor.func, flags) == Space::Main;
                under_lock(&mut cursor, &access, lock, enter, in_main);
            } else if access.is_word() {
                word(&mut cursor, inst, &access);
            } else {
                between_fences(&mut cursor, &access);
            }
        }
    }
    Ok(())
}

/// The operation while no other thread has the lock. The routine of a core's lock loads a word of main memory while it waits for
/// what it has to know of the lock.
fn under_lock(cursor: &mut FuncCursor<'_>, access: &Access, lock: Lock, enter: FuncRef, in_main: bool) {
    let is_whole_word = access.ty.bits() >= types::I32.bits();
    let probed = if is_whole_word { types::I32 } else { access.ty };
    cursor.ins().atomic_load(probed, access.flags, access.pointer);
    let word = if is_whole_word && in_main {
        word_of(cursor, access.pointer)
    } else {
        // Some word that is there.
        cursor.ins().get_stack_pointer(types::I32)
    };
    let call = cursor.ins().call(enter, &[word]);
    let [first, second] = *cursor.func.dfg.inst_results(call) else {
        return;
    };
    // The flags that hold the lock, in the order in which it is given back, and what was loaded.
    let (flags, loaded) = match lock {
        Lock::Core => ([Some(first), None], Some(second)),
        Lock::Machine => ([Some(first), Some(second)], None),
    };
    let is_little = access.flags.explicit_endianness() != Some(Endianness::Big);
    let old = plain(
        cursor,
        access,
        loaded.filter(|_| access.ty == types::I32 && in_main && is_little),
    );
    let zero = cursor.ins().iconst(types::I8, 0);
    for flag in flags.into_iter().flatten() {
        cursor.ins().atomic_store(MemFlagsData::new(), zero, flag);
    }
    replace_by(cursor, old);
}

/// The operation on more than a word, for one thread.
fn between_fences(cursor: &mut FuncCursor<'_>, access: &Access) {
    cursor.ins().fence();
    let old = plain(cursor, access, None);
    cursor.ins().fence();
    replace_by(cursor, old);
}

/// The operation as plain accesses, of which the first may have been made; gives the value that was in memory, if it is a result.
fn plain(cursor: &mut FuncCursor<'_>, access: &Access, loaded: Option<Value>) -> Option<Value> {
    let flags = access.plain_flags();
    let old = match access.change {
        Change::Store(_) => None,
        _ => loaded.or_else(|| Some(cursor.ins().load(access.ty, flags, access.pointer, 0))),
    };
    if let Some(new) = new_value(cursor, access.change, old) {
        cursor.ins().store(flags, new, access.pointer, 0);
    }
    old
}

/// The operation on at most a word, for one thread. The load takes the place of the instruction, so that its result is the old
/// value for all users; the rest follows.
fn word(cursor: &mut FuncCursor<'_>, inst: Inst, access: &Access) {
    let old = cursor
        .func
        .replace(inst)
        .atomic_load(access.ty, access.flags, access.pointer);
    cursor.next_inst();
    cursor.use_srcloc(inst);
    if let Some(new) = new_value(cursor, access.change, Some(old)) {
        cursor.ins().atomic_store(access.flags, new, access.pointer);
    }
    cursor.prev_inst();
}

/// Removes the instruction at the cursor, whose result is this one.
fn replace_by(cursor: &mut FuncCursor<'_>, value: Option<Value>) {
    let Some(inst) = cursor.current_inst() else { return };
    let dfg = &mut cursor.func.dfg;
    let result = dfg.inst_results(inst).first().copied();
    dfg.clear_results(inst);
    if let (Some(result), Some(value)) = (result, value) {
        dfg.change_to_alias(result, value);
    }
    cursor.remove_inst_and_step_back();
}

/// What is written back, if something is. There is an old value unless it makes no difference.
fn new_value(cursor: &mut FuncCursor<'_>, change: Change, old: Option<Value>) -> Option<Value> {
    match (change, old) {
        (Change::Store(x), _) => Some(x),
        (Change::Rmw(op, x), Some(old)) => Some(operate(cursor, op, old, x)),
        (Change::Cas { expected, new }, Some(old)) => Some(exchange(cursor, old, expected, new)),
        (Change::Load, _) | (_, None) => None,
    }
}

/// What `atomic_rmw` writes back.
fn operate(cursor: &mut FuncCursor<'_>, op: AtomicRmwOp, old: Value, x: Value) -> Value {
    match op {
        AtomicRmwOp::Add => cursor.ins().iadd(old, x),
        AtomicRmwOp::Sub => cursor.ins().isub(old, x),
        AtomicRmwOp::And => cursor.ins().band(old, x),
        AtomicRmwOp::Nand => {
            let both = cursor.ins().band(old, x);
            cursor.ins().bnot(both)
        }
        AtomicRmwOp::Or => cursor.ins().bor(old, x),
        AtomicRmwOp::Xor => cursor.ins().bxor(old, x),
        AtomicRmwOp::Xchg => x,
        AtomicRmwOp::Umin => cursor.ins().umin(old, x),
        AtomicRmwOp::Umax => cursor.ins().umax(old, x),
        AtomicRmwOp::Smin => cursor.ins().smin(old, x),
        AtomicRmwOp::Smax => cursor.ins().smax(old, x),
    }
}

/// What `atomic_cas` writes back: the new value, or the old one if that is not the expected one. An atomic load extends with zeros, so
/// narrow numbers are compared as unsigned words.
fn exchange(cursor: &mut FuncCursor<'_>, old: Value, expected: Value, new: Value) -> Value {
    let is_narrow = cursor.func.dfg.value_type(old).bits() < types::I32.bits();
    let mut word = |value| {
        if is_narrow {
            cursor.ins().uextend(types::I32, value)
        } else {
            value
        }
    };
    let (found, wanted) = (word(old), word(expected));
    let same = cursor.ins().icmp(IntCC::Equal, found, wanted);
    cursor.ins().select(same, new, old)
}
