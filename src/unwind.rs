//! Unwind information: the frame of the caller and the callee-saved registers at each instruction
//! of a function.
//!
//! # Contract
//!
//! [`CompiledCode::unwind_rows`] computes the rows from the final instructions of compiled code. So
//! they are correct whatever the passes did to the prologue and the epilogues, and cost nothing
//! unless requested. The canonical frame address (CFA) is the stack pointer at entry.
//!
//! # Method
//!
//! A dataflow analysis of the code. The state before each instruction contains the scalar registers
//! with a known distance from the CFA, the registers that still have their value at entry, and the
//! frame slots of saved values. Where paths meet, the common part of their states remains. Trap
//! sequences may be reached with and without a frame: their state is then empty, and their row has
//! no CFA. A backtrace starts at the branch to the trap sequence instead.

use crate::abi::sig::handler_stack_pointer;
use crate::code::{CompiledCode, ExceptionHandler};
use crate::error::CompileError;
use crate::inst::ops::{load_op, store_op};
use crate::inst::reg::machine;
use crate::post_ra::effects::{Effects, RegSet};
use npu_mc::machine::{INSTRUCTION_SIZE, VECTOR_SLOT, WORD_SLOT};
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use regalloc2::RegClass;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The unwind information from an instruction up to the next row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindRow {
    /// Offset of the first instruction.
    pub offset: u32,
    /// The CFA as a register and bytes to add. `None` if it is unknown, which ends a backtrace.
    pub cfa: Option<(SReg, i32)>,
    /// Registers whose value at entry is in memory, with the distance from the CFA in bytes. Other
    /// callee-saved registers still have their value at entry.
    pub saved: Vec<(Reg, i32)>,
    /// Registers whose value at entry is lost.
    pub lost: Vec<Reg>,
}

impl CompiledCode {
    /// Returns the rows of the function by rising offset. The first row is that of the entry.
    /// Unreachable code has no rows.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if a [call site](CompiledCode::call_sites) does not follow a
    /// call, because the stack pointer after a call would then be wrong.
    pub fn unwind_rows(&self) -> Result<Vec<UnwindRow>, CompileError> {
        let saved = self.frame.saved.iter().map(|&(reg, _)| reg);
        if let Some(site) = self
            .call_sites
            .iter()
            .find(|site| !self.is_after_call(site.return_offset))
        {
            let site = format!("the call site at {:#x}", site.return_offset);
            return Err(CompileError::internal("unwind", site, "a call before it"));
        }
        Ok(self.rows(Some(saved.chain([machine::RA]).collect())))
    }

    /// Returns the rows of code without [`CompiledCode::frame`]. They contain all saved registers.
    pub fn unwind_rows_without_frame(&self) -> Vec<UnwindRow> {
        self.rows(None)
    }

    /// Returns whether the instruction before an offset is a call.
    fn is_after_call(&self, offset: u32) -> bool {
        let word = offset.checked_sub(INSTRUCTION_SIZE).and_then(|start| {
            let bytes = self.bytes.get(start as usize..offset as usize)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        });
        let inst = word.and_then(|word| npu_mc::decode(word).ok());
        let calls = [Opcode::JMPSR_OFF, Opcode::JMPSR_REG, Opcode::JUMPREG];
        inst.is_some_and(|inst| calls.contains(&inst.opcode))
    }

