//! Back traces of stopped threads.
//!
//! The [unwind rows](CompiledCode::unwind_rows) of a function are computed on demand, so back
//! traces cost nothing until then.

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

/// A frame of a back trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The address of the instruction: the call in progress, or in the innermost frame where the
    /// thread stopped.
    pub address: u32,
    /// The function, without `%`, if it is in the module.
    pub function: Option<String>,
    /// The offset of the instruction in the function, in bytes.
    pub offset: Option<u32>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// Its source line, if the function has a [source file](NpuModule::set_source_file).
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

/// Returns the unwind rules of an instruction from the rows of its function; `None` where a back
/// trace ends.
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

/// At the entry of a function the CFA is `sp`, and all registers still belong to the caller.
const AT_ENTRY: Rules = Rules {
    cfa: (SReg::SP, 0),
    places: Vec::new(),
};

impl NpuModule {
    /// Sets the file whose lines are the source locations of a function, for back traces. The
    /// producer of the CLIF sets source locations (`FunctionBuilder::set_srcloc`).
    pub fn set_source_file(&mut self, func: FuncId, file: impl Into<String>) {
        self.source_files.insert(func, file.into());
    }

    /// Returns the back trace of a thread in the last call, innermost frame first. It is empty if
    /// the thread returned or does not exist. It ends at code that is not the module's or was not
    /// compiled.
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

    /// Returns the unwind rows of an object. Runtime routines are built without frame information.
    fn unwind_rows(&self, index: usize, code: &CompiledCode) -> Vec<UnwindRow> {
        let index = self.copies.original(index);
        let mut routines = self.runtime.values();
        if routines.any(|routine| matches!(routine, Definition::Object(own) if *own == index)) {
            code.unwind_rows_without_frame()
        } else {
            // Without rows, a back trace ends here.
            code.unwind_rows().unwrap_or_default()
        }
    }

    /// Returns the address of the instruction at which a thread stopped.
    pub(super) fn stands_at(&self, number: usize) -> u32 {
        let thread = self.machine.thread(number);
        if let Some(waiting) = self.machine.waiting(number) {
            return waiting.pc;
        }
        if thread.pc().wrapping_sub(TRAP_VECTOR) < handler_bytes() {
            return thread.trap_pc().unwrap_or(thread.pc());
        }
        // All traps of a function with the same code share the trapping code; the last branch
        // identifies the instruction.
        let trapped = thread.ended() == Some(Status::TRAPPED) && thread.scalar(SReg::TR) != 0;
        let branch = thread.last_branch().filter(|_| trapped);
        let same = |&branch: &u32| {
            let object = |pc| self.linker.code_at(pc).map(|(index, _)| index);
            object(branch).is_some() && object(branch) == object(thread.pc())
        };
        branch.filter(same).unwrap_or(thread.pc())
    }

    /// Returns the source file of an object.
    pub(super) fn source_file(&self, index: usize) -> Option<&str> {
        let index = self.copies.original(index);
        let mut files = self.source_files.iter();
        let found = files.find(|(func, _)| Self::object(self.functions.get(**func)) == Some(index));
        found.map(|(_, file)| file.as_str())
    }

    /// Returns the line of a source location of an object.
    pub(super) fn source_line(&self, index: usize, srcloc: Option<SourceLoc>) -> Option<SourceLine> {
        let (file, srcloc) = self.source_file(index).zip(srcloc)?;
        Some(SourceLine {
            file: file.to_owned(),
            line: srcloc.bits(),
        })
    }

    /// Returns the frame of the instruction at an address.
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
        // A branch to a trap may belong to several instructions; the trap record names the trapping
        // one.
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
