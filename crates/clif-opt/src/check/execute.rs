//! An interpreter of CLIF that records observable effects.
//!
//! It runs a function from some block, with given numbers for all values computed before. It
//! computes integers of up to 64 bits exactly. Other operations (floats, vectors, calls) are
//! uninterpreted functions: the same operation on the same operands has the same number. So two
//! equivalent functions have the same effects at a [`Point`], whatever floats and callees compute.
//!
//! Memory is a map of bytes for each alias region, since passes may treat regions as disjoint. The
//! initial contents depend on the address and the point.

use super::eval::mix;
use super::operate::operate;
use super::value_table::ValueTable;
use crate::edit::{self, Edge};
use crate::loops::mask;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstructionData, MemFlagsData, Opcode, TrapCode, Type, Value, ValueDef, ValueListPool,
};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// The maximum number of definitions before the start that one value may depend on; the run ends if
/// it is exceeded.
const MAX_OUTSIDE: usize = 2000;

/// An observable effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store: a number for opcode, type and region, the address, and the value.
    Store(u64, u64, u64),
    /// An observed load: a number for opcode, type and region, and the address.
    Load(u64, u64),
    /// A misaligned access that must be aligned; ends the run.
    Misaligned(u64),
    /// A trap; ends the run.
    Trap(Option<TrapCode>),
    /// A call, an atomic access or a fence: a number for it and its operands.
    Call(u64),
    /// The end of the run, with a number for the returned values, or for a terminator that is not
    /// followed.
    End(u64),
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function ended.
    Finished,
    /// The run exceeded its number of steps.
    OutOfSteps,
    /// The run needs a number that depends on too many definitions before the start.
    Unknown,
}

/// Numbers for values that the run does not compute.
pub trait Point {
    /// Returns the number of a value; bits above its type are ignored.
    fn value(&self, value: Value, ty: Type) -> u64;
    /// Returns an initial byte of memory, by a hash of region and address.
    fn byte(&self, address_hash: u64) -> u8;
}

/// An interpreter for a function.
pub struct Machine<'a> {
    func: &'a Function,
    point: &'a dyn Point,
    /// Whether all loads are events.
    loads: bool,
    /// The value table; the next run can reuse its memory.
    pub values: ValueTable,
    memory: FxHashMap<(u64, u32), u8>,
    /// The number of calls so far; each call may change memory.
    calls: u64,
    /// The events so far.
    pub events: Vec<Event>,
    /// The number of instructions executed so far.
    pub steps: usize,
    /// The watched block, and whether the run has reached it.
    pub watched: (Block, bool),
    /// Whether the run ends at the watched block.
    stops_at_watched: bool,
}

impl<'a> Machine<'a> {
    /// Creates an interpreter that watches a block. With `loads`, all loads are events. Reuses the
    /// memory of `values`.
    pub fn new(func: &'a Function, point: &'a dyn Point, watched: Block, loads: bool, mut values: ValueTable) -> Self {
        values.clear();
        Self {
            func,
            point,
            loads,
            values,
            memory: FxHashMap::default(),
            calls: 0,
            events: Vec::new(),
            steps: 0,
            watched: (watched, false),
            stops_at_watched: false,
        }
    }

    /// Returns whether a run from the start of the block reaches the watched block, and the value
    /// table.
    pub fn reaches_watched(mut self, block: Block, max_steps: usize) -> (bool, ValueTable) {
        self.stops_at_watched = true;
        self.run(block, max_steps);
        (self.watched.1, self.values)
    }