    fn rows(&self, wanted: Option<RegSet>) -> Vec<UnwindRow> {
        let words = self.bytes.get(..self.pool_start as usize).unwrap_or(&self.bytes);
        let words = words.chunks_exact(INSTRUCTION_SIZE as usize);
        let decoded = words.map(|word| {
            let word = word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            npu_mc::decode(word).ok()
        });
        let mut walk = Walk {
            insts: decoded.collect(),
            relocated: self.relocs.iter().map(|reloc| reloc.offset).collect(),
            starts: self.block_starts.iter().copied().collect(),
            popped: self
                .call_sites
                .iter()
                .map(|site| (site.return_offset, site.popped))
                .collect(),
            leaders: HashSet::new(),
            states: BTreeMap::new(),
            todo: Vec::new(),
        };
        walk.find_leaders();
        // The analysis finds the targets of computed jumps. It is repeated until it finds no new
        // ones.
        loop {
            let known = walk.leaders.len();
            walk.states.clear();
            walk.enter(0, State::at_entry());
            for handler in self.call_sites.iter().flat_map(|site| &site.handlers) {
                if let ExceptionHandler::Tag(_, offset) | ExceptionHandler::Default(offset) = *handler {
                    walk.enter(offset, self.at_handler());
                }
            }
            while let Some(offset) = walk.todo.pop() {
                walk.follow(offset);
            }
            if walk.leaders.len() == known {
                return walk.rows(wanted);
            }
        }
    }

    /// Returns the state at the entry of an exception handler: the frame exists, and a register
    /// contains its stack pointer.
    fn at_handler(&self) -> State {
        let size = i64::from(self.frame.size);
        let mut state = State::default();
        if let Some(Reg::S(reg)) = handler_stack_pointer() {
            state.values.insert(reg, Value::Frame(-size));
        }
        let saved = self.frame.saved.iter();
        state.slots = saved
            .map(|&(reg, offset)| (index(reg), (reg, i64::from(offset) - size)))
            .collect();
        state
    }
}

/// A known value of a scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// The distance from the CFA in bytes.
    Frame(i64),
    /// The address of the code at this offset.
    Code(i64),
    /// The upper and lower half of a number, as far as they are known.
    Halves(Option<u16>, Option<u16>),
}

impl Value {
    /// Returns the number if both halves are known.
    fn number(self) -> Option<i64> {
        match self {
            Self::Halves(Some(high), Some(low)) => Some(i64::from((u32::from(high) << 16 | u32::from(low)) as i32)),
            _ => None,
        }
    }

    fn plus(self, number: i64) -> Option<Self> {
        match self {
            Self::Frame(at) => Some(Self::Frame(at + number)),
            Self::Code(at) => Some(Self::Code(at + number)),
            Self::Halves(..) => None,
        }
    }
}

/// The state before an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    values: BTreeMap<SReg, Value>,
    /// Registers that have their value at entry.
    same: RegSet,
    /// Registers whose value at entry is in the frame, with the distance from the CFA, by the index
    /// of the register.
    slots: BTreeMap<usize, (Reg, i64)>,
}

/// Returns the index of a register.
fn index(reg: Reg) -> usize {
    crate::post_ra::effects::index_of(reg)
}

fn size_of(reg: Reg) -> i64 {
    match reg {
        Reg::S(_) => i64::from(WORD_SLOT),
        Reg::V(_) => i64::from(VECTOR_SLOT),
    }
}

fn class_of(reg: Reg) -> RegClass {
    match reg {
        Reg::S(_) => RegClass::Int,
        Reg::V(_) => RegClass::Vector,
    }
}

impl State {
    fn at_entry() -> Self {
        Self {
            values: BTreeMap::from([(SReg::SP, Value::Frame(0))]),
            same: RegSet::ALL,
            slots: BTreeMap::new(),
        }
    }

    /// Keeps the part that both states have in common. Returns whether the state changed.
    fn meet(&mut self, other: &Self) -> bool {
        let before = (self.values.len(), self.same, self.slots.len());
        self.values.retain(|reg, value| other.values.get(reg) == Some(value));
        self.same = self.same.and(other.same);
        self.slots.retain(|reg, slot| other.slots.get(reg) == Some(slot));
        before != (self.values.len(), self.same, self.slots.len())
    }

    /// Removes the registers that a call changes.
    fn call(&mut self, popped: u32) {
        self.values.retain(|&reg, _| reg == SReg::SP || reg == SReg::FP);
        self.same = self.same.without(RegSet::one(machine::RA));
        if let Some(Value::Frame(at)) = self.values.get_mut(&SReg::SP) {
            *at += i64::from(popped);
        }
    }

