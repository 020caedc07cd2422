//! Expands atomic operations into plain accesses.
//!
//! A read-modify-write, a compare-and-swap or an access of more than a word becomes a load, an
//! operation and a store. The lock of the core, or of the machine, protects the sequence, unless
//! only one thread uses the memory ([`Atomics`](crate::settings::Atomics)). `docs/atomics.md`
//! explains why stores take the lock and loads do not, and proves the lock correct.
//!
//! A thread that traps while it holds the lock never releases it. So a misaligned address must trap
//! earlier: the code reads the memory once before it takes the lock of a core. This read also brings
//! the line into the cache. Under the lock of the machine no other code may touch the line, so a word
//! of the stack with the same misalignment is read instead.
//!
//! Under the lock of the machine, each operation stores to every line that it accesses and then
//! gives the line back (`dcache_inv`). So no cache keeps a line that another core may change, and
//! `dcache_inv` meets no line that was only read, which would hang the thread.
//!
//! Loads and stores of at most a word stay atomic instructions if they need no lock. CLIF's plain
//! accesses are no replacement: they may be split, need not trap on a misaligned address, and may
//! be reordered. Atomic accesses are fences for the optimizer as well: it does not forward a value
//! to the load, and neither moves nor removes the store. It may simplify the code between them.
//! Lowering emits one machine instruction between fences for each (`isle/atomics.isle`). Accesses
//! of more than a word and accesses under the lock are plain accesses between fences.

use super::routines::{import, word_of};
use crate::error::CompileError;
use crate::intrinsics::{self, ATOMIC_ENTER, MACHINE_ENTER};
use crate::runtime::OTHER_LINE;
use crate::spaces::{self, Space};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, FuncRef, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value,
    types,
};
use cranelift_codegen::isa::CallConv;

/// The opcodes that this file rewrites.
pub(super) const OPCODES: [Opcode; 4] = [
    Opcode::AtomicRmw,
    Opcode::AtomicCas,
    Opcode::AtomicLoad,
    Opcode::AtomicStore,
];

/// The effect of an atomic operation on memory.
#[derive(Clone, Copy)]
enum Change {
    Rmw(AtomicRmwOp, Value),
    Cas { expected: Value, new: Value },
    Load,
    Store(Value),
}

/// The lock that excludes other threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// The lock of the core.
    Core,
    /// The lock between cores. Its holder also holds the lock of its core.
    Machine,
}

impl Lock {
    /// Declares the routine that takes the lock.
    fn routine(self, func: &mut Function) -> FuncRef {
        match self {
            Self::Core => import(func, ATOMIC_ENTER, CallConv::Probestack, 1, 2),
            Self::Machine => import(func, MACHINE_ENTER, CallConv::Probestack, 0, 2),
        }
    }
}

/// The declarations of a function that the expansion calls, made on first use.
#[derive(Default)]
struct Declared {
    core: Option<FuncRef>,
    machine: Option<FuncRef>,
    intrinsics: intrinsics::Builder,
}

impl Declared {
    fn enter(&mut self, func: &mut Function, lock: Lock) -> FuncRef {
        let declared = match lock {
            Lock::Core => &mut self.core,
            Lock::Machine => &mut self.machine,
        };
        *declared.get_or_insert_with(|| lock.routine(func))
    }

    /// Emits a `dcache_inv` of the line of an even address.
    fn give_back(&mut self, cursor: &mut FuncCursor<'_>, address: Value) -> Result<(), CompileError> {
        self.intrinsic(cursor, "dcache_inv", address)
    }

