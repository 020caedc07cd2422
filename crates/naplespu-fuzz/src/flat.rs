//! Runs `cranelift-interpreter` on memory with 32-bit addresses, as the target has it.
//!
//! [`run`] executes one function and returns its outcome. An access is undefined if it leaves the
//! memory, breaks a promise of its flags (`aligned`, `readonly`, alias regions), or reads a stack
//! slot that was not written. The behavior of the whole call is then undefined, and any compiled
//! code is correct.
//!
//! [`explicit`] first rewrites the offsets of accesses as sums, because the interpreter does not
//! wrap addresses at 32 bits and zero-extends negative offsets.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    ExternalName, FuncRef, Function, GlobalValue, Inst, InstBuilder, InstructionData, LibCall, MemFlagsData, Opcode,
    StackSlot, TrapCode, Type, types,
};
use cranelift_interpreter::address::{Address, AddressSize};
use cranelift_interpreter::frame::Frame;
use cranelift_interpreter::instruction::DfgInstructionContext;
use cranelift_interpreter::interpreter::LibCallHandler;
use cranelift_interpreter::state::{InterpreterFunctionRef, MemoryError, State};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap, step};
use std::cell::RefCell;

/// The address of the stack slots. The target uses other addresses, so a function's results must
/// not depend on them.
const SLOTS: u32 = 0x1000_0000;

/// The alignment of stack slots in bytes; no slot promises more.
const SLOT_ALIGN: u32 = 64;

/// A function without offsets in its accesses, for [`run`].
pub struct Explicit(Function);

/// Rewrites offsets of accesses as sums, and splits extending loads of words into two instructions,
/// because the interpreter gives their result the wrong type.
pub fn explicit(func: &Function) -> Explicit {
    let mut func = func.clone();
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            add_offset(&mut func, inst);
            split_load(&mut func, inst);
        }
    }
    Explicit(func)
}

fn add_offset(func: &mut Function, inst: Inst) {
    let (at, by) = match func.dfg.insts[inst] {
        InstructionData::Load { offset, arg, .. } => (arg, offset),
        InstructionData::Store { offset, args, .. } => (args[1], offset),
        _ => return,
    };
    if i32::from(by) == 0 || func.dfg.value_type(at) != types::I32 {
        return;
    }
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let by = cursor.ins().iconst(types::I32, i64::from(i32::from(by)));
    let sum = cursor.ins().iadd(at, by);
    match &mut func.dfg.insts[inst] {
        InstructionData::Load { offset, arg, .. } => (*offset, *arg) = (Offset32::new(0), sum),
        InstructionData::Store { offset, args, .. } => (*offset, args[1]) = (Offset32::new(0), sum),
        _ => {}
    }
}

fn split_load(func: &mut Function, inst: Inst) {
    let InstructionData::Load { opcode, flags, arg, .. } = func.dfg.insts[inst] else {
        return;
    };
    if !matches!(opcode, Opcode::Uload32 | Opcode::Sload32) {
        return;
    }
    let flags = func.dfg.mem_flags[flags];
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    let word = cursor.ins().load(types::I32, flags, arg, 0);
    let replace = cursor.func.replace(inst);
    match opcode {
        Opcode::Uload32 => replace.uextend(types::I64, word),
        _ => replace.sextend(types::I64, word),
    };
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The call returned these values.
    Returned(Vec<DataValue>),
    /// The call trapped.
    Trapped(TrapCode),
    /// The behavior is undefined; the text describes why.
    Undefined(String),
    /// The call exceeded the limit of instructions.
    OutOfFuel,
}

/// The promises about one byte.
#[derive(Clone, Copy, Default)]
struct Promise {
    /// The alias region of its accesses, counted from 1; 0 if no access had one.
    region: u8,
    /// Whether an access of that region stored to it.
    written_there: bool,
    /// Whether a load promised that the byte never changes.
    constant: bool,
    /// Whether the byte was stored to.
    written: bool,
}

