//! What `sim` says of a program that has symbols, lines and tables for unwinding: where threads stopped, and how they came there.

use cranelift_codegen::ir::TrapCode;
use npu_link::debug::{ProgramInfo, Registers};
use npu_mc::SReg;
use npu_sim::{Machine, Status, Stop, THREADS};
use std::fmt::Write as _;
use std::num::NonZeroU8;

/// A frame that has no name.
const UNKNOWN: &str = "??";

/// The place of the code at an address, as text.
pub fn place(info: &ProgramInfo, pc: u32) -> String {
    info.describe(pc).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// What is said of a thread that trapped, or was stopped.
pub fn thread(machine: &Machine, number: usize, stop: Option<&Stop>, info: &ProgramInfo) -> Option<String> {
    let state = machine.thread(number);
    let (pc, what) = match stop {
        Some(Stop::ReadOnly { pc, address }) => {
            let section = info.section(*address).map_or(UNKNOWN, |section| &section.name);
            let symbol = match info.name(*address) {
                Some((name, 0)) => format!(", `{name}`"),
                Some((name, distance)) => format!(", `{name}`+{distance:#x}"),
                None => String::new(),
            };
            (
                *pc,
                format!("stores to {address:#010x} in `{section}`{symbol}, which is read-only"),
            )
        }
        Some(Stop::Hang { pc, .. } | Stop::MemoryFull { pc, .. }) => (*pc, "stopped".to_owned()),
        _ if state.status() == Status::TRAPPED => {
            // The code that stops the thread is shared by all traps of one kind: the branch says which.
            let code = u8::try_from(state.scalar(SReg::TR)).ok().and_then(NonZeroU8::new);
            let what = code.map_or_else(String::new, |code| format!(": {}", TrapCode::from_raw(code)));
            (state.last_branch().unwrap_or(state.pc()), format!("trapped{what}"))
        }
        // Whatever it did after that.
        _ => (state.trap_pc()?, format!("trapped: {}", state.trap_reason().name())),
    };
    let mut text = format!("error: thread {number} {what}\n");
    // Writing to a string does not fail.
    for (depth, pc) in back_trace(machine, number, pc, info).into_iter().enumerate() {
        let _ = writeln!(text, "  #{depth:<3} {pc:#010x} in {}", place(info, pc));
    }
    Some(text)
}

/// The places that a trace comes by: a text whenever there is another name or line.
pub struct Places<'a> {
    info: Option<&'a ProgramInfo>,
    last: Option<(usize, String)>,
}

impl<'a> Places<'a> {
    /// Nothing is said without what a program says of itself.
    pub fn new(info: Option<&'a ProgramInfo>) -> Self {
        Self { info, last: None }
    }

    /// What is new of an instruction.
    pub fn next(&mut self, thread: usize, pc: u32) -> Option<String> {
        let info = self.info?;
        let name = info.name(pc).map_or(UNKNOWN, |(name, _)| name);
        let line = info.lines.at(pc).map(|(file, line)| format!(" at {file}:{line}"));
        let place = (thread, format!("{name}{}", line.unwrap_or_default()));
        if self.last.as_ref() == Some(&place) {
            return None;
        }
        let text = place.1.clone();
        self.last = Some(place);
        Some(text)
    }
}

/// The addresses of the calls that are under way, from where the thread stands outwards.
pub fn back_trace(machine: &Machine, number: usize, pc: u32, info: &ProgramInfo) -> Vec<u32> {
    let registers = Registers::new(pc, |reg| match reg {
        SReg::PC => pc,
        reg => machine.thread(number).scalar(reg),
    });
    let memory = |address: u32| {
        let mut bytes = [0; 4];
        machine.read_as_core(number / THREADS, address, &mut bytes);
        u32::from_le_bytes(bytes)
    };
    info.frames.back_trace(registers, &memory).unwrap_or_else(|_| vec![pc])
}