    /// Emits an intrinsic on the line of an address.
    fn intrinsic(&mut self, cursor: &mut FuncCursor<'_>, name: &str, address: Value) -> Result<(), CompileError> {
        let called = self.intrinsics.call(cursor.ins(), name, &[address]);
        called
            .map(|_| ())
            .map_err(|error| CompileError::internal("legalize", error, "an intrinsic"))
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

    /// Returns the type of each access of the operation. The operation requires an address that is
    /// a multiple of its size.
    fn unit(&self) -> Type {
        if self.is_word() { self.ty } else { types::I32 }
    }

    /// Returns the flags of the plain accesses: the same alias region and byte order, and the
    /// alignment that an atomic access requires.
    fn plain_flags(&self) -> MemFlagsData {
        let mut flags = MemFlagsData::new().with_aligned();
        flags.set_alias_region(self.flags.alias_region());
        match self.flags.explicit_endianness() {
            Some(order) => flags.with_endianness(order),
            None => flags,
        }
    }
}

/// Rewrites the function. If `lock` is given, operations exclude one another by that lock.
///
/// # Errors
///
/// [`CompileError::Internal`] if the function has no room for more memory flags, or if td lacks an
/// intrinsic.
pub(super) fn run(func: &mut Function, lock: Option<Lock>) -> Result<(), CompileError> {
    let mut declared = Declared::default();
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
            let in_main = spaces::of_flags(cursor.func, flags) == Space::Main;
            let stays = match change {
                Change::Load => access.is_word() && !(lock == Some(Lock::Machine) && in_main),
                Change::Store(_) => access.is_word() && lock.is_none(),
                Change::Rmw(..) | Change::Cas { .. } => false,
            };
            if stays {
                continue;
            }
            // Inserts the flags now, so that a full set is an error here and not a panic in the
            // builders below.
            for flags in [access.plain_flags(), MemFlagsData::new()] {
                let inserted = cursor.func.dfg.mem_flags.insert(flags);
                inserted.map_err(|_| CompileError::internal("legalize", inst.to_string(), "room for memory flags"))?;
            }
            cursor.use_srcloc(inst);
            if let Some(lock) = lock {
                let old = match lock {
                    Lock::Machine if in_main => under_machine_lock(&mut cursor, &access, &mut declared)?,
                    // The scratchpad belongs to the core.
                    Lock::Core | Lock::Machine => {
                        let enter = declared.enter(cursor.func, Lock::Core);
                        under_lock(&mut cursor, &access, enter, in_main)?
                    }
                };
                replace_by(&mut cursor, old);
            } else if access.is_word() {
                word(&mut cursor, inst, &access);
            } else {
                between_fences(&mut cursor, &access);
            }
        }
    }
    Ok(())
}

/// Emits the operation under the lock of the core and returns the old value. The routine loads a word
/// of main memory while it waits for the state of the lock.
fn under_lock(
    cursor: &mut FuncCursor<'_>,
    access: &Access,
    enter: FuncRef,
    in_main: bool,
) -> Result<Option<Value>, CompileError> {
    let is_whole_word = access.ty.bits() >= types::I32.bits();
    cursor.ins().atomic_load(access.unit(), access.flags, access.pointer);
    let word = if is_whole_word && in_main {
        word_of(cursor, access.pointer)
    } else {
        // Any readable word of main memory.
        cursor.ins().get_stack_pointer(types::I32)
    };
    let [flag, loaded] = call_enter(cursor, enter, &[word])?;
    let is_little = access.flags.explicit_endianness() != Some(Endianness::Big);
    let old = plain(
        cursor,
        access,
        Some(loaded).filter(|_| access.ty == types::I32 && in_main && is_little),
    );
    let zero = cursor.ins().iconst(types::I8, 0);
    cursor.ins().atomic_store(MemFlagsData::new(), zero, flag);
    Ok(old)
}

/// Calls the routine that takes a lock.
fn call_enter(cursor: &mut FuncCursor<'_>, enter: FuncRef, args: &[Value]) -> Result<[Value; 2], CompileError> {
    let call = cursor.ins().call(enter, args);
    let results = cursor.func.dfg.inst_results(call);
    <[Value; 2]>::try_from(results).map_err(|_| CompileError::internal("legalize", call, "two results"))
}

