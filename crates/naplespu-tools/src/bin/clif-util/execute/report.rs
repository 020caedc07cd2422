//! Reports on the state of a machine: registers, memory, and for a program with symbols, lines and
//! unwinding tables where threads stopped, with their call stacks.

use cranelift_codegen::ir::TrapCode;
use npu_link::debug::{ProgramInfo, Registers};
use npu_mc::machine::CACHE_LINE;
use npu_mc::{SReg, VReg};
use npu_sim::{Machine, Status, Stop, THREADS, Thread};
use std::fmt::Write as _;
use std::num::NonZeroU8;

/// A frame that has no name.
const UNKNOWN: &str = "??";

/// Returns the source location of an address as text.
pub fn place(info: &ProgramInfo, pc: u32) -> String {
    info.describe(pc).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Returns the report for a thread that trapped or was stopped, or `None` for other threads.
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
            // All traps of one kind share the code that stops the thread, so the branch to it has
            // the location.
            let code = u8::try_from(state.scalar(SReg::TR)).ok().and_then(NonZeroU8::new);
            let what = code.map_or_else(String::new, |code| format!(": {}", TrapCode::from_raw(code)));
            (state.last_branch().unwrap_or(state.pc()), format!("trapped{what}"))
        }
        // The location is that of the trap, not of the instructions after it.
        _ => (state.trap_pc()?, format!("trapped: {}", state.trap_reason().name())),
    };
    let mut text = format!("error: thread {number} {what}\n");
    // Writing to a string does not fail.
    for (depth, pc) in back_trace(machine, number, pc, info).into_iter().enumerate() {
        let _ = writeln!(text, "  #{depth:<3} {pc:#010x} in {}", place(info, pc));
    }
    Some(text)
}

/// Returns the addresses of a thread's call stack, innermost first.
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

/// Appends the registers of threads.
pub fn registers(machine: &Machine, threads: &[usize], text: &mut String) {
    for &number in threads {
        if threads.len() > 1 {
            // Writing to a string does not fail, here and below.
            let _ = writeln!(text, "thread {number}");
        }
        registers_of(machine.thread(number), text);
    }
}

fn registers_of(thread: &Thread, text: &mut String) {
    let scalars: Vec<_> = SReg::all().filter(|&r| r != SReg::PC).collect();
    for row in scalars.chunks(4) {
        let cells: Vec<String> = row
            .iter()
            .map(|r| format!("{:>4} {:08x}", r.name(), thread.scalar(*r)))
            .collect();
        let _ = writeln!(text, "{}", cells.join("  "));
    }
    let _ = writeln!(text, "  pc {:08x}  mask {:04x}", thread.pc(), thread.mask());
    for reg in VReg::all() {
        let lanes: Vec<String> = thread.vector(reg).0.iter().map(|l| format!("{l:08x}")).collect();
        // Most programs leave most vectors zero.
        if lanes.iter().any(|l| l != "00000000") {
            let _ = writeln!(text, "{:>4} {}", reg.name(), lanes.join(" "));
        }
    }
}

/// Returns notes on a range of main memory: the cores whose data caches have other bytes.
pub fn unflushed(machine: &Machine, address: u32, length: u32) -> String {
    let mut text = String::new();
    for core in 0..machine.cores() {
        let differs = |row: &u32| {
            let [mut seen, mut memory] = [[0; CACHE_LINE as usize]; 2];
            let count = (length - row).min(CACHE_LINE) as usize;
            let at = address.wrapping_add(*row);
            machine.read_as_core(core, at, &mut seen[..count]);
            machine.memory().read(at, &mut memory[..count]);
            seen != memory
        };
        let rows: Vec<u32> = (0..length).step_by(CACHE_LINE as usize).filter(differs).collect();
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "note: main memory is dumped; between {:#010x} and {:#010x} the data cache of core {core} has other \
                 bytes: stores without a flush, or old copies; --coherent simulates without caches",
                address.wrapping_add(*first),
                address.wrapping_add((last + CACHE_LINE).min(length)),
            );
        }
    }
    text
}

/// Appends bytes of main memory.
pub fn dump(machine: &Machine, address: u32, length: u32, text: &mut String) {
    for row in (0..length).step_by(16) {
        let at = address.wrapping_add(row);
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..(length - row).min(16) as usize];
        machine.memory().read(at, bytes);
        let list: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let _ = writeln!(text, "{at:08x}: {}", list.join(" "));
    }
}