    /// Runs from the start of the block, for up to `max_steps` instructions.
    pub fn run(&mut self, mut block: Block, max_steps: usize) -> Outcome {
        loop {
            self.watched.1 |= block == self.watched.0;
            if self.stops_at_watched && self.watched.1 {
                return Outcome::OutOfSteps;
            }
            let mut next = None;
            for inst in self.func.layout.block_insts(block) {
                if self.steps == max_steps {
                    return Outcome::OutOfSteps;
                }
                self.steps += 1;
                match self.step(inst) {
                    Some(Flow::On) => {}
                    Some(Flow::To(edge)) => next = Some(edge),
                    Some(Flow::End) => return Outcome::Finished,
                    None => return Outcome::Unknown,
                }
            }
            let Some(edge) = next else {
                return Outcome::Finished;
            };
            match self.follow(edge) {
                Some(to) => block = to,
                None => return Outcome::Unknown,
            }
        }
    }

    /// Returns the number of a value, or `None` if it depends on more than [`MAX_OUTSIDE`]
    /// definitions.
    pub fn value(&mut self, value: Value) -> Option<u64> {
        let known = self.values.get(self.func.dfg.resolve_aliases(value));
        if known.is_some() {
            return known;
        }
        let mut work = vec![value];
        for _ in 0..MAX_OUTSIDE {
            let Some(&top) = work.last() else { break };
            let top = self.func.dfg.resolve_aliases(top);
            if self.values.get(top).is_some() {
                work.pop();
                continue;
            }
            let before = work.len();
            let inst = match self.func.dfg.value_def(top) {
                ValueDef::Result(inst, 0) if is_computed(self.func, inst) => Some(inst),
                _ => None,
            };
            let args = inst.map_or(&[][..], |inst| self.func.dfg.inst_args(inst));
            for &arg in args {
                if self.values.get(self.func.dfg.resolve_aliases(arg)).is_none() {
                    work.push(arg);
                }
            }
            if work.len() == before {
                let number = match inst {
                    Some(inst) => self.compute(inst, 0)?,
                    None => self.point.value(top, self.func.dfg.value_type(top)),
                };
                self.set(top, number);
            }
        }
        self.values.get(self.func.dfg.resolve_aliases(value))
    }

    fn set(&mut self, value: Value, number: u64) {
        let ty = self.func.dfg.value_type(value);
        let bits = if ty.bits() <= 64 { mask(ty) } else { u64::MAX };
        self.values.set(value, number & bits);
    }

    fn operands(&mut self, inst: Inst) -> Option<SmallVec<[u64; 4]>> {
        let func = self.func;
        func.dfg.inst_args(inst).iter().map(|&arg| self.value(arg)).collect()
    }

    /// Assigns the arguments of the edge to the parameters of its target, and returns the target.
    fn follow(&mut self, edge: Edge) -> Option<Block> {
        let func = self.func;
        let to = edit::target(func, edge)?;
        let call = edit::destinations(func, edge.inst).get(edge.number)?;
        let mut numbers: SmallVec<[u64; 8]> = SmallVec::new();
        for arg in call.args(&func.dfg.value_lists) {
            numbers.push(self.value(arg.as_value()?)?);
        }
        for (&param, number) in func.dfg.block_params(to).iter().zip(numbers) {
            self.set(param, number);
        }
        Some(to)
    }