    /// Executes the instruction at the offset. `is_relocated` is whether the linker changes it.
    fn step(&mut self, inst: &Inst, offset: i64, is_relocated: bool) {
        let effects = Effects::of(inst);
        let operands = inst.operands.as_ref();
        let value = |operand: Option<&Operand>| match operand? {
            Operand::S(SReg::PC) => Some(Value::Code(offset)),
            Operand::S(reg) => self.values.get(reg).copied(),
            Operand::Imm(number) => {
                let number = *number as u32;
                Some(Value::Halves(Some((number >> 16) as u16), Some(number as u16)))
            }
            Operand::V(_) => None,
        };
        let number = |operand: Option<&Operand>| value(operand).and_then(Value::number);
        let (first, second) = (operands.get(1), operands.get(2));
        let halves = |operand: Option<&Operand>| match value(operand) {
            Some(Value::Halves(high, low)) => (high, low),
            _ => (None, None),
        };
        let half = |operand: Option<&Operand>| operand?.imm().map(|number| number as u16);
        let result = match inst.opcode {
            _ if is_relocated => None,
            Opcode::MOVEISI => half(first).map(|low| Value::Halves(Some(0), Some(low))),
            Opcode::MOVEIHSI => Some(Value::Halves(half(first), halves(operands.first()).1)),
            Opcode::MOVEILSI => Some(Value::Halves(halves(operands.first()).0, half(first))),
            Opcode::MOVE_SS_32 => value(first),
            Opcode::ADDSSI | Opcode::ADDSSS_32 => match (number(first), number(second)) {
                (_, Some(number)) => value(first).and_then(|value| value.plus(number)),
                (Some(number), None) => value(second).and_then(|value| value.plus(number)),
                (None, None) => None,
            },
            Opcode::SUBSSI | Opcode::SUBSSS_32 => number(second).and_then(|number| value(first)?.plus(-number)),
            _ => None,
        };
        // Accesses to the frame.
        let accessed = effects.access.and_then(|access| {
            let (Reg::S(base), offset) = access.at? else {
                return None;
            };
            match self.values.get(&base) {
                Some(Value::Frame(at)) => Some((at + i64::from(offset), i64::from(access.bytes))),
                _ => None,
            }
        });
        let mut restored = None;
        if let (Some((at, bytes)), Some(reg)) = (accessed, operands.first().and_then(|operand| operand.reg())) {
            if inst.opcode == load_op(class_of(reg)) {
                let own = self.slots.get(&index(reg));
                restored = own.filter(|(_, slot)| *slot == at).map(|(reg, _)| *reg);
            } else if effects.access.is_some_and(|access| access.is_store) {
                let saves = inst.opcode == store_op(class_of(reg)) && self.same.contains(reg);
                let is_known = self.slots.contains_key(&index(reg));
                if !(saves && self.slots.get(&index(reg)).is_some_and(|(_, slot)| *slot == at)) {
                    self.slots
                        .retain(|_, (reg, slot)| *slot + size_of(*reg) <= at || at + bytes <= *slot);
                }
                if saves && !is_known {
                    self.slots.insert(index(reg), (reg, at));
                }
            }
        }
        self.same = self.same.without(effects.writes);
        for reg in effects.writes.scalars().iter() {
            if let Reg::S(reg) = reg {
                self.values.remove(&reg);
            }
        }
        if let (Some(value), Some(Operand::S(reg))) = (result, operands.first()) {
            self.values.insert(*reg, value);
        }
        if let Some(reg) = restored {
            self.same = self.same.or(RegSet::one(reg));
        }
        if effects.writes.contains(machine::SP)
            && let Some(Value::Frame(sp)) = self.values.get(&SReg::SP)
        {
            // Memory below the stack pointer is not preserved.
            let sp = *sp;
            self.slots.retain(|_, (_, slot)| *slot >= sp);
        }
    }

