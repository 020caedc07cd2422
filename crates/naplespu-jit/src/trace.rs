//! Back traces of threads that have stopped.
//!
//! A function's [unwind rows](CompiledCode::unwind_rows) are found when somebody asks, so back traces cost nothing until then.

use super::call::handler_bytes;
use super::error::{Location, SourceLine};
use super::layout::RETURN_TO;
use super::npu_module::{Definition, NpuModule};
use cranelift_codegen::ir::{self, SourceLoc};
use cranelift_module::FuncId;
use cranelift_naplespu::code::CompiledCode;
use cranelift_naplespu::unwind::UnwindRow;
use npu_link::debug::{Place, Registers, Rules, back_trace};
use npu_mc::SReg;
use npu_mc::machine::{INSTRUCTION_SIZE, TRAP_VECTOR};
use npu_sim::{Status, THREADS};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;

/// A place of a back trace: what a thread was doing in one of the calls under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Address of the instruction: where the thread stopped, or the call that it is in.
    pub address: u32,
    /// The function, without `%`, if the module has it.
    pub function: Option<String>,
    /// Bytes from its start to the instruction.
    pub offset: Option<u32>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// What that means, if the function has a [source file](NpuModule::set_source_file).
    pub line: Option<SourceLine>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.address)?;
        if let Some(function) = &self.function {
            write!(f, " in %{function}")?;
        }
        if let Some(offset) = self.offset.filter(|&offset| offset > 0) {
            write!(f, "+{offset:#x}")?;
        }
        match (&self.line, self.srcloc, self.inst) {
            (Some(line), ..) => write!(f, " at {line}"),
            (None, Some(srcloc), _) => write!(f, " {srcloc}"),
            (None, None, Some(inst)) => write!(f, " at {inst}"),
            (None, None, None) => Ok(()),
        }
    }
}

/// The rules of an instruction from the rows of its function; none where a back trace ends.
fn rules_at(rows: &[UnwindRow], offset: u32) -> Option<Rules> {
    let after = rows.partition_point(|row| row.offset <= offset);
    let row = rows.get(after.checked_sub(1)?)?;
    let saved = row.saved.iter().map(|&(reg, at)| (reg.dwarf(), Place::Memory(at)));
    let lost = row.lost.iter().map(|&reg| (reg.dwarf(), Place::Lost));
    Some(Rules {
        cfa: row.cfa?,
        places: saved.chain(lost).collect(),
    })
}

/// At the entry of a function the CFA is `sp`, and all registers are those of the caller.
const AT_ENTRY: Rules = Rules {
    cfa: (SReg::SP, 0),
    places: Vec::new(),
};

impl NpuModule {
    /// Says that source locations of a function are lines of this file, so that back traces name them. Whoever makes CLIF sets them
    /// (`FunctionBuilder::set_srcloc`).
    pub fn set_source_file(&mut self, func: FuncId, file: impl Into<String>) {
        self.source_files.insert(func, file.into());
    }

    /// What a thread was doing in the last call, from the instruction that it stands at outwards. Empty if it returned, or if there is no such
    /// thread. The back trace ends where code is not the module's own or not compiled.
    pub fn back_trace(&self, thread: usize) -> Vec<Frame> {
        let start = (thread < self.machine.threads()).then(|| self.stands_at(thread));
        let Some(start) = start.filter(|&start| start != RETURN_TO) else {
            return Vec::new();
        };
        let state = self.machine.thread(thread);
        let registers = Registers::new(start, |reg| match reg {
            SReg::PC => start,
            reg => state.scalar(reg),
        });
        let memory = |address: u32| {
            let mut word = [0; 4];
            self.machine.read_as_core(thread / THREADS, address, &mut word);
            u32::from_le_bytes(word)
        };
        let mut known: HashMap<usize, Vec<UnwindRow>> = HashMap::new();
        let rules = |pc: u32| -> Result<_, Infallible> {
            if self.hosts.has(pc) || self.freed.get(pc).is_some() {
                return Ok(Some(AT_ENTRY));
            }
            let Some((index, object)) = self.linker.code_at(pc) else {
                return Ok(None);
            };
            let Some(code) = self.code.get(&index) else {
                return Ok(None);
            };
            let rows = known.entry(index).or_insert_with(|| self.unwind_rows(index, code));
            Ok(rules_at(rows, pc - object.address))
        };
        let Ok(addresses) = back_trace(registers, rules, &memory);
        let ours = addresses
            .into_iter()
            .take_while(|&pc| pc != RETURN_TO.wrapping_sub(INSTRUCTION_SIZE));
        ours.map(|pc| self.frame(pc)).collect()
    }

    /// The rows of an object. What the runtime was built with does not say what its frames are.
    fn unwind_rows(&self, index: usize, code: &CompiledCode) -> Vec<UnwindRow> {
        let mut routines = self.runtime.values();
        if routines.any(|routine| matches!(routine, Definition::Object(own) if *own == index)) {
            code.unwind_rows_without_frame()
        } else {
            // Without rows a back trace ends here.
            code.unwind_rows().unwrap_or_default()
        }
    }

    /// The address of the instruction that a thread stopped at.
    pub(super) fn stands_at(&self, number: usize) -> u32 {
        let thread = self.machine.thread(number);
        if let Some(waiting) = self.machine.waiting(number) {
            return waiting.pc;
        }
        if thread.pc().wrapping_sub(TRAP_VECTOR) < handler_bytes() {
            return thread.trap_pc().unwrap_or(thread.pc());
        }
        // The code that stops the thread is shared by all places of a function with that trap code: the branch says which.
        let trapped = thread.ended() == Some(Status::TRAPPED) && thread.scalar(SReg::TR) != 0;
        let branch = thread.last_branch().filter(|_| trapped);
        let same = |&branch: &u32| {
            let object = |pc| self.linker.code_at(pc).map(|(index, _)| index);
            object(branch).is_some() && object(branch) == object(thread.pc())
        };
        branch.filter(same).unwrap_or(thread.pc())
    }

    /// The file that source locations of an object are lines of.
    pub(super) fn source_file(&self, index: usize) -> Option<&str> {
        let mut files = self.source_files.iter();
        let found = files.find(|(func, _)| Self::object(self.functions.get(**func)) == Some(index));
        found.map(|(_, file)| file.as_str())
    }

    /// The line that a source location of an object stands for.
    pub(super) fn source_line(&self, index: usize, srcloc: Option<SourceLoc>) -> Option<SourceLine> {
        let (file, srcloc) = self.source_file(index).zip(srcloc)?;
        Some(SourceLine {
            file: file.to_owned(),
            line: srcloc.bits(),
        })
    }

    /// What is known of the instruction at an address.
    pub fn frame(&self, pc: u32) -> Frame {
        let Some((index, object)) = self.linker.code_at(pc) else {
            return Frame {
                address: pc,
                function: self.freed.get(pc).map(str::to_owned),
                ..Frame::default()
            };
        };
        let offset = pc - object.address;
        let Location {
            function, inst, srcloc, ..
        } = self.location(pc);
        // A branch to a trap may be that of several instructions; the record is of the one that traps.
        let code = self.code.get(&index);
        let trap = code.and_then(|code| code.traps.iter().find(|trap| trap.offset == offset));
        let inst = trap.and_then(|trap| trap.inst).or(inst);
        let srcloc = trap.map(|trap| trap.srcloc).filter(|at| !at.is_default()).or(srcloc);
        let line = self.source_line(index, srcloc);
        Frame {
            address: pc,
            function,
            offset: Some(offset),
            inst,
            srcloc,
            line,
        }
    }
}