struct Machine<'a> {
    frames: Vec<Frame<'a>>,
    base: u32,
    memory: &'a mut [u8],
    promises: RefCell<Vec<Promise>>,
    slots: Vec<u8>,
    written: Vec<bool>,
    undefined: RefCell<Option<String>>,
}

/// Executes a call of the function with `memory` at address `base`, and at most `fuel`
/// instructions.
///
/// # Errors
///
/// Returns an error if the interpreter cannot execute an instruction.
pub fn run(func: &Explicit, args: &[DataValue], base: u32, memory: &mut [u8], mut fuel: u64) -> Result<Ended, String> {
    let func = &func.0;
    let slot_bytes = slot_place(func, func.sized_stack_slots.len());
    let promises = RefCell::new(vec![Promise::default(); memory.len()]);
    let mut machine = Machine {
        frames: vec![Frame::new(func)],
        base,
        memory,
        promises,
        slots: vec![0; slot_bytes],
        written: vec![false; slot_bytes],
        undefined: RefCell::new(None),
    };
    let entry = func.layout.entry_block().ok_or("a function without blocks")?;
    let params = func.dfg.block_params(entry);
    if params.len() != args.len() {
        return Err("the arguments do not match the signature".to_owned());
    }
    machine.current_frame_mut().set_all(params, args.to_vec());
    let mut at = func.layout.first_inst(entry);
    while let Some(inst) = at {
        if fuel == 0 {
            return Ok(Ended::OutOfFuel);
        }
        fuel -= 1;
        let next = step(&mut machine, DfgInstructionContext::new(inst, &func.dfg));
        if let Some(what) = machine.undefined.take() {
            return Ok(Ended::Undefined(what));
        }
        match next.map_err(|error| format!("{error:?}"))? {
            ControlFlow::Assign(values) => {
                let results = func.dfg.inst_results(inst);
                machine.current_frame_mut().set_all(results, values.to_vec());
                at = func.layout.next_inst(inst);
            }
            ControlFlow::Continue => at = func.layout.next_inst(inst),
            ControlFlow::ContinueAt(block, values) => {
                let params = func.dfg.block_params(block);
                machine.current_frame_mut().set_all(params, values.to_vec());
                at = func.layout.first_inst(block);
            }
            ControlFlow::Return(values) => return Ok(Ended::Returned(values.to_vec())),
            ControlFlow::Trap(CraneliftTrap::User(code)) => return Ok(Ended::Trapped(code)),
            other => return Err(format!("the interpreter ended with {other:?}")),
        }
    }
    Err("a block without a terminator".to_owned())
}

/// Returns the offset of a slot among all slots.
fn slot_place(func: &Function, number: usize) -> usize {
    let sizes = func.sized_stack_slots.values().take(number);
    sizes.map(|slot| slot.size.next_multiple_of(SLOT_ALIGN) as usize).sum()
}

/// The target of an access.
enum Place {
    Memory(usize),
    Slots(usize),
}