    fn row(&self, offset: u32, wanted: Option<RegSet>) -> UnwindRow {
        let distance = |reg: &SReg| match self.values.get(reg) {
            Some(Value::Frame(at)) => i32::try_from(-at).ok().map(|at| (*reg, at)),
            _ => None,
        };
        let likely = [SReg::SP, SReg::FP];
        let cfa = likely.iter().chain(self.values.keys()).find_map(distance);
        let counts = |reg: Reg| wanted.is_none_or(|wanted| wanted.contains(reg));
        let saved = self.slots.values().filter(|(reg, _)| counts(*reg));
        let saved = saved.filter_map(|&(reg, at)| Some((reg, i32::try_from(at).ok()?)));
        let lost = wanted.unwrap_or(RegSet::one(machine::RA)).without(self.same);
        let lost = lost.iter().filter(|reg| !self.slots.contains_key(&index(*reg)));
        UnwindRow {
            offset,
            cfa,
            saved: saved.collect(),
            lost: lost.collect(),
        }
    }
}

/// The successor of an instruction.
enum Next {
    /// The instructions at these offsets.
    To(Vec<i64>),
    /// The next instruction, after a call.
    Call,
    /// None: the function ends.
    Exit,
}

/// The state of the analysis.
struct Walk {
    insts: Vec<Option<Inst>>,
    /// Offsets of instructions with relocations.
    relocated: HashSet<u32>,
    /// Offsets of VCode blocks.
    starts: HashSet<u32>,
    /// Bytes of stack arguments that callees remove, by the offset of the return address.
    popped: HashMap<u32, u32>,
    /// Offsets of branch targets and return addresses.
    leaders: HashSet<u32>,
    /// The states at the leaders.
    states: BTreeMap<u32, State>,
    todo: Vec<u32>,
}

impl Walk {
    fn inst(&self, offset: i64) -> Option<&Inst> {
        let offset = u32::try_from(offset).ok()?;
        self.insts.get((offset / INSTRUCTION_SIZE) as usize)?.as_ref()
    }

    fn is_relocated(&self, offset: i64) -> bool {
        u32::try_from(offset).is_ok_and(|offset| self.relocated.contains(&offset))
    }

    /// Finds the targets of branches.
    fn find_leaders(&mut self) {
        let empty = State::default();
        let mut found = HashSet::new();
        for (number, inst) in self.insts.iter().enumerate() {
            let offset = number as i64 * i64::from(INSTRUCTION_SIZE);
            let targets = inst.as_ref().and_then(|inst| self.next(&empty, inst, offset));
            if let Some(Next::To(targets)) = targets {
                found.extend(targets.into_iter().filter_map(|target| u32::try_from(target).ok()));
            }
        }
        self.leaders = found;
    }

    /// Merges a state into the one at an offset, and schedules the offset if its state changed.
    fn enter(&mut self, offset: u32, state: State) {
        if self.inst(offset.into()).is_none() {
            return;
        }
        self.leaders.insert(offset);
        let changed = match self.states.get_mut(&offset) {
            Some(known) => known.meet(&state),
            None => {
                self.states.insert(offset, state);
                true
            }
        };
        if changed {
            self.todo.push(offset);
        }
    }

    /// Executes the code from an offset up to the next leader or branch.
    fn follow(&mut self, from: u32) {
        let Some(mut state) = self.states.get(&from).cloned() else {
            return;
        };
        let mut offset = from;
        while let Some(inst) = self.inst(offset.into()).copied() {
            let next = self.next(&state, &inst, offset.into());
            state.step(&inst, offset.into(), self.is_relocated(offset.into()));
            let after = offset + INSTRUCTION_SIZE;
            match next {
                None if self.leaders.contains(&after) => return self.enter(after, state),
                None => offset = after,
                Some(Next::Exit) => return,
                Some(Next::Call) => {
                    // The callee of a call without a call site removes no stack arguments.
                    state.call(self.popped.get(&after).copied().unwrap_or(0));
                    return self.enter(after, state);
                }
                Some(Next::To(targets)) => {
                    for target in targets {
                        if let Ok(target) = u32::try_from(target) {
                            self.enter(target, state.clone());
                        }
                    }
                    return;
                }
            }
        }
    }