/// Emits the operation under the lock of the machine and returns the old value.
fn under_machine_lock(
    cursor: &mut FuncCursor<'_>,
    access: &Access,
    declared: &mut Declared,
) -> Result<Option<Value>, CompileError> {
    let access = &Access {
        pointer: word_of(cursor, access.pointer),
        ..*access
    };
    let unit = access.unit();
    if unit != types::I8 {
        let stack = cursor.ins().get_stack_pointer(types::I32);
        let mask = cursor.ins().iconst(types::I32, i64::from(unit.bytes()) - 1);
        let misalignment = cursor.ins().band(access.pointer, mask);
        let probe = cursor.ins().iadd(stack, misalignment);
        cursor.ins().atomic_load(unit, access.flags, probe);
    }
    let enter = declared.enter(cursor.func, Lock::Machine);
    let [own_word, core_flag] = call_enter(cursor, enter, &[])?;
    // The store of the old value is atomic, because the optimizer would remove a plain one as
    // redundant.
    let old = if access.is_word() {
        let old = match access.change {
            Change::Store(_) => None,
            _ => Some(cursor.ins().atomic_load(access.ty, access.flags, access.pointer)),
        };
        if let Some(new) = new_value(cursor, access.change, old).or(old) {
            cursor.ins().atomic_store(access.flags, new, access.pointer);
        }
        old
    } else {
        cursor.ins().fence();
        plain(cursor, access, None)
    };
    if access.is_word() {
        let even = if unit == types::I8 {
            let mask = cursor.ins().iconst(types::I32, 0xffff_fffe);
            cursor.ins().band(access.pointer, mask)
        } else {
            access.pointer
        };
        declared.give_back(cursor, even)?;
    } else {
        // An access of several words may cross a line.
        let last = cursor
            .ins()
            .iconst(types::I32, i64::from(access.ty.bytes() - unit.bytes()));
        let last = cursor.ins().iadd(access.pointer, last);
        for address in [access.pointer, last] {
            let word = cursor.ins().atomic_load(unit, MemFlagsData::new(), address);
            cursor.ins().atomic_store(MemFlagsData::new(), word, address);
        }
        for address in [access.pointer, last] {
            declared.give_back(cursor, address)?;
        }
    }
    let zero = cursor.ins().iconst(types::I32, 0);
    cursor.ins().atomic_store(MemFlagsData::new(), zero, own_word);
    declared.give_back(cursor, own_word)?;
    let distance = cursor.ins().iconst(types::I32, i64::from(OTHER_LINE));
    let other_line = cursor.ins().iadd(own_word, distance);
    cursor.ins().atomic_store(MemFlagsData::new(), zero, other_line);
    declared.give_back(cursor, other_line)?;
    declared.intrinsic(cursor, "flush", own_word)?;
    let zero = cursor.ins().iconst(types::I8, 0);
    cursor.ins().atomic_store(MemFlagsData::new(), zero, core_flag);
    Ok(old)
}

/// Emits an operation on more than a word, for one thread.
fn between_fences(cursor: &mut FuncCursor<'_>, access: &Access) {
    cursor.ins().fence();
    let old = plain(cursor, access, None);
    cursor.ins().fence();
    replace_by(cursor, old);
}

/// Emits the operation as plain accesses. `loaded` is the old value if it is already loaded.
/// Returns the old value, or `None` for a store.
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

/// Emits an operation on at most a word, for one thread. The load replaces the instruction, so that
/// all users see its result, the old value; the store follows.
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

/// Removes the instruction at the cursor and replaces its result by `value`.
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

/// Returns the value to store, or `None` if the operation does not store. Only `Change::Store`
/// works without an old value.
fn new_value(cursor: &mut FuncCursor<'_>, change: Change, old: Option<Value>) -> Option<Value> {
    match (change, old) {
        (Change::Store(x), _) => Some(x),
        (Change::Rmw(op, x), Some(old)) => Some(operate(cursor, op, old, x)),
        (Change::Cas { expected, new }, Some(old)) => Some(exchange(cursor, old, expected, new)),
        (Change::Load, _) | (_, None) => None,
    }
}

/// Returns the value that `atomic_rmw` stores.
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

/// Returns the value that `atomic_cas` stores: `new` if the old value equals `expected`, else the
/// old value. An atomic load zero-extends, so narrow values are compared as unsigned words.
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