impl Machine<'_> {
    fn say(&self, what: String) -> MemoryError {
        *self.undefined.borrow_mut() = Some(what);
        // The caller checks `undefined` before the error, so the error's value is arbitrary.
        MemoryError::InvalidAddress(DataValue::I8(0))
    }

    /// Returns the target of an access, or an error if its flags forbid the access.
    fn place(&self, address: Address, size: usize, flags: MemFlagsData, store: bool) -> Result<Place, MemoryError> {
        let word = match DataValue::try_from(address) {
            Ok(DataValue::I32(word)) => word.cast_unsigned(),
            other => return Err(self.say(format!("address {other:?}"))),
        };
        if flags.aligned() && !word.is_multiple_of(size as u32) {
            return Err(self.say(format!("misaligned access of {size} bytes at {word:#x}")));
        }
        let inside = |base: u32, length: usize| {
            let at = word.wrapping_sub(base) as usize;
            (at < length && size <= length - at).then_some(at)
        };
        if let Some(at) = inside(SLOTS, self.slots.len()) {
            if !store && !self.written[at..at + size].iter().all(|&written| written) {
                return Err(self.say(format!("unwritten bytes of a slot at {word:#x}")));
            }
            return Ok(Place::Slots(at));
        }
        let Some(at) = inside(self.base, self.memory.len()) else {
            return Err(self.say(format!("access outside of the memory at {word:#x}")));
        };
        let region = flags.alias_region().map_or(0, |region| region.as_u32() as u8 + 1);
        for promise in &mut self.promises.borrow_mut()[at..at + size] {
            let other = region != 0 && promise.region != 0 && promise.region != region;
            let changes = (store && promise.constant) || (flags.readonly() && promise.written);
            if (other && (store || promise.written_there)) || changes {
                return Err(self.say(format!("flags that do not hold at {word:#x}")));
            }
            if region != 0 {
                promise.region = region;
                promise.written_there |= store;
            }
            promise.constant |= flags.readonly();
            promise.written |= store;
        }
        Ok(Place::Memory(at))
    }
}

impl<'a> State<'a> for Machine<'a> {
    fn get_function(&self, _: FuncRef) -> Option<&'a Function> {
        None
    }

    fn get_current_function(&self) -> &'a Function {
        self.current_frame().function()
    }

    fn get_libcall_handler(&self) -> LibCallHandler {
        |_: LibCall, _| Err(CraneliftTrap::UnreachableCodeReached)
    }

    fn push_frame(&mut self, func: &'a Function) {
        self.frames.push(Frame::new(func));
    }

    fn pop_frame(&mut self) {
        self.frames.pop();
    }

    fn current_frame_mut(&mut self) -> &mut Frame<'a> {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn current_frame(&self) -> &Frame<'a> {
        &self.frames[self.frames.len() - 1]
    }

    fn stack_address(&self, size: AddressSize, slot: StackSlot, offset: u64) -> Result<Address, MemoryError> {
        let place = slot_place(self.get_current_function(), slot.as_u32() as usize) as u64;
        let address = u64::from(SLOTS) + place + offset;
        debug_assert!(matches!(size, AddressSize::_32));
        Address::try_from(address)
    }

    fn checked_load(&self, address: Address, ty: Type, flags: MemFlagsData) -> Result<DataValue, MemoryError> {
        let size = ty.bytes() as usize;
        let bytes = match self.place(address, size, flags, false)? {
            Place::Memory(at) => &self.memory[at..at + size],
            Place::Slots(at) => &self.slots[at..at + size],
        };
        Ok(DataValue::read_from_slice_le(bytes, ty))
    }

    fn checked_store(&mut self, address: Address, value: DataValue, flags: MemFlagsData) -> Result<(), MemoryError> {
        let size = value.ty().bytes() as usize;
        match self.place(address, size, flags, true)? {
            Place::Memory(at) => value.write_to_slice_le(&mut self.memory[at..at + size]),
            Place::Slots(at) => {
                self.written[at..at + size].fill(true);
                value.write_to_slice_le(&mut self.slots[at..at + size]);
            }
        }
        Ok(())
    }

    fn function_address(&self, _: AddressSize, _: &ExternalName) -> Result<Address, MemoryError> {
        Err(self.say("the address of a function".to_owned()))
    }

    fn get_function_from_address(&self, _: Address) -> Option<InterpreterFunctionRef<'a>> {
        None
    }

    fn resolve_global_value(&self, _: GlobalValue) -> Result<DataValue, MemoryError> {
        Err(self.say("a global value".to_owned()))
    }

    fn get_pinned_reg(&self) -> DataValue {
        DataValue::I32(0)
    }

    fn set_pinned_reg(&mut self, _: DataValue) {}
}