    /// Returns the successor of a branch. Returns `None` for other instructions.
    fn next(&self, state: &State, inst: &Inst, offset: i64) -> Option<Next> {
        let after = offset + i64::from(INSTRUCTION_SIZE);
        let is_relocated = self.is_relocated(offset);
        let target = || {
            inst.operands
                .as_ref()
                .last()?
                .imm()
                .map(|distance| offset + i64::from(distance))
        };
        Some(match inst.opcode {
            Opcode::JMP if is_relocated => Next::Exit,
            Opcode::JMP => Next::To(target().into_iter().collect()),
            Opcode::BEQZ | Opcode::BNEZ => Next::To(target().into_iter().chain([after]).collect()),
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG => Next::Call,
            Opcode::JUMPREG => {
                if state.values.get(&SReg::RA) == Some(&Value::Code(after)) {
                    return Some(Next::Call);
                }
                let to = match inst.operands.first() {
                    Some(Operand::S(reg)) => *reg,
                    _ => return Some(Next::Exit),
                };
                match state.values.get(&to) {
                    Some(Value::Code(target)) => Next::To(vec![*target]),
                    _ if self.is_table(state, to, offset) => Next::To(self.table(after)),
                    _ => Next::Exit,
                }
            }
            _ if inst.desc().flags.is_branch() => Next::Exit,
            _ => return None,
        })
    }

    /// Returns whether the jump selects an entry of the branch table after it: the instruction
    /// before it adds an index to the address of the table.
    fn is_table(&self, state: &State, to: SReg, offset: i64) -> bool {
        let word = i64::from(INSTRUCTION_SIZE);
        let Some(sum) = self.inst(offset - word) else {
            return false;
        };
        let [Operand::S(result), _, Operand::S(base)] = sum.operands.as_ref() else {
            return false;
        };
        sum.opcode == Opcode::ADDSSS_32 && *result == to && state.values.get(base) == Some(&Value::Code(offset + word))
    }

    /// Returns the targets of the branch table at an offset: all jumps up to the next block.
    fn table(&self, start: i64) -> Vec<i64> {
        let offsets = (start..).step_by(INSTRUCTION_SIZE as usize);
        let ends = |offset: i64| u32::try_from(offset).is_ok_and(|offset| self.starts.contains(&offset));
        let entries = offsets.take_while(|&offset| {
            let is_jump = self.inst(offset).is_some_and(|inst| inst.opcode == Opcode::JMP);
            is_jump && !self.is_relocated(offset) && (offset == start || !ends(offset))
        });
        entries.collect()
    }

    fn rows(&self, wanted: Option<RegSet>) -> Vec<UnwindRow> {
        let mut rows: Vec<UnwindRow> = Vec::new();
        let mut state: Option<State> = None;
        for (number, inst) in self.insts.iter().enumerate() {
            let offset = number as u32 * INSTRUCTION_SIZE;
            if let Some(known) = self.states.get(&offset) {
                state = Some(known.clone());
            }
            let (Some(inst), Some(known)) = (inst, &mut state) else {
                state = None;
                continue;
            };
            let row = known.row(offset, wanted);
            let is_new = rows
                .last()
                .is_none_or(|last| (last.cfa, &last.saved, &last.lost) != (row.cfa, &row.saved, &row.lost));
            if is_new {
                rows.push(row);
            }
            if self.next(known, inst, offset.into()).is_some() {
                state = None;
            } else {
                known.step(inst, offset.into(), self.is_relocated(offset.into()));
            }
        }
        rows
    }
}