    fn step(&mut self, inst: Inst) -> Option<Flow> {
        let func = self.func;
        let data = func.dfg.insts[inst];
        let opcode = data.opcode();
        let edge = |number| Some(Flow::To(Edge { inst, number }));
        match data {
            InstructionData::Jump { .. } => return edge(0),
            InstructionData::Brif { arg, .. } => return edge(usize::from(self.value(arg)? == 0)),
            InstructionData::BranchTable { arg, .. } => {
                // The first destination is the default.
                let entries = edit::destinations(func, inst).len() as u64 - 1;
                let index = self.value(arg)?;
                return edge(if index < entries { index as usize + 1 } else { 0 });
            }
            InstructionData::CondTrap { arg, code, .. } => {
                let traps = (self.value(arg)? != 0) == (opcode == Opcode::Trapnz);
                return Some(if traps {
                    self.end(Event::Trap(Some(code)))
                } else {
                    Flow::On
                });
            }
            InstructionData::Trap { code, .. } => return Some(self.end(Event::Trap(Some(code)))),
            InstructionData::Load { flags, offset, .. } => {
                let address = self.value(func.dfg.inst_args(inst)[0])?;
                return self.load(inst, func.dfg.mem_flags[flags], address, offset.into());
            }
            InstructionData::Store { flags, offset, .. } => {
                let &[value, address] = func.dfg.inst_args(inst) else {
                    return None;
                };
                let (number, address) = (self.value(value)?, self.value(address)?);
                return Some(self.store(
                    inst,
                    func.dfg.mem_flags[flags],
                    (value, number),
                    (address, offset.into()),
                ));
            }
            _ => {}
        }
        if opcode.is_terminator() || opcode.is_branch() {
            let number = self.uninterpreted(inst, 0)?;
            return Some(self.end(Event::End(number)));
        }
        if divides(opcode) {
            let divisor = *func.dfg.inst_args(inst).get(1)?;
            if self.value(divisor)? == 0 && func.dfg.value_type(divisor).bits() <= 64 {
                return Some(self.end(Event::Trap(None)));
            }
        }
        if opcode.is_call() || opcode.can_store() || opcode.can_load() || opcode.other_side_effects() {
            let number = self.uninterpreted(inst, 0)?;
            self.events.push(Event::Call(number));
            self.calls += 1;
            self.memory.clear();
        }
        for (result_index, &result) in func.dfg.inst_results(inst).iter().enumerate() {
            let number = self.compute(inst, result_index)?;
            self.set(result, number);
        }
        Some(Flow::On)
    }

    fn end(&mut self, event: Event) -> Flow {
        self.events.push(event);
        Flow::End
    }

    /// Computes a result of an instruction that neither accesses memory nor branches.
    fn compute(&mut self, inst: Inst, result_index: usize) -> Option<u64> {
        let func = self.func;
        if let InstructionData::StackAddr { stack_slot, offset, .. } = func.dfg.insts[inst] {
            let base = hash_of((1u32, stack_slot)) & 0x0fff_ffc0;
            return Some(base.wrapping_add_signed(i64::from(i32::from(offset))));
        }
        let operands = self.operands(inst)?;
        if result_index == 0
            && let Some(number) = operate(func, inst, &operands)
        {
            return Some(number);
        }
        let number = self.uninterpreted(inst, result_index)?;
        let result = func.dfg.inst_results(inst)[result_index];
        Some(match func.dfg.insts[inst].opcode() {
            // Addresses of objects are aligned.
            Opcode::SymbolValue | Opcode::TlsValue | Opcode::FuncAddr => number & 0x0fff_ffc0,
            Opcode::Icmp | Opcode::Fcmp if func.dfg.value_type(result).is_int() => number & 1,
            _ => number,
        })
    }

    /// Returns a number for an instruction and its operands.
    fn uninterpreted(&mut self, inst: Inst, result_index: usize) -> Option<u64> {
        let func = self.func;
        let mut data = func.dfg.insts[inst];
        let operands = self.operands(inst)?;
        let is_call = data.opcode().is_call();
        let mut hasher = FxHasher::default();
        (operands, result_index, if is_call { self.calls } else { 0 }).hash(&mut hasher);
        match data {
            InstructionData::Call { func_ref, opcode, .. } => (opcode, func_ref).hash(&mut hasher),
            InstructionData::CallIndirect { sig_ref, opcode, .. } => (opcode, sig_ref).hash(&mut hasher),
            InstructionData::MultiAry { opcode, .. } => opcode.hash(&mut hasher),
            InstructionData::TryCall { opcode, .. } | InstructionData::TryCallIndirect { opcode, .. } => {
                opcode.hash(&mut hasher);
            }
            _ => {
                // The hash includes the numbers of the operands, not their names.
                for arg in data.arguments_mut(&mut ValueListPool::new()) {
                    *arg = Value::from_u32(0);
                }
                Hash::hash(&data, &mut hasher);
            }
        }
        Some(mix(hasher.finish()))
    }

    fn load(&mut self, inst: Inst, flags: MemFlagsData, address: u64, offset: i32) -> Option<Flow> {
        let func = self.func;
        let result = func.dfg.first_result(inst);
        let (ty, opcode) = (func.dfg.value_type(result), func.dfg.insts[inst].opcode());
        let access = Access::new(opcode, ty, flags, address, offset);
        if self.loads || !flags.notrap() {
            self.events.push(Event::Load(access.kind, access.address.into()));
        }
        if access.is_misaligned(flags) {
            return Some(self.end(Event::Misaligned(access.address.into())));
        }
        let bytes: SmallVec<[u8; 8]> = (0..access.bytes)
            .map(|at| self.byte(access.region, access.address.wrapping_add(at)))
            .collect();
        let number = if bytes.len() <= 8 {
            let number = bytes
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u64::from(byte));
            let unused = 64 - 8 * bytes.len() as u32;
            match opcode {
                Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => {
                    ((number << unused).cast_signed() >> unused).cast_unsigned()
                }
                _ => number,
            }
        } else {
            hash_of((opcode, ty, bytes))
        };
        self.set(result, number);
        Some(Flow::On)
    }

    fn byte(&self, region: u64, address: u32) -> u8 {
        let stored = self.memory.get(&(region, address)).copied();
        stored.unwrap_or_else(|| self.point.byte(hash_of((region, address, self.calls))))
    }

    fn store(
        &mut self,
        inst: Inst,
        flags: MemFlagsData,
        (value, number): (Value, u64),
        (address, offset): (u64, i32),
    ) -> Flow {
        let (ty, opcode) = (self.func.dfg.value_type(value), self.func.dfg.insts[inst].opcode());
        let access = Access::new(opcode, ty, flags, address, offset);
        // Ignores bits that are not stored.
        let number = if access.bytes < 8 {
            number & ((1 << (8 * access.bytes)) - 1)
        } else {
            number
        };
        self.events
            .push(Event::Store(access.kind, access.address.into(), number));
        if access.is_misaligned(flags) {
            return self.end(Event::Misaligned(access.address.into()));
        }
        for at in 0..access.bytes {
            let byte = if access.bytes <= 8 {
                number >> (8 * at)
            } else {
                mix(number ^ u64::from(at))
            };
            self.memory
                .insert((access.region, access.address.wrapping_add(at)), byte as u8);
        }
        Flow::On
    }
}

/// The control flow after an instruction.
enum Flow {
    On,
    To(Edge),
    End,
}

/// The bytes of a memory access.
struct Access {
    /// A hash of opcode, type and region.
    kind: u64,
    region: u64,
    address: u32,
    bytes: u32,
    /// The required alignment in bytes of an access with the flag `aligned`.
    align: u32,
}

impl Access {
    fn new(opcode: Opcode, ty: Type, flags: MemFlagsData, address: u64, offset: i32) -> Self {
        let bytes = match opcode {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => 4,
            Opcode::Load | Opcode::Store => ty.bytes(),
            // Widening vector loads access half of the result's size.
            _ => ty.bytes() / 2,
        };
        let region = flags.alias_region().map_or(0, |region| 1 + u64::from(region.as_u32()));
        Self {
            kind: hash_of((opcode, ty, region)),
            region,
            address: (address as u32).wrapping_add_signed(offset),
            bytes,
            // Multi-word scalars are accessed word by word.
            align: if ty.is_vector() {
                bytes.max(1)
            } else {
                bytes.clamp(1, 4)
            },
        }
    }

    fn is_misaligned(&self, flags: MemFlagsData) -> bool {
        flags.aligned() && !self.address.is_multiple_of(self.align)
    }
}

fn divides(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem)
}

/// Returns whether the result depends only on the operands, at any position.
fn is_computed(func: &Function, inst: Inst) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    edit::is_pure(opcode) || divides(opcode)
}

fn hash_of(parts: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    parts.hash(&mut hasher);
    mix(hasher.finish())
}
